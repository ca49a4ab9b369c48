"""Resources that tests of connectors share: servers as child processes and on a loopback port."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from toolcrib.connectors.mcp import McpConnector
from toolcrib.types import ServerSpec, Transport

SERVERS = Path(__file__).parent / "servers"


@pytest.fixture
async def rude(tmp_path: Path) -> AsyncIterator[Callable[..., McpConnector]]:
    """Makes connectors to `servers/rude.py`; keyword arguments are its script, `spec` and `env` are ours."""
    made: list[McpConnector] = []

    def make(*, spec: dict[str, Any] | None = None, env: dict[str, str] | None = None, **script: Any) -> McpConnector:
        command = (sys.executable, "-S", str(SERVERS / "rude.py"), json.dumps(script))
        made.append(
            McpConnector(
                ServerSpec(server_id="rude", transport=Transport.STDIO, command=command, **(spec or {})),
                env=env or {},
                headers={},
                root=tmp_path,
            )
        )
        return made[-1]

    yield make
    await asyncio.gather(*(connector.aclose() for connector in made))


@asynccontextmanager
async def serving(app: Any, *, port: int = 0) -> AsyncIterator[str]:
    """The address of an ASGI app on a free loopback port. The socket listens before the server runs: nobody waits."""
    with socket.create_server(("127.0.0.1", port)) as listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        config = uvicorn.Config(app, log_level="error", access_log=False, ws="none", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        task = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        finally:
            server.should_exit = True
            await task


def http_connector(url: str, *, headers: dict[str, str] | None = None, **spec: Any) -> McpConnector:
    return McpConnector(
        ServerSpec(server_id="web", transport=Transport.HTTP, url=url, **spec),
        env={},
        headers=headers or {},
        root=Path(),
    )
