"""What `toolcrib policy check` finds: each finding on a policy made to have it, and none on one that has not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from toolcrib.policy.check import Finding, Profile, check
from toolcrib.policy.engine import PolicyEngine
from toolcrib.policy.rules import rules_of
from toolcrib.types import Caller, Channel, Risk, Tool

from .making import PERMIT_ALL, a_caller, a_tool

RISKS = dict.fromkeys(Channel, "needs_approval")
TOOLS = (a_tool("files.read", namespace="files"), a_tool("files.write", namespace="files", risk=Risk.WRITE))
ANN, BOB = a_caller("ann", roles=["reader"]), a_caller("bob", roles=["writer"])


def found(text: str, *callers: Caller, tools: Sequence[Tool] = TOOLS, **more: Any) -> tuple[Finding, ...]:
    profiles = [Profile(name=c.subject, caller=c, where=f"profiles/{c.subject}.json") for c in callers or (ANN, BOB)]
    return check(
        rules_of(text, source="p.cedar"),
        engine=PolicyEngine.from_text(text, source="p.cedar"),
        tools=tools,
        profiles=profiles,
        unknown_risk=RISKS,
        **more,
    )


def of(code: str, findings: tuple[Finding, ...]) -> list[Finding]:
    return [finding for finding in findings if finding.code == code]


EACH_HIS_OWN = """@id("reads") permit (principal in Role::"reader", action, resource) when { resource.risk == "read" };
@id("writes") permit (principal in Role::"writer", action, resource) when { resource.risk == "write" };
"""


def test_a_policy_in_order_has_no_findings() -> None:
    assert found(EACH_HIS_OWN) == ()


def test_an_empty_policy_is_told_to_permit_nothing() -> None:
    assert [f.code for f in found("// nothing yet\n")] == ["empty_policy"]


def test_a_permit_for_nobody_is_a_finding_with_its_line_and_how_many_were_tried() -> None:
    (one,) = found(EACH_HIS_OWN + '@id("gone") permit (principal in Role::"auditor", action, resource);\n')
    assert (one.code, one.where, one.note) == ("matches_nothing", "p.cedar:3", False)
    assert "none of the 2 profiles" in one.text and "2 tools" in one.text


def test_a_forbid_that_nobody_runs_into_is_a_note() -> None:
    (one,) = found(EACH_HIS_OWN + '@id("guard") forbid (principal, action, resource) when { !resource.enabled };\n')
    assert (one.code, one.note) == ("matches_nothing", True)


@pytest.mark.parametrize(
    "condition",
    [
        'context.channel == "http"',
        "context.approved",
        'context.channel == "stdio" && !context.approved',
        "principal.roles.contains(\"writer\") && context.approved && context.channel == \"cli\"",
    ],
)  # fmt: skip
def test_a_rule_that_holds_in_some_context_matches(condition: str) -> None:
    rule = f'@id("odd") forbid (principal, action == Action::"call", resource) when {{ {condition} }};\n'
    assert of("matches_nothing", found(EACH_HIS_OWN + rule)) == []


def test_a_permit_that_a_forbid_overrides_each_time_is_told_apart_from_one_that_matches_nothing() -> None:
    text = EACH_HIS_OWN + (
        '@id("late") permit (principal in Role::"reader", action, resource) when { resource.risk == "write" };\n'
        '@id("no") forbid (principal in Role::"reader", action, resource) when { resource.risk == "write" };\n'
    )
    (one,) = found(text)
    assert (one.code, one.where) == ("overridden", "p.cedar:3")
    assert "late" in one.text


def test_a_rule_about_a_call_s_resource_is_not_called_useless() -> None:
    text = EACH_HIS_OWN + (
        '@id("theirs") forbid (principal, action == Action::"call", resource)\n'
        "when { context has target && context.target.tenant != principal.tenant };\n"
    )
    (one,) = found(text)
    assert (one.code, one.note) == ("not_tried", True)


@pytest.mark.parametrize(
    ("rule", "word", "meant"),
    [
        ('forbid (principal, action, resource in Namespace::"file")', "file", "files"),
        ('forbid (principal, action, resource in Server::"fils")', "fils", "files"),
        ('forbid (principal, action, resource == Tool::"files.reed")', "files.reed", "files.read"),
        ('forbid (principal, action, resource) when { resource.risk == "writes" }', "writes", "write"),
        ('forbid (principal, action, resource) when { ["Read"].contains(resource.risk) }', "Read", "read"),
        ('forbid (principal, action, resource) when { resource.namespace == "fles" }', "fles", "files"),
        ('forbid (principal, action, resource) unless { context.channel != "https" }', "https", "http"),
        ('forbid (principal, action, resource) when { resource in Namespace::"fil" || false }', "fil", "files"),
    ],
)  # fmt: skip
def test_a_misspelled_word_in_a_forbid_is_a_finding_since_it_would_leave_a_gap(
    rule: str, word: str, meant: str
) -> None:
    findings = of("unknown_word", found(EACH_HIS_OWN + f'@id("bad") {rule};'))
    assert [f.note for f in findings] == [False]
    assert word in findings[0].text and f'did you mean "{meant}"?' in findings[0].text


def test_words_that_the_catalog_has_and_the_empty_one_are_known() -> None:
    text = EACH_HIS_OWN + (
        '@id("a") forbid (principal in Role::"none", action, resource in Namespace::"files")\n'
        'when { resource.owner == "" || resource.risk == "destructive" || principal.tenant == "anything" };\n'
    )
    assert of("unknown_word", found(text)) == []


def test_a_tool_that_no_profile_reaches_is_a_finding() -> None:
    (one,) = found('@id("reads") permit (principal, action, resource) when { resource.risk == "read" };', ANN)
    assert (one.code, one.tools, one.note) == ("unreachable", ("files.write",), False)


def test_what_routing_rules_out_is_not_reached() -> None:
    findings = found(EACH_HIS_OWN, narrow=lambda caller, permitted: permitted & (caller.subject != "bob"))
    assert [f.tools for f in of("unreachable", findings)] == [("files.write",)]
    assert [f.where for f in of("reaches_nothing", findings)] == ["profiles/bob.json"]


def test_what_everybody_may_change_is_a_finding_and_what_everybody_may_read_a_note() -> None:
    findings = of("open_to_all", found(PERMIT_ALL))
    assert [(f.tools, f.note) for f in findings] == [(("files.write",), False), (("files.read",), True)]


def test_one_profile_is_not_everybody() -> None:
    assert of("open_to_all", found(PERMIT_ALL, ANN)) == []


def test_a_rule_that_fails_to_evaluate_is_told_for_each_profile() -> None:
    text = PERMIT_ALL + '@id("sum") forbid (principal, action, resource) when { 9223372036854775807 + 1 == 0 };\n'
    findings = of("evaluation_error", found(text, ANN))
    assert len(findings) == 1 and "sum" in findings[0].text


ASKS = EACH_HIS_OWN + (
    '@id("ask") @obligation("needs_approval") forbid (principal, action == Action::"call", resource)\n'
    'when { resource.risk == "write" } unless { context.approved };\n'
)


def test_approvals_without_a_rule_for_them_are_a_note() -> None:
    assert [(f.code, f.note) for f in found(ASKS)] == [("no_approve_rule", True)]


def test_a_call_that_waits_for_nobody_is_a_finding() -> None:
    grant = '@id("boss") permit (principal in Role::"boss", action == Action::"approve", resource);\n'
    findings = found(ASKS + grant)
    assert [(f.code, f.tools) for f in findings] == [("nobody_approves", ("files.write",)), ("matches_nothing", ())]
    assert found(ASKS + grant, ANN, BOB, a_caller("eve", roles=["boss", "reader"])) == ()


def test_without_profiles_or_tools_nothing_is_said_of_them() -> None:
    text = EACH_HIS_OWN + '@id("gone") permit (principal in Role::"auditor", action, resource);\n'
    assert found(text, tools=()) == ()
    rules, engine = rules_of(text, source="p"), PolicyEngine.from_text(text)
    assert check(rules, engine=engine, tools=TOOLS, profiles=(), unknown_risk=RISKS) == ()
