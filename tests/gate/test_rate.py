from __future__ import annotations

import pytest

from toolcrib.gate.rate import RateLimiter


class Clock:
    """Seconds that pass when a test says so."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_off_by_default_means_no_limit():
    limiter = RateLimiter(0, clock=Clock())
    assert all(limiter.allow("ann", "a.b") for _ in range(1_000))


def test_a_minute_lets_through_what_was_set_and_refills_evenly():
    clock = Clock()
    limiter = RateLimiter(6, clock=clock)
    assert [limiter.allow("ann", "a.b") for _ in range(8)] == [True] * 6 + [False] * 2
    clock.now_s += 9.9
    assert not limiter.allow("ann", "a.b")
    clock.now_s += 0.2
    assert limiter.allow("ann", "a.b")
    assert not limiter.allow("ann", "a.b")


def test_a_long_pause_saves_up_no_more_than_one_minute():
    clock = Clock()
    limiter = RateLimiter(3, clock=clock)
    assert limiter.allow("ann", "a.b")
    clock.now_s += 86_400
    assert [limiter.allow("ann", "a.b") for _ in range(4)] == [True, True, True, False]


def test_subjects_and_tools_do_not_share_an_allowance():
    limiter = RateLimiter(1, clock=Clock())
    assert limiter.allow("ann", "a.b")
    assert limiter.allow("bo", "a.b")
    assert limiter.allow("ann", "a.c")
    assert not limiter.allow("ann", "a.b")


def test_memory_is_bounded():
    limiter = RateLimiter(1, clock=Clock(), max_pairs=2)
    for number in range(100):
        assert limiter.allow("ann", f"a.{number}")
    assert not limiter.allow("ann", "a.99")
    assert len(limiter._buckets) == 2


def test_a_negative_limit_is_refused():
    with pytest.raises(ValueError, match="0 or more"):
        RateLimiter(-1)
