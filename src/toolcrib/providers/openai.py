"""The OpenAI Responses API: function tools out, a `function_call` item back in.

Source:
    Responses API, `tools`: {"type": "function", "name", "description", "parameters", "strict"}. `strict` is false:
    strict mode accepts a subset of JSON Schema only, and a schema is offered whole or not at all (I5).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from copy import deepcopy
from typing import Any

from toolcrib.providers.calls import field_of, proposed_call
from toolcrib.providers.names import NameTarget, public_name
from toolcrib.types import Tool, ToolCall


def tool_definitions(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """`tools` for a request: whole schemas, copies that the application may change."""
    return [
        {
            "type": "function",
            "name": public_name(tool.tool_id, target=NameTarget.OPENAI),
            "description": tool.description,
            "parameters": deepcopy(dict(tool.input_schema)),
            "strict": False,
        }
        for tool in tools
    ]


def tool_call_from_openai(item: Any, tools: Sequence[Tool]) -> ToolCall:
    """The call that a `function_call` item proposes. Arguments that aren't JSON stay text, which the gate refuses.

    Args:
        item: the item, as a dict or as the SDK's object.
        tools: what was offered; a name that isn't among them stays as it is, and the gate knows no such tool.
    """
    arguments = field_of(item, "arguments")
    with suppress(ValueError, RecursionError):  # refusing such text is the gate's decision, with a fault to act on
        arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
    return proposed_call(field_of(item, "name"), arguments, tools=tools, target=NameTarget.OPENAI)
