"""What clients over HTTP are told of the way in: RFC 6750 challenges, the RFC 9728 document, and the step-up."""

from __future__ import annotations

import re
from dataclasses import replace

import anyio
import httpx2
import pytest

from toolcrib.server.challenge import ProtectedResource, challenge, expressible, named_servers
from toolcrib.server.guard import presented
from toolcrib.server.surface import mcp_name
from toolcrib.types import Caller, CallerKind

from .asking import ask, names
from .carriers import client, served, who
from .fakes import FakeCrib, tool
from .test_http import ACCEPT, INITIALIZE, LIST, bearer, modern

ISSUER = "https://login.example"
PROTECTED = ProtectedResource(authorization_servers=(ISSUER,))
STRICT = ProtectedResource(authorization_servers=(ISSUER,), required_scopes=("crib.use", "crib.read"))
DOCUMENT = "/.well-known/oauth-protected-resource"


@pytest.fixture
def crib():
    made = FakeCrib()
    made.put(tool("freight.shipment_get", preload=True))
    made.put(tool("billing.invoice_get", required_scopes=("secret.scope",)), known_to=frozenset({"bob"}))
    made.put(tool("billing.refund", required_scopes=("billing.write", "billing.read")), known_to=frozenset({"bob"}))
    made.disclosed["billing.refund"] = ("billing.write", "billing.read")
    return made


def told(response):
    """The parameters of a challenge; the scheme must be Bearer, and the whole header must parse."""
    scheme, _, rest = response.headers["www-authenticate"].partition(" ")
    assert scheme == "Bearer"
    pairs = re.findall(r'(\w+)="([^"]*)"', rest)
    assert ", ".join(f'{name}="{value}"' for name, value in pairs) == rest
    return dict(pairs)


