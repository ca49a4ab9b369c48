"""Decisions by class against plain Cedar, tool by tool, on generated catalogs, callers and policies.

The reference speaks to Cedar on its own: text policies, entities written out here, one request at a time.
"""

from __future__ import annotations

from typing import Any

import cedarpy
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcrib.policy.engine import PolicyEngine
from toolcrib.types import Caller, CallerKind, Channel, Effect, Risk, RiskSource, Tool, ToolState

from .making import a_tool, call_decision, eligible

# One policy a line; the reference finds a policy by its line.
FORBIDS = """
forbid (principal, action, resource == Tool::"s0.t1");
forbid (principal, action == Action::"call", resource in Server::"s1");
forbid (principal, action == Action::"discover", resource in Namespace::"n0");
forbid (principal, action, resource) when { !resource.tenants.contains(principal.tenant) };
forbid (principal, action, resource) unless { principal.scopes.containsAll(resource.required_scopes) };
forbid (principal == User::"u1", action, resource in Namespace::"n1");
forbid (principal is Agent, action, resource) when { resource.risk == "write" };
forbid (principal, action, resource) when { resource.name like "t*2" };
forbid (principal, action, resource) when { [Tool::"s1.t0", Tool::"s0.t2"].contains(resource) };
forbid (principal, action, resource in Namespace::"n1") when { 9223372036854775807 + 1 > 0 };
forbid (principal, action == Action::"call", resource) when { !resource.enabled && -9223372036854775807 - 2 < 0 };
@obligation("needs_approval") forbid (principal, action == Action::"call", resource) unless { context.approved };
@obligation("needs_approval") forbid (principal, action in [Action::"call"], resource in Namespace::"n0");
""".strip().split("\n")
PERMITS = """
permit (principal, action, resource);
permit (principal in Role::"r0", action, resource);
permit (principal, action == Action::"discover", resource in Namespace::"n1");
permit (principal, action, resource) when { resource.enabled && resource.owner == "o0" };
permit (principal, action == Action::"call", resource) when { context.approved };
permit (principal == Agent::"u0", action, resource == Tool::"s0.t0");
""".strip().split("\n")

words = st.sampled_from
policies = st.builds(
    lambda permits, forbids: "\n".join([*permits, *forbids]),
    st.lists(words(PERMITS), min_size=1, max_size=3, unique=True),
    st.lists(words(FORBIDS), max_size=4, unique=True),
)
callers = st.builds(
    Caller,
    subject=words(["u0", "u1"]),
    kind=words(list(CallerKind)),
    tenant=words(["", "a", "b"]),
    roles=st.frozensets(words(["r0", "r1"])),
    scopes=st.frozensets(words(["x", "y"])),
)


def _a_tool(tool_id: str, said: dict[str, Any]) -> Tool:
    return a_tool(tool_id, **said)


metadata = st.fixed_dictionaries(
    {
        "state": words([ToolState.APPROVED, ToolState.DEPRECATED]),
        "namespace": words(["", "n0", "n1"]),
        "owner": words(["o0", "o1"]),
        "tenants": words([(), ("a",), ("b", "a")]),
        "required_scopes": words([(), ("x",), ("y", "x"), ("x", "y")]),
        "risk": words(list(Risk)),
        "risk_source": words(list(RiskSource)),
        "enabled": st.booleans(),
    }
)
catalogs = st.dictionaries(
    words([f"s{server}.t{tool}" for server in range(2) for tool in range(6)]), metadata, min_size=1, max_size=12
).map(lambda described: [_a_tool(tool_id, said) for tool_id, said in sorted(described.items())])


@settings(max_examples=150, deadline=None)
@given(text=policies, caller=callers, tools=catalogs)
def test_decisions_by_class_equal_plain_cedar_tool_by_tool(text: str, caller: Caller, tools: list[Tool]) -> None:
    engine = PolicyEngine.from_text(text)
    found = eligible(engine, caller, tools)
    for tool_idx, tool in enumerate(tools):
        discover = _reference(text, caller, tool, "discover")
        call = _reference(text, caller, tool, "call")
        class_idx = found.class_of[tool_idx]
        assert found.discover[class_idx].effect is discover
        assert found.call[class_idx].effect is call
        assert found.permitted[tool_idx] == (discover is Effect.PERMIT and call is not Effect.FORBID)
        afresh = call_decision(engine, caller, tool)
        assert afresh.effect is (call if discover is Effect.PERMIT else Effect.FORBID)


def _reference(text: str, caller: Caller, tool: Tool, action: str) -> Effect:
    """What plain Cedar says, and what it would say of an approved call where only obligations stand in the way."""
    result = _plain(text, caller, tool, action, approved=False)
    if result.diagnostics.errors:
        return Effect.FORBID
    if result.allowed:
        return Effect.PERMIT
    rules = text.split("\n")
    reasons = [rules[int(reason.removeprefix("policy"))] for reason in result.diagnostics.reasons]
    if not reasons or not all(rule.startswith("@obligation") for rule in reasons):
        return Effect.FORBID
    again = _plain(text, caller, tool, action, approved=True)
    return Effect.NEEDS_APPROVAL if again.allowed and not again.diagnostics.errors else Effect.FORBID


def _plain(text: str, caller: Caller, tool: Tool, action: str, *, approved: bool) -> cedarpy.AuthzResult:
    said = tool.metadata
    principal = {"type": caller.kind.value.capitalize(), "id": caller.subject}
    resource = {"type": "Tool", "id": tool.tool_id}
    entities = [
        {
            "uid": principal,
            "attrs": {
                "kind": caller.kind.value,
                "on_behalf_of": "",
                "tenant": caller.tenant,
                "roles": list(caller.roles),
                "scopes": list(caller.scopes),
                "features": [],
                "clearance": "",
            },
            "parents": [{"type": "Role", "id": role} for role in caller.roles],
        },
        {
            "uid": resource,
            "attrs": {
                "server_id": tool.server_id,
                "namespace": said.namespace,
                "owner": said.owner,
                "required_scopes": list(said.required_scopes),
                "stages": [],
                "environments": [],
                "tenants": list(said.tenants),
                "regions": [],
                "risk": said.risk.value,
                "risk_source": said.risk_source.value,
                "data_class": "",
                "enabled": said.enabled,
                "state": tool.state.value,
                "name": tool.name,
            },
            "parents": [
                {"type": "Server", "id": tool.server_id},
                *([{"type": "Namespace", "id": said.namespace}] if said.namespace else []),
            ],
        },
    ]
    context = {
        "channel": Channel.LIBRARY.value,
        "stage": "",
        "environment": "",
        "region": "",
        "unknown_risk": "needs_approval",
        "approved": approved,
    }
    request = {"principal": principal, "action": f'Action::"{action}"', "resource": resource, "context": context}
    return cedarpy.is_authorized(request, text, entities)
