"""Resources on the whole road: their owners are asked in three ways, and policy may judge each one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.flow.worlds import World, Worlds, caller, says_done, tool
from toolcrib.policy.shipped import default_policy_text
from toolcrib.types import Caller, Code, Resource, Stage, ToolResult

TEXT = {"type": "string"}
SHOP = [tool("get_order", "Look up one order.", properties={"order_id": TEXT, "other_id": TEXT})]
READ = '[[tools]]\nmatch = "*"\nrisk = "read"\n'
ROW = '[[resources]]\ntype = "Order"\ntools = "shop.get_order"\nargument = "/order_id"\n'
ANN = caller(tenant="acme")
TENANTS = {"mine": "acme", "theirs": "globex"}


async def knows(resource_id: str, _who: Caller) -> Resource | None:
    tenant = TENANTS.get(resource_id)
    return Resource(resource_type="Order", resource_id=resource_id, tenant=tenant, owner="bo") if tenant else None


@pytest.fixture
def world(make_world: Worlds) -> Worlds:
    def made(*, resolver: Callable[[str, Caller], Awaitable[Any]] = knows, **more: Any) -> World:
        one = make_world({"shop": SHOP}, **{"toml": READ + ROW, **more})
        one.crib._dispatch._owners._resolvers = {"Order": resolver}
        return one

    return made


@pytest.mark.parametrize(
    ("order_id", "code"), [("mine", Code.OK), ("theirs", Code.NOT_AVAILABLE), ("nobody's", Code.NOT_AVAILABLE)]
)
def test_a_resolver_in_python_says_whose_it_is(world: Worlds, order_id: str, code: Code) -> None:
    one = world()
    done = one.call("shop.get_order", {"order_id": order_id}, caller=ANN)
    assert done.code is code
    assert len(one.servers["shop"].calls) == (code is Code.OK)


def test_a_resolver_that_fails_refuses_and_its_words_go_nowhere(
    world: Worlds, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails(resource_id: str, _who: Caller) -> Resource:
        raise RuntimeError(f"password=hunter2 for {resource_id}")

    one = world(resolver=fails)
    with caplog.at_level(logging.DEBUG):
        done = one.call("shop.get_order", {"order_id": "mine"}, caller=ANN)
    assert (done.code, done.verdict.check) == (Code.NOT_AVAILABLE, "resource")
    assert "RuntimeError" in caplog.text
    assert "hunter2" not in caplog.text + repr(one.crib.trace(done.trace_id))


def test_an_answer_about_another_resource_is_none(world: Worlds) -> None:
    async def mistaken(_resource_id: str, who: Caller) -> Resource | None:
        return await knows("mine", who)

    one = world(resolver=mistaken)
    assert one.call("shop.get_order", {"order_id": "theirs"}, caller=ANN).code is Code.NOT_AVAILABLE


def test_a_type_that_nobody_resolves_is_refused(world: Worlds) -> None:
    one = world()
    one.crib._dispatch._owners._resolvers = {}
    assert one.call("shop.get_order", {"order_id": "mine"}, caller=ANN).code is Code.NOT_AVAILABLE


def test_owners_that_take_too_long_refuse_and_have_one_deadline_together(
    world: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    async def never(resource_id: str, _who: Caller) -> Resource | None:
        asked.append(resource_id)
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr("toolcrib.owners._LOOKUP_S", 0.01)
    one = world(resolver=never, toml=READ + ROW + ROW.replace("/order_id", "/other_id"))
    arguments = {"order_id": "mine", "other_id": "mine"}
    assert one.call("shop.get_order", arguments, caller=ANN).code is Code.NOT_AVAILABLE
    assert asked[0] == "mine"


def test_an_owner_is_asked_at_its_own_address(world: Worlds, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    async def answers(url: str, *, resource_id: str, headers: Any, **_more: Any) -> Any:
        asked.append((url, resource_id, dict(headers)))
        return {"tenant": TENANTS[resource_id]}

    monkeypatch.setattr("toolcrib.owners.look_up", answers)
    monkeypatch.setenv("OWNER_TOKEN", "a-token-of-some-length")
    row = ROW + (
        'url = "https://orders.internal/v1/orders/{id}"\ntenant = "/tenant"\n'
        '[resources.headers]\nauthorization = "env:OWNER_TOKEN"\n'
    )
    one = world(toml=READ + row)
    assert one.call("shop.get_order", {"order_id": "mine"}, caller=ANN).ok
    assert one.call("shop.get_order", {"order_id": "theirs"}, caller=ANN).code is Code.NOT_AVAILABLE
    headers = {"authorization": "a-token-of-some-length"}
    assert asked[-1] == ("https://orders.internal/v1/orders/{id}", "theirs", headers)


POLICY = default_policy_text() + (
    '\n@id("not-your-order")\nforbid (principal, action == Action::"call", resource)\n'
    "when { context has target && !principal.features.contains(context.target.owner) };\n"
)


def test_policy_judges_the_owner_of_a_resource_where_the_rule_leaves_it_to_it(world: Worlds) -> None:
    one = world(toml=READ + ROW + 'check = "policy"\n', policy=POLICY)
    bo, ann = caller(subject="bo", tenant="globex", features=["bo"]), caller(tenant="globex")
    assert one.call("shop.get_order", {"order_id": "mine"}, caller=bo).ok, "of another tenant, and bo's own"
    done = one.call("shop.get_order", {"order_id": "mine"}, caller=ann)
    assert (done.code, done.verdict.check) == (Code.NOT_AVAILABLE, "resource")
    gate = one.crib.trace(done.trace_id).record(Stage.GATE)
    assert gate is not None and gate.operator_view["policies"] == ["not-your-order"]
    assert one.call("shop.get_order", {}, caller=ann).ok, "names no order"


OWNER = tool("order_owner", properties={"order_id": TEXT})
BY_TOOL = ROW + 'lookup_tool = "own.order_owner"\ntenant = "/tenant"\n'


def by_tool(make_world: Worlds, answer: ToolResult, *, toml: str = READ + BY_TOOL, owner: Any = OWNER) -> World:
    async def handler(name: str, arguments: Any) -> ToolResult:
        return answer if name == "order_owner" else await says_done(name, arguments)

    return make_world({"shop": SHOP, "own": [owner]}, toml=toml, handler=handler)


def operators_reason(one: World, done: Any) -> str:
    """What the trace's record and `explain` say, the same in both."""
    gate = one.crib.trace(done.trace_id).record(Stage.GATE)
    assert gate is not None
    (told,) = gate.operator_view["resources"]
    assert "because" not in repr(gate.caller_view)
    assert told in one.crib.explain(done.trace_id, tool_id="shop.get_order").reason
    return str(told)