def call(name, arguments=None):
    return {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": name, "arguments": arguments or {}}}


# --- 401 and 403 at the door


@pytest.mark.parametrize("authorization", [None, "Bearer nobody"], ids=["none", "unknown"])
async def test_401_points_at_the_document_and_names_the_error_only_where_a_token_came(crib, authorization):
    headers = {**ACCEPT, **({"Authorization": authorization} if authorization else {})}
    async with served(crib, describe=lambda: PROTECTED) as (url, _), httpx2.AsyncClient() as http:
        response = await http.post(url, json=LIST, headers=headers)
        parameters = told(response)
        assert response.status_code == 401
        assert parameters["resource_metadata"] == url.replace("/mcp", DOCUMENT + "/mcp")
        assert parameters.get("error") == ("invalid_token" if authorization else None)
        assert set(parameters) <= {"resource_metadata", "error"}
        assert (await http.get(parameters["resource_metadata"])).json()["resource"] == url


async def test_401_names_the_scopes_that_all_need_and_no_others(crib):
    async with served(crib, describe=lambda: STRICT) as (url, _), httpx2.AsyncClient() as http:
        response = await http.post(url, json=LIST, headers=ACCEPT)
    assert told(response)["scope"] == "crib.use crib.read"
    assert "billing" not in str(response.headers) + response.text


@pytest.mark.parametrize("body", [LIST, INITIALIZE, call("find_tools", {"task": "x"})], ids=["list", "init", "call"])
async def test_a_known_caller_without_the_scopes_that_all_need_does_not_come_in(crib, body):
    some = Caller(subject="ada", scopes=frozenset({"crib.use"}))

    async def resolve(_presented):
        return some

    async with served(crib, resolve, describe=lambda: STRICT) as (url, _), httpx2.AsyncClient() as http:
        response = await http.post(url, json=body, headers=bearer("ada"))
    assert response.status_code == 403
    assert told(response) == {
        "resource_metadata": url.replace("/mcp", DOCUMENT + "/mcp"),
        "error": "insufficient_scope",
        "scope": "crib.use crib.read",
    }
    assert crib.calls == []


async def test_a_caller_with_all_scopes_that_all_need_comes_in(crib):
    async def resolve(_presented):
        return Caller(subject="ada", scopes=frozenset({"crib.use", "crib.read", "more"}))

    async with served(crib, resolve, describe=lambda: STRICT) as (url, _), httpx2.AsyncClient() as http:
        assert (await http.post(url, **modern("ada", LIST))).status_code == 200


async def test_what_is_required_is_taken_from_the_configuration_of_the_moment(crib):
    now = [ProtectedResource()]
    async with served(crib, describe=lambda: now[0]) as (url, _), httpx2.AsyncClient() as http:
        assert (await http.post(url, **modern("ada", LIST))).status_code == 200
        now[0] = STRICT
        assert (await http.post(url, **modern("ada", LIST))).status_code == 403


async def test_a_description_that_cannot_be_had_lets_nobody_in(crib):
    def broken():
        raise RuntimeError("secret")

    async with served(crib, describe=broken) as (url, _), httpx2.AsyncClient() as http:
        response = await http.post(url, **modern("ada", LIST))
    assert response.status_code == 503
    assert "secret" not in response.text


# --- the document


@pytest.mark.parametrize("path", [DOCUMENT, DOCUMENT + "/mcp"])
async def test_the_document_says_whose_tokens_are_taken_to_anybody(crib, path):
    async with served(crib, describe=lambda: PROTECTED) as (url, _), httpx2.AsyncClient() as http:
        response = await http.get(url.replace("/mcp", path))
    assert (response.status_code, response.headers["content-type"]) == (200, "application/json")
    assert response.json() == {
        "resource": url,
        "authorization_servers": [ISSUER],
        "bearer_methods_supported": ["header"],
    }


async def test_the_document_names_the_scopes_that_all_need_and_no_others(crib):
    async with served(crib, describe=lambda: STRICT) as (url, _), httpx2.AsyncClient() as http:
        document = (await http.get(url.replace("/mcp", DOCUMENT))).json()
    assert document["scopes_supported"] == ["crib.use", "crib.read"]


async def test_without_an_authorization_server_there_is_no_document_and_no_word_of_one(crib):
    async with served(crib) as (url, _), httpx2.AsyncClient() as http:
        for path in (DOCUMENT, DOCUMENT + "/mcp"):
            assert (await http.get(url.replace("/mcp", path))).status_code == 404
        assert told_nothing(await http.post(url, json=LIST, headers=ACCEPT))


def told_nothing(response):
    return response.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    ("configured", "issuers", "named"),
    [
        ((), (), ()),
        ((), (ISSUER,), (ISSUER,)),
        ((), (ISSUER, ISSUER), (ISSUER,)),
        ((), (ISSUER, "https://globex.example"), ()),
        ((ISSUER,), ("https://acme.example", "https://globex.example"), (ISSUER,)),
        (("https://a.example", "https://b.example"), (), ("https://a.example", "https://b.example")),
    ],
    ids=["none", "one", "one-twice", "two", "chosen", "several-chosen"],
)
def test_strangers_are_not_told_whose_identity_providers_there_are(configured, issuers, named):
    assert named_servers(configured, issuers=issuers) == named


@pytest.mark.parametrize("path", ["/other", "x", "/mcp/", "/../mcp"])
async def test_no_document_lies_elsewhere(crib, path):
    async with served(crib, describe=lambda: PROTECTED) as (url, _), httpx2.AsyncClient() as http:
        response = await http.get(url.replace("/mcp", DOCUMENT + path))
    assert response.status_code == 404


async def test_the_document_is_not_given_under_a_foreign_host_name(crib):
    async with served(crib, describe=lambda: PROTECTED) as (url, _), httpx2.AsyncClient() as http:
        response = await http.get(url.replace("/mcp", DOCUMENT), headers={"Host": "evil.example"})
    assert response.status_code == 421


