"""Refresh: lists are taken, checked, compared, and published at once.

Floor 4. Above: `crib.py` (a command, a library call) and `live.py` (a gateway that runs). Below: `connectors/` lists,
`catalog/` compares and publishes, `in_force.py` has the pipeline ready before the store says so.

    list ─▶ every page ─▶ checked ─▶ next publication ─▶ diff ─▶ pipeline prepared ─▶ store, in one transaction

Invariants
1. A refresh publishes once, at the end, everything or nothing (I8); it approves nothing (I4).
2. A server that fails keeps its last whole list. So does one that lists nothing where it had tools: that is what a
   server says whose own backend is down; an operator who knows better says so (`accept_empty`).
3. One server is listed by one refresh at a time, so that an older list is never published after a newer one.
4. What has not changed is not published as another thing: same publication, same mark, same pipeline.
5. A call to a tool that its server has just listed otherwise, or not at all, waits for the publication and is judged
   by it (`settled`); everybody else is answered on the last whole list until then.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

from toolcrib import curation
from toolcrib.assembly import Assembly
from toolcrib.catalog.diff import CatalogDiff, diff
from toolcrib.catalog.publication import publish
from toolcrib.connectors.base import Connector
from toolcrib.connectors.listing import ListingFailure, OnProgress, list_all
from toolcrib.errors import ConfigError, RefreshError, StoreError, ToolcribError
from toolcrib.gate.arguments import schema_fault
from toolcrib.in_force import InForce
from toolcrib.sessions import Sessions, listing_credentials
from toolcrib.settings import Settings
from toolcrib.store.protocol import Published, Store
from toolcrib.types import CatalogSnapshot, Provenance, Publication, ServerListing, ServerStatus

Listed = ServerListing | ListingFailure


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshReport:
    """What a refresh found.

    Args:
        failed: server id -> why; those servers keep what they had. partial: those of them whose list broke off, or was
            empty where it was not. credentials: server id -> with which credential its list was taken, by name.
    """

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    n_unchanged: int
    failed: Mapping[str, str]
    partial: tuple[str, ...]
    credentials: Mapping[str, str]
    n_servers: int
    n_tools: int
    n_in_service: int
    withheld: Mapping[str, int]
    catalog_version: str

    def to_dict(self) -> dict[str, Any]:
        return {key: list(v) if isinstance(v, tuple) else v for key, v in asdict(self).items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What came of one server's turn. `fault`: why there is no new list, or ""."""

    outcome: Literal["changed", "same", "failed"]
    change: CatalogDiff
    fault: str


