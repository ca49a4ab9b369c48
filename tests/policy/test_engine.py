"""Decisions: fail closed, say why, and depend on nothing but what they are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import cedarpy
import pytest

from toolcrib.errors import PolicyError, PolicySyntaxError
from toolcrib.policy.engine import PolicyEngine
from toolcrib.types import CallerKind, Channel, Decision, Effect, Resource, Risk, RiskSource

from .making import PERMIT_ALL, a_caller, a_tool, call_decision, discover_decision, eligible

OVERFLOW = "9223372036854775807 + 1 > 0"
CALL = 'action == Action::"call"'
APPROVAL = '@obligation("needs_approval") '


@pytest.mark.parametrize("effect", ["permit", "forbid"])
def test_an_error_in_any_rule_denies(effect: str) -> None:
    engine = PolicyEngine.from_text(
        f'{PERMIT_ALL}@id("broken") {effect} (principal, action, resource) when {{ {OVERFLOW} }};'
    )

    decision = call_decision(engine, a_caller(), a_tool(), approved=True)
    found = eligible(engine, a_caller(), [a_tool()])

    assert decision.effect is Effect.FORBID
    assert '"broken"' in decision.errors[0]
    assert "overflow" in decision.errors[0]
    assert not found.permitted.any()
    assert found.errors == decision.errors


def test_an_error_is_not_disclosure() -> None:
    engine = PolicyEngine.from_text(PERMIT_ALL + f"forbid (principal, {CALL}, resource) when {{ {OVERFLOW} }};")
    found = eligible(engine, a_caller(), [a_tool()])
    assert discover_decision(engine, a_caller(), a_tool()).effect is Effect.PERMIT
    assert found.errors
    assert not found.disclosed.any()


def test_an_error_once_approved_is_no_approval_to_wait_for() -> None:
    text = (
        PERMIT_ALL
        + APPROVAL
        + f"forbid (principal, {CALL}, resource) unless {{ context.approved }};"
        + f"forbid (principal, {CALL}, resource) when {{ context.approved && {OVERFLOW} }};"
    )
    assert call_decision(PolicyEngine.from_text(text), a_caller(), a_tool()).effect is Effect.FORBID


def test_an_error_that_approval_would_hide_is_still_a_denial() -> None:
    text = (
        PERMIT_ALL
        + APPROVAL
        + f"forbid (principal, {CALL}, resource) unless {{ context.approved }};"
        + f"forbid (principal, {CALL}, resource) when {{ !context.approved && {OVERFLOW} }};"
    )
    decision = call_decision(PolicyEngine.from_text(text), a_caller(), a_tool())
    assert decision.effect is Effect.FORBID
    assert decision.errors


def test_an_error_on_one_class_leaves_the_others_alone() -> None:
    text = PERMIT_ALL + f'forbid (principal, action, resource in Namespace::"odd") when {{ {OVERFLOW} }};'
    found = eligible(PolicyEngine.from_text(text), a_caller(), [a_tool("a.x", namespace="odd"), a_tool("a.y")])
    assert found.permitted.tolist() == [False, True]


class PanicException(BaseException):
    """What a panic in Cedar arrives as: no `Exception`."""


def _raising(fault: BaseException) -> Callable[..., NoReturn]:
    def fail(*args: Any, **named: Any) -> NoReturn:
        raise fault

    return fail


@pytest.mark.parametrize(
    "fault", [ValueError("odd"), MemoryError(), PanicException("boom")], ids=lambda f: type(f).__name__
)
def test_a_failing_evaluator_denies_and_says_so(monkeypatch: pytest.MonkeyPatch, fault: BaseException) -> None:
    engine = PolicyEngine.from_text(PERMIT_ALL)
    monkeypatch.setattr(cedarpy, "is_authorized_batch", _raising(fault))
    monkeypatch.setattr(cedarpy, "is_authorized_partial", _raising(fault))

    found = eligible(engine, a_caller(), [a_tool("a.x"), a_tool("a.y", owner="o")])
    decision = call_decision(engine, a_caller(), a_tool())

    assert found.permitted.tolist() == found.disclosed.tolist() == [False, False]
    assert decision.effect is Effect.FORBID
    assert [type(fault).__name__ in said.errors[0] for said in (found, decision)] == [True, True]


def test_an_interrupt_is_not_taken_for_a_denial(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = PolicyEngine.from_text(PERMIT_ALL)
    monkeypatch.setattr(cedarpy, "is_authorized_batch", _raising(KeyboardInterrupt()))
    monkeypatch.setattr(cedarpy, "is_authorized_partial", _raising(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        call_decision(engine, a_caller(), a_tool())
    with pytest.raises(KeyboardInterrupt):
        eligible(engine, a_caller(), [a_tool()])


def test_an_answer_that_is_no_decision_denies(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = PolicyEngine.from_text(PERMIT_ALL)
    nothing = cedarpy.AuthzResult({"decision": "NoDecision", "diagnostics": {}})
    monkeypatch.setattr(cedarpy, "is_authorized_batch", lambda requests, *rest: [nothing for _ in requests])
    decision = call_decision(engine, a_caller(), a_tool())
    assert decision.effect is Effect.FORBID
    assert decision.errors


def test_a_tool_that_cedar_cannot_read_takes_down_only_itself() -> None:
    engine = PolicyEngine.from_text(PERMIT_ALL)
    tools = [a_tool("a.x"), a_tool("a.\ud800", owner="o"), a_tool("a.z", owner="p")]
    found = eligible(engine, a_caller(), tools)
    assert found.permitted.tolist() == [True, False, True]
    assert len(found.errors) == 1
    assert "cannot be put before policy" in found.errors[0]
    assert call_decision(engine, a_caller(), tools[1]).effect is Effect.FORBID


def test_a_caller_that_cedar_cannot_read_gets_nothing() -> None:
    engine = PolicyEngine.from_text(PERMIT_ALL)
    caller = a_caller(tenant="\udfff")
    assert not eligible(engine, caller, [a_tool()]).permitted.any()
    assert call_decision(engine, caller, a_tool()).errors


@pytest.mark.parametrize("odd", ['quo"te', "new\nline", "nul\0", "back\\slash", "é😀", "*", "' || true"])
def test_odd_names_are_names_and_nothing_else(odd: str) -> None:
    engine = PolicyEngine.from_text(
        "permit (principal, action, resource) when { resource.tenants.contains(principal.tenant) };"
    )
    tools = [a_tool(f"a.{odd}", tenants=(odd,)), a_tool("a.other", tenants=("other",))]
    assert eligible(engine, a_caller(odd, tenant=odd, roles=[odd]), tools).permitted.tolist() == [True, False]


def test_an_obligation_that_approval_does_not_lift_forbids() -> None:
    engine = PolicyEngine.from_text(PERMIT_ALL + APPROVAL + f"forbid (principal, {CALL}, resource);")
    assert call_decision(engine, a_caller(), a_tool()).effect is Effect.FORBID


def test_a_plain_forbid_that_yields_to_approval_asks_for_none() -> None:
    plain = f"forbid (principal, {CALL}, resource) unless {{ context.approved }};"
    engine = PolicyEngine.from_text(PERMIT_ALL + plain)
    assert call_decision(engine, a_caller(), a_tool()).effect is Effect.FORBID
    assert call_decision(engine, a_caller(), a_tool(), approved=True).effect is Effect.PERMIT

    beside = PolicyEngine.from_text(PERMIT_ALL + plain + APPROVAL + plain)
    assert call_decision(beside, a_caller(), a_tool()).effect is Effect.FORBID


def test_an_obligation_without_a_permit_forbids() -> None:
    engine = PolicyEngine.from_text(
        'permit (principal, action == Action::"discover", resource);'
        + APPROVAL
        + f"forbid (principal, {CALL}, resource) unless {{ context.approved }};"
    )
    found = eligible(engine, a_caller(), [a_tool()])
    assert call_decision(engine, a_caller(), a_tool()).effect is Effect.FORBID
    assert found.disclosed.tolist() == [True]


def test_disclosed_is_what_may_be_known_of_but_not_used() -> None:
    engine = PolicyEngine.from_text(PERMIT_ALL + f'@id("look") forbid (principal, {CALL}, resource in Namespace::"n");')
    found = eligible(engine, a_caller(), [a_tool("a.x", namespace="n"), a_tool("a.y")])
    assert found.disclosed.tolist() == [True, False]
    assert found.permitted.tolist() == [False, True]
    decision = call_decision(engine, a_caller(), a_tool("a.x", namespace="n"))
    assert decision == Decision(effect=Effect.FORBID, policies=("look",))


def test_what_may_not_be_discovered_may_not_be_called() -> None:
    engine = PolicyEngine.from_text(
        PERMIT_ALL + '@id("hidden") forbid (principal, action == Action::"discover", resource in Namespace::"n");'
    )
    tool = a_tool(namespace="n")
    assert eligible(engine, a_caller(), [tool]).permitted.tolist() == [False]
    decision = call_decision(engine, a_caller(), tool, approved=True)
    assert decision == Decision(effect=Effect.FORBID, policies=("hidden",))


@pytest.mark.parametrize(
    ("condition", "caller"),
    [
        pytest.param('principal in Role::"r"', {"roles": ["r"]}, id="role"),
        pytest.param('principal.roles.contains("r")', {"roles": ["r"]}, id="roles"),
        pytest.param('principal.scopes.contains("s")', {"scopes": ["s"]}, id="scope"),
        pytest.param('principal.features.contains("f")', {"features": ["f"]}, id="feature"),
        pytest.param('principal.tenant == "t"', {"tenant": "t"}, id="tenant"),
        pytest.param('principal.clearance == "c"', {"clearance": "c"}, id="clearance"),
        pytest.param('principal.on_behalf_of == "ben"', {"on_behalf_of": "ben"}, id="delegation"),
        pytest.param('principal.kind == "agent"', {"kind": CallerKind.AGENT}, id="kind"),
        pytest.param("principal is Workload", {"kind": CallerKind.WORKLOAD}, id="type"),
        pytest.param('context.stage == "s"', {"stage": "s"}, id="stage"),
        pytest.param('context.environment == "e"', {"environment": "e"}, id="environment"),
        pytest.param('context.region == "r"', {"region": "r"}, id="region"),
    ],
)
def test_policies_read_every_attribute_of_a_caller(condition: str, caller: dict[str, Any]) -> None:
    engine = PolicyEngine.from_text(f"permit (principal, action, resource) when {{ {condition} }};")
    assert call_decision(engine, a_caller(**caller), a_tool()).effect is Effect.PERMIT
    assert call_decision(engine, a_caller(), a_tool()).effect is Effect.FORBID


def test_policies_read_the_channel() -> None:
    engine = PolicyEngine.from_text(
        PERMIT_ALL + 'forbid (principal, action, resource) when { context.channel == "http" };'
    )
    assert call_decision(engine, a_caller(), a_tool(), channel=Channel.STDIO).effect is Effect.PERMIT
    assert call_decision(engine, a_caller(), a_tool(), channel=Channel.HTTP).effect is Effect.FORBID


def test_callers_with_equal_attributes_share_a_fingerprint_unless_policy_names_one() -> None:
    tools = [a_tool()]
    plain = PolicyEngine.from_text(PERMIT_ALL)
    naming = PolicyEngine.from_text(PERMIT_ALL + '@id("not-ben") forbid (principal == User::"ben", action, resource);')

    assert eligible(plain, a_caller("ann"), tools).fingerprint == eligible(plain, a_caller("ben"), tools).fingerprint
    ann, ben = eligible(naming, a_caller("ann"), tools), eligible(naming, a_caller("ben"), tools)
    assert ann.fingerprint != ben.fingerprint
    assert (ann.permitted.tolist(), ben.permitted.tolist()) == ([True], [False])


def test_an_eligibility_says_what_it_rests_on_and_cannot_be_changed() -> None:
    engine = PolicyEngine.from_text()
    found = eligible(engine, a_caller(), [a_tool()])
    assert (found.snapshot_version, found.policy_version) == ("snapshot-1", engine.version)
    for array in (found.permitted, found.needs_approval, found.disclosed, found.class_of):
        assert not array.flags.writeable


def test_policies_are_reported_in_the_order_of_the_text() -> None:
    rules = "".join(f'@id("r{number}") forbid (principal, action, resource);' for number in range(12))
    decision = call_decision(PolicyEngine.from_text(PERMIT_ALL + rules), a_caller(), a_tool())
    assert decision.policies == tuple(f"r{number}" for number in range(12))


def test_classes_of_another_snapshot_are_a_fault() -> None:
    engine = PolicyEngine.from_text()
    with pytest.raises(PolicyError):
        engine.eligibility(
            a_caller(),
            tools=[a_tool("a.x"), a_tool("a.y")],
            classes=engine.classes([a_tool("a.x")]),
            snapshot_version="v",
            channel=Channel.CLI,
            unknown_risk="allow",
        )


def test_an_empty_catalog_has_an_empty_eligibility() -> None:
    found = eligible(PolicyEngine.from_text(), a_caller(), [])
    assert found.permitted.shape == found.needs_approval.shape == found.disclosed.shape == (0,)
    assert found.errors == ()


def test_approval_of_unknown_risk_is_decided_per_channel_setting() -> None:
    engine = PolicyEngine.from_text()
    tools = [a_tool(risk=Risk.DESTRUCTIVE, risk_source=RiskSource.UNKNOWN)]
    for unknown_risk, waits in (("allow", False), ("needs_approval", True)):
        found = eligible(engine, a_caller(), tools, unknown_risk=unknown_risk)
        assert (found.permitted.tolist(), found.needs_approval.tolist()) == ([True], [waits])


SHIPMENT = Resource(resource_type="Shipment", resource_id="S-1", tenant="acme", owner="ann")


@pytest.mark.parametrize(
    ("condition", "effect"),
    [
        pytest.param('context.target.type == "Shipment"', Effect.PERMIT, id="type"),
        pytest.param("context.target.tenant == principal.tenant", Effect.PERMIT, id="tenant"),
        pytest.param('context.target.owner == "ben"', Effect.FORBID, id="another-owner"),
        pytest.param('context.target == Resource::"S-1"', Effect.PERMIT, id="by-name"),
    ],
)
def test_policies_read_the_resource_that_a_call_names(condition: str, effect: Effect) -> None:
    engine = PolicyEngine.from_text(
        f"permit (principal, action, resource) unless {{ context has target && !({condition}) }};"
    )
    caller = a_caller(tenant="acme")
    assert call_decision(engine, caller, a_tool(), target=SHIPMENT).effect is effect
    assert call_decision(engine, caller, a_tool()).effect is Effect.PERMIT
    assert eligible(engine, caller, [a_tool()]).permitted.tolist() == [True]


def test_a_discovery_names_no_resource() -> None:
    engine = PolicyEngine.from_text(
        PERMIT_ALL + 'forbid (principal, action == Action::"discover", resource) when { context has target };'
    )
    assert call_decision(engine, a_caller(), a_tool(), target=SHIPMENT).effect is Effect.PERMIT


def test_a_resource_may_have_any_id() -> None:
    engine = PolicyEngine.from_text(
        PERMIT_ALL
        + "forbid (principal, action, resource)"
        + " when { context has target && context.target.tenant != principal.tenant };"
    )
    for resource_id in ('quo"te', "", "Shipment::x", "é😀", "ann"):
        for tenant, effect in (("acme", Effect.PERMIT), ("zeta", Effect.FORBID)):
            target = Resource(resource_type="Shipment", resource_id=resource_id, tenant=tenant)
            assert call_decision(engine, a_caller(tenant="acme"), a_tool(), target=target).effect is effect


def test_a_resource_that_cedar_cannot_read_denies() -> None:
    target = Resource(resource_type="Shipment", resource_id="\ud800", tenant="acme")
    assert call_decision(PolicyEngine.from_text(PERMIT_ALL), a_caller(), a_tool(), target=target).errors


def test_a_target_that_is_not_asked_for_first_is_refused() -> None:
    with pytest.raises(PolicySyntaxError):
        PolicyEngine.from_text('permit (principal, action, resource) when { context.target.tenant == "a" };')


@pytest.mark.parametrize(
    ("odd", "in_cedar"),
    [
        pytest.param('quo"te', r"quo\"te", id="quote"),
        pytest.param("O'Brien", "O'Brien", id="apostrophe"),
        pytest.param("new\nline\ttab", r"new\nline\ttab", id="blanks"),
        pytest.param("nul\0", r"nul\0", id="nul"),
        pytest.param("back\\slash", r"back\\slash", id="backslash"),
        pytest.param(r"\u{41}", r"\\u{41}", id="looks-escaped"),
        pytest.param("é😀", "é😀", id="not-ascii"),
        pytest.param("\x7f\x85\u200b\u2028", r"\u{7f}\u{85}\u{200b}\u{2028}", id="invisible"),
        pytest.param("a::b", "a::b", id="colons"),
        pytest.param("", "", id="empty"),
    ],
)
def test_a_caller_of_any_name_is_that_caller_and_no_other(odd: str, in_cedar: str) -> None:
    engine = PolicyEngine.from_text(f'permit (principal == User::"{in_cedar}", action, resource);')
    for by_class in (False, True):
        assert eligible(engine, a_caller(odd), [a_tool()], by_class=by_class).permitted.tolist() == [True]
        assert eligible(engine, a_caller("x"), [a_tool()], by_class=by_class).permitted.tolist() == [False]
    assert eligible(engine, a_caller(odd), [a_tool()]).method == "residual"


def test_a_caller_that_partial_evaluation_will_not_name_is_decided_by_class() -> None:
    engine = PolicyEngine.from_text(PERMIT_ALL)
    found = eligible(engine, a_caller("\u0301"), [a_tool()])  # a combining accent with nothing before it
    assert (found.method, found.permitted.tolist(), found.errors) == ("class", [True], ())