async def test_a_configured_resource_is_named_wherever_the_request_came_to(crib):
    known = ProtectedResource(resource="https://tools.example/team/mcp", authorization_servers=(ISSUER,))
    async with served(crib, describe=lambda: known) as (url, _), httpx2.AsyncClient() as http:
        document = await http.get(url.replace("/mcp", DOCUMENT + "/team/mcp"))
        response = await http.post(url, json=LIST, headers=ACCEPT)
    assert document.json()["resource"] == "https://tools.example/team/mcp"
    assert told(response)["resource_metadata"] == f"https://tools.example{DOCUMENT}/team/mcp"


@pytest.mark.parametrize("scope", ['a" evil="', "a b", "a\r\nSet-Cookie: x=1", "ü", ""])
def test_what_is_no_scope_is_not_written_into_a_header(scope):
    assert not expressible([scope])
    value = challenge(ProtectedResource(), {}, error="insufficient_scope", scopes=["good", scope])
    assert value == 'Bearer error="insufficient_scope"'


def test_a_configured_address_cannot_break_out_of_the_header():
    odd = ProtectedResource(resource='https://x.example/a" b\r\nc', authorization_servers=(ISSUER,))
    value = challenge(odd, {})
    assert value.count('"') == 2
    assert value.isprintable()


# --- step-up


@pytest.mark.parametrize("name", ["billing.refund", mcp_name("billing.refund")])
@pytest.mark.parametrize("through", [True, False], ids=["call_tool", "direct"])
async def test_a_tool_one_may_know_of_names_exactly_the_scopes_it_needs(crib, name, through):
    body = call("call_tool", {"name": name}) if through else call(name)
    headers = {"Mcp-Name": body["params"]["name"]}
    async with served(crib, describe=lambda: PROTECTED) as (url, _), httpx2.AsyncClient() as http:
        response = await http.post(url, **modern("ada", body, **headers))
    assert response.status_code == 403
    assert told(response) == {
        "resource_metadata": url.replace("/mcp", DOCUMENT + "/mcp"),
        "error": "insufficient_scope",
        "scope": "billing.write billing.read",
    }
    assert [made[0] for made in crib.calls] == [name], "it was judged and traced like any other"


@pytest.mark.parametrize("through", [True, False], ids=["call_tool", "direct"])
async def test_a_client_of_the_older_era_is_stepped_up_too(crib, through):
    body = call("call_tool", {"name": "billing.refund"}) if through else call("billing.refund")
    async with served(crib) as (url, _), httpx2.AsyncClient() as http:
        response = await post_in_session(http, url, body)
        again = await post_in_session(http, url, call("freight.shipment_get", {"id": 1}))
    assert (response.status_code, told(response)["scope"]) == (403, "billing.write billing.read")
    assert again.status_code == 200


async def post_in_session(http, url, body):
    opened = await http.post(url, json=INITIALIZE, headers=bearer("ada"))
    session = {**bearer("ada"), "Mcp-Session-Id": opened.headers["mcp-session-id"]}
    await http.post(url, json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=session)
    return await http.post(url, json=body, headers=session)


@pytest.mark.parametrize("through", [True, False], ids=["call_tool", "direct"])
@pytest.mark.parametrize("older", [True, False], ids=["2025-11-25", "2026-07-28"])
async def test_a_hidden_tool_is_never_stepped_up_to_and_answers_as_none_at_all(crib, through, older):
    answers = []
    async with served(crib, describe=lambda: PROTECTED) as (url, _), httpx2.AsyncClient() as http:
        for name in ("billing.invoice_get", "billing.invoice_got"):
            body = call("call_tool", {"name": name}) if through else call(name)
            if older:
                response = await post_in_session(http, url, body)
            else:
                response = await http.post(url, **modern("ada", body, **{"Mcp-Name": body["params"]["name"]}))
            text = re.sub(r"trace_id\\?\":\\?\"t\d+", "trace_id", response.text)
            varying = ("date", "mcp-session-id", "content-length")
            headers = sorted((k, v) for k, v in response.headers.items() if k not in varying)
            answers.append((response.status_code, text, headers))
    assert answers[0] == answers[1]
    assert "secret.scope" not in str(answers)
    assert "www-authenticate" not in str(answers)
    assert "not_available" in answers[0][1] or "-32602" in answers[0][1]


