"""`toolcrib lock check`: the lock held against what servers list now.

    settings, lock ─▶ servers listed, in memory ─▶ comparison ─▶ LockCheck

Floor 4. Above: `cli/lock.py`. Below: `catalog/comparison.py` compares, `connectors/` lists.

Invariants
1. A check needs settings and lock alone. It publishes nothing, and approves nothing; where there is a store, what was
   approved is read from it, so that changes can be told more closely.
2. A server that cannot be listed is a failure of its own, and none of its tools is called removed. So is one that lists
   nothing where tools of it are approved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from toolcrib.catalog.comparison import NOTHING_KNOWN, Comparison, Known, Row, compare
from toolcrib.catalog.lock import read_lock
from toolcrib.catalog.pins import Lock, ServerPin
from toolcrib.catalog.publication import publish
from toolcrib.connectors.listing import ListingFailure, OnProgress, list_all
from toolcrib.curation import now
from toolcrib.errors import ConfigError, StoreError, ToolcribError
from toolcrib.gate.arguments import schema_fault
from toolcrib.sessions import Sessions
from toolcrib.settings import Settings
from toolcrib.store.sqlite import SqliteStore
from toolcrib.types import Publication, ServerListing, ServerSpec, ServerStatus

_STORE_FILE = "store.db"


@dataclass(frozen=True, slots=True, kw_only=True)
class LockCheck:
    """What differs from the lock.

    Args:
        failed: server id -> why it could not be listed. unpinned: server id -> the pinned line to use, "" if unknown.
        left_out: tool id -> why it cannot be served, of those that nobody approved. notes: what else is to be said.
    """

    rows: tuple[Row, ...]
    n_servers: int
    n_tools: int
    failed: Mapping[str, str] = field(default_factory=dict)
    unpinned: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 nothing differs, 1 something does, 3 a server could not be read."""
        return 3 if self.failed else 1 if self.rows else 0


async def check_live(
    settings: Settings, *, server_ids: Sequence[str] = (), on_progress: OnProgress | None = None
) -> LockCheck:
    """The lock against what the servers list now.

    Args:
        server_ids: only these; all enabled ones if empty.
    Raises:
        ConfigError: an unknown or disabled server, or no lock. CatalogError: the lock is damaged.
    """
    servers = _chosen(settings, server_ids)
    lock = _lock_of(settings)
    sessions = Sessions(lambda: settings, given={})
    listings = await list_all([s.server_id for s in servers], sessions.for_listing, on_progress=on_progress)
    failed = {one.server_id: _told(one.error) for one in listings if isinstance(one, ListingFailure)}
    whole = [one for one in listings if isinstance(one, ServerListing)]
    approved = servers_with_tools(lock)
    failed |= {one.server_id: _EMPTY for one in whole if not one.tools and one.server_id in approved}
    publication = publish(
        None,
        listings=[one for one in whole if one.server_id not in failed],
        failures={},
        at=now(),
        schema_fault=schema_fault,
        approved=lock.approved,
    )
    return _checked(settings, lock, publication, servers=servers, everything=not server_ids, failed=failed)


def check_published(settings: Settings, *, server_ids: Sequence[str] = ()) -> LockCheck:
    """The lock against what was published last. Raises as `check_live`, and StoreError: nothing was published."""
    servers = _chosen(settings, server_ids)
    lock = _lock_of(settings)
    with _store(settings) as store:
        publication = store.current() if store else None
    if publication is None:
        raise StoreError("there is no catalog yet", where=str(settings.root), hint="run `toolcrib refresh`")
    listed = {status.server_id for status in publication.servers if status.state != "missing"}
    failed = {s.server_id: "it was never listed; run `toolcrib refresh`" for s in servers if s.server_id not in listed}
    return _checked(settings, lock, publication, servers=servers, everything=not server_ids, failed=failed)


_EMPTY = (
    "it lists no tools, and tools of it are approved\n"
    "  -> if that is right: toolcrib refresh --server ID --accept-empty, then lock write --prune"
)


