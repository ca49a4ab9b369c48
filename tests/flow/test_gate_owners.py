"""Resources on the whole road: their owners are asked in three ways, and policy may judge each one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.flow.worlds import World, Worlds, caller, tool
from toolcrib.policy.shipped import default_policy_text
from toolcrib.types import Caller, Code, Resource, Stage

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
