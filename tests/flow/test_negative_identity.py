"""Attacks on who asks: credentials that are none, identity by other ways in, what was taken away, delegation."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.flow.attackers import (
    ERAS,
    LEGACY,
    INVALID_PARAMS,
    Wire,
    bearer,
    gateway,
    kept_out,
    nothing_sent,
    on_record,
    refused_at,
    sent,
    wire,
)  # fmt: skip
from tests.flow.worlds import World, Worlds, tool, with_default
from tests.identity.signing import (
    EC_256,
    RSA_A,
    RSA_B,
    forged,
    hand_signed,
    key_file,
    key_set,
    public_jwk,
    public_pem,
    signed,
)  # fmt: skip
from toolcrib.identity.keys import new_key
from toolcrib.types import Code, JsonObject, Revocation, RevokedKind, Stage, ToolResult

TEXT = {"type": "string"}
SHOP = [
    tool("get_order", "Look up one order of a customer.", properties={"order_id": TEXT, "tenant": TEXT}),
    tool("get_ledger", "Read the ledger of the company globex.", properties={"tenant": TEXT}),
    tool("order_owner", "Whose order it is.", properties={"order_id": TEXT}),
]
GET, LEDGER, ONE = "shop.get_order", "shop.get_ledger", {"order_id": "mine"}
OTHER_ISSUER, BOT = "https://other.example", "a-token-of-some-length"
TOML = """
[[tools]]
match = "*"
risk = "read"
required_scopes = ["orders"]
[[tools]]
match = "shop.get_ledger"
tenants = ["globex"]
[[resources]]
type = "Order"
tools = "shop.get_order"
argument = "/order_id"
lookup_tool = "shop.order_owner"
lookup_argument = "order_id"
tenant = "/tenant"
[[identity.tokens]]
token = "file:bot.token"
caller = {subject = "bot", tenant = "acme", scopes = ["orders"]}
[[identity.jwt]]
issuer = "https://issuer.example"
audience = ["toolcrib"]
keys_file = "keys.json"
claims = {tenant = "org.id"}
[[identity.jwt]]
issuer = "https://other.example"
audience = ["toolcrib"]
keys_file = "other.json"
claims = {tenant = "org.id"}
[[identity.agents]]
caller = {subject = "helper", kind = "agent", scopes = ["orders"]}
[[identity.agents]]
caller = {subject = "clerk", kind = "agent"}
[[identity.agents]]
caller = {subject = "theirs", kind = "agent", tenant = "globex", scopes = ["orders"]}
"""


async def owners(name: str, arguments: JsonObject) -> ToolResult:
    block = {"type": "text", "text": f"{name} was run"}
    whose = {"tenant": {"mine": "acme"}.get(str(arguments.get("order_id")), "globex")}
    structured = whose if name == "order_owner" else None
    return ToolResult(
        code=Code.OK, content=(block,), structured=structured, raw={"content": [block]}, reached_server=True
    )


@pytest.fixture
def world(make_world: Worlds) -> World:
    one: World = with_default(make_world, {"shop": SHOP})(toml=TOML, handler=owners)
    (one.folder / "bot.token").write_text(BOT)
    (one.folder / "other.json").write_bytes(key_set(public_jwk(RSA_B, "b")))
    key_file(one.folder, public_jwk(RSA_A, "a"), public_jwk(EC_256, "e"))
    return one


def good(**of_claims: Any) -> str:
    """A token that is all right: of ann, who is of acme and may look at orders."""
    return signed(**{"org": {"id": "acme"}, "scope": "orders", **of_claims})


def api_key(one: World, **more: Any) -> tuple[str, str]:
    """A new key and its id."""
    given = {"created_by": "tests", "now": datetime.now(UTC), "valid_for": timedelta(days=1), **more}
    key, record = new_key({"subject": "ann", "tenant": "acme", "scopes": ["orders"]}, **given)
    one.crib.store.put_key(record)
    return key, record.key_id


def revoke(one: World, kind: RevokedKind, value: str) -> None:
    one.crib.store.revoke(Revocation(kind=kind, value=value, at="2026-01-01T00:00:00+00:00", by="tests"))


# --- the door

EXPIRED, IMMATURE, MISSING = "it has expired", "it is not valid yet", "a claim is missing"
AUDIENCE, ISSUER, SUBJECT = "for another audience", "row has the issuer", "names no subject"
ALGORITHM, SIGNATURE, KEY = "when signed with", "not by the key that it names", "holds no key"
BAD_JWTS: dict[str, tuple[str, Callable[[], str]]] = {
    "expired": (EXPIRED, lambda: good(iat=1, nbf=1, exp=int(time.time()) - 61)),
    "without an end": (MISSING, lambda: good(exp=None)),
    "not valid yet": (IMMATURE, lambda: good(nbf=int(time.time()) + 120)),
    "wrong audience": (AUDIENCE, lambda: good(aud="another-service")),
    "no audience": (AUDIENCE, lambda: good(aud=None)),
    "audience in another case": (AUDIENCE, lambda: good(aud="Toolcrib")),
    "wrong issuer": (ISSUER, lambda: good(iss="https://evil.example")),
    "issuer with a slash more": (ISSUER, lambda: good(iss="https://issuer.example/")),
    "no issuer": (ISSUER, lambda: good(iss=None)),
    "no subject": (SUBJECT, lambda: good(sub=None)),
    "alg none": ("not a signed JWT", lambda: forged({"alg": "none", "kid": "a"})),
    "alg None, with a signature": (ALGORITHM, lambda: forged({"alg": "None", "kid": "a"}, secret=b"")),
    "alg none over a right signature": (ALGORITHM, lambda: hand_signed({"alg": "none", "kid": "a"})),
    "no alg": (ALGORITHM, lambda: hand_signed({"kid": "a"})),
    "HS256 with the public key": (ALGORITHM, lambda: forged({"alg": "HS256", "kid": "a"}, secret=public_pem(RSA_A))),
    "HS256 with no secret": (ALGORITHM, lambda: forged({"alg": "HS256", "kid": "a"}, secret=b"")),
    "kid of A, signed by B": (SIGNATURE, lambda: signed(RSA_B, kid="a")),
    "kid of B, signed by A": (KEY, lambda: signed(RSA_A, kid="b")),
    "key of another issuer": (KEY, lambda: signed(RSA_B, kid="b")),
    "our key for another issuer": (KEY, lambda: good(iss=OTHER_ISSUER)),
    "kid of another kind of key": ("fit RS256", lambda: signed(RSA_A, kid="e")),
    "no kid, another key": (SIGNATURE, lambda: signed(RSA_B, kid=None)),
    "brings its own key": (SIGNATURE, lambda: signed(RSA_B, kid=None, headers={"jwk": public_jwk(RSA_B)})),
    "brings an address of keys": (KEY, lambda: signed(RSA_B, kid="x", headers={"jku": "https://evil.example/keys"})),
    "kid is a path": (KEY, lambda: signed(RSA_B, kid="../other.json")),
    "an extension that must be known": ("cannot be parsed", lambda: signed(headers={"crit": ["exp"]})),
    "a token for a logout": ("of another type", lambda: signed(headers={"typ": "logout+jwt"})),
    "the payload of another token": (SIGNATURE, lambda: with_payload_of(good(), good(sub="root"))),
    "an agent that nobody configured": ("names the actor", lambda: good(act={"sub": "stranger"})),
    "an agent of another tenant": ("of another tenant", lambda: good(act={"sub": "theirs"})),
    "an agent without a name": ("has no subject", lambda: good(act={"sub": ""})),
    "an agent of another issuer": ("another issuer vouches", lambda: good(act={"sub": "helper", "iss": OTHER_ISSUER})),
}


def with_payload_of(token: str, other: str) -> str:
    header, _, signature = token.split(".")
    return ".".join((header, other.split(".")[1], signature))


async def knock(one: World, era: str, token: str | None, **more: Any) -> list[Any]:
    """What comes back for this token, by every first step there is, also within somebody else's session."""
    async with gateway(one) as http:
        stranger, guest = Wire(http, era=era), Wire(http, era=era)
        await guest.open(good())
        with kept_out(one):
            answers = [await stranger.post("initialize", {"protocolVersion": LEGACY}, token=token, **more)]
            for who in (stranger, guest):
                answers.append(await who.post("tools/list", {}, token=token, **more))
                answers.append(await who.call("shop__get_order", ONE, token=token, **more))
                answers.append(await who.through(GET, ONE, token=token, **more))
        assert (await guest.through(GET, ONE, token=good())).status == 200, "a good token gets in all the same"
    return answers


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(("why", "make"), BAD_JWTS.values(), ids=BAD_JWTS.keys())
async def test_a_token_that_is_not_right_lets_nobody_in_and_is_not_told_why(
    world: World, why: str, make: Callable[[], str], era: str, caplog: pytest.LogCaptureFixture
) -> None:
    answers = await knock(world, era, make())
    assert len({record.getMessage() for record in caplog.records}) == 1
    assert why in caplog.text, "refused for its own reason, which the operator is told"
    answers += await knock(world, era, "junk")
    assert {answer.status for answer in answers} == {401}
    assert {answer.headers["www-authenticate"] for answer in answers} == {'Bearer error="invalid_token"'}
    assert len({answer.text for answer in answers}) == 1, "one answer, whatever is wrong"


