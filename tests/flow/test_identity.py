"""Who comes in, from configuration and store to the verdict: what was taken away counts on the next request."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.coarse import CoarseFiles
from tests.flow.worlds import World, Worlds, tool, with_default
from tests.identity.signing import RSA_A, RSA_B, claims, key_file, key_set, public_jwk, signed
from toolcrib.callers import Callers
from toolcrib.errors import PolicyError, StoreError
from toolcrib.identity.keys import new_key
from toolcrib.settings import load_settings
from toolcrib.store.sqlite import SqliteStore
from toolcrib.types import Caller, Code, Presented, Revocation, RevokedKind

TOKEN, PROXY_SECRET = "a-token-of-some-length", "a-secret-of-the-proxy"
TOML = """
[crib]
name = "test"
environment = "test"
region = "eu"
[[identity.tokens]]
token = "file:bot.token"
caller = {subject = "bot", tenant = "acme"}
[[identity.jwt]]
issuer = "https://issuer.example"
audience = ["toolcrib"]
keys_file = "keys.json"
[identity.jwt.claims]
tenant = "org.id"
roles = "roles"
[[identity.agents]]
caller = {subject = "helper", scopes = ["orders"]}
[[identity.proxies]]
name = "edge"
addresses = ["10.0.0.0/24"]
header = "X-Client-Cert"
secret = "file:edge.secret"
secret_header = "X-Proxy-Secret"
[[identity.proxies.clients]]
certificate = "CN=billing"
caller = {subject = "billing", kind = "workload", tenant = "acme"}
"""


class Place:
    """A folder with a configuration and a store, and the callers of both."""

    def __init__(self, folder: Path, toml: str = TOML) -> None:
        self.folder = folder
        self.write("toolcrib.toml", toml)
        self.write("bot.token", TOKEN)
        self.write("edge.secret", PROXY_SECRET)
        key_file(folder, public_jwk(RSA_A, "a"))
        self.store = SqliteStore(folder / "store.db")
        self.now = time.time()
        self.callers = Callers(lambda: load_settings(folder / "toolcrib.toml"), self.store, now=lambda: self.now)

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8")

    def key(self, **more: Any) -> tuple[str, str]:
        """A new key and its id."""
        given = {"created_by": "tests", "now": datetime.now(UTC), "valid_for": timedelta(days=1), **more}
        key, record = new_key({"subject": "keyed", "tenant": "acme"}, **given)
        self.store.put_key(record)
        return key, record.key_id

    def revoke(self, kind: RevokedKind, value: str) -> None:
        self.store.revoke(Revocation(kind=kind, value=value, at="2026-01-01T00:00:00+00:00", by="tests"))

    async def who(self, token: str | None = None, **more: Any) -> Caller | None:
        authorization = None if token is None else f"Bearer {token}"
        return await self.callers.identify(Presented(**{"authorization": authorization, **more}))


@pytest.fixture
def place(tmp_path: Path) -> Any:
    one = Place(tmp_path)
    yield one
    one.store.close()


HELPER = '{subject = "helper", scopes = ["orders"]}'
CERTIFIED: dict[str, Any] = {
    "peer": "10.0.0.7", "headers": {"x-client-cert": "CN=billing", "x-proxy-secret": PROXY_SECRET},
}  # fmt: skip


async def test_each_credential_gives_its_caller(place: Place) -> None:
    key, _ = place.key()
    found = [
        await place.who(TOKEN),
        await place.who(key),
        await place.who(signed(org={"id": "acme"}, roles=["clerk"])),
        await place.who(**CERTIFIED),
    ]
    assert [(one.subject, one.tenant, one.environment, one.region) for one in found if one] == [
        ("bot", "acme", "test", "eu"),
        ("keyed", "acme", "test", "eu"),
        ("ann", "acme", "test", "eu"),
        ("billing", "acme", "test", "eu"),
    ]
    assert [place.callers.established(one) for one in found] == found
    assert [one and one.credential and one.credential.kind for one in found] == ["token", "key", "jwt", "proxy"]


async def test_who_shows_nothing_is_nobody_and_no_reason_to_complain(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    assert await place.who() is None
    assert caplog.text == ""


@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer", "Bearer ", "Basic YTpi", TOKEN, f"Token {TOKEN}", f"Bearer {TOKEN}x", f"Bearer {TOKEN} {TOKEN}",
     "Bearer tck_0000000000000000_" + "A" * 43, "Bearer a.b.c", "Bearer é", "Bearer \ud800"],
    ids=lambda text: ascii(text[:24]),
)  # fmt: skip
async def test_anything_else_is_nobody(place: Place, authorization: str) -> None:
    assert await place.who(authorization=authorization) is None


async def test_the_word_bearer_is_known_in_any_case(place: Place) -> None:
    assert await place.who(authorization=f"bEARER  {TOKEN}") is not None


async def test_two_identities_in_one_request_are_none(place: Place) -> None:
    assert await place.who(TOKEN, **CERTIFIED) is None
    stranger = {**CERTIFIED, "peer": "10.9.9.9"}
    assert await place.who(**stranger) is None
    assert await place.who(TOKEN, **stranger) is None, "a certificate header from a stranger is not overlooked"


async def test_no_header_and_no_claim_beside_the_mapping_moves_a_caller_to_another_tenant(place: Place) -> None:
    headers = {"x-tenant": "globex", "tenant": "globex", "x-toolcrib-tenant": "globex", "x-forwarded-user": "root"}
    plain = await place.who(TOKEN)
    assert await place.who(TOKEN, headers=headers) == plain
    token = await place.who(signed(org={"id": "acme"}, tenant="globex", tid="globex"), headers=headers)
    assert token is not None and token.tenant == "acme"


# --- what was taken away


async def test_a_revoked_subject_session_or_token_counts_at_the_door_and_at_the_next_verdict(place: Place) -> None:
    key, _ = place.key()
    cases = [
        (TOKEN, RevokedKind.SUBJECT, "acme/bot"),
        (key, RevokedKind.SUBJECT, "acme/keyed"),
        (signed(org={"id": "acme"}, sid="s-1"), RevokedKind.SESSION, "s-1"),
        (signed(org={"id": "acme"}, sid="s-1", jti="t-1"), RevokedKind.SESSION, "s-1"),
        (signed(org={"id": "acme"}, sid="s-1", jti="t-1"), RevokedKind.SESSION, "t-1"),
        (signed(org={"id": "acme"}), RevokedKind.SUBJECT, "acme/ann"),
    ]
    for token, kind, value in cases:
        known = await place.who(token)
        assert known is not None
        place.revoke(kind, value)
        with pytest.raises(PolicyError):
            place.callers.established(known)
        assert await place.who(token) is None
        assert place.store.restore(kind, value)
        assert place.callers.established(known) == known


async def test_the_same_name_in_another_tenant_is_somebody_else(place: Place) -> None:
    place.revoke(RevokedKind.SUBJECT, "globex/bot")
    place.revoke(RevokedKind.SUBJECT, "/bot")
    assert await place.who(TOKEN) is not None


async def test_a_revoked_user_ends_its_agent_too(place: Place) -> None:
    helper = await place.who(signed(org={"id": "acme"}, act={"sub": "helper"}))
    assert helper is not None and helper.acting_for is not None
    place.revoke(RevokedKind.SUBJECT, "acme/ann")
    with pytest.raises(PolicyError):
        place.callers.established(helper)


def test_a_caller_that_the_application_built_is_asked_for_a_revoked_subject(place: Place) -> None:
    built = Caller(subject="ann", tenant="acme")
    assert place.callers.established(built) is built
    place.revoke(RevokedKind.SUBJECT, "acme/ann")
    with pytest.raises(PolicyError):
        place.callers.established(built)


def chained(*subjects: str, tenant: str = "acme") -> Caller:
    """The first acts for the second, and so on."""
    first, *behind = subjects
    return Caller(subject=first, tenant=tenant, acting_for=chained(*behind, tenant=tenant) if behind else None)


@pytest.mark.parametrize("revoked", ["first", "middle", "last"])
def test_a_revocation_counts_for_everybody_who_acts_for_the_revoked_one(place: Place, revoked: str) -> None:
    first = chained("first", "middle", "last")
    assert place.callers.established(first) is first
    place.revoke(RevokedKind.SUBJECT, f"acme/{revoked}")
    with pytest.raises(PolicyError):
        place.callers.established(first)


async def test_a_credential_that_ends_ends_everybody_who_acts_for_its_holder(place: Place) -> None:
    keyed = await place.who(place.key()[0])
    first = Caller(subject="first", tenant="acme", acting_for=Caller(subject="middle", acting_for=keyed))
    assert place.callers.established(first) is first
    place.now += 2 * 24 * 60 * 60
    with pytest.raises(PolicyError):
        place.callers.established(first)


@pytest.mark.parametrize("names", [("local-operator",), ("a", "local-operator"), ("a", "b", "local-operator")])
async def test_nobody_who_came_in_by_a_token_acts_for_the_local_operator_at_any_remove(
    place: Place, names: tuple[str, ...]
) -> None:
    ann = await place.who(signed())
    assert ann is not None and place.callers.established(ann)
    for last, taken in (("local-operator", True), ("somebody", False)):
        behind = chained(*names[:-1], last, tenant="")
        assert bool(place.callers._takes_local_name(replace(ann, acting_for=behind))) is taken


async def test_a_key_that_ends_meanwhile_is_nobodys(place: Place) -> None:
    key, key_id = place.key()
    known = await place.who(key)
    place.now += 2 * 24 * 60 * 60
    assert await place.who(key) is None
    with pytest.raises(PolicyError):
        place.callers.established(known)
    place.now -= 2 * 24 * 60 * 60
    record = place.store.api_key(key_id)
    assert record is not None
    place.store.put_key(replace(record, revoked_at="2026-01-01T00:00:00+00:00"))
    assert await place.who(key) is None
    with pytest.raises(PolicyError):
        place.callers.established(known)


async def test_a_token_that_expires_meanwhile_is_nobodys(place: Place) -> None:
    known = await place.who(signed(exp=claims()["iat"] + 300))
    assert known is not None and place.callers.established(known)
    place.now += 300 + 59
    assert place.callers.established(known), "the skew that is granted at the door is granted here"
    place.now += 2
    with pytest.raises(PolicyError):
        place.callers.established(known)


@pytest.mark.parametrize(
    ("old", "new", "token"),
    [
        ('token = "file:bot.token"', 'token = "file:other.token"', TOKEN),
        ('{subject = "bot", tenant = "acme"}', '{subject = "bot", tenant = "globex"}', TOKEN),
        ("https://issuer.example", "https://new.example", "jwt"),
        ('audience = ["toolcrib"]', 'audience = ["another"]', "jwt"),
        ('audience = ["toolcrib"]', 'audience = ["toolcrib"]\ntenants = ["globex"]', "jwt"),
        ('audience = ["toolcrib"]', 'audience = ["toolcrib"]\nalgorithms = ["ES256"]', "jwt"),
        ('{subject = "helper", scopes = ["orders"]}', '{subject = "other"}', "helper"),
        ('{subject = "helper", scopes = ["orders"]}', '{subject = "helper", tenant = "globex"}', "helper"),
        ('kind = "workload", tenant = "acme"', 'kind = "workload", tenant = "globex"', None),
    ],
    ids=["token", "tenant", "issuer", "audience", "tenants", "algorithms", "agent", "agents-tenant", "certificate"],
)
async def test_what_leaves_the_configuration_counts_at_once(
    place: Place, old: str, new: str, token: str | None
) -> None:
    org = {"org": {"id": "acme"}}
    tokens = {"jwt": signed(**org), "helper": signed(**org, act={"sub": "helper"})}
    shown: dict[str, Any] = CERTIFIED if token is None else {"token": tokens.get(token, token)}
    known = await place.who(**shown)
    assert known is not None
    assert old in TOML
    place.write("toolcrib.toml", TOML.replace(old, new))
    with pytest.raises(PolicyError):
        place.callers.established(known)
    again = await place.who(**shown)
    assert again is None or again.tenant == "globex"


@pytest.mark.parametrize(
    ("old", "new", "token"),
    [
        ('roles = "roles"', 'roles = "groups"', "jwt"),
        ('environment = "test"', 'environment = "live"', "jwt"),
        ('environment = "test"', 'environment = "live"', "key"),
        ('scopes = ["orders"]}', "scopes = []}", "helper"),
        (HELPER, '{subject = "helper"}\n[[identity.agents]]\ncaller = {tenant = "globex", ' + HELPER[1:], "helper"),
        (HELPER, '{roles = ["more"], ' + HELPER[1:], "helper"),
    ],
    ids=["claims", "environment", "environment-of-a-key", "agent-narrowed", "row-of-another-tenant", "agent-widened"],
)  # fmt: skip
async def test_who_would_be_described_otherwise_now_is_asked_anew(place: Place, old: str, new: str, token: str) -> None:
    given = {"org": {"id": "acme"}, "roles": ["clerk"], "groups": ["boss"], "scope": "orders"}
    shown = {"jwt": signed(**given), "helper": signed(**given, act={"sub": "helper"}), "key": place.key()[0]}[token]
    known = await place.who(shown)
    assert known is not None and place.callers.established(known) == known
    assert TOML.count(old) == 1
    place.write("toolcrib.toml", TOML.replace(old, new))
    with pytest.raises(PolicyError):
        place.callers.established(known)
    again = await place.who(shown)
    assert again is not None and again != known
    assert place.callers.established(again) == again
    place.write("toolcrib.toml", TOML)
    assert place.callers.established(known) == known


async def test_what_changes_elsewhere_ends_nobody(place: Place) -> None:
    known = [await place.who(signed(org={"id": "acme"}, act={"sub": "helper"})), await place.who(place.key()[0])]
    more = '\n[[identity.agents]]\ncaller = {subject = "new"}\n[gate]\ncalls_per_minute = 5\n'
    place.write("toolcrib.toml", TOML + more)
    assert [place.callers.established(one) for one in known] == known


async def test_a_key_that_stands_for_another_caller_now_is_not_this_ones(place: Place) -> None:
    key, key_id = place.key()
    known, record = await place.who(key), place.store.api_key(key_id)
    assert known is not None and record is not None
    place.store.put_key(replace(record, caller={**record.caller, "tenant": "globex"}))
    with pytest.raises(PolicyError):
        place.callers.established(known)


# --- whose word counts for whom

TWO_ISSUERS = (
    TOML.replace('audience = ["toolcrib"]', 'audience = ["toolcrib"]\ntenants = ["acme"]')
    + """
