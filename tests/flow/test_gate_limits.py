"""Limits, circuits and credentials on the whole road: who is held back, and that nobody is held back for ever."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest

from tests.flow.worlds import World, Worlds, caller, says_done, tool
from toolcrib.errors import ConnectorError, StoreError
from toolcrib.store.sqlite import SqliteStore
from toolcrib.types import Code, JsonObject, Stage, ToolResult

SHOP = [tool("get_order", "Look up one order."), tool("list_orders", "List orders.")]
HUB = [tool("get_issue", "Look up one issue.")]
READ = '[[tools]]\nmatch = "*"\nrisk = "read"\n'
ONCE = "[gate]\nretry_reads = false\n"
LOST = ToolResult(code=Code.UNAVAILABLE, message="ended the connection", reached_server=True)
FAILED = ToolResult(code=Code.TOOL_ERROR, message="no such order", reached_server=True)


@pytest.fixture
def world(make_world: Worlds) -> Worlds:
    return lambda **more: make_world({"shop": SHOP, "hub": HUB}, **{"toml": READ, **more})


def limited(**limit: Any) -> str:
    rows = "\n".join(f"{key} = {value!r}" for key, value in limit.items())
    return f"{READ}[[gate.limits]]\n{rows}\n"


def check_of(one: World, done: Any, stage: Stage) -> str:
    record = one.crib.trace(done.trace_id).record(stage)
    assert record is not None
    return str(record.operator_view["check"])


# --- limits


@pytest.mark.parametrize(
    ("by", "match", "codes"),
    [
        ("caller", "ann", ["ok", "rate_limited", "ok", "ok", "ok"]),
        ("tenant", "*", ["ok", "rate_limited", "rate_limited", "ok", "ok"]),
        ("tool", "shop.get_*", ["ok", "rate_limited", "rate_limited", "rate_limited", "ok"]),
        ("server", "shop", ["ok", "rate_limited", "rate_limited", "rate_limited", "ok"]),
    ],
)
def test_a_limit_holds_for_what_it_counts(world: Worlds, by: str, match: str, codes: list[str]) -> None:
    one = world(toml=limited(by=by, match=match, calls_per_minute=1))
    ann, bo, eve = caller(tenant="acme"), caller(subject="bo", tenant="acme"), caller(subject="eve", tenant="globex")
    asked = [("shop.get_order", who) for who in (ann, ann, bo, eve)] + [("hub.get_issue", eve)]
    if by == "tenant":
        asked[-1] = ("hub.get_issue", caller(subject="zoe", tenant="initech"))
    assert [one.call(tool_id, caller=who).code for tool_id, who in asked] == codes


def test_a_refusal_names_its_check_and_nothing_is_sent(world: Worlds) -> None:
    one = world(toml=limited(by="server", calls_per_minute=1))
    assert one.call("shop.get_order").ok
    refused = one.call("shop.list_orders")
    assert (refused.code, refused.verdict.check) == (Code.RATE_LIMITED, "rate")
    assert check_of(one, refused, Stage.GATE) == "rate"
    assert len(one.servers["shop"].calls) == 1


def test_a_call_that_is_refused_before_costs_no_allowance(world: Worlds) -> None:
    one = world(toml=limited(by="tool", calls_per_minute=1))
    for _ in range(3):
        assert one.call("shop.get_order", offered_digest="sha256:old").code is Code.CONFLICT
    assert one.call("shop.get_order").ok


def test_limits_say_nothing_of_tools_out_of_reach(world: Worlds) -> None:
    hidden = '[[tools]]\nmatch = "shop.list_orders"\nrequired_scopes = ["lists"]\n'
    one = world(toml=limited(by="tool", calls_per_minute=1) + hidden)
    insider = caller(scopes=["lists"])
    assert [one.call("shop.list_orders", caller=insider).code for _ in range(2)] == [Code.OK, Code.RATE_LIMITED]
    told = {repr(one.call(tool_id, caller=caller()).verdict.message) for tool_id in ("shop.list_orders", "shop.none")}
    assert len(told) == 1
    assert one.call("shop.list_orders", caller=caller()).code is Code.NOT_AVAILABLE


async def test_places_for_calls_at_once_are_given_back(tmp_path: Path) -> None:
    may_answer, arrived = asyncio.Event(), asyncio.Event()

    async def slow(name: str, arguments: JsonObject) -> ToolResult:
        arrived.set()
        await may_answer.wait()
        return await says_done(name, arguments)

    toml = limited(by="server", concurrent=1)
    one = await asyncio.to_thread(World, tmp_path, {"shop": SHOP}, toml=toml, handler=slow)
    first = asyncio.create_task(one.crib.call("shop.get_order", {}))
    await arrived.wait()
    refused = await one.crib.call("shop.list_orders", {})
    assert (refused.code, refused.verdict.check) == (Code.RATE_LIMITED, "concurrent")
    may_answer.set()
    assert (await first).ok
    assert (await one.crib.call("shop.list_orders", {})).ok
    await one.crib.aclose()


@pytest.mark.parametrize("how", ["cancelled", "not recorded", "not open"])
async def test_a_call_gives_its_place_back_whatever_becomes_of_it(
    tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrived = asyncio.Event()
    ends = {"well": False}

    async def answer(name: str, arguments: JsonObject) -> ToolResult:
        arrived.set()
        if not ends["well"]:
            await asyncio.Event().wait()
        return await says_done(name, arguments)

    one = await asyncio.to_thread(
        World, tmp_path, {"shop": SHOP}, toml=limited(by="caller", concurrent=1), handler=answer
    )
    with monkeypatch.context() as patch, contextlib.suppress(asyncio.CancelledError, StoreError):
        if how == "not recorded":

            def full(_self: SqliteStore, _trace: Any) -> None:
                raise StoreError("the disk is full")

            patch.setattr(SqliteStore, "put_trace", full)
        if how == "not open":

            async def fails() -> None:
                raise ConnectorError("no such program")

            patch.setattr(one.servers["shop"], "ready", fails)
        calling = asyncio.create_task(one.crib.call("shop.get_order", {}))
        if how == "cancelled":
            await arrived.wait()
            calling.cancel()
        await calling
    ends["well"] = True
    assert (await one.crib.call("shop.get_order", {})).ok
    await one.crib.aclose()


# --- circuits


class Clock:
    """Seconds that pass when a test says so."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def broken(one: World, *, failures: int = 2) -> Clock:
    """The shop fails as often as opens its circuit."""
    clock = Clock()
    one.crib._dispatch._circuits._clock = clock

    async def fails(_name: str, _arguments: JsonObject) -> ToolResult:
        return LOST

    one.servers["shop"]._handler = fails
    for _ in range(failures):
        assert one.call("shop.get_order").code is Code.UNAVAILABLE
    one.servers["shop"].calls.clear()
    return clock


