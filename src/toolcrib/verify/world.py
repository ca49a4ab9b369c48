"""A catalog, its rules and its approvals as one value; a changed one; and a crib opened over it in a scratch folder.

Above: `isolation.py`, `parity.py`. Below: `scratch.py` (a configuration that reaches nobody), `stand_in.py`.

    world_of(settings) ─▶ World ─▶ changed(edits) ─▶ World ─▶ opened(folder) ─▶ Crib

Invariants
1. The operator's folder is read and never written: its store is copied with SQLite's own backup, the copy is read.
2. A changed world goes the whole road: publication, lock, metadata, policy, index. Nothing is patched in memory.
"""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from toolcrib.catalog.digest import definition_digest, digest_of
from toolcrib.catalog.lock import read_lock, write_lock
from toolcrib.catalog.pins import Lock, ServerPin, ToolPin
from toolcrib.crib import Crib
from toolcrib.errors import PolicyError, StoreError
from toolcrib.review.signatures import unsigned_tools
from toolcrib.settings import Settings
from toolcrib.store.sqlite import SqliteStore
from toolcrib.types import JsonObject, ListedTool, Publication, ResourceRule, ReviewEvent, ServerStatus
from toolcrib.verify.scratch import (
    LOCK,
    POLICY,
    PROFILES,
    RETRIEVAL_FILES,
    STORE,
    exact_match,
    harmless,
    server_row,
    toml_of,
)
from toolcrib.verify.stand_in import Owner, StandIn

_AT = "2000-01-01T00:00:00.000000+00:00"


class EditKind(StrEnum):
    REMOVED = "removed"
    CHANGED = "changed"
    ADDED = "added"
    QUARANTINED = "quarantined"
    APPROVED = "approved"
    DESCRIBED = "described"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One change to one tool of the catalog.

    Args:
        definition: of a changed or added tool. row: the operator's metadata of a described or added one, as in a
            `[[tools]]` row; `{}` for none.
    """

    kind: EditKind
    tool_id: str
    definition: JsonObject | None = None
    row: JsonObject | None = None

    @property
    def server_id(self) -> str:
        return self.tool_id.partition(".")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What a crib is opened over.

    Args:
        document: `toolcrib.toml` made harmless. policy: its text, None for the built-in one.
        approved: tool id -> digest, as in the lock. profiles: file name -> bytes of the caller files.
        rules: which resources calls name; their owners are stand-ins.
        files: name -> bytes of what was learned and calibrated, as `document` names them.
    """

    document: Mapping[str, Any]
    policy: str | None
    publication: Publication
    approved: Mapping[str, str]
    server_pins: Mapping[str, ServerPin]
    reviews: tuple[ReviewEvent, ...]
    profiles: Mapping[str, bytes]
    rules: tuple[ResourceRule, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)

    def changed(self, edits: Sequence[Edit]) -> World:
        """This world with these edits, each of another tool."""
        by_id = {edit.tool_id: edit for edit in edits}
        tools = [_edited(tool, by_id.get(f"{tool.server_id}.{tool.name}")) for tool in self.publication.tools]
        added = [_listed(edit) for edit in edits if edit.kind is EditKind.ADDED]
        listed = sorted([*(t for t in tools if t), *added], key=lambda tool: tool.server_id)  # stable within a server
        digests = {f"{tool.server_id}.{tool.name}": tool.digest for tool in listed}
        approved, reviews = dict(self.approved), list(self.reviews)
        for edit in edits:
            if edit.kind in (EditKind.REMOVED, EditKind.QUARANTINED):
                approved.pop(edit.tool_id, None)
            elif edit.kind is EditKind.ADDED or (edit.kind is EditKind.CHANGED and edit.tool_id in approved):
                approved[edit.tool_id] = digests[edit.tool_id]
            elif edit.kind is EditKind.APPROVED:
                approved[edit.tool_id] = digests[edit.tool_id]
                reviews.append(_approval(edit.tool_id, digests[edit.tool_id]))
        document = _with_rows(self.document, edits)
        return replace(
            self,
            document=document,
            publication=_publication(self.publication, listed, servers=[row["id"] for row in document["servers"]]),
            approved=approved,
            reviews=tuple(reviews),
        )

    @contextmanager
    def opened(self, *, owner: Owner) -> Iterator[tuple[Path, Crib]]:
        """A crib over this world in a folder of its own, gone afterwards. Its caller files lie in `profiles`."""
        folder = Path(tempfile.mkdtemp(prefix="toolcrib-verify-"))
        try:
            self._write(folder)
            servers = [row["id"] for row in self.document["servers"]]
            stand_ins = {name: StandIn(name, rules=self.rules, owner=owner) for name in servers}
            crib = Crib.open(folder, connectors=stand_ins)
            try:
                yield folder, crib
            finally:
                asyncio.run(crib.aclose())
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _write(self, folder: Path) -> None:
        (folder / "toolcrib.toml").write_text(toml_of(self.document), encoding="utf-8")
        if self.policy is not None:
            (folder / POLICY).write_text(self.policy, encoding="utf-8")
        pins = {tool_id: ToolPin(digest=digest) for tool_id, digest in self.approved.items()}
        write_lock(folder / LOCK, Lock(tools=pins, servers=self.server_pins))
        (folder / PROFILES).mkdir()
        for name, body in self.profiles.items():
            (folder / PROFILES / name).write_bytes(body)
        for name, body in self.files.items():
            (folder / name).write_bytes(body)
        store = SqliteStore(folder / STORE / "store.db")
        try:
            store.publish(lambda _before: self.publication)
            store.add_reviews(list(self.reviews))
        finally:
            store.close()


