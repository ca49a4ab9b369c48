"""From a publication, the approvals and the operator's metadata to a snapshot: what is in service, and what is not.

    listed ──▶ quarantined ──▶ approved ──▶ deprecated ──▶ retired
                  ▲  (digest stands in the lock)  (operator's `status`)
                  └── changed: another digest than the approved one

Above: `assembly.py`. Below: `publication.py` (what was listed), `metadata.py` (what the operator says).

Invariants
1. A tool is in service only when its definition is sound, its name is unique on its server and taken in from there, its
   server is enabled and still the approved one, its digest is the approved one, is really its own, was not rejected
   since and has the signatures it needs, and its operator has neither retired nor disabled it (I4).
2. One bad definition withholds itself and nobody else (I12).
3. Same inputs, same `version`; any change of id, digest, state or metadata changes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from fnmatch import fnmatchcase
from types import MappingProxyType

from toolcrib.catalog.digest import definition_digest, digest_of
from toolcrib.catalog.metadata import MetadataRule, tool_metadata
from toolcrib.errors import InvalidDefinitionError
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
    blocked: Mapping[str, tuple[str, str]] = MappingProxyType({}),
    unsigned: Mapping[str, str] = MappingProxyType({}),
) -> CatalogSnapshot:
    """What is in service and what is withheld, with the reason.

    Args:
        approved: tool id -> approved digest, from the lock.
        rejected: (tool id, digest) pairs whose newest review is a rejection. They stay out of service whatever the lock
            says, so that an older lock out of version control does not bring them back; approving them again does.
    """
    specs = {server.server_id: server for server in servers}
    listed = [tool for tool in _without_twins(publication.tools) if tool.server_id in specs]
    names = Counter((tool.server_id, tool.name) for tool in listed if not tool.fault)
    tools: list[Tool] = []
    withheld: list[WithheldTool] = []
    for entry in listed:
        tool_id, spec = f"{entry.server_id}.{entry.name}", specs[entry.server_id]
        code, reason = _fault(entry, n_same=names[entry.server_id, entry.name], spec=spec)
        if not code:
            code, reason = _review(tool_id, entry.digest, approved=approved, rejected=rejected)
        if not code and tool_id in unsigned:
            code, reason = "unsigned", unsigned[tool_id]
        if not code:
            code, reason = blocked.get(entry.server_id, ("", ""))
        if code:
            withheld.append(_withheld(entry, state=ToolState.QUARANTINED, code=code, reason=reason))
            continue
        metadata = tool_metadata(tool_id, definition=entry.definition, server=spec, rules=rules)
        placed = _by_its_operator(entry, metadata)
        if isinstance(placed, Tool):
            tools.append(placed)
        else:
            withheld.append(placed)
    tools.sort(key=lambda tool: tool.tool_id)
    withheld.sort(key=lambda tool: (tool.tool_id, tool.digest))
    return CatalogSnapshot(
        version=digest_of(
            [(t.tool_id, t.digest, t.state, _plain(t.metadata)) for t in tools],
            [(w.tool_id, w.digest, w.state, w.code) for w in withheld],
            *([_plain(w.metadata)] for w in withheld if w.metadata is not None),
        ),
        tools=tuple(tools),
        withheld=tuple(withheld),
        servers=publication.servers,
    )


def _by_its_operator(entry: ListedTool, metadata: ToolMetadata) -> Tool | WithheldTool:
    """An approved definition as its operator has it: in service, retired or disabled."""
    if metadata.status == "retired":
        reason = f"retired by its operator{', replaced by ' + metadata.replaced_by if metadata.replaced_by else ''}"
        gone = _withheld(entry, state=ToolState.RETIRED, code="retired", reason=reason)
        return replace(gone, metadata=metadata)
    state = ToolState.DEPRECATED if metadata.status == "deprecated" else ToolState.APPROVED
    if not metadata.enabled:
        # Here, not only in the default policy: an operator's own policy need not say it again.
        return _withheld(entry, state=state, code="disabled", reason="disabled by its operator (enabled = false)")
    return Tool(
        tool_id=f"{entry.server_id}.{entry.name}",
        server_id=entry.server_id,
        name=entry.name,
        definition=entry.definition,
        digest=entry.digest,
        state=state,
        metadata=metadata,
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
    if spec.allow_tools and not any(fnmatchcase(entry.name, glob) for glob in spec.allow_tools):
        return "excluded", f"not among the tools of server {spec.server_id} that are taken in (allow_tools)"
    if entry.fault or not entry.digest.startswith("sha256:"):
        return "invalid_definition", entry.fault or "it has no digest that could be approved"
    if n_same > 1:
        return "duplicate_name", f"server {spec.server_id} lists {n_same} different tools named {entry.name!r}"
    if not _is_its_own(entry):
        return "invalid_definition", "the stored definition is not the one its digest names; run `toolcrib refresh`"
    return "", ""


def _review(
    tool_id: str, digest: str, *, approved: Mapping[str, str], rejected: frozenset[tuple[str, str]]
) -> tuple[str, str]:
    if (tool_id, digest) in rejected:
        return "rejected", "a reviewer rejected this definition"
    if approved.get(tool_id) == digest:
        return "", ""
    if tool_id in approved:
        return "changed", "the definition is not the approved one any more"
    return "unreviewed", "nobody has approved this definition yet"


def _is_its_own(entry: ListedTool) -> bool:
    """Whether the definition is the one that its digest and its entry name. A store may have been changed since.

    Asked before anybody reviews it, too: what a reviewer is shown must be what the approved digest will serve.
    """
    try:
        digest = definition_digest(entry.definition)
    except InvalidDefinitionError:
        return False
    return (
        digest == entry.digest and isinstance(entry.definition, Mapping) and entry.definition.get("name") == entry.name
    )


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
