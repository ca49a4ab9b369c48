"""Review: how definitions that came in (`refreshing.py`) are let into service, or not.

Floor 4. Above: `review_desk.py` shows and decides. Below: `catalog/` compares, `store/` and the lock remember.

Invariants
1. An approval names one digest: the one the reviewer was shown.
2. Lock and log are written together, under the lock's guard: each decision stands in both, in one order.
3. What a server is was pinned by a decision of somebody; another one replaces it only by `approve_server`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from toolcrib.catalog.lock import update_lock
from toolcrib.catalog.pins import Lock, ServerPin, ToolPin, server_pin, tool_pin
from toolcrib.errors import ConfigError, ToolNotFoundError
from toolcrib.review.signers import Signing, server_subject
from toolcrib.store.protocol import Store
from toolcrib.types import CatalogSnapshot, ReviewEvent, WithheldTool

WAITING = ("unreviewed", "changed", "unsigned")
"""Codes of withheld tools that a reviewer has yet to decide about."""
REVIEWABLE = (*WAITING, "rejected")
"""Codes of withheld tools that an approval can bring into service; the others must change first."""
_MIN_PIN_CHARS = 8
Shown: TypeAlias = Mapping[tuple[str, str], Sequence[str]]
"""(tool id or server id, digest) -> the rules that had something to say when it was decided."""


def approve(
    store: Store,
    *,
    lock: Path,
    snapshot: CatalogSnapshot,
    wanted: Sequence[str] | None,
    reviewer: str,
    reason: str = "",
    findings: Shown = MappingProxyType({}),
    signing: Signing | None = None,
) -> tuple[WithheldTool, ...]:
    """Put definitions into service, or add a signature to their approval.

    The first approval of a tool of a server pins what the server is, too.

    Args:
        wanted: tool ids, globs, or `TOOL_ID@DIGEST-BEGINNING` to pin what was shown; None for all that wait.
        findings: what was shown; kept in the log.
        signing: who signs.
    Returns:
        What was approved. What is approved already, and signed by this signer, is not among it.
    Raises:
        ToolNotFoundError: an id is unknown, already in service, or cannot be approved; nothing is approved then.
    """
    if wanted is None:
        chosen = [tool for tool in snapshot.withheld if tool.code in WAITING]
    else:
        chosen = _named(snapshot, wanted)
    done: list[WithheldTool] = []
    servers = {status.server_id: server_pin(status) for status in snapshot.servers}

    def with_them(before: Lock) -> Lock:
        pins = {tool.tool_id: _pin(tool, before.tools.get(tool.tool_id), signing) for tool in chosen}
        done.extend(t for t in chosen if t.code != "unsigned" or pins[t.tool_id] != before.tools.get(t.tool_id))
        theirs = {tool.server_id: servers[tool.server_id] for tool in done if tool.server_id in servers}
        known = {server_id: _known_pin(pin, before, server_id, signing) for server_id, pin in theirs.items()}
        decided = [
            _event("approve", t.tool_id, t.digest, reviewer, reason, shown=findings, signing=signing) for t in done
        ]
        pinned = [
            _event("pin", server_id, pin.digest, reviewer, reason, shown=findings, signing=signing)
            for server_id, pin in known.items()
            if pin.provenance and pin != before.servers.get(server_id)
        ]
        after = Lock(
            tools={**before.tools, **{t.tool_id: pins[t.tool_id] for t in done}}, servers={**before.servers, **known}
        )
        return _logged(store, [*pinned, *decided], after)

    if chosen:
        update_lock(lock, with_them)
    return tuple(done)


def approve_server(
    store: Store,
    *,
    lock: Path,
    snapshot: CatalogSnapshot,
    server_id: str,
    digest: str,
    reviewer: str,
    reason: str = "",
    findings: Shown = MappingProxyType({}),
    signing: Signing | None = None,
) -> bool:
    """Pin what a server is now, in the place of what it was.

    Args:
        digest: of the provenance that the reviewer was shown; at least its beginning.
    Returns:
        False where that is pinned already, and signed by this signer.
    Raises:
        ToolNotFoundError: there is no list of such a server, or it is not what was shown any more.
    """
    status = next((s for s in snapshot.servers if s.server_id == server_id and s.state != "missing"), None)
    if status is None:
        raise ToolNotFoundError(f"no server {server_id!r} was ever listed", hint="run `toolcrib refresh`")
    now = server_pin(status)
    if len(digest.removeprefix("sha256:")) < _MIN_PIN_CHARS or not now.digest.startswith(digest):
        hint = "look at it again: toolcrib review"
        raise ToolNotFoundError(f"server {server_id!r} is not what you were shown any more", hint=hint)
    changed: list[bool] = []

    def with_it(before: Lock) -> Lock:
        was = before.servers.get(server_id)
        pin = _signed_server(now, was, server_id, signing)
        changed.append(pin != was)
        made = _event("pin", server_id, pin.digest, reviewer, reason, shown=findings, signing=signing)
        return _logged(
            store, [made] if pin != was else [], Lock(tools=before.tools, servers={**before.servers, server_id: pin})
        )

    update_lock(lock, with_it)
    return changed[-1]


def reject(
    store: Store,
    *,
    lock: Path,
    snapshot: CatalogSnapshot,
    wanted: Sequence[str],
    reviewer: str,
    reason: str = "",
    findings: Shown = MappingProxyType({}),
) -> tuple[str, ...]:
    """Refuse definitions, or take approved ones out of service; the tool ids, in the order given.

    Args:
        wanted: tool ids, or `TOOL_ID@DIGEST-BEGINNING` to refuse what was shown and nothing else.
    Raises:
        ToolNotFoundError: an id is unknown, or not what was shown; nothing is refused then.
    """
    held = {tool.tool_id: tool.digest for tool in snapshot.withheld}
    digests = held | {tool.tool_id: tool.digest for tool in snapshot.tools}
    named = [one.partition("@sha256:") for one in wanted]
    chosen = {
        tool_id: digests[tool_id]
        for tool_id, at, begin in named
        if tool_id in digests and (not at or digests[tool_id].startswith(at[1:] + begin))
    }
    missing = [one for one, (tool_id, _, _) in zip(wanted, named, strict=True) if tool_id not in chosen]
    if missing:
        raise ToolNotFoundError(f"not in the catalog: {', '.join(missing)}", hint="see `toolcrib review`")
    events = [_event("reject", tool_id, digest, reviewer, reason, shown=findings) for tool_id, digest in chosen.items()]

    def without(before: Lock) -> Lock:
        kept = {t: pin for t, pin in before.tools.items() if chosen.get(t) != pin.digest}
        return _logged(store, events, Lock(tools=kept, servers=before.servers))

    update_lock(lock, without)
    return tuple(chosen)


def _logged(store: Store, events: list[ReviewEvent], lock: Lock) -> Lock:
    """The new lock, after its decisions were logged: both happen under the lock's guard, so their orders agree."""
    store.add_reviews(events)
    return lock


