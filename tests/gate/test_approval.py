from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.gate.approval import approval_key, approval_request
from toolcrib.gate.preview import preview
from toolcrib.types import CallerKind, Channel

from .making import caller, tool

NOW = "2026-01-31T12:00:00.000000+00:00"


def key(arguments=None, *, who=None, what=None):
    return approval_key(who or caller(), what or tool(), {"order_id": "A-1"} if arguments is None else arguments)


@pytest.mark.parametrize(
    "other",
    [
        key({"order_id": "A-2"}),
        key({"order_id": "A-1", "amount": 1}),
        key({"order_id": ["A-1"]}),
        key(who=caller("bo")),
        key(who=caller(tenant="globex")),
        key(who=caller(on_behalf_of="cy")),
        key(who=caller(kind=CallerKind.AGENT)),
        key(what=tool("shop.void_order")),
        key(what=tool(digest="sha256:bb")),
    ],
    ids=["argument", "more arguments", "another type", "subject", "tenant", "delegation", "kind", "tool", "digest"],
)
def test_an_approval_is_bound_to_caller_tool_definition_and_arguments(other):
    assert other != key()


def test_the_same_call_written_differently_has_the_same_key():
    assert key({"a": 1, "b": [1.0, "ü"]}) == key({"b": [1, "ü"], "a": 1.0})


def test_what_policy_reads_of_a_caller_beyond_identity_does_not_bind():
    assert key(who=caller(roles=frozenset({"clerk"}))) == key()


def test_integers_past_2_to_the_53rd_are_told_apart():
    assert key({"id": 2**53 + 1}) != key({"id": 2**53})
    assert key({"id": 2**53 + 1}) != key({"id": str(2**53 + 1)})
    assert key({"id": 2**53 + 1}) == key({"id": 2**53 + 1})


@pytest.mark.parametrize("value", [float("nan"), {1}, "\ud800"], ids=["nan", "set", "surrogate"])
def test_what_is_not_json_has_no_key(value):
    with pytest.raises(ValueError):
        key({"a": value})


SIMPLE = st.dictionaries(st.text(max_size=3), st.integers(-9, 9) | st.text(max_size=3) | st.booleans(), max_size=3)


@given(SIMPLE, SIMPLE)
def test_equal_keys_mean_equal_arguments(one, other):
    same = one == other and all(type(one[name]) is type(other[name]) for name in one)
    assert (key(one) == key(other)) == same


def test_a_request_is_pending_bound_and_expires():
    request = approval_request(caller(), tool(), {"order_id": "A-1"}, approval_id="r1", now=NOW, ttl_s=90.5)
    assert request.state == "pending"
    assert request.key == key({"order_id": "A-1"})
    assert (request.subject, request.tenant, request.tool_id, request.digest) == (
        "ann",
        "acme",
        "shop.issue_refund",
        "sha256:aa",
    )
    assert request.created_at == NOW
    assert request.expires_at == "2026-01-31T12:01:30.500000+00:00"


def test_stamps_sort_as_text_whatever_offset_and_width_now_has():
    request = approval_request(caller(), tool(), {}, approval_id="r1", now="2026-01-31T13:00:00+01:00", ttl_s=60)
    assert request.created_at == NOW
    assert request.created_at < request.expires_at
    assert datetime.fromisoformat(request.expires_at) > datetime.fromisoformat(request.created_at)


def test_a_request_holds_the_preview_of_its_arguments():
    arguments = {"order_id": "A-1", "password": "hush"}
    request = approval_request(caller(), tool(), arguments, approval_id="r1", now=NOW, ttl_s=60)
    assert request.arguments_preview == preview(arguments)


def test_an_approval_is_bound_to_whom_the_caller_acts_for():
    ann, bo = caller("ann"), caller("bo")
    agent = caller("bot", kind=CallerKind.AGENT)
    keys = {
        key(who=agent),
        key(who=caller("bot", kind=CallerKind.AGENT, acting_for=ann)),
        key(who=caller("bot", kind=CallerKind.AGENT, acting_for=bo)),
        key(who=caller("bot", kind=CallerKind.AGENT, acting_for=caller("ann", tenant="globex"))),
        key(who=caller("bot", kind=CallerKind.AGENT, acting_for=caller("ann", acting_for=bo))),
        key(who=caller("bot", kind=CallerKind.AGENT, on_behalf_of="ann")),
    }
    assert len(keys) == 6


def test_a_request_says_for_whom_where_and_by_which_rules():
    agent = caller("bot", kind=CallerKind.AGENT, acting_for=caller("ann"))
    request = approval_request(
        agent, tool(), {}, approval_id="r1", now=NOW, ttl_s=60, channel=Channel.HTTP, policies=["refunds", "risk"]
    )
    assert (request.subject, request.on_behalf_of, request.channel, request.policies) == (
        "bot",
        "ann",
        "http",
        ("refunds", "risk"),
    )
    bare = approval_request(caller(on_behalf_of="cy"), tool(), {}, approval_id="r1", now=NOW, ttl_s=60)
    assert (bare.on_behalf_of, bare.channel, bare.policies) == ("cy", "", ())
