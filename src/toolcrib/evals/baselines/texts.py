"""What a plain baseline reads of a tool: name, description, and names and descriptions of its top-level arguments.

Those four are what Anthropic documents for its tool search. A definition of another shape has no arguments here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from toolcrib.types import Tool

_WORD = re.compile(r"[^\W_]+")


def texts_of(tool: Tool) -> tuple[str, ...]:
    """Name, description, then name and description of each argument; empty ones left out."""
    found = [tool.name, tool.description]
    properties = tool.input_schema.get("properties")
    if isinstance(properties, Mapping):
        for name, schema in properties.items():
            found.append(str(name))
            if isinstance(schema, Mapping) and isinstance(schema.get("description"), str):
                found.append(schema["description"])
    return tuple(text for text in found if text)


def words_of(text: str) -> list[str]:
    """Runs of letters and digits, case folded; no stems, no list of words to leave out."""
    return _WORD.findall(text.casefold())
