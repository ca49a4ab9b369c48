"""The Gemini API: function declarations.

Source:
    google-genai, `FunctionDeclaration`: `parameters_json_schema` takes JSON Schema as it is; names begin with a letter
    or an underscore; at most 512 declarations a request.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from toolcrib.providers.names import NameTarget, public_name
from toolcrib.types import Tool


def tool_definitions(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """`function_declarations` for a tool: whole schemas, copies that the application may change."""
    return [
        {
            "name": public_name(tool.tool_id, target=NameTarget.GEMINI),
            "description": tool.description,
            "parameters_json_schema": deepcopy(dict(tool.input_schema)),
        }
        for tool in tools
    ]
