"""Small values for the selection's tests."""

from __future__ import annotations

from typing import Any

from toolcrib.types import Hit, Ranking, Tool, ToolMetadata, ToolState


def tool(tool_id: str, *, tokens: int = 10, namespace: str = "") -> Tool:
    server_id, _, name = tool_id.partition(".")
    return Tool(
        tool_id=tool_id,
        server_id=server_id,
        name=name,
        definition={"name": name, "tokens": tokens, "inputSchema": {"type": "object"}},
        digest=f"sha256:{tool_id}",
        state=ToolState.APPROVED,
        metadata=ToolMetadata(namespace=namespace or server_id),
    )


def cost(definition: Any) -> int:
    """The tokens that `tool` wrote into the definition."""
    return int(definition["tokens"])


def ranking(tools: list[Tool], *, capabilities: tuple[str, ...] = ("do it",), **changed: Any) -> Ranking:
    """All tools, in this order, with falling scores; `of` says which capability each answers."""
    of = changed.pop("of", [0] * len(tools))
    sure = changed.pop("sure", [0.9] * len(tools))
    scores = changed.pop("scores", [10.0 - number for number in range(len(tools))])
    hits = tuple(
        Hit(tool_idx=number, tool_id=one.tool_id, score=scores[number], capability=of[number], confidence=sure[number])
        for number, one in enumerate(tools)
    )
    return Ranking(**{"hits": hits, "capabilities": capabilities, "confidence": 0.9, **changed})
