"""The gateway before a real crib: step-up, a call that its caller approves, offers, duplicates. Policy has the word."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as wire
import pytest
from mcp import Client

from tests.flow.worlds import World, caller
from tests.flow.worlds import tool as raw_tool
from toolcrib.server.callers import CurrentCaller
from toolcrib.server.challenge import ProtectedResource
from toolcrib.server.mcp_gateway import Gateway
from toolcrib.server.surface import mcp_name
from toolcrib.trace.records import Stage
from toolcrib.types import Caller, Channel, Presented

from .asking import ask
from .carriers import ERAS, served

era = pytest.mark.parametrize("mode", ERAS)
ANN = caller(subject="ann", scopes=["mcp"])
TOOLS = [
    raw_tool("get_order", "Look up one order.", properties={"order_id": {"type": "string"}}),
    raw_tool("refund_order", "Refund one order.", properties={"order_id": {"type": "string"}}),
    raw_tool("wipe_orders", "Remove all orders of a year.", properties={"year": {"type": "string"}}),
]
CONFIG = """
[[tools]]
match = "shop.get_*"
risk = "read"
[[tools]]
match = "shop.refund_*"
risk = "write"
required_scopes = ["refund", "mcp"]
[[tools]]
match = "shop.wipe_*"
risk = "destructive"
"""
# Whoever may not refund may know that one can: the one thing a step-up needs.
KNOWN = """
@id("all") permit (principal, action, resource);
@id("scopes") forbid (principal, action == Action::"call", resource)
unless { principal.scopes.containsAll(resource.required_scopes) };
@id("asked") @obligation("needs_approval") forbid (principal, action == Action::"call", resource)
when { resource.risk == "destructive" } unless { context.approved };
"""
HIDDEN = KNOWN.replace('action == Action::"call", resource)\nunless', "action, resource)\nunless")
OWN = """
@id("own") permit (principal == User::"ann", action == Action::"approve", resource) when { context.own_request };
"""
PROTECTED = ProtectedResource(
    resource="https://crib.example.com/mcp", authorization_servers=("https://id.example.com",)
)
Make = Callable[..., Any]


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Make]:
    """Makes a crib over the three tools."""
    made: list[World] = []

    async def one(*, policy: str = KNOWN, toml: str = "") -> World:
        folder = tmp_path / str(len(made))
        made.append(await asyncio.to_thread(World, folder, {"shop": TOOLS}, toml=CONFIG + toml, policy=policy))
        return made[-1]

    yield one
    for world in made:
        await world.crib.aclose()


async def is_ann(_presented: Presented) -> Caller | None:
    return ANN


def gateway(world: World) -> Gateway:
    return Gateway(world.crib, channel=Channel.STDIO, callers=CurrentCaller(lambda: ANN), poll_s=0)


def post(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {
        "json": {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {
                "name": name,
                "arguments": arguments,
                "_meta": {
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientCapabilities": {},
                    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
                },
            },
        },
        "headers": {
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/call",
            "Mcp-Name": name,
        },
    }


async def answered(world: World, name: str, arguments: dict[str, Any]) -> httpx2.Response:
    async with served(world.crib, is_ann, describe=lambda: PROTECTED) as (url, _), httpx2.AsyncClient() as http:  # type: ignore[arg-type]
        return await http.post(url, **post(name, arguments))


async def test_a_tool_that_policy_lets_one_know_of_names_exactly_its_scopes(make: Make) -> None:
    world = await make()
    refused = await answered(world, mcp_name("shop.refund_order"), {"order_id": "1"})
    assert refused.status_code == 403
    challenge = refused.headers["www-authenticate"]
    assert 'error="insufficient_scope"' in challenge and 'scope="mcp refund"' in challenge
    assert world.servers["shop"].calls == []


@pytest.mark.parametrize("policy", [HIDDEN, KNOWN + 'forbid (principal, action == Action::"call", resource);'])
async def test_a_hidden_tool_and_one_that_scopes_would_not_open_are_refused_without_a_word_of_scopes(
    make: Make, policy: str
) -> None:
    world = await make(policy=policy)
    hidden = await answered(world, mcp_name("shop.refund_order"), {"order_id": "1"})
    missing = await answered(world, mcp_name("shop.no_such_tool"), {"order_id": "1"})
    assert (hidden.status_code, hidden.content) == (missing.status_code, missing.content)
    assert "www-authenticate" not in hidden.headers


@pytest.mark.parametrize(
    "toml",
    [
        '[[tools]]\nmatch = "shop.refund_*"\nregions = ["eu"]\n',
        '[[routing.risk_ceilings]]\nmax_risk = "read"\n',
        '[[tools]]\nmatch = "shop.refund_*"\nenvironments = ["elsewhere"]\n',
        '[[routing.residency]]\nwithin = ["eu"]\n',
    ],
    ids=["region", "risk ceiling", "environment", "residency"],
)
async def test_what_routing_rules_out_is_neither_stepped_up_to_nor_disclosed(make: Make, toml: str) -> None:
    world = await make(toml=toml)
    refused = await answered(world, mcp_name("shop.refund_order"), {"order_id": "1"})
    assert refused.status_code != 403 and "www-authenticate" not in refused.headers
    told = world.crib.select("Refund one order.", caller=ANN)
    without = await make(toml=toml, policy=KNOWN + 'forbid (principal, action, resource == Tool::"shop.refund_order");')
    assert told.outcome is without.crib.select("Refund one order.", caller=ANN).outcome


class Person:
    def __init__(self, *, approve: bool) -> None:
        self.approve = approve
        self.asked: list[str] = []

    async def __call__(self, _ctx: Any, params: Any) -> wire.ElicitResult:
        self.asked.append(params.message)
        return wire.ElicitResult(action="accept", content={"approve": self.approve})


@era
@pytest.mark.parametrize(
    ("policy", "toml", "n_asked", "ran"),
    [
        (KNOWN + OWN, "[approvals]\nelicitation = true\n", 1, True),
        (KNOWN + OWN, "", 0, False),
        (KNOWN, "[approvals]\nelicitation = true\n", 0, False),
        (KNOWN + OWN.replace("ann", "ben"), "[approvals]\nelicitation = true\n", 0, False),
    ],
    ids=["policy and configuration say so", "not configured", "policy is silent", "policy means another"],
)
async def test_a_client_is_asked_only_where_policy_lets_the_caller_approve_its_own(
    make: Make, mode: str, policy: str, toml: str, n_asked: int, ran: bool
) -> None:
    world = await make(policy=policy, toml=toml)
    person = Person(approve=True)
    async with Client(gateway(world).server, mode=mode, elicitation_callback=person) as one:
        result = await one.call_tool("call_tool", {"name": "shop.wipe_orders", "arguments": {"year": "2019"}})
    assert len(person.asked) == n_asked
    assert bool(world.servers["shop"].calls) is ran
    if not ran:
        assert result.structured_content is not None and result.structured_content["code"] == "needs_approval"


async def test_what_is_listed_or_described_counts_as_offered_and_nothing_else_does(make: Make) -> None:
    world = await make(toml="[gate]\nrequire_offer = true\n")
    async with Client(gateway(world).server) as one:
        early = await ask(one, "call_tool", {"name": "shop.get_order", "arguments": {"order_id": "1"}})
        assert early["structuredContent"]["code"] == "not_offered"
        trace = world.crib.trace(early["structuredContent"]["trace_id"])
        gate = trace.record(Stage.GATE)
        assert gate is not None and gate.operator_view["check"] == "offered"
        await ask(one, "describe_tools", {"names": ["shop.get_order", "shop.no_such_tool"]})
        known = await ask(one, "call_tool", {"name": "shop.get_order", "arguments": {"order_id": "1"}})
        assert not known.get("isError")
        await ask(one, "find_tools", {"task": "wipe the orders of a year"})
        late = await ask(one, "call_tool", {"name": "shop.wipe_orders", "arguments": {"year": "1"}})
        assert late["structuredContent"]["code"] == "needs_approval"


async def test_a_write_sent_twice_runs_once_and_a_key_says_that_it_is_meant(make: Make) -> None:
    world = await make(policy="permit (principal, action, resource);")
    arguments = {"name": "shop.refund_order", "arguments": {"order_id": "1"}}
    async with Client(gateway(world).server) as one:
        first = await ask(one, "call_tool", arguments)
        second = await ask(one, "call_tool", arguments)
        meant = await ask(one, "call_tool", arguments, _meta={"io.toolcrib/idempotencyKey": "again-1"})
        again = await ask(one, "call_tool", arguments, _meta={"io.toolcrib/idempotencyKey": "again-1"})
        words = await ask(one, "call_tool", {**arguments, "idempotency_key": "again-2"})
    assert not any(result.get("isError") for result in (first, meant, words))
    assert [r["structuredContent"]["code"] for r in (second, again)] == ["duplicate", "duplicate"]
    assert world.crib.trace(second["structuredContent"]["earlier_trace_id"]).kind == "call"
    assert len(world.servers["shop"].calls) == 3
