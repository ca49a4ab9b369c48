"""`toolcrib lock write`: the lock made whole from what was published.

    crib ─▶ (all that waits approved) ─▶ servers pinned ─▶ fields added, old pins dropped ─▶ LockWritten

Floor 4. Above: `cli/lock.py`. Below: `crib.py` approves and pins, `catalog/lock.py` writes.

Invariants
1. Nothing is let in: what is added says more of what is approved, what is dropped is gone for sure.
2. Approving is asked for, logged, and leaves out what must be approved by name. A server that is not what was
   approved is left to a reviewer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolcrib.catalog.lock import read_lock, update_lock
from toolcrib.catalog.pins import Lock, field_digests, provenance_digest, server_pin
from toolcrib.catalog.servers import provenance_changes, provenance_fault
from toolcrib.crib import Crib
from toolcrib.errors import StoreError
from toolcrib.locking import is_unpinned, servers_with_tools
from toolcrib.review_queue import left_out
from toolcrib.types import Publication, ServerSpec

_ON_PURPOSE = ("retired", "disabled", "server_disabled", "excluded", "provenance", "credential")
"""Why approved tools, and those that the operator takes out, may not serve: nothing that an approval would change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockWritten:
    """What was written down, and what was not.

    Args:
        approved, completed, dropped: tool ids. pinned, dropped_servers: server ids.
        left_out: tool id -> why it is not in the lock. held: server id -> how it differs from what was approved.
    """

    approved: tuple[str, ...]
    completed: tuple[str, ...]
    pinned: tuple[str, ...]
    dropped: tuple[str, ...]
    dropped_servers: tuple[str, ...]
    left_out: Mapping[str, str]
    held: Mapping[str, str]

    @property
    def changed_anything(self) -> bool:
        return any((self.approved, self.completed, self.pinned, self.dropped, self.dropped_servers))


def complete_lock(
    crib: Crib, *, reviewer: str, reason: str = "", approve_all: bool = False, prune: bool = False
) -> LockWritten:
    """Make the lock whole from what was published: digests by field, pins of servers, and what is gone dropped.

    Args:
        approve_all: approve what waits, too, but for what must be approved by name.
        prune: drop pins of tools that fresh servers list no more, and of servers that are not configured.
    Raises:
        StoreError: nothing was published yet.
    """
    publication = crib.store.current()
    if publication is None:
        raise StoreError("there is no catalog yet", where=str(crib.settings.root), hint="run `toolcrib refresh`")
    path = crib.settings.lock
    before = read_lock(path)
    blocked = _approve_waiting(crib, reviewer=reviewer, reason=reason) if approve_all else {}
    approved = read_lock(path)
    pinned = _pin_servers(crib, publication, reviewer=reviewer, reason=reason)
    dropped = _stale_pins(read_lock(path), publication, crib.settings.servers) if prune else Lock()
    held: list[Lock] = []

    def completed(lock: Lock) -> Lock:
        held.append(lock)
        return _completed(_without(lock, dropped), publication)

    after = update_lock(path, completed)
    return LockWritten(
        approved=tuple(sorted(t for t, pin in approved.tools.items() if before.approved.get(t) != pin.digest)),
        completed=tuple(sorted(t for t, pin in after.tools.items() if pin != held[0].tools.get(t))),
        pinned=pinned,
        dropped=tuple(sorted(held[0].tools.keys() - after.tools.keys())),
        dropped_servers=tuple(sorted(held[0].servers.keys() - after.servers.keys())),
        left_out=_waiting(crib, blocked),
        held=_held_servers(publication, after, crib.settings.servers),
    )


