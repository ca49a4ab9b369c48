"""The values that cross rooms.

Floor 1: imports nothing of ours. Every value here is immutable; a stage answers with a new one.

    ServerSpec ─▶ ServerListing ─▶ CatalogSnapshot ─▶ Eligibility ─▶ Ranking ─▶ Ranking ─▶ Selection
                                                       (policy)     (retrieval)  (routing)
    ToolCall ─▶ Verdict ─▶ ToolResult                  and a StageRecord from each of them

Invariants
1. `Tool.definition` is the whole definition as its server sent it, unknown fields included; nobody changes it.
2. `tool_id` is `<server id>.<tool name>`; the server id is the operator's and holds no dot, so the first dot splits it.
3. Tuples of tools are sorted by `tool_id`; a position in `CatalogSnapshot.tools` is a tool number (`tool_idx`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

JsonObject: TypeAlias = Mapping[str, Any]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
IntArray: TypeAlias = npt.NDArray[np.int64]
TokenCost: TypeAlias = Callable[[JsonObject], int]
"""Tokens that one definition costs in a model's context: definition -> tokens, 0 or more."""


# --- who asks --------------------------------------------------------------------------------------------


class CallerKind(StrEnum):
    USER = "user"
    AGENT = "agent"
    WORKLOAD = "workload"


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """What a caller came in with: what revocation, expiry and the trace need of it. Never the secret itself.

    Args:
        kind: `local`, `file` (an operator's `--as`), `token` ([[identity.tokens]]), `key` (an API key), `jwt`, `proxy`.
        issuer: of a JWT; else "". key_id: of an API key; else "".
        session: of a JWT, its `sid`, or else its `jti`; "" where it has none.
        expires_at: seconds since 1970, UTC; 0 for never.
    """

    kind: str
    issuer: str = ""
    key_id: str = ""
    session: str = ""
    expires_at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks, as trusted code at the boundary established it (I7). Built in `identity/` only.

    Empty strings and empty sets mean "none", never "any".

    Args:
        on_behalf_of: the subject that an agent acts for.
        acting_for: that subject as a caller of its own: what is permitted is then the intersection of both. None where
            the operator described the agent's rights directly.
        credential: not part of who this is: two callers that differ in it alone are equal, and policy cannot read it.
    """

    subject: str
    kind: CallerKind = CallerKind.USER
    on_behalf_of: str = ""
    tenant: str = ""
    roles: frozenset[str] = frozenset()
    scopes: frozenset[str] = frozenset()
    stage: str = ""
    environment: str = ""
    region: str = ""
    features: frozenset[str] = frozenset()
    clearance: str = ""
    acting_for: Caller | None = None
    credential: Credential | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        """Sets and lists of words become frozen sets, so that callers can be compared and remembered.

        Raises:
            TypeError: a bare text where a set of words belongs.
        """
        for name in ("roles", "scopes", "features"):
            given = getattr(self, name)
            if isinstance(given, str):
                raise TypeError(f'a caller\'s {name} are a set of words, got the text "{given}"')
            object.__setattr__(self, name, frozenset(given))

    def fingerprint(self, *, with_subject: bool) -> str:
        """SHA-256 over the attributes that policy may read; the subject only where a policy names principals."""
        return hashlib.sha256(
            json.dumps(
                [
                    self.acting_for.fingerprint(with_subject=with_subject) if self.acting_for else "",
                    self.subject if with_subject else "",
                    self.kind,
                    self.on_behalf_of,
                    self.tenant,
                    sorted(self.roles),
                    sorted(self.scopes),
                    self.stage,
                    self.environment,
                    self.region,
                    sorted(self.features),
                    self.clearance,
                ]
            ).encode()
        ).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Presented:
    """What a request over HTTP shows of itself, before anybody decided who it is.

    Args:
        authorization: the `Authorization` header, or None without one; a request with two of them never gets here.
        peer: the address that the connection came from, "" when unknown.
        headers: all headers, names in lower case; of a header given twice, the values joined by a comma.
    """

    authorization: str | None = None
    peer: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """An API key as it is kept: a digest of the secret, and whom it stands for.

    Args:
        secret_digest: SHA-256 (hex) of the whole key; the key itself was shown once and is nowhere.
        caller: the fields of `Caller` that are set.
        created_at, expires_at, revoked_at: ISO 8601, UTC; `expires_at` and `revoked_at` are "" for never.
    """

    key_id: str
    secret_digest: str
    caller: JsonObject
    created_at: str
    created_by: str
    expires_at: str = ""
    revoked_at: str = ""


class RevokedKind(StrEnum):
    """What can be revoked. A subject is revoked within its tenant: `value` is then `<tenant>/<subject>`."""

    SUBJECT = "subject"
    KEY = "key"
    SESSION = "session"


@dataclass(frozen=True, slots=True, kw_only=True)
class Revocation:
    """Somebody or something that is let in no more. `at`: ISO 8601, UTC."""

    kind: RevokedKind
    value: str
    at: str
    by: str
    reason: str = ""


class LocalOperator(Enum):
    """Says "the local operator" where a caller is wanted; None never does: nobody established is nobody."""

    LOCAL = "local"


LOCAL: Final = LocalOperator.LOCAL


class Channel(StrEnum):
    """Where a request came in. Part of the policy context: a human confirms at some of them."""

    CLI = "cli"
    LIBRARY = "library"
    STDIO = "stdio"
    HTTP = "http"


# --- registry --------------------------------------------------------------------------------------------


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
    """One configured server. Secrets in `env` and `headers` are references; whoever opens the server resolves them."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerListing:
    """All pages of one server's `tools/list`, whole or not at all.

    `tools` holds what was received, in the server's order; entries may be anything JSON allows, also malformed ones.
    """

    server_id: str
    tools: tuple[Any, ...]
    protocol_version: str = ""
    server_name: str = ""
    server_version: str = ""
    instructions: str = ""
    capabilities: JsonObject = field(default_factory=dict)
    n_pages: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMetadata:
    """What the operator says of a tool; servers cannot be trusted to say it. Empty tuples mean "no restriction".

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
    status: Literal["active", "deprecated", "retired"] = "active"
    replaced_by: str = ""
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

    `code`: `unreviewed`, `changed`, `rejected`, `invalid_definition`, `duplicate_name`, `retired`, `disabled`,
    `server_disabled`.
    """

    tool_id: str
    server_id: str
    name: str
    definition: Any
    digest: str
    state: ToolState
    code: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    """How one server's part of the catalog was taken. `state`: `fresh`, `stale` (last refresh failed), `missing`."""

    server_id: str
    state: Literal["fresh", "stale", "missing"]
    n_tools: int
    listed_at: str = ""
    error: str = ""
    protocol_version: str = ""
    server_version: str = ""
    instructions: str = ""


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

    `publication_id` is a SHA-256 over the servers' ids and their entries' digests, in order.
    """

    publication_id: str
    at: str
    servers: tuple[ServerStatus, ...]
    tools: tuple[ListedTool, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewEvent:
    """One decision of a reviewer about one digest. `action`: `approve`, `reject`. `at`: ISO 8601, UTC."""

    at: str
    action: Literal["approve", "reject"]
    tool_id: str
    digest: str
    reviewer: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogSnapshot:
    """What exists, in which reviewed version: immutable, content-addressed.

    `version` is a SHA-256 over ids, digests, states and operator metadata of `tools` and `withheld`.
    """

    version: str
    tools: tuple[Tool, ...]
    withheld: tuple[WithheldTool, ...] = ()
    servers: tuple[ServerStatus, ...] = ()


# --- policy ----------------------------------------------------------------------------------------------


class Effect(StrEnum):
    PERMIT = "permit"
    FORBID = "forbid"
    NEEDS_APPROVAL = "needs_approval"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One policy decision and why: the ids of the policies that determined it, evaluation errors if there were any.

    Any error makes the effect `forbid` (an error inside a `forbid` rule would otherwise permit).
    """

    effect: Effect
    policies: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Eligibility:
    """What one caller may know of, over the tools of one snapshot. All arrays are read-only, of shape (n_tools,).

    Why a tool is permitted or not is not kept here: the engine says it of one tool, when it is asked.

    Args:
        permitted: bool: may be found, listed, described and (before argument checks) called.
        needs_approval: bool: permitted, and a call waits for an approval.
        disclosed: bool: policy lets the caller know that such a tool exists, but not use it.
        class_of: int64: the decision class of each tool.
        errors: what went wrong in evaluation, sorted, each once; tools that it went wrong for are denied.
        method: how it was computed, both giving the same: `residual` (partial evaluation over columns) or `class`.
    """

    snapshot_version: str
    policy_version: str
    fingerprint: str
    permitted: BoolArray
    needs_approval: BoolArray
    disclosed: BoolArray
    class_of: IntArray
    errors: tuple[str, ...] = ()
    method: Literal["residual", "class"] = "class"


