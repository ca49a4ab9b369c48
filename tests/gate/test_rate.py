from __future__ import annotations

import pytest

from toolcrib.gate.rate import RateLimiter

ANN = ("acme", "user", "ann", "", "a.b")


class Clock:
    """Seconds that pass when a test says so."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def allows(limiter: RateLimiter, key: tuple[str, ...], *, calls_per_minute: int) -> bool:
    return limiter.allow_all([(key, calls_per_minute)]) is None


def test_zero_means_no_limit():
    limiter = RateLimiter(clock=Clock())
    assert all(allows(limiter, ANN, calls_per_minute=0) for _ in range(1_000))


def test_a_minute_lets_through_what_was_set_and_refills_evenly():
    clock = Clock()
    limiter = RateLimiter(clock=clock)
    assert [allows(limiter, ANN, calls_per_minute=6) for _ in range(8)] == [True] * 6 + [False] * 2
    clock.now_s += 9.9
    assert not allows(limiter, ANN, calls_per_minute=6)
    clock.now_s += 0.2
    assert allows(limiter, ANN, calls_per_minute=6)
    assert not allows(limiter, ANN, calls_per_minute=6)


def test_a_long_pause_saves_up_no_more_than_one_minute():
    clock = Clock()
    limiter = RateLimiter(clock=clock)
    assert allows(limiter, ANN, calls_per_minute=3)
    clock.now_s += 86_400
    assert [allows(limiter, ANN, calls_per_minute=3) for _ in range(4)] == [True, True, True, False]


@pytest.mark.parametrize("place", range(len(ANN)))
def test_keys_that_differ_anywhere_do_not_share_an_allowance(place):
    other = (*ANN[:place], "other", *ANN[place + 1 :])
    limiter = RateLimiter(clock=Clock())
    assert allows(limiter, ANN, calls_per_minute=1)
    assert allows(limiter, other, calls_per_minute=1)
    assert not allows(limiter, ANN, calls_per_minute=1)


def test_a_limit_that_changed_holds_at_once():
    limiter = RateLimiter(clock=Clock())
    assert allows(limiter, ANN, calls_per_minute=100)
    assert [allows(limiter, ANN, calls_per_minute=2) for _ in range(3)] == [True, True, False]
    assert allows(limiter, ANN, calls_per_minute=0)


def test_memory_is_bounded():
    limiter = RateLimiter(clock=Clock(), max_keys=2)
    for number in range(100):
        assert allows(limiter, (f"a.{number}",), calls_per_minute=1)
    assert not allows(limiter, ("a.99",), calls_per_minute=1)
    assert len(limiter._buckets) == 2


def test_a_negative_limit_is_refused():
    with pytest.raises(ValueError, match="0 or more"):
        allows(RateLimiter(), ANN, calls_per_minute=-1)


def test_several_allowances_are_charged_together_or_not_at_all():
    limiter = RateLimiter(clock=Clock())
    one, other = (("one",), 5), (("other",), 1)
    assert limiter.allow_all([one, other]) is None
    assert [limiter.allow_all([one, other]) for _ in range(20)] == [1] * 20
    assert [limiter.allow_all([one]) for _ in range(5)] == [None] * 4 + [0]