def _approve_waiting(crib: Crib, *, reviewer: str, reason: str) -> dict[str, str]:
    """Approve what waits, by the digests it has now; what was left out for its findings, and which."""
    queue = crib.review_desk.queue(probe=False)
    waiting = [item for item in queue.items if item.waits and item.tool.code != "unsigned"]
    blocked = left_out(waiting)
    chosen = [f"{i.tool.tool_id}@{i.tool.digest}" for i in waiting if i.tool.tool_id not in blocked]
    if chosen:
        crib.approve(chosen, reviewer=reviewer, reason=reason)
    return {tool_id: f"findings: {', '.join(rules)}" for tool_id, rules in blocked.items()}


def _pin_servers(crib: Crib, publication: Publication, *, reviewer: str, reason: str) -> tuple[str, ...]:
    """Pin what servers with approved tools are, where nothing was; take down anew what they say of themselves.

    A server that is not what was approved is left to a reviewer.
    """
    lock, enabled = read_lock(crib.settings.lock), {s.server_id for s in crib.settings.servers if s.enabled}
    wanted = servers_with_tools(lock) & enabled
    done: list[str] = []
    for status in publication.servers:
        server_id, pin = status.server_id, lock.servers.get(status.server_id)
        if server_id not in wanted or status.state == "missing":
            continue
        says_otherwise = pin is not None and replace(server_pin(status), signatures=pin.signatures) != pin
        if is_unpinned(status, pin) or (says_otherwise and not provenance_changes(status, pin)):
            digest = provenance_digest(status.provenance)
            if crib.approve_server(server_id, digest=digest, reviewer=reviewer, reason=reason or "lock write"):
                done.append(server_id)
    return tuple(done)


def _stale_pins(lock: Lock, publication: Publication, servers: Sequence[ServerSpec]) -> Lock:
    """The pins of what is gone for sure: not listed by a fresh server, or of a server that is not configured."""
    configured = {server.server_id for server in servers}
    fresh = {status.server_id for status in publication.servers if status.state == "fresh"}
    listed = {f"{tool.server_id}.{tool.name}" for tool in publication.tools}

    def is_gone(tool_id: str) -> bool:
        server_id = tool_id.partition(".")[0]
        return server_id not in configured or (server_id in fresh and tool_id not in listed)

    return Lock(
        tools={tool_id: pin for tool_id, pin in lock.tools.items() if is_gone(tool_id)},
        servers={server_id: pin for server_id, pin in lock.servers.items() if server_id not in configured},
    )


def _without(lock: Lock, dropped: Lock) -> Lock:
    """The lock without these pins, unless they were changed meanwhile."""
    return Lock(
        tools={t: pin for t, pin in lock.tools.items() if dropped.tools.get(t) != pin},
        servers={s: pin for s, pin in lock.servers.items() if dropped.servers.get(s) != pin},
    )


def _completed(lock: Lock, publication: Publication) -> Lock:
    """The lock with digests by field for approved definitions that had none."""
    listed: dict[tuple[str, str], Any] = {
        (f"{tool.server_id}.{tool.name}", tool.digest): tool.definition for tool in publication.tools
    }
    tools = {
        tool_id: pin
        if pin.fields or (tool_id, pin.digest) not in listed
        else replace(pin, fields=field_digests(listed[tool_id, pin.digest]))
        for tool_id, pin in lock.tools.items()
    }
    return replace(lock, tools=tools)


def _waiting(crib: Crib, blocked: Mapping[str, str]) -> dict[str, str]:
    """What is listed and not approved, and why. Retired, disabled and excluded tools are left out on purpose."""
    return {
        tool.tool_id: blocked.get(tool.tool_id, f"{tool.code}: {tool.reason}")
        for tool in crib.snapshot().withheld
        if tool.code not in _ON_PURPOSE
    }


def _held_servers(publication: Publication, lock: Lock, servers: Sequence[ServerSpec]) -> dict[str, str]:
    enabled = {server.server_id for server in servers if server.enabled}
    asked = [s for s in publication.servers if s.server_id in enabled and s.state != "missing"]
    faults = {s.server_id: provenance_fault(s, lock.servers.get(s.server_id)) for s in asked}
    return {server_id: fault for server_id, fault in faults.items() if fault}
