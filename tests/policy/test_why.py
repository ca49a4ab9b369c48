"""Why a decision is what it is: the rules behind it, what they looked at, and which permit came closest."""

from __future__ import annotations

from typing import Any

import pytest

from toolcrib.policy.engine import PolicyEngine
from toolcrib.policy.rules import rules_of
from toolcrib.policy.why import Why, why
from toolcrib.types import Channel, Effect, Risk

from .making import PERMIT_ALL, a_caller, a_tool

TOOL = a_tool("files.write", namespace="files", risk=Risk.WRITE)
ANN = a_caller("ann", roles=["reader"], scopes=["files"])


def told(text: str, *, action: Any = "call", **more: Any) -> Why:
    return why(
        rules_of(text, source="p.cedar"),
        engine=PolicyEngine.from_text(text, source="p.cedar"),
        caller=ANN,
        tool=TOOL,
        action=action,
        channel=Channel.CLI,
        unknown_risk="allow",
        **more,
    )


def test_the_rule_that_decides_is_told_with_line_text_and_what_it_looked_at() -> None:
    rule = '@id("no-writes") forbid (principal in Role::"reader", action, resource) when { resource.risk == "write" };'
    found = told(f"{PERMIT_ALL}// why not\n{rule}\n")
    assert found.decision.effect is Effect.FORBID
    (behind,) = found.behind
    assert (behind.rule.label, behind.rule.where, behind.rule.text) == ("no-writes", "p.cedar:3", rule)
    assert [(a.path, a.value) for a in behind.looked_at] == [
        ("principal.roles", ["reader"]), ("resource.risk", "write"),
    ]  # fmt: skip
    assert found.nearest == ()


def test_a_permit_is_explained_as_well() -> None:
    found = told(PERMIT_ALL, action="discover")
    assert (found.decision.effect, [b.rule.label for b in found.behind]) == (Effect.PERMIT, ["all"])


def test_a_call_of_what_may_not_be_discovered_is_explained_by_that() -> None:
    hidden = PERMIT_ALL + '@id("hidden") forbid (principal, action == Action::"discover", resource);\n'
    found = told(hidden)
    assert (found.action, found.decided_on, [b.rule.label for b in found.behind]) == ("call", "discover", ["hidden"])


def test_a_call_that_waits_is_explained_by_the_rule_that_asks_and_an_approval_lets_it_go() -> None:
    text = PERMIT_ALL + (
        '@id("ask") @obligation("needs_approval") forbid (principal, action == Action::"call", resource)\n'
        "unless { context.approved };\n"
    )
    waiting = told(text)
    assert (waiting.decision.effect, [b.rule.label for b in waiting.behind]) == (Effect.NEEDS_APPROVAL, ["ask"])
    assert [(a.path, a.value) for a in waiting.behind[0].looked_at] == [("context.approved", False)]
    assert told(text, approved=True).decision.effect is Effect.PERMIT


@pytest.mark.parametrize(
    ("rule", "clause", "outcome"),
    [
        ('permit (principal in Role::"writer", action, resource)', 'principal in Role::"writer"', "false"),
        ('permit (principal, action, resource in Namespace::"x")', 'resource in Namespace::"x"', "false"),
        ('permit (principal, action, resource) when { resource.enabled && resource.risk == "read" }',
         'when { resource.risk == "read" }', "false"),
        ('permit (principal, action, resource) when { resource.enabled } when { principal.tenant == "t" && true }',
         'when { principal.tenant == "t" }', "false"),
        ('permit (principal, action, resource) unless { resource.risk == "read" || resource.namespace == "files" }',
         'unless { resource.namespace == "files" }', "true"),
        ('permit (principal, action, resource) when { context has target && context.target.tenant == "t" }',
         "when { context has target }", "false"),
    ],
    ids=["principal", "resource", "second-part", "second-clause", "unless", "guarded"],
)  # fmt: skip
def test_the_first_thing_in_the_way_of_a_permit_is_named(rule: str, clause: str, outcome: str) -> None:
    found = told(f'@id("near") {rule};')
    assert found.behind == () and found.decision.effect is Effect.FORBID
    (miss,) = found.nearest
    assert (miss.clause, miss.outcome) == (clause, outcome)


def test_the_permit_that_fails_latest_comes_first_and_others_for_the_action_only() -> None:
    text = """@id("role") permit (principal in Role::"writer", action, resource);
@id("close") permit (principal in Role::"reader", action, resource in Namespace::"files")
when { resource.owner == "o" };
@id("calls") permit (principal, action == Action::"call", resource);
@id("approves") permit (principal, action == Action::"approve", resource);
"""
    assert [m.behind.rule.label for m in told(text, action="discover").nearest] == ["close", "role"]


def test_a_part_that_cannot_be_evaluated_is_said_to_be_that() -> None:
    text = '@id("sum") permit (principal, action, resource) when { 9223372036854775807 + 1 == 0 };'
    found = told(text)
    assert found.decision.errors
    (miss,) = found.nearest
    assert miss.outcome.startswith("cannot be evaluated")