[[identity.jwt]]
issuer = "https://other.example"
audience = ["toolcrib"]
keys_file = "other.json"
tenants = ["globex"]
claims = {tenant = "org.id"}
"""
)


async def test_no_issuer_makes_callers_of_the_tenants_of_another(tmp_path: Path) -> None:
    one = Place(tmp_path, TWO_ISSUERS)
    (tmp_path / "other.json").write_bytes(key_set(public_jwk(RSA_B, "a")))
    other = {"iss": "https://other.example", "act": {"sub": "helper"}}
    for given, key in (({}, RSA_A), (other, RSA_B)):
        for tenant in ("acme", "globex", "", "initech"):
            found = await one.who(signed(key, org={"id": tenant}, **given))
            own = tenant == ("globex" if given else "acme")
            assert (found is not None and found.tenant == tenant) == own
    one.store.close()


async def test_nobody_from_outside_is_the_local_operator(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    key, _ = place.key()
    ann, helper = signed(org={"id": "acme"}), signed(org={"id": "acme"}, act={"sub": "helper"})
    shown: list[dict[str, Any]] = [{"token": ann}, {"token": helper}, CERTIFIED, {"token": TOKEN}, {"token": key}]
    known = [await place.who(**one) for one in shown]
    assert None not in known
    for subject, out in (("ann", [0, 1]), ("helper", [1]), ("billing", [2]), ("bot", []), ("keyed", [])):
        caplog.clear()
        place.write("toolcrib.toml", TOML + f'\n[identity.local]\nsubject = "{subject}"\ntenant = "acme"\n')
        assert [n for n, one in enumerate(shown) if await place.who(**one) is None] == out
        assert ("is the local operator" in caplog.text) is bool(out)
        for number in out:
            with pytest.raises(PolicyError):
                place.callers.established(known[number])
        place.write("toolcrib.toml", TOML + f'\n[identity.local]\nsubject = "{subject}"\ntenant = "globex"\n')
        assert None not in [await place.who(**one) for one in shown], "of another tenant it is somebody else"


async def test_a_key_set_that_rotates_counts_at_once(place: Place) -> None:
    old, new = signed(), signed(RSA_B, kid="b")
    assert (await place.who(old), await place.who(new))[1] is None
    key_file(place.folder, public_jwk(RSA_B, "b"))
    assert await place.who(old) is None
    assert await place.who(new) is not None


@pytest.mark.parametrize("waits", [0.0, 2.1], ids=["at-once", "after-a-while"])
async def test_a_token_or_key_set_of_equal_length_within_one_tick_of_a_coarse_clock_counts(
    place: Place, monkeypatch: pytest.MonkeyPatch, waits: float
) -> None:
    files = CoarseFiles(monkeypatch)
    old, new = signed(kid="k"), signed(RSA_B, kid="k")
    key_file(place.folder, public_jwk(RSA_A, "k"))
    assert [await place.who(token) is not None for token in (TOKEN, old, new)] == [True, True, False]
    other = TOKEN.replace("some", "same")
    place.write("bot.token", other)
    key_file(place.folder, public_jwk(RSA_B, "k"))
    files.passes(waits)
    assert [await place.who(token) is not None for token in (TOKEN, old, new, other)] == [False, False, True, True]


# --- what goes wrong


async def test_a_lost_store_lets_nobody_in(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    known = await place.who(TOKEN)

    def lost(_self: SqliteStore) -> Any:
        raise StoreError("the disk is gone")

    monkeypatch.setattr(SqliteStore, "revocations", lost)
    assert await place.who(TOKEN) is None
    with pytest.raises(StoreError):
        place.callers.established(known)


async def test_what_cannot_be_read_costs_its_own_callers_only(place: Place) -> None:
    (place.folder / "bot.token").unlink()
    assert await place.who(TOKEN) is None
    assert await place.who(**CERTIFIED) is not None
    (place.folder / "edge.secret").unlink()
    assert await place.who(**CERTIFIED) is None
    assert await place.who(**{**CERTIFIED, "headers": {"x-client-cert": "CN=billing"}}) is None
    assert await place.who(signed()) is not None
    assert len(place.callers.unreadable_tokens()) == 2
    (place.folder / "keys.json").unlink()
    assert await place.who(signed()) is None


async def test_a_fault_that_nobody_foresaw_lets_nobody_in_and_is_not_quoted(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def breaks(*_args: Any, **_more: Any) -> Any:
        raise RuntimeError(f"while looking at {TOKEN}")

    monkeypatch.setattr("toolcrib.callers.certified", breaks)
    assert await place.who(TOKEN) is None
    assert "RuntimeError" in caplog.text
    assert TOKEN not in caplog.text


async def test_no_credential_is_in_any_word_of_it(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    key, _ = place.key()
    expired, foreign = signed(exp=1), signed(iss="https://x.example")
    shown = [TOKEN, key, signed(), expired, foreign, key[:-1] + "!", TOKEN + "x", signed(RSA_B)]
    known = [await place.who(token) for token in shown]
    await place.who(**CERTIFIED)
    await place.who(**{**CERTIFIED, "peer": "10.9.9.9"})
    place.revoke(RevokedKind.SUBJECT, "acme/bot")
    with pytest.raises(PolicyError) as caught:
        place.callers.established(known[0])
    said = caplog.text + repr(known) + str(caught.value) + repr(place.callers._current())
    assert "was refused (401)" in caplog.text
    for secret in (*shown, PROXY_SECRET, key.split("_", 2)[2], *(part for t in shown[2:5] for part in t.split("."))):
        assert secret not in said


# --- to the verdict

SHOP = [tool("get_order", "Look up one order.", properties={"order_id": {}})]
SCOPED = """
[[tools]]
match = "*"
risk = "read"
required_scopes = ["orders"]
[[identity.jwt]]
issuer = "https://issuer.example"
audience = ["toolcrib"]
keys_file = "keys.json"
claims = {tenant = "org.id"}
[[identity.agents]]
caller = {subject = "helper", kind = "agent", scopes = ["orders"]}
"""


@pytest.fixture
def world(make_world: Worlds) -> World:
    one: World = with_default(make_world, {"shop": SHOP})(toml=SCOPED)
    key_file(one.folder, public_jwk(RSA_A, "a"))
    return one


async def test_an_agent_may_what_both_may_and_the_trace_names_both(world: World) -> None:
    crib = world.crib
    for scope, code in (("orders", Code.OK), ("other", Code.NOT_AVAILABLE)):
        token = signed(org={"id": "acme"}, act={"sub": "helper"}, scope=scope)
        helper = await crib.identify(Presented(authorization=f"Bearer {token}"))
        done = await crib.call("shop.get_order", {"order_id": "1"}, caller=helper)
        assert done.code is code
        trace = crib.trace(done.trace_id)
        assert (trace.subject, trace.on_behalf_of, trace.tenant) == ("helper", "ann", "acme")


async def test_revoked_between_two_calls_is_refused_at_the_second_and_on_record(world: World) -> None:
    crib = world.crib
    ann = await crib.identify(Presented(authorization=f"Bearer {signed(scope='orders', sid='s-1')}"))
    assert (await crib.call("shop.get_order", {"order_id": "1"}, caller=ann)).ok
    row = Revocation(kind=RevokedKind.SESSION, value="s-1", at="2026-01-01T00:00:00+00:00", by="tests")
    crib.store.revoke(row)
    refused = await crib.call("shop.get_order", {"order_id": "2", "tenant": "globex"}, caller=ann)
    assert refused.code is Code.UNAVAILABLE
    assert "revoked" not in refused.message
    assert len(world.servers["shop"].calls) == 1
    assert crib.trace(refused.trace_id).subject == "ann"
