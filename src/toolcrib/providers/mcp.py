"""The Model Context Protocol: definitions as the server sent them, under their public names."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from toolcrib.providers.names import NameTarget, public_name
from toolcrib.types import Tool


def tool_definitions(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """Entries of `tools/list`: every field as received, unknown ones included, but for the name."""
    return [
        {**deepcopy(dict(tool.definition)), "name": public_name(tool.tool_id, target=NameTarget.MCP)} for tool in tools
    ]
