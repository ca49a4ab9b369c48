"""How often one caller may call one tool: a token bucket for each key, in memory, off unless configured.

The gate's only state. It bounds a runaway loop on one machine; it is not an accounting of use.

Above: `dispatch.py` makes the key (who calls, for whom, which tool) and reads the limit from the settings in force.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable


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

    def allow(self, key: tuple[str, ...], *, calls_per_minute: int) -> bool:
        """Take one call out of the bucket; False when it is empty.

        A limit that has changed holds at once: a bucket never keeps more calls than the new limit.

        Args:
            calls_per_minute: 0 or more; 0 lets everything through.
        """
        if calls_per_minute < 0:
            raise ValueError(f"calls_per_minute must be 0 or more, got {calls_per_minute}")
        if calls_per_minute == 0:
            return True
        size = float(calls_per_minute)
        with self._lock:
            now = self._clock()
            left, since = self._buckets.pop(key, (size, now))
            left = min(size, left + (now - since) * size / 60.0)
            allowed = left >= 1.0
            self._buckets[key] = (left - 1.0 if allowed else left, now)
            if len(self._buckets) > self._max_keys:
                self._buckets.popitem(last=False)
        return allowed
