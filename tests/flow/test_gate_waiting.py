"""What happens while a call waits: for an owner, an approver, an answer. It is judged by how things are then."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.flow.worlds import World, Worlds, caller, says_done, tool
from toolcrib import curation
from toolcrib.types import (
    ApprovalRequest,
    Channel,
    Code,
    Credential,
    JsonObject,
    Outcome,
    Revocation,
    RevokedKind,
    Stage,
    Tool,
    ToolResult,
)

TEXT = {"type": "string"}
SHOP = [
    tool("get_order", "Look up one order.", properties={"order_id": TEXT}),
    tool("issue_refund", "Refund one order.", properties={"order_id": TEXT}),
]
RISKS = '[[tools]]\nmatch = "*"\nrisk = "read"\n[[tools]]\nmatch = "shop.issue_refund"\nrisk = "destructive"\n'
ONE, REFUND, GET = {"order_id": "1"}, "shop.issue_refund", "shop.get_order"
LOST = ToolResult(code=Code.UNAVAILABLE, message="ended the connection", reached_server=True)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def world(make_world: Worlds) -> Worlds:
    return lambda **more: make_world({"shop": SHOP}, **{"toml": RISKS, **more})


def at(seconds: int) -> str:
    return (NOON + timedelta(seconds=seconds)).isoformat(timespec="microseconds")


def granting(one: World) -> Any:
    """A hook that grants each request at once."""

    async def grant(request: ApprovalRequest, _tool: Tool) -> None:
        one.crib.store.decide_approval(request.approval_id, granted=True, by="boss", now=curation.now())

    return grant


async def test_a_write_whose_approval_took_longer_than_its_window_is_still_sent_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0]
    monkeypatch.setattr(curation, "now", lambda: at(clock[0]))
    arrived, may_answer = asyncio.Event(), asyncio.Event()

    async def slow(name: str, arguments: JsonObject) -> ToolResult:
        arrived.set()
        await may_answer.wait()
        return await says_done(name, arguments)

    one = await asyncio.to_thread(World, tmp_path, {"shop": SHOP}, toml=RISKS, handler=slow)

    async def after_two_minutes(request: ApprovalRequest, asked: Tool) -> None:
        clock[0] += 119
        await granting(one)(request, asked)

    one.crib._dispatch._on_approval_requested = after_two_minutes
    first = asyncio.create_task(one.crib.call(REFUND, ONE, channel=Channel.HTTP))
    await asyncio.wait_for(arrived.wait(), timeout=10)
    clock[0] += 2
    second = await one.crib.call(REFUND, ONE, channel=Channel.HTTP)
    may_answer.set()
    assert ((await first).code, second.code) == (Code.OK, Code.DUPLICATE)
    assert len(one.servers["shop"].calls) == 1
    await one.crib.aclose()


async def test_the_same_call_while_the_first_waits_for_an_approver_waits_for_the_same_request(tmp_path: Path) -> None:
    one = await asyncio.to_thread(World, tmp_path, {"shop": SHOP}, toml=RISKS)
    asked, decide = asyncio.Event(), asyncio.Event()

    async def hook(request: ApprovalRequest, tool_asked: Tool) -> None:
        asked.set()
        await decide.wait()
        await granting(one)(request, tool_asked)

    one.crib._dispatch._on_approval_requested = hook
    first = asyncio.create_task(one.crib.call(REFUND, ONE))
    await asked.wait()
    second = await one.crib.call(REFUND, ONE)
    assert second.code is Code.NEEDS_APPROVAL
    assert [second.verdict.approval_id] == [request.approval_id for request in one.crib.approvals()]
    decide.set()
    assert (await first).ok
    await one.crib.aclose()


def test_what_an_approver_refused_is_not_asked_again_until_the_refusal_expires(
    world: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = world(toml="[gate]\napproval_ttl_s = 60\n" + RISKS)
    told: list[str] = []

    async def hook(request: ApprovalRequest, _tool: Tool) -> None:
        told.append(request.approval_id)

    one.crib._dispatch._on_approval_requested = hook
    for now, n_told in (("12:00:00", 1), ("12:00:30", 1), ("12:01:01", 2)):
        monkeypatch.setattr(curation, "now", lambda now=now: f"2026-03-01T{now}.000000+00:00")
        done = one.call(REFUND, ONE)
        assert (done.code, len(told)) == (Code.NEEDS_APPROVAL, n_told)
        if now == "12:00:00":
            one.crib.store.decide_approval(told[0], granted=False, by="boss", now=curation.now())
        if now == "12:00:30":
            assert "refused" in done.message and done.verdict.approval_id == told[0]
            gate = one.crib.trace(done.trace_id).record(Stage.GATE)
            assert gate is not None and gate.operator_view["message"] == done.message
    assert one.servers["shop"].calls == []


def test_a_rule_added_while_a_read_is_under_way_holds_for_its_second_attempt(world: Worlds) -> None:
    n_sent = 0

    async def answer(name: str, arguments: JsonObject) -> ToolResult:
        nonlocal n_sent
        n_sent += 1
        config = one.folder / "toolcrib.toml"
        rule = '[[resources]]\ntype = "Order"\ntools = "shop.get_order"\nargument = "/order_id"\n'
        if n_sent == 1:
            config.write_text(config.read_text(encoding="utf-8") + rule, encoding="utf-8")
            return LOST
        return await says_done(name, arguments)

    one = world(handler=answer)
    assert (one.call(GET, ONE).code, n_sent) == (Code.UNAVAILABLE, 1)
    assert one.call(GET, ONE).code is Code.NOT_AVAILABLE


def test_a_caller_revoked_while_its_read_is_under_way_gets_no_second_attempt_and_the_first_stays_on_record(
    world: Worlds,
) -> None:
    async def answer(_name: str, _arguments: JsonObject) -> ToolResult:
        revoked = Revocation(kind=RevokedKind.SUBJECT, value="t/ann", at=curation.now(), by="ops")
        one.crib.store.revoke(revoked)
        return LOST

    one = world(handler=answer)
    done = one.call(GET, ONE, caller=caller(tenant="t", credential=Credential(kind="file")))
    assert (done.code, len(one.servers["shop"].calls)) == (Code.UNAVAILABLE, 1)
    execution = one.crib.trace(done.trace_id).record(Stage.EXECUTION)
    assert execution is not None and execution.operator_view["reached_server"]
    gone = one.crib.select("look up an order", caller=caller(tenant="t", credential=Credential(kind="file")))
    assert (gone.outcome, gone.tools) == (Outcome.UNAVAILABLE, ())
    explained = one.crib.explain(gone.trace_id, tool_id=GET)
    assert (explained.lost_at, explained.code) == (Stage.ELIGIBILITY, "unknown_caller")


@pytest.mark.parametrize("same_key", [True, False])
def test_an_idempotency_key_counts_for_tools_nobody_described_and_where_the_guard_is_off(
    world: Worlds, same_key: bool
) -> None:
    for toml in ("", "[gate]\nduplicate_window_s = 0\n" + RISKS.replace("destructive", "write")):
        one = world(toml=toml)
        keys = ["k", "k" if same_key else "l"]
        codes = [one.call(REFUND, ONE, idempotency_key=key).code for key in keys]
        assert codes == [Code.OK, Code.DUPLICATE if same_key else Code.OK]


def test_an_idempotency_key_is_remembered_for_longer_than_equal_arguments(
    world: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = world(toml=RISKS.replace("destructive", "write"))
    for now, key, code in (
        ("01T12:00:00", "k", Code.OK),
        ("01T12:05:00", "k", Code.DUPLICATE),
        ("01T12:05:00", "", Code.OK),
        ("02T12:02:00", "k", Code.OK),
    ):
        monkeypatch.setattr(curation, "now", lambda now=now: f"2026-03-{now}.000000+00:00")
        assert one.call(REFUND, ONE, idempotency_key=key).code is code, (now, key)


def test_what_a_server_refuses_of_one_caller_closes_it_for_nobody_and_may_be_sent_again(world: Worlds) -> None:
    async def answer(name: str, arguments: JsonObject) -> ToolResult:
        if arguments["order_id"] == "bad":
            return ToolResult(code=Code.TOOL_ERROR, message="HTTP 422", reached_server=True, refused=True)
        return await says_done(name, arguments)

    one = world(toml="[gate.circuit]\nfailures = 1\n" + RISKS.replace("destructive", "write"), handler=answer)
    for _ in range(3):
        assert one.call(REFUND, {"order_id": "bad"}).code is Code.TOOL_ERROR
    assert one.call(GET, ONE, caller=caller(subject="ben")).ok
    assert one.crib._health.report([GET, REFUND]) == {}


def test_a_read_that_fails_twice_is_one_failure(world: Worlds) -> None:
    async def answer(_name: str, _arguments: JsonObject) -> ToolResult:
        return LOST

    one = world(toml="[gate.circuit]\nfailures = 3\n" + RISKS, handler=answer)
    for n_sent in (2, 4, 5):  # the third failure opens the circuit, so its second attempt is not made
        assert not one.crib._dispatch.circuit_is_open("shop")
        assert one.call(GET, ONE).code is Code.UNAVAILABLE
        assert len(one.servers["shop"].calls) == n_sent
    assert one.crib._dispatch.circuit_is_open("shop")


def test_a_result_nested_without_end_is_an_error_and_not_a_crash(world: Worlds) -> None:
    deep: Any = []
    for _ in range(5_000):
        deep = [deep]

    async def answer(_name: str, _arguments: JsonObject) -> ToolResult:
        return ToolResult(code=Code.OK, structured=deep, raw={"structuredContent": deep}, reached_server=True)

    done = world(handler=answer).call(GET, ONE)
    assert done.code is Code.TOOL_ERROR and "nested" in done.message


@pytest.mark.parametrize(("text", "fits"), [("价" * 300, True), ("价" * 400, False)])
def test_the_size_of_a_result_is_that_of_its_text_in_utf_8(world: Worlds, text: str, fits: bool) -> None:
    async def answer(_name: str, _arguments: JsonObject) -> ToolResult:
        block = {"type": "text", "text": text}
        return ToolResult(code=Code.OK, content=(block,), raw={"content": [block]}, reached_server=True)

    one = world(toml="[gate]\nmax_result_bytes = 1000\n" + RISKS, handler=answer)
    assert (one.call(GET, ONE).code is Code.OK) is fits


def changed(one: World, *, description: str) -> None:
    """The server lists another definition of the refund tool, and a reviewer approves it."""
    one.write("shop", [SHOP[0], {**SHOP[1], "description": description}])


async def test_an_approval_granted_for_one_definition_does_not_run_another(tmp_path: Path) -> None:
    one = await asyncio.to_thread(World, tmp_path, {"shop": SHOP}, toml=RISKS)

    async def meanwhile(request: ApprovalRequest, asked: Tool) -> None:
        changed(one, description="Refund everything.")
        await one.crib.refresh()
        one.crib.approve(None, reviewer="tests")
        await granting(one)(request, asked)

    one.crib._dispatch._on_approval_requested = meanwhile
    done = await one.crib.call(REFUND, ONE, channel=Channel.HTTP)
    assert (done.code, done.verdict.check) == (Code.CONFLICT, "overtaken")
    assert one.servers["shop"].calls == []
    await one.crib.aclose()


@pytest.mark.parametrize("change", ["risk", "rule"])
def test_what_changes_while_the_trace_is_written_stops_the_request(
    world: Worlds, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    one = world(toml=RISKS.replace('"destructive"', '"read"'))
    config, put = one.folder / "toolcrib.toml", one.crib.store.put_trace
    row = {
        "risk": '[[tools]]\nmatch = "shop.issue_refund"\nrisk = "write"\n',
        "rule": '[[resources]]\ntype = "Order"\ntools = "shop.*"\nargument = "/order_id"\n',
    }[change]

    def meanwhile(trace: Any) -> None:
        text = config.read_text(encoding="utf-8")
        config.write_text(text if row in text else text + row, encoding="utf-8")
        put(trace)

    monkeypatch.setattr(one.crib.store, "put_trace", meanwhile)
    done = one.call(REFUND, ONE)
    assert (done.code, done.verdict.check) == (Code.CONFLICT, "overtaken")
    assert one.servers["shop"].calls == []


def test_an_approval_used_by_another_call_and_not_needed_any_more_is_no_success(
    world: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = world()
    asked = one.call(REFUND, ONE)
    one.crib.store.decide_approval(asked.verdict.approval_id, granted=True, by="boss", now=curation.now())

    def used(_approval_id: str, *, now: str) -> bool:
        config = one.folder / "toolcrib.toml"
        config.write_text(config.read_text(encoding="utf-8").replace("destructive", "write"), encoding="utf-8")
        return False

    monkeypatch.setattr(one.crib.store, "consume_approval", used)
    done = one.call(REFUND, ONE)
    assert (done.code, done.ok, done.result) == (Code.CONFLICT, False, None)
    assert one.servers["shop"].calls == []


def test_a_caller_revoked_while_the_trace_is_written_is_on_record_as_refused_and_not_as_sent(
    world: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = world()
    put = one.crib.store.put_trace

    def meanwhile(trace: Any) -> None:
        put(trace)
        one.crib.store.revoke(Revocation(kind=RevokedKind.SUBJECT, value="t/ann", at=curation.now(), by="ops"))

    monkeypatch.setattr(one.crib.store, "put_trace", meanwhile)
    done = one.call(GET, ONE, caller=caller(tenant="t", credential=Credential(kind="file")))
    trace = one.crib.trace(done.trace_id)
    assert (done.code, trace.record(Stage.EXECUTION)) == (Code.UNAVAILABLE, None)
    assert one.crib.explain(done.trace_id, tool_id=GET).code == "unknown_caller"
    assert one.servers["shop"].calls == []


LOOKUP = (
    '[[resources]]\ntype = "Order"\ntools = "shop.issue_refund"\nargument = "/order_id"\n'
    'lookup_tool = "shop.get_order"\ntenant = "/tenant"\n'
)


def test_a_lookup_tool_that_may_write_is_never_asked(world: Worlds) -> None:
    one = world(toml=LOOKUP + '[[tools]]\nmatch = "*"\nrisk = "write"\n')
    done = one.call(REFUND, ONE, caller=caller(tenant="acme"))
    assert (done.code, done.verdict.check) == (Code.NOT_AVAILABLE, "resource")
    assert one.servers["shop"].calls == []


def test_an_owner_that_cannot_be_asked_is_no_word_about_the_resource(world: Worlds) -> None:
    async def answer(_name: str, _arguments: JsonObject) -> ToolResult:
        return LOST

    done = world(toml=LOOKUP + RISKS, handler=answer).call(REFUND, ONE, caller=caller(tenant="acme"))
    assert (done.code, done.verdict.check) == (Code.UNAVAILABLE, "resource")
