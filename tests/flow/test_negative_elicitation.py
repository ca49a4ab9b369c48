"""Attacks on the question a caller is asked about its own call: states that were forged, stolen, or used up before."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import pytest

from tests.flow.attackers import FORMS, INVALID_PARAMS, Answer, Wire, nothing_sent, on_record, refused_at, sent, wire
from tests.flow.worlds import World, Worlds, tool
from toolcrib.types import Code, JsonObject, Stage

ORDER, ONE = {"order_id": {"type": "string"}}, {"order_id": "1"}
SHOP = [
    tool("issue_refund", "Give the money for one order back.", properties=ORDER),
    tool("issue_credit", "Give credit for one order.", properties=ORDER),
]
REFUND, PUBLIC = "shop.issue_refund", "shop__issue_refund"
DANGER = '[[tools]]\nmatch = "*"\nrisk = "destructive"\n[gate]\nduplicate_window_s = 0\n'
OWN = """
@id("all") permit (principal, action, resource);
@id("ask") @obligation("needs_approval")
forbid (principal, action == Action::"call", resource)
when { resource.risk == "destructive" } unless { context.approved };
@id("own") permit (principal, action == Action::"approve", resource) when { context.own_request };
"""
ASKS = DANGER + "[approvals]\nelicitation = true\n" + "".join(
    f'[[identity.tokens]]\ntoken = "file:{name}.token"\ncaller = {{subject = "{name}", tenant = "acme"}}\n'
    for name in ("ann", "bo")
)  # fmt: skip
YES = {"approval": {"action": "accept", "content": {"approve": True}}}


def token(name: str) -> str:
    return f"the-secret-token-of-{name}"


@pytest.fixture
def asks(make_world: Worlds) -> World:
    one: World = make_world({"shop": SHOP}, toml=ASKS, policy=OWN)
    for name in ("ann", "bo"):
        (one.folder / f"{name}.token").write_text(token(name))
    return one


async def state_of(client: Wire, *, who: str = "ann", arguments: JsonObject = ONE, name: str = PUBLIC) -> str:
    """The sealed state of a question that was put to this caller."""
    asked = await client.call(name, arguments, token=token(who), can=FORMS)
    assert asked.result["resultType"] == "input_required"
    return str(asked.result["requestState"])


async def says_yes(
    client: Wire, state: Any, *, who: str = "ann", arguments: JsonObject = ONE, name: str = PUBLIC
) -> Answer:
    params = {"requestState": state, "inputResponses": YES}
    return await client.call(name, arguments, token=token(who), can=FORMS, params=params)


def flipped(state: str) -> str:
    head, body = state.split(".", 1)
    data = bytearray(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    data[-1] ^= 1
    return f"{head}.{base64.urlsafe_b64encode(bytes(data)).decode().rstrip('=')}"


def made_up(one: World) -> str:
    """What a state says, by who knows the approval's id, without the seal."""
    plain = json.dumps({"approval_id": one.crib.approvals()[0].approval_id})
    return base64.urlsafe_b64encode(plain.encode()).decode()


ATTACKS: dict[str, Any] = {
    "one bit": lambda one, state: ({"state": flipped(state)}),
    "cut off": lambda one, state: ({"state": state[:-2]}),
    "made up": lambda one, state: ({"state": made_up(one)}),
    "made up, with the head": lambda one, state: ({"state": f"{state.split('.')[0]}.{made_up(one)}"}),
    "plain": lambda one, state: ({"state": json.dumps({"approval_id": one.crib.approvals()[0].approval_id})}),
    "empty": lambda one, state: ({"state": ""}),
    "another caller": lambda one, state: ({"state": state, "who": "bo"}),
    "other arguments": lambda one, state: ({"state": state, "arguments": {"order_id": "2"}}),
    "another tool": lambda one, state: ({"state": state, "name": "shop__issue_credit"}),
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
async def test_a_state_that_is_not_ours_for_this_very_call_is_no_yes(asks: World, attack: Any) -> None:
    async with wire(asks) as client:
        state = await state_of(client)
        before = on_record(asks)
        with nothing_sent(asks):
            answer = await says_yes(client, **attack(asks, state))
        assert answer.error == INVALID_PARAMS, "-32602, the protocol's word for a state that does not verify"
        assert on_record(asks) == before, "it never became a call"
        assert {known.state for known in asks.crib.approvals()} == {"pending"}
        refused_at(asks, before[0].trace_id, REFUND, Stage.GATE, code=Code.NEEDS_APPROVAL, why="needs_approval")
        assert (await says_yes(client, state)).ran, "the honest answer still counts"


async def test_a_state_of_another_gateway_is_no_yes(asks: World) -> None:
    async with wire(asks) as before_restart:
        state = await state_of(before_restart)
    async with wire(asks) as client:
        with nothing_sent(asks):
            assert (await says_yes(client, state)).error == INVALID_PARAMS
    assert [known.state for known in asks.crib.approvals()] == ["pending"]


async def test_a_replayed_yes_runs_nothing_more(asks: World) -> None:
    async with wire(asks) as client:
        state = await state_of(client)
        assert (await says_yes(client, state)).ran
        with nothing_sent(asks):
            again = await says_yes(client, state)
        assert again.told["code"] == Code.NEEDS_APPROVAL
        at_once = await state_of(client, arguments={"order_id": "9"})
        answers = await asyncio.gather(*(says_yes(client, at_once, arguments={"order_id": "9"}) for _ in range(5)))
    assert sum(answer.ran for answer in answers) == 1
    assert sent(asks) == [("shop", "issue_refund")] * 2


async def test_a_yes_that_policy_does_not_take_any_more_is_none(asks: World) -> None:
    async with wire(asks) as client:
        state = await state_of(client)
        (asks.folder / "policy.cedar").write_text(OWN.replace("{ context.own_request }", "{ !context.own_request }"))
        with nothing_sent(asks):
            answer = await says_yes(client, state)
    assert answer.told["code"] == Code.NEEDS_APPROVAL
    assert [known.state for known in asks.crib.approvals()] == ["pending"]
