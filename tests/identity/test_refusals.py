"""The operator's log of refused requests: one line each, and no flood."""

from __future__ import annotations

import logging

import pytest

from toolcrib.identity.refusals import EVERY_S, MAX_REASONS, RefusalLog, request_refused

WHAT = request_refused("10.0.0.9")


class _Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> _Clock:
    return _Clock()


@pytest.fixture
def refusals(clock: _Clock) -> RefusalLog:
    return RefusalLog(logging.getLogger("toolcrib.test"), clock=clock)


def test_a_refused_request_is_one_line_with_address_status_and_reason(
    refusals: RefusalLog, caplog: pytest.LogCaptureFixture
) -> None:
    refusals.say("this\nis why", what=WHAT)
    assert caplog.messages == ["a request from 10.0.0.9 was refused (401): this is why"]
    assert request_refused("", status=503) == "a request from an unknown address was refused (503)"


def test_the_same_reason_is_written_once_a_minute_and_counted(
    refusals: RefusalLog, clock: _Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(500):
        refusals.say("this", what=WHAT)
    clock.now += EVERY_S - 0.1
    refusals.say("that", what=WHAT)
    assert len(caplog.messages) == 2
    clock.now += 0.1
    refusals.say("this", what=WHAT)
    assert caplog.messages[2:] == ["refused 499 times more within a minute: this", f"{WHAT}: this"]
    clock.now += EVERY_S
    refusals.say("this", what=WHAT)
    assert caplog.messages[4:] == [f"{WHAT}: this"]


def test_reasons_that_strangers_make_up_fill_neither_log_nor_memory(
    refusals: RefusalLog, clock: _Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(1_000):
        refusals.say(f"no key {number}", what=WHAT)
    assert len(caplog.messages) == MAX_REASONS == len(refusals._more)
    clock.now += EVERY_S
    refusals.say("this", what=WHAT)
    assert caplog.messages[MAX_REASONS:] == [
        f"refused {1_000 - MAX_REASONS} times more within a minute, for other reasons",
        f"{WHAT}: this",
    ]
