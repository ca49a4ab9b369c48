"""Small tools for tests of baselines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcrib.types import Tool, ToolMetadata, ToolState


def tool(tool_id: str, name: str, description: str = "", arguments: Mapping[str, str] | Any = ()) -> Tool:
    """A tool with string arguments, `arguments`: name -> description; anything else stands as `properties`."""
    properties: Any = arguments
    if isinstance(arguments, Mapping):
        properties = {key: {"type": "string", "description": text} for key, text in arguments.items()}
    schema = {"type": "object"} | ({"properties": properties} if arguments else {})
    return Tool(
        tool_id=tool_id,
        server_id=tool_id.split(".")[0],
        name=name,
        definition={"name": name, "description": description, "inputSchema": schema},
        digest="",
        state=ToolState.APPROVED,
        metadata=ToolMetadata(),
    )