# --- retrieval, routing, selection -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One scored tool. `score` is comparable within one ranking only; `capability` says which part it answers.

    Args:
        tool_idx: the tool's number in the snapshot.
        lexical: BM25F score, 0 or more. dense: cosine, -1 to 1.
        named: the task names this tool.
        confidence: 0 to 1, that this tool does what its capability asks.
    """

    tool_idx: int
    tool_id: str
    score: float
    lexical: float = 0.0
    dense: float = 0.0
    named: bool = False
    capability: int = 0
    confidence: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Permitted tools, best first; ties by tool id.

    Args:
        capabilities: the parts of the task, in order; `Hit.capability` points here.
        confidence: 0 to 1, that some permitted tool fits the task.
        degraded: an arm of retrieval was down.
        empty_query: nothing in the task says what is wanted (blank, punctuation, request words alone).
    """

    hits: tuple[Hit, ...]
    capabilities: tuple[str, ...]
    confidence: float
    degraded: bool = False
    empty_query: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskCeiling:
    """In these stages of a workflow nothing riskier than `max_risk` is used; no stages means in all of them."""

    stages: tuple[str, ...] = ()
    max_risk: Risk

    def holds_for(self, caller: Caller) -> bool:
        return not self.stages or caller.stage in self.stages


@dataclass(frozen=True, slots=True, kw_only=True)
class ResidencyRule:
    """Data of these tenants stays within these places: a tool that keeps it elsewhere, or says nothing, is not used.

    Args:
        tenants: globs on the caller's tenant; empty: all callers. data_classes: of tools; empty: all tools.
        within: places, compared with the tool's `residency`, all of which must be among them.
    """

    tenants: tuple[str, ...] = ()
    data_classes: tuple[str, ...] = ()
    within: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingRules:
    """What operating rules say apart from policy: hard constraints, and which of several equal matches is preferred.

    Args:
        prefer: in this order, the first that tells two tools apart decides: `replacement`, `health`, `order`, `risk`,
            `cost`, `latency`.
        near_score: scores within this share of the better one count as equal, 0 to 1.
        near_meaning: cosine of two definitions from which on they count as the same capability, 0 to 1.
        equivalent: groups of tool ids that serve one capability, each in its owner's order.
    """

    risk_ceilings: tuple[RiskCeiling, ...] = ()
    residency: tuple[ResidencyRule, ...] = ()
    prefer: tuple[str, ...] = ("replacement", "health", "order", "risk", "cost", "latency")
    near_score: float = 0.05
    near_meaning: float = 0.9
    equivalent: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolHealth:
    """How a tool's recent calls went. `circuit_open`: its server is not asked at present."""

    n_calls: int
    n_failed: int
    n_late: int
    circuit_open: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteMove:
    """What routing did to one tool and why. `action`: `dropped`, `demoted`. `behind`: the tool preferred to it, if any.

    `code`: `region`, `environment`, `residency`, `risk_ceiling` for dropped ones; the preference for demoted ones.
    """

    tool_id: str
    action: Literal["dropped", "demoted"]
    code: str
    reason: str
    behind: str = ""


