"""One `tools/call` result object as received -> `ToolResult`.

Below `mcp.py` and `functions.py`. An error is never taken for an empty answer: only a result that has a list of content
blocks (or structured content) and no error mark is `ok`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcrib.types import Code, JsonObject, ToolResult

_MAX_MESSAGE_CHARS = 1_000


def result_from_wire(raw: JsonObject, *, server_id: str) -> ToolResult:
    """The result with its code. `raw` stays None where there is nothing that may be relayed."""
    kind = raw.get("resultType", "complete")
    if kind == "input_required":
        # Relaying it would hand the server's requestState to a caller who cannot answer it through this crib.
        return _unusable(server_id, "asks for more input before it answers, which this crib cannot pass on yet")
    if kind not in ("complete", None):
        return _unusable(server_id, f"answered with a result of type {str(kind)[:60]!r}, which is not understood here")
    content = raw.get("content")
    structured = raw.get("structuredContent")
    if content is None and structured is not None:
        content = []
    if not isinstance(content, list) or not all(isinstance(block, Mapping) for block in content):
        return _unusable(server_id, "answered outside the protocol: the result has no list of content blocks")
    failed = raw.get("isError") not in (None, False)
    return ToolResult(
        code=Code.TOOL_ERROR if failed else Code.OK,
        message=_first_text(content) or "the tool failed and did not say why" if failed else "",
        content=tuple(content),
        structured=structured,
        raw=raw,
        reached_server=True,
    )


def short(text: str) -> str:
    """The text, cut where a message ends to be one."""
    return text if len(text) <= _MAX_MESSAGE_CHARS else text[:_MAX_MESSAGE_CHARS] + " …"


def _unusable(server_id: str, what: str) -> ToolResult:
    return ToolResult(code=Code.TOOL_ERROR, message=f"server {server_id!r} {what}", reached_server=True)


def _first_text(content: list[Any]) -> str:
    texts = (block.get("text") for block in content if block.get("type") == "text")
    return short(next((text for text in texts if isinstance(text, str) and text), ""))
