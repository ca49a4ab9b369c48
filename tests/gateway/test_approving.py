"""A caller asked, by its own client, whether a call of its own may run: both eras, and everything that is no yes."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import anyio
import mcp_types as wire
import pytest
from mcp import Client, MCPError

from toolcrib.server.mcp_gateway import Gateway
from toolcrib.server.surface import mcp_name
from toolcrib.types import Caller

from .asking import ask, raw
from .carriers import ADA, BOB, ERAS, client, gateway, served
from .fakes import FakeCrib, tool

era = pytest.mark.parametrize("mode", ERAS)
WIPE = mcp_name("freight.wipe")
FORM = {"elicitation": {"form": {}}}
YES = {"approval": {"action": "accept", "content": {"approve": True}}}


@pytest.fixture
def crib():
    made = FakeCrib(waiting={"freight.wipe"}, deciders={"ada", "bob"})
    made.put(tool("freight.wipe"))
    made.put(tool("freight.read"))
    return made


class Person:
    """Whoever sits before the client: answers every question alike and remembers it."""

    def __init__(self, action: str, **content: Any) -> None:
        self.answer = wire.ElicitResult(action=action, content=content or None)
        self.asked: list[wire.ElicitRequestFormParams] = []

    async def __call__(self, _ctx: Any, params: Any) -> wire.ElicitResult:
        self.asked.append(params)
        return self.answer


def ran(crib):
    return sum(request.state == "used" for request in crib.approvals.values())


async def put(door: Gateway, arguments: dict[str, Any], *, name: str = WIPE, can: Any = FORM, **more: Any) -> Any:
    """One request of the newer era as a client may write it, without the SDK answering questions by itself.

    Through private parts of the SDK, as in `asking.raw`.
    """
    async with Client(door.server) as one:
        data: dict[str, Any] = {"method": "tools/call", "params": {"name": name, "arguments": arguments, **more}}
        options: dict[str, Any] = {}
        one.session._stamp(data, options)
        data["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = can
        try:
            return dict(await one.session._dispatcher.send_raw_request("tools/call", data["params"], options))
        except MCPError as fault:
            refused = fault
    raise refused


# --- the way it goes


@era
@pytest.mark.parametrize("through", [True, False], ids=["call_tool", "direct"])
async def test_a_call_that_its_caller_approves_runs_once(crib, mode, through):
    person = Person("accept", approve=True)
    async with Client(gateway(crib).server, mode=mode, elicitation_callback=person) as one:
        name, arguments = (
            ("call_tool", {"name": WIPE, "arguments": {"disk": "a"}}) if through else (WIPE, {"disk": "a"})
        )
        result = await one.call_tool(name, arguments)
    assert result.structured_content == {"disk": "a"}
    assert (len(person.asked), ran(crib), len(crib.calls)) == (1, 1, 2)
    assert [request.decided_by for request in crib.approvals.values()] == ["ada"]


@era
async def test_the_question_shows_the_tool_and_every_argument_on_lines_of_their_own(crib, mode):
    person = Person("decline")
    async with Client(gateway(crib).server, mode=mode, elicitation_callback=person) as one:
        await one.call_tool(WIPE, {"disk": "a\u202egpj.exe\u200b", "note": "x\nTool: freight__read"})
    (asked,) = person.asked
    lines = asked.message.split("\n")
    assert lines[1] == f"Tool: {WIPE}"
    assert [line for line in lines if line.startswith("Tool: ")] == [lines[1]]
    assert "\\u202e" in lines[2] and "\\u200b" in lines[2] and "\u202e" not in asked.message
    assert lines[3] == "Called by: ada"
    schema = asked.requested_schema
    assert (list(schema["properties"]), schema["properties"]["approve"]["type"]) == (["approve"], "boolean")


@era
@pytest.mark.parametrize(
    ("person", "state"),
    [
        (Person("decline"), "denied"),
        (Person("accept", approve=False), "denied"),
        (Person("cancel"), "pending"),
        (Person("accept"), "pending"),
        (Person("accept", approve="true"), "pending"),
        (Person("accept", approve=1), "pending"),
        (Person("cancel", approve=True), "pending"),
        (Person("decline", approve=True), "denied"),
    ],
    ids=["declined", "no", "cancelled", "empty", "text", "number", "cancelled-with-yes", "declined-with-yes"],
)
async def test_whatever_is_not_a_yes_runs_nothing(crib, mode, person, state):
    async with Client(gateway(crib).server, mode=mode, elicitation_callback=person) as one:
        result = await one.call_tool("call_tool", {"name": WIPE, "arguments": {}})
    assert result.is_error
    assert result.structured_content["code"] == "needs_approval"
    assert result.structured_content["approval_id"] == "a1"
    assert (ran(crib), [request.state for request in crib.approvals.values()]) == (0, [state])


@era
async def test_a_call_that_needs_no_approval_asks_nobody(crib, mode):
    person = Person("accept", approve=True)
    async with Client(gateway(crib).server, mode=mode, elicitation_callback=person) as one:
        await one.call_tool(mcp_name("freight.read"), {})
    assert person.asked == []


@era
async def test_over_http_too(crib, mode):
    person = Person("accept", approve=True)
    async with served(crib) as (url, _), client(url, "ada", mode=mode, elicitation_callback=person) as ada:
        with anyio.fail_after(20):
            result = await ada.call_tool(WIPE, {"disk": "b"})
    assert (result.structured_content, len(person.asked), ran(crib)) == ({"disk": "b"}, 1, 1)


# --- who is not asked


@era
async def test_a_client_that_cannot_show_a_form_is_told_what_the_call_waits_for(crib, mode):
    async with Client(gateway(crib).server, mode=mode) as one:
        result = await ask(one, "call_tool", {"name": WIPE, "arguments": {}})
    assert result["structuredContent"]["code"] == "needs_approval"
    assert result["structuredContent"]["approval_id"] == "a1"
    assert "inputRequests" not in result


@era
async def test_where_policy_does_not_let_the_caller_decide_nobody_is_asked(crib, mode):
    crib.deciders.clear()
    person = Person("accept", approve=True)
    async with Client(gateway(crib).server, mode=mode, elicitation_callback=person) as one:
        result = await one.call_tool("call_tool", {"name": WIPE, "arguments": {}})
    assert (result.structured_content["code"], person.asked, ran(crib)) == ("needs_approval", [], 0)


@pytest.mark.parametrize(
    ("declared", "asked"),
    [({"elicitation": {}}, True), (FORM, True), ({"elicitation": {"url": {}}}, False), ({"sampling": {}}, False)],
    ids=["no-modes", "form", "url-only", "none"],
)
async def test_only_a_client_that_shows_forms_is_asked(crib, declared, asked):
    result = await put(gateway(crib), {}, can=declared)
    assert (result["resultType"] == "input_required") is asked


async def test_the_result_that_asks_has_the_shape_of_the_protocol(crib):
    result = await put(gateway(crib), {"disk": "a"})
    parsed = wire.InputRequiredResult.model_validate(result)
    assert set(parsed.input_requests) == {"approval"}
    assert result["inputRequests"]["approval"]["method"] == "elicitation/create"
    readable = base64.urlsafe_b64decode(result["requestState"].rpartition(".")[2] + "==")
    assert b"approval" not in readable, "sealed, not merely signed"
    assert "isError" not in result and "content" not in result


# --- states that are not worth anything


async def refused_state(door, arguments, state, **more):
    with pytest.raises(MCPError) as refused:
        await put(door, arguments, requestState=state, inputResponses=YES, **more)
    assert refused.value.code == -32602
    assert "a1" not in str(refused.value)


def flipped(state: str) -> str:
    head, body = state.split(".", 1)
    data = bytearray(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    data[-1] ^= 1
    return f"{head}.{base64.urlsafe_b64encode(bytes(data)).decode().rstrip('=')}"


async def test_a_forged_state_approves_nothing(crib):
    door = gateway(crib)
    state = (await put(door, {"disk": "a"}))["requestState"]
    plain = json.dumps({"approval_id": "a1"})
    for forged in ("", "x", plain, base64.urlsafe_b64encode(plain.encode()).decode(), flipped(state), state[:-2]):
        await refused_state(door, {"disk": "a"}, forged)
    assert (ran(crib), crib.approvals["a1"].state) == (0, "pending")


async def test_a_state_of_another_gateway_or_of_one_before_a_restart_approves_nothing(crib):
    state = (await put(gateway(crib), {"disk": "a"}))["requestState"]
    await refused_state(gateway(crib), {"disk": "a"}, state)
    assert crib.approvals["a1"].state == "pending"


@pytest.mark.parametrize(
    "thief",
    [BOB, Caller(subject="ada", tenant="acme"), Caller(subject="ada", on_behalf_of="bob")],
    ids=["another", "other-tenant", "for-another"],
)
async def test_a_state_of_another_caller_approves_nothing(crib, thief):
    now = [ADA]

    class Changing:
        def of(self, _ctx):
            return now[0]

        def renewal(self, _ctx):
            async def again():
                return now[0]

            return again

        def in_task(self):
            return now[0]

    door = gateway(crib)
    door._callers = Changing()
    door._approving._callers = Changing()
    state = (await put(door, {"disk": "a"}))["requestState"]
    now[0] = thief
    await refused_state(door, {"disk": "a"}, state)
    now[0] = ADA
    assert (await put(door, {"disk": "a"}, requestState=state, inputResponses=YES))["structuredContent"]


@pytest.mark.parametrize("arguments", [{"disk": "b"}, {}, {"disk": "a", "force": True}], ids=["other", "none", "more"])
async def test_a_state_for_other_arguments_approves_nothing(crib, arguments):
    door = gateway(crib)
    state = (await put(door, {"disk": "a"}))["requestState"]
    await refused_state(door, arguments, state)
    assert ran(crib) == 0


async def test_a_state_for_another_tool_approves_nothing(crib):
    crib.put(tool("freight.purge"))
    crib.waiting.add("freight.purge")
    door = gateway(crib)
    state = (await put(door, {"disk": "a"}))["requestState"]
    await refused_state(door, {"disk": "a"}, state, name=mcp_name("freight.purge"))
    assert ran(crib) == 0


async def test_a_replayed_state_approves_nothing_more(crib):
    door = gateway(crib)
    state = (await put(door, {"disk": "a"}))["requestState"]
    first = await put(door, {"disk": "a"}, requestState=state, inputResponses=YES)
    assert first["structuredContent"] == {"disk": "a"}
    again = await put(door, {"disk": "a"}, requestState=state, inputResponses=YES)
    assert (again["isError"], again["structuredContent"]["code"]) == (True, "needs_approval")
    assert ran(crib) == 1


async def test_a_declined_call_cannot_be_turned_into_a_yes(crib):
    door = gateway(crib)
    state = (await put(door, {}))["requestState"]
    await put(door, {}, requestState=state, inputResponses={"approval": {"action": "decline"}})
    late = await put(door, {}, requestState=state, inputResponses=YES)
    assert (late["structuredContent"]["code"], ran(crib)) == ("needs_approval", 0)


async def test_an_old_state_approves_nothing(crib, monkeypatch):
    door = gateway(crib)
    state = (await put(door, {}))["requestState"]
    later = time.time() + 901
    monkeypatch.setattr("mcp.server.request_state.time.time", lambda: later)
    await refused_state(door, {}, state)


async def test_an_answer_without_a_state_is_no_answer(crib):
    result = await put(gateway(crib), {}, inputResponses=YES)
    assert (result["resultType"], crib.approvals["a1"].state) == ("input_required", "pending")


async def test_a_state_without_an_answer_asks_again(crib):
    door = gateway(crib)
    state = (await put(door, {}))["requestState"]
    again = await put(door, {}, requestState=state)
    other = await put(door, {}, requestState=state, inputResponses={"other": YES["approval"]})
    assert again["resultType"] == other["resultType"] == "input_required"
    assert (len(crib.approvals), ran(crib)) == (1, 0)


async def test_a_yes_counts_only_while_policy_still_lets_the_caller_decide(crib):
    door = gateway(crib)
    state = (await put(door, {}))["requestState"]
    crib.deciders.clear()
    late = await put(door, {}, requestState=state, inputResponses=YES)
    assert (late["structuredContent"]["code"], crib.approvals["a1"].state) == ("needs_approval", "pending")


async def test_a_definition_that_changed_since_the_question_is_not_covered_by_the_yes(crib):
    """The request is bound to the definition; the crib makes a new one for the new definition, and nobody loops."""
    door = gateway(crib)
    state = (await put(door, {}))["requestState"]
    before = crib._use_up
    crib._use_up = lambda *_args: False
    late = await put(door, {}, requestState=state, inputResponses=YES)
    crib._use_up = before
    assert (late["resultType"], late["structuredContent"]["code"]) == ("complete", "needs_approval")


async def test_an_older_client_that_fails_to_answer_leaves_the_call_waiting(crib):
    async def broken(_ctx, _params):
        return wire.ErrorData(code=-1, message="no screen")

    async with Client(gateway(crib).server, mode="legacy", elicitation_callback=broken) as one:
        result = await one.call_tool("call_tool", {"name": WIPE, "arguments": {}})
    assert (result.structured_content["code"], crib.approvals["a1"].state) == ("needs_approval", "pending")


async def test_an_older_client_that_never_answers_does_not_hold_the_call_for_ever(crib, monkeypatch):
    monkeypatch.setattr("toolcrib.server.approving._ASK_WITHIN_S", 0.05)

    async def silent(_ctx, _params):
        await anyio.sleep_forever()

    async with Client(gateway(crib).server, mode="legacy", elicitation_callback=silent) as one:
        with anyio.fail_after(10):
            result = await one.call_tool("call_tool", {"name": WIPE, "arguments": {}})
    assert (result.structured_content["code"], crib.approvals["a1"].state) == ("needs_approval", "pending")


async def test_a_state_means_nothing_to_the_older_era(crib):
    async with Client(gateway(crib).server, mode="legacy") as one:
        result = await raw(
            one, "tools/call", {"name": WIPE, "arguments": {}, "requestState": "x", "inputResponses": YES}
        )
    assert (json.loads(result["content"][0]["text"])["code"], ran(crib)) == ("needs_approval", 0)
