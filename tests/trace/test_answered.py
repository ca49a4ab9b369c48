"""Which request a call belongs to: one rule for learning, drafts from traces and reports of shadow mode."""

from __future__ import annotations

import pytest

from toolcrib.trace.answered import Following, answered_call, holder_of, offered_in
from toolcrib.types import Channel, Code, Stage, StageRecord, Trace

ANN, BOB = ("acme", "ann", ""), ("acme", "bob", "")
A, B = ("shop.a", "1"), ("shop.b", "1")


def at(minute: int) -> str:
    return f"2026-11-01T{minute // 60:02}:{minute % 60:02}:00+00:00"


def followed(*requests: tuple[int, tuple[str, str, str], tuple[tuple[str, str], ...]]) -> Following[str]:
    """Requests by minute, caller and what was offered; named by their place."""
    following: Following[str] = Following()
    for place, (minute, holder, offered) in enumerate(requests):
        following.asked(holder, at=at(minute), offered=frozenset(offered), request=f"request {place}")
    return following


def test_a_call_belongs_to_the_newest_request_that_offered_its_tool() -> None:
    following = followed((0, ANN, (A,)), (1, ANN, (A, B)), (2, ANN, (B,)))
    assert following.called(ANN, at=at(3), tool=A) == "request 1"
    assert following.called(ANN, at=at(3), tool=B) == "request 2"


@pytest.mark.parametrize(
    ("holder", "minute", "tool"),
    [
        (BOB, 3, A),
        (("other", "ann", ""), 3, A),
        (("acme", "ann", "boss"), 3, A),
        (ANN, 61, A),
        (ANN, 3, ("shop.a", "2")),
        (ANN, 3, ("shop.c", "1")),
    ],
    ids=["another caller", "another tenant", "for somebody else", "too late", "another definition", "not offered"],
)
def test_a_call_that_no_request_offered_belongs_to_none(
    holder: tuple[str, str, str], minute: int, tool: tuple[str, str]
) -> None:
    assert followed((0, ANN, (A,))).called(holder, at=at(minute), tool=tool) is None


def test_an_hour_later_a_call_still_belongs_to_its_request() -> None:
    assert followed((0, ANN, (A,))).called(ANN, at=at(60), tool=A) == "request 0"


def test_the_newest_request_is_told_whatever_it_offered() -> None:
    following = followed((0, ANN, (A,)), (1, ANN, ()))
    assert (following.newest(ANN, at=at(2)), following.newest(BOB, at=at(2))) == ("request 1", None)
    assert following.newest(ANN, at=at(62)) is None


def call(gate: Code, done: Code | None) -> Trace:
    view = {"code": gate, "tool_id": "shop.a", "digest": "1"}
    records = [StageRecord(stage=Stage.GATE, operator_view=view)]
    if done is not None:
        records.append(StageRecord(stage=Stage.EXECUTION, operator_view={"code": done}))
    return Trace(
        trace_id="t", kind="call", at=at(0), subject="ann", on_behalf_of="", tenant="acme",
        channel=Channel.LIBRARY, records=tuple(records),
    )  # fmt: skip


def test_only_a_call_that_was_let_through_and_answered_counts() -> None:
    assert answered_call(call(Code.OK, Code.OK)) == A
    assert holder_of(call(Code.OK, Code.OK)) == ANN
    assert answered_call(call(Code.NOT_AVAILABLE, None)) is None
    assert answered_call(call(Code.OK, None)) is None
    assert answered_call(call(Code.OK, Code.TIMEOUT)) is None


def test_what_a_selection_offered_is_read_with_its_digests() -> None:
    assert offered_in({"tools": [{"tool_id": "shop.a", "digest": "1"}]}) == {A}
    assert offered_in({}) == frozenset()