def _chosen(settings: Settings, server_ids: Sequence[str]) -> list[ServerSpec]:
    enabled = [server for server in settings.servers if server.enabled]
    known = [server.server_id for server in enabled]
    for server_id in server_ids:
        if server_id not in known:
            raise ConfigError(f"no enabled server {server_id!r}", where=str(settings.path), hint=f"there are {known}")
    return [server for server in enabled if not server_ids or server.server_id in server_ids]


def _lock_of(settings: Settings) -> Lock:
    if not settings.lock.exists():
        hint = "`toolcrib approve` or `toolcrib lock write` makes it; keep it under version control"
        raise ConfigError("there is no lock", where=str(settings.lock), hint=hint)
    return read_lock(settings.lock)


def _checked(
    settings: Settings,
    lock: Lock,
    publication: Publication,
    *,
    servers: Sequence[ServerSpec],
    everything: bool,
    failed: Mapping[str, str],
) -> LockCheck:
    found, notes = _compared(settings, lock, publication, servers=servers, everything=everything)
    ids = {server.server_id for server in servers}
    statuses = [status for status in publication.servers if status.server_id in ids and status.state != "missing"]
    return LockCheck(
        rows=found.rows,
        n_servers=len(servers),
        n_tools=sum(status.n_tools for status in statuses),
        failed=dict(sorted(failed.items())),
        unpinned={
            s.server_id: s.provenance.advice for s in statuses if s.provenance and s.provenance.is_unpinned_start
        },
        left_out=found.left_out,
        notes=(*notes, *_notes(statuses, lock)),
    )


def _compared(
    settings: Settings, lock: Lock, publication: Publication, *, servers: Sequence[ServerSpec], everything: bool
) -> tuple[Comparison, tuple[str, ...]]:
    """The comparison, with what a store knows if there is one that can be read."""
    configured = [server.server_id for server in settings.servers] if everything else None

    def against(known: Known) -> Comparison:
        return compare(lock, publication, servers=servers, configured=configured, known=known)

    bare = against(NOTHING_KNOWN)
    if not bare.rows:  # the store could only say more of what differs
        return bare, ()
    try:
        with _store(settings) as store:
            return (against(_known(store)) if store else bare), ()
    except StoreError as fault:
        return bare, (f"what was approved before is not known: {fault.what}",)


@contextmanager
def _store(settings: Settings) -> Iterator[SqliteStore | None]:
    """The store, if there is one: a check makes none."""
    path = settings.store / _STORE_FILE
    if not path.exists():
        yield None
        return
    store = SqliteStore(path)
    try:
        yield store
    finally:
        store.close()


def _known(store: SqliteStore) -> Known:
    approved: dict[str, set[str]] = {}
    for event in store.reviews():
        if event.action == "approve":
            approved.setdefault(event.tool_id, set()).add(event.digest)
    return Known(definition_of=store.definition, approved_before=approved)


def _notes(statuses: Sequence[ServerStatus], lock: Lock) -> list[str]:
    approved = servers_with_tools(lock)
    notes = [
        f"server {s.server_id}: its list is of {s.listed_at[:16]} ({s.state}): {s.error}"
        for s in statuses
        if s.state in ("partial", "stale")
    ]
    return notes + [
        f"server {s.server_id}: nothing is pinned of what it is; `toolcrib lock write` does"
        for s in statuses
        if s.server_id in approved and is_unpinned(s, lock.servers.get(s.server_id))
    ]


def servers_with_tools(lock: Lock) -> frozenset[str]:
    """The servers of which tools are approved."""
    return frozenset(tool_id.partition(".")[0] for tool_id in lock.tools)


def is_unpinned(status: ServerStatus, pin: ServerPin | None) -> bool:
    """Whether nothing is pinned of what a server is, though something could be."""
    is_known = status.provenance is not None and bool(status.provenance.compared)
    return pin is None or (not pin.provenance and is_known)


def _told(error: ToolcribError) -> str:
    return error.what + (f"\n  -> {error.hint}" if error.hint else "")
