from __future__ import annotations

import pytest

from toolcrib.gate.arguments import ArgumentChecker
from toolcrib.gate.checks import Named, judge, strictest
from toolcrib.gate.limits import Limited
from toolcrib.types import Code, Decision, Effect, Resource

from .making import PERMIT, call, tool

FORBID = Decision(effect=Effect.FORBID, policies=("no-refunds",))
ASK = Decision(effect=Effect.NEEDS_APPROVAL, policies=("destructive",))
THEIRS = Named(resource=Resource(resource_type="order", resource_id="A-1", tenant="acme"))
FOREIGN = Named(resource=Resource(resource_type="order", resource_id="A-1", tenant="globex"))
LIMITED = Limited(by="tool")


def verdict(proposed=None, **changed):
    """A call that every check lets through, but for what the test changes."""
    given = {
        "tool": tool(),
        "in_reach": True,
        "decision": PERMIT,
        "checker": ArgumentChecker(),
        "tenant": "acme",
        "offered": True,
        "resources": [THEIRS],
        "targets": [PERMIT],
    }
    return judge(proposed or call(), **{**given, **changed})


def test_a_sound_call_is_allowed_and_says_by_which_policies():
    done = verdict()
    assert done.allowed
    assert (done.code, done.check, done.policies) == (Code.OK, "", ("default",))


# Each row fails its own check and every later one, so the row also proves the order.
LATER = [
    ("approval", {"decision": ASK}, {}, Code.NEEDS_APPROVAL),
    ("duplicate", {"earlier_trace": "t1"}, {}, Code.DUPLICATE),
    ("rate", {"limited": LIMITED}, {}, Code.RATE_LIMITED),
    ("resource", {"resources": [THEIRS, FOREIGN]}, {}, Code.NOT_AVAILABLE),
    ("arguments", {}, {"arguments": {"amount": "many"}}, Code.INVALID_ARGUMENTS),
    ("policy", {"decision": FORBID}, {}, Code.NOT_AVAILABLE),
    ("digest", {}, {"offered_digest": "sha256:old"}, Code.CONFLICT),
    ("offered", {"offered": False}, {}, Code.NOT_OFFERED),
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
    ("named", "tenant"),
    [
        (Named(resource=None), "acme"),
        (Named(resource=None, check="policy"), "acme"),
        (FOREIGN, "acme"),
        (THEIRS, ""),
        (Named(resource=Resource(resource_type="order", resource_id="A-1", tenant="")), "acme"),
        (Named(resource=Resource(resource_type="order", resource_id="A-1", tenant="")), ""),
    ],
    ids=["unresolved", "unresolved, policy", "another tenant's", "no tenant", "owner unknown", "nobody's and nobody"],
)
def test_a_resource_that_is_not_plainly_the_callers_is_refused_in_one_way(named, tenant):
    done = verdict(resources=[named], tenant=tenant)
    assert (done.code, done.check) == (Code.NOT_AVAILABLE, "resource")
    assert done.message == verdict(resources=[FOREIGN]).message


def test_where_policy_alone_judges_resources_a_foreign_one_may_pass():
    foreign = Named(resource=FOREIGN.resource, check="policy")
    assert verdict(resources=[foreign]).allowed
    done = verdict(resources=[foreign], targets=[FORBID])
    assert (done.code, done.check, done.policies) == (Code.NOT_AVAILABLE, "resource", ("no-refunds",))


@pytest.mark.parametrize(
    "target",
    [FORBID, Decision(effect=Effect.PERMIT, errors=("attribute not found",))],
    ids=["forbidden", "not evaluated"],
)
def test_policy_may_refuse_one_resource_of_many_and_tells_no_more_than_a_foreign_one(target):
    done = verdict(resources=[THEIRS, THEIRS], targets=[PERMIT, target])
    assert (done.code, done.check) == (Code.NOT_AVAILABLE, "resource")
    assert done.message == verdict(resources=[FOREIGN]).message


def test_a_resource_that_needs_an_approval_makes_the_call_need_one():
    done = verdict(targets=[PERMIT, ASK])
    assert (done.code, done.check, done.policies) == (Code.NEEDS_APPROVAL, "approval", ("destructive",))


def test_of_several_decisions_the_strictest_holds_with_its_own_policies_and_every_error():
    odd = Decision(effect=Effect.FORBID, policies=("other",), errors=("boom",))
    assert strictest(PERMIT, [ASK, PERMIT]) == ASK
    assert strictest(ASK, [FORBID, odd]) == Decision(
        effect=Effect.FORBID, policies=("no-refunds", "other"), errors=("boom",)
    )


def test_a_call_that_names_no_resource_needs_none():
    assert verdict(resources=[], tenant="").allowed


def test_whether_a_tool_was_offered_matters_only_where_it_is_asked_for():
    assert verdict(offered=None).allowed
    assert verdict(offered=False).code is Code.NOT_OFFERED


@pytest.mark.parametrize("by", ["caller", "tenant", "tool", "server"])
def test_a_refusal_by_a_limit_says_which_kind_and_what_to_do(by):
    often, many = verdict(limited=Limited(by=by)), verdict(limited=Limited(by=by, concurrent=True))
    assert (often.code, often.check) == (Code.RATE_LIMITED, "rate")
    assert (many.code, many.check) == (Code.RATE_LIMITED, "concurrent")
    assert often.message != many.message
    assert len({verdict(limited=Limited(by=other)).message for other in ("caller", "tenant", "tool", "server")}) == 4


def test_a_duplicate_names_the_callers_earlier_call_and_is_not_put_to_an_approver():
    done = verdict(decision=ASK, earlier_trace="t1")
    assert (done.code, done.check, done.earlier_trace) == (Code.DUPLICATE, "duplicate", "t1")
    keyed = verdict(call(idempotency_key="k"), earlier_trace="t1")
    assert keyed.code is Code.DUPLICATE
    assert keyed.message != done.message


def test_a_call_that_needs_approval_says_so_last_and_names_the_policy():
    done = verdict(decision=ASK)
    assert (done.code, done.check, done.policies) == (Code.NEEDS_APPROVAL, "approval", ("destructive",))


def test_a_call_that_no_approver_could_be_shown_is_not_put_to_one():
    schema = {"type": "object", "properties": {"ids": {"type": "array"}}}
    huge = call(arguments={"ids": list(range(50_000))})
    done = verdict(huge, tool=tool(schema=schema), decision=ASK, limited=LIMITED)
    assert (done.code, done.check) == (Code.INVALID_ARGUMENTS, "size")
    assert verdict(huge, tool=tool(schema=schema)).allowed


def test_without_limits_or_resources_the_other_checks_still_hold():
    checker = ArgumentChecker()
    assert judge(call(), tool=tool(), in_reach=True, decision=PERMIT, checker=checker).allowed
    assert not judge(call(arguments={}), tool=tool(), in_reach=True, decision=PERMIT, checker=checker).allowed
