"""The freight company's MCP server: `python server.py` for stdio, `python server.py --http 8931` for HTTP on loopback.

What the tools are and do is in `freight_desk/`; this file only speaks MCP. It asks nobody who they are: whoever may
start it may use all of it, which is why a crib stands in front of it.

Environment:
    FREIGHT_STATE: a JSON file that keeps the records between starts; without it each start has the seed records.
    FREIGHT_CHECKLIST_DOWN: 1 takes the customs checklist service down.
    FREIGHT_RELEASE: 2 serves the next release of the tools, in which one has another definition.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

try:
    import anyio
    import mcp_types as types
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server
    from mcp.shared.exceptions import MCPError
except ImportError:
    # Started by a Python without the SDK, say by a crib that runs outside its activated environment.
    # The one that `make` built beside this example has it.
    built = Path(__file__).resolve().parents[2] / ".venv" / "bin" / "python"
    if not built.exists() or Path(sys.prefix).samefile(built.parents[1]):
        sys.exit("The freight server needs the package `mcp`: activate the environment that toolcrib is installed in.")
    os.execv(built, [str(built), *sys.argv])

from freight_desk.catalog import release
from freight_desk.desk import Desk
from freight_desk.records import DeskError


def build_server(desk: Desk) -> Server:
    """An MCP server over this desk. A refusal by the desk is an answer with `isError`, never an empty one."""
    definitions = [types.Tool.model_validate(tool.definition()) for tool in desk.tools.values()]

    async def list_tools(_context: object, _params: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=definitions)

    async def call_tool(_context: object, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name not in desk.tools:
            raise MCPError(code=types.INVALID_PARAMS, message=f"Unknown tool: {params.name}")
        try:
            answer = desk.call(params.name, params.arguments or {})
        except DeskError as fault:
            text = types.TextContent(type="text", text=f"{fault.code}: {fault.message}")
            return types.CallToolResult(content=[text], is_error=True)
        text = types.TextContent(type="text", text=json.dumps(answer, ensure_ascii=False))
        return types.CallToolResult(content=[text], structured_content=answer)

    return Server(
        "freight-desk",
        version="1.0.0",
        instructions="Shipments, customs, billing, bookings, warehouse and fleet of a freight company.",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        get_tool_input_schema=lambda name: desk.tools[name].input_schema() if name in desk.tools else None,
    )


async def serve_stdio(server: Server) -> None:
    async with stdio_server() as (read_stream, write_stream):
        await server.run(read_stream, write_stream, server.create_initialization_options())


def main() -> None:
    parser = argparse.ArgumentParser(description="The freight company's MCP server.")
    parser.add_argument("--http", type=int, metavar="PORT", help="serve streamable HTTP on 127.0.0.1 instead of stdio")
    port = parser.parse_args().http
    state = os.environ.get("FREIGHT_STATE")
    tools = release(os.environ.get("FREIGHT_RELEASE", "1"))
    server = build_server(Desk(Path(state) if state else None, tools=tools))
    if port is None:
        anyio.run(serve_stdio, server)
        return
    import uvicorn  # only HTTP needs it

    app = server.streamable_http_app(json_response=True, stateless_http=True)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")


if __name__ == "__main__":
    main()
