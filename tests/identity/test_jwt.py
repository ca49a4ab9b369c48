"""Signed tokens: the right caller for a good one, nobody for every bad one, and no token in any word of it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import jwt
import pytest

from tests.identity.signing import (
    AUDIENCE,
    EC_256,
    EC_384,
    ED,
    ISSUER,
    RSA_A,
    RSA_B,
    RSA_SHORT,
    claims,
    forged,
    hand_signed,
    key_file,
    public_jwk,
    public_pem,
    signed,
)
from toolcrib.errors import ConfigError
from toolcrib.identity.issuers import TokenIssuer
from toolcrib.identity.jwks import FileKeys
from toolcrib.identity.jwt import MAX_TOKEN_CHARS, caller_of_token
from toolcrib.identity.refused import Refused
from toolcrib.marks import file_mark
from toolcrib.types import Caller


class _Now:
    """Seconds since 1970 at the moment of use: a slow run must not make a token expire."""

    def __add__(self, seconds: int) -> int:
        return int(time.time()) + seconds

    def __sub__(self, seconds: int) -> int:
        return int(time.time()) - seconds

    def __str__(self) -> str:
        return str(int(time.time()))


NOW = _Now()


def issuer(folder: Path, *entries: Any, **more: Any) -> TokenIssuer:
    given = entries or (public_jwk(RSA_A, "a"), public_jwk(RSA_B, "b"), public_jwk(EC_256, "ec"), public_jwk(ED, "ed"))
    keys = FileKeys(key_file(folder, *given), mark=file_mark)
    return TokenIssuer(**{"issuer": ISSUER, "audience": (AUDIENCE,), "keys": keys, **more})


async def who(token: str, *rows: TokenIssuer, agents: tuple[Caller, ...] = ()) -> Caller | Refused:
    return await caller_of_token(token, rows, agents=agents, environment="test", region="eu")


@pytest.mark.parametrize(
    ("key", "alg", "kid"), [(RSA_A, "RS256", "a"), (RSA_B, "RS256", "b"), (EC_256, "ES256", "ec"), (ED, "EdDSA", "ed")]
)
async def test_a_good_token_gives_its_caller(tmp_path: Path, key: Any, alg: str, kid: str) -> None:
    found = await who(signed(key, alg, kid=kid, scope="read write", jti="t-1"), issuer(tmp_path))
    expected = Caller(subject="ann", scopes=frozenset({"read", "write"}), environment="test", region="eu")
    assert found == expected
    assert isinstance(found, Caller) and found.credential is not None
    assert (found.credential.kind, found.credential.issuer, found.credential.token_id) == ("jwt", ISSUER, "t-1")
    assert found.credential.expires_at > time.time()


async def test_a_token_is_known_by_its_session_and_by_its_own_id(tmp_path: Path) -> None:
    found = await who(signed(sid="s-1", jti="t-1"), issuer(tmp_path))
    assert isinstance(found, Caller) and found.credential is not None
    assert (found.credential.session, found.credential.token_id) == ("s-1", "t-1")


@pytest.mark.parametrize(
    ("of_claims", "good"),
    [({"org": "acme"}, True), ({"org": "globex"}, False), ({"org": "Acme"}, False), ({"org": "acme "}, False),
     ({"org": ""}, False), ({}, False), ({"org": "acme", "act": {"sub": "bot"}}, True),
     ({"org": "globex", "act": {"sub": "bot"}}, False)],
    ids=["its", "another", "case", "space", "empty", "none", "agent", "agent-of-another"],
)  # fmt: skip
async def test_an_issuer_speaks_for_the_tenants_of_its_row_alone(
    tmp_path: Path, of_claims: dict[str, Any], good: bool
) -> None:
    row = issuer(tmp_path, claims={"tenant": "org"}, tenants=("acme", "other"))
    found = await who(signed(**of_claims), row, agents=(Caller(subject="bot"),))
    assert isinstance(found, Caller) == good
    assert not isinstance(found, Caller) or found.tenant == "acme"


BAD = {
    "expired": lambda: signed(exp=NOW - 120),
    "no-exp": lambda: signed(exp=None),
    "exp-as-text": lambda: signed(exp=str(NOW + 300)),
    "exp-true": lambda: signed(exp=True),
    "exp-infinite": lambda: signed(exp=float("inf")),
    "exp-nan": lambda: signed(exp=float("nan")),
    "not-yet": lambda: signed(nbf=NOW + 600),
    "nbf-as-text": lambda: signed(nbf=str(NOW)),
    "issued-in-future": lambda: signed(iat=NOW + 600),
    "wrong-audience": lambda: signed(aud="other"),
    "no-audience": lambda: signed(aud=None),
    "audience-of-numbers": lambda: signed(aud=[AUDIENCE, 7]),
    "audience-begins-alike": lambda: signed(aud=AUDIENCE + "x"),
    "wrong-issuer": lambda: signed(iss="https://other.example"),
    "no-issuer": lambda: signed(iss=None),
    "issuer-with-slash": lambda: signed(iss=ISSUER + "/"),
    "no-subject": lambda: signed(sub=None),
    "empty-subject": lambda: signed(sub=""),
    "blank-subject": lambda: signed(sub="  "),
    "number-as-subject": lambda: signed(sub=7),
    "alg-none": lambda: forged({"alg": "none", "typ": "JWT"}),
    "alg-none-with-junk": lambda: forged({"alg": "None", "kid": "a"}, secret=b"x"),
    "no-alg": lambda: forged({"kid": "a"}, secret=b"x"),
    "alg-list": lambda: forged({"alg": ["RS256"], "kid": "a"}, secret=b"x"),
    "hs256-with-public-key": lambda: forged({"alg": "HS256", "kid": "a"}, secret=public_pem(RSA_A)),
    "hs256-no-kid": lambda: forged({"alg": "HS256"}, secret=public_pem(RSA_A)),
    "rs256-that-is-hmac": lambda: forged({"alg": "RS256", "kid": "a"}, secret=public_pem(RSA_A)),
    "swapped-keys": lambda: signed(RSA_B, kid="a"),
    "kid-of-another-kind": lambda: signed(RSA_A, kid="ec"),
    "unknown-kid": lambda: signed(kid="c"),
    "no-kid-several-keys": lambda: signed(kid=None),
    "kid-not-text": lambda: forged({"alg": "RS256", "kid": 7}, secret=b"x"),
    "not-allowed-alg": lambda: signed(RSA_A, "RS512"),
    "pss-not-allowed": lambda: signed(RSA_A, "PS256"),
    "own-key-in-header": lambda: signed(RSA_B, kid="z", headers={"jwk": public_jwk(RSA_B, "z")}),
    "own-address-in-header": lambda: signed(RSA_B, kid="z", headers={"jku": "https://evil.example/keys"}),
    "crit": lambda: hand_signed({"alg": "RS256", "kid": "a", "crit": ["b64"], "b64": True}),
    "crit-unknown": lambda: hand_signed({"alg": "RS256", "kid": "a", "crit": ["x"], "x": 1}),
    "crit-empty": lambda: hand_signed({"alg": "RS256", "kid": "a", "crit": []}),
    "logout-token": lambda: signed(headers={"typ": "logout+jwt"}),
    "oversized": lambda: signed(padding="x" * MAX_TOKEN_CHARS),
    "cut": lambda: signed()[:-4],
    "other-claims-under-the-signature": lambda: _mixed(signed(), signed(sub="admin")),
    "two-parts": lambda: signed().rsplit(".", 1)[0],
    "five-parts": lambda: signed() + ".x.y",
    "padded": lambda: signed() + "=",
    "not-ascii": lambda: signed() + "é",
    "surrogate": lambda: "\ud800.a.b",
    "junk": lambda: "a.b.c",
    "empty": lambda: "",
}


def _mixed(one: str, other: str) -> str:
    head, _, signature = one.split(".")
    return f"{head}.{other.split('.')[1]}.{signature}"


@pytest.mark.parametrize("make", BAD.values(), ids=BAD.keys())
async def test_every_bad_token_is_nobodys_and_is_not_in_the_reason(tmp_path: Path, make: Any) -> None:
    token = make()
    found = await who(token, issuer(tmp_path))
    assert isinstance(found, Refused), "this token let somebody in"
    assert found.reason
    for part in token.split("."):
        assert len(part) < 8 or part not in found.reason


async def test_clocks_may_differ_by_the_skew_and_no_more(tmp_path: Path) -> None:
    late, early = signed(exp=NOW - 30), signed(nbf=NOW + 30, iat=NOW + 30)
    patient, strict = issuer(tmp_path, clock_skew_s=120.0), issuer(tmp_path, clock_skew_s=0.0)
    assert [type(await who(token, patient)) for token in (late, early)] == [Caller, Caller]
    assert [type(await who(token, strict)) for token in (late, early)] == [Refused, Refused]


@pytest.mark.parametrize("kind", ["JWT", "at+jwt", "application/at+jwt", None])
async def test_access_tokens_are_taken_by_their_types(tmp_path: Path, kind: str | None) -> None:
    assert isinstance(await who(signed(headers={"typ": kind}), issuer(tmp_path)), Caller)


async def test_a_token_without_a_kid_is_taken_where_one_key_alone_fits(tmp_path: Path) -> None:
    row = issuer(tmp_path, public_jwk(RSA_A), public_jwk(EC_256))
    assert isinstance(await who(signed(kid=None), row), Caller)


@pytest.mark.parametrize(
    "entry",
    [
        public_jwk(RSA_A, "a", use="enc"),
        public_jwk(RSA_A, "a", alg="RS512"),
        public_jwk(RSA_A, "a", key_ops=["sign"]),
        {"kty": "oct", "kid": "a", "k": "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0"},
        public_jwk(RSA_A, "a", d="AQAB"),
        public_jwk(EC_384, "a"),
        {"kty": "RSA", "kid": "a", "n": "AQAB", "e": "AQAB"},
    ],
    ids=["for-encryption", "for-another-alg", "for-signing", "symmetric", "private", "other-kind", "tiny"],
)
async def test_a_key_is_used_for_what_it_is_for_alone(tmp_path: Path, entry: Any) -> None:
    assert isinstance(await who(signed(), issuer(tmp_path, entry)), Refused)


async def test_a_key_that_is_too_short_is_not_used(tmp_path: Path) -> None:
    header = {"alg": "RS256", "kid": "k"}
    assert isinstance(await who(hand_signed(header), issuer(tmp_path, public_jwk(RSA_A, "k"))), Caller)
    assert isinstance(await who(hand_signed(header, RSA_SHORT), issuer(tmp_path, public_jwk(RSA_SHORT, "k"))), Refused)


async def test_a_curve_must_be_the_algorithms_own(tmp_path: Path) -> None:
    row = issuer(tmp_path, public_jwk(EC_384, "e"), algorithms=("ES256", "ES384"))
    assert isinstance(await who(signed(EC_384, "ES384", kid="e"), row), Caller)
    row = issuer(tmp_path, public_jwk(EC_256, "e"), algorithms=("ES256", "ES384"))
    assert isinstance(await who(forged({"alg": "ES384", "kid": "e"}, secret=b"x"), row), Refused)


async def test_each_tenant_is_known_by_issuer_and_audience(tmp_path: Path) -> None:
    acme = issuer(tmp_path, audience=("acme",), claims={"tenant": {"value": "acme"}})
    globex = issuer(tmp_path, audience=("globex",), claims={"tenant": {"value": "globex"}})
    for tenant in ("acme", "globex"):
        found = await who(signed(aud=tenant, tenant="other"), acme, globex)
        assert isinstance(found, Caller) and found.tenant == tenant
    both = await who(signed(aud=["acme", "globex"]), acme, globex)
    assert isinstance(both, Refused), "a token for two tenants says nothing of which"


async def test_an_issuers_key_does_not_sign_for_another(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    one = issuer(tmp_path / "one", public_jwk(RSA_A, "k"), issuer="https://one.example")
    two = issuer(tmp_path / "two", public_jwk(RSA_B, "k"), issuer="https://two.example")
    assert isinstance(await who(signed(RSA_A, kid="k", iss="https://two.example"), one, two), Refused)
    assert isinstance(await who(signed(RSA_B, kid="k", iss="https://two.example"), one, two), Caller)


@pytest.mark.parametrize(
    "broken",
    [
        {"algorithms": ("HS256",)},
        {"algorithms": ("none",)},
        {"algorithms": ("RS256", "HS512")},
        {"algorithms": ()},
        {"audience": ()},
        {"audience": ("",)},
        {"issuer": ""},
    ],
    ids=str,
)
def test_an_issuer_that_would_let_anybody_sign_cannot_be_configured(tmp_path: Path, broken: Any) -> None:
    with pytest.raises(ConfigError):
        issuer(tmp_path, **broken)


# --- an agent for a user

BOT = Caller(subject="bot", scopes=frozenset({"read", "admin"}), roles=frozenset({"helper"}), environment="test")


async def test_an_agent_that_acts_for_a_user_is_both(tmp_path: Path) -> None:
    row = issuer(tmp_path, claims={"tenant": "org.id", "roles": "roles", "stage": "stage"})
    token = signed(act={"sub": "bot"}, scope="read write", org={"id": "acme"}, roles=["clerk"], stage="triage", sid="s")
    found = await who(token, row, agents=(BOT,))
    assert isinstance(found, Caller) and found.acting_for is not None
    assert (found.subject, found.on_behalf_of, found.tenant, found.stage) == ("bot", "ann", "acme", "triage")
    assert found.roles == {"helper"}
    assert found.scopes == {"read"}, "what the token lacks the agent has not, whatever its row says"
    assert (found.acting_for.subject, found.acting_for.roles) == ("ann", {"clerk"})
    assert found.acting_for.scopes == {"read", "write"}
    assert found.credential is not None and found.credential == found.acting_for.credential


CHAIN: dict[str, Any] = {"sub": "bot"}
for _ in range(4):
    CHAIN = {"sub": "bot", "act": CHAIN}


@pytest.mark.parametrize(
    "act",
    [
        {"sub": "stranger"},
        {},
        {"sub": ""},
        {"sub": ["bot"]},
        "bot",
        None,
        {"sub": "bot", "iss": "https://other.example"},
        {"sub": "bot", "act": "earlier"},
        CHAIN,
    ],
    ids=["unknown", "no-sub", "empty", "list", "text", "null", "other-issuer", "odd-chain", "long-chain"],
)
async def test_an_actor_that_is_not_plainly_known_is_nobody(tmp_path: Path, act: Any) -> None:
    token = jwt.encode({**claims(), "act": act}, RSA_A, algorithm="RS256", headers={"kid": "a"})
    assert isinstance(await who(token, issuer(tmp_path), agents=(BOT,)), Refused)


async def test_only_the_current_actor_counts(tmp_path: Path) -> None:
    found = await who(signed(act={"sub": "bot", "act": {"sub": "stranger"}}), issuer(tmp_path), agents=(BOT,))
    assert isinstance(found, Caller) and found.subject == "bot"
    found = await who(signed(act={"sub": "stranger", "act": {"sub": "bot"}}), issuer(tmp_path), agents=(BOT,))
    assert isinstance(found, Refused)


@pytest.mark.parametrize(("users", "agents", "fits"), [("a", "a", True), ("a", "b", False), ("", "b", False)])
async def test_agent_and_user_are_of_one_tenant(tmp_path: Path, users: str, agents: str, fits: bool) -> None:
    row = issuer(tmp_path, claims={"tenant": "tid"})
    bot = Caller(subject="bot", tenant=agents)
    found = await who(signed(act={"sub": "bot"}, tid=users), row, agents=(bot,))
    assert isinstance(found, Caller) == fits


async def test_an_agents_row_for_the_tenant_goes_before_its_row_for_any(tmp_path: Path) -> None:
    row = issuer(tmp_path, claims={"tenant": "tid"})
    any_tenant = Caller(subject="bot", roles=frozenset({"any"}))
    own = Caller(subject="bot", tenant="acme", roles=frozenset({"own"}))
    for tenant, roles in (("acme", {"own"}), ("globex", {"any"})):
        found = await who(signed(act={"sub": "bot"}, tid=tenant), row, agents=(any_tenant, own))
        assert isinstance(found, Caller) and (found.roles, found.tenant) == (roles, tenant)


async def test_the_reason_names_the_claim_that_is_missing(tmp_path: Path) -> None:
    found = await who(signed(exp=None), issuer(tmp_path))
    assert isinstance(found, Refused) and '"exp"' in found.reason
