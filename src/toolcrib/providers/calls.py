"""A model's tool call as a `ToolCall`: the public name turned back, the digest it was offered under beside it.

Above: the provider files. Nothing is judged here: an unknown name or arguments that are no object go on to the gate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolcrib.providers.names import NameTarget, tool_id_from_name
from toolcrib.types import Tool, ToolCall


def field_of(wire: Any, name: str) -> Any:
    """A field of a wire value, which SDKs hand out as objects and plain JSON as mappings; None when absent."""
    return wire.get(name) if isinstance(wire, Mapping) else getattr(wire, name, None)


def proposed_call(name: Any, arguments: Any, *, tools: Sequence[Tool], target: NameTarget) -> ToolCall:
    """The call of one of `tools` by its public name; under an unknown name the call keeps that name as its id."""
    offered = {tool.tool_id: tool for tool in tools}
    tool_id = tool_id_from_name(name, offered.keys(), target=target) if isinstance(name, str) else None
    if tool_id is None:
        return ToolCall(tool_id=str(name), arguments=arguments)
    return ToolCall(tool_id=tool_id, arguments=arguments, offered_digest=offered[tool_id].digest)
