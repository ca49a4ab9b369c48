"""From a publication, the approvals and the operator's metadata to a snapshot: what is in service, and what is not.

    listed ──▶ quarantined ──▶ approved ──▶ deprecated ──▶ retired
                  ▲  (digest stands in the lock)  (operator's `status`)
                  └── changed: another digest than the approved one

Above: `assembly.py`. Below: `publication.py` (what was listed), `metadata.py` (what the operator says).

Invariants
1. A tool is in service only when its definition is sound, its name is unique on its server, its server is enabled, its
   digest is the approved one and its status is not `retired` (I4).
2. One bad definition withholds itself and nobody else (I12).
3. Same inputs, same `version`; any change of id, digest, state or metadata changes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields

from toolcrib.catalog.digest import digest_of
from toolcrib.catalog.metadata import MetadataRule, tool_metadata
from toolcrib.types import (
    CatalogSnapshot,
    ListedTool,
    Publication,
    ServerSpec,
    Tool,
    ToolMetadata,
    ToolState,
    WithheldTool,
)


def build_snapshot(
    publication: Publication,
    *,
    approved: Mapping[str, str],
    rejected: frozenset[tuple[str, str]] = frozenset(),
    servers: Sequence[ServerSpec],
    rules: Sequence[MetadataRule],
) -> CatalogSnapshot:
    """What is in service and what is withheld, with the reason.

    Args:
        approved: tool id -> approved digest, from the lock.
        rejected: (tool id, digest) pairs that a reviewer refused.
    """
    specs = {server.server_id: server for server in servers}
    listed = [tool for tool in _without_twins(publication.tools) if tool.server_id in specs]
    names = Counter((tool.server_id, tool.name) for tool in listed)
    tools: list[Tool] = []
    withheld: list[WithheldTool] = []
    for entry in listed:
        tool_id = f"{entry.server_id}.{entry.name}"
        code, reason = _fault(entry, n_same=names[entry.server_id, entry.name], spec=specs[entry.server_id])
        if not code:
            code, reason = _review(tool_id, entry.digest, approved=approved, rejected=rejected)
        if code:
            withheld.append(_withheld(entry, state=ToolState.QUARANTINED, code=code, reason=reason))
            continue
        metadata = tool_metadata(tool_id, definition=entry.definition, server=specs[entry.server_id], rules=rules)
        if metadata.status == "retired":
            reason = f"retired by its operator{', replaced by ' + metadata.replaced_by if metadata.replaced_by else ''}"
            withheld.append(_withheld(entry, state=ToolState.RETIRED, code="retired", reason=reason))
            continue
        tools.append(
            Tool(
                tool_id=tool_id,
                server_id=entry.server_id,
                name=entry.name,
                definition=entry.definition,
                digest=entry.digest,
                state=ToolState.DEPRECATED if metadata.status == "deprecated" else ToolState.APPROVED,
                metadata=metadata,
            )
        )
    tools.sort(key=lambda tool: tool.tool_id)
    withheld.sort(key=lambda tool: (tool.tool_id, tool.digest))
    return CatalogSnapshot(
        version=digest_of(
            [(t.tool_id, t.digest, t.state, _plain(t.metadata)) for t in tools],
            [(w.tool_id, w.digest, w.state, w.code) for w in withheld],
        ),
        tools=tuple(tools),
        withheld=tuple(withheld),
        servers=publication.servers,
    )


_METADATA = tuple(field.name for field in fields(ToolMetadata))


def _plain(metadata: ToolMetadata) -> list[object]:
    """Its values in order; `dataclasses.asdict` copies deeply and costs ten times as much over thousands of tools."""
    return [getattr(metadata, name) for name in _METADATA]


def _without_twins(tools: Sequence[ListedTool]) -> list[ListedTool]:
    """A server that lists the very same definition twice has listed it once."""
    seen: set[tuple[str, str, str]] = set()
    kept = []
    for tool in tools:
        key = (tool.server_id, tool.name, tool.digest)
        if key not in seen:
            seen.add(key)
            kept.append(tool)
    return kept


def _fault(entry: ListedTool, *, n_same: int, spec: ServerSpec) -> tuple[str, str]:
    if not spec.enabled:
        return "server_disabled", f"server {spec.server_id} is disabled in the configuration"
    if entry.fault or not entry.digest.startswith("sha256:"):
        return "invalid_definition", entry.fault
    if n_same > 1:
        return "duplicate_name", f"server {spec.server_id} lists {n_same} different tools named {entry.name!r}"
    return "", ""


def _review(
    tool_id: str, digest: str, *, approved: Mapping[str, str], rejected: frozenset[tuple[str, str]]
) -> tuple[str, str]:
    if approved.get(tool_id) == digest:
        return "", ""
    if (tool_id, digest) in rejected:
        return "rejected", "a reviewer rejected this definition"
    if tool_id in approved:
        return "changed", "the definition is not the approved one any more"
    return "unreviewed", "nobody has approved this definition yet"


def _withheld(entry: ListedTool, *, state: ToolState, code: str, reason: str) -> WithheldTool:
    return WithheldTool(
        tool_id=f"{entry.server_id}.{entry.name}",
        server_id=entry.server_id,
        name=entry.name,
        definition=entry.definition,
        digest=entry.digest,
        state=state,
        code=code,
        reason=reason,
    )
