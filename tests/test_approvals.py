"""Who may let a waiting call run."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest

from tests.connectors.endpoint import endpoint, response
from tests.gate.making import caller, tool
from toolcrib.approvals import ask_webhook, at_terminal, decide, find_in, webhook_body
from toolcrib.connectors.webhook import signed
from toolcrib.gate.approval import approval_request
from toolcrib.policy.engine import PolicyEngine
from toolcrib.settings import load_settings
from toolcrib.store.sqlite import SqliteStore
from toolcrib.types import CallerKind, Channel, Decision, Effect

NOW = "2026-01-31T12:00:00.000000+00:00"
LATER = "2026-01-31T12:05:00.000000+00:00"
TOO_LATE = "2026-01-31T13:00:00.000000+00:00"
ID = "a1b2c3d4e5f6"
MIA = caller("mia")
SELF_APPROVAL = """
permit (principal, action == Action::"approve", resource) when { context.own_request };
permit (principal, action, resource);
"""
ONLY_MANAGERS = '@id("managers") permit (principal in Role::"manager", action == Action::"approve", resource);'


@pytest.fixture
def store(tmp_path):
    one = SqliteStore(tmp_path / "crib.db")
    one.put_approval(request())
    yield one
    one.close()


def request(**fields):
    made = approval_request(caller("ann"), tool(), {"order_id": "A-1"}, approval_id=ID, now=NOW, ttl_s=1_800)
    return replace(made, **fields)


def asked(store, *, policy=None, text=None, **fields):
    given = {"approval_id": ID, "granted": True, "approver": MIA, "channel": Channel.CLI, "tool": tool(), "now": LATER}
    engine = PolicyEngine.from_text(text) if policy is None else policy
    return decide(store, engine, **{**given, **fields})


def state(store):
    (one,) = store.approvals()
    return one.state


class Says:
    """A policy that says one thing, and remembers whom it was asked about."""

    def __init__(self, decision):
        self.decision = decision
        self.approvers = []

    def decide_approval(self, approver, **_more):
        self.approvers.append(approver)
        return self.decision


def test_another_person_may_grant_once(store):
    done = asked(store)
    assert (done.status, done.done, done.granted) == ("done", True, True)
    assert (store.approvals()[0].state, store.approvals()[0].decided_by) == ("granted", "mia")
    assert asked(store).status == "not_pending"
    assert asked(store, granted=False).status == "not_pending"
    assert state(store) == "granted"


@pytest.mark.parametrize(
    "approver", [caller("ann"), caller("ann", roles=frozenset({"admin"})), caller("ann", tenant="")]
)
def test_nobody_grants_their_own_call(store, approver):
    assert asked(store, approver=approver).status == "not_allowed"
    assert state(store) == "pending"


def test_a_policy_may_let_callers_approve_their_own_calls(store):
    assert asked(store, text=SELF_APPROVAL, approver=caller("ann")).done


def test_a_policy_that_names_approvers_decides_alone(store):
    refused = asked(store, text=ONLY_MANAGERS)
    assert (refused.status, state(store)) == ("not_allowed", "pending")
    assert asked(store, text=ONLY_MANAGERS, approver=caller("mia", roles=frozenset({"manager"}))).policies == (
        "managers",
    )


def test_anybody_who_is_asked_may_refuse_and_it_cannot_be_granted_after(store):
    assert asked(store, granted=False, approver=caller("ann"), policy=Says(None)).done
    assert state(store) == "denied"
    assert asked(store).status == "not_pending"


@pytest.mark.parametrize(
    "decision",
    [
        Decision(effect=Effect.FORBID),
        Decision(effect=Effect.NEEDS_APPROVAL, policies=("x",)),
        Decision(effect=Effect.PERMIT, errors=("broken",)),
    ],
    ids=["forbid", "needs-approval", "error"],
)
def test_anything_but_a_clean_permit_grants_nothing(store, decision):
    assert asked(store, policy=Says(decision)).status == "not_allowed"
    assert state(store) == "pending"


def test_while_no_policy_can_be_used_nothing_is_granted_and_refusing_still_works(store):
    given = {"approval_id": ID, "approver": MIA, "channel": Channel.CLI, "tool": tool(), "now": LATER}
    assert decide(store, None, granted=True, **given).status == "not_allowed"
    assert decide(store, None, granted=False, **given).done


@pytest.mark.parametrize(
    "now_in_service",
    [None, tool(digest="sha256:bb"), tool("shop.other")],
    ids=["withdrawn", "changed", "other"],
)
def test_a_tool_that_is_not_the_one_asked_for_is_not_granted(store, now_in_service):
    assert asked(store, tool=now_in_service).status == "changed"
    assert state(store) == "pending"
    assert asked(store, tool=now_in_service, granted=False).done


def test_an_expired_request_can_be_decided_by_nobody(store):
    assert asked(store, now=TOO_LATE).status == "expired"
    assert asked(store, now=TOO_LATE, granted=False).status == "expired"
    assert asked(store, now=request().expires_at).status == "expired"
    assert state(store) == "pending"


@pytest.mark.parametrize("approval_id", ["", "a1b2c", "zzzzzzzz", ID + "0", "%", "a1b2c%"])
def test_an_unknown_or_too_short_id_is_not_found(store, approval_id):
    assert asked(store, approval_id=approval_id).status == "not_found"
    assert state(store) == "pending"


def test_a_beginning_of_an_id_counts_only_where_it_is_the_only_one():
    one, other = request(), request(approval_id="a1b2c3ffffff")
    assert find_in([one, other], "a1b2c3d") == one
    assert find_in([one, other], "a1b2c3") is None
    assert find_in([one, request(approval_id=ID + "77")], ID) == one


def test_of_two_approvers_at_once_one_decides(store):
    class Racing(Says):
        def decide_approval(self, approver, **more):
            store.decide_approval(ID, granted=False, by="bo", now=LATER)
            return super().decide_approval(approver, **more)

    late = asked(store, policy=Racing(Decision(effect=Effect.PERMIT)))
    assert (late.status, state(store)) == ("not_pending", "denied")
    assert "bo" in late.message


def test_the_person_at_the_terminal_is_another_subject_than_the_local_operator():
    operator = caller(
        "local-operator", kind=CallerKind.AGENT, roles=frozenset({"ops"}), on_behalf_of="x", acting_for=MIA
    )
    approver = at_terminal(operator, name="ann")
    assert (approver.subject, approver.kind, approver.on_behalf_of, approver.acting_for) == (
        "ann",
        CallerKind.USER,
        "",
        None,
    )
    assert (approver.tenant, approver.roles) == (operator.tenant, operator.roles)


# --- the webhook ---


def hooked(tmp_path, url, *, secret="whsec-shared"):
    (tmp_path / "secret").write_text(secret + "\n")
    text = f'[crib]\nname = "t"\nenvironment = "test"\n[approvals]\nwebhook = "{url}"\nwebhook_secret = "file:secret"\n'
    (tmp_path / "toolcrib.toml").write_text(text)
    return load_settings(tmp_path)


def deciding(*, by="mia", decision="granted", secret="whsec-shared"):
    def answer(asked_for):
        said = {"approval_id": json.loads(asked_for.body)["approval_id"], "decision": decision, "by": by}
        body = json.dumps(said).encode()
        return response(body, x_toolcrib_signature=signed(body, secret=secret, at=time.time()))

    return answer


async def through_webhook(tmp_path, store, answer, *, policy=None, **more):
    live = approval_request(
        caller("ann"),
        tool(),
        {"order_id": "A-1", "password": "hush"},
        approval_id="f" * 12,
        now=_soon(),
        ttl_s=900,
        **more,
    )
    store.put_approval(live)
    async with endpoint(answer) as made:
        settings = hooked(tmp_path, made.url + "/hook")
        engine = PolicyEngine.from_text() if policy is None else policy
        decided = await ask_webhook(settings, store, engine, live, tool())
    return decided, next(a for a in store.approvals() if a.approval_id == live.approval_id), made.seen


def _soon():
    from toolcrib.curation import now

    return now()


async def test_a_webhook_decides_in_the_name_of_a_person(tmp_path, store):
    decided, after, (sent,) = await through_webhook(tmp_path, store, deciding())
    assert decided.done
    assert (after.state, after.decided_by) == ("granted", "mia")
    assert "hush" not in sent.body.decode()


async def test_a_webhook_may_refuse(tmp_path, store):
    decided, after, _ = await through_webhook(tmp_path, store, deciding(decision="denied"))
    assert (decided.done, after.state) == (True, "denied")


async def test_a_webhook_that_names_the_caller_as_approver_grants_nothing(tmp_path, store):
    decided, after, _ = await through_webhook(tmp_path, store, deciding(by="ann"))
    assert (decided.status, after.state) == ("not_allowed", "pending")


async def test_a_webhooks_approver_is_known_by_name_and_tenant_alone(tmp_path, store):
    policy = Says(Decision(effect=Effect.PERMIT))
    await through_webhook(tmp_path, store, deciding(), policy=policy)
    (approver,) = policy.approvers
    assert (approver.subject, approver.tenant, approver.roles, approver.kind) == ("mia", "acme", frozenset(), "user")


@pytest.mark.parametrize(
    "answer",
    [lambda _asked: response(b"", status="202 Accepted"), deciding(secret="another"), lambda _asked: response(b"x")],
    ids=["later", "unsigned", "noise"],
)
async def test_without_a_decision_to_trust_the_request_waits(tmp_path, store, answer):
    decided, after, seen = await through_webhook(tmp_path, store, answer)
    assert (decided, after.state, len(seen)) == (None, "pending", 1)


async def test_without_a_webhook_nobody_is_told(tmp_path, store):
    (tmp_path / "toolcrib.toml").write_text('[crib]\nname = "t"\n')
    assert await ask_webhook(load_settings(tmp_path), store, None, request(), tool()) is None


async def test_a_webhook_whose_secret_is_gone_is_not_told(tmp_path, store, caplog):
    settings = hooked(tmp_path, "http://127.0.0.1:9/hook")
    (tmp_path / "secret").unlink()
    assert await ask_webhook(settings, store, None, request(), tool()) is None
    assert "secret" in caplog.text


def test_a_webhook_is_told_what_an_approver_decides_by():
    told = webhook_body(request(on_behalf_of="cy", channel="http", policies=("refunds",)), tool())
    assert told == {
        "approval_id": ID,
        "caller": {"subject": "ann", "tenant": "acme", "on_behalf_of": "cy", "channel": "http"},
        "tool": {"tool_id": "shop.issue_refund", "digest": "sha256:aa", "risk": "destructive"},
        "arguments_preview": '{"order_id": "A-1"}',
        "policies": ["refunds"],
        "created_at": NOW,
        "expires_at": "2026-01-31T12:30:00.000000+00:00",
    }