def _pin(tool: WithheldTool, was: ToolPin | None, signing: Signing | None) -> ToolPin:
    """The tool's pin: the signatures under the same digest stay, all others go."""
    kept = dict(was.signatures) if was and was.digest == tool.digest else {}
    if signing:
        kept[signing.name] = signing.signature(tool.tool_id, tool.digest)
    return tool_pin(tool.definition, digest=tool.digest, signatures=kept)


def _known_pin(now: ServerPin, before: Lock, server_id: str, signing: Signing | None) -> ServerPin:
    """A server's pin after a tool of it was approved: what was pinned stays, and nothing pinned is pinned now."""
    was = before.servers.get(server_id)
    if was is not None and (was.provenance or not now.provenance):
        same = was.provenance and was.digest == now.digest
        return _signed_server(was, was, server_id, signing) if same else was
    return _signed_server(now, was, server_id, signing)


def _signed_server(pin: ServerPin, was: ServerPin | None, server_id: str, signing: Signing | None) -> ServerPin:
    kept = dict(was.signatures) if was and was.digest == pin.digest else {}
    if signing and pin.provenance:
        kept[signing.name] = signing.signature(server_subject(server_id), pin.digest)
    return replace(pin, signatures=kept)


def rejected_pairs(events: Sequence[ReviewEvent]) -> frozenset[tuple[str, str]]:
    """(tool id, digest) pairs whose latest decision is a rejection."""
    latest = {(event.tool_id, event.digest): event.action for event in events}
    return frozenset(pair for pair, action in latest.items() if action == "reject")


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _event(
    action: Any,
    subject: str,
    digest: str,
    reviewer: str,
    reason: str,
    *,
    shown: Shown,
    signing: Signing | None = None,
) -> ReviewEvent:
    signed = server_subject(subject) if action == "pin" else subject
    return ReviewEvent(
        at=now(),
        action=action,
        tool_id=subject,
        digest=digest,
        reviewer=reviewer,
        reason=reason,
        findings=tuple(sorted(set(shown.get((subject, digest), ())))),
        signer=signing.name if signing else "",
        signature=signing.signature(signed, digest) if signing else "",
    )


