"""Names that tools had before, and tools that are gone: what becomes of those who still ask for them.

    old id ──▶ the tool that has it among its `aliases`      id of a retired tool ──▶ that tool, as it was

Above: `pipeline.py`, which asks policy whether the caller may know of what is found here.

Invariants
1. Nothing here decides what a caller may know (I1): both tables hold all tools, and who reads them looks at the
   caller's reach first.
2. A tool as it was serves to ask policy who might have known it, and nothing else: it is in no snapshot's `tools`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from toolcrib.types import CatalogSnapshot, Tool, ToolState


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What a snapshot remembers of names.

    Args:
        renamed: old tool id -> the numbers of the tools in service that had it.
        retired: tool id, former ids included -> the retired tools as they were in service, the one whose own id it is
            first. Several, since one that a caller may not know of must not stand in another's place (I1).
    """

    renamed: Mapping[str, tuple[int, ...]]
    retired: Mapping[str, tuple[Tool, ...]]


def past_of(snapshot: CatalogSnapshot) -> Past:
    """The names of this snapshot's past."""
    own: dict[str, list[Tool]] = {}
    former: dict[str, list[Tool]] = {}
    for gone in snapshot.withheld:
        if gone.code != "retired" or gone.metadata is None:
            continue
        was = Tool(
            tool_id=gone.tool_id,
            server_id=gone.server_id,
            name=gone.name,
            definition=gone.definition,
            digest=gone.digest,
            state=ToolState.APPROVED,
            metadata=replace(gone.metadata, status="active"),
        )
        own.setdefault(gone.tool_id, []).append(was)
        for alias in gone.metadata.aliases:
            former.setdefault(alias, []).append(was)
    retired = {name: (*own.get(name, ()), *former.get(name, ())) for name in {**own, **former}}
    return Past(renamed=_renamed(snapshot.tools), retired=retired)


def _renamed(tools: Sequence[Tool]) -> dict[str, tuple[int, ...]]:
    had: dict[str, list[int]] = {}
    for number, tool in enumerate(tools):
        for alias in tool.metadata.aliases:
            had.setdefault(alias, []).append(number)
    return {alias: tuple(numbers) for alias, numbers in had.items()}


def renamed_in_words(asked: str, tool_id: str) -> str:
    """What is said of a tool that was asked for by a name it had before."""
    return f"{asked} is called {tool_id} now."


def retired_in_words(replacement: str) -> str:
    """What is said of a retired tool. `replacement`: a tool that the caller can reach, or ""."""
    return f"This tool is retired; use {replacement}." if replacement else "This tool is retired."


def deprecated_in_words(replacement: str) -> str:
    """What is said of a deprecated tool. `replacement`: a tool that the caller can reach, or ""."""
    return f"deprecated; use {replacement}" if replacement else "deprecated"


def is_deprecated(tool: Tool) -> bool:
    """Whether its operator wants it used no more, and still serves it."""
    return tool.state is ToolState.DEPRECATED or tool.metadata.status == "deprecated"
