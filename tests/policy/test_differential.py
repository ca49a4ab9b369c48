"""Three ways to one answer: by residuals over columns, by decision class, and plain Cedar, tool by tool.

The reference speaks to Cedar on its own: text policies, entities written out here, one request at a time.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from functools import lru_cache
from typing import Any

import cedarpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcrib.policy.engine import PolicyEngine
from toolcrib.types import Caller, CallerKind, Channel, Effect, Risk, RiskSource, Tool, ToolState

from .making import PERMIT_ALL, a_caller, a_tool, call_decision, discover_decision, eligible

OVERFLOW = "9223372036854775807 + 1 > 0"
CALL = 'action == Action::"call"'
DISCOVER = 'action == Action::"discover"'
ASK = '@obligation("needs_approval") '

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
forbid (principal, action, resource) when { context has target && context.target.tenant != principal.tenant };
forbid (principal, action == Action::"call", resource) when { context.approved && resource.owner == "o1" };
@obligation("needs_approval") forbid (principal, action == Action::"call", resource) unless { context.approved };
@obligation("needs_approval") forbid (principal, action in [Action::"call"], resource in Namespace::"n0");
@obligation("needs_approval") forbid (principal, action == Action::"call", resource) when { resource.risk != "read" } unless { context.approved };
""".strip().split("\n")  # noqa: E501
PERMITS = """
permit (principal, action, resource);
permit (principal in Role::"r0", action, resource);
permit (principal, action == Action::"discover", resource in Namespace::"n1");
permit (principal, action, resource) when { resource.enabled && resource.owner == "o0" };
permit (principal, action == Action::"call", resource) when { context.approved };
permit (principal == Agent::"u0", action, resource == Tool::"s0.t0");
permit (principal, action == Action::"approve", resource);
""".strip().split("\n")

