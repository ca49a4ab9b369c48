"""A real MCP server over stdio whose list lies in a file, and which announces when that file is another one."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import ToolsListChanged

FOLDER = Path(sys.argv[1])
BUS = InMemorySubscriptionBus()


async def list_tools(_ctx: Any, _params: Any) -> types.ListToolsResult:
    names = json.loads((FOLDER / "names").read_text(encoding="utf-8"))
    return types.ListToolsResult(
        tools=[types.Tool(name=name, description=f"Do {name}.", input_schema={"type": "object"}) for name in names]
    )


async def call_tool(_ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=f"did {params.name}")])


async def announce() -> None:
    seen = (FOLDER / "names").read_bytes()
    while True:
        await anyio.sleep(0.02)
        if (now := (FOLDER / "names").read_bytes()) != seen:
            seen = now
            await BUS.publish(ToolsListChanged())


async def main() -> None:
    server = Server(
        "growing",
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_subscriptions_listen=ListenHandler(BUS),
    )
    (FOLDER / "pid").write_text(str(os.getpid()), encoding="utf-8")
    async with anyio.create_task_group() as tasks, stdio_server() as (incoming, outgoing):
        tasks.start_soon(announce)
        await server.run(
            incoming, outgoing, server.create_initialization_options(NotificationOptions(tools_changed=True))
        )
        tasks.cancel_scope.cancel()


if __name__ == "__main__":
    anyio.run(main)
