"""A small real MCP server for end-to-end tests: tells and adds, over stdio."""

from __future__ import annotations

from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server

TOOLS = [
    types.Tool(
        name="get_time",
        description="Tell the current time in a time zone.",
        input_schema={"type": "object", "properties": {"zone": {"type": "string"}}, "required": ["zone"]},
    ),
    types.Tool(
        name="add_numbers",
        description="Add two numbers.",
        input_schema={"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}},
    ),
    types.Tool(name="wipe_disk", description="Erase the disk.", input_schema={"type": "object"}),
]


async def list_tools(_ctx: Any, _params: Any) -> types.ListToolsResult:
    return types.ListToolsResult(tools=TOOLS)


async def call_tool(_ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    arguments = params.arguments or {}
    text = f"noon in {arguments['zone']}" if params.name == "get_time" else str(arguments["a"] + arguments["b"])
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


server = Server("clock", version="1", on_list_tools=list_tools, on_call_tool=call_tool)


async def main() -> None:
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