CIRCUIT = f"{ONCE}[gate.circuit]\nfailures = 2\nreset_s = 30\n{READ}"


def test_a_server_that_keeps_failing_is_left_alone_and_tried_again_later(world: Worlds) -> None:
    one = world(toml=CIRCUIT)
    clock = broken(one)
    assert one.crib._dispatch.circuit_is_open("shop")
    refused = one.call("shop.list_orders")
    assert (refused.code, check_of(one, refused, Stage.EXECUTION)) == (Code.UNAVAILABLE, "circuit")
    assert one.servers["shop"].calls == []
    assert one.call("hub.get_issue").ok
    clock.now_s += 31
    assert one.call("shop.get_order").code is Code.UNAVAILABLE
    assert len(one.servers["shop"].calls) == 1, "one try"
    assert one.call("shop.get_order").code is Code.UNAVAILABLE
    assert len(one.servers["shop"].calls) == 1
    clock.now_s += 31
    one.servers["shop"]._handler = says_done
    assert [one.call("shop.get_order").code for _ in range(3)] == [Code.OK] * 3
    assert not one.crib._dispatch.circuit_is_open("shop")


def test_an_error_of_the_tool_opens_no_circuit(world: Worlds) -> None:
    async def errs(_name: str, _arguments: JsonObject) -> ToolResult:
        return FAILED

    one = world(toml=CIRCUIT, handler=errs)
    assert [one.call("shop.get_order").code for _ in range(5)] == [Code.TOOL_ERROR] * 5


def test_a_server_that_cannot_be_opened_is_not_opened_again_and_again(world: Worlds) -> None:
    one = world(toml=CIRCUIT)
    opened = []

    async def fails() -> None:
        opened.append(1)
        raise ConnectorError("no such program")

    one.servers["shop"].ready = fails  # type: ignore[method-assign]
    assert [one.call("shop.get_order").code for _ in range(5)] == [Code.UNAVAILABLE] * 5
    assert len(opened) == 2


def test_a_call_that_is_refused_after_the_session_opened_decides_nothing(world: Worlds) -> None:
    one = world(toml=CIRCUIT)
    clock = broken(one)
    clock.now_s += 31
    one.servers["shop"]._handler = says_done
    ready = one.servers["shop"].ready

    async def meanwhile() -> None:
        one.crib.reject(["shop.get_order"], reviewer="tests")

    one.servers["shop"].ready = meanwhile  # type: ignore[method-assign]
    assert one.call("shop.get_order").code is Code.NOT_AVAILABLE
    one.servers["shop"].ready = ready  # type: ignore[method-assign]
    assert one.call("shop.list_orders").ok, "the try was still to be had"


def test_a_tool_out_of_reach_is_not_available_whatever_its_server_does(world: Worlds) -> None:
    hidden = '[[tools]]\nmatch = "shop.list_orders"\nrequired_scopes = ["lists"]\n'
    one = world(toml=CIRCUIT + hidden)
    broken(one)
    told = [one.call(tool_id).verdict for tool_id in ("shop.list_orders", "shop.none")]
    assert {(verdict.code, verdict.message) for verdict in told} == {(Code.NOT_AVAILABLE, told[0].message)}


# --- credentials and health


def test_a_caller_without_a_credential_of_its_own_is_told_so_and_nothing_is_sent(
    world: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = world(toml=CIRCUIT)
    told = []
    one.crib._dispatch._sender.on_result = lambda tool, result: told.append((tool.tool_id, result.code))

    async def none(_server_id: str, _caller: Any = None) -> Code:
        return Code.NO_CREDENTIAL

    monkeypatch.setattr(one.crib._pool, "ready", none)
    done = [one.call("shop.get_order") for _ in range(3)]
    assert {d.code for d in done} == {Code.NO_CREDENTIAL}
    assert check_of(one, done[0], Stage.EXECUTION) == "credential"
    assert one.servers["shop"].calls == []
    assert not one.crib._dispatch.circuit_is_open("shop"), "it is not the server's fault"
    assert told == []


def test_every_request_is_told_for_the_tools_health_as_the_server_answered_it(world: Worlds) -> None:
    one = world(toml='[[tools]]\nmatch = "*"\nrisk = "write"\n')
    told = []
    one.crib._dispatch._sender.on_result = lambda tool, result: told.append((tool.tool_id, result.code))
    assert one.call("hub.get_issue").ok
    broken(one, failures=0)
    assert one.call("shop.get_order").code is Code.UNKNOWN_OUTCOME
    assert told == [("hub.get_issue", Code.OK), ("shop.get_order", Code.UNAVAILABLE)]
