"""Who may approve whose call."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cedarpy
import pytest

from toolcrib.errors import PolicySyntaxError
from toolcrib.policy.engine import PolicyEngine
from toolcrib.types import ApprovalRequest, Caller, CallerKind, Channel, Credential, Decision, Effect

from .making import PERMIT_ALL, a_caller, a_tool

APPROVE = 'action == Action::"approve"'
BY_LEADS = f'@id("leads") permit (principal in Role::"lead", {APPROVE}, resource);'
OWN_TOO = f'@id("own-too") permit (principal in Role::"lead", {APPROVE}, resource) when {{ context.own_request }};'


def a_request(subject: str = "ann", **said: Any) -> ApprovalRequest:
    return ApprovalRequest(
        **{
            "approval_id": "1", "key": "k", "subject": subject, "tenant": "acme", "tool_id": "files.read_file",
            "digest": "sha256:0", "arguments_preview": "{}", "state": "pending", "created_at": "", "expires_at": "",
            **said,
        }
    )  # fmt: skip


def decide(text: str | None, approver: Caller, request: ApprovalRequest | None = None) -> Decision:
    return PolicyEngine.from_text(text).decide_approval(
        approver, tool=a_tool(namespace="n"), request=request or a_request(), channel=Channel.CLI
    )


def lead(subject: str = "ben", **said: Any) -> Caller:
    return a_caller(subject, **{"tenant": "acme", "roles": ["lead"], **said})


@pytest.mark.parametrize("text", [None, "", PERMIT_ALL], ids=["built-in", "empty", "bare-permit"])
@pytest.mark.parametrize(
    ("approver", "request_of", "effect"),
    [
        pytest.param(a_caller("ben", tenant="acme"), {}, Effect.PERMIT, id="somebody-else"),
        pytest.param(a_caller("ann", tenant="acme"), {}, Effect.FORBID, id="own"),
        pytest.param(
            a_caller("ann", tenant="acme", kind=CallerKind.AGENT), {}, Effect.FORBID, id="own-as-another-kind"
        ),
        pytest.param(a_caller("ben", tenant="zeta"), {}, Effect.FORBID, id="another-tenant"),
        pytest.param(a_caller("ben"), {}, Effect.PERMIT, id="the-operator"),
        pytest.param(
            a_caller("ann", tenant="acme"),
            {"subject": "bot", "on_behalf_of": "ann"},
            Effect.PERMIT,
            id="the-user-behind",
        ),
        pytest.param(
            a_caller("bot", tenant="acme", on_behalf_of="ann"), {}, Effect.FORBID, id="an-agent-of-the-caller"
        ),
        pytest.param(
            a_caller("bot2", tenant="acme", on_behalf_of="ann"),
            {"subject": "bot", "on_behalf_of": "ann"},
            Effect.FORBID,
            id="another-agent-of-the-same-user",
        ),
        pytest.param(
            a_caller("bot", tenant="acme", acting_for=a_caller("ann", tenant="acme")),
            {},
            Effect.FORBID,
            id="acting-for-the-caller",
        ),
        pytest.param(a_caller("ann"), {}, Effect.FORBID, id="the-name-without-a-tenant"),
        pytest.param(a_caller("bot", on_behalf_of="ann"), {}, Effect.FORBID, id="for-the-caller-without-a-tenant"),
        pytest.param(
            a_caller("bot", acting_for=a_caller("ann", tenant="acme")),
            {},
            Effect.FORBID,
            id="acting-for-the-caller-without-a-tenant",
        ),
        pytest.param(
            a_caller("bot", acting_for=a_caller("bot2", acting_for=a_caller("ann", tenant="acme"))),
            {},
            Effect.FORBID,
            id="acting-for-the-caller-at-two-removes",
        ),
        pytest.param(a_caller("ann", tenant="acme"), {"tenant": ""}, Effect.FORBID, id="own-asked-without-a-tenant"),
        pytest.param(
            a_caller("bot", tenant="acme", on_behalf_of="ann"),
            {"tenant": ""},
            Effect.FORBID,
            id="for-the-caller-who-asked-without-a-tenant",
        ),
        pytest.param(a_caller("bot", on_behalf_of="cid"), {}, Effect.PERMIT, id="for-somebody-else"),
        pytest.param(
            a_caller("bot", acting_for=a_caller("cid", tenant="zeta")),
            {},
            Effect.FORBID,
            id="acting-for-somebody-of-another-tenant",
        ),
    ],
)
def test_without_a_policy_an_approver_is_anybody_but_the_caller(
    text: str | None, approver: Caller, request_of: dict[str, Any], effect: Effect
) -> None:
    assert decide(text, approver, a_request(**request_of)).effect is effect


def test_a_policy_on_approvals_decides_alone() -> None:
    assert decide(BY_LEADS, lead()) == Decision(effect=Effect.PERMIT, policies=("leads",))
    assert decide(BY_LEADS, a_caller("ben", tenant="acme")) == Decision(effect=Effect.FORBID)


def test_a_bare_permit_lets_nobody_approve_beside_one_on_approvals() -> None:
    assert decide(PERMIT_ALL + BY_LEADS, a_caller("ben", tenant="acme")).effect is Effect.FORBID


def test_a_bare_forbid_does_not_count_for_approvals() -> None:
    assert decide("forbid (principal, action, resource);" + BY_LEADS, lead()).effect is Effect.PERMIT


def test_a_forbid_on_approvals_wins() -> None:
    text = BY_LEADS + f'@id("not-n") forbid (principal, {APPROVE}, resource in Namespace::"n");'
    assert decide(text, lead()) == Decision(effect=Effect.FORBID, policies=("not-n",))


def test_a_policy_for_calls_and_approvals_counts_for_approvals() -> None:
    text = '@id("both") permit (principal, action in [Action::"call", Action::"approve"], resource);'
    assert decide(text, lead()) == Decision(effect=Effect.PERMIT, policies=("both",))


def test_an_own_request_needs_a_permit_that_reads_it() -> None:
    assert decide(BY_LEADS, lead("ann")).effect is Effect.FORBID
    assert decide(BY_LEADS + OWN_TOO, lead("ann")).effect is Effect.PERMIT
    assert decide(BY_LEADS + OWN_TOO, lead("ben")).policies == ("leads",)
    unread = f'@id("no") permit (principal, {APPROVE}, resource) unless {{ context.own_request }};'
    assert decide(unread + BY_LEADS, lead("ann")).effect is Effect.FORBID


@pytest.mark.parametrize("approver", [lead("ann", tenant=""), lead("bot", tenant="", on_behalf_of="ann")])
def test_a_policy_grants_no_own_request_to_a_name_without_a_tenant(approver: Caller) -> None:
    assert decide(BY_LEADS, approver).policies == ("built-in: own request", "leads")
    assert decide(BY_LEADS + OWN_TOO, approver).effect is Effect.PERMIT


def test_policies_on_approvals_read_the_requester_and_the_tool() -> None:
    text = (
        f"permit (principal, {APPROVE}, resource) when {{ context.requester_tenant == principal.tenant "
        '&& context.requester == "ann" && resource.namespace == "n" && context.channel == "cli" };'
    )
    assert decide(text, lead()).effect is Effect.PERMIT
    assert decide(text, lead(tenant="zeta")).effect is Effect.FORBID
    assert decide(text, lead(), a_request("eve")).effect is Effect.FORBID


def test_who_acts_for_somebody_approves_only_what_that_one_may() -> None:
    agent = a_caller("bot", kind=CallerKind.AGENT, tenant="acme", roles=["lead"], acting_for=lead("cid"))
    assert decide(BY_LEADS, agent).effect is Effect.PERMIT
    powerless = a_caller("bot", kind=CallerKind.AGENT, tenant="acme", roles=["lead"], acting_for=a_caller("cid"))
    assert decide(BY_LEADS, powerless).effect is Effect.FORBID


def test_an_error_while_deciding_on_an_approval_denies() -> None:
    text = BY_LEADS + f'@id("odd") forbid (principal, {APPROVE}, resource) when {{ 9223372036854775807 + 1 > 0 }};'
    decision = decide(text, lead())
    assert decision.effect is Effect.FORBID
    assert '"odd"' in decision.errors[0]


def test_a_failing_evaluator_approves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(cedarpy, "is_authorized_batch", fail)
    assert decide(BY_LEADS, lead()).errors


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("permit (principal, action, resource) when { context.own_request };", id="bare-action"),
        pytest.param(
            '@obligation("needs_approval") forbid (principal, action == Action::"approve", resource);', id="obligation"
        ),
    ],
)
def test_what_makes_no_sense_for_approvals_is_refused(text: str) -> None:
    with pytest.raises(PolicySyntaxError):
        PolicyEngine.from_text(text)


def test_policies_on_approvals_permit_no_call() -> None:
    engine = PolicyEngine.from_text(f"permit (principal, {APPROVE}, resource);")
    decision = engine.decide_discover(lead(), a_tool(), channel=Channel.CLI, unknown_risk="allow")
    assert decision == Decision(effect=Effect.FORBID)


def shown(kind: str | None) -> Credential | None:
    return None if kind is None else Credential(kind=kind)


ANY_TENANT = f'@id("any") permit (principal, {APPROVE}, resource) when {{ context.requester_tenant like "*" }};'
NO_TENANT = a_caller("ben", roles=["lead"])


@pytest.mark.parametrize("text", [None, BY_LEADS], ids=["built-in", "by-policy"])
@pytest.mark.parametrize(
    ("kind", "effect"),
    [
        (None, Effect.PERMIT),
        ("local", Effect.PERMIT),
        ("file", Effect.PERMIT),
        ("token", Effect.FORBID),
        ("key", Effect.FORBID),
        ("jwt", Effect.FORBID),
        ("proxy", Effect.FORBID),
        ("of-tomorrow", Effect.FORBID),
    ],
)
def test_without_a_tenant_only_the_operators_own_approve_for_a_tenant(
    text: str | None, kind: str | None, effect: Effect
) -> None:
    approver = replace(NO_TENANT, credential=shown(kind))
    decision = decide(text, approver)
    assert decision.effect is effect
    assert ("built-in: other tenant" in decision.policies) == (effect is Effect.FORBID)
    assert decide(text, approver, a_request(tenant="")).effect is Effect.PERMIT, "none and none are the same"
    assert decide(ANY_TENANT, approver).effect is Effect.PERMIT, "a permit that reads the requester's tenant"


@pytest.mark.parametrize("front", [None, "local", "key"])
@pytest.mark.parametrize("behind", [None, "local", "key"])
@pytest.mark.parametrize(("of_front", "of_behind"), [("acme", ""), ("", "acme"), ("", "")])
def test_a_chain_is_the_operators_only_where_everybody_in_it_is(
    front: str | None, behind: str | None, of_front: str, of_behind: str
) -> None:
    last = a_caller("cid", tenant=of_behind, credential=shown(behind))
    middle = a_caller("dan", tenant="acme", acting_for=last)
    approver = a_caller("bot", kind=CallerKind.AGENT, tenant=of_front, acting_for=middle, credential=shown(front))
    effect = Effect.FORBID if "key" in (front, behind) else Effect.PERMIT
    assert decide(None, approver).effect is effect


@pytest.mark.parametrize(
    ("condition", "tenant", "effect"),
    [
        ("", "acme", Effect.PERMIT),
        ("", "", Effect.PERMIT),
        ("", "zeta", Effect.FORBID),
        ("when { !context.own_request }", "zeta", Effect.FORBID),
        ("when { context.requester_tenant == principal.tenant }", "zeta", Effect.FORBID),
        ('when { context.requester_tenant == "acme" }', "zeta", Effect.PERMIT),
    ],
)
def test_a_permit_crosses_tenants_only_where_it_reads_the_requesters(
    condition: str, tenant: str, effect: Effect
) -> None:
    text = f'@id("leads") permit (principal in Role::"lead", action == Action::"approve", resource) {condition};'
    assert decide(text, lead("ben", tenant=tenant)).effect is effect
