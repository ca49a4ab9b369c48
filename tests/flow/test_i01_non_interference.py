"""I1: nothing that a caller sees depends on tools that this caller may not discover.

The same caller asks the same things of two catalogs that differ only in what it may not know. Everything it gets, over
library, command line and gateway, is compared as bytes; only trace ids are left out. Two planted faults, a document
frequency over the whole catalog and a filter after ranking, must be noticed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from mcp import Client, MCPError
from typer.testing import CliRunner

from tests.flow.worlds import World, caller, tool
from tests.leaks import global_statistics
from toolcrib.cli.main import app
from toolcrib.server.callers import CurrentCaller
from toolcrib.server.mcp_gateway import Gateway
from toolcrib.types import Channel

ANN = {"subject": "ann", "scopes": ["basic"], "environment": "test"}
TOML = """
[[tools]]
match = "mine.*"
risk = "read"
[[tools]]
match = "mine.secret_*"
required_scopes = ["other"]
[[tools]]
match = "theirs.*"
required_scopes = ["other"]
preload = true
namespace = "vault"
[[tools]]
match = "mine.get_*"
preload = true
"""
WORDS = ("order", "refund", "parcel", "invoice", "customer", "send", "cancel", "list", "money", "report")
TASKS = ("refund the customer", "list the orders and send an invoice", "theirs.wipe_order", "cancel", "money report")

words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5)
schema = st.dictionaries(st.sampled_from(WORDS), st.just({"type": "string"}), max_size=2)
visible_tools = st.lists(
    st.builds(lambda n, d, p: tool("get_" + "_".join(n[:2]), " ".join(d), properties=p), words, words, schema),
    max_size=5,
    unique_by=lambda t: t["name"],
)
hidden_tools = st.lists(
    st.builds(lambda n, d, p: tool("_".join(n[:3]), " ".join(d * 3), properties=p), words, words, schema),
    max_size=6,
    unique_by=lambda t: t["name"],
)


@dataclass(frozen=True)
class Hidden:
    """What differs between the two catalogs: another server, tools beside the visible ones, and unreviewed ones."""

    theirs: list[dict[str, Any]]
    secret: list[dict[str, Any]]
    unreviewed: list[dict[str, Any]]


hidden = st.builds(
    Hidden,
    theirs=hidden_tools,
    secret=hidden_tools.map(lambda tools: [{**t, "name": f"secret_{t['name']}"} for t in tools]),
    unreviewed=hidden_tools.map(lambda tools: [{**t, "name": f"new_{t['name']}"} for t in tools]),
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    one = World(tmp_path_factory.mktemp("world"), {"mine": [], "theirs": []}, toml=TOML)
    (one.folder / "ann.json").write_text(json.dumps(ANN), encoding="utf-8")
    yield one
    one.close()


def put(world: World, mine: list[dict[str, Any]], other: Hidden) -> None:
    """Make the catalog: the visible tools, and around them what the caller may not know."""
    world.write("mine", [*other.secret, *mine, *other.unreviewed])
    world.write("theirs", other.theirs)
    world.refresh()
    wanted = [f"mine.{t['name']}" for t in (*other.secret, *mine)] + [f"theirs.{t['name']}" for t in other.theirs]
    world.crib.approve(wanted, reviewer="tests")


def seen(world: World) -> dict[str, str]:
    """Everything the caller sees, as text, by where it was seen."""
    world.crib.store.prune(keep_days=-1)
    got = {**by_library(world), **by_command_line(world), **asyncio.run(by_gateway(world))}
    return {where: json.dumps(without_ids(value), sort_keys=False) for where, value in got.items()}


def without_ids(value: Any) -> Any:
    """The same value with trace ids blanked, inside text blocks too."""
    if isinstance(value, dict):
        return {k: "" if k == "trace_id" else without_ids(v) for k, v in value.items()}
    if isinstance(value, list):
        return [without_ids(v) for v in value]
    if isinstance(value, str) and value.startswith("{") and '"trace_id"' in value:
        return without_ids(json.loads(value))
    return value


def by_library(world: World) -> dict[str, Any]:
    ann = caller(subject="ann", scopes=["basic"])
    crib = world.crib
    got: dict[str, Any] = {"library tools": [[t.tool_id, t.definition] for t in crib.tools(ann)]}
    for task in TASKS:
        offer = crib.select(task, caller=ann, limit=3)
        trace = crib.trace(offer.trace_id)
        got[f"library select {task}"] = offer.to_dict()
        got[f"library trace {task}"] = [[r.stage, r.caller_view] for r in trace.records]
        got[f"library payloads {task}"] = [offer.to_anthropic(), offer.to_openai(), offer.to_mcp(), offer.to_gemini()]
    for tool_id in ("theirs.order", "mine.secret_order", "mine.new_order", "nowhere.x"):
        done = asyncio.run(crib.call(tool_id, {"order": "1"}, caller=ann))
        got[f"library call {tool_id}"] = done.to_dict()
        trace = crib.trace(done.trace_id)
        got[f"library call trace {tool_id}"] = [[r.stage, r.caller_view] for r in trace.records]
    return got


def by_command_line(world: World) -> dict[str, Any]:
    runner, who = CliRunner(), ["--as", str(world.folder / "ann.json")]
    got: dict[str, Any] = {}
    for line in (
        ["tools", "--json", *who],
        ["select", "--json", *who, "--", TASKS[0]],
        ["call", "theirs.order", "--json", *who],
        ["tokens", "--json", *who],
    ):
        done = runner.invoke(app, ["-C", str(world.folder), *line])
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        got[f"cli {line[0]}"] = [done.exit_code, json.loads(done.stdout)]
    return got


async def by_gateway(world: World) -> dict[str, Any]:
    ann = caller(subject="ann", scopes=["basic"])
    gateway = Gateway(world.crib, channel=Channel.STDIO, callers=CurrentCaller(lambda: ann), version="0")
    got: dict[str, Any] = {}
    async with Client(gateway.server) as client:
        got["gateway instructions"] = client.instructions
        got["gateway list"] = (await client.list_tools()).model_dump(mode="json", by_alias=True)
        for name, arguments in (
            ("find_tools", {"task": TASKS[1]}),
            ("describe_tools", {"names": ["theirs__order", "mine__secret_order", "x"]}),
            ("call_tool", {"name": "theirs.order", "arguments": {}}),
            ("call_tool", {"name": "mine__secret_order", "arguments": {}}),
        ):
            answer = await client.call_tool(name, arguments)
            got[f"gateway {name} {arguments.get('name', '')}"] = answer.model_dump(mode="json", by_alias=True)
        for name in ("theirs__order", "mine__new_order", "nowhere__x"):
            try:
                answer = await client.call_tool(name, {})
                got[f"gateway call {name}"] = answer.model_dump(mode="json", by_alias=True)
            except MCPError as refused:
                got[f"gateway call {name}"] = [refused.error.code, refused.error.message.replace(name, "")]
    return got


def check(world: World, mine: list[dict[str, Any]], one: Hidden, other: Hidden) -> None:
    put(world, mine, one)
    before = seen(world)
    put(world, mine, other)
    after = seen(world)
    assert [where for where in before if before[where] != after[where]] == []


@settings(
    max_examples=80,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(mine=visible_tools, one=hidden, other=hidden)
def test_i01_nothing_a_caller_sees_depends_on_what_it_may_not_know(
    world: World, mine: list[dict[str, Any]], one: Hidden, other: Hidden
) -> None:
    check(world, mine, one, other)


# --- the property must notice faults: each is planted, and then expected to be found


def filter_after_ranking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rank everybody's tools, then take out what the caller may not see."""
    from toolcrib.retrieval.index import Index

    honest = Index.view

    class PostFiltered:
        def __init__(self, everything: Any, permitted: Any) -> None:
            self._everything = everything
            self._permitted = permitted

        def search(self, task: str, queries: Any = (), *, top_k: int = 50) -> Any:
            from dataclasses import replace

            ranking = self._everything.search(task, queries, top_k=5)
            return replace(ranking, hits=tuple(h for h in ranking.hits if self._permitted[h.tool_idx]))

    def view(self: Any, permitted: Any, **how: Any) -> Any:
        return PostFiltered(honest(self, np.ones_like(permitted), **how), permitted)

    monkeypatch.setattr(Index, "view", view)


@pytest.mark.parametrize("plant", [global_statistics, filter_after_ranking], ids=lambda plant: plant.__name__)
def test_i01_a_planted_leak_is_noticed(
    world: World, monkeypatch: pytest.MonkeyPatch, plant: Callable[[pytest.MonkeyPatch], None]
) -> None:
    plant(monkeypatch)

    @settings(
        max_examples=50,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(mine=visible_tools, one=hidden, other=hidden)
    def property_under_fault(mine: list[dict[str, Any]], one: Hidden, other: Hidden) -> None:
        check(world, mine, one, other)

    with pytest.raises(AssertionError):
        property_under_fault()
