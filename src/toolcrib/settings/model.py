"""The settings as the rest of the house sees them: frozen, converted, with every default in one place.

Above it: `loading.py` fills these in from `toolcrib.toml`; `crib.py` hands them to the rooms. Defaults of a server
stand in `types.ServerSpec`, those of a tool in `types.ToolMetadata`.

Invariants
1. Paths are kept as the operator wrote them; `Settings.resolve` takes them relative to the folder of `toolcrib.toml`.
2. Secrets are `SecretRef`s: nothing here holds one, so a `Settings` may be printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from toolcrib.errors import ConfigError
from toolcrib.settings.lines import KeyPath, Lines
from toolcrib.types import CallerKind, CallLimit, JsonObject, ResourceRule, RoutingRules, SecretRef, ServerSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class CribSettings:
    """`[crib]`. An empty `policy` means the built-in default. `profiles`: a folder of caller files."""

    name: str = "crib"
    environment: str = "default"
    region: str = ""
    store: str = ".toolcrib"
    policy: str = ""
    lock: str = "toolcrib.lock"
    profiles: str = "profiles"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySettings:
    """`[policy]`. `on_broken`: what a policy text that stops being valid while serving does.

    keep: the last good text of this process stays in force, and says so. deny: nothing is permitted. A file that is
    missing, empty or unreadable denies either way, and so does a broken one at the start.
    """

    on_broken: Literal["keep", "deny"] = "keep"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSettings:
    """One `[[identity.tokens]]` row: whoever shows this bearer token is this caller (fields of `Caller`, as set)."""

    token: SecretRef
    caller: JsonObject


ASYMMETRIC = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Algorithms of a signed token that may be allowed: with a public key nobody but the issuer can sign."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JwtSettings:
    """One `[[identity.jwt]]` row: tokens of this issuer for one of these audiences.

    Args:
        tenants: whom its tokens may be of; empty: of anybody, which only the one issuer of a crib may have.
        keys_url: where its key set (JWKS) is fetched from, or "". keys_file: where it lies, or "". One of the two.
        clock_skew_s: by how much clocks may differ. refresh_s: seconds after which the key set is read again.
        claims: field of `Caller` -> where it stands: "a.b" (nested), "/a/b" (JSON pointer) or {"value": constant}.
    """

    issuer: str
    audience: tuple[str, ...]
    tenants: tuple[str, ...] = ()
    keys_url: str = ""
    keys_file: str = ""
    algorithms: tuple[str, ...] = ("RS256", "ES256", "EdDSA")
    clock_skew_s: float = 60.0
    refresh_s: float = 300.0
    claims: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyClient:
    """One `[[identity.proxies.clients]]` row: whoever's certificate the proxy reports so is this caller."""

    certificate: str
    caller: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxySettings:
    """One `[[identity.proxies]]` row: a proxy that checks client certificates and reports whose it saw.

    Args:
        addresses: from where it connects: IP addresses or networks (CIDR).
        header: the header that carries the certificate's subject. secret_header: the one that carries `secret`,
            which proves that it is this proxy.
    """

    name: str
    addresses: tuple[str, ...]
    header: str
    secret: SecretRef
    secret_header: str = "x-toolcrib-proxy-secret"  # noqa: S105 - a header's name
    clients: tuple[ProxyClient, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentitySettings:
    """`[identity.local]`, the operator at the CLI and over stdio; the other tables say who may come over HTTP.

    `local` and `agents` hold the fields of `Caller` that are set; `identity/` builds callers and knows the defaults.

    Args:
        agents: who may act for a user whose token names them as the actor.
        required_scopes: what every caller over HTTP must hold. resource: this gateway's own address, for RFC 9728.
        authorization_servers: whom clients are sent to for tokens; empty: to the issuer of `jwt`, if there is but one.
    """

    local: JsonObject = field(default_factory=dict)
    tokens: tuple[TokenSettings, ...] = ()
    jwt: tuple[JwtSettings, ...] = ()
    agents: tuple[JsonObject, ...] = ()
    proxies: tuple[ProxySettings, ...] = ()
    required_scopes: tuple[str, ...] = ()
    resource: str = ""
    authorization_servers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultEntry:
    """One `[[vault]]` row: a credential of one caller for servers that ask for `caller:<name>`.

    `kind`: what the subject is, since a user and an agent of one name are two. `refresh`: the one used to list the
    tools of such a server; it belongs to no caller.
    """

    name: str
    secret: SecretRef
    subject: str = ""
    kind: CallerKind = CallerKind.USER
    tenant: str = ""
    refresh: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRule:
    """One `[[tools]]` row. `fields` holds only what the row sets, named and typed as in `ToolMetadata`."""

    pattern: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """`[retrieval.model]`: an embedding model of the operator's own.

    Args:
        kind: `onnx` and `sentence-transformers` read a folder; `openai` asks a service that speaks its wire.
        path: the folder. name: the model, as the service calls it. url: of the service, up to and with its `/v1`.
        dimensions: how many of a vector's first numbers are kept; 0: all.
        query_prefix, document_prefix: put before each text, as some models want it.
        max_tokens: of one text, at most. pooling: how token vectors become one.
    """

    kind: Literal["onnx", "sentence-transformers", "openai"]
    path: str = ""
    name: str = ""
    url: str = "https://api.openai.com/v1"
    api_key: SecretRef | None = None
    dimensions: int = 0
    query_prefix: str = ""
    document_prefix: str = ""
    max_tokens: int = 256
    pooling: Literal["mean", "cls"] = "mean"
    timeout_s: float = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalSettings:
    """`[retrieval]`.

    Args:
        embedder: `quality` and `multilingual` need the extra of that name; `model` is the one of `[retrieval.model]`.
        rerank: whether the learned ranker reorders the best candidates. adapt: whether vectors are adapted to the
            tools a caller can reach.
        confidence_floor: 0 to 1; below it the answer is "nothing here does that". None: the room's own.
        calibration: file of `toolcrib calibrate`, or "". learned: file of `toolcrib learn`, or "".
    """

    embedder: Literal["bundled", "none", "quality", "multilingual", "model"] = "bundled"
    model: ModelSettings | None = None
    rerank: bool = True
    adapt: bool = True
    top_k: int = 50
    confidence_floor: float | None = None
    calibration: str = ""
    learned: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowSettings:
    """`[shadow]`: what a candidate would have answered is recorded beside what is answered.

    Args:
        candidate: a settings file whose policy, retrieval, routing, selection, fallback and tool rules are tried.
            "": no shadow, unless `present` is `all`, where this crib itself is the candidate.
        share: of selects, 0 to 1, that are tried. present: `all` answers every select with all that is in reach.
    """

    candidate: str = ""
    share: float = 1.0
    present: Literal["crib", "all"] = "crib"

    @property
    def is_on(self) -> bool:
        """Whether there is a candidate to try."""
        return bool(self.candidate) or self.present == "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionSettings:
    """`[selection]`: the ceilings of one selection where a caller gives none."""

    limit: int = 5
    token_budget: int = 6_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingSettings:
    """`[routing]`: rules, and what counts as poor health of a tool (`[routing.health]`).

    Args:
        health_window_s: how far back calls count. health_min_calls: fewer say nothing.
        health_max_failed, health_max_late: shares of calls, 0 to 1, above which a tool's health is poor.
    """

    rules: RoutingRules = field(default_factory=RoutingRules)
    health_window_s: float = 300.0
    health_min_calls: int = 5
    health_max_failed: float = 0.5
    health_max_late: float = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class FallbackSettings:
    """`[fallback]`: globs of the safe set, offered (permitted ones only) when the index cannot be searched."""

    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GateSettings:
    """`[gate]`. `unknown_risk` auto: allow where a human confirms (CLI, library, stdio), needs approval over HTTP.

    Args:
        calls_per_minute: for one subject and one tool; 0 means no limit. limits: those that calls share.
        require_offer: only tools that were offered to this caller in the last `offer_ttl_s` may be called.
        duplicate_window_s: how long the same write of the same caller counts as one; 0: only those with a key do.
        idempotency_window_s: how long two writes with one idempotency key count as one.
        retry_reads: whether a read that failed on its way is sent once more.
        content_types: globs on the MIME types that results may hold; empty: any.
        scan_results: whether results are searched for injected instructions, which labels them.
        circuit_failures: failures in a row after which a server is left alone for `circuit_reset_s`; 0: never.
    """

    unknown_risk: Literal["auto", "allow", "needs_approval"] = "auto"
    approval_ttl_s: float = 900.0
    calls_per_minute: int = 0
    limits: tuple[CallLimit, ...] = ()
    max_result_bytes: int = 16 * 1024 * 1024
    require_offer: bool = False
    offer_ttl_s: float = 1_800.0
    duplicate_window_s: float = 60.0
    idempotency_window_s: float = 86_400.0
    retry_reads: bool = True
    content_types: tuple[str, ...] = ()
    scan_results: bool = False
    circuit_failures: int = 5
    circuit_reset_s: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalSettings:
    """`[approvals]`: how else than at the command line somebody is asked to approve a call.

    Args:
        webhook: told of each new request; its signed answer may decide. elicitation: MCP clients that can are asked,
            where policy lets a caller approve its own requests.
    """

    webhook: str = ""
    webhook_secret: SecretRef | None = None
    webhook_timeout_s: float = 5.0
    elicitation: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshSettings:
    """`[refresh]`: when a gateway that runs asks its servers for their tools again.

    Args:
        watch: whether a server that says that its list changed is listened to.
        every_s: how old any list may become, 0: for ever. at: times of the day (UTC, "HH:MM") for all servers.
        debounce_s: how long a burst of changes may go on before the list is taken.
        min_interval_s: the least time between two lists of one server, however often it says that something changed.
    """

    watch: bool = True
    every_s: float = 0.0
    at: tuple[str, ...] = ()
    debounce_s: float = 0.5
    min_interval_s: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Signer:
    """One `[[review.signers]]` row. `public_key`: Ed25519, base64 of its 32 bytes."""

    name: str
    public_key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewSettings:
    """`[review]`. `require_signers`: by how many people an approval must be signed to count, 0: by nobody.

    `suppressions`: file of lint findings that were looked at and are not shown any more, or "".
    """

    require_signers: int = 0
    signers: tuple[Signer, ...] = ()
    suppressions: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSettings:
    """`[trace]`."""

    keep_days: int = 30
    record_arguments: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All of `toolcrib.toml`. `path` is the file, `root` its folder, both absolute; `warnings` begin with file:line."""

    root: Path
    path: Path
    crib: CribSettings = CribSettings()
    policy_options: PolicySettings = PolicySettings()
    identity: IdentitySettings = IdentitySettings()
    servers: tuple[ServerSpec, ...] = ()
    tools: tuple[ToolRule, ...] = ()
    retrieval: RetrievalSettings = RetrievalSettings()
    selection: SelectionSettings = SelectionSettings()
    routing: RoutingSettings = RoutingSettings()
    fallback: FallbackSettings = FallbackSettings()
    gate: GateSettings = GateSettings()
    approvals: ApprovalSettings = ApprovalSettings()
    vault: tuple[VaultEntry, ...] = ()
    trace: TraceSettings = TraceSettings()
    refresh: RefreshSettings = RefreshSettings()
    review: ReviewSettings = ReviewSettings()
    shadow: ShadowSettings = ShadowSettings()
    resources: tuple[ResourceRule, ...] = ()
    warnings: tuple[str, ...] = ()
    lines: Lines = field(default=Lines(source="toolcrib.toml"), repr=False, compare=False)

    def resolve(self, path: str) -> Path:
        """An absolute path: relative ones lie beside `toolcrib.toml`, `~` is the home folder."""
        return resolved(path, root=self.root)

    def server(self, server_id: str) -> ServerSpec:
        """The configured server of this id.

        Raises:
            ConfigError: there is none.
        """
        for server in self.servers:
            if server.server_id == server_id:
                return server
        known = ", ".join(server.server_id for server in self.servers) or "none"
        raise ConfigError(f"no server {server_id!r}", where=str(self.path), hint=f"there are: {known}")

    @property
    def store(self) -> Path:
        """The folder that holds catalog, approvals and traces."""
        return self.resolve(self.crib.store)

    @property
    def lock(self) -> Path:
        return self.resolve(self.crib.lock)

    @property
    def profiles(self) -> Path:
        """The folder of caller files that policy and proofs are tried on; it may not exist."""
        return self.resolve(self.crib.profiles)

    @property
    def policy(self) -> Path | None:
        """The policy file, or None for the built-in default."""
        return self.resolve(self.crib.policy) if self.crib.policy else None

    def where(self, *path: str | int) -> str:
        """`toolcrib.toml:LINE` of a key: `where("servers", 0, "url")`."""
        key_path: KeyPath = path
        return self.lines.where(key_path)


def resolved(path: str, *, root: Path) -> Path:
    """An absolute path: relative ones lie under `root`, `~` is the home folder.

    Raises:
        ConfigError: the path begins with the home folder of somebody who has none here.
    """
    try:
        return root.absolute() / Path(path).expanduser()
    except RuntimeError as fault:
        raise ConfigError(str(fault), where=path, hint="write the whole path instead of ~") from fault
