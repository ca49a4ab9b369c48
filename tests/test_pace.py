"""When a list is taken next: what pace promises, told in seconds that nobody waits for."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import pytest

from toolcrib.pace import MAX_WAIT_S, Limits, Pace, hour_has_come

LIMITS = Limits(debounce_s=0.5, min_interval_s=5.0, every_s=0.0)


def listed(pace: Pace, at: float, outcome: str = "same", *, for_s: float = 0.1) -> None:
    """A list that began at `at`."""
    pace.began(at)
    pace.ended(at + for_s, outcome)  # type: ignore[arg-type]


def known(limits: Limits = LIMITS, *, listed_at: float = 0.0) -> Pace:
    return Pace(limits, listed_at=listed_at, now=0.0)


def test_a_list_that_nobody_knows_of_is_wanted_at_once() -> None:
    assert (Pace(LIMITS, listed_at=None, now=7.0).due_at() or 0.0) <= 7.0


def test_nothing_calls_for_a_list_without_a_word_or_an_age() -> None:
    pace = known()
    assert pace.due_at() is None
    listed(pace, 10)
    assert pace.due_at() is None


def test_a_burst_is_one_list_soon_after_its_beginning() -> None:
    pace = known()
    for moment in (100.0, 100.1, 100.4, 100.45):
        pace.announced(moment)
    assert pace.due_at() == 100.5
    listed(pace, 100.5, "changed")
    assert pace.due_at() is None


def test_what_is_announced_while_the_list_is_taken_wants_one_more() -> None:
    pace = known()
    pace.announced(100)
    pace.began(100.5)
    pace.announced(100.6)
    assert pace.due_at() is None
    pace.ended(101, "changed")
    assert pace.due_at() == 106.0


def test_a_server_that_announces_while_being_listed_is_left_alone_ever_longer() -> None:
    pace, now, waits = known(), 100.0, []
    pace.announced(now)
    for _ in range(12):
        due = pace.due_at()
        assert due is not None
        waits.append(due - now)
        pace.began(due)
        pace.announced(due + 0.01)
        now = due + 0.02
        pace.ended(now, "same")
    assert waits[1:4] == pytest.approx([5.0, 5.0, 5.0])
    assert all(later > earlier - 1e-6 for earlier, later in pairwise(waits[1:]))
    assert waits[-1] == pytest.approx(MAX_WAIT_S)


def test_no_interval_does_not_mean_no_rest() -> None:
    pace = known(Limits(debounce_s=0, min_interval_s=0, every_s=0))
    now = 0.0
    for _ in range(30):
        pace.announced(now)
        due = pace.due_at()
        assert due is not None
        now = max(now, due) + 0.001
        listed(pace, now - 0.001, for_s=0.001)
    pace.announced(now)
    assert (pace.due_at() or 0.0) - now > 100


def test_a_list_during_which_the_server_announced_is_followed_by_a_pause_as_long() -> None:
    pace = known(Limits(debounce_s=0, min_interval_s=0, every_s=0))
    pace.began(10)
    pace.announced(11)
    pace.ended(30, "changed")
    assert pace.due_at() == 50


def test_a_change_is_believed_again_at_once() -> None:
    pace = known()
    for at in range(100, 200, 20):
        pace.announced(at)
        listed(pace, at + 0.5)
    pace.announced(200)
    listed(pace, pace.due_at() or 0.0, "changed")
    began = pace.due_at()
    assert began is None
    pace.announced(1000)
    assert pace.due_at() == 1000.5


def test_a_server_that_was_quiet_for_long_is_believed_again() -> None:
    pace, now = known(), 0.0
    for _ in range(20):
        pace.announced(now)
        now = pace.due_at() or now
        listed(pace, now, for_s=0.0)
    later = now + MAX_WAIT_S + 1
    pace.announced(later)
    listed(pace, later + 0.5, for_s=0.0)
    pace.announced(later + 1)
    assert pace.due_at() == later + 5.5


def test_a_failure_is_tried_again_ever_later_and_an_announcement_does_not_wait_for_that() -> None:
    pace, now, waits = known(), 100.0, []
    pace.hurry()
    for _ in range(2_000):
        listed(pace, now, "failed", for_s=0.0)
        due = pace.due_at()
        assert due is not None
        waits.append(due - now)
        now = due
    assert waits[:4] == [1, 2, 4, 8]
    assert waits[-1] == MAX_WAIT_S
    listed(pace, now, "failed", for_s=0.0)
    pace.announced(now + 10)
    assert pace.due_at() == now + 10.5
    listed(pace, now + 10.5, "changed")
    assert pace.due_at() is None


def test_a_list_is_taken_again_when_it_is_too_old() -> None:
    pace = known(Limits(debounce_s=0.5, min_interval_s=5, every_s=60), listed_at=-45)
    assert pace.due_at() == 15
    listed(pace, 15, for_s=1)
    assert pace.due_at() == 76
    pace.limits = LIMITS
    assert pace.due_at() is None


def test_hurry_waits_for_no_burst_but_for_the_interval() -> None:
    pace = known()
    pace.hurry()
    assert pace.due_at() == 0.0
    listed(pace, 100)
    pace.hurry()
    assert pace.due_at() == pytest.approx(105.1)


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("since", "now", "come"),
    [
        ("2026-11-30T03:29:58", "2026-11-30T03:29:59", False),
        ("2026-11-30T03:29:59", "2026-11-30T03:30:00", True),
        ("2026-11-30T03:30:00", "2026-11-30T03:30:02", False),
        ("2026-11-29T22:00:00", "2026-11-30T03:31:00", True),
        ("2026-11-29T03:29:00", "2026-11-30T02:00:00", True),
        ("2026-11-29T04:00:00", "2026-11-30T02:00:00", False),
        ("2026-11-20T04:00:00", "2026-11-30T02:00:00", True),
        ("2026-11-30T03:31:00", "2026-11-30T03:29:00", False),
        ("2026-11-30T03:31:00", "2026-11-30T03:31:00", False),
    ],
    ids=[
        "not yet",
        "on the minute",
        "once",
        "slept over it",
        "yesterday's",
        "between",
        "days",
        "put back",
        "no time passed",
    ],
)
def test_the_hour_comes_once_whatever_the_clock_does(since: str, now: str, come: bool) -> None:
    assert hour_has_come(("03:30",), since=moment(since), now=moment(now)) is come


def test_no_hour_never_comes() -> None:
    assert not hour_has_come((), since=moment("2026-11-20T04:00:00"), now=moment("2026-11-30T02:00:00"))
