"""The shape of `toolcrib.toml`: which tables and keys there are.

The edge: pydantic models that live no longer than loading does. `fields.py` says what a value may be; what spans
several keys is in `checks.py`; defaults are in `model.py`, so an optional key is `UNSET` here and left out when the
model is dumped.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field

from toolcrib.settings.fields import (
    DAY_S,
    Age,
    Amount,
    Calls,
    CallsOrNone,
    Claim,
    Command,
    Env,
    Filled,
    Glob,
    HeaderName,
    Headers,
    LookupUrl,
    NamedKind,
    NamedRisk,
    NamedTransport,
    NamedTrust,
    Network,
    Pointer,
    Positive,
    PublicKey,
    Reference,
    SecureUrl,
    ServerId,
    Share,
    SignerName,
    TimeOfDay,
    Timeout,
    ToolId,
    Url,
    VaultName,
)
from toolcrib.settings.model import ASYMMETRIC
from toolcrib.types import MAX_LIMIT

UNSET: Any = None


class Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)


class CribTable(Table):
    name: Filled = UNSET
    environment: str = UNSET
    region: str = UNSET
    store: Filled = UNSET
    policy: str = UNSET
    lock: Filled = UNSET
    profiles: Filled = UNSET


class PolicyTable(Table):
    on_broken: Literal["keep", "deny"] = UNSET


class LocalTable(Table):
    subject: Filled = UNSET
    kind: NamedKind = UNSET
    on_behalf_of: str = UNSET
    tenant: str = UNSET
    roles: list[Filled] = UNSET
    scopes: list[Filled] = UNSET
    stage: str = UNSET
    environment: str = UNSET
    region: str = UNSET
    features: list[Filled] = UNSET
    clearance: str = UNSET


class CallerTable(LocalTable):
    subject: Filled


class TokenTable(Table):
    token: Reference
    caller: CallerTable


class ClaimsTable(Table):
    subject: Claim = UNSET
    kind: Claim = UNSET
    tenant: Claim = UNSET
    roles: Claim = UNSET
    scopes: Claim = UNSET
    stage: Claim = UNSET
    environment: Claim = UNSET
    region: Claim = UNSET
    features: Claim = UNSET
    clearance: Claim = UNSET


class JwtTable(Table):
    issuer: Filled
    audience: list[Filled]
    tenants: Annotated[list[Filled], Field(min_length=1)] = UNSET
    keys_url: SecureUrl = UNSET
    keys_file: Filled = UNSET
    algorithms: list[Literal[ASYMMETRIC]] = UNSET  # type: ignore[valid-type]
    clock_skew_s: Annotated[float, Field(ge=0, le=600, allow_inf_nan=False)] = UNSET
    refresh_s: Annotated[float, Field(ge=10, le=DAY_S, allow_inf_nan=False)] = UNSET
    claims: ClaimsTable = UNSET


class AgentTable(Table):
    caller: CallerTable


class ProxyClientTable(Table):
    certificate: Filled
    caller: CallerTable


class ProxyTable(Table):
    name: Filled
    addresses: Annotated[list[Network], Field(min_length=1)]
    header: HeaderName
    secret: Reference
    secret_header: HeaderName = UNSET
    clients: list[ProxyClientTable] = UNSET


class IdentityTable(Table):
    local: LocalTable = UNSET
    tokens: list[TokenTable] = UNSET
    jwt: list[JwtTable] = UNSET
    agents: list[AgentTable] = UNSET
    proxies: list[ProxyTable] = UNSET
    required_scopes: list[Filled] = UNSET
    resource: SecureUrl = UNSET
    authorization_servers: list[SecureUrl] = UNSET


class VaultTable(Table):
    name: VaultName
    secret: Reference
    subject: Filled = UNSET
    kind: NamedKind = UNSET
    tenant: str = UNSET
    refresh: bool = UNSET


class ServerTable(Table):
    id: ServerId
    transport: NamedTransport = UNSET
    command: Command = UNSET
    args: list[str] = UNSET
    env: Env = UNSET
    cwd: Filled = UNSET
    url: Url = UNSET
    headers: Headers = UNSET
    path: Filled = UNSET
    namespace: str = UNSET
    trust: NamedTrust = UNSET
    enabled: bool = UNSET
    start_timeout_s: Timeout = UNSET
    call_timeout_s: Timeout = UNSET
    max_pages: Positive = UNSET
    max_list_bytes: Positive = UNSET
    on_provenance: Literal["block", "warn"] = UNSET
    allow_tools: Annotated[list[Glob], Field(min_length=1)] = UNSET
    list_varies: bool = UNSET
    refresh_s: Age = UNSET


class ToolTable(Table):
    match: Glob
    owner: str = UNSET
    namespace: str = UNSET
    required_scopes: list[Filled] = UNSET
    stages: list[Filled] = UNSET
    environments: list[Filled] = UNSET
    tenants: list[Filled] = UNSET
    regions: list[Filled] = UNSET
    residency: list[Filled] = UNSET
    risk: NamedRisk = UNSET
    cost: Amount = UNSET
    latency_ms: Amount = UNSET
    data_class: str = UNSET
    enabled: bool = UNSET
    repeatable: bool = UNSET
    status: Literal["active", "deprecated", "retired"] = UNSET
    replaced_by: ToolId = UNSET
    version: Filled = UNSET
    aliases: list[ToolId] = UNSET
    preload: bool = UNSET
    keywords: list[Filled] = UNSET
    examples: list[Filled] = UNSET


class ModelTable(Table):
    kind: Literal["onnx", "sentence-transformers", "openai"]
    path: Filled = UNSET
    name: Filled = UNSET
    url: SecureUrl = UNSET
    api_key: Reference = UNSET
    dimensions: Positive = UNSET
    query_prefix: str = UNSET
    document_prefix: str = UNSET
    max_tokens: Positive = UNSET
    pooling: Literal["mean", "cls"] = UNSET
    timeout_s: Timeout = UNSET


class RetrievalTable(Table):
    embedder: Literal["bundled", "none", "quality", "multilingual", "model"] = UNSET
    model: ModelTable = UNSET
    rerank: bool = UNSET
    adapt: bool = UNSET
    top_k: Positive = UNSET
    confidence_floor: Share = UNSET
    calibration: Filled = UNSET
    learned: Filled = UNSET


class SelectionTable(Table):
    limit: Annotated[int, Field(gt=0, le=MAX_LIMIT)] = UNSET
    token_budget: Positive = UNSET


class RiskCeilingTable(Table):
    stages: list[Filled] = UNSET
    max_risk: Literal["read", "write"]


class ResidencyTable(Table):
    tenants: list[Filled] = UNSET
    data_classes: list[Filled] = UNSET
    within: Annotated[list[Filled], Field(min_length=1)]


class EquivalentTable(Table):
    tools: Annotated[list[ToolId], Field(min_length=2)]


class HealthTable(Table):
    window_s: Timeout = UNSET
    min_calls: Positive = UNSET
    max_failed: Share = UNSET
    max_late: Share = UNSET


class RoutingTable(Table):
    prefer: list[Literal["replacement", "health", "order", "risk", "cost", "latency"]] = UNSET
    near_score: Share = UNSET
    near_meaning: Share = UNSET
    risk_ceilings: list[RiskCeilingTable] = UNSET
    residency: list[ResidencyTable] = UNSET
    equivalent: list[EquivalentTable] = UNSET
    health: HealthTable = UNSET


class FallbackTable(Table):
    tools: list[Glob] = UNSET


class LimitTable(Table):
    by: Literal["caller", "tenant", "tool", "server"]
    match: Glob = UNSET
    calls_per_minute: Calls = UNSET
    concurrent: Calls = UNSET


class CircuitTable(Table):
    failures: CallsOrNone = UNSET
    reset_s: Timeout = UNSET


class GateTable(Table):
    unknown_risk: Literal["auto", "allow", "needs_approval"] = UNSET
    approval_ttl_s: Annotated[float, Field(gt=0, le=30 * DAY_S, allow_inf_nan=False)] = UNSET
    calls_per_minute: CallsOrNone = UNSET
    max_result_bytes: Positive = UNSET
    require_offer: bool = UNSET
    offer_ttl_s: Timeout = UNSET
    duplicate_window_s: Annotated[float, Field(ge=0, le=DAY_S, allow_inf_nan=False)] = UNSET
    idempotency_window_s: Annotated[float, Field(gt=0, le=30 * DAY_S, allow_inf_nan=False)] = UNSET
    retry_reads: bool = UNSET
    content_types: list[Filled] = UNSET
    scan_results: bool = UNSET
    limits: list[LimitTable] = UNSET
    circuit: CircuitTable = UNSET


class ApprovalsTable(Table):
    webhook: SecureUrl = UNSET
    webhook_secret: Reference = UNSET
    webhook_timeout_s: Annotated[float, Field(gt=0, le=120, allow_inf_nan=False)] = UNSET
    elicitation: bool = UNSET


class TraceTable(Table):
    keep_days: Annotated[int, Field(gt=0, le=36_500)] = UNSET
    record_arguments: bool = UNSET


class ShadowTable(Table):
    candidate: Filled = UNSET
    share: Share = UNSET
    present: Literal["crib", "all"] = UNSET


class ResourceTable(Table):
    type: Filled
    tools: Glob
    argument: Pointer
    lookup_tool: ToolId = UNSET
    lookup_argument: Filled = UNSET
    url: LookupUrl = UNSET
    headers: Headers = UNSET
    tenant: Pointer = UNSET
    owner: Pointer = UNSET
    check: Literal["tenant", "policy"] = UNSET


class RefreshTable(Table):
    watch: bool = UNSET
    every_s: Age = UNSET
    at: list[TimeOfDay] = UNSET
    debounce_s: Annotated[float, Field(ge=0, le=60, allow_inf_nan=False)] = UNSET
    min_interval_s: Annotated[float, Field(ge=0, le=DAY_S, allow_inf_nan=False)] = UNSET


class SignerTable(Table):
    name: SignerName
    public_key: PublicKey


class ReviewTable(Table):
    require_signers: Annotated[int, Field(ge=0, le=10)] = UNSET
    signers: list[SignerTable] = UNSET
    suppressions: Filled = UNSET


class Document(Table):
    """The whole file."""

    crib: CribTable = UNSET
    policy: PolicyTable = UNSET
    identity: IdentityTable = UNSET
    servers: list[ServerTable] = UNSET
    tools: list[ToolTable] = UNSET
    retrieval: RetrievalTable = UNSET
    selection: SelectionTable = UNSET
    routing: RoutingTable = UNSET
    fallback: FallbackTable = UNSET
    gate: GateTable = UNSET
    approvals: ApprovalsTable = UNSET
    vault: list[VaultTable] = UNSET
    trace: TraceTable = UNSET
    refresh: RefreshTable = UNSET
    review: ReviewTable = UNSET
    shadow: ShadowTable = UNSET
    resources: list[ResourceTable] = UNSET


def tables(
    model: type[Table] = Document, path: tuple[str, ...] = ()
) -> dict[tuple[str, ...], tuple[type[Table], bool]]:
    """Every table by its path: its model, and whether it is written `[[so]]`."""
    found: dict[tuple[str, ...], tuple[type[Table], bool]] = {}
    for name, described in model.model_fields.items():
        inner = described.annotation
        arguments = get_args(inner)
        repeated = get_origin(inner) is list
        kind: Any = arguments[0] if repeated else inner
        if isinstance(kind, type) and issubclass(kind, Table):
            found[(*path, name)] = (kind, repeated)
            found |= tables(kind, (*path, name))
    return found
