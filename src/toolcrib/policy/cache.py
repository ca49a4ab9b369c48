"""Eligibility by everything it depends on, bounded.

Below: `types.py`. A key holds both versions, so a changed snapshot or policy misses; what is no longer asked for is
pushed out. Decisions that carry an error are not kept: a fault that has passed must not go on denying.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from toolcrib.types import Channel, Eligibility


@dataclass(frozen=True, slots=True, kw_only=True)
class EligibilityKey:
    """All that an eligibility is a function of."""

    snapshot_version: str
    policy_version: str
    fingerprint: str
    channel: Channel
    unknown_risk: str


class EligibilityCache:
    """The most recently used eligibilities, for several threads.

    Args:
        max_entries: entries kept, greater than 0; each costs two bytes per tool of its snapshot.
    """

    def __init__(self, *, max_entries: int = 256) -> None:
        if max_entries < 1:
            raise ValueError("max_entries must be greater than 0")
        self._max_entries = max_entries
        self._lock = Lock()
        self._kept: OrderedDict[EligibilityKey, Eligibility] = OrderedDict()

    def get_or_compute(self, key: EligibilityKey, compute: Callable[[], Eligibility]) -> Eligibility:
        """The kept value, or the computed one, kept from now on.

        Computing happens outside the lock: two threads may compute one key, with equal results, but none waits.
        """
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None:
                self._kept.move_to_end(key)
                return kept
        computed = compute()
        if not any(decision.errors for decision in (*computed.discover, *computed.call)):
            self._keep(key, computed)
        return computed

    def _keep(self, key: EligibilityKey, eligibility: Eligibility) -> None:
        with self._lock:
            self._kept[key] = eligibility
            self._kept.move_to_end(key)
            while len(self._kept) > self._max_entries:
                self._kept.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()

    def __len__(self) -> int:
        with self._lock:
            return len(self._kept)
