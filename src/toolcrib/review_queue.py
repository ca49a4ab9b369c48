"""What stands on the reviewer's desk: definitions and servers, each with all that is known of it.

Floor 4. Above: `review_desk.py`. Below: `review/` finds, `catalog/` compares.

    withheld tool ─▶ findings ─▶ what changed ─▶ its past: approved before, exchanged, renamed ─▶ ReviewItem
    server        ─▶ what was pinned, what runs now ─▶ its instructions ──────────────────────▶ ServerReview

Invariants
1. Only what waits or could not be taken in is here; what is in service and unchanged never comes back (its words count
   as surroundings).
2. A first import of a server is decided with its tools; another provenance is decided for itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from toolcrib import curation
from toolcrib.catalog.grading import FieldChange, changes, graded_from_pins
from toolcrib.catalog.pins import Lock, ServerPin, ToolPin, field_digests, provenance_digest, text_digest
from toolcrib.catalog.servers import provenance_changes
from toolcrib.curation import WAITING
from toolcrib.review.findings import in_order
from toolcrib.review.lint import Finding, Level, Surroundings, lint, lint_instructions, surroundings, worst
from toolcrib.review.signatures import signed_by
from toolcrib.review.signers import unsigned_servers
from toolcrib.settings import Settings, Signer
from toolcrib.types import CatalogSnapshot, ListedTool, ReviewEvent, ServerStatus, Tool, WithheldTool

REVIEWED = (*WAITING, "rejected", "invalid_definition", "duplicate_name")
"""Codes of withheld tools that stand on the desk; what holds the others back is not in their definitions."""
ServerKind: TypeAlias = Literal["first", "provenance", "unsigned", "instructions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewItem:
    """One definition that is not in service, what was found in it, and what is known of its past.

    Args:
        approved_digest: of the definition approved under this id, or "". was: that definition, where it is kept.
        changes: from what is approved, worst first; from the digests in the lock alone where that is not kept.
        approved_before: this very definition was approved before, and another one since.
        swapped_with: the tool whose description it now has, and that has its own.
        renamed_from: a tool of its server that is listed no more and differed in nothing but the name.
        signed_by: whose valid signatures stand under its digest.
    """

    tool: WithheldTool
    findings: tuple[Finding, ...]
    approved_digest: str
    was: Any = None
    changes: tuple[FieldChange, ...] = ()
    approved_before: ReviewEvent | None = None
    swapped_with: str = ""
    renamed_from: str = ""
    signed_by: tuple[str, ...] = ()

    @property
    def waits(self) -> bool:
        """Whether a reviewer has yet to decide; rejected and invalid definitions do not wait."""
        return self.tool.code in WAITING

    @property
    def can_be_approved(self) -> bool:
        return self.tool.code in curation.REVIEWABLE

    @property
    def level(self) -> Level | None:
        """The gravest level among the findings."""
        return worst(self.findings)

    @property
    def grave(self) -> tuple[str, ...]:
        """What asks for a decision about this very definition, with a reason: rules.

        What was found worth blocking; in a definition that changed after its approval, what was found worth a review
        too, and a description that it exchanged with another tool's.
        """
        least = Level.REVIEW if self.tool.code == "changed" else Level.BLOCK
        rules = {finding.rule for finding in self.findings if finding.level.order >= least.order}
        return tuple(sorted(rules | ({"swapped-description"} if self.swapped_with else set())))

    @property
    def gravity(self) -> int:
        """The higher, the earlier it is shown. An exchanged description weighs as much as a finding for review."""
        found = -1 if self.level is None else self.level.order
        return max(found, Level.REVIEW.order) if self.swapped_with else found

    @property
    def is_quiet(self) -> bool:
        """Whether nothing was found that asks for a reader."""
        return self.level in (None, Level.INFO)

    @property
    def is_plain(self) -> bool:
        """Whether it is quiet, and nothing is known of its past that a reviewer should look at."""
        return self.is_quiet and self.tool.code in ("unreviewed", "unsigned") and not self.renamed_from


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerReview:
    """What a server is, where somebody should look at it.

    Args:
        kind: `first`: nothing is pinned of it yet; `provenance`: it is not what was approved; `unsigned`: its pin lacks
            signatures; `instructions`: what it tells clients is another text (nobody is told it by Toolcrib).
        digest: of its provenance now, which an approval names.
        changes: (field, approved, now). findings: in its instructions. n_findings: of its waiting tools, by level.
        n_held: its approved tools that are out of service for what it is.
        on_change: what its configuration makes of another provenance, `block` or `warn`.
    """

    status: ServerStatus
    kind: ServerKind
    digest: str
    changes: tuple[tuple[str, str, str], ...] = ()
    findings: tuple[Finding, ...] = ()
    n_findings: Mapping[Level, int] = field(default_factory=dict)
    n_waiting: int = 0
    n_held: int = 0
    on_change: Literal["block", "warn"] = "block"

    @property
    def server_id(self) -> str:
        return self.status.server_id

    @property
    def waits(self) -> bool:
        """Whether a reviewer has yet to decide about the server itself; a first import is decided with its tools."""
        return self.kind in ("provenance", "unsigned")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewQueue:
    """All that stands on the desk: the gravest first, then by tool id; servers by id."""

    items: tuple[ReviewItem, ...]
    servers: tuple[ServerReview, ...]
    notes: tuple[str, ...] = ()

    @property
    def waits(self) -> bool:
        return any(item.waits for item in self.items) or any(server.waits for server in self.servers)


def left_out(items: Sequence[ReviewItem]) -> dict[str, tuple[str, ...]]:
    """Tool id -> rules, of those that are approved by name alone, not with all the others."""
    found = {item.tool.tool_id: item.grave for item in items if item.waits}
    return {tool_id: rules for tool_id, rules in sorted(found.items()) if rules}


def review_item(
    tool: WithheldTool,
    *,
    around: Surroundings,
    pin: ToolPin | None,
    probed: Finding | None,
    signers: Sequence[Signer],
    definition_of: Callable[[str], Any],
) -> ReviewItem:
    """One withheld definition with its findings, and what it was.

    Args:
        pin: the approval under its id. probed: what the probe at intake found. definition_of: digest -> definition.
    """
    found = lint(tool.definition, around=around)
    approved = pin.digest if pin else ""
    was = definition_of(approved) if tool.code == "changed" else None
    signed = signed_by(pin, subject=tool.tool_id, signers=signers) if pin and approved == tool.digest else ()
    return ReviewItem(
        tool=tool,
        findings=found if probed is None else in_order((probed, *found)),
        approved_digest=approved,
        was=was,
        changes=_changes(tool, was, pin),
        signed_by=signed,
    )


def server_reviews(
    snapshot: CatalogSnapshot,
    *,
    lock: Lock,
    items: Sequence[ReviewItem],
    places: Mapping[str, Surroundings],
    settings: Settings,
) -> tuple[ServerReview, ...]:
    """The enabled servers that somebody should look at, by id; `items` are those on the desk."""
    specs = {spec.server_id: spec for spec in settings.servers if spec.enabled}
    held = Counter(tool.server_id for tool in snapshot.withheld if tool.code == "provenance")
    in_service = {tool.server_id for tool in snapshot.tools}
    unsigned = unsigned_servers(lock, settings.review)
    waiting: dict[str, list[ReviewItem]] = {}
    for item in items:
        if item.waits:
            waiting.setdefault(item.tool.server_id, []).append(item)
    found: list[ServerReview] = []
    for status in snapshot.servers:
        server_id, theirs = status.server_id, waiting.get(status.server_id, [])
        pin = lock.servers.get(server_id)
        kind = _kind(status, pin, is_unsigned=server_id in unsigned, has_tools=bool(theirs) or server_id in in_service)
        if kind is None or server_id not in specs or status.state == "missing":
            continue
        around = places.get(server_id, Surroundings(server_id=server_id))
        found.append(
            ServerReview(
                status=status,
                kind=kind,
                digest=provenance_digest(status.provenance),
                changes=provenance_changes(status, pin),
                findings=lint_instructions(server_id, status.instructions, around=around),
                n_findings=Counter(f.level for item in theirs for f in item.findings),
                n_waiting=len(theirs),
                n_held=held[server_id],
                on_change=specs[server_id].on_provenance,
            )
        )
    return tuple(found)


def surroundings_of(snapshot: CatalogSnapshot) -> dict[str, Surroundings]:
    """What stands around each server's tools: all that is listed, in service or not."""
    return surroundings(
        ListedTool(server_id=tool.server_id, name=tool.name, definition=tool.definition, digest=tool.digest)
        for tool in _all_of(snapshot)
    )


