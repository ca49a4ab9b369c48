"""Policy tests as a table: what passes, what fails and with which words, and what is refused when it is read."""

from __future__ import annotations

from typing import Any

import pytest

from toolcrib.errors import ConfigError
from toolcrib.identity.callers import caller_from_mapping
from toolcrib.policy.cases import CaseResult, cases_of, run_case
from toolcrib.policy.engine import PolicyEngine
from toolcrib.policy.rules import rules_of
from toolcrib.types import Caller, Channel, Effect, Risk, RiskSource

from .making import a_caller, a_tool

POLICY = """@id("reads") permit (principal in Role::"reader", action, resource) when { resource.risk == "read" };
@id("writes") permit (principal in Role::"writer", action, resource);
@id("ask") @obligation("needs_approval") forbid (principal, action == Action::"call", resource)
when { resource.risk == "write" } unless { context.approved };
@id("unknown") @obligation("needs_approval") forbid (principal, action == Action::"call", resource)
when { resource.risk_source == "unknown" && context.unknown_risk != "allow" } unless { context.approved };
@id("night") forbid (principal, action, resource) when { context.stage == "night" };
@id("theirs") forbid (principal, action == Action::"call", resource)
when { context has target && context.target.tenant != principal.tenant };
@id("boss") permit (principal in Role::"writer", action == Action::"approve", resource)
when { !context.own_request && context.requester_tenant == principal.tenant };
"""
TOOLS = (
    a_tool("files.odd", risk=Risk.DESTRUCTIVE, risk_source=RiskSource.UNKNOWN),
    a_tool("files.read"),
    a_tool("files.write", risk=Risk.WRITE),
)
PROFILES = {
    "ann": a_caller("ann", roles=["reader"], tenant="t"),
    "bob": a_caller("bob", roles=["writer"], tenant="t"),
}
CASE = {"name": "n", "caller": "ann", "action": "call", "tool": "files.read", "expect": "permit"}


def described(fields: Any, where: str) -> Caller:
    return caller_from_mapping(fields, environment="", region="", where=where)


def read(*rows: dict[str, Any]) -> Any:
    return cases_of(
        {"cases": list(rows)}, where=lambda path: "t.toml:" + "/".join(map(str, path)), profiles=PROFILES,
        described=described,
    )  # fmt: skip


def outcome(**changed: Any) -> CaseResult:
    (case,) = read({**CASE, **changed})
    return run_case(
        case,
        engine=PolicyEngine.from_text(POLICY),
        tools=TOOLS,
        withheld={"files.new": "files.new (unreviewed)"},
        labels=frozenset(rule.label for rule in rules_of(POLICY, source="p")),
        unknown_risk={channel: "needs_approval" if channel is Channel.HTTP else "allow" for channel in Channel},
    )


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"rule": "reads"},
        {"caller": {"subject": "x", "roles": ["reader"]}},
        {"tool": "files.write", "expect": "forbid"},
        {"caller": "bob", "tool": "files.write", "expect": "needs_approval", "rule": "ask"},
        {"caller": "bob", "tool": "files.write", "context": {"approved": True}},
        {"caller": "bob", "tool": "files.*", "action": "discover"},
        {"caller": "bob", "tool": "files.odd", "context": {"channel": "cli"}},
        {"caller": "bob", "tool": "files.odd", "context": {"channel": "http"}, "expect": "needs_approval"},
        {"caller": "*", "action": "discover", "context": {"stage": "night"}, "expect": "forbid", "rule": "night"},
        {"caller": "*", "except": ["bob"], "tool": "files.write", "action": "discover", "expect": "forbid"},
        {"context": {"target": {"type": "File", "tenant": "t"}}},
        {"context": {"target": {"type": "File", "tenant": "u"}}, "expect": "forbid", "rule": "theirs"},
        {"caller": "bob", "action": "approve", "tool": "files.write", "rule": "boss"},
        {"caller": "bob", "action": "approve", "tool": "files.write", "context": {"requester": "ann"}},
        {"caller": "bob", "action": "approve", "tool": "files.write", "context": {"own_request": True},
         "expect": "forbid"},
        {"caller": "bob", "action": "approve", "tool": "files.write", "expect": "forbid",
         "context": {"requester": {"subject": "z", "tenant": "u"}}},
        {"caller": "ann", "action": "approve", "tool": "files.write", "expect": "forbid"},
    ],
    ids=lambda changed: " ".join(f"{k}={v}" for k, v in changed.items())[:70] or "plain",
)  # fmt: skip
def test_a_case_that_policy_agrees_with_passes(changed: dict[str, Any]) -> None:
    result = outcome(**changed)
    assert result.passed, result.misses
    assert result.n_asked > 0


def test_a_failed_case_says_expected_got_and_what_decided() -> None:
    (miss,) = outcome(caller="bob", tool="files.write").misses
    assert (miss.caller, miss.tool_id, miss.got) == ("bob", "files.write", Effect.NEEDS_APPROVAL)
    assert miss.policies == ("ask",)
    assert miss.why == "expected permit, got needs_approval"


def test_a_glob_must_hold_for_every_tool_and_caller_it_matches() -> None:
    result = outcome(caller="*", tool="files.*", action="discover")
    assert result.n_asked == 6
    assert [(m.caller, m.tool_id) for m in result.misses] == [("ann", "files.odd"), ("ann", "files.write")]


def test_the_right_decision_by_another_rule_fails() -> None:
    (miss,) = outcome(rule="writes").misses
    assert "not by" in miss.why and miss.policies == ("reads",)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"tool": "files.none_*"}, "no tool in service"),
        ({"tool": "files.new"}, "unreviewed"),
        ({"rule": "raeds"}, 'no policy is called "raeds"'),
    ],
    ids=["no-tool", "withheld", "no-rule"],
)
def test_a_case_that_asks_nothing_fails(changed: dict[str, Any], said: str) -> None:
    result = outcome(**changed)
    assert not result.passed and result.n_asked == 0
    assert said in result.misses[0].why


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"expct": "permit"}, "expct"),
        ({"expect": "allow"}, "expect"),
        ({"action": "run"}, "action"),
        ({"context": {"tenant": "t"}}, "tenant"),
        ({"context": {"approved": "yes"}}, "approved"),
        ({"caller": "nobody"}, 'no profile "nobody"'),
        ({"caller": "*", "except": ["nobody"]}, 'no profile "nobody"'),
        ({"caller": {"subject": "x", "role": ["a"]}}, "role"),
        ({"action": "discover", "expect": "needs_approval"}, "approvals and targets"),
        ({"action": "discover", "context": {"approved": True}}, "approvals and targets"),
        ({"action": "approve", "expect": "needs_approval"}, "permitted or forbidden"),
        ({"context": {"own_request": True}}, "for approvals"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_what_cannot_be_meant_is_refused_with_its_place(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read({**CASE, **changed})
    assert said in str(refused.value)
    assert "t.toml:cases/0" in str(refused.value)


def test_a_file_without_cases_is_refused_rather_than_passed() -> None:
    with pytest.raises(ConfigError):
        read()
