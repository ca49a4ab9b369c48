from __future__ import annotations

import pytest

from toolcrib.gate.arguments import ArgumentChecker
from toolcrib.gate.checks import judge
from toolcrib.types import Code, Decision, Effect, Resource

from .making import PERMIT, call, tool

FORBID = Decision(effect=Effect.FORBID, policies=("no-refunds",))
ASK = Decision(effect=Effect.NEEDS_APPROVAL, policies=("destructive",))
THEIRS = Resource(resource_type="order", resource_id="A-1", tenant="acme")
FOREIGN = Resource(resource_type="order", resource_id="A-1", tenant="globex")


def verdict(proposed=None, **changed):
    """A call that every check lets through, but for what the test changes."""
    given = {
        "tool": tool(),
        "in_reach": True,
        "decision": PERMIT,
        "checker": ArgumentChecker(),
        "tenant": "acme",
        "resources": [THEIRS],
        "allow_rate": lambda: True,
    }
    return judge(proposed or call(), **{**given, **changed})


def test_a_sound_call_is_allowed_and_says_by_which_policies():
    done = verdict()
    assert done.allowed
    assert (done.code, done.check, done.policies) == (Code.OK, "", ("default",))


# Each row fails its own check and every later one, so the row also proves the order.
LATER = [
    ("rate", {"allow_rate": lambda: False, "decision": ASK}, {}, Code.RATE_LIMITED),
    ("resource", {"resources": [THEIRS, FOREIGN]}, {}, Code.NOT_AVAILABLE),
    ("arguments", {}, {"arguments": {"amount": "many"}}, Code.INVALID_ARGUMENTS),
    ("policy", {"decision": FORBID}, {}, Code.NOT_AVAILABLE),
    ("digest", {}, {"offered_digest": "sha256:old"}, Code.CONFLICT),
    ("reach", {"in_reach": False}, {}, Code.NOT_AVAILABLE),
    ("known", {"tool": None}, {}, Code.NOT_AVAILABLE),
]


@pytest.mark.parametrize("n_failing", range(1, len(LATER) + 1), ids=[row[0] for row in LATER])
def test_the_first_check_that_fails_gives_the_verdict(n_failing):
    changed: dict = {}
    proposed: dict = {}
    for _, world, ask, _ in LATER[:n_failing]:
        changed |= world
        proposed |= ask
    check, _, _, code = LATER[n_failing - 1]
    done = verdict(call(**proposed), **changed)
    assert (done.check, done.code) == (check, code)
    assert not done.allowed


def test_missing_out_of_reach_and_forbidden_tools_give_one_answer():
    told = {
        (done.code, done.message, done.faults, done.approval_id)
        for done in (
            verdict(call("nowhere.at_all", {"x": 1}), tool=None, in_reach=False, decision=None),
            verdict(call("shop.hidden"), in_reach=False, decision=None),
            verdict(decision=FORBID),
            verdict(decision=None),
        )
    }
    assert len(told) == 1
    message = told.pop()[1]
    assert "nowhere" not in message
    assert "refund" not in message


def test_a_tool_out_of_reach_tells_nothing_through_its_digest_or_schema():
    seen = [
        verdict(call(arguments=arguments, offered_digest=digest), in_reach=False, decision=None)
        for arguments in ({}, {"order_id": "A-1"}, "text")
        for digest in ("", "sha256:aa", "sha256:old")
    ]
    assert len({repr(done) for done in seen}) == 1


def test_a_decision_with_errors_never_permits():
    broken = Decision(effect=Effect.PERMIT, errors=("attribute not found",))
    assert verdict(decision=broken).code is Code.NOT_AVAILABLE


def test_the_digest_counts_only_where_one_was_offered():
    assert verdict(call(offered_digest="")).allowed
    assert verdict(call(offered_digest="sha256:aa")).allowed
    assert verdict(call(offered_digest="sha256:ab")).code is Code.CONFLICT


def test_bad_arguments_come_with_their_faults_and_the_message_holds_no_value():
    done = verdict(call(arguments={"order_id": "A-1", "amount": "very-private"}))
    assert done.code is Code.INVALID_ARGUMENTS
    assert [fault.path for fault in done.faults] == ["/amount"]
    assert "/amount: expected number" in done.message
    assert "very-private" not in done.message


def test_a_schema_that_cannot_be_compiled_lets_nothing_through():
    done = verdict(tool=tool(schema={"type": "int"}))
    assert (done.code, done.check) == (Code.UNAVAILABLE, "schema")


@pytest.mark.parametrize(
    ("resource", "tenant"),
    [
        (None, "acme"),
        (FOREIGN, "acme"),
        (THEIRS, ""),
        (Resource(resource_type="order", resource_id="A-1", tenant=""), "acme"),
        (Resource(resource_type="order", resource_id="A-1", tenant=""), ""),
    ],
    ids=["unresolved", "another tenant's", "caller without tenant", "owner unknown", "nobody's and nobody"],
)
def test_a_resource_that_is_not_plainly_the_callers_is_refused_in_one_way(resource, tenant):
    done = verdict(resources=[resource], tenant=tenant)
    assert (done.code, done.check) == (Code.NOT_AVAILABLE, "resource")
    assert done.message == verdict(resources=[FOREIGN]).message


def test_a_call_that_names_no_resource_needs_none():
    assert verdict(resources=[], tenant="").allowed


def test_the_allowance_is_spent_once_and_only_by_sound_calls():
    asked = []

    def allow() -> bool:
        asked.append(1)
        return True

    verdict(call(arguments={}), allow_rate=allow)
    verdict(decision=FORBID, allow_rate=allow)
    verdict(resources=[FOREIGN], allow_rate=allow)
    assert asked == []
    verdict(allow_rate=allow)
    assert asked == [1]


def test_a_call_that_needs_approval_says_so_last_and_names_the_policy():
    done = verdict(decision=ASK)
    assert (done.code, done.check, done.policies) == (Code.NEEDS_APPROVAL, "approval", ("destructive",))


def test_a_call_that_no_approver_could_be_shown_is_not_put_to_one():
    schema = {"type": "object", "properties": {"ids": {"type": "array"}}}
    huge = call(arguments={"ids": list(range(50_000))})
    spent = []
    done = verdict(huge, tool=tool(schema=schema), decision=ASK, allow_rate=lambda: not spent.append(1))
    assert (done.code, done.check, spent) == (Code.INVALID_ARGUMENTS, "size", [])
    assert verdict(huge, tool=tool(schema=schema)).allowed


def test_without_limits_or_resources_the_other_checks_still_hold():
    checker = ArgumentChecker()
    assert judge(call(), tool=tool(), in_reach=True, decision=PERMIT, checker=checker).allowed
    assert not judge(call(arguments={}), tool=tool(), in_reach=True, decision=PERMIT, checker=checker).allowed
