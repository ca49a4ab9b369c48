"""The Anthropic Messages API: tool definitions out, a `tool_use` block back in.

Source:
    Messages API, `tools`: {"name", "description", "input_schema"}; names `[a-zA-Z0-9_-]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from toolcrib.providers.calls import field_of, proposed_call
from toolcrib.providers.names import NameTarget, public_name
from toolcrib.types import Tool, ToolCall


def tool_definitions(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """`tools` for a request: whole schemas, copies that the application may change."""
    return [
        {
            "name": public_name(tool.tool_id, target=NameTarget.ANTHROPIC),
            "description": tool.description,
            "input_schema": deepcopy(dict(tool.input_schema)),
        }
        for tool in tools
    ]


def tool_call_from_anthropic(block: Any, tools: Sequence[Tool]) -> ToolCall:
    """The call that a `tool_use` block proposes.

    Args:
        block: the block, as a dict or as the SDK's object.
        tools: what was offered; a name that isn't among them stays as it is, and the gate knows no such tool.
    """
    name, arguments = field_of(block, "name"), field_of(block, "input")
    return proposed_call(name, arguments, tools=tools, target=NameTarget.ANTHROPIC)
