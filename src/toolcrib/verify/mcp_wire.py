"""The MCP gateway as a client over stdio sees it: JSON-RPC messages in and out, carried in memory.

The SDK's client is not used: it drops what it does not know, and this must see every byte.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import anyio
from mcp.shared.memory import MessageStream, create_client_server_memory_streams
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from toolcrib.server.callers import CurrentCaller
from toolcrib.server.mcp_gateway import Gateway
from toolcrib.server.surface import SurfaceKind
from toolcrib.types import Channel
from toolcrib.verify.asking import Request, Seat, failed, request
from toolcrib.verify.messages import INITIALIZE, LEGACY, conversation, message
from toolcrib.verify.questions import Questions

_ANSWERED_WITHIN_S = 120.0


class McpSurface:
    """One protocol era, one kind of listing.

    Args:
        listing_only: ask for the listing and nothing else.
    """

    def __init__(self, era: str, *, kind: SurfaceKind = SurfaceKind.SEARCH, listing_only: bool = False) -> None:
        self.name = f"mcp {era}" + ("" if kind is SurfaceKind.SEARCH else f" --surface {kind}")
        self._era = era
        self._kind = kind
        self._listing_only = listing_only

    def requests(self, questions: Questions) -> Sequence[Request]:
        asked = conversation(self._era, questions, brief=self._era == LEGACY)
        kept = asked[:2] if self._listing_only else asked
        return [request(self.name, what, [method, params]) for what, method, params in kept]

    def answers(self, seat: Seat, requests: Sequence[Request]) -> list[bytes]:
        return asyncio.run(self._answers(seat, requests))

    async def _answers(self, seat: Seat, requests: Sequence[Request]) -> list[bytes]:
        gateway = Gateway(
            seat.crib,
            channel=Channel.STDIO,
            callers=CurrentCaller(lambda: seat.caller),
            surface=self._kind,
            poll_s=0,
        )
        options = gateway.server.create_initialization_options()
        async with create_client_server_memory_streams() as (client, server), anyio.create_task_group() as tasks:
            tasks.start_soon(gateway.server.run, server[0], server[1], options)
            answers = await self._talk(client, requests)
            tasks.cancel_scope.cancel()
        return answers

    async def _talk(self, client: MessageStream, requests: Sequence[Request]) -> list[bytes]:
        told: list[bytes] = []
        opened = False
        for number, one in enumerate(requests, start=1):
            method, params = one.read()
            if self._era == LEGACY and method != "initialize" and not opened:
                await self._exchange(client, "initialize", dict(INITIALIZE), number=0)
            answer = await self._exchange(client, method, params, number=number)
            if self._era == LEGACY and not opened:
                await _send(client, {"jsonrpc": "2.0", "method": "notifications/initialized"})
            opened = True
            told.append(answer)
        return told

    async def _exchange(self, client: MessageStream, method: str, params: dict[str, object], *, number: int) -> bytes:
        """The answer to one request, and all that the server said before it, a message a line."""
        lines: list[str] = []
        with suppress(anyio.EndOfStream):
            await _send(client, message(self._era, method, params, number=number))
            with anyio.fail_after(_ANSWERED_WITHIN_S):
                while True:
                    received = await client[0].receive()
                    if isinstance(received, Exception):
                        return failed(received)
                    lines.append(received.message.model_dump_json(by_alias=True, exclude_unset=True))
                    if getattr(received.message, "id", None) == number and not hasattr(received.message, "method"):
                        break
        return "\n".join(lines).encode("utf-8", "surrogatepass")


async def _send(client: MessageStream, body: dict[str, object]) -> None:
    await client[1].send(SessionMessage(message=jsonrpc_message_adapter.validate_python(body)))
