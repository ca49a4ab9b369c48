"""The lock against what servers list: what is new, changed, gone, renamed, or comes from something else.

Below: `pins.py`, `grading.py`, `servers.py`. Above: `locking.py`, for `toolcrib lock check`.

Invariants
1. A server that gave no list has no rows: nothing is known of its tools, so none is called removed (I8).
2. Equal digests are equal definitions; fields are looked at only where the whole digests differ.
3. Nothing is decided here: rows say what differs, the lock alone says what is approved (I4).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

from toolcrib.catalog.digest import definition_digest
from toolcrib.catalog.grading import FieldChange, Grade, changes, graded_from_pins, worst
from toolcrib.catalog.pins import Lock, ServerPin, ToolPin, field_digests, text_digest
from toolcrib.catalog.schema_values import same_json
from toolcrib.catalog.servers import provenance_changes
from toolcrib.errors import InvalidDefinitionError
from toolcrib.types import ListedTool, Publication, ServerSpec, ServerStatus


class RowKind(StrEnum):
    """What a row says, in the order in which rows are told."""

    PROVENANCE = "PROVENANCE"
    CHANGED = "CHANGED"
    RENAMED = "RENAMED"
    NEW = "NEW"
    REMOVED = "REMOVED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One difference.

    Args:
        name: the tool's; "" where the server itself is meant, "*" for all that it had. was: a renamed tool's old name.
        changes: of a changed tool, worst first. details: what else is known, a few words each.
    """

    kind: RowKind
    server_id: str
    name: str = ""
    was: str = ""
    grade: Grade = Grade.MODEL_READS
    changes: tuple[FieldChange, ...] = ()
    details: tuple[str, ...] = ()

    @property
    def subject(self) -> str:
        """`server/tool`, `server/old -> server/new`, `server/*`, or the server alone."""
        if self.kind is RowKind.PROVENANCE:
            return self.server_id
        named = f"{self.server_id}/{self.name}"
        return f"{self.server_id}/{self.was} -> {named}" if self.was else named


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known beside the lock, where there is a store.

    Args:
        definition_of: digest -> the definition, or None.
        approved_before: tool id -> digests that were approved at some time.
    """

    definition_of: Callable[[str], Any] = lambda _digest: None
    approved_before: Mapping[str, Collection[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """`left_out`: tool id -> why it is no row: it was never approved, and cannot be."""

    rows: tuple[Row, ...]
    left_out: Mapping[str, str]


NOTHING_KNOWN = Known()


def compare(
    lock: Lock,
    publication: Publication,
    *,
    servers: Sequence[ServerSpec],
    configured: Collection[str] | None = None,
    known: Known = NOTHING_KNOWN,
) -> Comparison:
    """How what is listed differs from what is approved.

    Args:
        servers: those that are compared, if the publication has a list of them.
        configured: ids of all servers; what the lock has of others is gone. None: the others are not looked at.
    Returns:
        Rows by kind, within a kind worst grade first, then by id.
    """
    specs = {spec.server_id: spec for spec in servers}
    statuses = {s.server_id: s for s in publication.servers if s.server_id in specs and s.state != "missing"}
    tools = _Tools(lock, known)
    for entry in publication.tools:
        if entry.server_id in statuses and _is_taken_in(entry.name, specs[entry.server_id]):
            tools.add(entry)
    pinned = {t: pin for t, pin in lock.tools.items() if _counts(t, specs=specs, statuses=statuses)}
    rows = [row for server_id, status in statuses.items() for row in _server_rows(status, lock.servers.get(server_id))]
    rows += tools.rows(pinned)
    rows += _gone_servers(lock, configured) if configured is not None else []
    order = list(RowKind)
    rows.sort(key=lambda row: (order.index(row.kind), row.grade.rank, row.server_id, row.name, row.was))
    return Comparison(rows=tuple(rows), left_out=dict(sorted(tools.left_out.items())))


def _is_taken_in(name: str, spec: ServerSpec) -> bool:
    return not spec.allow_tools or any(fnmatchcase(name, glob) for glob in spec.allow_tools)


def _counts(tool_id: str, *, specs: Mapping[str, ServerSpec], statuses: Mapping[str, ServerStatus]) -> bool:
    server_id, _, name = tool_id.partition(".")
    return server_id in statuses and _is_taken_in(name, specs[server_id])


def _server_rows(status: ServerStatus, pin: ServerPin | None) -> list[Row]:
    """What a pinned server is now, as far as it is something else. Without a pin nothing was approved of it."""
    rows: list[Row] = []
    if changed := provenance_changes(status, pin):
        told = tuple(f"{name} was {was or 'nothing'}, is {now or 'nothing'}" for name, was, now in changed)
        rows.append(
            Row(
                kind=RowKind.PROVENANCE,
                server_id=status.server_id,
                grade=Grade.APPROVAL_RESTS_ON,
                details=told,
            )
        )
    if pin is not None and (said := _said_otherwise(status, pin)):
        rows.append(Row(kind=RowKind.CHANGED, server_id=status.server_id, grade=worst(said), changes=said))
    return rows


def _said_otherwise(status: ServerStatus, pin: ServerPin) -> tuple[FieldChange, ...]:
    """What a server says of itself. Toolcrib hands none of it on to a model."""
    said = {
        "capabilities": (dict(pin.capabilities), dict(status.capabilities), "others"),
        "instructions": (pin.instructions, text_digest(status.instructions), "another text"),
        "protocol_version": (
            pin.protocol_version,
            status.protocol_version,
            f"{status.protocol_version or 'none'}, was {pin.protocol_version or 'none'}",
        ),
    }
    return tuple(
        FieldChange(field=name, grade=Grade.CHANGES_NOTHING, summary=told)
        for name, (was, now, told) in said.items()
        if not same_json(was, now)
    )


def _gone_servers(lock: Lock, configured: Collection[str]) -> list[Row]:
    counts: dict[str, int] = dict.fromkeys(lock.servers, 0)
    for tool_id in lock.tools:
        server_id = tool_id.partition(".")[0]
        counts[server_id] = counts.get(server_id, 0) + 1
    return [
        Row(
            kind=RowKind.REMOVED,
            server_id=server_id,
            name="*",
            grade=Grade.CHANGES_NOTHING,
            details=(f"not configured any more, approved tools: {n_tools}",),
        )
        for server_id, n_tools in counts.items()
        if server_id not in configured
    ]


class _Tools:
    """What is listed under each tool id, and what is to be said of it."""

    def __init__(self, lock: Lock, known: Known) -> None:
        self._lock = lock
        self._known = known
        self._listed: dict[str, dict[str, ListedTool]] = {}
        self._changed: dict[str, tuple[ListedTool, dict[str, str]]] = {}
        self._holders: dict[str, list[str]] | None = None
        self.left_out: dict[str, str] = {}

    def add(self, entry: ListedTool) -> None:
        """One entry of a list. The same definition twice is listed once."""
        self._listed.setdefault(f"{entry.server_id}.{entry.name}", {}).setdefault(entry.digest, entry)

    def rows(self, pinned: Mapping[str, ToolPin]) -> list[Row]:
        """All rows of tools. `pinned`: the approved ones of the compared servers."""
        new: dict[str, ListedTool] = {}
        broken: list[Row] = []
        for tool_id, entries in self._listed.items():
            pin = self._lock.tools.get(tool_id)
            sound = [entry for entry in entries.values() if not entry.fault and entry.digest.startswith("sha256:")]
            if len(sound) == 1 and pin is not None and sound[0].digest == pin.digest:
                continue
            if len(sound) != 1:
                why = next(iter(entries.values())).fault or f"listed with {len(sound)} different definitions"
                broken += self._broken(tool_id, why, is_pinned=pin is not None)
            elif pin is None:
                new[tool_id] = sound[0]
            else:
                self._changed[tool_id] = sound[0], field_digests(sound[0].definition)
        gone = {tool_id: pin for tool_id, pin in pinned.items() if tool_id not in self._listed}
        renamed = self._renamed(gone, new)
        rows = [*broken, *(self._changed_row(tool_id) for tool_id in self._changed)]
        rows += [_row(RowKind.RENAMED, now, was=_name(was)) for was, now in renamed.items()]
        rows += [_row(RowKind.NEW, tool_id) for tool_id in new if tool_id not in renamed.values()]
        rows += [_row(RowKind.REMOVED, was, grade=Grade.CHANGES_NOTHING) for was in gone if was not in renamed]
        return rows

    def _broken(self, tool_id: str, why: str, *, is_pinned: bool) -> list[Row]:
        if not is_pinned:
            self.left_out[tool_id] = why
            return []
        return [_row(RowKind.CHANGED, tool_id, details=(f"cannot be served: {why}",))]

    def _renamed(self, gone: Mapping[str, ToolPin], new: Mapping[str, ListedTool]) -> dict[str, str]:
        """Old id -> new id where one server's tools differ in nothing but the name, and there is no other choice."""
        left: dict[tuple[object, ...], list[str]] = {}
        come: dict[tuple[object, ...], list[str]] = {}
        for tool_id, pin in gone.items():
            left.setdefault(_but_for_its_name(tool_id, self._fields(pin)), []).append(tool_id)
        for tool_id, entry in new.items() if gone else ():
            come.setdefault(_but_for_its_name(tool_id, field_digests(entry.definition)), []).append(tool_id)
        return {
            olds[0]: come[key][0]
            for key, olds in left.items()
            if len(olds) == 1 and len(come.get(key, ())) == 1 and len(key) > 1
        }

    def _fields(self, pin: ToolPin) -> Mapping[str, str]:
        """Digests by field of what was approved; out of the store where an old lock has none."""
        return pin.fields or field_digests(self._definition(pin))

    def _definition(self, pin: ToolPin) -> Any:
        """What was approved, if it is at hand and really is that."""
        found = self._known.definition_of(pin.digest)
        try:
            return found if found is not None and definition_digest(found) == pin.digest else None
        except InvalidDefinitionError:
            return None

    def _changed_row(self, tool_id: str) -> Row:
        pin, (entry, _) = self._lock.tools[tool_id], self._changed[tool_id]
        before, now = self._definition(pin), entry.definition
        found = graded_from_pins(pin.fields, now) if before is None else changes(before, now)
        details = self._swaps(tool_id)
        if entry.digest in self._known.approved_before.get(tool_id, ()):
            details.append("back to a definition approved before")
        return _row(RowKind.CHANGED, tool_id, grade=worst(found), changes=found, details=tuple(details))

    def _swaps(self, tool_id: str) -> list[str]:
        """Of whom it has the description now, if that is another tool's approved one."""
        now, was = self._changed[tool_id][1], self._fields(self._lock.tools[tool_id])
        text = now.get("description")
        if text is None or text == was.get("description"):
            return []
        holders = [other for other in self._with_text(text) if other != tool_id]
        for other in holders:
            if other in self._changed and self._changed[other][1].get("description") == was.get("description"):
                theirs = self._fields(self._lock.tools[other]), self._changed[other][1]
                whole = _body(now) == _body(theirs[0]) and _body(theirs[1]) == _body(was)
                return [f"swapped with {_slashed(other)} ({'whole definitions' if whole else 'descriptions'})"]
        own = [other for other in holders if other.partition(".")[0] == tool_id.partition(".")[0]]
        return [f"has the description approved for {_slashed(own[0])}"] if own else []

    def _with_text(self, digest: str) -> list[str]:
        """The tools whose approved description has this digest, sorted; asked for changed tools alone."""
        if self._holders is None:
            self._holders = {}
            for tool_id, pin in sorted(self._lock.tools.items()):
                fields = self._fields(pin) if tool_id in self._changed else pin.fields
                self._holders.setdefault(fields.get("description", ""), []).append(tool_id)
        return self._holders.get(digest, [])


def _row(kind: RowKind, tool_id: str, **more: Any) -> Row:
    return Row(kind=kind, server_id=tool_id.partition(".")[0], name=_name(tool_id), **more)


def _name(tool_id: str) -> str:
    return tool_id.partition(".")[2]


def _slashed(tool_id: str) -> str:
    return tool_id.replace(".", "/", 1)


def _body(fields: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in fields.items() if key != "name"}


def _but_for_its_name(tool_id: str, fields: Mapping[str, str]) -> tuple[object, ...]:
    return (tool_id.partition(".")[0], *sorted(_body(fields).items()))
