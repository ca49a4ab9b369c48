"""What one policy changes against another: gains, losses, and which of them widen."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import pytest

from toolcrib.policy import comparing_approvals, comparing_targets, samples
from toolcrib.policy.changes import Asker, CallChange, Change
from toolcrib.policy.compare import Comparison, compare
from toolcrib.policy.engine import PolicyEngine
from toolcrib.policy.loaded import LoadedPolicy
from toolcrib.types import Caller, CallerKind, Channel, Effect, Resource, Risk

from .making import PERMIT_ALL, a_caller, a_tool, call_decision

TOOLS = (a_tool("files.read"), a_tool("files.write", risk=Risk.WRITE))
READS = 'permit (principal, action, resource) when { resource.risk == "read" };\n'
ASKS = PERMIT_ALL + (
    '@id("ask") @obligation("needs_approval") forbid (principal, action == Action::"call", resource)\n'
    'when { resource.risk == "write" } unless { context.approved };\n'
)
SHOWN = PERMIT_ALL + 'forbid (principal, action == Action::"call", resource) when { resource.risk == "write" };\n'
FORBID, ASK, PERMIT = Effect.FORBID, Effect.NEEDS_APPROVAL, Effect.PERMIT


def compared(old: str | None, new: str | None, **asker: Any) -> Comparison:
    who = Asker(**{"name": "ann", "source": "profile", "caller": a_caller("ann"), **asker})
    policies = [LoadedPolicy.from_text(text, source=name) for text, name in ((old, "old"), (new, "new"))]
    return compare(*policies, tools=TOOLS, askers=[who], unknown_risk=dict.fromkeys(Channel, "allow"))


def changes(old: str, new: str, **asker: Any) -> tuple[Change, ...]:
    found = compared(old, new, **asker)
    assert not found.unseen
    return found.changes


def at_hand(found: Comparison) -> list[Change]:
    """What changes for the asker, without what opens to strangers."""
    return [change for change in found.changes if change.asker.source != "stranger"]


@pytest.mark.parametrize("text", [READS, ASKS, SHOWN, PERMIT_ALL, ""], ids=["reads", "asks", "shown", "all", "empty"])
def test_a_policy_changes_nothing_against_itself(text: str) -> None:
    assert changes(text, text) == ()


@pytest.mark.parametrize(
    ("old", "new", "gained", "lost", "call", "widens"),
    [
        (READS, PERMIT_ALL, ("files.write",), (), (FORBID, PERMIT), True),
        (PERMIT_ALL, READS, (), ("files.write",), (PERMIT, FORBID), False),
        (PERMIT_ALL, ASKS, (), (), (PERMIT, ASK), False),
        (ASKS, PERMIT_ALL, (), (), (ASK, PERMIT), True),
        (SHOWN, ASKS, (), (), (FORBID, ASK), True),
        (ASKS, SHOWN, (), (), (ASK, FORBID), False),
        (READS, SHOWN, ("files.write",), (), None, True),
    ],
    ids=["gain", "loss", "approval-asked", "approval-dropped", "approval-opens", "approval-closes", "found-only"],
)
def test_gains_and_losses_of_finding_and_calling_are_told_apart(
    old: str, new: str, gained: Any, lost: Any, call: Any, widens: bool
) -> None:
    (change,) = changes(old, new)
    assert (change.found_gained, change.found_lost, change.widens) == (gained, lost, widens)
    expected = () if call is None else (CallChange(tool_id="files.write", before=call[0], after=call[1]),)
    assert change.calls == expected


def test_a_change_that_narrows_and_widens_widens() -> None:
    (change,) = changes(READS, READS.replace('"read"', '"write"'))
    assert (change.found_gained, change.found_lost, change.widens) == (("files.write",), ("files.read",), True)


def test_channels_with_the_same_change_are_one_and_others_apart() -> None:
    web = PERMIT_ALL + 'forbid (principal, action, resource) when { context.channel == "http" };\n'
    (change,) = changes(PERMIT_ALL, web)
    assert change.channels == (Channel.HTTP,)
    assert changes(PERMIT_ALL, web, channels=(Channel.CLI,)) == ()
    (everywhere,) = changes(PERMIT_ALL, READS)
    assert everywhere.channels == tuple(Channel)


def test_calls_of_a_lost_tool_are_counted() -> None:
    (lost,) = changes(PERMIT_ALL, READS, calls={"files.write": 7, "files.read": 9})
    assert [(call.tool_id, call.n_calls) for call in lost.calls] == [("files.write", 7)]


def test_a_new_policy_that_fails_to_evaluate_says_so() -> None:
    broken = PERMIT_ALL + '@id("sum") forbid (principal, action, resource) when { 9223372036854775807 + 1 == 0 };\n'
    (change,) = changes(PERMIT_ALL, broken)
    assert change.found_lost == ("files.read", "files.write") and not change.widens
    assert any("sum" in error for error in change.errors)


# --- calls that name a resource

CALL = 'action == Action::"call"'
ZETA = a_caller("ann", tenant="zeta")
READ, WRITE = "files.read", "files.write"


def told(change: Change) -> str:
    """Its circumstances, without what each begins with."""
    assert all(each.startswith(("target: ", "requests ")) for each in change.circumstances)
    return "; ".join(each.removeprefix("target: ").removeprefix("requests ") for each in change.circumstances)


def no_calls(condition: str, what: str = "forbid") -> str:
    return (
        PERMIT_ALL
        + f'@id("target") {what} (principal, {CALL}, resource) when {{ context has target && ({condition}) }};'
    )


OTHERS = no_calls("context.target.tenant != principal.tenant")


def with_target(old: str, new: str, caller: Caller = ZETA) -> dict[str, bool]:
    """Circumstance -> whether it widens; each change must be of all tools."""
    found = compared(old, new, caller=caller)
    assert not found.unseen
    assert all([call.tool_id for call in change.calls] == [READ, WRITE] for change in at_hand(found))
    return {told(change): change.widens for change in at_hand(found)}


@pytest.mark.parametrize(
    ("condition", "circumstance"),
    [
        ("context.target.tenant != principal.tenant", "another tenant; no tenant"),
        ('context.target.tenant != "" && context.target.tenant != principal.tenant', "another tenant"),
        ("context.target.tenant == principal.tenant", "its own tenant"),
        ("context.target.owner != principal.on_behalf_of", "another owner; itself the owner"),
        ('context.target.type == "Shipment"', 'type "Shipment"'),
        ('["Shipment", "Invoice"].contains(context.target.type)', 'type "Invoice"; type "Shipment"'),
        ('context.target.type like "Ship*"', 'type "Ship"; type "Shipx"'),
        ('context.target == Resource::"7"', 'id "7"'),
        (
            'context.target.type == "Shipment" && context.target.tenant != principal.tenant',
            'type "Shipment", another tenant; type "Shipment", no tenant',
        ),
        ("principal.roles.contains(context.target.owner)", 'owner "keeper"'),
        (
            'context.target.owner == context.target.tenant && context.target.owner != ""',
            "another tenant, another owner",
        ),
        ("true", "any"),
    ],
    ids=["tenant", "tenant-said", "own", "owner", "type", "types", "like", "id", "both", "role", "same", "any"],
)
def test_a_rule_on_targets_that_goes_widens_and_one_that_comes_narrows(condition: str, circumstance: str) -> None:
    caller = a_caller("ann", tenant="zeta", roles=["keeper"])
    rule = no_calls(condition)
    assert with_target(rule, PERMIT_ALL, caller) == {circumstance: True}
    assert with_target(PERMIT_ALL, rule, caller) == {circumstance: False}


def test_a_weaker_rule_on_targets_widens() -> None:
    weaker = no_calls('context.target.tenant != principal.tenant && context.target.type != "Note"')
    found = with_target(OTHERS, weaker)
    assert found == {'type "Note", another tenant; type "Note", no tenant': True}


def test_an_approval_for_targets_that_goes_widens() -> None:
    asks = (
        PERMIT_ALL
        + f'@obligation("needs_approval") forbid (principal, {CALL}, resource)\n'
        + 'when { context has target && context.target.tenant == "" } unless { context.approved };'
    )
    assert with_target(asks, PERMIT_ALL) == {"no tenant": True}


def test_more_than_can_be_combined_counts_as_widening(monkeypatch: pytest.MonkeyPatch) -> None:
    narrower = no_calls('context.target.tenant != principal.tenant || context.target.type == "Note"')
    assert not compared(PERMIT_ALL, narrower, caller=ZETA).widens
    monkeypatch.setattr(samples, "MAX_SAMPLES", 3)
    found = compared(PERMIT_ALL, narrower, caller=ZETA)
    assert found.widens and not any(change.widens for change in found.changes)


def test_what_changes_for_every_call_is_not_said_again_of_targets() -> None:
    (change,) = compared(OTHERS, OTHERS.replace("permit (principal", 'permit (principal in Role::"r"')).changes
    assert change.circumstances == () and change.found_lost == (READ, WRITE)


def test_an_agent_s_targets_are_tried_with_the_rights_of_whom_it_acts_for() -> None:
    user = a_caller("zoe", tenant="acme")
    agent = a_caller("bot", kind=CallerKind.AGENT, tenant="zeta", acting_for=user)
    rule = no_calls('context.target.tenant == "acme" && principal.kind == "user"')
    found = compared(rule, PERMIT_ALL, caller=agent)
    assert [told(change) for change in at_hand(found) if change.widens] == ['tenant "acme"']


def test_a_target_read_in_a_way_that_samples_may_miss_counts_as_widening() -> None:
    rule = no_calls('(if principal.tenant == "zeta" then context.target.owner else "x") == principal.on_behalf_of')
    found = compared(rule, PERMIT_ALL, caller=ZETA)
    assert any("context.target.owner" in note.text and note.where == "old:2" for note in found.unseen)
    assert found.widens


@pytest.mark.parametrize("part", [comparing_targets, comparing_approvals], ids=["targets", "approvals"])
def test_a_comparison_that_stops_early_counts_as_widening(part: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    wider, narrower = PERMIT_ALL + ANYBODY, OTHERS + HOME
    assert not compared(wider, narrower, caller=LEAD).widens
    monkeypatch.setattr(part, "MAX_DECISIONS", 0)
    found = compared(wider, narrower, caller=LEAD)
    assert found.widens and "too many" in found.unseen[0].text


# Conditions on a resource, and resources that meet them or do not; more than the samples are made from.
CONDITIONS = (
    "context.target.tenant == principal.tenant",
    'context.target.tenant == "globex"',
    'context.target.owner == ""',
    "context.target.owner == principal.on_behalf_of",
    'context.target.owner like "own*er"',
    'context.target.type == "Shipment"',
    '["Note", "Order"].contains(context.target.type)',
    "context.target.type == resource.namespace",
    "principal.roles.contains(context.target.owner)",
    "context.target.tenant == context.target.owner",
    'context.target == Resource::"7"',
    "context.approved",
)
TYPES, OWNERS = ("", "Shipment", "Note", "Letter"), ("", "ann", "zoe", "owner", "own a ner", "keeper", "globex")
RESOURCES = [
    Resource(resource_type=kind, resource_id=number, tenant=tenant, owner=owner)
    for kind, number, tenant, owner in product(TYPES, ("7", "8"), ("", "zeta", "globex", "acme"), OWNERS)
]


def random_rules(random: Random) -> str:
    def one(number: int) -> str:
        effect = random.choice(["forbid", "permit", '@obligation("needs_approval") forbid'])
        parts = [random.choice(["", "!"]) + f"({condition})" for condition in random.sample(CONDITIONS, 2)]
        both = random.choice([" && ", " || "]).join(parts)
        return f'@id("r{number}") {effect} (principal, {CALL}, resource) when {{ context has target && ({both}) }};'

    return PERMIT_ALL + "\n".join(one(number) for number in range(random.randint(0, 3)))


@pytest.mark.parametrize("seed", range(20))
def test_no_resource_is_found_for_which_a_call_widens_unseen(seed: int) -> None:
    random = Random(seed)
    old, new = random_rules(random), random_rules(random)
    caller = a_caller("ann", tenant="zeta", on_behalf_of="zoe", roles=["keeper"])
    if compared(old, new, caller=caller).widens:
        return
    engines = [PolicyEngine.from_text(text) for text in (old, new)]
    order = [FORBID, ASK, PERMIT]
    for target in random.sample(RESOURCES, 80):
        before, after = (call_decision(engine, caller, TOOLS[0], target=target).effect for engine in engines)
        assert order.index(after) <= order.index(before), target


# --- approvals

APPROVE = 'action == Action::"approve"'
ANYBODY = f'@id("any") permit (principal, {APPROVE}, resource);'
SELF = f'@id("self") permit (principal, {APPROVE}, resource) when {{ context.own_request }};'
LEADS = f'@id("leads") permit (principal in Role::"lead", {APPROVE}, resource);'
HOME = ANYBODY.replace(";", " when { context.requester_tenant == principal.tenant };")
ANYWHERE = ANYBODY.replace(";", ' when { context.requester_tenant like "*" };')
LEAD = a_caller("ben", tenant="zeta", roles=["lead"])


def approvals(old: str, new: str, caller: Caller = LEAD) -> dict[str, tuple[int, int]]:
    """Circumstance -> how many tools are gained and lost."""
    found = compared(PERMIT_ALL + old, PERMIT_ALL + new, caller=caller)
    assert not found.unseen
    assert found.widens == any(change.approve_gained for change in found.changes)
    return {told(c): (len(c.approve_gained), len(c.approve_lost)) for c in at_hand(found)}


def test_own_requests_that_may_be_approved_widen() -> None:
    assert approvals(ANYBODY, ANYBODY + SELF) == {"of its own": (2, 0)}
    assert approvals(ANYBODY + SELF, ANYBODY) == {"of its own": (0, 2)}
    agent = a_caller("bot", tenant="zeta", on_behalf_of="zoe")
    assert approvals(ANYBODY, ANYBODY + SELF, agent) == {"of its own; of whom it acts for": (2, 0)}


def test_requests_of_other_tenants_that_may_be_approved_widen() -> None:
    others = 'of another caller in another tenant; of another caller without a tenant; of another caller in tenant "x"'
    assert approvals(HOME, ANYWHERE) == {others: (2, 0)}
    assert approvals("", ANYWHERE) == {others: (2, 0)}, "without a rule, nobody approves for another tenant"
    assert approvals(ANYWHERE, HOME) == {others: (0, 2)}
    assert approvals(HOME, ANYBODY) == {}, "whoever does not read the requester's tenant stays at home"


def test_an_approver_without_a_tenant_is_tried_as_the_operators_and_as_one_that_came_in_by_a_token() -> None:
    nowhere = a_caller("ben", roles=["lead"])
    by_token = '{0} in another tenant{1}; {0} in tenant "x"{1}'.format(
        "of another caller", ", coming in by a token or a key"
    )
    assert approvals(ANYBODY, ANYWHERE, nowhere) == {by_token: (2, 0)}
    assert approvals(ANYWHERE, ANYBODY, nowhere) == {by_token: (0, 2)}
    assert approvals(ANYBODY, LEADS, nowhere) == {}


def test_the_last_rule_on_approvals_that_goes_widens() -> None:
    clerk = a_caller("cid", tenant="zeta")
    old = PERMIT_ALL + LEADS.replace(' in Role::"lead"', "").replace(";", ' when { principal.clearance == "high" };')
    found = compared(old, PERMIT_ALL, caller=clerk)
    assert [told(c) for c in found.changes] == ["of another caller in its own tenant"]
    assert found.changes[0].widens


def test_approvals_are_told_apart_by_tool_and_by_requester() -> None:
    writes = ANYBODY.replace(";", ' unless { resource.risk == "write" || context.requester == "eve" };')
    found = at_hand(compared(PERMIT_ALL + writes, PERMIT_ALL + ANYBODY, caller=LEAD))
    by_words = {words: c.approve_gained for c in found for words in told(c).split("; ")}
    assert by_words["of another caller in its own tenant"] == (WRITE,)
    assert by_words['of "eve" in its own tenant'] == (READ, WRITE)


def test_the_same_rules_on_approvals_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing_approvals, "_requests", lambda *_: pytest.fail("tried"))
    assert compared(READS + LEADS, PERMIT_ALL + LEADS, caller=LEAD).widens


# --- what cannot be seen


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (READS, READS + 'permit (principal == User::"eve", action, resource);', 'User::"eve"'),
        (READS, READS + 'permit (principal, action, resource) when { principal.scopes.contains("x") };', '"x"'),
        (READS, READS + 'permit (principal, action, resource) when { context.stage == "prod" };', '"prod"'),
        (READS, READS + "permit (principal, action, resource) when { !principal.roles.isEmpty() };", "is new"),
        (READS + "forbid (principal, action, resource) when { !principal.roles.isEmpty() };", READS, "is gone"),
        (
            'permit (principal in Role::"admin", action, resource); ' + READS + SHOWN.split("\n")[1],
            'permit (principal in Role::"admin", action, resource); ' + READS,
            'Role::"admin"',
        ),
        (PERMIT_ALL + ANYBODY, PERMIT_ALL + ANYBODY + SELF + LEADS, 'Role::"lead"'),
    ],
    ids=["subject", "scope", "stage", "new-permit", "gone-forbid", "unchanged-permit", "approver"],
)
def test_what_no_caller_at_hand_can_show_counts_as_widening(old: str, new: str, said: str) -> None:
    found = compared(old, new)
    assert any(said in note.text for note in found.unseen), found.unseen
    assert all(note.where for note in found.unseen) and found.widens


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (READS, READS + 'forbid (principal == User::"eve", action, resource);'),
        (READS + 'permit (principal in Role::"admin", action, resource);', READS),
        (PERMIT_ALL + ANYBODY + LEADS, PERMIT_ALL + ANYBODY),
    ],
    ids=["new-forbid", "gone-permit", "gone-approver"],
)
def test_what_can_only_narrow_needs_no_caller_to_show_it(old: str, new: str) -> None:
    assert compared(old, new) == Comparison(changes=(), unseen=())


def test_other_names_for_the_same_rules_change_nothing() -> None:
    assert compared(OTHERS, OTHERS.replace('@id("target")', '@id("tenants")'), caller=ZETA) == Comparison(
        changes=(), unseen=()
    )


def test_a_caller_that_cedar_cannot_read_is_denied_and_compared_all_the_same() -> None:
    odd = a_caller("\ud800", tenant="zeta")
    (change,) = at_hand(compared(OTHERS + HOME, PERMIT_ALL + ANYBODY, caller=odd))
    assert change.errors and not change.widens
