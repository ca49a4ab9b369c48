"""`ServerSpec` -> `Connector`. Nothing is started or read yet: a connector opens on first use."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from toolcrib.connectors.base import Connector
from toolcrib.connectors.files import FileConnector
from toolcrib.types import ServerSpec, Transport


def open_connector(spec: ServerSpec, *, env: Mapping[str, str], headers: Mapping[str, str], root: Path) -> Connector:
    """A connector for one configured server.

    Args:
        env: the server's configured environment variables, secrets resolved; nothing else of ours is passed on.
        headers: the server's configured HTTP headers, secrets resolved.
        root: the crib's directory; relative paths begin there.
    Raises:
        ConfigError: a header value that HTTP does not allow.
    """
    if spec.transport is Transport.FILE:
        return FileConnector(spec, path=root / Path(spec.path).expanduser())
    # Imported here and nowhere else: the mcp package costs about 0.7 s, and most commands never talk to a server.
    from toolcrib.connectors.mcp import McpConnector

    return McpConnector(spec, env=env, headers=headers, root=root)