async def test_a_key_that_is_not_right_lets_nobody_in(world: World) -> None:
    key, _ = api_key(world)
    old, _ = api_key(world, now=datetime.now(UTC) - timedelta(days=2))
    ended, ended_id = api_key(world)
    revoke(world, RevokedKind.KEY, ended_id)
    mixed = "_".join((*key.split("_")[:2], old.split("_", 2)[2]))
    for bad in (old, ended, mixed, key + "A", key[:-1], key.upper(), "tck_" + "0" * 16 + "_" + "A" * 43):
        assert {answer.status for answer in await knock(world, LEGACY, bad)} == {401}
    async with wire(world) as client:
        assert (await client.through(GET, ONE, token=key)).ran


@pytest.mark.parametrize(
    ("more", "token"),
    [
        ({"query": f"?access_token={BOT}&token={BOT}"}, None),
        ({"headers": {"x-api-key": BOT, "cookie": f"token={BOT}", "proxy-authorization": f"Bearer {BOT}"}}, None),
        ({"meta": {"authorization": f"Bearer {BOT}", "token": BOT}}, None),
        ({"headers": {"x-forwarded-user": "bot", "x-client-cert": "CN=bot", "x-forwarded-for": "127.0.0.1"}}, None),
        ({"headers": {"authorization": f"Basic {BOT}"}}, None),
        ({"headers": {"authorization": f"Bearer {BOT}, Bearer {BOT}"}}, None),
    ],
    ids=["query", "other headers", "message", "a proxy's headers", "another scheme", "two in one"],
)
async def test_a_credential_in_another_place_is_none(world: World, more: Any, token: str | None) -> None:
    for era in ERAS:
        assert {answer.status for answer in await knock(world, era, token, **more)} == {401}
    async with wire(world) as client:
        assert (await client.through(GET, ONE, token=BOT)).ran


@pytest.mark.parametrize(
    "thief",
    [{"sub": "bo"}, {"org": {"id": "globex"}}, {"act": {"sub": "helper"}}],
    ids=["another person", "the name in another tenant", "an agent"],
)
async def test_another_callers_session_is_no_session(world: World, thief: JsonObject) -> None:
    async with wire(world, era=LEGACY) as client:
        await client.open(good())
        with kept_out(world):
            answer = await client.through(GET, ONE, token=good(**thief))
        assert answer.status == 404
        assert (await client.through(GET, ONE, token=good())).ran


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
    key, key_id = api_key(one)
    token, revoked, value = {
        "subject": (good(), RevokedKind.SUBJECT, "acme/ann"),
        "session": (good(sid="s-1"), RevokedKind.SESSION, "s-1"),
        "key": (key, RevokedKind.KEY, key_id),
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
    trace = refused_at(world, done.trace_id, GET, Stage.ELIGIBILITY, code=Code.UNAVAILABLE, why="policy_error")
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
        world, told["trace_id"], "shop.order_owner", Stage.ELIGIBILITY, code=Code.UNAVAILABLE, why="policy_error"
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
