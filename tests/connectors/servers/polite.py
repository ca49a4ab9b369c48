"""A server made with the SDK's lowlevel `Server`: over stdio as a script, `make_server` for HTTP in-process."""

import json

import anyio
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server

TOOLS = [
    {
        "name": "echo",
        "description": "Says it again.",
        "inputSchema": {
            "type": "object",
            "properties": {"text": {"type": "string"}, "opts": {"$ref": "#/$defs/Opts"}},
            "$defs": {"Opts": {"type": "object"}},
        },
        "annotations": {"readOnlyHint": True, "x-vendor": 1},
        "_meta": {"com.example/owner": "team"},
        "x-unknown": [1, 2.5, None],
    },
    {
        "name": "routed",
        "inputSchema": {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}},
    },
]


async def _unaltered_list(ctx, call_next):
    """Answers tools/list before the SDK's models drop what they do not know."""
    if ctx.method != "tools/list":
        return await call_next(ctx)
    era = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    return {"tools": TOOLS, **(era if ctx.protocol_version == "2026-07-28" else {})}


async def _list_tools(ctx, params):
    raise AssertionError("the middleware answers this")


async def _call_tool(ctx, params):
    content = [{"type": "text", "text": json.dumps(params.arguments)}]
    return {"resultType": "complete", "content": content, "structuredContent": {"got": params.arguments}}


def make_server(get_schema=lambda name: None):
    server = Server(
        "polite",
        version="1",
        instructions="Be polite.",
        on_list_tools=_list_tools,
        on_call_tool=_call_tool,
        get_tool_input_schema=get_schema,
    )
    server.middleware = [_unaltered_list]
    return server


async def _main():
    server = make_server()
    async with stdio_server() as (received, sent):
        await server.run(received, sent, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(_main)
