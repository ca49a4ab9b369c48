"""A stand-in for one of the demo's servers: `python stand_in.py time|git`, with tools of the same names and words."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

TEXT = {"type": "string"}
TOOLS: dict[str, dict[str, tuple[str, dict[str, Any]]]] = {
    "time": {
        "get_current_time": ("Get current time in a specific timezone", {"timezone": TEXT}),
        "convert_time": (
            "Convert time between timezones",
            {"source_timezone": TEXT, "time": TEXT, "target_timezone": TEXT},
        ),
    },
    "git": {
        "git_status": ("Shows the working tree status", {"repo_path": TEXT}),
        "git_log": ("Shows the commit logs", {"repo_path": TEXT}),
        "git_add": ("Adds file contents to the staging area", {"repo_path": TEXT}),
        "git_commit": ("Records changes to the repository", {"repo_path": TEXT, "message": TEXT}),
    },
}


async def serve(name: str) -> None:
    async def list_tools(_context: object, _params: object) -> types.ListToolsResult:
        tools = [
            types.Tool(
                name=tool,
                description=words,
                input_schema={"type": "object", "properties": properties, "required": list(properties)},
            )
            for tool, (words, properties) in TOOLS[name].items()
        ]
        return types.ListToolsResult(tools=tools)

    async def call_tool(_context: object, params: types.CallToolRequestParams) -> types.CallToolResult:
        said = params.arguments or {}
        if params.name == "git_commit":
            command = ["git", "-C", said["repo_path"], "commit", "--quiet", "-m", said["message"]]
            await anyio.run_process(command, stdin=subprocess.DEVNULL)
        return types.CallToolResult(content=[types.TextContent(type="text", text="done")])

    server = Server(name, on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read_stream, write_stream):
        await server.run(read_stream, write_stream, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(serve, sys.argv[1])
