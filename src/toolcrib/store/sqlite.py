"""The embedded store: one SQLite file in write-ahead mode.

Above: `crib.py`. Below: the disk.

Invariants
1. A publication becomes current in one transaction, definitions included, or not at all (I8). What nobody can ask for
   any more leaves in the same transaction: other publications, and definitions neither listed nor ever decided about.
2. Reviews are only ever added, each with the hash of the one before; traces, shadows and expired approvals leave by
   age alone.
3. An approval is consumed by one UPDATE, so two callers cannot both use it; a write is reserved in one transaction.
4. A store that cannot be read is a StoreError, whatever is wrong with it; nobody goes on with an empty one. So is a
   file that is not the one that was opened: SQLite would go on reading what was deleted (I2).
5. Only the owner reads it (`_privacy.py`).
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import orjson

from toolcrib.errors import DamagedPublicationError, StoreError
from toolcrib.store._privacy import make_private
from toolcrib.store.protocol import Published
from toolcrib.types import (
    ApiKey,
    ApprovalRequest,
    Channel,
    ListedTool,
    Provenance,
    ProvenanceKind,
    Publication,
    ReviewEvent,
    Revocation,
    RevokedKind,
    ServerStatus,
    ShadowRecord,
    ShadowSide,
    Sighting,
    Stage,
    StageRecord,
    Trace,
)

_FORMAT = 2
_READABLE = (0, 1, 2)
_MAX_PENDING = 100
_MAX_SIGHTINGS = 20
"""Definitions under one tool id that nobody decided about, of which it is known when they were first listed."""
"""Requests for approval that may wait for one caller."""
_PAGE = 200
"""Traces that are read at a time."""
_AFTER_ALL = 2**63 - 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS definitions (digest TEXT PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS publications (
  publication_id TEXT PRIMARY KEY, at TEXT NOT NULL, servers TEXT NOT NULL, entries TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS current (
  one INTEGER PRIMARY KEY CHECK (one = 1), publication_id TEXT NOT NULL, at TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS reviews (
  n INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL, action TEXT NOT NULL, tool_id TEXT NOT NULL,
  digest TEXT NOT NULL, reviewer TEXT NOT NULL, reason TEXT NOT NULL, findings TEXT NOT NULL DEFAULT '[]',
  signer TEXT NOT NULL DEFAULT '', signature TEXT NOT NULL DEFAULT '', previous TEXT NOT NULL DEFAULT '',
  hash TEXT NOT NULL DEFAULT '');
CREATE TABLE IF NOT EXISTS sightings (
  tool_id TEXT NOT NULL, digest TEXT NOT NULL, at TEXT NOT NULL, PRIMARY KEY (tool_id, digest));
CREATE TABLE IF NOT EXISTS catalogs (version TEXT PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS versions (
  kind TEXT NOT NULL, version TEXT NOT NULL, text TEXT NOT NULL, PRIMARY KEY (kind, version));
CREATE TABLE IF NOT EXISTS approvals (
  approval_id TEXT PRIMARY KEY, key TEXT NOT NULL, state TEXT NOT NULL, expires_at TEXT NOT NULL, body TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS approvals_by_key ON approvals (key);
CREATE TABLE IF NOT EXISTS api_keys (key_id TEXT PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS revocations (
  kind TEXT NOT NULL, value TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (kind, value));
CREATE TABLE IF NOT EXISTS offers (
  holder TEXT NOT NULL, tool_id TEXT NOT NULL, digest TEXT NOT NULL, at TEXT NOT NULL,
  PRIMARY KEY (holder, tool_id, digest));
CREATE INDEX IF NOT EXISTS offers_by_age ON offers (at);
CREATE TABLE IF NOT EXISTS writes (key TEXT PRIMARY KEY, until TEXT NOT NULL, trace_id TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS traces (
  n INTEGER PRIMARY KEY AUTOINCREMENT, trace_id TEXT UNIQUE NOT NULL, at TEXT NOT NULL, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS shadows (
  n INTEGER PRIMARY KEY AUTOINCREMENT, trace_id TEXT NOT NULL, at TEXT NOT NULL, body BLOB NOT NULL);
"""
_APPEND_ONLY = """
CREATE TRIGGER IF NOT EXISTS reviews_stay BEFORE DELETE ON reviews
  BEGIN SELECT RAISE(ABORT, 'the review log is append-only'); END;
CREATE TRIGGER IF NOT EXISTS reviews_are_final BEFORE UPDATE ON reviews
  BEGIN SELECT RAISE(ABORT, 'the review log is append-only'); END;
"""
_SEALED = ("signer", "signature", "previous", "hash")
_CURRENT = (
    "SELECT c.publication_id, c.at, CAST(servers AS BLOB), CAST(entries AS BLOB)"
    " FROM current c LEFT JOIN publications p USING (publication_id)"
)
_REVIEW = ("at", "action", "tool_id", "digest", "reviewer", "reason", "findings", *_SEALED)
_SINCE_FORMAT_2 = ("findings", *_SEALED)


