"""Small values for routing's tests."""

from __future__ import annotations

from typing import Any

from toolcrib.types import Hit, Ranking, Risk, Tool, ToolMetadata, ToolState


def tool(tool_id: str, *, state: ToolState = ToolState.APPROVED, risk: Risk = Risk.READ, **metadata: Any) -> Tool:
    server_id, _, name = tool_id.partition(".")
    return Tool(
        tool_id=tool_id,
        server_id=server_id,
        name=name,
        definition={"name": name, "inputSchema": {"type": "object"}},
        digest=f"sha256:{tool_id}",
        state=state,
        metadata=ToolMetadata(risk=risk, **metadata),
    )


def old(tool_id: str, replaced_by: str) -> Tool:
    return tool(tool_id, state=ToolState.DEPRECATED, replaced_by=replaced_by)


def ranking(tools: list[Tool], *, scores: list[float] | None = None) -> Ranking:
    """All tools, in this order."""
    given = scores or [10.0 - number for number in range(len(tools))]
    hits = tuple(Hit(tool_idx=n, tool_id=one.tool_id, score=given[n]) for n, one in enumerate(tools))
    return Ranking(hits=hits, capabilities=("do it",), confidence=0.9, degraded=True)
