"""Gate, traces and command line on the whole road: what a review of them found."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.flow.worlds import World, Worlds, caller, tool
from toolcrib.cli.ask import _print_outcome
from toolcrib.cli.main import app
from toolcrib.connectors.functions import FunctionServer
from toolcrib.crib import Crib
from toolcrib.errors import ConfigError
from toolcrib.offer import CallOutcome
from toolcrib.selection.tokens import estimate_text_tokens
from toolcrib.types import Channel, Code, JsonObject, Stage, ToolResult, Verdict

READ = '[[tools]]\nmatch = "*"\nrisk = "read"\n'
DESTRUCTIVE = '[[tools]]\nmatch = "*"\nrisk = "destructive"\n'
OWNED = (
    READ + '[identity.local]\ntenant = "acme"\n[[resources]]\ntype = "S"\ntools = "shop.get"\nargument = "/ids/0"\n'
    'lookup_tool = "shop.owner"\nlookup_argument = "id"\ntenant = "/tenant"\n'
)
FREE = {"type": "object"}
SHOP = [{"name": "get", "inputSchema": FREE}, {"name": "owner", "inputSchema": FREE}]


@pytest.fixture
def make(make_world: Worlds) -> Worlds:
    return lambda tools, **more: make_world({"shop": tools}, **more)


def run(world: World, *words: str) -> Any:
    return CliRunner().invoke(app, ["-C", str(world.folder), *words])


def raw_controls(text: str) -> list[str]:
    return [c for c in text if c in "\r\x1b\x07\x08\x9b\u202e\u200b"]


# --- resources


@pytest.mark.parametrize(
    ("ids", "code", "asked"),
    [
        (["S-1"], Code.OK, 1),
        (("S-1",), Code.OK, 1),
        (["T-1"], Code.NOT_AVAILABLE, 1),
        (("T-1",), Code.NOT_AVAILABLE, 1),
        ([None], Code.NOT_AVAILABLE, 0),
        ([{"$ne": None}], Code.NOT_AVAILABLE, 0),
        ([["T-1"]], Code.NOT_AVAILABLE, 0),
        ([True], Code.NOT_AVAILABLE, 0),
        ([""], Code.NOT_AVAILABLE, 0),
        ([], Code.OK, 0),
    ],
    ids=repr,
)
def test_every_way_to_name_a_resource_is_checked(make: Any, ids: Any, code: Code, asked: int) -> None:
    async def owner(name: str, arguments: JsonObject) -> ToolResult:
        tenant = "acme" if str(arguments.get("id")).startswith("S") else "evil"
        return ToolResult(code=Code.OK, structured={"tenant": tenant} if name == "owner" else {})

    world = make(SHOP, toml=OWNED, handler=owner)
    assert world.call("shop.get", {"ids": ids}).code is code
    assert [name for name, _ in world.servers["shop"].calls].count("owner") == asked


# --- rate


def test_an_allowance_is_one_callers_own_and_follows_the_settings(make: Any) -> None:
    world = make(SHOP, toml=READ + "[gate]\ncalls_per_minute = 1\n")
    agents = [caller(subject="agent", tenant=tenant, on_behalf_of=who) for tenant in "xy" for who in ("", "bo")]
    assert [world.call("shop.get", caller=one).code for one in agents] == [Code.OK] * 4
    assert world.call("shop.get", caller=agents[0]).code is Code.RATE_LIMITED
    path = world.folder / "toolcrib.toml"
    path.write_text(path.read_text().replace("calls_per_minute = 1", "calls_per_minute = 0"))
    assert world.call("shop.get", caller=agents[0]).code is Code.OK


# --- approvals


@pytest.mark.parametrize(
    "arguments",
    [{"pad": "y" * 9_000, "path": "/everything"}, {"bucket": "b", "key": "/everything"}],
    ids=["pad", "key"],
)
def test_the_approver_sees_what_is_approved(make: Any, arguments: Any) -> None:
    world = make(SHOP, toml=DESTRUCTIVE)
    asked = world.call("shop.get", arguments, channel=Channel.HTTP)
    assert asked.code is Code.NEEDS_APPROVAL
    assert "/everything" in world.crib.approvals()[0].arguments_preview
    assert (
        "/everything"
        in json.loads(run(world, "approvals", "list", "--json").stdout)["approvals"][0]["arguments_preview"]
    )


def test_a_call_too_large_to_be_shown_is_put_to_nobody(make: Any) -> None:
    world = make(SHOP, toml=DESTRUCTIVE)
    done = world.call("shop.get", {"ids": list(range(50_000))}, channel=Channel.HTTP)
    assert done.code is Code.INVALID_ARGUMENTS
    assert world.crib.approvals() == ()


# --- traces and explanations


def test_a_tools_own_words_about_arguments_stay_out_of_the_trace(make: Any) -> None:
    async def fails(_name: str, arguments: JsonObject) -> ToolResult:
        return ToolResult(code=Code.TOOL_ERROR, message=f"login failed for {dict(arguments)}", reached_server=True)

    world = make(SHOP, toml=READ, handler=fails)
    done = world.call("shop.get", {"password": "hunter2"})
    assert "hunter2" in done.message
    assert "hunter2" not in repr(world.crib.trace(done.trace_id))


@pytest.mark.parametrize(
    ("path", "text", "stage", "code"),
    [("policy.cedar", "garbage", Stage.ELIGIBILITY, "policy_error"), ("toolcrib.lock", "{", Stage.REGISTRY, None)],
    ids=["policy", "lock"],
)
def test_a_fault_is_explained_by_its_own_stage(make: Any, path: str, text: str, stage: Stage, code: str | None) -> None:
    world = make(SHOP, toml=READ, policy="permit(principal, action, resource);")
    (world.folder / path).write_text(text)
    for trace_id in (world.crib.select("get").trace_id, world.call("shop.get").trace_id):
        found = world.crib.explain(trace_id, tool_id="shop.get")
        assert found.lost_at is stage
        assert found.code not in ("no_catalog", "not_in_catalog")
        assert code in (None, found.code)


@pytest.mark.parametrize(
    ("rule", "stage", "code"),
    [
        ('required_scopes = ["none"]', Stage.ELIGIBILITY, "not_permitted"),
        ('regions = ["moon"]', Stage.ROUTING, "out_of_reach"),
    ],
    ids=["policy", "routing"],
)
def test_a_call_out_of_reach_is_explained_by_what_put_it_there(make: Any, rule: str, stage: Stage, code: str) -> None:
    world = make(SHOP, toml=f'{READ}[[tools]]\nmatch = "shop.owner"\n{rule}\n', policy=_by_scope())
    done = world.call("shop.owner", caller=caller(region="earth"))
    assert done.code is Code.NOT_AVAILABLE
    found = world.crib.explain(done.trace_id, tool_id="shop.owner")
    assert (found.lost_at, found.code) == (stage, code)


def _by_scope() -> str:
    """The default policy leaves regions to it; this one asks for scopes alone, so that routing has its turn."""
    return "permit(principal, action, resource) when { principal.scopes.containsAll(resource.required_scopes) };"


# --- refresh


def test_a_refresh_leaves_the_applications_own_connectors_open(tmp_path: Path) -> None:
    closed: list[str] = []

    class Own(FunctionServer):
        async def aclose(self) -> None:
            closed.append("shop")

    (tmp_path / "toolcrib.toml").write_text('[[servers]]\nid = "shop"\ntransport = "file"\npath = "x.json"\n')
    crib = Crib.open(tmp_path, connectors={"shop": Own("shop", {"get": ({"inputSchema": FREE}, print)})})
    asyncio.run(crib.refresh())
    assert closed == []
    crib.store.close()


# --- the budget


def test_a_budget_holds_for_all_that_is_sent(make: Any) -> None:
    fields = {f"field_{n}": {"type": "string", "description": "many words here " * 20} for n in range(50)}
    wordy = tool(
        "forecast", "Get the weather forecast of a city.", outputSchema={"type": "object", "properties": fields}
    )
    plain = tool("weather", "Get the weather of a city.")
    world = make([wordy, plain], toml=READ)
    offer = world.crib.select("get the weather forecast of a city", token_budget=300)
    assert [s.tool.name for s in offer.tools] == ["weather"]
    assert ("shop.forecast", "token_budget") in [(d.tool_id, d.reason) for d in offer.selection.dropped]
    assert estimate_text_tokens(json.dumps(offer.to_mcp())) <= 300


# --- the terminal

HOSTILE = "p\x1b[2J\x1b[Hnothing waits\r\u202e\u200b"


def test_no_command_lets_a_definition_reach_the_terminal(make: Any) -> None:
    hostile = tool("get", f"Gets it. {HOSTILE}", properties={HOSTILE: {"type": "string", "description": HOSTILE}})
    world = make([hostile], toml=READ, approve=False)
    shown = [run(world, *words).output for words in (["review"], ["review", "shop.get"])]
    world.crib.approve(None, reviewer="r")
    offer = world.crib.select("get it")
    for words in (
        ["tools"],
        ["select", "get it"],
        ["call", "shop.get", "--args", json.dumps({HOSTILE: 1})],
        ["trace", "show", offer.trace_id],
        ["explain", offer.trace_id, "--tool", f"shop.{HOSTILE}"],
    ):
        shown.append(run(world, *words).output)
    assert all("<U+001B" in text for text in shown[1:2])
    assert [raw_controls(text) for text in shown] == [[]] * len(shown)


@pytest.mark.parametrize(
    "block", [{"type": "text", "text": HOSTILE}, {"type": HOSTILE, "data": HOSTILE}, {"type": "text"}], ids=str
)
def test_a_tools_answer_cannot_move_the_cursor(block: JsonObject, capsys: pytest.CaptureFixture[str]) -> None:
    result = ToolResult(code=Code.TOOL_ERROR, message=HOSTILE, content=(block,), reached_server=True)
    verdict = Verdict(code=Code.OK, message="")
    _print_outcome(CallOutcome(code=result.code, message=HOSTILE, verdict=verdict, result=result, trace_id="t"))
    told = capsys.readouterr()
    assert raw_controls(told.out + told.err) == []
    assert told.out.strip()


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a": ' * 50_000, '{"a": NaN}', '{"a": -Infinity}', "{'a': 1}"], ids=lambda t: t[:12]
)
def test_arguments_that_are_not_json_are_a_usage_error(make: Any, text: str) -> None:
    done = run(make(SHOP, toml=READ), "call", "shop.get", "--args", text)
    assert isinstance(done.exception, ConfigError)
    assert "--args" in done.exception.what


def test_tokens_counts_what_a_listing_sends(make: Any) -> None:
    costs = [
        json.loads(run(make([tool("get", "Gets it.", **more)], toml=READ), "tokens", "--json").stdout)["all_tokens"]
        for more in ({}, {"annotations": {"title": "many words " * 50}})
    ]
    assert costs[1] > costs[0] + 50