async def test_scopes_that_cannot_be_written_down_are_not_asked_for(crib):
    crib.disclosed["billing.refund"] = ("billing write",)
    async with served(crib) as (url, _), httpx2.AsyncClient() as http:
        response = await http.post(
            url, **modern("ada", call("call_tool", {"name": "billing.refund"}), **{"Mcp-Name": "call_tool"})
        )
    assert response.status_code == 200
    assert response.json()["result"]["structuredContent"]["code"] == "not_available"


async def test_without_http_there_is_no_step_up(crib):
    from mcp import Client

    from .carriers import gateway

    async with Client(gateway(crib).server) as plain:
        result = await ask(plain, "call_tool", {"name": "billing.refund"})
    assert result["structuredContent"]["code"] == "not_available"
    assert "billing.write" not in str(result)


async def test_a_long_call_of_the_older_era_begins_its_stream_before_it_ends(crib):
    going, released = anyio.Event(), anyio.Event()

    async def wait():
        going.set()
        await released.wait()

    crib.waits["freight.shipment_get"] = wait
    async with served(crib) as (url, _), httpx2.AsyncClient() as http:
        opened = await http.post(url, json=INITIALIZE, headers=bearer("ada"))
        session = {**bearer("ada"), "Mcp-Session-Id": opened.headers["mcp-session-id"]}
        await http.post(url, json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=session)
        with anyio.fail_after(10):
            async with http.stream("POST", url, json=call("freight.shipment_get"), headers=session) as response:
                assert response.status_code == 200  # the headers are here, the call is not over
                await going.wait()
                released.set()
                assert b"structuredContent" in await response.aread()


# --- who a request is


def test_a_request_is_shown_as_it_came():
    scope = {
        "type": "http",
        "client": ("10.0.0.7", 4242),
        "headers": [(b"authorization", b"Bearer x"), (b"x-client", b"a"), (b"x-client", b"b")],
    }
    shown = presented(scope)
    assert (shown.authorization, shown.peer, shown.headers["x-client"]) == ("Bearer x", "10.0.0.7", "a,b")
    assert presented({"type": "http", "headers": []}).authorization is None
    assert "Bearer x" not in repr(shown.headers) or "headers" not in repr(shown)


async def test_a_proxy_header_counts_only_for_whoever_the_resolver_trusts(crib):
    """The guard hands over the true address of the connection, whatever `X-Forwarded-For` and `Forwarded` say."""
    seen = []

    async def resolve(shown):
        seen.append(shown)
        trusted = shown.peer == "10.9.9.9" and shown.headers.get("x-client-cert") == "CN=ada"
        return Caller(subject="ada") if trusted else None

    forged = {**ACCEPT, "X-Client-Cert": "CN=ada", "X-Forwarded-For": "10.9.9.9", "Forwarded": "for=10.9.9.9"}
    async with served(crib, resolve) as (url, _), httpx2.AsyncClient() as http:
        response = await http.post(url, json=LIST, headers=forged)
        twice = [*forged.items(), ("X-Client-Cert", "CN=bob")]
        await http.post(url, json=LIST, headers=twice)
    assert response.status_code == 401
    assert [shown.peer for shown in seen] == ["127.0.0.1"] * 2
    assert seen[1].headers["x-client-cert"] == "CN=ada,CN=bob", "two values are never taken for one of them"


HEADERS = {"X-Tenant": "other", "X-User": "bob", "X-Roles": "admin", "X-On-Behalf-Of": "bob", "Cookie": "user=bob"}


async def test_no_header_but_the_token_says_who_it_is(crib):
    async with served(crib) as (url, _), httpx2.AsyncClient() as http:
        plain = await http.post(url, **modern("ada", LIST))
        dressed = await http.post(url, **modern("ada", LIST, **HEADERS))
        body = call("call_tool", {"name": "freight.shipment_get", "arguments": {"tenant": "other", "subject": "bob"}})
        await http.post(url, **modern("ada", body, **{"Mcp-Name": "call_tool"}, **HEADERS))
    assert dressed.content == plain.content
    assert {made[2] for made in crib.calls} == {"ada"}


