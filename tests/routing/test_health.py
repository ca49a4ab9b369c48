from __future__ import annotations

import threading

import pytest

from toolcrib.routing.health import N_SLICES, HealthTracker, is_poor
from toolcrib.types import ToolHealth

ALL = ("a.x", "a.y", "a.z")


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def tracker(clock=None, *, window_s=100.0, min_calls=4, max_failed=0.5, max_late=0.25, **more):
    return HealthTracker(window_s, min_calls, max_failed, max_late, clock or Clock(), **more)


def record(health, tool_id, *, n=1, failed=0, late=0):
    for number in range(n):
        health.record(tool_id, failed=number < failed, late=number < late)


@pytest.mark.parametrize(
    ("n", "failed", "late", "reported"),
    [
        (4, 0, 0, False),
        (4, 2, 0, False),
        (4, 3, 0, True),
        (4, 0, 1, False),
        (4, 0, 2, True),
        (3, 3, 3, False),
        (10, 5, 2, False),
    ],
)
def test_a_tool_is_reported_when_enough_calls_fail_or_come_late_too_often(n, failed, late, reported):
    health = tracker()
    record(health, "a.x", n=n, failed=failed, late=late)
    expected = {"a.x": ToolHealth(n_calls=n, n_failed=failed, n_late=late)} if reported else {}
    assert health.report(ALL) == expected


def test_each_tool_is_counted_by_itself():
    health, alone = tracker(), tracker()
    record(health, "a.x", n=4, failed=4)
    record(health, "a.y", n=40, failed=0)
    record(alone, "a.x", n=4, failed=4)
    assert health.report(ALL) == alone.report(ALL)


def test_calls_count_for_the_window_only():
    clock = Clock()
    health = tracker(clock)
    record(health, "a.x", n=4, failed=4)
    clock.now += 99
    assert "a.x" in health.report(ALL)
    clock.now += 1
    assert health.report(ALL) == {}


def test_the_window_slides():
    clock = Clock()
    health = tracker(clock)
    record(health, "a.x", n=4, failed=4)
    clock.now += 60
    record(health, "a.x", n=4, failed=0)
    assert health.report(ALL) == {}
    record(health, "a.x", n=1, failed=1)
    assert health.report(ALL) == {"a.x": ToolHealth(n_calls=9, n_failed=5, n_late=0)}
    clock.now += 60
    assert health.report(ALL) == {}
    record(health, "a.x", n=5, failed=5)
    assert health.report(ALL) == {"a.x": ToolHealth(n_calls=10, n_failed=6, n_late=0)}


def test_a_report_can_be_asked_for_some_tools():
    health = tracker()
    for tool_id in ("a.x", "a.y"):
        record(health, tool_id, n=4, failed=4)
    assert set(health.report(["a.y", "b.never_called"])) == {"a.y"}


def test_tools_of_a_server_that_is_not_asked_are_reported_whatever_their_calls_were():
    health = tracker()
    record(health, "a.x")
    found = health.report(["a.x", "a.y", "b.z"], open_servers={"a"})
    assert found == {
        "a.x": ToolHealth(n_calls=1, n_failed=0, n_late=0, circuit_open=True),
        "a.y": ToolHealth(n_calls=0, n_failed=0, n_late=0, circuit_open=True),
    }


def test_changed_limits_hold_at_once():
    health = tracker()
    record(health, "a.x", n=4, failed=2)
    assert health.report(ALL) == {}
    health.configure(window_s=100, min_calls=4, max_failed=0.4, max_late=1)
    assert "a.x" in health.report(ALL)
    health.configure(window_s=100, min_calls=5, max_failed=0.4, max_late=1)
    assert health.report(ALL) == {}


@pytest.mark.parametrize(
    "changed",
    [{"window_s": 0}, {"window_s": float("nan")}, {"min_calls": 0}, {"max_failed": 1.1}, {"max_late": -0.1}],
    ids=str,
)
def test_limits_without_sense_are_refused_and_the_old_ones_stay(changed):
    health = tracker()
    with pytest.raises(ValueError, match="got"):
        health.configure(**{"window_s": 1, "min_calls": 1, "max_failed": 0, "max_late": 0, **changed})
    record(health, "a.x", n=3, failed=3)
    assert health.report(ALL) == {}


def test_memory_is_bounded_and_the_tool_idle_longest_is_forgotten():
    health = tracker(max_tools=2)
    for tool_id in ("a.x", "a.y"):
        record(health, tool_id, n=4, failed=4)
    record(health, "a.x")
    record(health, "a.z", n=4, failed=4)
    assert set(health.report(ALL)) == {"a.x", "a.z"}


def test_many_calls_of_one_tool_take_no_more_room_than_a_window_has_slices():
    clock = Clock()
    health = tracker(clock)
    for _ in range(5_000):
        clock.now += 0.1
        health.record("a.x", failed=True, late=False)
    assert len(health._calls["a.x"]) <= N_SLICES
    counted = health.report(ALL)["a.x"].n_calls
    assert 950 <= counted <= 1_000


def test_no_call_is_lost_between_threads():
    health = tracker()
    threads = [threading.Thread(target=record, args=(health, "a.x"), kwargs={"n": 500, "failed": 500}) for _ in "1234"]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert health.report(ALL)["a.x"] == ToolHealth(n_calls=2_000, n_failed=2_000, n_late=0)


@pytest.mark.parametrize(
    ("health", "poor"),
    [
        (None, False),
        (ToolHealth(n_calls=9, n_failed=0, n_late=0), False),
        (ToolHealth(n_calls=9, n_failed=5, n_late=0), True),
        (ToolHealth(n_calls=9, n_failed=0, n_late=5), True),
        (ToolHealth(n_calls=0, n_failed=0, n_late=0, circuit_open=True), True),
    ],
)
def test_what_a_report_means(health, poor):
    assert is_poor(health) == poor