class Refreshing:
    """Takes lists and publishes them.

    Args:
        given: server id -> connector to use instead of the configured way to reach it; not ours to close.
    """

    def __init__(self, store: Store, *, force: InForce, assembly: Assembly, given: Mapping[str, Connector]) -> None:
        self._store = store
        self._force = force
        self._assembly = assembly
        self._given = given
        self._locks: dict[str, asyncio.Lock] = {}
        self._waiting: list[tuple[Listed, asyncio.Future[Published]]] = []
        self._publishing = asyncio.Lock()
        self._suspects: dict[str, asyncio.Event] = {}

    async def refresh(
        self, *, servers: Sequence[str] = (), accept_empty: bool = False, on_progress: OnProgress | None = None
    ) -> RefreshReport:
        """All servers, or those named, asked and published. As `Crib.refresh` says."""
        settings = self._force.reloaded()
        asked = _asked(settings, servers)
        sessions = Sessions(lambda: settings, given=self._given)
        async with self._held(asked):
            listings = await list_all(asked, sessions.for_listing, on_progress=on_progress, keep_open=self._given)
            credentials = listing_credentials(settings)
            listings = tuple(_taken_with(credentials[listing.server_id], listing) for listing in listings)
            may_be_empty = asked if accept_empty else ()
            work = asyncio.to_thread(self._publish, listings, settings, mend=not servers, may_be_empty=may_be_empty)
            with self._suspected(listings):
                done = await _to_its_end(asyncio.ensure_future(work))
        return await asyncio.to_thread(self._report, done, settings, asked)

    async def take(self, server_id: str, connector: Connector, *, credential: str) -> Taken:
        """One server's list, over a connector that stays open.

        Args:
            credential: what the connector was opened with, by name.
        Raises:
            ConfigError: the settings cannot be used now, or the server is not among them any more.
            StoreError: nothing could be published.
        """
        async with self._held([server_id]):
            (listing,) = await list_all([server_id], lambda _: connector, keep_open=[server_id])
            with self._suspected([listing]):
                return _taken(await self._joined(_taken_with(credential, listing)), server_id)

    async def failed(self, server_id: str, error: ToolcribError) -> Taken:
        """A server that could not be opened. Raises as `take`."""
        async with self._held([server_id]):
            return _taken(await self._joined(ListingFailure(server_id, error)), server_id)

    async def known(self) -> dict[str, ServerStatus]:
        """How each server's list was last taken, by server id; nothing where nothing can be read."""
        try:
            publication = await asyncio.to_thread(self._store.current)
        except StoreError:
            return {}
        return {status.server_id: status for status in publication.servers} if publication else {}

    async def settled(self, tool_id: str) -> None:
        """Returns at once, or, for a tool that is listed as another one now, once that is published."""
        suspects = self._suspects
        snapshot = self._force.snapshot if suspects and tool_id not in suspects else None
        if snapshot is not None:  # it may be called by an old name
            tool_id = next((tool.tool_id for tool in snapshot.tools if tool_id in tool.metadata.aliases), tool_id)
        if (published := suspects.get(tool_id)) is not None:
            await published.wait()

    @contextmanager
    def _suspected(self, listings: Sequence[Listed]) -> Iterator[None]:
        """Meanwhile, what is in service and was not listed as it is is a suspect."""
        published = asyncio.Event()
        suspects = dict.fromkeys(_not_as_served(listings, self._force.snapshot), published)
        self._suspects |= suspects
        try:
            yield
        finally:
            published.set()
            for tool_id in suspects:
                if self._suspects.get(tool_id) is published:
                    del self._suspects[tool_id]

    async def _joined(self, listing: Listed) -> Published:
        """Publish this list, together with those that came while the one before was published.

        When a gateway starts, all its servers are listed at once, and each publication reads the whole catalog.
        """
        mine: asyncio.Future[Published] = asyncio.get_running_loop().create_future()
        self._waiting.append((listing, mine))
        async with self._publishing:
            if not mine.done():
                together, self._waiting = self._waiting, []
                listings = [listing for listing, _ in together]
                work = asyncio.ensure_future(asyncio.to_thread(self._publish_next, listings))
                work.add_done_callback(lambda done: _hand_out(done, [waiting for _, waiting in together]))
                await _to_its_end(work)
        return await mine

    def _publish_next(self, listings: Sequence[Listed]) -> Published:
        settings = self._force.reloaded()
        enabled = _asked(settings, ())
        still = [listing for listing in listings if listing.server_id in enabled]
        return self._publish(still, settings, repeated=True)

    def _publish(
        self,
        listings: Sequence[Listed],
        settings: Settings,
        *,
        mend: bool = False,
        may_be_empty: Collection[str] = (),
        repeated: bool = False,
    ) -> Published:
        """Publish these listings, with the pipeline that they make prepared.

        Args:
            mend: whether a damaged publication counts as none: only where every server was asked, since other parts
                would be lost.
            repeated: a server is asked again and again, and a fault that is known is not news.
        """

        def made(before: Publication | None) -> Publication:
            after = next_publication(
                before,
                listings,
                settings=settings,
                may_be_empty=may_be_empty,
                known_faults=_faults(before) if repeated else {},
            )
            self._force.prepare(after)
            return after

        done = self._store.publish(made, mend=mend)
        if done.before is not None and done.before.tools != done.after.tools and not _is_another(done):
            self._force.forget()  # what had been changed in the store under an unchanged mark was mended
        return done

    def _report(self, done: Published, settings: Settings, asked: Sequence[str]) -> RefreshReport:
        snapshot = self._assembly.snapshot(settings, publication=done.after)
        change = diff(done.before, done.after)
        withheld: dict[str, int] = {}
        for tool in snapshot.withheld:
            withheld[tool.code] = withheld.get(tool.code, 0) + 1
        statuses = [status for status in done.after.servers if status.server_id in asked]
        return RefreshReport(
            added=change.added,
            changed=change.changed,
            removed=change.removed,
            n_unchanged=change.n_unchanged,
            failed={status.server_id: status.error for status in statuses if status.error},
            partial=tuple(status.server_id for status in statuses if status.state == "partial"),
            credentials={status.server_id: status.credential for status in statuses if status.state == "fresh"},
            n_servers=len(asked),
            n_tools=len(done.after.tools),
            n_in_service=len(snapshot.tools),
            withheld=withheld,
            catalog_version=snapshot.version,
        )

    @asynccontextmanager
    async def _held(self, server_ids: Sequence[str]) -> AsyncIterator[None]:
        """No other refresh of these servers meanwhile. In order of their ids, so that no two wait for one another."""
        async with AsyncExitStack() as stack:
            for server_id in sorted(server_ids):
                await stack.enter_async_context(self._locks.setdefault(server_id, asyncio.Lock()))
            yield


