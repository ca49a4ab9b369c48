"""Which tools are judged together."""

from __future__ import annotations

import pytest

from toolcrib.policy.engine import PolicyEngine
from toolcrib.types import Risk, RiskSource, ToolState

from .making import PERMIT_ALL, a_tool


def test_tools_that_policy_cannot_tell_apart_share_a_class() -> None:
    tools = [
        a_tool("a.x", required_scopes=("s", "t")),
        a_tool("a.y", required_scopes=("t", "s", "s"), keywords=("k",), cost=2.0, latency_ms=9.0, preload=True),
        a_tool("a.z"),
    ]
    classes = PolicyEngine.from_text(PERMIT_ALL).classes(tools)
    assert classes.class_of.tolist() == [0, 0, 1]
    assert classes.representatives == (tools[0], tools[2])


@pytest.mark.parametrize(
    "other",
    [
        a_tool("b.x"),
        a_tool("a.y", namespace="n"),
        a_tool("a.y", owner="o"),
        a_tool("a.y", required_scopes=("s",)),
        a_tool("a.y", stages=("s",)),
        a_tool("a.y", environments=("e",)),
        a_tool("a.y", tenants=("t",)),
        a_tool("a.y", regions=("r",)),
        a_tool("a.y", risk=Risk.WRITE),
        a_tool("a.y", risk_source=RiskSource.ANNOTATIONS),
        a_tool("a.y", data_class="d"),
        a_tool("a.y", enabled=False),
        a_tool("a.y", state=ToolState.DEPRECATED),
    ],
    ids=lambda tool: "other",
)
def test_tools_that_policy_can_tell_apart_do_not(other: object) -> None:
    classes = PolicyEngine.from_text(PERMIT_ALL).classes([a_tool("a.x"), other])  # type: ignore[list-item]
    assert classes.class_of.tolist() == [0, 1]


def test_a_named_tool_is_alone_in_its_class() -> None:
    engine = PolicyEngine.from_text(PERMIT_ALL + 'forbid (principal, action, resource == Tool::"a.y");')
    classes = engine.classes([a_tool("a.x"), a_tool("a.y"), a_tool("a.z")])
    assert classes.class_of.tolist() == [0, 1, 0]


def test_names_split_classes_only_where_a_policy_reads_them() -> None:
    tools = [a_tool("a.get"), a_tool("a.put")]
    by_name = PERMIT_ALL + 'forbid (principal, action, resource) when { resource.name like "p*" };'
    assert len(PolicyEngine.from_text(PERMIT_ALL).classes(tools).representatives) == 1
    assert len(PolicyEngine.from_text(by_name).classes(tools).representatives) == 2


def test_the_class_of_a_tool_cannot_be_changed_afterwards() -> None:
    classes = PolicyEngine.from_text().classes([a_tool()])
    with pytest.raises(ValueError, match="read-only"):
        classes.class_of[0] = 7


def test_a_tool_is_found_by_its_id() -> None:
    classes = PolicyEngine.from_text().classes([a_tool("a.x"), a_tool("a.y")])
    assert [classes.number_of(tool_id) for tool_id in ("a.x", "a.y", "a.z")] == [0, 1, None]


def test_no_tools_make_no_classes() -> None:
    classes = PolicyEngine.from_text().classes([])
    assert classes.class_of.shape == (0,)
    assert classes.representatives == ()
