"""The gateway over stdin and stdout, for the client that started this process.

Above: the command line. The SDK keeps stray prints off the wire: while it serves, fd 1 goes to stderr.
"""

from __future__ import annotations

from collections.abc import Callable

from mcp.server.stdio import stdio_server

from toolcrib.server.callers import CurrentCaller
from toolcrib.server.mcp_gateway import Gateway
from toolcrib.server.needs import GatewayCrib, Watching, not_watching
from toolcrib.server.surface import SurfaceKind
from toolcrib.types import Caller, Channel


async def serve_stdio(
    crib: GatewayCrib,
    *,
    caller: Callable[[], Caller],
    surface: SurfaceKind = SurfaceKind.SEARCH,
    version: str = "",
    poll_s: float = 2.0,
    watching: Watching = not_watching,
) -> None:
    """Serves until the client closes stdin.

    Args:
        caller: who sits at the other end, asked on every request.
        watching: keeps the servers' lists fresh meanwhile, and says when another one was published.
    """
    gateway = Gateway(
        crib, channel=Channel.STDIO, callers=CurrentCaller(caller), surface=surface, version=version, poll_s=poll_s
    )
    async with watching(gateway.notify_catalog_changed), stdio_server() as (incoming, outgoing):
        await gateway.server.run(incoming, outgoing, gateway.server.create_initialization_options())
