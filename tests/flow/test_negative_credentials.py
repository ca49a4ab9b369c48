"""Attacks at the door: credentials that are none, in the wrong place, or for another's session. Whoever is kept out has
no trace, since nobody was established; nothing was sent, and nothing says why but the operator's log.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.flow.attackers import (
    BOT,
    ERAS,
    GET,
    LEGACY,
    ONE,
    OTHER_ISSUER,
    Wire,
    api_key,
    end_key,
    gateway,
    good,
    guarded_shop,
    kept_out,
    wire,
)
from tests.flow.worlds import World, Worlds
from tests.identity.signing import RSA_A, RSA_B, forged, hand_signed, public_jwk, public_pem, signed
from toolcrib.types import JsonObject


@pytest.fixture
def world(make_world: Worlds) -> World:
    return guarded_shop(make_world)


# --- the door

EXPIRED, IMMATURE, MISSING = "it has expired", "it is not valid yet", "every token needs the claim"
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
    "a tenant that its issuer may not speak for": ("may not speak", lambda: good(org={"id": "initech"})),
    "no tenant where its issuer must name one": ("may not speak", lambda: good(org=None)),
    "a look-alike of a tenant": ("may not speak", lambda: good(org={"id": "\u0430cme"})),
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
    async with wire(world) as client:
        answers.append(await client.post("tools/list", {}, token="junk"))
    assert {answer.status for answer in answers} == {401}
    assert {answer.headers["www-authenticate"] for answer in answers} == {'Bearer error="invalid_token"'}
    assert len({answer.text for answer in answers}) == 1, "one answer, whatever is wrong"


async def test_a_key_that_is_not_right_lets_nobody_in(world: World) -> None:
    key, _ = api_key(world)
    old, _ = api_key(world, now=datetime.now(UTC) - timedelta(days=2))
    ended, ended_id = api_key(world)
    end_key(world, ended_id)
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