def answered(structured: Any) -> ToolResult:
    return ToolResult(code=Code.OK, structured=structured, raw={"structuredContent": structured}, reached_server=True)


FAILED = ToolResult(code=Code.TOOL_ERROR, message="no order 4711", raw={"isError": True}, reached_server=True)
OTHER_ID = tool("order_owner", properties={"order_id": {"type": "integer"}})


@pytest.mark.parametrize(
    ("answer", "more", "why", "is_logged"),
    [
        (answered(None), {}, "its lookup tool own.order_owner gave no structured content", True),
        (answered({"tenent": "acme"}), {}, "nothing at /tenant in its owner's answer", True),
        (answered({"tenant": ["acme"]}), {}, "what stands at /tenant in its owner's answer is no tenant", True),
        (FAILED, {}, "its owner does not know it", False),
        (answered({}), {"owner": OTHER_ID}, "own.order_owner do not fit: /order_id: expected", True),
        (
            answered({}),
            {"toml": READ + BY_TOOL.replace("own.order_owner", "own.owner_of")},
            "its lookup tool own.owner_of is not in service",
            True,
        ),
        (
            answered({}),
            {"toml": READ + '[[tools]]\nmatch = "own.*"\nrisk = "write"\n' + BY_TOOL},
            'may write, so it is not asked: say risk = "read"',
            True,
        ),
        (answered({}), {"toml": READ + ROW}, "no resolver is registered for Order", True),
    ],
    ids=["no-structure", "no-tenant", "odd-tenant", "unknown", "arguments", "not-served", "writes", "no-resolver"],
)
def test_the_operator_learns_why_nobody_said_whose_it_is_and_the_caller_does_not(
    make_world: Worlds, caplog: pytest.LogCaptureFixture, answer: ToolResult, more: Any, why: str, is_logged: bool
) -> None:
    one = by_tool(make_world, answer, **more)
    stranger = by_tool(make_world, answered({"tenant": "globex"}))
    with caplog.at_level(logging.WARNING):
        done = [one.call("shop.get_order", {"order_id": "4711"}, caller=ANN) for _ in range(2)]
    told = operators_reason(one, done[0])
    assert told.startswith("Order: unknown, because ")
    assert why in told
    logged = [record.getMessage() for record in caplog.records if why in record.getMessage()]
    assert len(logged) == is_logged, "once per cause, and never for what is nobody's mistake"
    assert "4711" not in told + caplog.text
    foreign = stranger.call("shop.get_order", {"order_id": "4711"}, caller=ANN)
    assert [one.message for one in done] == [foreign.message] * 2


def test_whose_it_is_instead_is_told_to_the_operator(world: Worlds) -> None:
    one = world()
    foreign = one.call("shop.get_order", {"order_id": "theirs"}, caller=ANN)
    assert operators_reason(one, foreign) == "Order theirs: of globex, not the caller's acme"
    nobody = one.call("shop.get_order", {"order_id": "theirs"}, caller=caller())
    assert operators_reason(one, nobody) == "Order theirs: of globex, and the caller has no tenant"
    unknown = one.call("shop.get_order", {"order_id": "nobody's"}, caller=ANN)
    assert operators_reason(one, unknown) == "Order: unknown, because its owner does not know it"
    assert foreign.message == nobody.message == unknown.message


def test_the_rule_that_forbids_a_known_resource_is_explained(world: Worlds) -> None:
    one = world(toml=READ + ROW + 'check = "policy"\n', policy=POLICY)
    done = one.call("shop.get_order", {"order_id": "mine"}, caller=ANN)
    reason = one.crib.explain(done.trace_id, tool_id="shop.get_order").reason
    assert reason.endswith("; Order mine: of acme; forbidden by not-your-order")


def test_a_resolver_that_speaks_of_something_else_is_told_from_one_that_knows_nothing(world: Worlds) -> None:
    async def mistaken(_resource_id: str, who: Caller) -> Resource | None:
        return await knows("mine", who)

    one = world(resolver=mistaken)
    done = one.call("shop.get_order", {"order_id": "theirs"}, caller=ANN)
    assert "another resource than it was asked about" in operators_reason(one, done)