class SqliteStore:
    """A store in one file. Safe to share between threads and between processes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        try:
            make_private(path)
            self._file = _identity(path)
            self._db = sqlite3.connect(path, check_same_thread=False, timeout=10.0, isolation_level=None)
        except (sqlite3.Error, OSError) as fault:
            raise self._not_opened(fault) from fault
        try:
            self._prepare()
        except sqlite3.Error as fault:
            self._db.close()
            raise self._not_opened(fault) from fault
        except StoreError:
            self._db.close()
            raise

    def _prepare(self) -> None:
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        (found,) = self._db.execute("PRAGMA user_version").fetchone()
        if found not in _READABLE:
            raise StoreError(f"the store has format {found}, this Toolcrib reads {_FORMAT}", where=str(self._path))
        self._db.executescript(_SCHEMA)
        if found == 1:
            self._widen_reviews()
        self._db.executescript(_APPEND_ONLY)
        self._db.execute(f"PRAGMA user_version={_FORMAT}")

    def _widen_reviews(self) -> None:
        """Columns that format 1 had not; another process may be adding them at this moment."""
        self._db.execute("BEGIN IMMEDIATE")
        there = {name for _, name, *_ in self._db.execute("PRAGMA table_info(reviews)")}
        for column in _SINCE_FORMAT_2:
            if column not in there:
                default = "[]" if column == "findings" else ""
                self._db.execute(f"ALTER TABLE reviews ADD COLUMN {column} TEXT NOT NULL DEFAULT '{default}'")
        self._db.execute("COMMIT")

    def _not_opened(self, fault: Exception) -> StoreError:
        hint = "check the folder's permissions and disk"
        return StoreError(f"the store cannot be opened: {fault}", where=str(self._path), hint=hint)

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._check_file()
            try:
                self._db.execute("BEGIN IMMEDIATE")
                try:
                    yield self._db
                    self._db.execute("COMMIT")
                except BaseException:  # whatever ends the block, an interrupt too, undoes it and goes on
                    if self._db.in_transaction:
                        self._db.execute("ROLLBACK")
                    raise
            except sqlite3.Error as fault:
                raise StoreError(f"the store cannot be written: {fault}", where=str(self._path)) from fault

    def _rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._read((sql, values))[0]

    def _read(self, *queries: tuple[str, tuple[Any, ...]]) -> list[list[tuple[Any, ...]]]:
        """The rows of each query, all of them as of one moment."""
        with self._lock:
            self._check_file()
            try:
                self._db.execute("BEGIN")
                try:
                    return [self._db.execute(sql, values).fetchall() for sql, values in queries]
                finally:
                    self._db.execute("ROLLBACK")
            except sqlite3.Error as fault:
                raise StoreError(f"the store cannot be read: {fault}", where=str(self._path)) from fault

    def _check_file(self) -> None:
        hint = "start again; `toolcrib refresh` makes a new catalog"
        try:
            found = _identity(self._path)
        except OSError as fault:
            raise StoreError(f"the store's file is gone: {fault}", where=str(self._path), hint=hint) from fault
        if found != self._file:
            raise StoreError("another file lies where the store was opened", where=str(self._path), hint=hint)

    @contextmanager
    def _parsing(self, what: str, kind: type[StoreError] = StoreError) -> Iterator[None]:
        """Whatever may be wrong with what others wrote into the file is a StoreError."""
        try:
            yield
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as fault:
            hint = "run `toolcrib refresh`" if kind is DamagedPublicationError else ""
            raise kind(f"{what} in the store is damaged: {fault!r}", where=str(self._path), hint=hint) from fault

    # --- catalog

    def publish(self, make: Callable[[Publication | None], Publication], *, mend: bool = True) -> Published:
        """Make another publication the current one, whole.

        Args:
            make: the current publication, or None where there is none -> the next one. Asked once more where somebody
                else published meanwhile, so that two refreshes of some servers each do not undo one another. The store
                is not held while it works: requests go on being traced.
            mend: whether a damaged publication counts as none; where parts of it would be kept, it may not.
        Raises:
            DamagedPublicationError: there is one that cannot be read, and it may not be mended.
        """
        while True:
            found, definitions = self._read((_CURRENT, ()), ("SELECT digest, body FROM definitions", ()))
            try:
                before = self._publication(found, definitions)
            except DamagedPublicationError:
                if not mend:
                    raise
                before = None  # it serves nobody any more; another one is how it is mended
            after = make(before)
            if self._put_publication(after, instead_of=found, stored=dict(definitions)):
                return Published(before=before, after=after)

    def _put_publication(
        self, after: Publication, *, instead_of: list[tuple[Any, ...]], stored: Mapping[str, bytes]
    ) -> bool:
        """Whether it was written; nothing is, where the current publication is not the one of these rows any more.

        Args:
            stored: the definitions there are. What stands there is not written again, since traces wait meanwhile;
                what was changed there is, which mends it.
        """
        bodies = {t.digest: _dump(t.definition) for t in after.tools}
        others = [(digest, body) for digest, body in bodies.items() if stored.get(digest) != body]
        servers = json.dumps([asdict(server) for server in after.servers])
        entries = json.dumps([(t.server_id, t.name, t.digest, t.fault) for t in after.tools])
        with self._transaction() as db:
            if db.execute("SELECT publication_id, at FROM current").fetchall() != [row[:2] for row in instead_of]:
                return False
            db.executemany("INSERT OR REPLACE INTO definitions VALUES (?, ?)", others)
            db.execute(
                "INSERT OR REPLACE INTO publications VALUES (?, ?, ?, ?)",
                (after.publication_id, after.at, servers, entries),
            )
            db.execute("INSERT OR REPLACE INTO current VALUES (1, ?, ?)", (after.publication_id, after.at))
            sighted = set(db.execute("SELECT tool_id, digest FROM sightings"))
            seen = {(f"{t.server_id}.{t.name}", t.digest) for t in after.tools} - sighted
            db.executemany("INSERT INTO sightings VALUES (?, ?, ?)", [(*one, after.at) for one in sorted(seen)])
            counts = Counter(tool_id for tool_id, _ in sighted)
            _forget_sightings(db, {tool_id for tool_id, _ in seen if counts[tool_id] >= _MAX_SIGHTINGS})
            _drop_unreachable(db, listed=bodies.keys())
        return True

    def current(self) -> Publication | None:
        """The publication in force, or None before the first refresh.

        Raises:
            DamagedPublicationError: it is there and is none; publishing another one mends it.
        """
        return self._publication(*self._read((_CURRENT, ()), ("SELECT digest, body FROM definitions", ())))

    def _publication(
        self, found: Sequence[tuple[Any, ...]], definitions: Sequence[tuple[Any, ...]]
    ) -> Publication | None:
        if not found:
            return None
        publication_id, at, servers, entries = found[0]
        bodies = dict(definitions)
        with self._parsing("the publication", DamagedPublicationError):
            return Publication(
                publication_id=publication_id,
                at=at,
                servers=tuple(_status(status) for status in json.loads(servers)),
                tools=tuple(_listed(entry, bodies) for entry in json.loads(entries)),
            )

    def sightings(self, tool_id: str) -> tuple[Sighting, ...]:
        """When each definition was first listed under this tool id, oldest first."""
        rows = self._rows("SELECT tool_id, digest, at FROM sightings WHERE tool_id = ? ORDER BY at, digest", tool_id)
        return tuple(Sighting(tool_id=tool_id, digest=digest, at=at) for tool_id, digest, at in rows)

    def definition(self, digest: str) -> Any:
        """The definition with this digest, or None."""
        rows = self._rows("SELECT body FROM definitions WHERE digest = ?", digest)
        with self._parsing(f"definition {digest}"):
            return _load(digest, rows[0][0]) if rows else None

    def current_mark(self) -> str:
        """Changes whenever another publication or review is in force; cheap enough to read on every request.

        Raises:
            StoreError: the store cannot be read, or its file is not the one that was opened.
        """
        return self._mark(*self._rows("SELECT (SELECT publication_id FROM current), (SELECT max(n) FROM reviews)")[0])

    def mark_after(self, publication_id: str) -> str:
        """What `current_mark` will be once this is the current publication, if no review comes in between."""
        return self._mark(publication_id, self._rows("SELECT max(n) FROM reviews")[0][0])

    @staticmethod
    def _mark(publication_id: str | None, n_reviews: int | None) -> str:
        return f"{publication_id}/{n_reviews}"

    def put_catalog(self, version: str, summary: Mapping[str, Any]) -> None:
        """Remember what a catalog version held, so that old traces can be explained."""
        with self._transaction() as db:
            db.execute("INSERT OR IGNORE INTO catalogs VALUES (?, ?)", (version, _dump(summary)))

    def catalog(self, version: str) -> dict[str, Any] | None:
        rows = self._rows("SELECT body FROM catalogs WHERE version = ?", version)
        with self._parsing(f"catalog {version}"):
            return dict(json.loads(rows[0][0])) if rows else None

    def keep_version(self, kind: Literal["policy", "options"], version: str, text: str) -> None:
        """Remember the text behind a version, so that old traces can be replayed."""
        with self._transaction() as db:
            db.execute("INSERT OR IGNORE INTO versions VALUES (?, ?, ?)", (kind, version, text))

    def kept_version(self, kind: Literal["policy", "options"], version: str) -> str | None:
        rows = self._rows("SELECT text FROM versions WHERE kind = ? AND version = ?", kind, version)
        return str(rows[0][0]) if rows else None

    # --- reviews

    def add_reviews(self, events: list[ReviewEvent]) -> None:
        """Add these to the chain, in this order."""
        columns, places = ", ".join(_REVIEW), ", ".join("?" * len(_REVIEW))
        with self._transaction() as db:
            last = db.execute("SELECT hash FROM reviews ORDER BY n DESC LIMIT 1").fetchone()
            link = str(last[0]) if last else ""
            for event in events:
                sealed = event.sealed(link)
                link = sealed.hash
                db.execute(f"INSERT INTO reviews ({columns}) VALUES ({places})", _review_row(sealed))  # noqa: S608

    def reviews(self) -> tuple[ReviewEvent, ...]:
        """All of them, oldest first. What was written before format 2 is no link of the chain: its hash is empty."""
        rows = self._rows(f"SELECT {', '.join(_REVIEW)} FROM reviews ORDER BY n")  # noqa: S608
        with self._parsing("a review"):
            return tuple(_review(row) for row in rows)

    # --- approvals of calls

    def put_approval(self, request: ApprovalRequest) -> None:
        """Remember a request. Of one caller's that wait, the newest 100 stay: nobody can fill the approver's table."""
        # This text stands in a body exactly where these are its caller: quotes within values are escaped.
        owner = json.dumps({"subject": request.subject, "tenant": request.tenant})[1:-1]
        with self._transaction() as db:
            db.execute(
                "INSERT OR REPLACE INTO approvals VALUES (?, ?, ?, ?, ?)",
                (request.approval_id, request.key, request.state, request.expires_at, json.dumps(asdict(request))),
            )
            db.execute(
                "DELETE FROM approvals WHERE rowid IN (SELECT rowid FROM approvals"
                " WHERE state = 'pending' AND instr(body, ?) > 0 ORDER BY rowid DESC LIMIT -1 OFFSET ?)",
                (owner, _MAX_PENDING),
            )

    def approvals(self, *, key: str = "") -> tuple[ApprovalRequest, ...]:
        """Newest first; only those of one key if given."""
        where, values = (" WHERE key = ?", (key,)) if key else ("", ())
        rows = self._rows(f"SELECT body, state FROM approvals{where} ORDER BY rowid DESC", *values)  # noqa: S608
        with self._parsing("an approval"):
            return tuple(_approval(json.loads(body), state) for body, state in rows)

    def decide_approval(self, approval_id: str, *, granted: bool, by: str, now: str) -> bool:
        """Grant or deny a pending request that has not expired; False when there is none."""
        with self._transaction() as db:
            row = db.execute(
                "SELECT body FROM approvals WHERE approval_id = ? AND state = 'pending' AND expires_at > ?",
                (approval_id, now),
            ).fetchone()
            if row is None:
                return False
            state = "granted" if granted else "denied"
            with self._parsing("an approval"):
                body = json.dumps({**json.loads(row[0]), "state": state, "decided_by": by})
            db.execute("UPDATE approvals SET state = ?, body = ? WHERE approval_id = ?", (state, body, approval_id))
            return True

    def consume_approval(self, approval_id: str, *, now: str) -> bool:
        """Use a granted, unexpired approval up. True for exactly one caller."""
        with self._transaction() as db:
            done = db.execute(
                "UPDATE approvals SET state = 'used' WHERE approval_id = ? AND state = 'granted' AND expires_at > ?",
                (approval_id, now),
            )
            return done.rowcount == 1

    # --- keys and revocations

    def put_key(self, key: ApiKey) -> None:
        """Remember a key, or what became of it (revoked)."""
        with self._transaction() as db:
            db.execute("INSERT OR REPLACE INTO api_keys VALUES (?, ?)", (key.key_id, json.dumps(asdict(key))))

    def api_key(self, key_id: str) -> ApiKey | None:
        rows = self._rows("SELECT body FROM api_keys WHERE key_id = ?", key_id)
        with self._parsing(f"API key {key_id}"):
            return ApiKey(**json.loads(rows[0][0])) if rows else None

    def api_keys(self) -> tuple[ApiKey, ...]:
        """All of them, oldest first."""
        rows = self._rows("SELECT body FROM api_keys ORDER BY rowid")
        with self._parsing("an API key"):
            return tuple(ApiKey(**json.loads(body)) for (body,) in rows)

    def revoke(self, revocation: Revocation) -> None:
        with self._transaction() as db:
            db.execute(
                "INSERT OR REPLACE INTO revocations VALUES (?, ?, ?)",
                (revocation.kind, revocation.value, json.dumps(asdict(revocation))),
            )

    def restore(self, kind: RevokedKind, value: str) -> bool:
        """Take a revocation back; False when there is none."""
        with self._transaction() as db:
            return db.execute("DELETE FROM revocations WHERE kind = ? AND value = ?", (kind, value)).rowcount == 1

    def revocations(self) -> tuple[Revocation, ...]:
        """All of them, oldest first; read on every request."""
        rows = self._rows("SELECT body FROM revocations ORDER BY rowid")
        with self._parsing("a revocation"):
            return tuple(_revocation(json.loads(body)) for (body,) in rows)

    # --- what was offered, what was written

    def put_offers(self, holder: str, offers: Sequence[tuple[str, str]], *, at: str) -> None:
        """Remember that these tools, as (tool id, digest), were offered to this holder."""
        with self._transaction() as db:
            db.executemany(
                "INSERT OR REPLACE INTO offers VALUES (?, ?, ?, ?)",
                [(holder, tool_id, digest, at) for tool_id, digest in offers],
            )

    def was_offered(self, holder: str, tool_id: str, digest: str, *, since: str) -> bool:
        """Whether exactly this definition was offered to this holder at `since` or later (ISO 8601, UTC)."""
        sql = "SELECT 1 FROM offers WHERE holder = ? AND tool_id = ? AND digest = ? AND at >= ?"
        return bool(self._rows(sql, holder, tool_id, digest, since))

    def write_holder(self, key: str, *, at: str) -> str:
        """The trace id of the call that holds this write at that moment (ISO 8601, UTC), or ""."""
        rows = self._rows("SELECT trace_id FROM writes WHERE key = ? AND until > ?", key, at)
        return str(rows[0][0]) if rows else ""

    def reserve_write(self, key: str, *, at: str, until: str, trace_id: str) -> str:
        """Take this write for one call.

        Args:
            at, until: now, and when another such write is a new one (ISO 8601, UTC).
        Returns:
            "" when it is ours, also where it was before (`until` is then the new one); else the trace id of the call
            that has it.
        """
        with self._transaction() as db:
            db.execute("DELETE FROM writes WHERE until <= ?", (at,))
            db.execute(
                "INSERT INTO writes VALUES (?, ?, ?) ON CONFLICT (key)"
                " DO UPDATE SET until = excluded.until WHERE trace_id = excluded.trace_id",
                (key, until, trace_id),
            )
            (holder,) = db.execute("SELECT trace_id FROM writes WHERE key = ?", (key,)).fetchone()
            return "" if holder == trace_id else str(holder)

    def release_write(self, key: str, *, trace_id: str) -> None:
        """Give it back: the call did nothing."""
        with self._transaction() as db:
            db.execute("DELETE FROM writes WHERE key = ? AND trace_id = ?", (key, trace_id))

    # --- traces

    def put_trace(self, trace: Trace) -> None:
        with self._transaction() as db:
            db.execute(
                "INSERT OR REPLACE INTO traces (trace_id, at, body) VALUES (?, ?, ?)",
                (trace.trace_id, trace.at, _dump(asdict(trace))),
            )

    def trace(self, trace_id: str) -> Trace | None:
        """The trace with this id; a unique beginning of at least 6 characters will do."""
        rows = self._rows("SELECT body FROM traces WHERE trace_id = ?", trace_id)
        if not rows and len(trace_id) >= 6:
            begin = trace_id.replace("\\", "").replace("%", "").replace("_", "")
            rows = self._rows("SELECT body FROM traces WHERE trace_id LIKE ? LIMIT 2", begin + "%")
        with self._parsing(f"trace {trace_id}"):
            return _trace(json.loads(rows[0][0])) if len(rows) == 1 else None

    def traces(self, *, limit: int = 20) -> tuple[Trace, ...]:
        """Newest first."""
        rows = self._rows("SELECT body FROM traces ORDER BY n DESC LIMIT ?", limit)
        with self._parsing("a trace"):
            return tuple(_trace(json.loads(body)) for (body,) in rows)

    def each_trace(self, *, since: str, limit: int) -> Iterator[Trace]:
        """Those of this time (ISO 8601, UTC) and later, newest first, one after the other: memory holds a page of them.

        What others write meanwhile is left out.
        """
        for body in self._each_body("traces", since=since, limit=limit):
            with self._parsing("a trace"):
                trace = _trace(json.loads(body))
            yield trace

    def put_shadow(self, record: ShadowRecord) -> None:
        """Remember what a candidate would have answered."""
        with self._transaction() as db:
            db.execute(
                "INSERT INTO shadows (trace_id, at, body) VALUES (?, ?, ?)",
                (record.trace_id, record.at, _dump(asdict(record))),
            )

    def each_shadow(self, *, since: str, limit: int) -> Iterator[ShadowRecord]:
        """Those of this time (ISO 8601, UTC) and later, newest first; memory holds a page of them."""
        for body in self._each_body("shadows", since=since, limit=limit):
            with self._parsing("a shadow"):
                shadow = _shadow(json.loads(body))
            yield shadow

    def _each_body(self, table: Literal["traces", "shadows"], *, since: str, limit: int) -> Iterator[Any]:
        sql = f"SELECT n, body FROM {table} WHERE at >= ? AND n < ? ORDER BY n DESC LIMIT ?"  # noqa: S608
        before, left = _AFTER_ALL, limit
        while left > 0:
            rows = self._rows(sql, since, before, min(left, _PAGE))
            for number, body in rows:
                yield body
                before = number
            left -= len(rows)
            if len(rows) < _PAGE:
                return

    def prune(self, *, keep_days: int) -> int:
        """Remove traces older than this, and approvals that expired before; the number removed."""
        before = (datetime.now(UTC) - timedelta(days=keep_days)).isoformat(timespec="microseconds")
        with self._transaction() as db:
            traces = db.execute("DELETE FROM traces WHERE at < ?", (before,)).rowcount
            db.execute("DELETE FROM offers WHERE at < ?", (before,))
            db.execute("DELETE FROM shadows WHERE at < ?", (before,))
            return traces + db.execute("DELETE FROM approvals WHERE expires_at < ?", (before,)).rowcount


def _identity(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_ino, found.st_dev


def _forget_sightings(db: sqlite3.Connection, tool_ids: Collection[str]) -> None:
    """Keep the newest under each of these ids, and what was decided about: a server may change at each list."""
    if not tool_ids:
        return
    decided = _decided(db)
    for tool_id in sorted(tool_ids):
        newest = db.execute("SELECT digest FROM sightings WHERE tool_id = ? ORDER BY at DESC, rowid DESC", (tool_id,))
        undecided = [digest for (digest,) in newest if digest not in decided]
        old = [(tool_id, digest) for digest in undecided[_MAX_SIGHTINGS:]]
        db.executemany("DELETE FROM sightings WHERE tool_id = ? AND digest = ?", old)


def _decided(db: sqlite3.Connection) -> set[str]:
    return {digest for (digest,) in db.execute("SELECT DISTINCT digest FROM reviews WHERE action <> 'pin'")}


def _drop_unreachable(db: sqlite3.Connection, *, listed: Set[str]) -> None:
    """Remove what no reader can ask for. A definition that somebody decided about stays: reviews compare with it."""
    db.execute("DELETE FROM publications WHERE publication_id NOT IN (SELECT publication_id FROM current)")
    decided = _decided(db)
    known = [digest for (digest,) in db.execute("SELECT digest FROM definitions")]
    gone = [(digest,) for digest in known if digest not in listed and digest not in decided]
    db.executemany("DELETE FROM definitions WHERE digest = ?", gone)


def _dump(value: Any) -> bytes:
    """JSON text that reads back as the same value: integers of any size, lone surrogates, NaN."""
    return json.dumps(value, ensure_ascii=True, allow_nan=True).encode()


def _load(digest: str, body: bytes) -> Any:
    """What has a canonical form holds no number that the fast reader would round; the rest goes the slow way."""
    return orjson.loads(body) if digest.startswith("sha256:") else json.loads(body)


def _listed(entry: Any, bodies: Mapping[str, bytes]) -> ListedTool:
    server_id, name, digest, fault = _texts(entry)
    definition = _load(digest, bodies[digest])
    return ListedTool(server_id=server_id, name=name, definition=definition, digest=digest, fault=fault)


def _status(body: Any) -> ServerStatus:
    found = body.pop("provenance", None)
    status = ServerStatus(**body, provenance=None if found is None else _provenance(found))
    _texts(value for key, value in body.items() if key not in ("n_tools", "capabilities"))
    if status.state not in ("fresh", "partial", "stale", "missing") or not isinstance(status.n_tools, int):
        raise ValueError(f"not a server's status: {body}")
    return status


def _provenance(body: Mapping[str, Any]) -> Provenance:
    plain: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in body.items()}
    return Provenance(**{**plain, "kind": ProvenanceKind(body["kind"])})


def _review_row(event: ReviewEvent) -> list[str]:
    return [json.dumps(event.findings) if name == "findings" else getattr(event, name) for name in _REVIEW]


def _review(row: tuple[Any, ...]) -> ReviewEvent:
    given = dict(zip(_REVIEW, _texts(row), strict=True))
    event = ReviewEvent(**{**given, "findings": tuple(_texts(json.loads(given["findings"])))})
    if event.action not in ("approve", "reject", "pin"):
        raise ValueError(f"not a reviewer's decision: {event.action!r}")
    return event


def _approval(body: Mapping[str, Any], state: Any) -> ApprovalRequest:
    return ApprovalRequest(**{**body, "state": state, "policies": tuple(body.get("policies", ()))})


def _revocation(body: Mapping[str, Any]) -> Revocation:
    return Revocation(**{**body, "kind": RevokedKind(body["kind"])})


def _texts(values: Iterable[Any]) -> list[Any]:
    found = list(values)
    if not all(isinstance(value, str) for value in found):
        raise TypeError(f"text expected: {found}")
    return found


def _trace(body: Mapping[str, Any]) -> Trace:
    records = tuple(
        StageRecord(stage=Stage(r["stage"]), operator_view=r["operator_view"], caller_view=r["caller_view"])
        for r in body["records"]
    )
    return Trace(**{**body, "channel": Channel(body["channel"]), "records": records})


def _shadow(body: Mapping[str, Any]) -> ShadowRecord:
    sides = {name: _side(body[name]) for name in ("present", "candidate")}
    return ShadowRecord(**{**body, **sides, "gained": tuple(body["gained"]), "lost": tuple(body["lost"])})


def _side(body: Mapping[str, Any] | None) -> ShadowSide | None:
    return None if body is None else ShadowSide(**{**body, "tool_ids": tuple(body["tool_ids"])})