# Each makes evaluation hard in a way of its own; one policy a line again.
NASTY = [
    pytest.param(PERMIT_ALL + f"forbid (principal, action, resource) when {{ {condition} }};", id=condition)
    for condition in (
        OVERFLOW,
        f"resource.enabled && {OVERFLOW}",
        f"resource.enabled || {OVERFLOW}",
        f"!(resource.enabled && {OVERFLOW})",
        f"principal is Agent && resource.enabled && {OVERFLOW}",
        f"if resource.enabled then resource.risk == \"read\" else {OVERFLOW}",
        f"if {OVERFLOW} then resource.enabled else resource.enabled",
        f"context.approved && {OVERFLOW}",
        f'resource.tenants.contains("a") && (if resource.enabled then {OVERFLOW} else false)',
        "(if resource.enabled then 9223372036854775807 else 1) + 1 > 5",
        "(if resource.enabled then 9223372036854775807 else 1) * 2 > 5",
        "-(if resource.enabled then -9223372036854775807 else 1) - 1 - 1 < 5",
        "resource.owner == resource.namespace",
        "resource.tenants == resource.stages",
        "resource.tenants.containsAny(resource.stages)",
        "[resource.owner, resource.namespace].containsAll(resource.tenants)",
        "[principal.tenant, resource.owner].contains(resource.namespace)",
        'resource in [Namespace::"n0", Namespace::"o0"] || resource in [Server::"s1"]',
        'resource is Tool in Server::"s0"',
        'resource has owner && resource.owner like "*1"',
        'resource.name like "*\\*" || resource.name like "t*0*"',
        "principal.scopes.isEmpty() && resource.required_scopes.isEmpty()",
        'principal in [Role::"r0", Role::"r9"] && resource.enabled',
        'principal == User::"u0" && resource == Tool::"s1.t0"',
        'action == Action::"call" && resource.enabled',
        '[Action::"discover"].contains(action) && resource.enabled',
        'action in [Action::"call", Action::"approve"] && context.approved',
        "resource.enabled == (resource.owner == principal.tenant)",
    )
] + [
    pytest.param(text, id=name)
    for name, text in {
        "nothing": "",
        "approve-alone": 'permit (principal, action == Action::"approve", resource);',
        "forbid-alone": "forbid (principal, action, resource) when { resource.enabled };",
        "obligation-alone": f"{ASK}forbid (principal, {CALL}, resource) unless {{ context.approved }};",
        "obligation-that-fails": PERMIT_ALL
        + f"{ASK}forbid (principal, {CALL}, resource) when {{ resource.enabled && {OVERFLOW} }};",
        "obligation-beside-a-failing-permit": PERMIT_ALL
        + f"{ASK}forbid (principal, {CALL}, resource) unless {{ context.approved }};\n"
        + f"permit (principal, {CALL}, resource) when {{ resource.enabled && {OVERFLOW} }};",
        "fails-once-approved": PERMIT_ALL
        + f"{ASK}forbid (principal, {CALL}, resource) unless {{ context.approved }};\n"
        + f"forbid (principal, {CALL}, resource) when {{ context.approved && resource.enabled && {OVERFLOW} }};",
        "fails-unless-approved": PERMIT_ALL
        + f"{ASK}forbid (principal, {CALL}, resource) unless {{ context.approved }};\n"
        + f"forbid (principal, {CALL}, resource) when {{ !context.approved && resource.enabled && {OVERFLOW} }};",
        "obligation-that-never-yields": PERMIT_ALL + f"{ASK}forbid (principal, {CALL}, resource);",
        "permit-once-approved": f"permit (principal, {DISCOVER}, resource);\n"
        + f"permit (principal, {CALL}, resource) when {{ context.approved }};\n"
        + f"{ASK}forbid (principal, {CALL}, resource) unless {{ context.approved }};",
        "forbidden-once-approved": PERMIT_ALL
        + f"{ASK}forbid (principal, {CALL}, resource) unless {{ context.approved || resource.enabled }};\n"
        + f"forbid (principal, {CALL}, resource) when {{ context.approved && resource.owner == \"o0\" }};",
        "discover-fails": f"permit (principal, action, resource);\nforbid (principal, {DISCOVER}, resource) when "
        + f"{{ resource.enabled && {OVERFLOW} }};",
        "long": PERMIT_ALL
        + "\n".join(
            f'forbid (principal, action, resource in Namespace::"n{n % 3}") when {{ resource.owner == "o{n}" }};'
            for n in range(60)
        ),
        "deep": PERMIT_ALL + "forbid (principal, action, resource) when { " + "(resource.enabled && " * 60
        + "context.approved" + ")" * 60 + " };",
    }.items()
]  # fmt: skip

words = st.sampled_from
policies = st.builds(
    lambda permits, forbids: "\n".join([*permits, *forbids]),
    st.lists(words(PERMITS), min_size=1, max_size=3, unique=True),
    st.lists(words(FORBIDS), max_size=4, unique=True),
)
users = st.builds(
    Caller,
    subject=words(["u0", "u1"]),
    kind=words(list(CallerKind)),
    tenant=words(["", "a", "b"]),
    roles=st.frozensets(words(["r0", "r1"])),
    scopes=st.frozensets(words(["x", "y"])),
)
callers = st.one_of(users, st.builds(lambda agent, user: replace(agent, acting_for=user), users, users))


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

FIXED = [
    a_tool(
        f"s{number % 2}.t{number}",
        namespace=namespace,
        owner=owner,
        enabled=enabled,
        tenants=("a",) if number % 3 else (),
        stages=("a", "b")[: number % 3],
        required_scopes=("x", "y")[: number % 3],
        risk=list(Risk)[number % 3],
    )
    for number, (namespace, owner, enabled) in enumerate(
        itertools.product(("", "n0", "o0"), ("o0", "n0", "a"), (True, False))
    )
]
CALLERS = [
    a_caller("u0", tenant="a", roles=["r0"]),
    a_caller("u1", scopes=["x", "y"]),
    a_caller("u0", kind=CallerKind.AGENT, tenant="b", acting_for=a_caller("u1", tenant="a", roles=["r0"])),
]


