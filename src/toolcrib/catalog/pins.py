"""What a lock pins: of each approved definition its digest and a digest by field, of each server what it is.

Below: `digest.py`. Above: `lock.py` keeps them in a file, `grading.py` reads what changed from them alone.

Invariants
1. The whole digest alone decides (I4). Digests by field say what changed where the definition itself is not at hand;
   they are short, and nothing is let in for them.
2. Two servers have one provenance digest exactly when everything that is compared of them is equal.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from toolcrib.catalog.digest import definition_digest
from toolcrib.errors import InvalidDefinitionError
from toolcrib.types import Provenance, ServerStatus

_FIELD_HEX = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPin:
    """An approved definition. `fields`: top-level key -> the first 16 hex digits of the SHA-256 of its value.

    `signatures`: signer -> Ed25519 signature (base64) over tool id and digest.
    """

    digest: str
    fields: Mapping[str, str] = field(default_factory=dict)
    signatures: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPin:
    """What an approved server is. `provenance`: what is compared of it; `instructions`: digest of their text, or ""."""

    provenance: Mapping[str, Any] = field(default_factory=dict)
    instructions: str = ""
    protocol_version: str = ""
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    signatures: Mapping[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Of its provenance."""
        return definition_digest(dict(self.provenance))


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """All that is approved, by tool id and by server id."""

    tools: Mapping[str, ToolPin] = field(default_factory=dict)
    servers: Mapping[str, ServerPin] = field(default_factory=dict)

    @property
    def approved(self) -> dict[str, str]:
        """Approved digests by tool id."""
        return {tool_id: pin.digest for tool_id, pin in self.tools.items()}


def tool_pin(definition: Any, *, digest: str, signatures: Mapping[str, str] | None = None) -> ToolPin:
    """The pin of this definition, whose digest is known."""
    return ToolPin(digest=digest, fields=field_digests(definition), signatures=dict(signatures or {}))


def field_digests(definition: Any) -> dict[str, str]:
    """Short digests of the top-level fields, sorted by key; none for what has no canonical form."""
    if not isinstance(definition, Mapping):
        return {}
    try:
        return {key: _short(definition[key]) for key in sorted(definition)}
    except InvalidDefinitionError:
        return {}


def _short(value: Any) -> str:
    return definition_digest(value).removeprefix("sha256:")[:_FIELD_HEX]


def server_pin(status: ServerStatus) -> ServerPin:
    """The pin of a server as it was when its list was taken."""
    return ServerPin(
        provenance=status.provenance.compared if status.provenance else {},
        instructions=text_digest(status.instructions),
        protocol_version=status.protocol_version,
        capabilities=dict(status.capabilities),
    )


def provenance_digest(provenance: Provenance | None) -> str:
    """ "sha256:<hex>" of what is compared of it."""
    return definition_digest(provenance.compared if provenance else {})


def text_digest(text: str) -> str:
    """ "sha256:<hex>" of a text, or "" where there is none."""
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() if text else ""
