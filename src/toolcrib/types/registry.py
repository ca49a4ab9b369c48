"""What exists: servers, the definitions they list, and the reviewed catalog.

Invariants
1. `Tool.definition` is the whole definition as its server sent it, unknown fields included; nobody changes it.
2. `tool_id` is `<server id>.<tool name>`; the server id is the operator's and holds no dot, so the first dot splits it.
3. Tuples of tools are sorted by `tool_id`; a position in `CatalogSnapshot.tools` is a tool number (`tool_idx`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, Literal

from toolcrib.types.provenance import Provenance
from toolcrib.types.shapes import JsonObject


class Transport(StrEnum):
    STDIO = "stdio"
    HTTP = "http"
    FILE = "file"


class Trust(StrEnum):
    """What a server's own annotations are worth: on an untrusted server they may raise a risk, never lower it."""

    UNTRUSTED = "untrusted"
    TRUSTED = "trusted"


class Risk(StrEnum):
    READ = "read"
    WRITE = "write"
    DESTRUCTIVE = "destructive"

    @property
    def level(self) -> int:
        """0 read, 1 write, 2 destructive."""
        return list(Risk).index(self)


class RiskSource(StrEnum):
    """Who said so. Nobody (`unknown`) counts as destructive, but is told apart at the gate."""

    OPERATOR = "operator"
    ANNOTATIONS = "annotations"
    UNKNOWN = "unknown"


class ToolState(StrEnum):
    QUARANTINED = "quarantined"
    APPROVED = "approved"
    DEPRECATED = "deprecated"
    RETIRED = "retired"


