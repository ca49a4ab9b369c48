"""What the operator says of a tool: rows matched by glob on the tool id, later rows win.

A server's annotations are hints. They may raise a tool's risk; they lower it only on a server marked trusted. Without
any word a tool counts as destructive, from an unknown source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any, Protocol

from toolcrib.types import Risk, RiskSource, ServerSpec, ToolMetadata, Trust


class MetadataRule(Protocol):
    """One `[[tools]]` row: a glob on tool ids and only the fields that were set."""

    @property
    def pattern(self) -> str: ...
    @property
    def fields(self) -> Mapping[str, Any]: ...


def tool_metadata(
    tool_id: str, *, definition: Mapping[str, Any], server: ServerSpec, rules: Sequence[MetadataRule]
) -> ToolMetadata:
    """The operator's metadata for one tool, with the risk settled between operator and annotations."""
    fields: dict[str, Any] = {}
    for rule in rules:
        if fnmatchcase(tool_id, rule.pattern):
            fields.update(rule.fields)
    fields.setdefault("namespace", server.namespace or server.server_id)
    said = fields.pop("risk", None)
    risk, source = settle_risk(said, hinted=hinted_risk(definition), trusted=server.trust is Trust.TRUSTED)
    return replace(ToolMetadata(**fields), risk=risk, risk_source=source)


def hinted_risk(definition: Mapping[str, Any]) -> Risk | None:
    """What the server's annotations say, or None. An absent hint says nothing."""
    hints = definition.get("annotations")
    if not isinstance(hints, Mapping):
        return None
    if hints.get("destructiveHint") is True and hints.get("readOnlyHint") is not True:
        return Risk.DESTRUCTIVE
    if hints.get("readOnlyHint") is True:
        return Risk.READ
    if hints.get("destructiveHint") is False:
        return Risk.WRITE
    return None


def settle_risk(said: Risk | None, *, hinted: Risk | None, trusted: bool) -> tuple[Risk, RiskSource]:
    """The risk that counts and who said it.

    The operator's word holds unless an annotation says worse. Without the operator's word, a trusted server's
    annotation holds; an untrusted server's counts only as far as it cannot make things look better: `destructive`.
    """
    if said is not None:
        worse = hinted is not None and hinted.level > said.level
        return (hinted, RiskSource.ANNOTATIONS) if worse and hinted is not None else (said, RiskSource.OPERATOR)
    if hinted is not None and (trusted or hinted is Risk.DESTRUCTIVE):
        return hinted, RiskSource.ANNOTATIONS
    return Risk.DESTRUCTIVE, RiskSource.UNKNOWN
