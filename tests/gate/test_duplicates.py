from __future__ import annotations

import logging

import pytest

from toolcrib.errors import StoreError
from toolcrib.gate.duplicates import Reservation, earlier_write, guarded, may_write, reserve, write_key
from toolcrib.types import Caller, CallerKind, Risk, RiskSource

from .making import caller, tool

ANN = caller("ann")
REFUND = tool(risk=Risk.WRITE, risk_source=RiskSource.OPERATOR)
ORDER = {"order_id": "A-1", "amount": 5}
NOON = "2026-03-01T12:00:00+00:00"


class Writes:
    """A store of reserved writes, as the words of `WriteStore` have it."""

    def __init__(self) -> None:
        self.held: dict[str, tuple[str, str]] = {}
        self.lost = False
        self.lose_after = 10**9

    def write_holder(self, key: str, *, at: str) -> str:
        holder, held_until = self.held.get(key, ("", ""))
        return holder if held_until > at else ""

    def reserve_write(self, key: str, *, at: str, until: str, trace_id: str) -> str:
        self._check()
        self.lose_after -= 1
        if self.lose_after < 0:
            raise StoreError("the store is lost for a moment")
        holder, held_until = self.held.get(key, ("", ""))
        if holder and holder != trace_id and held_until > at:
            return holder
        self.held[key] = (trace_id, until)
        return ""

    def release_write(self, key: str, *, trace_id: str) -> None:
        self._check()
        if self.held.get(key, ("",))[0] == trace_id:
            del self.held[key]

    def _check(self) -> None:
        if self.lost:
            raise StoreError("the store is lost")


def reserved(writes: Writes, trace_id: str = "t1", *, now: str = NOON, who: Caller = ANN, **more):
    return reserve(writes, keys(who, **more), now=now, may_take_s=60, trace_id=trace_id)


def keys(who: Caller = ANN, **more):
    given = {"arguments": ORDER, "key": "", "what": REFUND, "window_s": 30, **more}
    return guarded(
        who,
        given["what"],
        given["arguments"],
        idempotency_key=given["key"],
        window_s=given["window_s"],
        key_window_s=3_600,
    )


@pytest.mark.parametrize(("risk", "guarded"), [(Risk.READ, False), (Risk.WRITE, True), (Risk.DESTRUCTIVE, True)])
def test_all_that_is_not_said_to_read_may_write(risk, guarded):
    assert may_write(tool(risk=risk)) is guarded
    assert may_write(tool()), "nobody said what it does"


@pytest.mark.parametrize(
    ("risk", "source", "counts"),
    [
        (Risk.DESTRUCTIVE, RiskSource.OPERATOR, True),
        (Risk.DESTRUCTIVE, RiskSource.ANNOTATIONS, True),
        (Risk.DESTRUCTIVE, RiskSource.UNKNOWN, False),
        (Risk.WRITE, RiskSource.OPERATOR, True),
        (Risk.WRITE, RiskSource.ANNOTATIONS, False),
        (Risk.READ, RiskSource.OPERATOR, False),
    ],
)
def test_without_a_key_what_the_operator_says_writes_and_what_is_called_destructive_counts_once(risk, source, counts):
    assert bool(keys(what=tool(risk=risk, risk_source=source))) is counts
    assert keys(what=tool(risk=risk, risk_source=source, repeatable=True)) == ()
    assert bool(keys(what=tool(risk=risk, risk_source=source), key="k")) is (risk is not Risk.READ)


def test_with_a_key_whatever_may_write_is_guarded_for_as_long_as_keys_are_whatever_the_window_is():
    unknown = tool()
    assert [held.window_s for held in keys(what=unknown, key="k")] == [3_600]
    assert [held.window_s for held in keys(key="k", window_s=0)] == [3_600]
    assert [held.window_s for held in keys(key="k")] == [3_600, 30]
    assert keys(window_s=0) == ()


def test_an_earlier_write_is_seen_without_being_held():
    writes = Writes()
    assert earlier_write(writes, keys(), now=NOON) == ""
    assert writes.held == {}
    reserved(writes, "t1")
    assert earlier_write(writes, keys(), now=NOON) == "t1"
    assert earlier_write(writes, keys(key="new"), now=NOON) == ""
    assert earlier_write(writes, (), now=NOON) == ""


def test_a_store_that_is_lost_between_two_keys_leaves_neither_held():
    writes = Writes()
    writes.lose_after = 1
    with pytest.raises(StoreError):
        reserved(writes, "t1", key="k")
    assert writes.held == {}


def test_the_same_call_in_other_words_is_the_same_write():
    same = write_key(ANN, REFUND, {"amount": 5.0, "order_id": "A-1"})
    assert write_key(ANN, REFUND, ORDER) == same
    assert write_key(ANN, tool(digest="sha256:new", risk=Risk.WRITE), ORDER) == same
    assert write_key(caller("ann", roles=frozenset({"boss"})), REFUND, ORDER) == same