def world_of(settings: Settings, *, profiles: Mapping[str, Path]) -> World:
    """The operator's own world, as it is on disk now.

    Args:
        profiles: name -> caller file.
    Raises:
        StoreError: nothing was published yet, or the store cannot be read.
        CatalogError: the lock is damaged. PolicyError: the policy cannot be read.
    """
    publication, reviews = _published(settings.store / "store.db")
    lock = read_lock(settings.lock)
    policy = None if settings.policy is None else _text(settings.policy)
    files = dict(_retrieval_files(settings))
    document = tomllib.loads(settings.path.read_text(encoding="utf-8-sig"))
    return World(
        document=harmless(document, has_policy=settings.policy is not None, files=files),
        policy=policy,
        publication=publication,
        approved={t: digest for t, digest in lock.approved.items() if t not in unsigned_tools(lock, settings.review)},
        server_pins=lock.servers,
        reviews=reviews,
        profiles={f"{name}.json": path.read_bytes() for name, path in profiles.items()},
        rules=settings.resources,
        files={RETRIEVAL_FILES[key]: body for key, body in files.items()},
    )


def _retrieval_files(settings: Settings) -> Iterator[tuple[str, bytes]]:
    """What was learned and calibrated. A file that cannot be read has no effect on the operator's crib, either."""
    for key in RETRIEVAL_FILES:
        name = getattr(settings.retrieval, key)
        with suppress(OSError):
            if name:
                yield key, settings.resolve(name).read_bytes()


def _published(path: Path) -> tuple[Publication, tuple[ReviewEvent, ...]]:
    """The publication and the reviews of a store, read from a copy of it."""
    missing = StoreError("there is no catalog yet", where=str(path.parent.parent), hint="run `toolcrib refresh`")
    if not path.exists():
        raise missing
    with tempfile.TemporaryDirectory(prefix="toolcrib-verify-") as place:
        copy = Path(place) / "store.db"
        try:
            with (
                closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=10.0)) as source,
                closing(sqlite3.connect(copy)) as target,
            ):
                source.backup(target)
        except sqlite3.Error as fault:
            raise StoreError(f"the store cannot be read: {fault}", where=str(path)) from fault
        store = SqliteStore(copy)
        try:
            publication, reviews = store.current(), store.reviews()
        finally:
            store.close()
    if publication is None:
        raise missing
    return publication, reviews


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise PolicyError(f"the policy cannot be read: {fault}", where=str(path)) from fault


def _edited(tool: ListedTool, edit: Edit | None) -> ListedTool | None:
    if edit is None or edit.kind not in (EditKind.REMOVED, EditKind.CHANGED):
        return tool
    return None if edit.kind is EditKind.REMOVED else _listed(edit)


def _listed(edit: Edit) -> ListedTool:
    """The entry of a changed or added tool."""
    name = edit.tool_id.partition(".")[2]
    definition = {**(edit.definition or {}), "name": name}
    return ListedTool(
        server_id=edit.server_id, name=name, definition=definition, digest=definition_digest(definition), fault=""
    )


def _approval(tool_id: str, digest: str) -> ReviewEvent:
    return ReviewEvent(at=_AT, action="approve", tool_id=tool_id, digest=digest, reviewer="verify")


def _with_rows(document: Mapping[str, Any], edits: Sequence[Edit]) -> dict[str, Any]:
    """The configuration with the rows of described and added tools, and with the servers that are new."""
    rows = [{"match": exact_match(edit.tool_id), **edit.row} for edit in edits if edit.row]
    known = {row["id"] for row in document["servers"]}
    new = sorted({edit.server_id for edit in edits if edit.kind is EditKind.ADDED} - known)
    servers = [*document["servers"], *(server_row({"id": server_id}) for server_id in new)]
    return {**document, "tools": [*document.get("tools", ()), *rows], "servers": servers}


def _publication(before: Publication, listed: Sequence[ListedTool], *, servers: Sequence[str]) -> Publication:
    known = {status.server_id: status for status in before.servers}
    filled = {tool.server_id for tool in listed}
    statuses = [
        known.get(name) or ServerStatus(server_id=name, state="fresh", n_tools=0, listed_at=before.at)
        for name in sorted(servers)
        if name in known or name in filled
    ]
    return Publication(
        publication_id=digest_of([(tool.server_id, tool.name, tool.digest) for tool in listed]),
        at=before.at,
        servers=tuple(statuses),
        tools=tuple(listed),
    )