def next_publication(
    before: Publication | None,
    listings: Sequence[Listed],
    *,
    settings: Settings,
    may_be_empty: Collection[str] = (),
    known_faults: Mapping[str, str] = MappingProxyType({}),
) -> Publication:
    """What is published once these lists were taken.

    Args:
        may_be_empty: servers that may list nothing, whatever they had.
        known_faults: server id -> what is already published of it. A fault that begins alike leaves it as it is: what
            follows, a server's last words, is another text each time.
    """
    whole: list[ServerListing] = []
    failures: dict[str, str] = {}
    partial: list[str] = []
    for listing in listings:
        n_before = _n_tools(before, listing.server_id)
        if isinstance(listing, ServerListing):
            if listing.tools or not n_before or listing.server_id in may_be_empty:
                whole.append(listing)
                continue
            listing = ListingFailure(listing.server_id, _emptied(listing.server_id, n_before))
            partial.append(listing.server_id)
        elif listing.is_partial:
            partial.append(listing.server_id)
        told = _told(listing.error)
        known = known_faults.get(listing.server_id, "")
        failures[listing.server_id] = known if _first_line(known) == _first_line(told) else told
    asked = {listing.server_id for listing in listings}
    return publish(
        before,
        listings=whole,
        failures=failures,
        partial=partial,
        untouched=[server.server_id for server in settings.servers if server.server_id not in asked],
        at=curation.now(),
        schema_fault=schema_fault,
    )


def _faults(publication: Publication | None) -> dict[str, str]:
    return {status.server_id: status.error for status in publication.servers} if publication else {}


def _first_line(text: str) -> str:
    return text.partition("\n")[0]


def _not_as_served(listings: Sequence[Listed], snapshot: CatalogSnapshot | None) -> list[str]:
    """Tools in service that their servers list otherwise now, or not at all; all of a server that is another one."""
    whole = {listing.server_id: listing for listing in listings if isinstance(listing, ServerListing)}
    if snapshot is None or not whole:
        return []
    were = {status.server_id: status.provenance for status in snapshot.servers}
    others = {
        server_id for server_id, listing in whole.items() if _ran(listing.provenance) != _ran(were.get(server_id))
    }
    entries: dict[tuple[str, object], object] = {}
    for listing in whole.values():
        for entry in listing.tools:
            if isinstance(entry, Mapping) and isinstance(entry.get("name"), str):
                entries[listing.server_id, entry["name"]] = entry
    return [
        tool.tool_id
        for tool in snapshot.tools
        if tool.server_id in others
        or (tool.server_id in whole and entries.get((tool.server_id, tool.name)) != tool.definition)
    ]


def _ran(provenance: Provenance | None) -> object:
    return provenance.compared if provenance is not None else {}


def _taken_with(credential: str, listing: Listed) -> Listed:
    return replace(listing, credential=credential) if isinstance(listing, ServerListing) else listing


def _emptied(server_id: str, n_before: int) -> RefreshError:
    return RefreshError(
        f"listed no tools, where it had {n_before}",
        hint=f"if that is right: toolcrib refresh --server {server_id} --accept-empty",
    )


def _n_tools(publication: Publication | None, server_id: str) -> int:
    return sum(tool.server_id == server_id for tool in publication.tools) if publication else 0


def _asked(settings: Settings, servers: Sequence[str]) -> list[str]:
    """The enabled servers, or those named. Raises ConfigError for one that is not among them."""
    enabled = [server.server_id for server in settings.servers if server.enabled]
    for server_id in servers:
        if server_id not in enabled:
            raise ConfigError(f"no enabled server {server_id!r}", where=str(settings.path), hint=f"there are {enabled}")
    return [server_id for server_id in enabled if not servers or server_id in servers]


def _taken(done: Published, server_id: str) -> Taken:
    """What a publication says of one server."""
    now, before = _part(done.after, server_id), _part(done.before, server_id)
    status = next(iter(now.servers), None)
    fault = status.error if status is not None else ""
    is_same = now.tools == before.tools and now.servers == before.servers
    return Taken(outcome="failed" if fault else "same" if is_same else "changed", change=diff(before, now), fault=fault)


def _part(publication: Publication | None, server_id: str) -> Publication:
    """One server's part, without when it was taken."""
    servers = publication.servers if publication else ()
    return Publication(
        publication_id="",
        at="",
        servers=tuple(replace(status, listed_at="") for status in servers if status.server_id == server_id),
        tools=tuple(tool for tool in (publication.tools if publication else ()) if tool.server_id == server_id),
    )


def _hand_out(done: asyncio.Future[Published], waiting: Sequence[asyncio.Future[Published]]) -> None:
    """Give what came of a publication to all that it was made for."""
    fault = asyncio.CancelledError() if done.cancelled() else done.exception()
    for one in waiting:
        if one.done():
            continue
        if fault is None:
            one.set_result(done.result())
        else:
            one.set_exception(fault)
            one.exception()  # seen, also where nobody waits for it any more


async def _to_its_end(work: asyncio.Future[Published]) -> Published:
    """What came of it. Who is cancelled waits, too: a thread that writes cannot be stopped, and the store must stay."""
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait([work])
        raise


def _is_another(done: Published) -> bool:
    return done.before is None or done.before.publication_id != done.after.publication_id


def _told(error: ToolcribError) -> str:
    """A listing's failure in words: what, where if that is not just the server, what to do."""
    where = "" if not error.where or error.where.startswith("server ") else f"{error.where}: "
    return f"{where}{error.what}" + (f"\n  -> {error.hint}" if error.hint else "")
