"""Attacks on who asks: a tenant named by the request, what was taken away in the middle, an agent that wants more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.flow.attackers import (
    BOT,
    ERAS,
    GET,
    INVALID_PARAMS,
    LEDGER,
    ONE,
    api_key,
    bearer,
    end_key,
    good,
    guarded_shop,
    kept_out,
    nothing_sent,
    on_record,
    refused_at,
    revoke,
    sent,
    wire,
)
from tests.flow.worlds import World, Worlds
from toolcrib.types import Code, JsonObject, RevokedKind, Stage


@pytest.fixture
def world(make_world: Worlds) -> World:
    return guarded_shop(make_world)


# --- a tenant is what the boundary says


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("arguments", "more"),
    [
        ({"tenant": "globex"}, {}),
        ({}, {"headers": {"x-tenant": "globex", "tenant": "globex", "x-tenant-id": "globex", "x-org": "globex"}}),
        ({}, {"query": "?tenant=globex&org.id=globex"}),
        ({}, {"meta": {"tenant": "globex", "org": {"id": "globex"}, "io.toolcrib/tenant": "globex"}}),
        ({}, {"params": {"tenant": "globex", "caller": {"tenant": "globex"}}}),
    ],
    ids=["argument", "header", "query", "meta", "parameter"],
)
async def test_a_tenant_that_a_request_names_moves_nobody(
    world: World, era: str, arguments: JsonObject, more: Any
) -> None:
    async with wire(world, era=era) as client:
        await client.open(good())
        direct = dict(more)
        params = direct.pop("params", {})
        with nothing_sent(world):
            assert LEDGER not in await client.find("the ledger of globex, for tenant globex", token=good(), **direct)
            answer = await client.call("shop__get_ledger", arguments, token=good(), params=params, **direct)
            assert answer.error == INVALID_PARAMS
            by_name = refused_at(
                world, on_record(world)[0].trace_id, "shop__get_ledger", Stage.REGISTRY,
                code=Code.NOT_AVAILABLE, why="not_in_catalog",
            )  # fmt: skip
            told = (await client.through(LEDGER, arguments, token=good(), **direct)).told
            by_id = refused_at(
                world, told["trace_id"], LEDGER, Stage.ELIGIBILITY, code=Code.NOT_AVAILABLE, why="not_permitted"
            )
        assert {trace.tenant for trace in (by_name, by_id)} == {"acme"}
        theirs = good(org={"id": "globex"})
        await client.open(theirs)
        assert (await client.through(LEDGER, token=theirs)).ran, "globex itself is served"


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("direct", [True, False], ids=["direct", "call_tool"])
async def test_another_tenants_resource_is_not_available_whatever_tenant_the_arguments_name(
    world: World, era: str, direct: bool
) -> None:
    async with wire(world, era=era) as client:
        await client.open(good())
        call = client.call if direct else client.through
        name = "shop__get_order" if direct else GET
        answer = await call(name, {"order_id": "theirs", "tenant": "globex"}, token=good())
        assert answer.told["code"] == Code.NOT_AVAILABLE
        refused_at(
            world, answer.told["trace_id"], GET, Stage.GATE,
            code=Code.NOT_AVAILABLE, why="not_available", check="resource",
        )  # fmt: skip
        assert sent(world) == [("shop", "order_owner")], "the owner was asked, and the tool was not run"


# --- revoked in the middle of a conversation

CREDENTIALS = ["subject", "session", "key", "token"]


def credential(one: World, kind: str) -> tuple[str, Callable[[], Any], Callable[[], Any]]:
    """A credential, how it is taken away, and how it is given back."""
    if kind == "token":
        file = one.folder / "bot.token"
        return BOT, file.unlink, lambda: file.write_text(BOT)
    if kind == "key":
        key, key_id = api_key(one)
        return key, lambda: end_key(one, key_id), lambda: end_key(one, key_id, at="")
    token, revoked, value = {
        "subject": (good(), RevokedKind.SUBJECT, "acme/ann"),
        "session": (good(sid="s-1"), RevokedKind.SESSION, "s-1"),
    }[kind]
    return token, lambda: revoke(one, revoked, value), lambda: one.crib.store.restore(revoked, value)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("kind", CREDENTIALS)
async def test_what_is_revoked_after_the_offer_is_out_at_the_next_request(world: World, era: str, kind: str) -> None:
    token, take_away, give_back = credential(world, kind)
    async with wire(world, era=era) as client:
        await client.open(token)
        assert GET in await client.find("look up an order", token=token)
        take_away()
        with kept_out(world):
            for answer in (
                await client.post("tools/list", {}, token=token),
                await client.call("shop__get_order", ONE, token=token),
                await client.through(GET, ONE, token=token),
            ):
                assert answer.status == 401
        give_back()
        assert (await client.through(GET, ONE, token=token)).ran


@pytest.mark.parametrize("kind", CREDENTIALS)
async def test_what_is_revoked_between_offer_and_call_is_refused_and_on_record(world: World, kind: str) -> None:
    token, take_away, give_back = credential(world, kind)
    crib, known = world.crib, await bearer(world.crib, token)
    assert GET in [chosen.tool.tool_id for chosen in crib.select("look up an order", caller=known).tools]
    take_away()
    with nothing_sent(world):
        done = await crib.call(GET, ONE, caller=known)
    assert done.code is Code.UNAVAILABLE
    trace = refused_at(world, done.trace_id, GET, Stage.ELIGIBILITY, code=Code.UNAVAILABLE, why="unknown_caller")
    assert (trace.subject, trace.tenant) == (known.subject, "acme")
    give_back()
    assert (await crib.call(GET, ONE, caller=known)).ok


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("kind", CREDENTIALS)
async def test_what_is_revoked_while_a_call_waits_for_its_server_is_not_sent(world: World, era: str, kind: str) -> None:
    token, take_away, _ = credential(world, kind)
    world.servers["shop"].ready = opens = _then(world.servers["shop"].ready, take_away)  # type: ignore[method-assign]
    async with wire(world, era=era) as client:
        await client.open(token)
        with nothing_sent(world):
            told = (await client.through("shop.order_owner", ONE, token=token)).told
    assert opens.n_opened == 1
    assert told["code"] == Code.UNAVAILABLE
    refused_at(
        world, told["trace_id"], "shop.order_owner", Stage.ELIGIBILITY, code=Code.UNAVAILABLE, why="unknown_caller"
    )


class _then:
    """A server that gets ready, and while it does, something happens."""

    def __init__(self, ready: Any, happens: Callable[[], Any]) -> None:
        self._ready, self._happens = ready, happens
        self.n_opened = 0

    async def __call__(self) -> None:
        await self._ready()
        self.n_opened += 1
        self._happens()


# --- delegation


@pytest.mark.parametrize(
    ("agent", "scope"),
    [("helper", "other"), ("clerk", "orders"), ("helper", "")],
    ids=["the user may not", "the agent may not", "the token has no scopes"],
)
async def test_an_agent_may_not_what_one_of_both_may_not(world: World, agent: str, scope: str) -> None:
    token = good(act={"sub": agent}, scope=scope)
    async with wire(world) as client:
        with nothing_sent(world):
            assert await client.find("look up an order", token=token) == []
            told = (await client.through(GET, ONE, token=token)).told
        trace = refused_at(
            world, told["trace_id"], GET, Stage.ELIGIBILITY, code=Code.NOT_AVAILABLE, why="not_permitted"
        )
        assert (trace.subject, trace.on_behalf_of, trace.tenant) == (agent, "ann", "acme"), "the trace names both"
        both = good(act={"sub": "helper"})
        assert (await client.through(GET, ONE, token=both)).ran


AUDITED = """
permit (principal, action, resource);
forbid (principal, action, resource == Tool::"shop.get_order") unless { principal in Role::"auditor" };
"""


@pytest.mark.parametrize(
    ("agent", "roles"), [("checker", []), ("helper", ["auditor"])], ids=["the agent's alone", "the user's alone"]
)
async def test_a_role_of_one_of_both_is_not_a_role_of_both(make_world: Worlds, agent: str, roles: list[str]) -> None:
    one = await asyncio.to_thread(guarded_shop, make_world, policy=AUDITED)
    token = good(act={"sub": agent}, roles=roles)
    async with wire(one) as client:
        with nothing_sent(one):
            told = (await client.through(GET, ONE, token=token)).told
        trace = refused_at(one, told["trace_id"], GET, Stage.ELIGIBILITY, code=Code.NOT_AVAILABLE, why="not_permitted")
        assert (trace.subject, trace.on_behalf_of) == (agent, "ann")
        both = good(act={"sub": "checker"}, roles=["auditor"])
        assert (await client.through(GET, ONE, token=both)).ran


async def test_an_agent_is_no_better_off_for_a_chain_of_agents(world: World) -> None:
    token = good(act={"sub": "clerk", "act": {"sub": "helper"}})
    async with wire(world) as client:
        with nothing_sent(world):
            told = (await client.through(GET, ONE, token=token)).told
    refused_at(world, told["trace_id"], GET, Stage.ELIGIBILITY, code=Code.NOT_AVAILABLE, why="not_permitted")


async def test_an_agent_ends_with_its_user_and_with_its_configuration(world: World) -> None:
    token = good(act={"sub": "helper"})
    config = world.folder / "toolcrib.toml"
    text = config.read_text(encoding="utf-8")
    async with wire(world) as client:
        assert (await client.through(GET, ONE, token=token)).ran
        for take_away, give_back in (
            (lambda: revoke(world, RevokedKind.SUBJECT, "acme/ann"),
             lambda: world.crib.store.restore(RevokedKind.SUBJECT, "acme/ann")),
            (lambda: revoke(world, RevokedKind.SUBJECT, "acme/helper"),
             lambda: world.crib.store.restore(RevokedKind.SUBJECT, "acme/helper")),
            (lambda: config.write_text(text.replace('subject = "helper"', 'subject = "another"')),
             lambda: config.write_text(text)),
        ):  # fmt: skip
            take_away()
            with kept_out(world):
                assert (await client.through(GET, ONE, token=token)).status == 401
            give_back()
            assert (await client.through(GET, ONE, token=token)).ran
