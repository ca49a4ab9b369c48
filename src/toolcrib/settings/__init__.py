"""The settings room: `toolcrib.toml` in, frozen `Settings` out; the starter that `toolcrib init` writes, and imports.

`loading` is the way in; `document` has the file's shape, `checks` what spans keys, `faults` the errors, `lines` where
they are; `model` is the result. `references` and `plaintext` keep secrets out. `importing` reads other clients' files.
"""

from toolcrib.settings.globs import unmatched_rules
from toolcrib.settings.importing import ImportedServers, ImportNote, import_mcp_servers
from toolcrib.settings.loading import FILE_NAME, load_settings
from toolcrib.settings.model import (
    CribSettings,
    FallbackSettings,
    GateSettings,
    IdentitySettings,
    RetrievalSettings,
    RoutingSettings,
    SelectionSettings,
    Settings,
    TokenSettings,
    ToolRule,
    TraceSettings,
)
from toolcrib.settings.references import reveal
from toolcrib.settings.starter import starter_toml

__all__ = [
    "FILE_NAME",
    "CribSettings",
    "FallbackSettings",
    "GateSettings",
    "IdentitySettings",
    "ImportNote",
    "ImportedServers",
    "RetrievalSettings",
    "RoutingSettings",
    "SelectionSettings",
    "Settings",
    "TokenSettings",
    "ToolRule",
    "TraceSettings",
    "import_mcp_servers",
    "load_settings",
    "reveal",
    "starter_toml",
    "unmatched_rules",
]
