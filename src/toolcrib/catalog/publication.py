"""From listings to a publication: what is written down atomically at the end of a refresh.

Above: `refreshing.py`. Below: `connectors/` took the listings.

Invariants
1. A server that failed keeps what it had, marked `stale` or `partial` with the error; its tools are never reported as
   removed (I8).
2. A server that the operator took out of the configuration is gone.
3. Nothing is dropped here: what cannot be served is published too, with the fault that quarantines it. Only a
   definition nested too deeply to be handled by anybody is published by its name alone, without its body (I12);
   capabilities like that are published as none.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any, Literal

from toolcrib.catalog.digest import definition_digest, digest_of, raw_digest
from toolcrib.catalog.validate import SchemaFault, definition_fault, is_too_deep
from toolcrib.errors import InvalidDefinitionError
from toolcrib.types import ListedTool, Publication, ServerListing, ServerStatus


def publish(
    previous: Publication | None,
    *,
    listings: Sequence[ServerListing],
    failures: Mapping[str, str],
    partial: Collection[str] = (),
    untouched: Sequence[str] = (),
    at: str,
    schema_fault: SchemaFault,
    approved: Mapping[str, str] = MappingProxyType({}),
) -> Publication:
    """The next publication.

    Args:
        failures: server id -> what went wrong. partial: those of them whose list broke off after its first page.
        untouched: configured servers that this refresh did not ask; they keep what they had, as it was.
        at: ISO 8601, UTC.
        approved: tool id -> digest of a definition that was checked when it was approved, and is not checked again.
    Returns:
        Servers sorted by id; each server's tools in the server's order.
    """
    statuses: dict[str, ServerStatus] = {}
    tools: dict[str, tuple[ListedTool, ...]] = {}
    for listing in listings:
        tools[listing.server_id] = tuple(
            _listed(listing.server_id, entry, schema_fault, place=place, approved=approved)
            for place, entry in enumerate(listing.tools, start=1)
        )
        statuses[listing.server_id] = _fresh(listing, at=at)
    for server_id, error in failures.items():
        tools[server_id] = _tools_of(previous, server_id)
        statuses[server_id] = _failed(
            _status_of(previous, server_id),
            server_id,
            error=error,
            state="partial" if server_id in partial else "stale",
        )
    for server_id in untouched:
        status = _status_of(previous, server_id)
        if status is not None:
            tools[server_id], statuses[server_id] = _tools_of(previous, server_id), status
    order = sorted(statuses)
    listed = tuple(tool for server_id in order for tool in tools[server_id])
    return Publication(
        publication_id=digest_of(
            [_told(statuses[server_id]) for server_id in order], [(t.server_id, t.name, t.digest) for t in listed]
        ),
        at=at,
        servers=tuple(statuses[server_id] for server_id in order),
        tools=listed,
    )


def _listed(
    server_id: str, entry: Any, schema_fault: SchemaFault, *, place: int, approved: Mapping[str, str]
) -> ListedTool:
    """What is written down of one entry. One without a usable name goes by its place: `#4`."""
    given = entry.get("name") if isinstance(entry, Mapping) else None
    name = given if isinstance(given, str) and given else f"#{place}"
    known = approved.get(f"{server_id}.{name}")
    if known is not None and _has_digest(entry, known):
        return ListedTool(server_id=server_id, name=name, definition=entry, digest=known)
    fault = definition_fault(entry, schema_fault=schema_fault)
    if is_too_deep(entry):
        body = {"name": name}
        return ListedTool(server_id=server_id, name=name, definition=body, digest=raw_digest(body), fault=fault)
    try:
        digest = definition_digest(entry)
    except InvalidDefinitionError as refused:
        digest, fault = raw_digest(entry), fault or f"{refused.what}, so it cannot be pinned"
    return ListedTool(server_id=server_id, name=name, definition=entry, digest=digest, fault=fault)


def _has_digest(entry: Any, digest: str) -> bool:
    try:
        return definition_digest(entry) == digest
    except InvalidDefinitionError:
        return False


def _fresh(listing: ServerListing, *, at: str) -> ServerStatus:
    return ServerStatus(
        server_id=listing.server_id,
        state="fresh",
        n_tools=len(listing.tools),
        listed_at=at,
        protocol_version=listing.protocol_version,
        server_version=listing.server_version,
        instructions=listing.instructions,
        capabilities={} if is_too_deep(listing.capabilities) else listing.capabilities,
        provenance=listing.provenance,
        credential=listing.credential,
    )


def _told(status: ServerStatus) -> list[object]:
    """What makes another publication of it: all but when it was taken."""
    told = {field.name: getattr(status, field.name) for field in fields(status) if field.name != "listed_at"}
    return [{**told, "provenance": status.provenance.compared if status.provenance else {}}]


def _failed(
    before: ServerStatus | None, server_id: str, *, error: str, state: Literal["partial", "stale"]
) -> ServerStatus:
    if before is None or before.state == "missing":
        return ServerStatus(server_id=server_id, state="missing", n_tools=0, error=error)
    return replace(before, state=state, error=error)


def _tools_of(publication: Publication | None, server_id: str) -> tuple[ListedTool, ...]:
    return tuple(t for t in publication.tools if t.server_id == server_id) if publication else ()


def _status_of(publication: Publication | None, server_id: str) -> ServerStatus | None:
    return next((s for s in publication.servers if s.server_id == server_id), None) if publication else None
