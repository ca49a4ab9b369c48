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
from toolcrib.types import JsonObject, ResourceRule, RiskCeiling, SecretRef, ServerSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class CribSettings:
    """`[crib]`. An empty `policy` means the built-in default."""

    name: str = "crib"
    environment: str = "default"
    region: str = ""
    store: str = ".toolcrib"
    policy: str = ""
    lock: str = "toolcrib.lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSettings:
    """One `[[identity.tokens]]` row: whoever shows this bearer token is this caller (fields of `Caller`, as set)."""

    token: SecretRef
    caller: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentitySettings:
    """`[identity.local]`, the operator at the CLI and over stdio, and `[[identity.tokens]]`, the callers over HTTP.

    `local` holds the fields of `Caller` that are set; `identity/` builds the caller and knows the defaults.
    """

    local: JsonObject = field(default_factory=dict)
    tokens: tuple[TokenSettings, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRule:
    """One `[[tools]]` row. `fields` holds only what the row sets, named and typed as in `ToolMetadata`."""

    pattern: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalSettings:
    """`[retrieval]`. Below `confidence_floor` (0 to 1; None: the room's own) the answer is "nothing here does that"."""

    embedder: Literal["bundled", "none"] = "bundled"
    top_k: int = 50
    confidence_floor: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionSettings:
    """`[selection]`: the ceilings of one selection where a caller gives none."""

    limit: int = 5
    token_budget: int = 6_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingSettings:
    """`[routing]`."""

    risk_ceilings: tuple[RiskCeiling, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FallbackSettings:
    """`[fallback]`: globs of the safe set, offered (permitted ones only) when the index cannot be searched."""

    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GateSettings:
    """`[gate]`. `unknown_risk` auto: allow where a human confirms (CLI, library, stdio), needs approval over HTTP.

    `calls_per_minute` is for one subject and one tool; 0 means no limit.
    """

    unknown_risk: Literal["auto", "allow", "needs_approval"] = "auto"
    approval_ttl_s: float = 900.0
    calls_per_minute: int = 0
    max_result_bytes: int = 16 * 1024 * 1024


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
    identity: IdentitySettings = IdentitySettings()
    servers: tuple[ServerSpec, ...] = ()
    tools: tuple[ToolRule, ...] = ()
    retrieval: RetrievalSettings = RetrievalSettings()
    selection: SelectionSettings = SelectionSettings()
    routing: RoutingSettings = RoutingSettings()
    fallback: FallbackSettings = FallbackSettings()
    gate: GateSettings = GateSettings()
    trace: TraceSettings = TraceSettings()
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
