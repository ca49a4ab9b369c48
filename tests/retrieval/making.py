"""Tools for the tests of this room."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from toolcrib.retrieval.dense import Embedder, bundled_embedder
from toolcrib.retrieval.index import Index
from toolcrib.types import BoolArray, Ranking, Tool, ToolMetadata, ToolState


def tool(tool_id: str, description: Any = "", *, schema: Any = None, **metadata: Any) -> Tool:
    server_id, _, name = tool_id.partition(".")
    definition = {"name": name, "description": description, "inputSchema": schema if schema is not None else {}}
    return Tool(
        tool_id=tool_id,
        server_id=server_id,
        name=name,
        definition=definition,
        digest=f"sha256:{hashlib.sha256(repr((tool_id, description)).encode()).hexdigest()}",
        state=ToolState.APPROVED,
        metadata=ToolMetadata(**metadata),
    )


def build(tools: Sequence[Tool], *, embedder: Embedder | None = None) -> Index:
    return Index.build(sorted(tools, key=lambda t: t.tool_id), embedder=embedder or bundled_embedder())


def everyone(index: Index) -> BoolArray:
    return np.ones(len(index.tools), dtype=np.bool_)


def search(tools: Sequence[Tool], task: str, *queries: str, top_k: int = 50) -> Ranking:
    index = build(tools)
    return index.view(everyone(index)).search(task, queries, top_k=top_k)


def ids(ranking: Ranking) -> list[str]:
    return [hit.tool_id for hit in ranking.hits]
