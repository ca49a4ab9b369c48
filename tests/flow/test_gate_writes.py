"""Writes on the whole road: none is sent twice, none is repeated unheard, and only what was offered may be called."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.flow.worlds import World, Worlds, caller, says_done, tool
from toolcrib import curation
from toolcrib.errors import ConnectorError
from toolcrib.types import Code, JsonObject, Stage, ToolResult

TEXT = {"type": "string"}
SHOP = [
    tool("get_order", "Look up one order.", properties={"order_id": TEXT}),
    tool("issue_refund", "Refund one order.", properties={"order_id": TEXT}),
]
RISKS = '[[tools]]\nmatch = "*"\nrisk = "read"\n[[tools]]\nmatch = "shop.issue_refund"\nrisk = "write"\n'
DESTRUCTIVE = RISKS.replace("write", "destructive")
ONE, TWO = {"order_id": "1"}, {"order_id": "2"}
REFUND, GET = "shop.issue_refund", "shop.get_order"


@pytest.fixture
def world(make_world: Worlds) -> Worlds:
    return lambda **more: make_world({"shop": SHOP}, **{"toml": RISKS, **more})


def sent(one: World) -> list[str]:
    return [name for name, _ in one.servers["shop"].calls]


def grant(one: World, approval_id: str) -> None:
    assert one.crib.store.decide_approval(approval_id, granted=True, by="boss", now=curation.now())


def answering(*results: ToolResult) -> Any:
    """A server that gives these results one after the other, and then answers well."""
    left = list(results)

    async def answer(name: str, arguments: JsonObject) -> ToolResult:
        return left.pop(0) if left else await says_done(name, arguments)

    return answer


LOST = ToolResult(code=Code.UNAVAILABLE, message="ended the connection", reached_server=True)
LATE = ToolResult(code=Code.TIMEOUT, message="no answer", reached_server=True)
UNSENT = ToolResult(code=Code.UNAVAILABLE, message="could not be reached", reached_server=False)
BUSY = ToolResult(code=Code.RATE_LIMITED, message="HTTP 429", reached_server=True, refused=True)
FAILED = ToolResult(code=Code.TOOL_ERROR, message="no such order", reached_server=True)


# --- duplicates


def test_the_same_write_twice_is_sent_once_and_the_second_is_told_of_the_first(world: Worlds) -> None:
    one = world()
    first, second = one.call(REFUND, ONE), one.call(REFUND, ONE)
    assert (first.code, second.code) == (Code.OK, Code.DUPLICATE)
    assert second.verdict.earlier_trace == first.trace_id
    assert second.result is None
    gate = one.crib.trace(second.trace_id).record(Stage.GATE)
    assert gate is not None
    assert (gate.operator_view["check"], gate.caller_view["earlier_trace"]) == ("duplicate", first.trace_id)
    assert one.call(REFUND, TWO).ok
    assert one.call(REFUND, ONE, caller=caller(subject="bo")).ok
    assert sent(one) == ["issue_refund"] * 3


def test_reads_may_be_repeated(world: Worlds) -> None:
    one = world()
    assert [one.call(GET, ONE).code for _ in range(3)] == [Code.OK] * 3


def test_an_idempotency_key_says_whether_a_write_is_meant_again(world: Worlds) -> None:
    one = world()
    assert one.call(REFUND, ONE).ok
    assert one.call(REFUND, ONE, idempotency_key="k1").ok
    assert one.call(REFUND, ONE, idempotency_key="k1").code is Code.DUPLICATE
    assert one.call(REFUND, TWO, idempotency_key="k1").code is Code.DUPLICATE, "whatever the arguments"
    assert one.call(REFUND, TWO, idempotency_key="k2").ok
    assert one.call(REFUND, TWO).code is Code.DUPLICATE, "the call before had a key, and was this write"
    assert len(sent(one)) == 3


def test_the_window_ends_and_may_be_switched_off(world: Worlds, monkeypatch: pytest.MonkeyPatch) -> None:
    one = world(toml="[gate]\nduplicate_window_s = 30\n" + RISKS)
    for now, code in (("12:00:00", Code.OK), ("12:00:29", Code.DUPLICATE), ("12:00:31", Code.OK)):
        monkeypatch.setattr(curation, "now", lambda now=now: f"2026-03-01T{now}.000000+00:00")
        assert one.call(REFUND, ONE).code is code
    off = world(toml="[gate]\nduplicate_window_s = 0\n" + RISKS)
    assert [off.call(REFUND, ONE).code for _ in range(3)] == [Code.OK] * 3


async def test_of_two_same_writes_at_once_one_is_sent(tmp_path: Path) -> None:
    may_answer = asyncio.Event()

    async def slow(name: str, arguments: JsonObject) -> ToolResult:
        await may_answer.wait()
        return await says_done(name, arguments)

    one = await asyncio.to_thread(World, tmp_path, {"shop": SHOP}, toml=RISKS, handler=slow)
    calling = [asyncio.create_task(one.crib.call(REFUND, ONE)) for _ in range(5)]
    early = [await task for task in itertools.islice(asyncio.as_completed(calling), 4)]
    may_answer.set()
    codes = sorted([done.code for done in early] + [(await task).code for task in calling if not task.done()])
    assert codes == [Code.DUPLICATE] * 4 + [Code.OK]
    assert sent(one) == ["issue_refund"]
    await one.crib.aclose()


@pytest.mark.parametrize(
    ("result", "code"), [(UNSENT, Code.UNAVAILABLE), (BUSY, Code.RATE_LIMITED)], ids=["unsent", "turned away"]
)
def test_a_write_that_had_no_effect_may_be_sent_again(world: Worlds, result: ToolResult, code: Code) -> None:
    one = world(handler=answering(result))
    assert one.call(REFUND, ONE).code is code
    assert one.call(REFUND, ONE).ok


def test_a_write_that_was_refused_or_could_not_be_opened_is_not_remembered(world: Worlds) -> None:
    one = world()
    server = one.servers["shop"]

    async def fails() -> None:
        raise ConnectorError("no such program")

    server.ready, ready = fails, server.ready  # type: ignore[method-assign]
    assert one.call(REFUND, ONE).code is Code.UNAVAILABLE
    server.ready = ready  # type: ignore[method-assign]
    assert one.call(REFUND, {"order_id": 1}).code is Code.INVALID_ARGUMENTS
    assert one.call(REFUND, ONE).ok


async def test_a_write_cut_off_on_its_way_stays_reserved(tmp_path: Path) -> None:
    arrived = asyncio.Event()

    async def never(_name: str, _arguments: JsonObject) -> ToolResult:
        arrived.set()
        await asyncio.Event().wait()
        raise AssertionError

    one = await asyncio.to_thread(World, tmp_path, {"shop": SHOP}, toml=RISKS, handler=never)
    calling = asyncio.create_task(one.crib.call(REFUND, ONE))
    await arrived.wait()
    calling.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await calling
    assert (await one.crib.call(REFUND, ONE)).code is Code.DUPLICATE
    await one.crib.aclose()


def test_a_duplicate_uses_no_approval_up_and_asks_for_none(world: Worlds) -> None:
    one = world(toml=DESTRUCTIVE)
    grant(one, one.call(REFUND, ONE).verdict.approval_id)
    assert one.call(REFUND, ONE).ok
    n_requests = len(one.crib.store.approvals())
    assert one.call(REFUND, ONE).code is Code.DUPLICATE
    assert len(one.crib.store.approvals()) == n_requests
    asked = one.call(REFUND, ONE, idempotency_key="again")
    assert asked.code is Code.NEEDS_APPROVAL
    grant(one, asked.verdict.approval_id)
    assert one.call(REFUND, ONE).code is Code.DUPLICATE
    assert one.call(REFUND, ONE, idempotency_key="again").ok, "the approval is still there"
    assert len(sent(one)) == 2


# --- what is not known


@pytest.mark.parametrize("result", [LOST, LATE], ids=["lost", "late"])
def test_a_write_without_an_answer_has_an_unknown_outcome_and_is_not_sent_again(
    world: Worlds, result: ToolResult
) -> None:
    one = world(handler=answering(result))
    done = one.call(REFUND, ONE)
    assert done.code is Code.UNKNOWN_OUTCOME
    assert done.result is not None
    assert done.result.reached_server
    assert one.call(REFUND, ONE).code is Code.DUPLICATE
    assert sent(one) == ["issue_refund"]
    execution = one.crib.trace(done.trace_id).record(Stage.EXECUTION)
    assert execution is not None
    assert (execution.operator_view["code"], execution.operator_view["attempts"]) == ("unknown_outcome", 1)


# --- reads


@pytest.mark.parametrize("result", [LOST, LATE, UNSENT], ids=["lost", "late", "unsent"])
def test_a_read_that_failed_on_its_way_is_sent_once_more(world: Worlds, result: ToolResult) -> None:
    one = world(handler=answering(result))
    done = one.call(GET, ONE)
    assert done.ok
    assert sent(one) == ["get_order"] * 2
    execution = one.crib.trace(done.trace_id).record(Stage.EXECUTION)
    assert execution is not None and execution.operator_view["attempts"] == 2


def test_a_read_is_sent_twice_at_most_and_keeps_its_code(world: Worlds) -> None:
    one = world(handler=answering(LOST, LATE, LOST))
    assert one.call(GET, ONE).code is Code.TIMEOUT
    assert len(sent(one)) == 2


@pytest.mark.parametrize("result", [FAILED, BUSY], ids=["tool error", "too many"])
def test_an_answer_is_an_answer_even_if_it_is_an_error(world: Worlds, result: ToolResult) -> None:
    one = world(handler=answering(result))
    assert one.call(GET, ONE).code is result.code
    assert len(sent(one)) == 1


def test_reads_are_not_sent_again_where_the_operator_does_not_want_it(world: Worlds) -> None:
    one = world(handler=answering(LOST), toml="[gate]\nretry_reads = false\n" + RISKS)
    assert one.call(GET, ONE).code is Code.UNAVAILABLE
    assert len(sent(one)) == 1


def test_what_was_taken_away_after_the_first_attempt_has_no_second(world: Worlds) -> None:
    one = world(toml=RISKS)

    async def meanwhile(_name: str, _arguments: JsonObject) -> ToolResult:
        one.crib.reject([GET], reviewer="tests")
        return LOST

    one.servers["shop"]._handler = meanwhile
    assert one.call(GET, ONE).code is Code.UNAVAILABLE
    assert len(sent(one)) == 1


def test_both_attempts_have_one_deadline(world: Worlds, monkeypatch: pytest.MonkeyPatch) -> None:
    passed = {"s": 0.0}
    monkeypatch.setattr("toolcrib.dispatch.time", SimpleNamespace(perf_counter=lambda: passed["s"]))

    async def takes_all_the_time(_name: str, _arguments: JsonObject) -> ToolResult:
        passed["s"] += 61.0
        return LATE

    one = world(handler=takes_all_the_time)
    assert one.call(GET, ONE).code is Code.TIMEOUT
    assert len(sent(one)) == 1


# --- approvals that come at once


def test_an_approval_that_comes_while_it_is_asked_for_lets_the_call_go_on(world: Worlds) -> None:
    one = world(toml=DESTRUCTIVE)
    told = []

    async def decides(request: Any, tool: Any) -> None:
        told.append((request.tool_id, request.channel, tool.tool_id, bool(request.policies)))
        grant(one, request.approval_id)

    one.crib._dispatch._on_approval_requested = decides
    assert one.call(REFUND, ONE).ok
    assert told == [(REFUND, "library", REFUND, True)]
    assert [a.state for a in one.crib.store.approvals()] == ["used"]


def test_a_request_is_told_once_and_a_denial_leaves_the_call_unsent(world: Worlds) -> None:
    one = world(toml=DESTRUCTIVE)
    told = []

    async def notes(request: Any, _tool: Any) -> None:
        told.append(request.approval_id)

    one.crib._dispatch._on_approval_requested = notes
    asked = [one.call(REFUND, ONE) for _ in range(3)]
    assert told == [asked[0].verdict.approval_id]
    assert {done.verdict.approval_id for done in asked} == set(told)
    one.crib.store.decide_approval(told[0], granted=False, by="boss", now=curation.now())
    assert one.call(REFUND, ONE).code is Code.NEEDS_APPROVAL
    assert sent(one) == []


def test_what_was_taken_away_while_an_approver_decided_is_not_sent(world: Worlds) -> None:
    one = world(toml=DESTRUCTIVE)

    async def decides(request: Any, _tool: Any) -> None:
        grant(one, request.approval_id)
        one.crib.reject([REFUND], reviewer="tests")

    one.crib._dispatch._on_approval_requested = decides
    assert one.call(REFUND, ONE).code is Code.NOT_AVAILABLE
    assert sent(one) == []
    assert [a.state for a in one.crib.store.approvals()] == ["granted"]


# --- what was offered

OFFERED = "[gate]\nrequire_offer = true\noffer_ttl_s = 600\n" + RISKS


def test_only_what_was_offered_to_this_caller_may_be_called(world: Worlds) -> None:
    one = world(toml=OFFERED)
    refused = one.call(GET, ONE)
    assert (refused.code, refused.verdict.check) == (Code.NOT_OFFERED, "offered")
    assert GET in [s.tool.tool_id for s in one.crib.select("look up one order").tools]
    assert one.call(GET, ONE).ok
    assert one.call(GET, ONE, caller=caller(subject="bo")).code is Code.NOT_OFFERED


def test_an_offer_counts_for_a_while(world: Worlds, monkeypatch: pytest.MonkeyPatch) -> None:
    one = world(toml=OFFERED)
    monkeypatch.setattr(curation, "now", lambda: "2026-03-01T12:00:00.000000+00:00")
    one.crib.select("look up one order")
    for now, code in (("12:09:59", Code.OK), ("12:10:01", Code.NOT_OFFERED)):
        monkeypatch.setattr(curation, "now", lambda now=now: f"2026-03-01T{now}.000000+00:00")
        assert one.call(GET, ONE).code is code


def test_another_definition_was_not_offered(world: Worlds) -> None:
    one = world(toml=OFFERED)
    one.crib.select("look up one order")
    one.write("shop", [tool("get_order", "Look up one order, differently.", properties={"order_id": TEXT}), SHOP[1]])
    one.refresh()
    one.crib.approve(None, reviewer="tests")
    assert one.call(GET, ONE).code is Code.NOT_OFFERED


def test_a_tool_out_of_reach_is_not_available_offered_or_not(world: Worlds) -> None:
    hidden = RISKS + '[[tools]]\nmatch = "shop.issue_refund"\nrequired_scopes = ["money"]\n'
    told = set()
    for toml in (hidden, "[gate]\nrequire_offer = true\n" + hidden):
        one = world(toml=toml)
        for tool_id in (REFUND, "shop.no_such_tool"):
            done = one.call(tool_id, ONE)
            told.add((done.code, done.message))
    assert len(told) == 1
    assert told.pop()[0] is Code.NOT_AVAILABLE