async def test_a_stream_ends_when_its_caller_is_revoked(crib):
    revoked = []

    async def resolve(shown):
        found = await who(shown)
        return None if found is None or found.subject in revoked else found

    async with (
        served(crib, resolve) as (url, door),
        client(url, "ada") as ada,
        client(url, "bob") as bob,
        ada.listen(tools_list_changed=True) as ada_hears,
        bob.listen(tools_list_changed=True) as bob_hears,
    ):
        revoked.append("ada")
        crib.drop("freight.shipment_get")
        assert await door.notify_catalog_changed() == 1
        with anyio.fail_after(5):
            assert [event async for event in ada_hears] == []
            await bob_hears.__anext__()


async def test_a_stream_ends_when_its_caller_lacks_what_everybody_needs_by_now(crib):
    held = {"ada": frozenset({"crib.use"}), "bob": frozenset({"crib.use", "crib.read"})}
    now = [ProtectedResource()]

    async def resolve(shown):
        found = await who(shown)
        return replace(found, scopes=held[found.subject]) if found else None

    async with (
        served(crib, resolve, describe=lambda: now[0]) as (url, door),
        client(url, "ada") as ada,
        client(url, "bob") as bob,
        ada.listen(tools_list_changed=True) as ada_hears,
        bob.listen(tools_list_changed=True) as bob_hears,
    ):
        now[0] = STRICT
        crib.drop("freight.shipment_get")
        assert await door.notify_catalog_changed() == 1
        with anyio.fail_after(5):
            assert [event async for event in ada_hears] == []
            await bob_hears.__anext__()


@pytest.mark.parametrize(
    "other",
    [{"tenant": "other"}, {"kind": CallerKind.AGENT}, {"on_behalf_of": "bob"}, {"acting_for": Caller(subject="bob")}],
    ids=["tenant", "kind", "named-for-another", "acts-for-another"],
)
async def test_a_stream_ends_when_what_was_shown_stands_for_somebody_else(crib, other):
    change = {}

    async def resolve(shown):
        return replace(Caller(subject="ada"), **change)

    async with (
        served(crib, resolve) as (url, door),
        client(url, "ada") as ada,
        ada.listen(tools_list_changed=True) as ada_hears,
    ):
        change |= other
        crib.drop("freight.shipment_get")
        assert await door.notify_catalog_changed() == 0
        with anyio.fail_after(5):
            assert [event async for event in ada_hears] == []


async def test_an_older_session_is_told_again_once_its_caller_comes_with_a_new_token(crib):
    taken = {"Bearer ada-token"}

    async def resolve(shown):
        return Caller(subject="ada") if shown.authorization in taken else None

    async with served(crib, resolve) as (url, door), httpx2.AsyncClient(timeout=30) as http:
        opened = await http.post(url, json=INITIALIZE, headers=bearer("ada"))
        session = {"Mcp-Session-Id": opened.headers["mcp-session-id"]}
        started = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        await http.post(url, json=started, headers={**bearer("ada"), **session})
        await http.post(url, json=LIST, headers={**bearer("ada"), **session})
        taken.clear()
        crib.change("freight.shipment_get", description="one")
        assert (await door.notify_catalog_changed(), door._changes.n_watchers) == (0, 0)
        taken.add("Bearer fresh-token")
        await http.post(url, json=LIST, headers={**bearer("fresh"), **session})
        crib.change("freight.shipment_get", description="two")
        assert (await door.notify_catalog_changed(), door._changes.n_watchers) == (1, 1)


async def test_typed_clients_work_behind_the_layer(crib):
    for mode in ("auto", "legacy"):
        async with served(crib, describe=lambda: PROTECTED) as (url, _), client(url, "ada", mode=mode) as ada:
            assert mcp_name("freight.shipment_get") in await names(ada)
            assert (await ada.call_tool(mcp_name("freight.shipment_get"), {"id": 1})).structured_content == {"id": 1}
