"""All tools, as a client without a search gives them: the other end of the scale, right by construction and dear."""

from __future__ import annotations

from collections.abc import Sequence

from toolcrib.types import Tool


class _Opened:
    def __init__(self, tools: Sequence[Tool]) -> None:
        self._ids = [tool.tool_id for tool in tools]

    def search(self, task: str, k: int) -> Sequence[str]:
        del task
        return self._ids[:k]


class AllTools:
    """Every definition, in the catalog's order: that order is no ranking, only recall by default means something."""

    name = "all"
    about = "all tools, in the catalog's order, with no search"
    default_k = 0
    overhead_tokens = 0

    def open(self, tools: Sequence[Tool]) -> _Opened:
        """The same answer for every task."""
        return _Opened(tools)