def _named(snapshot: CatalogSnapshot, wanted: Sequence[str]) -> list[WithheldTool]:
    """The withheld tools that are named, each once; what is in service as named needs nothing and is left out."""
    held: dict[str, list[WithheldTool]] = {}
    for tool in snapshot.withheld:
        held.setdefault(tool.tool_id, []).append(tool)
    served = {tool.tool_id: tool.digest for tool in snapshot.tools}
    found: dict[str, WithheldTool] = {}
    for asked in wanted:
        for one in [asked] if _id_of(asked) in held else _expanded(snapshot, asked):
            tool_id, digest = _id_of(one), one.partition("@sha256:")[2]
            if not served.get(tool_id, "").startswith("sha256:" + digest):
                found[tool_id] = _find(held.get(tool_id, []), one)
    return list(found.values())


def _id_of(wanted: str) -> str:
    """The tool id in it. One that exists is never read as a glob: a server may name its tool `*`."""
    return wanted.partition("@sha256:")[0]


def _expanded(snapshot: CatalogSnapshot, wanted: str) -> list[str]:
    """The waiting tools that a glob names; anything else is itself."""
    if not any(character in wanted for character in "*?["):
        return [wanted]
    waiting = [t for t in snapshot.withheld if t.code in WAITING and fnmatchcase(t.tool_id, wanted)]
    served = any(fnmatchcase(tool.tool_id, wanted) for tool in snapshot.tools)
    if not waiting and not served:
        raise ToolNotFoundError(f"no tool that waits is named like {wanted!r}", hint="see `toolcrib review`")
    return [tool.tool_id for tool in waiting]


def _find(named: Sequence[WithheldTool], wanted: str) -> WithheldTool:
    tool_id, at, digest = wanted.partition("@sha256:")
    if at and len(digest) < _MIN_PIN_CHARS:
        raise ConfigError(
            f"a digest needs at least {_MIN_PIN_CHARS} hex digits: {wanted!r}", hint="as `toolcrib review` shows it"
        )
    if not named:
        raise ToolNotFoundError(f"no tool {tool_id!r} waits for review", hint="see `toolcrib review`")
    fitting = [t for t in named if t.code in REVIEWABLE and (not at or t.digest.startswith("sha256:" + digest))]
    if not fitting and at and any(t.code in REVIEWABLE for t in named):
        hint = f"look at it again: toolcrib review {tool_id}"
        raise ToolNotFoundError(f"{tool_id!r} is not the definition you were shown any more", hint=hint)
    if not fitting:
        raise ToolNotFoundError(
            f"{tool_id!r} cannot be approved: {named[0].reason}", hint=_HINTS.get(named[0].code, "")
        )
    return fitting[0]


_HINTS = {
    "provenance": "look at its server first: toolcrib review",
    "credential": "run `toolcrib refresh`",
    "excluded": "see `allow_tools` of its server",
    "invalid_definition": "its server must change it",
    "duplicate_name": "its server must change it",
}
