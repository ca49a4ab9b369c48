"""The approval log is what was written, or says where it is not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from toolcrib.review.chain import checked
from toolcrib.types import ReviewEvent

DIGEST = "sha256:" + "0" * 64


def event(number: int) -> ReviewEvent:
    return ReviewEvent(at=f"2026-01-0{number}", action="approve", tool_id="a.b", digest=DIGEST, reviewer="ann")


def chain(n: int) -> list[ReviewEvent]:
    made: list[ReviewEvent] = []
    for number in range(1, n + 1):
        made.append(event(number).sealed(made[-1].hash if made else ""))
    return made


def test_a_log_as_it_was_written_is_sound_and_tells_its_head() -> None:
    events = chain(4)
    found = checked(events)
    assert (found.is_sound, found.n_events, found.head) == (True, 4, events[-1].hash)
    assert checked([]).is_sound


@pytest.mark.parametrize(
    ("tamper", "broken_at"),
    [
        (lambda log: [log[0], replace(log[1], reviewer="bob"), *log[2:]], 2),
        (lambda log: [log[0], replace(log[1], findings=("secrecy",)), *log[2:]], 2),
        (lambda log: [log[0], *log[2:]], 2),
        (lambda log: [log[1], log[0], *log[2:]], 1),
        (lambda log: log[1:], 1),
        (lambda log: [*log[:2], event(9), *log[2:]], 3),
        (lambda log: [*log[:2], event(9).sealed(log[1].hash), *log[2:]], 4),
    ],
    ids=["changed", "findings-changed", "removed", "reordered", "first-removed", "unsealed-inserted", "inserted"],
)
def test_what_was_done_to_the_log_shows_where_it_was_done(
    tamper: Callable[[list[ReviewEvent]], Sequence[ReviewEvent]], broken_at: int
) -> None:
    found = checked(tamper(chain(4)))
    assert (found.is_sound, found.broken_at) == (False, broken_at)


def test_events_from_before_there_was_a_chain_stand_only_at_its_beginning() -> None:
    first = event(1)
    found = checked([first, event(2).sealed("")])
    assert (found.is_sound, found.n_unsealed) == (True, 1)
    assert not checked([*chain(2), first]).is_sound


def test_a_log_cut_off_at_its_end_is_noticed_by_whoever_kept_the_head() -> None:
    events = chain(4)
    assert checked(events[:3]).is_sound
    assert not checked(events[:3], holds=events[-1].hash).is_sound
    assert checked(events, holds=events[2].hash[:16]).is_sound
