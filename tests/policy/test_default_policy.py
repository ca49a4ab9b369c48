"""What the built-in policy lets through, rule by rule."""

from __future__ import annotations

import re
from typing import Any

import pytest

from toolcrib.policy.engine import PolicyEngine
from toolcrib.policy.shipped import default_policy_text
from toolcrib.types import Decision, Effect, Resource, Risk, RiskSource, ToolState

from .making import a_caller, a_tool, call_decision, discover_decision, eligible

DESTRUCTIVE = {"risk": Risk.DESTRUCTIVE, "risk_source": RiskSource.OPERATOR}
RAISED = {"risk": Risk.DESTRUCTIVE, "risk_source": RiskSource.ANNOTATIONS}
UNKNOWN = {"risk": Risk.DESTRUCTIVE, "risk_source": RiskSource.UNKNOWN}
IN_SERVICE = ("in-service",)


@pytest.mark.parametrize(
    ("caller", "tool", "policies"),
    [
        pytest.param({}, {}, IN_SERVICE, id="no-restriction"),
        pytest.param({}, {"enabled": False}, (), id="switched-off"),
        pytest.param({}, {"state": ToolState.DEPRECATED}, IN_SERVICE, id="deprecated-still-serves"),
        pytest.param({}, {"state": ToolState.QUARANTINED}, (), id="quarantined"),
        pytest.param({}, {"state": ToolState.RETIRED}, (), id="retired"),
        pytest.param({"tenant": "acme"}, {"tenants": ("acme", "zeta")}, IN_SERVICE, id="tenant-matches"),
        pytest.param({"tenant": "acme"}, {"tenants": ("zeta",)}, ("other-tenant",), id="other-tenant"),
        pytest.param({}, {"tenants": ("zeta",)}, ("other-tenant",), id="no-tenant-is-none-not-any"),
        pytest.param({"environment": "prod"}, {"environments": ("prod",)}, IN_SERVICE, id="environment-matches"),
        pytest.param({"environment": "test"}, {"environments": ("prod",)}, ("other-environment",), id="other-env"),
        pytest.param({"region": "eu"}, {"regions": ("eu",)}, IN_SERVICE, id="region-matches"),
        pytest.param({"stage": "triage"}, {"stages": ("triage",)}, IN_SERVICE, id="stage-matches"),
        pytest.param({"stage": "billing"}, {"stages": ("triage",)}, ("other-stage",), id="other-stage"),
        pytest.param({}, {"stages": ("triage",)}, ("other-stage",), id="no-stage"),
        pytest.param({"scopes": ["a", "b"]}, {"required_scopes": ("b", "a")}, IN_SERVICE, id="all-scopes-held"),
        pytest.param({"scopes": ["a"]}, {"required_scopes": ("a", "b")}, ("missing-scope",), id="one-scope-missing"),
        pytest.param(
            {"tenant": "acme"},
            {"tenants": ("zeta",), "required_scopes": ("a",)},
            ("other-tenant", "missing-scope"),
            id="every-reason-is-named",
        ),
    ],
)
def test_a_tool_is_discovered_and_called_under_the_same_bounds(
    caller: dict[str, Any], tool: dict[str, Any], policies: tuple[str, ...]
) -> None:
    engine = PolicyEngine.from_text()
    expected = Decision(effect=Effect.PERMIT if policies == IN_SERVICE else Effect.FORBID, policies=policies)

    found = eligible(engine, a_caller(**caller), [a_tool(**tool)])

    assert discover_decision(engine, a_caller(**caller), a_tool(**tool)) == expected
    assert found.permitted.tolist() == [expected.effect is Effect.PERMIT]
    assert call_decision(engine, a_caller(**caller), a_tool(**tool)) == expected


@pytest.mark.parametrize(
    ("tool", "unknown_risk", "approved", "effect"),
    [
        pytest.param(DESTRUCTIVE, "allow", False, Effect.NEEDS_APPROVAL, id="operator-says-destructive"),
        pytest.param(DESTRUCTIVE, "allow", True, Effect.PERMIT, id="approved"),
        pytest.param(RAISED, "allow", False, Effect.NEEDS_APPROVAL, id="annotations-raised-it"),
        pytest.param(UNKNOWN, "needs_approval", False, Effect.NEEDS_APPROVAL, id="unknown-waits"),
        pytest.param(UNKNOWN, "needs_approval", True, Effect.PERMIT, id="unknown-approved"),
        pytest.param(UNKNOWN, "allow", False, Effect.PERMIT, id="unknown-where-the-client-confirms"),
        pytest.param(UNKNOWN, "alow", False, Effect.NEEDS_APPROVAL, id="anything-but-allow-waits"),
        pytest.param({"risk": Risk.WRITE}, "needs_approval", False, Effect.PERMIT, id="a-write-runs"),
    ],
)
def test_what_may_destroy_waits_for_a_human(
    tool: dict[str, Any], unknown_risk: str, approved: bool, effect: Effect
) -> None:
    engine = PolicyEngine.from_text()
    decision = call_decision(engine, a_caller(), a_tool(**tool), unknown_risk=unknown_risk, approved=approved)
    assert decision.effect is effect


def test_a_tool_that_needs_approval_is_listed() -> None:
    engine, tool = PolicyEngine.from_text(), a_tool(**DESTRUCTIVE)
    found = eligible(engine, a_caller(), [tool])
    assert found.permitted.tolist() == found.needs_approval.tolist() == [True]
    assert discover_decision(engine, a_caller(), tool).effect is Effect.PERMIT
    assert call_decision(engine, a_caller(), tool) == Decision(
        effect=Effect.NEEDS_APPROVAL, policies=("destructive-needs-approval",)
    )


def test_approval_does_not_buy_what_is_forbidden() -> None:
    engine = PolicyEngine.from_text()
    tool = a_tool(tenants=("zeta",), **DESTRUCTIVE)
    for approved in (False, True):
        assert call_decision(engine, a_caller(tenant="acme"), tool, approved=approved).effect is Effect.FORBID


def test_nothing_is_disclosed_that_is_not_permitted() -> None:
    tools = [a_tool("a.x", tenants=("zeta",)), a_tool("a.y", **DESTRUCTIVE), a_tool("a.z", required_scopes=("s",))]
    assert not eligible(PolicyEngine.from_text(), a_caller(), tools).disclosed.any()


def test_every_rule_of_the_default_policy_has_an_id() -> None:
    text = default_policy_text()
    rules = re.findall(r"^(?:permit|forbid)\b", text, re.MULTILINE)
    ids = re.findall(r'^@id\("([a-z-]+)"\)$', text, re.MULTILINE)
    assert len(rules) == len(ids) == len(set(ids)) == 7


def test_the_rules_in_its_comments_are_valid_as_they_stand() -> None:
    lines = default_policy_text().split("\n")
    examples = "\n".join(line.removeprefix("//") for line in lines if line.startswith("//   ") and "   - " not in line)
    rules = examples[examples.index("@id(") :]
    assert rules.count("@id(") == 4
    engine = PolicyEngine.from_text(default_policy_text() + rules)
    target = Resource(resource_type="Shipment", resource_id="1", tenant="zeta")
    decision = call_decision(engine, a_caller(tenant="acme"), a_tool(), target=target)
    assert decision == Decision(effect=Effect.FORBID, policies=("other-tenants-resource",))
