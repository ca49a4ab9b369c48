from __future__ import annotations

import pytest

from toolcrib.gate.limits import Entered, Limited, Limiter
from toolcrib.types import CallerKind, CallLimit

from .making import caller, tool

ANN = caller("ann")
REFUND = tool()


class Clock:
    """Seconds that pass when a test says so."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def entered(limiter, who=ANN, what=REFUND, **limits):
    return limiter.enter(who, what, **limits)


def test_without_limits_everything_is_let_in_and_nothing_is_remembered():
    limiter = Limiter(clock=Clock())
    for _ in range(100):
        entered(limiter).leave()
    assert (limiter._under_way, limiter._rate._buckets) == ({}, {})


# What shares a limit of one call with ann's call to shop.issue_refund, and what does not.
SHARED = {
    "caller": ({"what": tool("hub.other")}, {"who": caller("bo")}),
    "tenant": ({"who": caller("bo")}, {"who": caller("ann", tenant="globex")}),
    "tool": ({"who": caller("bo", tenant="globex")}, {"what": tool("shop.other")}),
    "server": ({"who": caller("bo"), "what": tool("shop.other")}, {"what": tool("hub.issue_refund")}),
}


@pytest.mark.parametrize("concurrent", [False, True], ids=["a minute", "at a time"])
@pytest.mark.parametrize("by", SHARED)
def test_a_limit_is_shared_by_what_it_counts_and_by_nothing_else(by, concurrent):
    limit = CallLimit(by=by, concurrent=1) if concurrent else CallLimit(by=by, calls_per_minute=1)
    same, other = SHARED[by]
    limiter = Limiter(clock=Clock())
    assert isinstance(entered(limiter, limits=[limit]), Entered)
    assert entered(limiter, **same, limits=[limit]) == Limited(by=by, concurrent=concurrent)
    assert isinstance(entered(limiter, **other, limits=[limit]), Entered)


@pytest.mark.parametrize(
    "other",
    [
        caller("ann", tenant="globex"),
        caller("ann", kind=CallerKind.AGENT),
        caller("ann", on_behalf_of="bo"),
        caller("ann", on_behalf_of="bo", acting_for=caller("bo", tenant="globex")),
    ],
    ids=["tenant", "kind", "for whom", "for whom, of another tenant"],
)
def test_callers_that_differ_in_identity_are_counted_apart_and_rights_make_nobody_another(other):
    limits = [CallLimit(by="caller", calls_per_minute=1)]
    limiter = Limiter(clock=Clock())
    assert isinstance(entered(limiter, limits=limits), Entered)
    assert isinstance(entered(limiter, other, limits=limits), Entered)
    assert isinstance(entered(limiter, caller("ann", scopes=frozenset({"new"})), limits=limits), Limited)


def test_a_place_is_free_again_once_its_call_is_over_however_often_that_is_said():
    limits = [CallLimit(by="server", concurrent=2)]
    limiter = Limiter(clock=Clock())
    first, _second = entered(limiter, limits=limits), entered(limiter, limits=limits)
    assert isinstance(entered(limiter, limits=limits), Limited)
    first.leave()
    first.leave()
    assert isinstance(entered(limiter, limits=limits), Entered)
    assert isinstance(entered(limiter, limits=limits), Limited)


def test_a_call_that_one_limit_refuses_costs_no_other_allowance():
    often = [CallLimit(by="server", calls_per_minute=2), CallLimit(by="tool", calls_per_minute=1)]
    limiter = Limiter(clock=Clock())
    assert isinstance(entered(limiter, limits=often), Entered)
    assert [entered(limiter, limits=often) for _ in range(5)] == [Limited(by="tool")] * 5
    assert isinstance(entered(limiter, what=tool("shop.other"), limits=often), Entered), "the server had one call left"

    both = [CallLimit(by="tenant", calls_per_minute=2), CallLimit(by="tool", concurrent=1)]
    limiter = Limiter(clock=Clock())
    held = entered(limiter, limits=both)
    assert entered(limiter, limits=both) == Limited(by="tool", concurrent=True)
    held.leave()
    assert isinstance(entered(limiter, limits=both), Entered)


def test_globs_say_which_are_limited_and_case_counts():
    limits = [CallLimit(by="tool", match="shop.issue_*", calls_per_minute=1)]
    limiter = Limiter(clock=Clock())
    for what in (tool("shop.Issue_refund"), tool("shop.get"), REFUND):
        assert isinstance(entered(limiter, what=what, limits=limits), Entered)
    assert isinstance(entered(limiter, limits=limits), Limited)


def test_of_two_rows_on_the_same_thing_the_lower_numbers_hold():
    limits = [CallLimit(by="tool", calls_per_minute=5), CallLimit(by="tool", calls_per_minute=2, concurrent=1)]
    limiter = Limiter(clock=Clock())
    for _ in range(2):
        entered(limiter, limits=limits).leave()
    assert entered(limiter, limits=limits) == Limited(by="tool")


def test_one_callers_own_allowance_for_a_tool_needs_no_row():
    limiter = Limiter(clock=Clock())
    assert isinstance(entered(limiter, calls_per_minute=1), Entered)
    assert entered(limiter, calls_per_minute=1) == Limited(by="tool")
    assert isinstance(entered(limiter, caller("bo"), calls_per_minute=1), Entered)
    assert isinstance(entered(limiter, what=tool("shop.other"), calls_per_minute=1), Entered)


def test_a_limit_that_is_new_counts_the_calls_under_way_already():
    limiter = Limiter(clock=Clock())
    limits = [CallLimit(by="tool", concurrent=9)]
    entered(limiter, limits=limits)
    assert isinstance(entered(limiter, limits=[CallLimit(by="tool", concurrent=1)]), Limited)


def test_memory_is_bounded_by_the_calls_under_way():
    limiter = Limiter(clock=Clock(), max_keys=10)
    limits = [CallLimit(by=by, calls_per_minute=9, concurrent=9) for by in ("caller", "tenant", "tool", "server")]
    for number in range(200):
        entered(limiter, caller(f"c{number}", tenant=f"t{number}"), tool(f"s{number}.x"), limits=limits).leave()
    assert limiter._under_way == {}
    assert len(limiter._rate._buckets) <= 10
