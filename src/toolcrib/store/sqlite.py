"""The embedded store: one SQLite file in write-ahead mode.

Above: `crib.py`. Below: the disk.

Invariants
1. A publication becomes current in one transaction, definitions included, or not at all (I8).
2. Reviews and traces are only ever added; traces leave by age alone.
3. An approval is consumed by one UPDATE, so two callers cannot both use it.
4. A store that cannot be read is a StoreError; nobody goes on with an empty one.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

from toolcrib.errors import StoreError
from toolcrib.types import (
    ApprovalRequest,
    Channel,
    ListedTool,
    Publication,
    ReviewEvent,
    ServerStatus,
    Stage,
    StageRecord,
    Trace,
)

_FORMAT = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS definitions (digest TEXT PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS publications (
  publication_id TEXT PRIMARY KEY, at TEXT NOT NULL, servers TEXT NOT NULL, entries TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS current (
  one INTEGER PRIMARY KEY CHECK (one = 1), publication_id TEXT NOT NULL, at TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS reviews (
  n INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL, action TEXT NOT NULL, tool_id TEXT NOT NULL,
  digest TEXT NOT NULL, reviewer TEXT NOT NULL, reason TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS catalogs (version TEXT PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS approvals (
  approval_id TEXT PRIMARY KEY, key TEXT NOT NULL, state TEXT NOT NULL, expires_at TEXT NOT NULL, body TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS approvals_by_key ON approvals (key);
CREATE TABLE IF NOT EXISTS traces (
  n INTEGER PRIMARY KEY AUTOINCREMENT, trace_id TEXT UNIQUE NOT NULL, at TEXT NOT NULL, body BLOB NOT NULL);
"""


