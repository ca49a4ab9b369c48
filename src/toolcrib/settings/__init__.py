"""The settings room: `toolcrib.toml` in, frozen `Settings` out; the starter that `toolcrib init` writes, and imports.

`loading` is the way in; `document` has the file's shape, `checks` what spans keys, `faults` the errors, `lines` where
they are; `model` is the result. `references` and `plaintext` keep secrets out. `importing` reads other clients' files.
"""

from toolcrib.settings.globs import unmatched_rules
from toolcrib.settings.importing import ImportedServers, ImportNote, import_mcp_servers
from toolcrib.settings.loading import FILE_NAME, load_settings
from toolcrib.settings.model import (
    ApprovalSettings,
    CribSettings,
    FallbackSettings,
    GateSettings,
    IdentitySettings,
    JwtSettings,
    ModelSettings,
    PolicySettings,
    ProxyClient,
    ProxySettings,
    RefreshSettings,
    RetrievalSettings,
    ReviewSettings,
    RoutingSettings,
    SelectionSettings,
    Settings,
    ShadowSettings,
    Signer,
    TokenSettings,
    ToolRule,
    TraceSettings,
    VaultEntry,
)
from toolcrib.settings.references import is_callers, reveal
from toolcrib.settings.starter import starter_toml

__all__ = [
    "FILE_NAME",
    "ApprovalSettings",
    "CribSettings",
    "FallbackSettings",
    "GateSettings",
    "IdentitySettings",
    "ImportNote",
    "ImportedServers",
    "JwtSettings",
    "ModelSettings",
    "PolicySettings",
    "ProxyClient",
    "ProxySettings",
    "RefreshSettings",
    "RetrievalSettings",
    "ReviewSettings",
    "RoutingSettings",
    "SelectionSettings",
    "Settings",
    "ShadowSettings",
    "Signer",
    "TokenSettings",
    "ToolRule",
    "TraceSettings",
    "VaultEntry",
    "import_mcp_servers",
    "is_callers",
    "load_settings",
    "reveal",
    "starter_toml",
    "unmatched_rules",
]
