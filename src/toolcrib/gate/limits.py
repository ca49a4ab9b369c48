"""How many calls may start in a minute and how many may be under way, for callers, tenants, tools and servers.

    enter ──▶ Entered ──▶ leave        the call counts as under way between the two
      └─────▶ Limited                  and nothing was taken from any allowance

Above: `dispatch.py` enters before owners are asked, since asking costs, too, and leaves whatever becomes of the call.
Below: `rate.py`, the buckets.

Invariants
1. All limits that a call falls under let it through, or none is charged: a call that one limit refuses costs nothing.
2. What is remembered is bounded: buckets by `RateLimiter`, calls under way by the calls under way.
3. Limits are counted for what they match, one by one: `by = "caller", match = "*"` is a limit for each caller.

Limits on a tool or a server are shared by all who use it, so others' calls can be felt; that is what they are for. They
say nothing of which tools there are.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias

from toolcrib.gate.offers import holder_key
from toolcrib.gate.rate import RateLimiter
from toolcrib.types import Caller, CallLimit, Tool

LimitKind: TypeAlias = Literal["caller", "tenant", "tool", "server"]
_Key: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limited:
    """Which limit refuses a call. `concurrent`: too many under way at a time, otherwise too many in a minute."""

    by: LimitKind
    concurrent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """One limit as one call falls under it. 0 is no limit."""

    key: _Key
    by: LimitKind
    calls_per_minute: int
    concurrent: int


class Entered:
    """One call under way. `leave` counts once, however often it is called."""

    def __init__(self, leave: Callable[[], None]) -> None:
        self._leave: Callable[[], None] | None = leave

    def leave(self) -> None:
        """The call is over, whatever became of it."""
        leave, self._leave = self._leave, None
        if leave is not None:
            leave()


class Limiter:
    """Counts calls. Safe to share between threads.

    Args:
        clock: seconds, never going back. max_keys: allowances remembered; the one idle longest is forgotten first.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, max_keys: int = 10_000) -> None:
        self._rate = RateLimiter(clock=clock, max_keys=max_keys)
        self._under_way: dict[_Key, int] = {}
        self._lock = threading.Lock()

    def enter(
        self, caller: Caller, tool: Tool, *, calls_per_minute: int = 0, limits: Sequence[CallLimit] = ()
    ) -> Entered | Limited:
        """Let one call in, or say which limit refuses it.

        A limit that has changed holds at once, for calls that are under way, too.

        Args:
            calls_per_minute: of one caller to one tool; 0 for no limit. limits: those in force.
        """
        counted = _counted(caller, tool, calls_per_minute=calls_per_minute, limits=limits)
        gauges = [one.key for one in counted]
        with self._lock:
            for one in counted:
                if one.concurrent and self._under_way.get(one.key, 0) >= one.concurrent:
                    return Limited(by=one.by, concurrent=True)
            empty = self._rate.allow_all([(one.key, one.calls_per_minute) for one in counted])
            if empty is not None:
                return Limited(by=counted[empty].by)
            for key in gauges:
                self._under_way[key] = self._under_way.get(key, 0) + 1
        return Entered(lambda: self._left(gauges))

    def _left(self, gauges: Sequence[_Key]) -> None:
        with self._lock:
            for key in gauges:
                self._under_way[key] -= 1
                if not self._under_way[key]:
                    del self._under_way[key]


def _counted(caller: Caller, tool: Tool, *, calls_per_minute: int, limits: Sequence[CallLimit]) -> tuple[_Counted, ...]:
    """The limits that this call falls under. Of two rows that count the same thing, the lower numbers hold."""
    holder = holder_key(caller)
    named: dict[LimitKind, tuple[str, str]] = {  # what the glob is matched with, and what is counted apart
        "caller": (caller.subject, holder),
        "tenant": (caller.tenant, caller.tenant),
        "tool": (tool.tool_id, tool.tool_id),
        "server": (tool.server_id, tool.server_id),
    }
    own = _Counted(key=("own", holder, tool.tool_id), by="tool", calls_per_minute=calls_per_minute, concurrent=0)
    found: dict[_Key, _Counted] = {own.key: own}
    for limit in limits:
        name, what = named[limit.by]
        if not fnmatchcase(name, limit.match):
            continue
        key = (limit.by, limit.match, what)
        before = found.get(key)
        found[key] = _Counted(
            key=key,
            by=limit.by,
            calls_per_minute=_lower(limit.calls_per_minute, before.calls_per_minute if before else 0),
            concurrent=_lower(limit.concurrent, before.concurrent if before else 0),
        )
    return tuple(found.values())


def _lower(one: int, other: int) -> int:
    """The lower of two limits, where 0 is none."""
    return min(one, other) if one and other else one or other