class Outcome(StrEnum):
    SELECTED = "selected"
    NEEDS_CLARIFICATION = "needs_clarification"
    NO_MATCH = "no_match"
    DENIED = "denied"
    UNAVAILABLE = "unavailable"


MAX_LIMIT = 50
"""Tools in one selection, at most, whoever asks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectRequest:
    """What is asked. `queries` are the caller's own focused parts of the task; the numbers are ceilings."""

    task: str
    queries: tuple[str, ...] = ()
    limit: int = 5
    token_budget: int = 6_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedTool:
    tool: Tool
    rank: int
    score: float
    capability: str
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedTool:
    """A permitted candidate that did not go in. `reason`: `token_budget`, `limit`, `confidence`."""

    tool_id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What goes into the context: whole definitions, what was dropped and why, and an outcome."""

    outcome: Outcome
    message: str
    tools: tuple[SelectedTool, ...]
    dropped: tuple[DroppedTool, ...]
    tokens: int
    token_budget: int
    limit: int
    confidence: float
    degraded: bool = False


# --- gate and execution ----------------------------------------------------------------------------------


class Code(StrEnum):
    """What a caller is told. `not_available` covers missing, quarantined and not permitted alike (I1).

    `timeout`: no answer in time to a call that only reads. `unknown_outcome`: none to one that may have changed
    something, so that nobody sends it again in good faith. `no_credential`: the caller has none for this server.
    """

    OK = "ok"
    NOT_AVAILABLE = "not_available"
    INVALID_ARGUMENTS = "invalid_arguments"
    NEEDS_APPROVAL = "needs_approval"
    CONFLICT = "conflict"
    NOT_OFFERED = "not_offered"
    DUPLICATE = "duplicate"
    RATE_LIMITED = "rate_limited"
    NO_CREDENTIAL = "no_credential"
    TIMEOUT = "timeout"
    UNKNOWN_OUTCOME = "unknown_outcome"
    TOOL_ERROR = "tool_error"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A proposed call.

    Args:
        offered_digest: the digest under which the tool was offered, if the edge knows it; a mismatch is a conflict.
        idempotency_key: the caller's own word that this is, or is not, the same write as one before.
    """

    tool_id: str
    arguments: JsonObject
    offered_digest: str = ""
    idempotency_key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentFault:
    """One thing wrong with the arguments, in words a model can act on. `path` is a JSON pointer, "" for the root."""

    path: str
    expected: str
    got: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """May this very call run. `check` names the first check that failed; the operator's view only.

    `earlier_trace`: of a duplicate write, the trace of the caller's own call before it.
    """

    code: Code
    message: str
    check: str = ""
    faults: tuple[ArgumentFault, ...] = ()
    policies: tuple[str, ...] = ()
    approval_id: str = ""
    earlier_trace: str = ""

    @property
    def allowed(self) -> bool:
        return self.code is Code.OK


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """Somebody with the right to do so may let one exact call run, once, for a while.

    Args:
        key: digest over caller, tool id, tool digest and canonical arguments; another argument is another key.
        arguments_preview: the arguments with secrets masked, for the approver.
        created_at, expires_at: ISO 8601, UTC.
        on_behalf_of, channel: of the caller that asked. policies: the rules that ask for the approval.
    """

    approval_id: str
    key: str
    subject: str
    tenant: str
    tool_id: str
    digest: str
    arguments_preview: str
    state: Literal["pending", "granted", "denied", "used"]
    created_at: str
    expires_at: str
    decided_by: str = ""
    on_behalf_of: str = ""
    channel: str = ""
    policies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLimit:
    """A limit that calls share: those of one caller, tenant, tool or server (`by`), each counted on its own.

    Args:
        match: glob on what is counted: the subject, the tenant, the tool id or the server id.
        calls_per_minute: 0 for no limit. concurrent: calls under way at a time; 0 for no limit.
    """

    by: Literal["caller", "tenant", "tool", "server"]
    match: str = "*"
    calls_per_minute: int = 0
    concurrent: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceRule:
    """Which resource the arguments of some tools name, and who knows its owner.

    The owner is asked through a read tool (`lookup_tool`), over HTTP (`url`), or through a resolver that was registered
    in Python for the resource type (neither of the two).

    Args:
        pattern: glob on tool ids.
        argument: JSON pointer into the arguments; an absent value means that the call names no such resource.
        lookup_tool: tool id of a read tool of the owner, called with `{lookup_argument: value}`.
        url: of the owner's endpoint; `{id}` stands for the percent-encoded value. headers: as of a server.
        tenant: JSON pointer into the structured answer: the resource's tenant. owner: likewise; "" for none.
        check: `tenant`: the resource's tenant must be the caller's, and policy must agree; `policy`: policy alone says.
    """

    resource_type: str
    pattern: str
    argument: str
    lookup_tool: str = ""
    lookup_argument: str = ""
    url: str = ""
    headers: Mapping[str, str | SecretRef] = field(default_factory=dict)
    tenant: str = ""
    owner: str = ""
    check: Literal["tenant", "policy"] = "tenant"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A resource that a call names, as its owner described it. `tenant` and `owner` are "" where it said none."""

    resource_type: str
    resource_id: str
    tenant: str
    owner: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a call gave.

    Args:
        content: MCP content blocks, as received; an empty tuple is a legitimate empty answer when `code` is `ok`.
        structured: `structuredContent` as received, or None.
        raw: the whole result object as received, for a faithful relay; None when no server answered.
        reached_server: whether the request may have left for the server (a write is then never sent again).
        notes: what the output check has to say of it (see `gate/output.py`); labels, the content stays.
    """

    code: Code
    message: str = ""
    content: tuple[JsonObject, ...] = ()
    structured: Any = None
    raw: JsonObject | None = None
    reached_server: bool = False
    notes: tuple[str, ...] = ()


# --- trace -----------------------------------------------------------------------------------------------


class Stage(StrEnum):
    REGISTRY = "registry"
    ELIGIBILITY = "eligibility"
    RETRIEVAL = "retrieval"
    ROUTING = "routing"
    SELECTION = "selection"
    GATE = "gate"
    EXECUTION = "execution"


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRecord:
    """What one stage did. `caller_view` may be shown to the caller (I1 holds for it); `operator_view` never."""

    stage: Stage
    operator_view: JsonObject
    caller_view: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One request, a record per stage. `kind`: `select` or `call`. `at`: ISO 8601, UTC."""

    trace_id: str
    kind: Literal["select", "call"]
    at: str
    subject: str
    on_behalf_of: str
    tenant: str
    channel: Channel
    records: tuple[StageRecord, ...]

    def record(self, stage: Stage) -> StageRecord | None:
        return next((r for r in self.records if r.stage is stage), None)
