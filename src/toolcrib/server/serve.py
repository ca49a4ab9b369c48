"""Runs an HTTP application on one address until it is told to stop. Logs go to stderr; requests are not logged.

Above: the command line. Loopback by default: another address needs the host names that clients will use.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette

from toolcrib.errors import ConfigError
from toolcrib.server.challenge import MCP_PATH, DescribeResource, ProtectedResource
from toolcrib.server.guard import LOOPBACK_HOSTS, ResolveCaller
from toolcrib.server.http import http_app
from toolcrib.server.mcp_gateway import Gateway
from toolcrib.server.needs import GatewayCrib, Watching, not_watching
from toolcrib.server.surface import SurfaceKind
from toolcrib.settings.hosts import is_loopback

_STOP_WITHIN_S = 3


async def serve_http(
    crib: GatewayCrib,
    *,
    resolve_caller: ResolveCaller,
    describe: DescribeResource = ProtectedResource,
    host: str = "127.0.0.1",
    port: int = 0,
    surface: SurfaceKind = SurfaceKind.SEARCH,
    allowed_hosts: Iterable[str] = (),
    allowed_origins: Iterable[str] = (),
    version: str = "",
    on_listening: Callable[[str], None] | None = None,
    watching: Watching = not_watching,
) -> None:
    """Serves until SIGINT or SIGTERM.

    Args:
        allowed_hosts: names clients reach this by, beside the loopback's; needed where `host` is not the loopback.
        port: 0 takes a free one.
        on_listening: told the address of the gateway once clients may connect.
        watching: keeps the servers' lists fresh meanwhile, and says when another one was published.
    Raises:
        ConfigError: the address cannot be used, or is open to others without saying under which names.
    """
    names = tuple(allowed_hosts)
    if not names and not is_loopback(host):
        raise ConfigError(
            f"{host} can be reached from other machines, and no host name is allowed",
            hint="listen on 127.0.0.1, or say with which host names clients come: --allow-host NAME",
        )
    app = http_app(
        crib,
        resolve_caller=resolve_caller,
        describe=describe,
        surface=surface,
        allowed_hosts=(*LOOPBACK_HOSTS, *names),
        allowed_origins=allowed_origins,
        version=version,
    )
    listener = listen_on(host, port)
    shown = f"[{host}]" if ":" in host else host
    if on_listening is not None:
        on_listening(f"http://{shown}:{listener.getsockname()[1]}{MCP_PATH}")
    gateway: Gateway = app.state.gateway
    async with watching(gateway.notify_catalog_changed):
        await HttpServer(app).serve(sockets=[listener])


class HttpServer(uvicorn.Server):
    """uvicorn without request logs and banners, which ends the gateway's open streams when it stops.

    A signal that it stopped for is not raised once more: that would end the process before servers are closed.
    """

    def __init__(self, app: Starlette) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                ws="none",
                timeout_graceful_shutdown=_STOP_WITHIN_S,
            )
        )
        self._gateway: Gateway = app.state.gateway

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        with super().capture_signals():
            yield
            self._captured_signals.clear()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._gateway.close_streams()
        await super().shutdown(sockets)


def listen_on(host: str, port: int) -> socket.socket:
    """A bound, listening socket.

    Raises:
        ConfigError: the address cannot be used.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=2_048)
        # asyncio sets this only on sockets that name their protocol; without it, a modern answer waits 40 ms.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except (OSError, OverflowError) as fault:
        raise ConfigError(f"cannot listen on {host} port {port}: {fault}", hint="choose another address") from fault
