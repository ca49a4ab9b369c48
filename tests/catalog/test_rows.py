"""What the version of a caller's view is made of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from toolcrib.catalog.rows import tool_rows
from toolcrib.types import Tool, ToolMetadata, ToolState


def a_tool(tool_id: str, **said: object) -> Tool:
    server_id, name = tool_id.split(".")
    return Tool(
        tool_id=tool_id, server_id=server_id, name=name, definition={}, digest="sha256:1", state=ToolState.APPROVED,
        metadata=ToolMetadata(**said),  # type: ignore[arg-type]
    )  # fmt: skip


TOOLS = [a_tool("a.x", namespace="n"), a_tool("a.y", namespace="m"), a_tool("b.x")]
REACH = np.array([True, True, False])


def test_a_tool_out_of_reach_changes_no_version_and_no_namespace() -> None:
    rows = tool_rows(TOOLS)
    for others in ([*TOOLS[:2], a_tool("c.z", namespace="o")], [*TOOLS[:2], replace(TOOLS[2], digest="sha256:2")]):
        assert tool_rows(others).version(REACH) == rows.version(REACH)
        assert tool_rows(others).namespaces_of(REACH) == ("m", "n")
    assert tool_rows(TOOLS[:2]).version(REACH[:2]) == rows.version(REACH)
    shifted = tool_rows([a_tool("a.a"), *TOOLS[:2]])
    assert shifted.version(np.array([False, True, True])) == rows.version(REACH)


@pytest.mark.parametrize(
    "changed",
    [
        replace(TOOLS[0], tool_id="a.z"),
        replace(TOOLS[0], digest="sha256:2"),
        replace(TOOLS[0], state=ToolState.DEPRECATED),
        a_tool("a.x", namespace="n", keywords=("k",)),
        a_tool("a.x", namespace="n", examples=("k",)),
        a_tool("a.x", namespace="n", aliases=("a.w",)),
        a_tool("a.x", namespace="n", version="2"),
        a_tool("a.x", namespace="n", status="deprecated"),
        a_tool("a.x", namespace="n", replaced_by="b.x"),
    ],
    ids=["id", "digest", "state", "keywords", "examples", "aliases", "version", "status", "replaced_by"],
)
def test_what_a_caller_can_see_of_a_tool_in_reach_changes_the_version(changed: Tool) -> None:
    assert tool_rows([changed, *TOOLS[1:]]).version(REACH) != tool_rows(TOOLS).version(REACH)


def test_no_tool_is_no_fault() -> None:
    rows = tool_rows([])
    assert rows.namespaces_of(np.zeros(0, dtype=np.bool_)) == ()
    assert rows.version(np.zeros(0, dtype=np.bool_)) == tool_rows(TOOLS).version(np.zeros(3, dtype=np.bool_))