@dataclass(frozen=True, slots=True)
class SecretRef:
    """Where a secret lies: `env:NAME` or `file:PATH`. Never the secret itself, so it may be printed."""

    reference: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSpec:
    """One configured server. Secrets in `env` and `headers` are references; whoever opens the server resolves them.

    Args:
        on_provenance: what a package, program or address other than the approved one does: `block` takes the server's
            tools out of service until a reviewer approves it, `warn` says so.
        allow_tools: globs on tool names; where there are any, the others are not taken into service.
        list_varies: the server lists other tools for other credentials, so a list counts only while the credential
            that it was taken with is the configured one.
        refresh_s: how old a list may become before it is taken again; None: as `[refresh] every_s` says, 0: for ever.
    """

    server_id: str
    transport: Transport
    command: tuple[str, ...] = ()
    env: Mapping[str, str | SecretRef] = field(default_factory=dict)
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str | SecretRef] = field(default_factory=dict)
    path: str = ""
    namespace: str = ""
    trust: Trust = Trust.UNTRUSTED
    enabled: bool = True
    start_timeout_s: float = 30.0
    call_timeout_s: float = 60.0
    max_pages: int = 1_000
    max_list_bytes: int = 64 * 1024 * 1024
    on_provenance: Literal["block", "warn"] = "block"
    allow_tools: tuple[str, ...] = ()
    list_varies: bool = False
    refresh_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerListing:
    """All pages of one server's `tools/list`, whole or not at all.

    `tools` holds what was received, in the server's order; entries may be anything JSON allows, also malformed ones.
    `provenance`: what ran or answered. `credential`: which one the list was taken with, by name, never by value.
    """

    server_id: str
    tools: tuple[Any, ...]
    protocol_version: str = ""
    server_name: str = ""
    server_version: str = ""
    instructions: str = ""
    capabilities: JsonObject = field(default_factory=dict)
    n_pages: int = 1
    provenance: Provenance | None = None
    credential: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMetadata:
    """What the operator says of a tool; servers cannot be trusted to say it. Empty tuples mean "no restriction".

    `version`: the operator's name for what the tool does now. `aliases`: tool ids it had before.
    `repeatable`: the same call twice is how it is used, not a mistake.
    `regions`: where callers may be. `residency`: where the tool keeps or sends data; empty means that nobody said.
    """

    owner: str = ""
    namespace: str = ""
    required_scopes: tuple[str, ...] = ()
    stages: tuple[str, ...] = ()
    environments: tuple[str, ...] = ()
    tenants: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    residency: tuple[str, ...] = ()
    risk: Risk = Risk.DESTRUCTIVE
    risk_source: RiskSource = RiskSource.UNKNOWN
    cost: float = 0.0
    latency_ms: float = 0.0
    data_class: str = ""
    enabled: bool = True
    repeatable: bool = False
    status: Literal["active", "deprecated", "retired"] = "active"
    replaced_by: str = ""
    version: str = ""
    aliases: tuple[str, ...] = ()
    preload: bool = False
    keywords: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool in service: reviewed, whole, described by its operator."""

    tool_id: str
    server_id: str
    name: str
    definition: JsonObject
    digest: str
    state: ToolState
    metadata: ToolMetadata

    @property
    def description(self) -> str:
        return str(self.definition.get("description") or "")

    @property
    def input_schema(self) -> JsonObject:
        schema = self.definition.get("inputSchema")
        return schema if isinstance(schema, Mapping) else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class WithheldTool:
    """A definition that exists and is not in service: the operator's view only.

    `code`: `unreviewed`, `changed`, `rejected`, `unsigned` (too few signatures), `provenance` (its server is not what
    was approved), `credential` (its list was taken with another one), `excluded` (not among `allow_tools`),
    `invalid_definition`, `duplicate_name`, `retired`, `disabled`, `server_disabled`.
    `metadata`: of a retired tool alone, for those who might have known it.
    """

    tool_id: str
    server_id: str
    name: str
    definition: Any
    digest: str
    state: ToolState
    code: str
    reason: str
    metadata: ToolMetadata | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    """How one server's part of the catalog was taken.

    `state`: `fresh`; `partial`: the last refresh broke off after its first page; `stale`: it failed otherwise;
    `missing`: there was never a list. Partial and stale servers keep the last whole list.
    """

    server_id: str
    state: Literal["fresh", "partial", "stale", "missing"]
    n_tools: int
    listed_at: str = ""
    error: str = ""
    protocol_version: str = ""
    server_version: str = ""
    instructions: str = ""
    capabilities: JsonObject = field(default_factory=dict)
    provenance: Provenance | None = None
    credential: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTool:
    """One entry of a server's list as it was received. Malformed ones are here too: `name` is their place (`#4`)
    where they have none, and `definition` may be anything.

    `digest`: "sha256:<hex>" of the canonical definition, or "raw:<hex>" where it cannot be made canonical.
    `fault`: why it cannot be served whoever approves it, or "".
    """

    server_id: str
    name: str
    definition: Any
    digest: str
    fault: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """What a refresh published: every entry of every server, before review and operator metadata. Written atomically.

    `publication_id` is a SHA-256 over the servers' ids, states and provenance and their entries' digests, in order.
    """

    publication_id: str
    at: str
    servers: tuple[ServerStatus, ...]
    tools: tuple[ListedTool, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewEvent:
    """One decision of a reviewer: about a definition by its digest, or with `pin` about what a server is.

    Args:
        at: ISO 8601, UTC. action: `pin` approves a server's provenance; `tool_id` is the server's id then, and `digest`
            that of its provenance.
        findings: rules that had something to say when it was decided. signer, signature: an Ed25519 signature over
            subject and digest (base64), and the configured name of whoever made it.
        previous, hash: the chain: SHA-256 (hex) of the event before, and of this one with it. The store sets both.
    """

    at: str
    action: Literal["approve", "reject", "pin"]
    tool_id: str
    digest: str
    reviewer: str
    reason: str = ""
    findings: tuple[str, ...] = ()
    signer: str = ""
    signature: str = ""
    previous: str = ""
    hash: str = ""

    def sealed(self, previous: str) -> ReviewEvent:
        """The same event as the link after `previous` in the chain ("" for the first)."""
        told = [getattr(self, name) for name in _IN_THE_CHAIN]
        whole = json.dumps([previous, *told], ensure_ascii=True)
        return replace(self, previous=previous, hash=hashlib.sha256(whole.encode()).hexdigest())


_IN_THE_CHAIN = tuple(field.name for field in fields(ReviewEvent) if field.name not in ("previous", "hash"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """The first time that a definition was listed under a tool id. `at`: ISO 8601, UTC."""

    tool_id: str
    digest: str
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogSnapshot:
    """What exists, in which reviewed version: immutable, content-addressed.

    `version` is a SHA-256 over ids, digests, states and operator metadata of `tools` and `withheld`.
    """

    version: str
    tools: tuple[Tool, ...]
    withheld: tuple[WithheldTool, ...] = ()
    servers: tuple[ServerStatus, ...] = ()
