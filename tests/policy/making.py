"""Callers, tools and engines for these tests, with as little said as can be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolcrib.policy.engine import PolicyEngine
from toolcrib.types import (
    Caller,
    Channel,
    Decision,
    Eligibility,
    Resource,
    Risk,
    RiskSource,
    Tool,
    ToolMetadata,
    ToolState,
)

PERMIT_ALL = '@id("all") permit (principal, action, resource);\n'


def a_tool(tool_id: str = "files.read_file", *, state: ToolState = ToolState.APPROVED, **said: Any) -> Tool:
    """A tool whose operator set it to risk "read", besides what is said."""
    server_id, name = tool_id.split(".", 1)
    metadata = ToolMetadata(**{"risk": Risk.READ, "risk_source": RiskSource.OPERATOR, **said})
    return Tool(
        tool_id=tool_id,
        server_id=server_id,
        name=name,
        definition={"name": name, "inputSchema": {"type": "object"}},
        digest="sha256:0",
        state=state,
        metadata=metadata,
    )


def a_caller(subject: str = "ann", **said: Any) -> Caller:
    sets = {key: frozenset(value) if key in ("roles", "scopes", "features") else value for key, value in said.items()}
    return Caller(subject=subject, **sets)


def eligible(
    engine: PolicyEngine,
    caller: Caller,
    tools: Sequence[Tool],
    *,
    channel: Channel = Channel.LIBRARY,
    unknown_risk: str = "needs_approval",
    by_class: bool = False,
) -> Eligibility:
    ask = engine.eligibility_by_class if by_class else engine.eligibility
    return ask(
        caller,
        tools=tools,
        classes=engine.classes(tools),
        snapshot_version="snapshot-1",
        channel=channel,
        unknown_risk=unknown_risk,
    )


def discover_decision(engine: PolicyEngine, caller: Caller, tool: Tool) -> Decision:
    return engine.decide_discover(caller, tool, channel=Channel.LIBRARY, unknown_risk="needs_approval")


def call_decision(
    engine: PolicyEngine,
    caller: Caller,
    tool: Tool,
    *,
    channel: Channel = Channel.LIBRARY,
    unknown_risk: str = "needs_approval",
    approved: bool = False,
    target: Resource | None = None,
) -> Decision:
    return engine.decide_call(
        caller, tool, channel=channel, unknown_risk=unknown_risk, approved=approved, target=target
    )
