"""The gateway over stdio: a child process and real clients of both eras."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from mcp import Client, MCPError, StdioServerParameters, stdio_client

from toolcrib.server.meta_tools import META_NAMES
from toolcrib.server.surface import mcp_name

from .asking import ask, names, tools
from .carriers import ERAS

CHILD = Path(__file__).with_name("stdio_child.py")


@pytest.mark.parametrize("mode", ERAS)
async def test_lists_finds_and_calls_over_stdio(mode):
    path = os.pathsep.join([str(CHILD.parent.parent), *sys.path])
    child = StdioServerParameters(command=sys.executable, args=[str(CHILD)], env={**os.environ, "PYTHONPATH": path})
    name = mcp_name("freight.shipment_get")
    async with Client(stdio_client(child), mode=mode, read_timeout_seconds=60) as client:
        assert await names(client) == [*META_NAMES, name]
        assert (await tools(client))[-1]["x-top"] == [None]
        found = await ask(client, "find_tools", {"task": "shipment"})
        assert [t["name"] for t in found["structuredContent"]["tools"]] == [name]
        for call in (
            ask(client, name, {"id": None}),
            ask(client, "call_tool", {"name": name, "arguments": {"id": None}}),
        ):
            result = await call
            assert result["content"][0]["text"] == "ünï\u2028 ok"
            assert result["structuredContent"] == {"id": None}
        with pytest.raises(MCPError) as refused:
            await ask(client, mcp_name("billing.invoice_get"))
        assert (refused.value.code, refused.value.message) == (-32602, "Unknown tool")
