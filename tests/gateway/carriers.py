"""Ways to stand a real client of the `mcp` SDK before a gateway: in one process, or over HTTP on the loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from toolcrib.server.callers import CurrentCaller
from toolcrib.server.guard import ResolveCaller
from toolcrib.server.http import http_app
from toolcrib.server.mcp_gateway import Gateway
from toolcrib.server.serve import HttpServer, listen_on
from toolcrib.server.surface import SurfaceKind
from toolcrib.types import Caller, Channel, Presented

from .fakes import FakeCrib

ADA = Caller(subject="ada")
BOB = Caller(subject="bob")
TOKENS = {"Bearer ada-token": ADA, "Bearer bob-token": BOB}

ERAS = ("auto", "legacy")


async def who(presented: Presented) -> Caller | None:
    return TOKENS.get(presented.authorization or "")


def gateway(crib: FakeCrib, *, caller: Caller = ADA, surface: SurfaceKind = SurfaceKind.SEARCH) -> Gateway:
    return Gateway(crib, channel=Channel.STDIO, callers=CurrentCaller(lambda: caller), surface=surface, poll_s=0)


@asynccontextmanager
async def served(crib: FakeCrib, resolve: ResolveCaller = who, **options: Any) -> AsyncIterator[tuple[str, Gateway]]:
    """The gateway over HTTP on a free port: its URL and the gateway itself."""
    app = http_app(crib, resolve_caller=resolve, poll_s=0, **options)
    listener = listen_on("127.0.0.1", 0)
    server = HttpServer(app)
    running = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", app.state.gateway
    finally:
        server.should_exit = True
        await running
        listener.close()


@asynccontextmanager
async def client(url: str, subject: str, **options: Any) -> AsyncIterator[Client]:
    """A client that comes with that subject's token."""
    headers = {"Authorization": f"Bearer {subject}-token"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as http,
        Client(streamable_http_client(url, http_client=http), **options) as connected,
    ):
        yield connected
