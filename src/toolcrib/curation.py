"""Refresh and review: how definitions come in, and how a reviewer lets them into service.

Floor 4, beside `crib.py`. Below: `connectors/` lists, `catalog/` compares and publishes, `review/` finds what to look
at, `store/` and the lock remember.

Invariants
1. A refresh publishes once, at the end, everything or nothing (I8); it approves nothing (I4).
2. An approval names one digest: the one the reviewer was shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from toolcrib.catalog.diff import CatalogDiff, diff
from toolcrib.catalog.lock import update_lock
from toolcrib.catalog.pins import Lock, server_pin, tool_pin
from toolcrib.catalog.publication import publish
from toolcrib.connectors.listing import ListingFailure
from toolcrib.errors import ConfigError, ToolcribError, ToolNotFoundError
from toolcrib.gate.arguments import schema_fault
from toolcrib.review.lint import Finding, lint
from toolcrib.store.protocol import Store
from toolcrib.types import CatalogSnapshot, Publication, ReviewEvent, ServerListing, WithheldTool

WAITING = ("unreviewed", "changed")
"""Codes of withheld tools that a reviewer has yet to decide about."""
REVIEWABLE = (*WAITING, "rejected")
"""Codes of withheld tools that an approval can bring into service; the others must change first."""
_MIN_PIN_CHARS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshReport:
    """What a refresh found. `failed`: server id -> why; those servers keep what they had."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    n_unchanged: int
    failed: Mapping[str, str]
    n_servers: int
    n_tools: int
    n_in_service: int
    withheld: Mapping[str, int]
    catalog_version: str

    def to_dict(self) -> dict[str, Any]:
        return {key: list(v) if isinstance(v, tuple) else v for key, v in asdict(self).items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewItem:
    """One definition that waits for a reviewer, what was found in it, and what was approved before it."""

    tool: WithheldTool
    findings: tuple[Finding, ...]
    approved_digest: str

    @property
    def waits(self) -> bool:
        """Whether a reviewer has yet to decide; rejected and invalid definitions do not wait."""
        return self.tool.code in WAITING

    @property
    def can_be_approved(self) -> bool:
        return self.tool.code in REVIEWABLE


def take_in(
    store: Store, listings: Sequence[ServerListing | ListingFailure], *, untouched: Sequence[str], partial: bool = False
) -> tuple[Publication, CatalogDiff]:
    """Publish what the servers listed; the publication and what it changed.

    Args:
        partial: not every server was asked, so that a damaged publication is not mended: other parts would be lost.
    Raises:
        StoreError: the store cannot be read or written; nothing was published.
    """
    failed = [listing for listing in listings if isinstance(listing, ListingFailure)]

    def made(before: Publication | None) -> Publication:
        return publish(
            before,
            listings=[listing for listing in listings if isinstance(listing, ServerListing)],
            failures={failure.server_id: _told(failure.error) for failure in failed},
            partial=[failure.server_id for failure in failed if failure.is_partial],
            untouched=untouched,
            at=now(),
            schema_fault=schema_fault,
        )

    done = store.publish(made, mend=not partial)
    return done.after, diff(done.before, done.after)


def review_items(
    snapshot: CatalogSnapshot, *, approved: Mapping[str, str], probed: Mapping[str, Finding]
) -> tuple[ReviewItem, ...]:
    """Everything that is not in service and not retired, most findings first.

    Args:
        probed: what the probe at intake found, by tool id.
    """
    items = [
        ReviewItem(tool=tool, findings=_findings(tool, probed), approved_digest=approved.get(tool.tool_id, ""))
        for tool in snapshot.withheld
        if tool.code not in ("retired", "server_disabled", "disabled")
    ]
    return tuple(sorted(items, key=lambda item: (-len(item.findings), item.tool.tool_id)))


def approve(
    store: Store,
    *,
    lock: Path,
    snapshot: CatalogSnapshot,
    wanted: Sequence[str] | None,
    reviewer: str,
    reason: str = "",
) -> tuple[WithheldTool, ...]:
    """Put definitions into service.

    Args:
        wanted: tool ids, globs, or `TOOL_ID@DIGEST-BEGINNING` to pin what was shown; None for all that wait.
    Returns:
        What was approved.
    Raises:
        ToolNotFoundError: an id is unknown, already in service, or cannot be approved; nothing is approved then.
    """
    chosen: list[WithheldTool]
    if wanted is None:
        chosen = [tool for tool in snapshot.withheld if tool.code in WAITING]
    else:
        named = [found for one in wanted for found in _expanded(snapshot, one)]
        chosen = [_find(snapshot, one) for one in dict.fromkeys(named) if not _in_service(snapshot, one)]
    if chosen:
        events = [_event("approve", tool.tool_id, tool.digest, reviewer, reason) for tool in chosen]
        pins = {tool.tool_id: tool_pin(tool.definition, digest=tool.digest) for tool in chosen}
        first = {status.server_id: server_pin(status) for status in snapshot.servers}
        servers = {tool.server_id: first[tool.server_id] for tool in chosen if tool.server_id in first}
        update_lock(
            lock,
            lambda before: _logged(
                store, events, Lock(tools={**before.tools, **pins}, servers={**servers, **before.servers})
            ),
        )
    return tuple(chosen)


def reject(
    store: Store, *, lock: Path, snapshot: CatalogSnapshot, wanted: Sequence[str], reviewer: str, reason: str = ""
) -> tuple[str, ...]:
    """Refuse definitions, or take approved ones out of service; the tool ids, in the order given."""
    held = {tool.tool_id: tool.digest for tool in snapshot.withheld}
    digests = held | {tool.tool_id: tool.digest for tool in snapshot.tools}
    missing = [tool_id for tool_id in wanted if tool_id not in digests]
    if missing:
        raise ToolNotFoundError(f"not in the catalog: {', '.join(missing)}", hint="see `toolcrib review`")
    events = [_event("reject", tool_id, digests[tool_id], reviewer, reason) for tool_id in wanted]

    def without(before: Lock) -> Lock:
        kept = {t: pin for t, pin in before.tools.items() if t not in wanted or digests[t] != pin.digest}
        return _logged(store, events, Lock(tools=kept, servers=before.servers))

    update_lock(lock, without)
    return tuple(wanted)


def _logged(store: Store, events: list[ReviewEvent], lock: Lock) -> Lock:
    """The new lock, after its decisions were logged: both happen under the lock's guard, so their orders agree."""
    store.add_reviews(events)
    return lock


def _findings(tool: WithheldTool, probed: Mapping[str, Finding]) -> tuple[Finding, ...]:
    told = probed.get(tool.tool_id) if tool.code in WAITING else None
    return lint(tool.definition) if told is None else (told, *lint(tool.definition))


def rejected_pairs(events: Sequence[ReviewEvent]) -> frozenset[tuple[str, str]]:
    """(tool id, digest) pairs whose latest decision is a rejection."""
    latest = {(event.tool_id, event.digest): event.action for event in events}
    return frozenset(pair for pair, action in latest.items() if action == "reject")


def _told(error: ToolcribError) -> str:
    """A listing's failure in words: what, where if that is not just the server, what to do."""
    where = "" if not error.where or error.where.startswith("server ") else f"{error.where}: "
    return f"{where}{error.what}" + (f"\n  -> {error.hint}" if error.hint else "")


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _event(action: Any, tool_id: str, digest: str, reviewer: str, reason: str) -> ReviewEvent:
    return ReviewEvent(at=now(), action=action, tool_id=tool_id, digest=digest, reviewer=reviewer, reason=reason)


def _in_service(snapshot: CatalogSnapshot, wanted: str) -> bool:
    """Whether exactly this is in service already, so that approving it again changes nothing."""
    tool_id, _, digest = wanted.partition("@sha256:")
    return any(t.tool_id == tool_id and t.digest.startswith("sha256:" + digest) for t in snapshot.tools)


def _expanded(snapshot: CatalogSnapshot, wanted: str) -> list[str]:
    """The waiting tools that a glob names; anything else is itself."""
    if not any(character in wanted for character in "*?["):
        return [wanted]
    waiting = [t for t in snapshot.withheld if t.code in WAITING and fnmatchcase(t.tool_id, wanted)]
    served = any(fnmatchcase(tool.tool_id, wanted) for tool in snapshot.tools)
    if not waiting and not served:
        raise ToolNotFoundError(f"no tool that waits is named like {wanted!r}", hint="see `toolcrib review`")
    return [tool.tool_id for tool in waiting]


def _find(snapshot: CatalogSnapshot, wanted: str) -> WithheldTool:
    tool_id, at, digest = wanted.partition("@sha256:")
    if at and len(digest) < _MIN_PIN_CHARS:
        raise ConfigError(
            f"a digest needs at least {_MIN_PIN_CHARS} hex digits: {wanted!r}", hint="as `toolcrib review` shows it"
        )
    named = [tool for tool in snapshot.withheld if tool.tool_id == tool_id]
    if not named:
        raise ToolNotFoundError(f"no tool {tool_id!r} waits for review", hint="see `toolcrib review`")
    fitting = [t for t in named if t.code in REVIEWABLE and (not at or t.digest.startswith("sha256:" + digest))]
    if not fitting and at and any(t.code in REVIEWABLE for t in named):
        hint = f"look at it again: toolcrib review {tool_id}"
        raise ToolNotFoundError(f"{tool_id!r} is not the definition you were shown any more", hint=hint)
    if not fitting:
        raise ToolNotFoundError(f"{tool_id!r} cannot be approved: {named[0].reason}", hint="its server must change it")
    return fitting[0]
