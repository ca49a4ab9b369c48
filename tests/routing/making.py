"""Small values for routing's tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from toolcrib.routing.twins import Similar
from toolcrib.types import BoolArray, Hit, Ranking, Risk, Tool, ToolMetadata, ToolState


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


def ranking(
    tools: Sequence[Tool],
    *,
    scores: Sequence[float] | None = None,
    capability: Sequence[int] | None = None,
    named: Sequence[str] = (),
) -> Ranking:
    """All tools, in this order. `named`: ids of tools that the task names."""
    given = scores or [10.0 - number for number in range(len(tools))]
    parts = capability or [0] * len(tools)
    hits = tuple(
        Hit(tool_idx=n, tool_id=one.tool_id, score=given[n], capability=parts[n], named=one.tool_id in named)
        for n, one in enumerate(tools)
    )
    return Ranking(hits=hits, capabilities=("do it",), confidence=0.9, degraded=True)


def alike(_a: int, _b: int) -> float:
    """All definitions mean the same."""
    return 1.0


def unlike(_a: int, _b: int) -> float:
    """No two definitions mean the same."""
    return 0.0


def by_pairs(similarity: Callable[[int, int], float | None] | None) -> Similar | None:
    """What routing asks an index, answered pair by pair; None where a pair has no answer."""
    if similarity is None:
        return None

    def similar(tool_idx: Sequence[int], at_least: float) -> BoolArray | None:
        table = [[similarity(a, b) for b in tool_idx] for a in tool_idx]
        if any(alike is None for row in table for alike in row):
            return None
        return np.array(table, dtype=np.float64).reshape(len(tool_idx), len(tool_idx)) >= at_least

    return similar
