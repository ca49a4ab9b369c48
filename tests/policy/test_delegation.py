"""Who acts for somebody may do what both may."""

from __future__ import annotations

import pytest

from toolcrib.policy.engine import PolicyEngine
from toolcrib.types import Caller, CallerKind, Decision, Effect, Risk, RiskSource

from .making import PERMIT_ALL, a_caller, a_tool, call_decision, discover_decision, eligible

CALL = 'action == Action::"call"'
TOOLS = [
    a_tool("a.both", required_scopes=("x",)),
    a_tool("a.agent", required_scopes=("agent",)),
    a_tool("a.user", required_scopes=("user",)),
    a_tool("a.none", required_scopes=("y",)),
]


def an_agent(**user: object) -> Caller:
    behind = a_caller("ann", scopes=["x", "user"], **user)
    return a_caller("bot", kind=CallerKind.AGENT, scopes=["x", "agent"], on_behalf_of="ann", acting_for=behind)


def test_an_agent_reaches_what_it_and_its_user_both_may() -> None:
    engine = PolicyEngine.from_text()
    for by_class in (False, True):
        found = eligible(engine, an_agent(), TOOLS, by_class=by_class)
        assert found.permitted.tolist() == [True, False, False, False]
    assert [call_decision(engine, an_agent(), tool).effect for tool in TOOLS] == [Effect.PERMIT] + [Effect.FORBID] * 3


def test_each_is_judged_as_its_own_kind_with_its_own_attributes() -> None:
    engine = PolicyEngine.from_text(
        PERMIT_ALL
        + '@id("agents-in-eu") forbid (principal is Agent, action, resource) unless { context.region == "eu" };'
        + '@id("users-in-us") forbid (principal is User, action, resource) unless { context.region == "us" };'
    )
    agent = a_caller("bot", kind=CallerKind.AGENT, region="eu", acting_for=a_caller("ann", region="us"))
    assert call_decision(engine, agent, a_tool()).effect is Effect.PERMIT
    swapped = a_caller("bot", kind=CallerKind.AGENT, region="us", acting_for=a_caller("ann", region="eu"))
    assert call_decision(engine, swapped, a_tool()) == Decision(
        effect=Effect.FORBID, policies=("agents-in-eu", "users-in-us")
    )


@pytest.mark.parametrize(
    ("tool", "policies"),
    [(TOOLS[1], ("missing-scope",)), (a_tool("a.t", tenants=("acme",), required_scopes=("x",)), ("other-tenant",))],
    ids=["one-rule", "another-rule"],
)
def test_a_denial_names_the_policies_of_the_side_that_denied(tool: object, policies: tuple[str, ...]) -> None:
    engine = PolicyEngine.from_text()
    decision = discover_decision(engine, an_agent(tenant="zeta"), tool)  # type: ignore[arg-type]
    assert decision == Decision(effect=Effect.FORBID, policies=policies)


def test_a_call_waits_where_either_side_has_to_wait() -> None:
    engine = PolicyEngine.from_text(
        PERMIT_ALL
        + f'@id("ask") @obligation("needs_approval") forbid (principal is User, {CALL}, resource)'
        + " unless { context.approved };"
    )
    assert call_decision(engine, an_agent(), a_tool()) == Decision(effect=Effect.NEEDS_APPROVAL, policies=("ask",))
    assert call_decision(engine, an_agent(), a_tool(), approved=True).effect is Effect.PERMIT
    for by_class in (False, True):
        assert eligible(engine, an_agent(), [a_tool()], by_class=by_class).needs_approval.tolist() == [True]


def test_no_approval_is_waited_for_that_the_other_side_would_not_honour() -> None:
    engine = PolicyEngine.from_text(
        PERMIT_ALL
        + f'@obligation("needs_approval") forbid (principal is User, {CALL}, resource) unless {{ context.approved }};'
        + f"forbid (principal is Agent, {CALL}, resource) when {{ context.approved }};"
    )
    assert call_decision(engine, an_agent(), a_tool()).effect is Effect.FORBID
    for by_class in (False, True):
        found = eligible(engine, an_agent(), [a_tool()], by_class=by_class)
        assert not found.permitted.any()
        assert not found.needs_approval.any()


def test_a_long_chain_of_delegation_is_followed_to_its_end() -> None:
    last = a_caller("ann", scopes=["x"])
    middle = a_caller("helper", kind=CallerKind.AGENT, scopes=["x", "y"], acting_for=last)
    first = a_caller("bot", kind=CallerKind.AGENT, scopes=["x", "y"], acting_for=middle)
    found = eligible(PolicyEngine.from_text(), first, TOOLS)
    assert found.permitted.tolist() == [True, False, False, False]


def test_an_error_on_either_side_denies() -> None:
    engine = PolicyEngine.from_text(
        PERMIT_ALL + "forbid (principal is User, action, resource) when { 9223372036854775807 + 1 > 0 };"
    )
    found = eligible(engine, an_agent(), TOOLS)
    assert found.errors
    assert not found.permitted.any()
    assert call_decision(engine, an_agent(), TOOLS[0]).errors


def test_an_agent_and_its_user_have_fingerprints_of_their_own() -> None:
    engine = PolicyEngine.from_text()
    alone = a_caller("bot", kind=CallerKind.AGENT, scopes=["x", "agent"], on_behalf_of="ann")
    shown = {eligible(engine, caller, TOOLS).fingerprint for caller in (alone, an_agent(), an_agent(tenant="zeta"))}
    assert len(shown) == 3


def test_a_destructive_call_of_an_agent_still_waits() -> None:
    tool = a_tool(risk=Risk.DESTRUCTIVE, risk_source=RiskSource.OPERATOR)
    assert call_decision(PolicyEngine.from_text(), an_agent(), tool).effect is Effect.NEEDS_APPROVAL
