"""A server made with the SDK that announces changes of its list, in either era.

Over stdio as a script: after how many lists it announces a change. `Announcer` for HTTP.
"""

import sys

import anyio
import mcp_types as wire
from mcp import MCPError
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import ToolsListChanged
from mcp_types.version import MODERN_PROTOCOL_VERSIONS


class Announcer:
    """`legacy`: it does not know the stateless revision. `deaf`: it says that it announces, and takes no listener."""

    def __init__(self, *, legacy=False, deaf=False, n_announced=0):
        self.legacy = legacy
        self.names = ["one"]
        self.n_announced = n_announced
        self.bus = InMemorySubscriptionBus()
        self.sessions = []
        listen = None if legacy or deaf else ListenHandler(self.bus)
        self.server = Server(
            "announcer",
            version="1",
            on_list_tools=self._list,
            on_call_tool=self._list,
            **({"on_subscriptions_listen": listen} if listen else {}),
        )
        self.server.middleware = [self._answer]

    async def announce(self):
        await self.bus.publish(ToolsListChanged())
        for session in self.sessions:
            await session.send_tool_list_changed()

    async def _list(self, _ctx, _params):
        raise AssertionError("the middleware answers this")

    async def _answer(self, ctx, call_next):
        if ctx.method == "server/discover" and self.legacy:
            raise MCPError(code=wire.METHOD_NOT_FOUND, message="Method not found")
        if ctx.method == "tools/list":
            return await self._answer_list(ctx)
        result = await call_next(ctx)
        if ctx.method in ("initialize", "server/discover"):
            return {**result, "capabilities": {**result["capabilities"], "tools": {"listChanged": True}}}
        if ctx.method == "notifications/initialized":
            self.sessions.append(ctx.session)
        return result

    async def _answer_list(self, ctx):
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in self.names]
        if self.n_announced:
            self.n_announced -= 1
            self.names.append(f"more_{self.n_announced}")
            await self.announce()
        modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        return {"tools": tools, **({"resultType": "complete", "ttlMs": 0, "cacheScope": "private"} if modern else {})}


async def _main():
    announcer = Announcer(n_announced=int(sys.argv[1]))
    options = announcer.server.create_initialization_options(NotificationOptions(tools_changed=True))
    async with stdio_server() as (received, sent):
        await announcer.server.run(received, sent, options)


if __name__ == "__main__":
    anyio.run(_main)
