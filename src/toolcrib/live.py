"""Lists that are kept fresh while a gateway runs: servers are listened to, and asked again when it is time.

Floor 4. Above: `crib.py` (`watch`). Below: `pace.py` says when, `sessions.py` opens, `refreshing.py`
lists and publishes.

    announced ┐
    too old   ├─▶ pace ─▶ due ─▶ session open, listened to ─▶ list ─▶ published ─▶ clients told
    the hour  │                     └─ lost ─▶ wanted again, over a new session
    other key ┘

Invariants
1. One task and one session a server, of its own: what a server does costs only itself (I12), and no session of calls.
2. A list is taken after the server is listened to, over the same session, so that nothing happens unseen in between.
   A session that was lost is opened again, and then the list is taken, whatever was announced; so is one behind
   which an older thing runs than a refresh elsewhere has seen.
3. A server that announces nothing is asked by the clock alone, and not kept open.
4. Nothing of a definition is told or logged: server ids, numbers, and faults as a command tells them.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from toolcrib.connectors.base import Connector
from toolcrib.connectors.observing import Observing
from toolcrib.connectors.watching import Announcing
from toolcrib.errors import ToolcribError
from toolcrib.pace import Limits, Pace, hour_has_come
from toolcrib.refreshing import Taken
from toolcrib.sessions import listing_credentials
from toolcrib.settings import Settings
from toolcrib.types import ServerSpec, ServerStatus

TICK_S = 2.0
"""How often settings, secrets and the hour are looked at."""
_MAX_PARALLEL = 8
_MAX_FAILURES = 2
"""Of lists in a row over one session, before another one is opened."""
_log = logging.getLogger(__name__)


class Clock(Protocol):
    """What time it is, and waiting for it; tests have one of their own."""

    def now(self) -> float: ...

    def utc(self) -> datetime: ...

    async def wait(self, event: asyncio.Event, *, until: float | None) -> None:
        """Returns once the event is set, or at that time."""
        ...


class Taker(Protocol):
    """`refreshing.Refreshing`."""

    async def known(self) -> dict[str, ServerStatus]: ...

    async def take(self, server_id: str, connector: Connector, *, credential: str) -> Taken: ...

    async def failed(self, server_id: str, error: ToolcribError) -> Taken: ...


class Opener(Protocol):
    """`sessions.Sessions`."""

    def for_listing(self, server_id: str) -> Connector: ...

    def mark(self, server_id: str) -> tuple[object, ...]: ...


class RealClock:
    def now(self) -> float:
        return time.monotonic()

    def utc(self) -> datetime:
        return datetime.now(UTC)

    async def wait(self, event: asyncio.Event, *, until: float | None) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(None if until is None else max(0.0, until - self.now())):
                await event.wait()


@dataclass(slots=True, kw_only=True, eq=False)
class _Watched:
    """One server.

    Args:
        mark: what a session would be opened with now; `opened_with`: what it was.
        connector: its open session. listens: whether it announces; lost: it announces no more.
    """

    server_id: str
    pace: Pace
    mark: tuple[object, ...]
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    connector: Connector | None = None
    opened_with: tuple[object, ...] = ()
    credential: str = ""
    listens: bool = False
    lost: bool = False
    n_failed: int = 0
    fault: str = ""
    task: asyncio.Task[None] | None = None


class Live:
    """Keeps all enabled servers' lists fresh, for as long as `run` runs.

    Args:
        settings: those of this moment. sessions: how servers are opened under such.
        given: servers whose connector is not ours to close.
        tell: told in a line what happened. on_published: awaited after another list was published.
    """

    def __init__(
        self,
        taker: Taker,
        *,
        settings: Callable[[], Settings],
        sessions: Callable[[Settings], Opener],
        given: Collection[str] = (),
        tell: Callable[[str], None] = lambda _text: None,
        on_published: Callable[[], Awaitable[object]] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._taker = taker
        self._settings = settings
        self._sessions = sessions
        self._given = given
        self._tell = tell
        self._on_published = on_published
        self._clock = clock or RealClock()
        self._servers: dict[str, _Watched] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(_MAX_PARALLEL)
        self._known: Mapping[str, ServerStatus] = {}

    async def run(self) -> None:
        """Watches until it is cancelled; then every session that it opened is closed."""
        self._known = await self._taker.known()
        looked_at = self._clock.utc()
        try:
            while True:
                now = self._clock.utc()
                try:
                    self._look(since=looked_at, now=now)
                except Exception:  # noqa: BLE001 - what is watched is watched on
                    _log.exception("looking which servers to watch failed")
                looked_at = now
                await self._clock.wait(asyncio.Event(), until=self._clock.now() + TICK_S)
        finally:
            for server_id in list(self._servers):
                self._leave(server_id)
            await asyncio.gather(*self._ending, return_exceptions=True)

    # --- which servers, and when

    def _look(self, *, since: datetime, now: datetime) -> None:
        """Take note of other settings, other secrets and the hour."""
        settings = self._settings()
        enabled = {server.server_id: server for server in settings.servers if server.enabled}
        for server_id in [server_id for server_id in self._servers if server_id not in enabled]:
            self._leave(server_id)
        hour = hour_has_come(settings.refresh.at, since=since, now=now)
        for server_id, spec in enabled.items():
            limits, mark = _limits(settings, spec), _mark(self._sessions(settings), server_id)
            one = self._servers.get(server_id)
            if one is None:
                one = self._servers[server_id] = self._new(spec, limits=limits, mark=mark)
                one.task = asyncio.create_task(self._keep(one), name=f"toolcrib watches {server_id}")
                continue
            if hour or mark != one.mark:
                one.pace.hurry()
            one.mark, one.pace.limits = mark, limits
            one.woken.set()

    def _new(self, spec: ServerSpec, *, limits: Limits, mark: tuple[object, ...]) -> _Watched:
        status = self._known.get(spec.server_id)
        now, listed_at = self._clock.now(), None
        if status is not None and status.listed_at and not self._may_announce(spec, status):
            age_s = (self._clock.utc() - datetime.fromisoformat(status.listed_at)).total_seconds()
            listed_at = now - max(0.0, age_s)
        return _Watched(server_id=spec.server_id, pace=Pace(limits, listed_at=listed_at, now=now), mark=mark)

    def _may_announce(self, spec: ServerSpec, status: ServerStatus) -> bool:
        """Whether it is worth a session to find out. One that says what it can, and not that, is not opened for it."""
        if not self._settings().refresh.watch:
            return False
        if spec.server_id in self._given:
            return isinstance(self._sessions(self._settings()).for_listing(spec.server_id), Announcing)
        tools = status.capabilities.get("tools")
        return bool(isinstance(tools, Mapping) and tools.get("listChanged")) or status.state != "fresh"

    def _leave(self, server_id: str) -> None:
        """Watch this server no more."""
        one = self._servers.pop(server_id)
        if one.task is not None:
            one.task.cancel()
            self._ending.add(one.task)
            one.task.add_done_callback(self._ending.discard)

    # --- one server

    async def _keep(self, one: _Watched) -> None:
        try:
            while True:
                one.woken.clear()
                due_at = one.pace.due_at()
                if due_at is not None and due_at <= self._clock.now():
                    await self._turn(one)
                else:
                    await self._clock.wait(one.woken, until=due_at)
        finally:
            await self._close(one)

    async def _turn(self, one: _Watched) -> None:
        """List it once. Whatever comes of it, the next turn comes when it is due."""
        one.pace.began(self._clock.now())
        taken: Taken | None = None
        try:
            async with self._slots:
                taken = await self._listed(one)
        except ToolcribError as fault:
            self._note_fault(one, str(fault))
        except Exception:  # noqa: BLE001 - of one server; the others are watched on
            _log.exception("watching server %r failed", one.server_id)
        finally:
            one.pace.ended(self._clock.now(), taken.outcome if taken is not None else "failed")
        if taken is not None:
            await self._note(one, taken)

    async def _listed(self, one: _Watched) -> Taken:
        """Raises ToolcribError: nothing could be published."""
        try:
            connector = await self._opened(one)
        except ToolcribError as fault:
            await self._close(one)
            return await self._taker.failed(one.server_id, fault)
        taken = await self._taker.take(one.server_id, connector, credential=one.credential)
        one.n_failed = one.n_failed + 1 if taken.outcome == "failed" else 0
        if not one.listens or one.n_failed >= _MAX_FAILURES:
            await self._close(one)
        return taken

    async def _opened(self, one: _Watched) -> Connector:
        """The open session, a new one where there is none or it is of no more use. Raises ToolcribError."""
        settings = self._settings()
        wants_watch = settings.refresh.watch
        known = one.connector
        if known is not None and (
            known.broken
            or one.lost
            or one.opened_with != one.mark
            or not wants_watch
            or await self._is_outdated(one, known)
        ):
            await self._close(one)
        if one.connector is None:
            sessions = self._sessions(settings)
            one.opened_with = one.mark = _mark(
                sessions, one.server_id
            )  # before it is opened: what changes after counts
            one.credential = listing_credentials(settings).get(one.server_id, "")
            connector = one.connector = sessions.for_listing(one.server_id)
            one.lost, one.n_failed = False, 0
            if wants_watch and isinstance(connector, Announcing):
                one.listens = await self._listened(one, connector)
        return one.connector

    async def _is_outdated(self, one: _Watched, connector: Connector) -> bool:
        """Whether something else was seen to run since, by a refresh elsewhere: an old process must not undo that."""
        if one.server_id in self._given or not isinstance(connector, Observing):
            return False
        status = (await self._taker.known()).get(one.server_id)
        if status is None or status.provenance is None:
            return False
        try:
            return (await connector.observed()).compared != status.provenance.compared
        except ToolcribError:
            return False  # listing it will tell

    async def _listened(self, one: _Watched, connector: Announcing) -> bool:
        """Whether it announces. One that could not be asked can be listed all the same, and is asked again later."""
        try:
            return await connector.watch(lambda: self._heard(one, connector), lambda: self._lost(one, connector))
        except ToolcribError:
            if connector.broken:
                raise
            self._lost(one, connector)
            return False

    def _heard(self, one: _Watched, connector: Connector) -> None:
        if one.connector is connector:
            one.pace.announced(self._clock.now())
            one.woken.set()

    def _lost(self, one: _Watched, connector: Connector) -> None:
        if one.connector is connector and not one.lost:
            one.lost = True
            self._heard(one, connector)

    async def _close(self, one: _Watched) -> None:
        connector, one.connector, one.listens = one.connector, None, False
        if connector is not None and one.server_id not in self._given:
            await connector.aclose()

    # --- what is told

    async def _note(self, one: _Watched, taken: Taken) -> None:
        if taken.fault:
            self._note_fault(one, taken.fault)
        elif one.fault:
            one.fault = ""
            self._tell(f"server {one.server_id!r} lists its tools again")
        change = taken.change
        if change.added or change.changed or change.removed:
            numbers = f"{len(change.added)} added, {len(change.changed)} changed, {len(change.removed)} removed"
            waits = "; what is not approved waits: toolcrib review" if change.added or change.changed else ""
            self._tell(f"server {one.server_id!r}: {numbers}{waits}")
        if taken.outcome == "changed" and self._on_published is not None:
            try:
                await self._on_published()
            except Exception:  # noqa: BLE001 - whoever is told must not end the watching
                _log.exception("telling of a new list failed")

    def _note_fault(self, one: _Watched, fault: str) -> None:
        first = fault.partition("\n")[0]
        if first != one.fault:
            one.fault = first
            self._tell(f"server {one.server_id!r} gave no new list, the last one stays: {fault}")


def _mark(sessions: Opener, server_id: str) -> tuple[object, ...]:
    try:
        return sessions.mark(server_id)
    except ToolcribError:
        return ()


def _limits(settings: Settings, spec: ServerSpec) -> Limits:
    refresh = settings.refresh
    return Limits(
        debounce_s=refresh.debounce_s,
        min_interval_s=refresh.min_interval_s,
        every_s=refresh.every_s if spec.refresh_s is None else spec.refresh_s,
    )
