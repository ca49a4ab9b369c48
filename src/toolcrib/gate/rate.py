"""How often something may be done: a token bucket for each key, in memory, off unless configured.

It bounds a runaway loop on one machine; it is not an accounting of use.

Above: `limits.py` makes the keys (who calls, for whom, which tool, which server) from the limits in force.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence


class RateLimiter:
    """Token buckets by key, evenly refilled. Safe to share between threads.

    Args:
        clock: seconds, never going back.
        max_keys: keys remembered; the one idle longest is forgotten first, which can only let more through.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, max_keys: int = 10_000) -> None:
        self._clock = clock
        self._max_keys = max_keys
        self._buckets: OrderedDict[tuple[str, ...], tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def allow_all(self, wanted: Sequence[tuple[tuple[str, ...], int]]) -> int | None:
        """Take one call out of every bucket, or out of none of them.

        A limit that has changed holds at once: a bucket never keeps more calls than the new limit.

        Args:
            wanted: keys, each with its calls per minute, 0 or more; 0 lets everything through.
        Returns:
            None when all let the call through; else the place of the first that is empty.
        """
        for _, calls_per_minute in wanted:
            if calls_per_minute < 0:
                raise ValueError(f"calls_per_minute must be 0 or more, got {calls_per_minute}")
        with self._lock:
            now = self._clock()
            left = [self._left(key, calls_per_minute, now) for key, calls_per_minute in wanted]
            empty = next((place for place, calls in enumerate(left) if calls < 1.0), None)
            for (key, calls_per_minute), calls in zip(wanted, left, strict=True):
                if calls_per_minute > 0:
                    self._keep(key, calls - 1.0 if empty is None else calls, now)
        return empty

    def _left(self, key: tuple[str, ...], calls_per_minute: int, now: float) -> float:
        """Calls that the bucket holds now."""
        if calls_per_minute == 0:
            return 1.0
        size = float(calls_per_minute)
        calls, since = self._buckets.get(key, (size, now))
        return min(size, calls + (now - since) * size / 60.0)

    def _keep(self, key: tuple[str, ...], calls: float, now: float) -> None:
        self._buckets[key] = (calls, now)
        self._buckets.move_to_end(key)
        if len(self._buckets) > self._max_keys:
            self._buckets.popitem(last=False)
