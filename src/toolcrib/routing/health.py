"""How the recent calls of each tool went: counts over a sliding window, in memory.

Above: `crib.py` records each call that was sent and hands a report to the pipeline, which writes what it used into the
trace, so that a selection can be replayed. Below: nothing.

Invariants
1. Each tool is counted by itself: what is reported of one depends on no call of another (I1). Whether a server's
   circuit is open is the one exception, and comes from outside.
2. A report holds only tools that something speaks against; a tool it does not name has nothing against it.
3. Memory is bounded: `max_tools` tools with `N_SLICES` counts each; the tool idle longest is forgotten first.
4. A tool that is asked less because it failed is forgotten after `window_s` and gets another chance by itself.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from toolcrib.types import ToolHealth

N_SLICES = 20
"""Parts of a window that are counted together, and forgotten together: a call counts for 95 to 100 % of the window."""


def is_poor(health: ToolHealth | None) -> bool:
    """Whether another tool of the same capability is preferred. `health`: out of a report, None where it is silent."""
    return health is not None and (health.circuit_open or health.n_failed > 0 or health.n_late > 0)


@dataclass(slots=True)
class _Slice:
    since: float
    n_calls: int = 0
    n_failed: int = 0
    n_late: int = 0


class HealthTracker:
    """Counts per tool. Safe to share between threads.

    Args:
        window_s: seconds that a call counts for, above 0.
        min_calls: fewer recent calls than this say nothing of a tool; 1 or more.
        max_failed, max_late: share of the recent calls, 0 to 1; above it the tool is reported.
        clock: seconds, never going back.
    """

    def __init__(
        self,
        window_s: float = 300.0,
        min_calls: int = 5,
        max_failed: float = 0.5,
        max_late: float = 0.5,
        clock: Callable[[], float] = time.monotonic,
        *,
        max_tools: int = 10_000,
    ) -> None:
        self._clock = clock
        self._max_tools = max_tools
        self._calls: OrderedDict[str, deque[_Slice]] = OrderedDict()
        self._lock = threading.Lock()
        self.configure(window_s=window_s, min_calls=min_calls, max_failed=max_failed, max_late=max_late)

    def configure(self, *, window_s: float, min_calls: int, max_failed: float, max_late: float) -> None:
        """Other limits, at once, also for calls that were counted before.

        Raises:
            ValueError: a limit is out of its range; the limits stay as they were.
        """
        if not window_s > 0 or min_calls < 1 or not 0 <= max_failed <= 1 or not 0 <= max_late <= 1:
            raise ValueError(
                f"window_s must be above 0, min_calls 1 or more, both shares 0 to 1; "
                f"got {window_s}, {min_calls}, {max_failed}, {max_late}"
            )
        with self._lock:
            self._window_s = window_s
            self._min_calls = min_calls
            self._max_failed = max_failed
            self._max_late = max_late

    def record(self, tool_id: str, *, failed: bool, late: bool) -> None:
        """Count one call that was sent.

        Args:
            failed: the tool or its server could not do it. What a caller got wrong is no failure of the tool: whoever
                sends nonsense must not be able to push a tool back for everybody else.
            late: no answer before the deadline.
        """
        with self._lock:
            now = self._clock()
            slices = self._calls.setdefault(tool_id, deque())
            self._calls.move_to_end(tool_id)
            self._forget_old(slices, now)
            if not slices or now - slices[-1].since >= self._window_s / N_SLICES:
                slices.append(_Slice(since=now))
            current = slices[-1]
            current.n_calls += 1
            current.n_failed += failed
            current.n_late += late
            if len(self._calls) > self._max_tools:
                self._calls.popitem(last=False)

    def report(self, tool_ids: Iterable[str], *, open_servers: Collection[str] = ()) -> Mapping[str, ToolHealth]:
        """Health of those of these tools that something speaks against, by tool id.

        Args:
            open_servers: servers that are not asked at present. Their tools are reported whatever their calls were.
        """
        with self._lock:
            now = self._clock()
            found = {tool_id: self._health(tool_id, now, open_servers) for tool_id in dict.fromkeys(tool_ids)}
        return {tool_id: health for tool_id, health in found.items() if health is not None}

    def _health(self, tool_id: str, now: float, open_servers: Collection[str]) -> ToolHealth | None:
        is_open = tool_id.partition(".")[0] in open_servers
        n_calls = n_failed = n_late = 0
        if slices := self._calls.get(tool_id):
            self._forget_old(slices, now)
            n_calls = sum(part.n_calls for part in slices)
            n_failed = sum(part.n_failed for part in slices)
            n_late = sum(part.n_late for part in slices)
            if not slices:
                del self._calls[tool_id]
        told = n_calls >= self._min_calls
        is_bad = told and (n_failed > self._max_failed * n_calls or n_late > self._max_late * n_calls)
        if not is_bad and not is_open:
            return None
        return ToolHealth(n_calls=n_calls, n_failed=n_failed, n_late=n_late, circuit_open=is_open)

    def _forget_old(self, slices: deque[_Slice], now: float) -> None:
        while slices and now - slices[0].since >= self._window_s:
            slices.popleft()
