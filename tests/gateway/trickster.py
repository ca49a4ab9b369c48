"""A real MCP server, made with the SDK, whose list goes wrong on purpose: over HTTP in this process, or over stdio.

Over stdio it is a script, its one argument a folder: `script.json` there holds its `Script`, looked at before every
answer, and a new one is announced; `asked` gets a line for each `tools/list`, and `pid` its process number.

Its tools answer with their own name. Tricks, all of them from page two on:

    loop         page two names itself as the next one
    error        a JSON-RPC error
    expired      the cursor is not known any more
    http 500     the HTTP request itself fails (not over stdio)
    no list      a page without a list of tools
    die          the process ends (stdio alone)
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import anyio
import mcp_types as wire
from mcp import MCPError
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.runner import serve_dual_era_loop, serve_loop
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import ToolsListChanged
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

Asgi = Callable[[Any, Any, Any], Awaitable[None]]


@dataclass
class Script:
    """What it lists, and how that goes wrong. `floods`: how often it announces a change while it is listed."""

    tools: list[dict[str, Any]] = field(default_factory=list)
    trick: str = ""
    page_size: int = 1
    floods: int = 0
    instructions: str = ""


class Trickster:
    """The server. `legacy`: it does not know the stateless revision.

    `cursors`: of every page it was asked for, None for a first one. `called`: tools, in order.
    """

    def __init__(
        self, *tools: dict[str, Any], legacy: bool = False, script: Callable[[], Script] | None = None
    ) -> None:
        self.now = Script(tools=list(tools))
        self.legacy = legacy
        self.cursors: list[str | None] = []
        self.called: list[str] = []
        self._script = script or (lambda: self.now)
        self._bus = InMemorySubscriptionBus()
        self._sessions: list[Any] = []
        listen: dict[str, Any] = {} if legacy else {"on_subscriptions_listen": ListenHandler(self._bus)}
        self.server = Server(
            "trickster", version="1", on_list_tools=self._unasked, on_call_tool=self._unasked, **listen
        )
        self.server.middleware = [self._answer]

    @property
    def n_lists(self) -> int:
        """How many lists were begun."""
        return self.cursors.count(None)

    async def announce(self) -> None:
        await self._bus.publish(ToolsListChanged())
        for session in list(self._sessions):
            try:
                await session.send_tool_list_changed()
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                self._sessions.remove(session)

    def app(self) -> Asgi:
        """The server as an HTTP application, to be run once."""
        honest = self.server.streamable_http_app()

        async def tricky(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] != "http" or scope["method"] != "POST":
                await honest(scope, receive, send)
                return
            message = await receive()
            if self._script().trick == "http 500" and _cursor_of(message.get("body", b"")) is not None:
                await send({"type": "http.response.start", "status": 500, "headers": []})
                await send({"type": "http.response.body", "body": b"out of order"})
                return
            waiting = [message]

            async def replayed() -> Any:
                return waiting.pop() if waiting else await receive()

            await honest(scope, replayed, send)

        return tricky

    async def _unasked(self, _ctx: Any, _params: Any) -> Any:
        raise AssertionError("the middleware answers this")

    async def _answer(self, ctx: Any, call_next: Any) -> Any:
        modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        envelope = {"resultType": "complete"} if modern else {}
        if ctx.method == "server/discover" and self.legacy:
            raise MCPError(code=wire.METHOD_NOT_FOUND, message="Method not found")
        if ctx.method == "tools/list":
            page = await self._page((ctx.params or {}).get("cursor"))
            return {**page, **envelope, **({"ttlMs": 0, "cacheScope": "private"} if modern else {})}
        if ctx.method == "tools/call":
            self.called.append(ctx.params["name"])
            return {"content": [{"type": "text", "text": f"did {ctx.params['name']}"}], **envelope}
        result = await call_next(ctx)
        if ctx.method in ("initialize", "server/discover"):
            result = {**result, "capabilities": {**result["capabilities"], "tools": {"listChanged": True}}}
            if told := self._script().instructions:
                result["instructions"] = told
        if ctx.method == "notifications/initialized":
            self._sessions.append(ctx.session)
        return result

    async def _page(self, cursor: str | None) -> dict[str, Any]:
        script = self._script()
        self.cursors.append(cursor)
        for _ in range(script.floods):
            await self.announce()
        start = int(cursor or 0)
        end = start + script.page_size
        page: dict[str, Any] = {"tools": script.tools[start:end]}
        if end < len(script.tools):
            page["nextCursor"] = str(end)
        return page if cursor is None else _tricked(script.trick, cursor, page)


def _tricked(trick: str, cursor: str, page: dict[str, Any]) -> dict[str, Any]:
    if trick == "error":
        raise MCPError(code=wire.INTERNAL_ERROR, message="the database is locked")
    if trick == "expired":
        raise MCPError(code=wire.INVALID_PARAMS, message="cursor expired")
    if trick == "die":
        os._exit(7)
    if trick == "no list":
        return {"tools": None}
    return {**page, "nextCursor": cursor} if trick == "loop" else page


def _cursor_of(body: bytes) -> str | None:
    request = json.loads(body or b"{}")
    return (request.get("params") or {}).get("cursor") if request.get("method") == "tools/list" else None


def write_script(folder: Path, script: Script) -> None:
    """From now on, for the one that runs over stdio with this folder."""
    (folder / "new").write_text(json.dumps(asdict(script)), encoding="utf-8")
    (folder / "new").replace(folder / "script.json")


async def _main(folder: Path, *, legacy: bool) -> None:
    def read() -> bytes:
        return (folder / "script.json").read_bytes()

    class Noted(list[Any]):
        def append(self, cursor: Any) -> None:
            with (folder / "asked").open("a") as log:
                log.write(json.dumps(cursor) + "\n")

    trickster = Trickster(legacy=legacy, script=lambda: Script(**json.loads(read())))
    trickster.cursors = Noted()

    async def announce_changes() -> None:
        seen = read()
        while True:
            await anyio.sleep(0.02)
            if (now := read()) != seen:
                seen = now
                await trickster.announce()

    options = trickster.server.create_initialization_options(NotificationOptions(tools_changed=True))
    (folder / "pid").write_text(str(os.getpid()), encoding="utf-8")
    async with anyio.create_task_group() as tasks, stdio_server() as (received, sent):
        tasks.start_soon(announce_changes)
        async with trickster.server.lifespan(trickster.server) as state:
            serve = serve_loop if legacy else serve_dual_era_loop  # which of them, a request of the client decides
            await serve(trickster.server, received, sent, lifespan_state=state, init_options=options)
        tasks.cancel_scope.cancel()


if __name__ == "__main__":
    anyio.run(lambda: _main(Path(sys.argv[1]), legacy=sys.argv[2:] == ["legacy"]))
