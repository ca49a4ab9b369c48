"""When a server's list is taken next, while a gateway runs. No clock, no server: times come in, times go out.

Floor 4. Above: `live.py`.

    announced ─▶ wanted ── debounce_s, and quiet since the last list ─▶ due ─▶ began ─▶ ended
        ▲                                                                        │
        └──────────────── announced while the list was taken ◀──────────────────┘

Invariants
1. An announcement is never lost: one that comes while the list is taken wants one more list after it.
2. However often a server announces, there is at most one list per `min_interval_s`; after a list during which it
   announced, a pause as long as that list. Announcements after which nothing was another one are worth ever longer
   waits, up to `MAX_WAIT_S`; a server that was quiet for longer than that is believed again at once.
3. What failed is tried again, ever later, up to `MAX_WAIT_S`; an announcement does not wait for that.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

MAX_WAIT_S: Final = 300.0
_RETRY_S = 1.0
_BELIEVED = 3
"""So many announcements in vain cost nothing but the usual interval."""
_LEAST_WAIT_S = 0.25
_MAX_DOUBLINGS = 20

Outcome = Literal["changed", "same", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """`[refresh]` and the server's own `refresh_s`. `every_s`: 0 is for ever."""

    debounce_s: float
    min_interval_s: float
    every_s: float


class Pace:
    """One server's. Times are seconds of any clock that does not go back.

    Args:
        listed_at: when its list was last taken; None: nobody knows, so that it is wanted now.
    """

    def __init__(self, limits: Limits, *, listed_at: float | None, now: float) -> None:
        self.limits = limits
        self._listed_at = now if listed_at is None else listed_at
        self._ended_at: float | None = None
        self._began_at: float | None = None
        self._heard_at: float | None = None
        self._wanted_at: float | None = None
        self._pause_s = 0.0
        self._hurried = listed_at is None
        self._n_failed = 0
        self._n_in_vain = 0

    def announced(self, now: float) -> None:
        """The server says that something changed, or may have said so while nobody heard it."""
        if self._wanted_at is None:
            self._wanted_at = now

    def hurry(self) -> None:
        """Wanted as soon as may be: the hour has come, or what the server is reached with is another one."""
        self._hurried = True

    def due_at(self) -> float | None:
        """When the list is to be taken, or None: nothing calls for it."""
        if self._began_at is not None:
            return None
        found = []
        if self._hurried:
            found.append(self._quiet_until())
        if self._wanted_at is not None:
            found.append(max(self._wanted_at + self.limits.debounce_s, self._quiet_until()))
        if self._n_failed and self._ended_at is not None:
            found.append(self._ended_at + min(_doubled(_RETRY_S, self._n_failed - 1), MAX_WAIT_S))
        elif self.limits.every_s:
            found.append(self._listed_at + self.limits.every_s)
        return min(found, default=None)

    def began(self, now: float) -> None:
        """The list is being taken. What was announced until now is answered by it."""
        self._began_at = now
        quiet_s = (self._wanted_at or now) - (self._ended_at or now)
        if self._wanted_at is None or quiet_s > MAX_WAIT_S:
            self._n_in_vain = 0
        self._heard_at, self._wanted_at, self._hurried = self._wanted_at, None, False

    def ended(self, now: float, outcome: Outcome) -> None:
        assert self._began_at is not None
        self._pause_s = now - self._began_at if self._wanted_at is not None else 0.0
        self._ended_at, self._began_at = now, None
        self._n_failed = self._n_failed + 1 if outcome == "failed" else 0
        if outcome != "failed":
            self._listed_at = now
        announced = self._heard_at is not None or self._wanted_at is not None
        self._n_in_vain = self._n_in_vain + 1 if outcome != "changed" and announced else 0

    def _quiet_until(self) -> float:
        """No list before this, however much one is wanted."""
        if self._ended_at is None:
            return 0.0
        wait = max(self.limits.min_interval_s, self._pause_s)
        if self._n_in_vain > _BELIEVED:
            wait = _doubled(max(wait, _LEAST_WAIT_S), self._n_in_vain - _BELIEVED)
        return self._ended_at + min(wait, max(MAX_WAIT_S, self.limits.min_interval_s))


def _doubled(seconds: float, times: int) -> float:
    return seconds * 2.0 ** min(times, _MAX_DOUBLINGS)


def hour_has_come(at: tuple[str, ...], *, since: datetime, now: datetime) -> bool:
    """Whether one of these times of the day ("HH:MM") lies after `since` and not after `now`, both in UTC.

    A clock that was put forward, or a machine that slept, is past several at once: they are one. A clock that was put
    back has passed none.
    """
    if now <= since:
        return False
    if now - since >= timedelta(days=1):
        return bool(at)
    for time in at:
        hour, minute = time.split(":")
        today = now.replace(hour=int(hour), minute=int(minute), second=0, microsecond=0)
        if any(since < moment <= now for moment in (today, today - timedelta(days=1))):
            return True
    return False