@pytest.mark.parametrize(
    "key",
    [
        write_key(caller("bo"), REFUND, ORDER),
        write_key(caller("ann", tenant="globex"), REFUND, ORDER),
        write_key(caller("ann", kind=CallerKind.AGENT), REFUND, ORDER),
        write_key(caller("ann", on_behalf_of="bo"), REFUND, ORDER),
        write_key(ANN, tool("shop.other"), ORDER),
        write_key(ANN, REFUND, {**ORDER, "amount": "5"}),
        write_key(ANN, REFUND, {**ORDER, "note": None}),
        write_key(ANN, REFUND, ORDER, "k"),
    ],
    ids=["subject", "tenant", "kind", "for whom", "tool", "type", "null", "with a key"],
)
def test_another_value_anywhere_is_another_write(key):
    assert key != write_key(ANN, REFUND, ORDER)


def test_an_idempotency_key_decides_whatever_the_arguments_and_is_one_callers_and_one_tools():
    key = write_key(ANN, REFUND, ORDER, "k")
    assert write_key(ANN, REFUND, {"order_id": "B-2"}, "k") == key
    others = {
        write_key(ANN, REFUND, ORDER, "k2"),
        write_key(caller("bo"), REFUND, ORDER, "k"),
        write_key(ANN, tool("shop.other"), ORDER, "k"),
        write_key(ANN, REFUND, ORDER),
    }
    assert len(others | {key}) == 5


def test_arguments_cannot_be_made_to_look_like_a_key():
    assert write_key(ANN, REFUND, {}, 'jcs {"order_id":"A-1"}') != write_key(ANN, REFUND, {"order_id": "A-1"})


def test_whole_numbers_beyond_what_floats_hold_stay_apart():
    keys = {write_key(ANN, REFUND, {"n": 2**60 + n}) for n in range(3)}
    assert len(keys) == 3


def test_the_second_of_two_same_writes_is_told_of_the_first():
    writes = Writes()
    assert isinstance(reserved(writes, "t1"), Reservation)
    assert reserved(writes, "t2") == "t1"
    assert isinstance(reserved(writes, "t3", arguments={"order_id": "B-2"}), Reservation)


def test_a_write_that_never_left_is_given_back():
    writes = Writes()
    reserved(writes, "t1", key="k").close(now=NOON)
    assert writes.held == {}
    gone = reserved(writes, "t2")
    gone.sent()
    gone.turned_away()
    gone.close(now=NOON)
    assert writes.held == {}


def test_a_write_that_may_have_left_stays_reserved_for_the_window_after_its_end():
    writes = Writes()
    first = reserved(writes, "t1")
    assert [until for _, until in writes.held.values()] == ["2026-03-01T12:01:30.000000+00:00"]
    first.sent()
    first.close(now="2026-03-01T12:00:10+00:00")
    assert reserved(writes, "t2", now="2026-03-01T12:00:39+00:00") == "t1"
    assert isinstance(reserved(writes, "t3", now="2026-03-01T12:00:41+00:00"), Reservation)


def test_a_call_that_is_never_heard_of_again_stays_reserved_for_as_long_as_it_may_take_and_the_window():
    writes = Writes()
    reserved(writes, "t1").sent()
    assert reserved(writes, "t2", now="2026-03-01T12:01:29+00:00") == "t1"
    assert isinstance(reserved(writes, "t3", now="2026-03-01T12:01:31+00:00"), Reservation)


def test_a_new_key_means_another_write_and_a_known_one_the_same():
    writes = Writes()
    reserved(writes, "t1")
    assert isinstance(reserved(writes, "t2", key="again"), Reservation)
    assert reserved(writes, "t3", key="again", arguments={"order_id": "B-2"}) == "t2"


def test_a_call_without_a_key_repeats_one_that_had_a_key():
    writes = Writes()
    reserved(writes, "t1", key="k").sent()
    assert reserved(writes, "t2") == "t1"


def test_a_second_write_under_a_new_key_does_not_give_the_first_ones_reservation_back():
    writes = Writes()
    reserved(writes, "t1").sent()
    reserved(writes, "t2", key="k").close(now=NOON)
    assert reserved(writes, "t3") == "t1"


def test_a_lost_store_reserves_nothing_and_does_not_lose_the_answer_of_a_call(caplog):
    writes = Writes()
    held = reserved(writes, "t1")
    held.sent()
    writes.lost = True
    with pytest.raises(StoreError):
        reserved(writes, "t2")
    with caplog.at_level(logging.ERROR):
        held.close(now=NOON)
    assert "reservation" in caplog.text