@settings(max_examples=150, deadline=None)
@given(text=policies, caller=callers, tools=catalogs)
def test_all_ways_of_deciding_agree(text: str, caller: Caller, tools: list[Tool]) -> None:
    _agree(text, caller, tools)


@pytest.mark.parametrize("text", NASTY)
def test_all_ways_of_deciding_agree_where_evaluation_is_hard(text: str) -> None:
    for caller in CALLERS:
        _agree(text, caller, FIXED)


def test_what_residuals_do_not_cover_is_decided_by_class() -> None:
    for condition in (
        'ip("10.0.0.1").isInRange(ip("10.0.0.0/8")) && {of: resource.owner}.of == "o0"',
        '(if resource.enabled then principal.tenant else "") == {of: resource.owner}.of',
        'decimal("1.0").lessThan(if resource.enabled then decimal("2.0") else decimal("0.5"))',
    ):
        text = PERMIT_ALL + f"forbid (principal, action, resource) when {{ {condition} }};"
        for caller in CALLERS:
            _agree(text, caller, FIXED, method="class")


def _agree(text: str, caller: Caller, tools: list[Tool], *, method: str = "residual") -> None:
    engine = _engine(text)
    found = eligible(engine, caller, tools)
    by_class = eligible(engine, caller, tools, by_class=True)
    assert (found.method, by_class.method) == (method, "class")
    assert bool(found.errors) == bool(by_class.errors)
    any_error = False
    for tool_idx, tool in enumerate(tools):
        discover, failed_discover = _expected(text, caller, tool, "discover")
        call, failed_call = _expected(text, caller, tool, "call")
        any_error |= failed_discover or failed_call
        usable = discover is Effect.PERMIT and call is not Effect.FORBID
        disclosed = discover is Effect.PERMIT and call is Effect.FORBID and not failed_call
        expected = (usable, usable and call is Effect.NEEDS_APPROVAL, disclosed)
        for each in (found, by_class):
            said = (each.permitted[tool_idx], each.needs_approval[tool_idx], each.disclosed[tool_idx])
            assert said == expected, (tool.tool_id, each.method, each.errors)
        assert discover_decision(engine, caller, tool).effect is discover
        afresh = call_decision(engine, caller, tool)
        assert afresh.effect is (call if discover is Effect.PERMIT else Effect.FORBID)
    assert any_error == bool(found.errors)


@lru_cache(maxsize=8)
def _engine(text: str) -> PolicyEngine:
    return PolicyEngine.from_text(text)


@lru_cache(maxsize=8)
def _parsed(text: str) -> cedarpy.PolicySet:
    return cedarpy.PolicySet.from_str(text)


def _expected(text: str, caller: Caller, tool: Tool, action: str) -> tuple[Effect, bool]:
    """What plain Cedar says to all who are asked together, approved or not, and whether anything went wrong."""
    sides = [caller, *([caller.acting_for] if caller.acting_for else [])]
    now = [_plain(text, side, tool, action, approved=False) for side in sides]
    if any(result.diagnostics.errors for result in now):
        return Effect.FORBID, True
    if all(result.allowed for result in now):
        return Effect.PERMIT, False
    rules = text.split("\n")
    for result in now:
        reasons = [rules[int(reason.removeprefix("policy"))] for reason in result.diagnostics.reasons]
        if not result.allowed and not (reasons and all(rule.startswith("@obligation") for rule in reasons)):
            return Effect.FORBID, False
    then = [_plain(text, side, tool, action, approved=True) for side in sides]
    if any(result.diagnostics.errors for result in then):
        return Effect.FORBID, True
    return (Effect.NEEDS_APPROVAL if all(result.allowed for result in then) else Effect.FORBID), False


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
                "stages": list(said.stages),
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
    return cedarpy.is_authorized(request, _parsed(text), cedarpy.Entities.from_json_str(json.dumps(entities)))
