"""FastMCP's BM25 search transform, asked the way a client asks it: by calling its `search_tools`.

Names must be unique there, so a tool's id stands for its name. Each search costs what it costs in FastMCP: the catalog
is listed and hashed anew, and what was found is written out whole.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from fastmcp import FastMCP  # type: ignore[import-not-found,unused-ignore]
from fastmcp.server.transforms.search import (  # type: ignore[import-not-found,unused-ignore]
    BM25SearchTransform,
)
from fastmcp.tools import Tool  # type: ignore[import-not-found,unused-ignore]


class Search:
    def __init__(self, tools: list[dict[str, Any]]) -> None:
        logging.disable(logging.CRITICAL)
        self._ids = {tool["id"] for tool in tools}
        self._loop = asyncio.new_event_loop()
        self._server = FastMCP("peer")
        for tool in tools:
            self._server.add_tool(
                Tool(name=tool["id"], description=tool["description"], parameters=tool["input_schema"])
            )
        self._transform = BM25SearchTransform(max_results=5)
        self._server.add_transform(self._transform)

    def search(self, task: str, k: int) -> list[str]:
        self._transform._max_results = k
        result = self._loop.run_until_complete(self._server.call_tool("search_tools", {"query": task}))
        found = (result.structured_content or {}).get("result", [])
        return [tool["name"] for tool in found if tool["name"] in self._ids]

    def overhead(self) -> list[dict[str, Any]]:
        shown = self._loop.run_until_complete(self._server.list_tools())
        return [tool.to_mcp_tool().model_dump(mode="json", by_alias=True, exclude_none=True) for tool in shown]


def opened(tools: list[dict[str, Any]], options: dict[str, Any]) -> Search:
    del options
    return Search(tools)