def _all_of(snapshot: CatalogSnapshot) -> Iterator[Tool | WithheldTool]:
    yield from snapshot.tools
    yield from snapshot.withheld


def with_pasts(
    items: Sequence[ReviewItem], *, events: Sequence[ReviewEvent], lock: Lock, snapshot: CatalogSnapshot
) -> list[ReviewItem]:
    """The items with what is known of their past: approved before, swapped, renamed."""
    approved = {(event.tool_id, event.digest): event for event in events if event.action == "approve"}
    swapped, renamed = _swapped(items), _renamed(items, lock, snapshot)
    return [
        replace(
            item,
            approved_before=approved.get((item.tool.tool_id, item.tool.digest))
            if item.tool.code == "changed"
            else None,
            swapped_with=swapped.get(item.tool.tool_id, ""),
            renamed_from=renamed.get(item.tool.tool_id, ""),
        )
        for item in items
    ]


def _swapped(items: Sequence[ReviewItem]) -> dict[str, str]:
    """Tool id -> the tool that it exchanged descriptions with."""
    moved: dict[tuple[str, str], str] = {}
    for item in items:
        was, now = _description(item.was), _description(item.tool.definition)
        if was and now and was != now:
            moved[was, now] = item.tool.tool_id
    return {tool_id: moved[now, was] for (was, now), tool_id in moved.items() if (now, was) in moved}


