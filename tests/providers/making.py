"""Small values for the providers' tests."""

from __future__ import annotations

from typing import Any

from toolcrib.types import Tool, ToolMetadata, ToolState


def tool(tool_id: str, definition: Any = None) -> Tool:
    server_id, _, name = tool_id.partition(".")
    return Tool(
        tool_id=tool_id,
        server_id=server_id,
        name=name,
        definition={"name": name, "inputSchema": {"type": "object"}} if definition is None else definition,
        digest=f"sha256:{tool_id}",
        state=ToolState.APPROVED,
        metadata=ToolMetadata(),
    )
