"""The approval log's chain, made again: whether what stands in it is what was written, in that order.

Each event carries the hash of the one before and its own. Whoever changes, removes or inserts one has to make every
later hash anew, which shows to anybody who wrote down a later hash before (`holds`).

Above: `review_desk.py` and `doctoring.py`. Below: `ReviewEvent.sealed` makes the links.

Invariants
1. Events from before there was a chain stand at its beginning, and nowhere else.
2. A log cut off at its end is a sound chain: only a hash that was kept elsewhere tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolcrib.types import ReviewEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """What the log looks like. `broken_at`: number of the first event that does not fit, from 1; 0 for none.

    `n_unsealed`: events from before there was a chain. `head`: hash of the last event that fits, or "".
    """

    n_events: int
    n_unsealed: int
    head: str
    broken_at: int = 0
    why: str = ""

    @property
    def is_sound(self) -> bool:
        return not self.broken_at


def checked(events: Sequence[ReviewEvent], *, holds: str = "") -> Chain:
    """The state of the chain of these events, oldest first.

    Args:
        holds: a hash that must be one of the chain's links; at least its beginning.
    """
    n_unsealed = next((n for n, event in enumerate(events) if event.hash), len(events))
    head = ""
    for number, event in enumerate(events[n_unsealed:], start=n_unsealed + 1):
        why = _fault(event, before=head)
        if why:
            return Chain(n_events=len(events), n_unsealed=n_unsealed, head=head, broken_at=number, why=why)
        head = event.hash
    if holds and not any(event.hash.startswith(holds) for event in events):
        why = f"no event has the hash {holds}: the log was cut off, or written anew"
        return Chain(n_events=len(events), n_unsealed=n_unsealed, head=head, broken_at=len(events) + 1, why=why)
    return Chain(n_events=len(events), n_unsealed=n_unsealed, head=head)


def _fault(event: ReviewEvent, *, before: str) -> str:
    if not event.hash:
        return "it is no link of the chain: it has no hash"
    if event.previous != before:
        return "what stood before it is missing, or is another event"
    return "" if event.sealed(before).hash == event.hash else "it is not what was written: its hash is another"