def _renamed(items: Sequence[ReviewItem], lock: Lock, snapshot: CatalogSnapshot) -> dict[str, str]:
    """New tool -> an approved one that its server lists no more and whose definition had another name alone."""
    listed = {tool.tool_id for tool in _all_of(snapshot)}
    gone = {
        (tool_id.partition(".")[0], _but_name(pin.fields)): tool_id
        for tool_id, pin in sorted(lock.tools.items())
        if tool_id not in listed and len(pin.fields) > 1
    }
    if not gone:
        return {}
    new = [item.tool for item in items if item.tool.code == "unreviewed"]
    found = {tool.tool_id: gone.get((tool.server_id, _but_name(field_digests(tool.definition)))) for tool in new}
    return {tool_id: before for tool_id, before in found.items() if before}


def _but_name(fields: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    return frozenset((key, digest) for key, digest in fields.items() if key != "name")


def _description(definition: Any) -> str:
    text = definition.get("description") if isinstance(definition, Mapping) else None
    return text if isinstance(text, str) else ""


def _changes(tool: WithheldTool, was: Any, pin: ToolPin | None) -> tuple[FieldChange, ...]:
    if tool.code != "changed":
        return ()
    return (
        graded_from_pins(pin.fields if pin else {}, tool.definition) if was is None else changes(was, tool.definition)
    )


def _kind(status: ServerStatus, pin: ServerPin | None, *, is_unsigned: bool, has_tools: bool) -> ServerKind | None:
    """Why somebody should look at this server; None where there is no reason."""
    if pin is None or (not pin.provenance and status.provenance is not None and status.provenance.compared):
        return "first" if has_tools else None
    if provenance_changes(status, pin):
        return "provenance"
    if is_unsigned:
        return "unsigned"
    return "instructions" if pin.instructions != text_digest(status.instructions) else None
