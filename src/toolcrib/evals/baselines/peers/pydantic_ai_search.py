"""Pydantic AI's own tool search (`ToolSearch` where the provider has none): words shared with names and descriptions.

Names must be unique there, so a tool's id stands for its name. The search tool is built once and asked through the
toolset, as an agent does.
"""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic_ai import RunContext  # type: ignore[import-not-found,unused-ignore]
from pydantic_ai.capabilities import ToolSearch  # type: ignore[import-not-found,unused-ignore]
from pydantic_ai.models.test import TestModel  # type: ignore[import-not-found,unused-ignore]
from pydantic_ai.tools import ToolDefinition  # type: ignore[import-not-found,unused-ignore]
from pydantic_ai.toolsets import ExternalToolset  # type: ignore[import-not-found,unused-ignore]
from pydantic_ai.usage import RunUsage  # type: ignore[import-not-found,unused-ignore]


class Search:
    def __init__(self, tools: list[dict[str, Any]]) -> None:
        definitions = [
            ToolDefinition(
                name=tool["id"],
                description=tool["description"],
                parameters_json_schema=tool["input_schema"],
                defer_loading=True,
            )
            for tool in tools
        ]
        self._loop = asyncio.new_event_loop()
        self._toolset = ToolSearch().get_wrapper_toolset(ExternalToolset(definitions))
        self._context = RunContext(deps=None, model=TestModel(), usage=RunUsage())
        shown = self._loop.run_until_complete(self._toolset.get_tools(self._context))
        self._tool = shown[ToolSearch.function_tool_name]

    def search(self, task: str, k: int) -> list[str]:
        if not task.strip():
            return []
        self._toolset.max_results = k
        name = ToolSearch.function_tool_name
        asked = self._toolset.call_tool(name, {"queries": [task]}, self._context, self._tool)
        try:
            found = self._loop.run_until_complete(asked)
        except Exception as fault:
            if type(fault).__name__ == "ModelRetry":  # no word that it knows in the task
                return []
            raise
        return [match["name"] for match in found["discovered_tools"]]

    def overhead(self) -> list[dict[str, Any]]:
        shown = self._tool.tool_def
        return [
            {"name": shown.name, "description": shown.description, "input_schema": shown.parameters_json_schema},
        ]


def opened(tools: list[dict[str, Any]], options: dict[str, Any]) -> Search:
    del options
    return Search(tools)
