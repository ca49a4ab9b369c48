"""Who else a change of policy lets do more, besides the callers at hand: strangers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

import pytest

from toolcrib.policy import strangers
from toolcrib.policy.changes import Asker, Change
from toolcrib.policy.compare import Comparison, compare
from toolcrib.policy.loaded import LoadedPolicy
from toolcrib.types import ApprovalRequest, Caller, CallerKind, Channel, Effect, Resource, Risk

from .making import PERMIT_ALL, a_caller, a_tool

TOOLS = (
    a_tool("files.read"),
    a_tool("files.write", risk=Risk.WRITE, required_scopes=("a",), tenants=("acme",)),
    a_tool("pay.out", namespace="pay", required_scopes=("a", "b")),
)
IDS = tuple(tool.tool_id for tool in TOOLS)
SUPPORT = a_caller("ann", tenant="acme", roles=["support"])
RISKS = dict.fromkeys(Channel, "allow")
EFFECTS = [Effect.FORBID, Effect.NEEDS_APPROVAL, Effect.PERMIT]


def loaded(old: str, new: str) -> list[LoadedPolicy]:
    return [LoadedPolicy.from_text(text, source=name) for text, name in ((old, "old"), (new, "new"))]


def compared(old: str, new: str, *callers: Caller) -> Comparison:
    askers = [Asker(name=one.subject, source="profile", caller=one) for one in callers or (SUPPORT,)]
    return compare(*loaded(old, new), tools=TOOLS, askers=askers, unknown_risk=RISKS)


def opened(found: Comparison) -> list[Change]:
    return [change for change in found.changes if change.asker.source == "stranger"]


def permit(principal: str = "principal", condition: str = "true", action: str = "action") -> str:
    return f"permit ({principal}, {action}, resource) when {{ {condition} }};"


ROLE, TENANT = 'principal in Role::"support"', 'principal.tenant == "acme"'
SCOPE = 'principal.scopes.contains("a")'


@pytest.mark.parametrize(
    ("old", "new", "who"),
    [
        (permit(ROLE), permit(), "for a caller without these roles"),
        (permit(condition=TENANT), permit(), "for a caller with another tenant"),
        (
            permit(condition=TENANT),
            permit(condition=f"{TENANT} || principal is Agent"),
            "for an agent without a tenant",
        ),
        (
            permit(ROLE, TENANT),
            permit(condition=TENANT),
            'for a caller with tenant "acme", without these roles',
        ),
        (permit("principal is User"), permit(), "for a workload"),
        (permit('principal == User::"ann"'), permit("principal is User"), "for a user of another name"),
        (
            permit(condition='context.environment == "test"'),
            permit(),
            "for a caller with another environment",
        ),
        (
            PERMIT_ALL + f"forbid (principal, action, resource) unless {{ {SCOPE} }};",
            PERMIT_ALL + f"forbid (principal, action, resource) unless {{ {SCOPE} || principal is Workload }};",
            "for a workload without these scopes",
        ),
        (
            permit(condition="principal.roles.isEmpty()"),
            permit(condition="principal.roles.isEmpty() || !principal.roles.isEmpty()"),
            "for a caller with other roles",
        ),
    ],
    ids=["role", "tenant", "or-agent", "role-and-tenant", "kind", "subject", "environment", "scope", "any-role"],
)
def test_a_condition_that_no_caller_at_hand_shows_and_that_goes_widens(old: str, new: str, who: str) -> None:
    caller = replace(SUPPORT, environment="test", scopes=frozenset("a"), roles=frozenset({"support"}))
    if "isEmpty" in old:
        caller = replace(caller, roles=frozenset())
    found = compared(old, new, caller)
    assert who in [each for change in opened(found) for each in change.circumstances]
    assert not [change for change in found.changes if change.asker.source == "profile"], "it loses and gains nothing"
    assert opened(found)[0].found_gained == IDS and found.widens


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (permit(), permit()),
        (permit(ROLE), permit(ROLE).replace("permit (", '@id("x") permit (')),
        (permit(), permit(ROLE)),
        (permit(condition=TENANT), permit(condition=f"{TENANT} && principal is User")),
        (permit(ROLE, TENANT), permit(condition=f"{ROLE} && {TENANT}")),
        (
            PERMIT_ALL + f"forbid (principal, action, resource) when {{ {TENANT} }};",
            PERMIT_ALL + f"forbid (principal, action, resource) when {{ {TENANT} || {SCOPE} }};",
        ),
        (permit(condition=f"{SCOPE} || {TENANT}"), permit(condition=f"{TENANT} || {SCOPE}")),
    ],
    ids=["same", "renamed", "narrower", "and", "moved", "forbids-more", "turned-round"],
)
def test_what_opens_nothing_to_anybody_is_no_alarm(old: str, new: str) -> None:
    found = compared(old, new, replace(SUPPORT, scopes=frozenset("a")))
    assert not found.widens and not opened(found) and not found.unseen


def test_strangers_are_tried_on_resources_and_as_approvers() -> None:
    own = "when { context has target && context.target.tenant != principal.tenant }"
    rule = PERMIT_ALL + f'forbid (principal, action == Action::"call", resource) {own}'
    found = compared(f"{rule} unless {{ {ROLE} }};", f"{rule} unless {{ {ROLE} || principal is Agent }};")
    assert {each.partition(";")[0] for change in opened(found) for each in change.circumstances} <= {
        "for an agent without a tenant, without these roles",
        "for an agent with another tenant, without these roles",
    }
    assert opened(found)[0].calls[0].tool_id == IDS[0]
    assert all("; target: another tenant" in each for change in opened(found) for each in change.circumstances[:1])
    approve = permit(ROLE, "!context.own_request", 'action == Action::"approve"')
    found = compared(PERMIT_ALL + approve, PERMIT_ALL + approve.replace(ROLE, "principal"))
    assert opened(found)[0].approve_gained == IDS
    assert 'for a caller with tenant "acme", without these roles; requests of another caller in its own tenant' in [
        each for change in opened(found) for each in change.circumstances
    ]


def test_whoever_has_what_a_resource_names_is_tried_though_no_rule_says_its_word() -> None:
    held = 'forbid (principal, action == Action::"call", resource) when { context has target } unless {'
    owns = "context has target && principal.roles.contains(context.target.owner)"
    old, new = (f"{PERMIT_ALL}{held} {more} }};" for more in (f"{owns} && {TENANT}", owns))
    found = compared(old, new, replace(SUPPORT, roles=frozenset({"keeper"})))
    told = [each for change in opened(found) for each in change.circumstances]
    assert 'for a caller with another tenant, with other roles; target: owner "(other)"' in told


def test_over_other_channels_than_those_seen_a_caller_is_a_stranger() -> None:
    web = PERMIT_ALL + 'forbid (principal, action, resource) when { context.channel == "http" };'
    seen = Asker(name="ann", source="traces", caller=SUPPORT, channels=(Channel.CLI, Channel.STDIO))
    found = compare(*loaded(web, PERMIT_ALL), tools=TOOLS, askers=[seen], unknown_risk=RISKS)
    assert [change.channels for change in opened(found)] == [(Channel.HTTP,)]


def test_whoever_acts_for_another_does_not_stand_for_itself_alone() -> None:
    agent = a_caller("bot", kind=CallerKind.AGENT, tenant="acme", acting_for=a_caller("zoe"))
    found = compared(permit(condition="principal is User"), permit(), agent)
    assert "for an agent" in [each for change in opened(found) for each in change.circumstances]


def test_a_few_changes_show_every_tool_that_opens() -> None:
    held = "principal.scopes.containsAll(resource.required_scopes)"
    found = compared(permit(ROLE, held), permit(condition=held))
    assert frozenset(tool_id for change in opened(found) for tool_id in change.found_gained) == frozenset(IDS)
    assert len(opened(found)) == 1


def test_strangers_that_are_too_many_to_try_count_as_widening(monkeypatch: pytest.MonkeyPatch) -> None:
    old = permit(ROLE, f'{TENANT} && context.stage == "x"') + "forbid (principal, action, resource);"
    new = permit(condition=f'{TENANT} && context.stage == "x"') + "forbid (principal, action, resource);"
    caller = replace(SUPPORT, stage="x")
    assert not compared(old, new, caller).widens
    monkeypatch.setattr(strangers, "MAX_STRANGERS", 0)
    found = compared(old, new, caller)
    assert found.widens and not found.changes
    assert "kinds of callers" in found.unseen[-1].text


def test_a_caller_that_is_read_in_a_way_not_seen_through_counts_as_widening() -> None:
    rule = permit(condition='(if principal.tenant == "acme" then principal.clearance else "x") == "secret"')
    closed = "forbid (principal, action, resource);"
    found = compared(closed, rule + closed, replace(SUPPORT, clearance="secret"))
    assert any("kinds of callers" in note.text for note in found.unseen) and found.widens


# --- nobody is found to whom something opens unseen

HEADS = (
    "principal",
    ROLE,
    'principal in Role::"b"',
    "principal is Agent",
    "principal is User",
    'principal == User::"e"',
)
CONDITIONS = (
    TENANT,
    'principal.tenant like "ac*"',
    '["acme", "globex"].contains(principal.tenant)',
    "resource.tenants.contains(principal.tenant)",
    'principal.roles.containsAll(["support", "b"])',
    "principal.roles.isEmpty()",
    'principal in Role::"b"',
    SCOPE,
    "principal.scopes.containsAll(resource.required_scopes)",
    'principal.kind == "agent"',
    "principal is Workload",
    "principal.clearance == resource.namespace",
    'principal.on_behalf_of != ""',
    'context.stage == "prod"',
    'context.channel == "http"',
    'resource.risk == "read"',
    "true",
)
ON_CALLS = (
    "context has target && context.target.tenant == principal.tenant",
    'context has target && context.target.type == "Note"',
    "context has target && principal.roles.contains(context.target.owner)",
)
ON_APPROVALS = ("context.own_request", "context.requester_tenant == principal.tenant", 'context.requester == "zoe"')
AT_HAND = (
    a_caller("e", tenant="acme", roles=["support", "b"], scopes=["a", "b"], stage="prod", on_behalf_of="zoe"),
    a_caller("f", tenant="globex", kind=CallerKind.AGENT, clearance="pay"),
    a_caller("g", tenant="ac", kind=CallerKind.WORKLOAD, roles=["support"]),
    a_caller("h", tenant="acx", scopes=["a"]),
)


@dataclass(frozen=True, kw_only=True)
class Written:
    """A rule as the fuzzer changes it."""

    effect: str
    principal: str
    action: str
    conditions: tuple[str, ...]
    joined: str

    def text(self) -> str:
        unless = " unless { context.approved }" if "obligation" in self.effect else ""
        return f"{self.effect} ({self.principal}, {self.action}, resource) when {{ {self._condition()} }}{unless};"

    def _condition(self) -> str:
        return self.joined.join(self.conditions)


def written(random: Random) -> Written:
    effect = random.choice(["permit", "permit", "forbid", '@obligation("needs_approval") forbid'])
    actions = ['action == Action::"call"'] if "obligation" in effect else ["action", 'action == Action::"approve"']
    action = random.choice(actions)
    rule = Written(effect=effect, principal=random.choice(HEADS), action=action, conditions=(), joined=" && ")
    some = tuple(one_condition(random, action) for _ in range(random.randint(1, 3)))
    return replace(rule, conditions=some, joined=random.choice([" && ", " || "]))


def one_condition(random: Random, action: str) -> str:
    more = {'action == Action::"call"': ON_CALLS, 'action == Action::"approve"': ON_APPROVALS}.get(action, ())
    known = [one for one in CONDITIONS if "approve" not in action or "context" not in one]
    return random.choice(["", "!"]) + f"({random.choice([*known, *more, *more])})"


def altered(random: Random, rules: Sequence[Written]) -> list[Written]:
    """The rules with one or two small changes, such as people make."""
    made = list(rules)
    for _ in range(random.randint(1, 2)):
        at = random.randrange(len(made))
        rule = made[at]
        made[at] = random.choice(
            [
                replace(rule, conditions=rule.conditions[1:] or ("true",)),
                replace(rule, conditions=(*rule.conditions, one_condition(random, rule.action))),
                replace(rule, principal=random.choice(HEADS)),
                replace(rule, joined=random.choice([" && ", " || "])),
            ]
        )
    return made


def somebody(random: Random) -> Caller:
    return a_caller(
        random.choice(["e", "f", "x"]),
        kind=random.choice(list(CallerKind)),
        tenant=random.choice(["", "acme", "acx", "globex", "zeta"]),
        roles=[role for role in ("support", "b", "z") if random.random() < 0.4],
        scopes=[scope for scope in "abz" if random.random() < 0.5],
        stage=random.choice(["", "prod", "x"]),
        clearance=random.choice(["", "pay", "x"]),
        on_behalf_of=random.choice(["", "zoe"]),
    )


def decided(random: Random, policies: Sequence[LoadedPolicy], caller: Caller) -> tuple[list[int], object]:
    """What both policies say to something that this caller asks for, and what that was."""
    channel, tool = random.choice(list(Channel)), random.choice(TOOLS)
    if random.random() < 0.3:
        request = replace(REQUEST, subject=random.choice(["zoe", "e", "q"]), tenant=random.choice(["", "acme", "q"]))
        said = [p.engine.decide_approval(caller, tool=tool, request=request, channel=channel) for p in policies]
        return [EFFECTS.index(decision.effect) for decision in said], (caller, tool.tool_id, channel, request)
    owner, kind = random.choice(["", "b", "z"]), random.choice(["", "Note"])
    named = Resource(resource_type=kind, resource_id="1", tenant=random.choice(["", "acme", "q"]), owner=owner)
    target = random.choice([None, named])
    said = [
        p.engine.decide_call(caller, tool, channel=channel, unknown_risk="allow", approved=False, target=target)
        for p in policies
    ]
    return [EFFECTS.index(decision.effect) for decision in said], (caller, tool.tool_id, channel, target)


REQUEST = ApprovalRequest(
    approval_id="", key="", subject="", tenant="", tool_id="", digest="", arguments_preview="", state="pending",
    created_at="", expires_at="",
)  # fmt: skip


@pytest.mark.parametrize("seed", range(40))
def test_no_caller_is_found_to_whom_anything_opens_unseen(seed: int) -> None:
    random = Random(seed)
    rules = [written(random) for _ in range(random.randint(2, 5))]
    old, new = ("\n".join(rule.text() for rule in some) for some in (rules, altered(random, rules)))
    if compared(old, new, *AT_HAND).widens:
        return
    policies = loaded(old, new)
    for _ in range(300):
        (before, after), asked = decided(random, policies, somebody(random))
        assert after <= before, asked
