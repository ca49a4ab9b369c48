"""The gateway as an ASGI application: streamable HTTP, both protocol eras, at `/mcp`.

Above: `serve.py` runs it. Below: `guard.py` stands in front, `mcp_gateway.py` answers.

    HostGuard ─▶ /healthz
              ─▶ /.well-known/oauth-protected-resource
              ─▶ /mcp ─▶ CallerGuard ─▶ StepUp ─▶ body limit ─▶ era ─▶ Gateway
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager

from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route

from toolcrib.server.callers import RequestCaller
from toolcrib.server.challenge import MCP_PATH, WELL_KNOWN, DescribeResource, Document, ProtectedResource, StepUp
from toolcrib.server.guard import LOOPBACK_HOSTS, CallerGuard, HostGuard, ResolveCaller
from toolcrib.server.mcp_gateway import Gateway
from toolcrib.server.needs import GatewayCrib
from toolcrib.server.surface import SurfaceKind
from toolcrib.types import Channel


def http_app(
    crib: GatewayCrib,
    *,
    resolve_caller: ResolveCaller,
    describe: DescribeResource = ProtectedResource,
    surface: SurfaceKind = SurfaceKind.SEARCH,
    allowed_hosts: Iterable[str] = LOOPBACK_HOSTS,
    allowed_origins: Iterable[str] = (),
    max_body_bytes: int = 4 * 1024 * 1024,
    max_sessions: int = 1_000,
    session_idle_s: float = 1_800.0,
    extra_routes: Sequence[BaseRoute] = (),
    version: str = "",
    poll_s: float = 2.0,
) -> Starlette:
    """The application. Its gateway is `app.state.gateway`; run one application once.

    Args:
        resolve_caller: who shows itself so; it decides what a request without an `Authorization` header is worth.
        describe: what clients are told of authorization, asked on every request.
        extra_routes: served behind the host guard, each with a caller guard of its own where it needs one.
        max_sessions: legacy sessions open at a time; modern requests have none.
    """
    gateway = Gateway(
        crib, channel=Channel.HTTP, callers=RequestCaller(), surface=surface, version=version, poll_s=poll_s
    )
    sessions = StreamableHTTPSessionManager(
        gateway.server,
        session_idle_timeout=session_idle_s,
        max_request_body_size=max_body_bytes,
        max_sessions=max_sessions,
    )
    behind = StepUp(StreamableHTTPASGIApp(sessions), describe=describe)
    entry = CallerGuard(behind, resolve_caller=resolve_caller, describe=describe)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with sessions.run():
            yield

    app = Starlette(
        routes=[
            Route(MCP_PATH, endpoint=entry),
            Route("/healthz", endpoint=_health),
            Route(WELL_KNOWN + "{rest:path}", endpoint=Document(describe).answer),
            *extra_routes,
        ],
        middleware=[Middleware(HostGuard, hosts=tuple(allowed_hosts), origins=tuple(allowed_origins))],
        lifespan=lifespan,
    )
    app.state.gateway = gateway
    return app


async def _health(_request: Request) -> JSONResponse:
    """That the process answers; nothing about what it holds."""
    return JSONResponse({"status": "ok"})
