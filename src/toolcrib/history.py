"""A tool's life: each definition that was listed under its id, or one that it had before, and what was decided of it.

Floor 4. Above: `cli/ask.py`. Below: `store/` remembers sightings, reviews, definitions; `catalog/grading.py` compares.

Invariants
1. The operator's view only: it shows definitions that no caller may see.
2. A function of store, snapshot and rules; what a record doesn't say is left empty, never guessed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from toolcrib.catalog.grading import FieldChange, changes
from toolcrib.catalog.metadata import MetadataRule
from toolcrib.store.protocol import Store
from toolcrib.types import CatalogSnapshot, ReviewEvent, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One definition under one id.

    Args:
        first_seen: ISO 8601, UTC; "" where it was reviewed and no listing of it is on record.
        decisions: oldest first.
        changed: against the last one before it that is kept; None for the first, and where it isn't kept itself.
        standing: `in service`, `deprecated`, or why it is withheld; "" for what no server lists now.
    """

    tool_id: str
    digest: str
    first_seen: str
    decisions: tuple[ReviewEvent, ...]
    changed: tuple[FieldChange, ...] | None
    standing: str

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        told = ("at", "action", "reviewer", "reason", "signer")
        return {
            "tool_id": self.tool_id,
            "digest": self.digest,
            "first_seen": self.first_seen,
            "standing": self.standing,
            "decisions": [
                {**{key: getattr(one, key) for key in told}, "findings": list(one.findings)} for one in self.decisions
            ],
            "changed": None
            if self.changed is None
            else [{"field": c.field, "grade": c.grade.value, "summary": c.summary} for c in self.changed],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """`said`: the operator's word on it now, in service or not. `versions`: oldest first."""

    tool_id: str
    said: Mapping[str, Any]
    versions: tuple[Version, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        told = {key: self.said[key] for key in ("version", "status", "replaced_by") if self.said.get(key)}
        if self.said.get("aliases"):
            told["aliases"] = list(self.said["aliases"])
        return {"tool_id": self.tool_id, **told, "versions": [version.to_dict() for version in self.versions]}


def history_of(tool_id: str, *, store: Store, snapshot: CatalogSnapshot, rules: Sequence[MetadataRule]) -> History:
    """The history of a tool, asked for by its id or by one that it had before.

    Args:
        rules: the operator's `[[tools]]` rows: they tell old names of a tool that waits for review, too.
    """
    tool_id = _now(tool_id, snapshot, rules)
    said: dict[str, Any] = {}
    for rule in rules:
        if fnmatchcase(tool_id, rule.pattern):
            said |= rule.fields
    reviews = [event for event in store.reviews() if event.action != "pin"]
    standing = _standings(snapshot)
    versions: list[Version] = []
    before: Any = None
    for name, digest, at in _seen((tool_id, *said.get("aliases", ())), store, reviews):
        definition = store.definition(digest)
        known = before is not None and definition is not None
        versions.append(
            Version(
                tool_id=name,
                digest=digest,
                first_seen=at,
                decisions=tuple(e for e in reviews if (e.tool_id, e.digest) == (name, digest)),
                changed=changes(before, definition) if known else None,
                standing=standing.get((name, digest), ""),
            )
        )
        before = before if definition is None else definition
    return History(tool_id=tool_id, said=said, versions=tuple(versions))


def _now(tool_id: str, snapshot: CatalogSnapshot, rules: Sequence[MetadataRule]) -> str:
    """What the tool is called now that had this id; the id itself where a tool still has it."""
    listed = {one.tool_id for one in snapshot.tools} | {one.tool_id for one in snapshot.withheld}
    if tool_id in listed:
        return tool_id
    return next((rule.pattern for rule in rules if tool_id in rule.fields.get("aliases", ())), tool_id)


def _seen(ids: Sequence[str], store: Store, reviews: Sequence[ReviewEvent]) -> list[tuple[str, str, str]]:
    """(tool id, digest, first seen) of all that was listed or reviewed, in the order of the first that is known."""
    first: dict[tuple[str, str], tuple[str, str]] = {}
    for name in ids:
        for one in store.sightings(name):
            first[name, one.digest] = (one.at, one.at)
    for event in reviews:
        if event.tool_id in ids:
            first.setdefault((event.tool_id, event.digest), (event.at, ""))
    ordered = sorted(first.items(), key=lambda item: item[1][0])
    return [(name, digest, at) for (name, digest), (_, at) in ordered]


def _standings(snapshot: CatalogSnapshot) -> dict[tuple[str, str], str]:
    withheld = {(one.tool_id, one.digest): one.code for one in snapshot.withheld}
    return withheld | {(one.tool_id, one.digest): _in_service(one) for one in snapshot.tools}


def _in_service(tool: Tool) -> str:
    return "deprecated" if tool.state == "deprecated" else "in service"
