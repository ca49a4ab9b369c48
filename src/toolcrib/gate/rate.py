"""How often one subject may call one tool: a token bucket for each pair, in memory, off unless configured.

The gate's only state. It bounds a runaway loop on one machine; it is not an accounting of use.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable


class RateLimiter:
    """Lets through `calls_per_minute` calls for each (subject, tool), evenly refilled. Safe to share between threads.

    Args:
        calls_per_minute: 0 or more; 0 lets everything through.
        clock: seconds, never going back.
        max_pairs: pairs remembered; the one idle longest is forgotten first, which can only let more through.
    """

    def __init__(
        self, calls_per_minute: int, *, clock: Callable[[], float] = time.monotonic, max_pairs: int = 10_000
    ) -> None:
        if calls_per_minute < 0:
            raise ValueError(f"calls_per_minute must be 0 or more, got {calls_per_minute}")
        self._size = calls_per_minute
        self._clock = clock
        self._max_pairs = max_pairs
        self._buckets: OrderedDict[tuple[str, str], tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def allow(self, subject: str, tool_id: str) -> bool:
        """Take one call out of the bucket; False when it is empty."""
        if self._size == 0:
            return True
        with self._lock:
            now = self._clock()
            left, since = self._buckets.pop((subject, tool_id), (float(self._size), now))
            left = min(float(self._size), left + (now - since) * self._size / 60.0)
            allowed = left >= 1.0
            self._buckets[subject, tool_id] = (left - 1.0 if allowed else left, now)
            if len(self._buckets) > self._max_pairs:
                self._buckets.popitem(last=False)
        return allowed