class SqliteStore:
    """A store in one file. Safe to share between threads and between processes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, check_same_thread=False, timeout=10.0, isolation_level=None)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            (found,) = self._db.execute("PRAGMA user_version").fetchone()
            if found not in (0, _FORMAT):
                raise StoreError(f"the store has format {found}, this Toolcrib reads {_FORMAT}", where=str(path))
            self._db.executescript(_SCHEMA)
            self._db.execute(f"PRAGMA user_version={_FORMAT}")
        except (sqlite3.Error, OSError) as fault:
            raise StoreError(
                f"the store cannot be opened: {fault}", where=str(path), hint="check the folder's permissions and disk"
            ) from fault

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                try:
                    yield self._db
                except BaseException:
                    self._db.execute("ROLLBACK")
                    raise
                self._db.execute("COMMIT")
            except sqlite3.Error as fault:
                raise StoreError(f"the store cannot be written: {fault}", where=str(self._path)) from fault

    def _rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._lock:
            try:
                return self._db.execute(sql, values).fetchall()
            except sqlite3.Error as fault:
                raise StoreError(f"the store cannot be read: {fault}", where=str(self._path)) from fault

    # --- catalog

    def publish(self, publication: Publication) -> None:
        """Make this publication the current one, whole."""
        bodies = {(t.digest): _dump(t.definition) for t in publication.tools}
        servers = json.dumps([asdict(server) for server in publication.servers])
        entries = json.dumps([(t.server_id, t.name, t.digest, t.fault) for t in publication.tools])
        with self._transaction() as db:
            db.executemany("INSERT OR IGNORE INTO definitions VALUES (?, ?)", list(bodies.items()))
            db.execute(
                "INSERT OR REPLACE INTO publications VALUES (?, ?, ?, ?)",
                (publication.publication_id, publication.at, servers, entries),
            )
            db.execute("INSERT OR REPLACE INTO current VALUES (1, ?, ?)", (publication.publication_id, publication.at))

    def current(self) -> Publication | None:
        """The publication in force, or None before the first refresh."""
        rows = self._rows(
            "SELECT publication_id, c.at, servers, entries FROM current c JOIN publications p USING (publication_id)"
        )
        if not rows:
            return None
        publication_id, at, servers, entries = rows[0]
        listed = json.loads(entries)
        bodies = dict(self._rows("SELECT digest, body FROM definitions"))
        try:
            tools = tuple(
                ListedTool(server_id=s, name=name, digest=digest, fault=fault, definition=_load(digest, bodies[digest]))
                for s, name, digest, fault in listed
            )
        except (KeyError, ValueError) as fault:
            raise StoreError(
                f"a definition is missing or damaged: {fault}", where=str(self._path), hint="run `toolcrib refresh`"
            ) from fault
        statuses = tuple(ServerStatus(**status) for status in json.loads(servers))
        return Publication(publication_id=publication_id, at=at, servers=statuses, tools=tools)

    def definition(self, digest: str) -> Any:
        """The definition with this digest, or None."""
        rows = self._rows("SELECT body FROM definitions WHERE digest = ?", digest)
        return _load(digest, rows[0][0]) if rows else None

    def current_mark(self) -> str:
        """Changes whenever another publication or review is in force; cheap enough to read on every request."""
        rows = self._rows("SELECT (SELECT publication_id || at FROM current), (SELECT max(n) FROM reviews)")
        return f"{rows[0][0]}/{rows[0][1]}"

    def put_catalog(self, version: str, summary: Mapping[str, Any]) -> None:
        """Remember what a catalog version held, so that old traces can be explained."""
        with self._transaction() as db:
            db.execute("INSERT OR IGNORE INTO catalogs VALUES (?, ?)", (version, _dump(summary)))

    def catalog(self, version: str) -> dict[str, Any] | None:
        rows = self._rows("SELECT body FROM catalogs WHERE version = ?", version)
        return dict(json.loads(rows[0][0])) if rows else None

    # --- reviews

    def add_reviews(self, events: list[ReviewEvent]) -> None:
        with self._transaction() as db:
            db.executemany(
                "INSERT INTO reviews (at, action, tool_id, digest, reviewer, reason) VALUES (?, ?, ?, ?, ?, ?)",
                [(e.at, e.action, e.tool_id, e.digest, e.reviewer, e.reason) for e in events],
            )

    def reviews(self) -> tuple[ReviewEvent, ...]:
        """All of them, oldest first."""
        rows = self._rows("SELECT at, action, tool_id, digest, reviewer, reason FROM reviews ORDER BY n")
        names = [field.name for field in fields(ReviewEvent)]
        return tuple(ReviewEvent(**dict(zip(names, row, strict=True))) for row in rows)

    # --- approvals of calls

    def put_approval(self, request: ApprovalRequest) -> None:
        with self._transaction() as db:
            db.execute(
                "INSERT OR REPLACE INTO approvals VALUES (?, ?, ?, ?, ?)",
                (request.approval_id, request.key, request.state, request.expires_at, json.dumps(asdict(request))),
            )

    def approvals(self, *, key: str = "") -> tuple[ApprovalRequest, ...]:
        """Newest first; only those of one key if given."""
        where, values = (" WHERE key = ?", (key,)) if key else ("", ())
        rows = self._rows(f"SELECT body, state FROM approvals{where} ORDER BY rowid DESC", *values)  # noqa: S608
        return tuple(ApprovalRequest(**{**json.loads(body), "state": state}) for body, state in rows)

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

    # --- traces

    def put_trace(self, trace: Trace) -> None:
        with self._transaction() as db:
            db.execute(
                "INSERT INTO traces (trace_id, at, body) VALUES (?, ?, ?)",
                (trace.trace_id, trace.at, _dump(asdict(trace))),
            )

    def trace(self, trace_id: str) -> Trace | None:
        """The trace with this id; a unique beginning of at least 6 characters will do."""
        rows = self._rows("SELECT body FROM traces WHERE trace_id = ?", trace_id)
        if not rows and len(trace_id) >= 6:
            begin = trace_id.replace("\\", "").replace("%", "").replace("_", "")
            rows = self._rows("SELECT body FROM traces WHERE trace_id LIKE ? LIMIT 2", begin + "%")
        return _trace(json.loads(rows[0][0])) if len(rows) == 1 else None

    def traces(self, *, limit: int = 20) -> tuple[Trace, ...]:
        """Newest first."""
        return tuple(
            _trace(json.loads(body)) for (body,) in self._rows("SELECT body FROM traces ORDER BY n DESC LIMIT ?", limit)
        )

    def drop_traces_before(self, at: datetime) -> int:
        """Remove what is older; the number removed."""
        with self._transaction() as db:
            return db.execute("DELETE FROM traces WHERE at < ?", (at.astimezone(UTC).isoformat(),)).rowcount

    def prune(self, *, keep_days: int) -> int:
        return self.drop_traces_before(datetime.now(UTC) - timedelta(days=keep_days))


def _dump(value: Any) -> bytes:
    """JSON text that reads back as the same value: integers of any size, lone surrogates, NaN."""
    return json.dumps(value, ensure_ascii=True, allow_nan=True).encode()


def _load(digest: str, body: bytes) -> Any:
    """What has a canonical form holds no number that the fast reader would round; the rest goes the slow way."""
    return orjson.loads(body) if digest.startswith("sha256:") else json.loads(body)


def _trace(body: Mapping[str, Any]) -> Trace:
    records = tuple(
        StageRecord(stage=Stage(r["stage"]), operator_view=r["operator_view"], caller_view=r["caller_view"])
        for r in body["records"]
    )
    return Trace(**{**body, "channel": Channel(body["channel"]), "records": records})
