"""The gateway over streamable HTTP on the loopback: real clients, and raw requests for what those never send."""

from __future__ import annotations

import json

import anyio
import httpx2
import pytest

from toolcrib.errors import ConfigError
from toolcrib.server.guard import HostGuard
from toolcrib.server.meta_tools import META_NAMES
from toolcrib.server.serve import is_loopback, listen_on, serve_http
from toolcrib.server.surface import mcp_name
from toolcrib.types import Caller, Channel

from .asking import ask, names, raw, tools
from .carriers import ERAS, client, served, who
from .fakes import FakeCrib, tool

era = pytest.mark.parametrize("mode", ERAS)

ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
MODERN = "2026-07-28"
MODERN_META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}
NESTED = {"inputSchema": {"type": "object", "properties": {"a": {"default": None}}}, "x-top": [None, {"b": None}]}


def bearer(subject):
    return {**ACCEPT, "Authorization": f"Bearer {subject}-token"}


def modern(subject, body, **headers):
    """Headers and body of a modern request."""
    params = {**body.get("params", {}), "_meta": MODERN_META}
    sent = {**bearer(subject), "MCP-Protocol-Version": MODERN, "Mcp-Method": body["method"], **headers}
    return {"headers": sent, "json": {**body, "params": params}}


@pytest.fixture
def crib():
    made = FakeCrib()
    made.put(tool("freight.shipment_get", NESTED, preload=True))
    made.put(tool("billing.invoice_get", preload=True), known_to=frozenset({"bob"}))
    return made


# --- clients


@era
async def test_lists_finds_describes_and_calls(crib, mode):
    name = mcp_name("freight.shipment_get")
    async with served(crib) as (url, _), client(url, "ada", mode=mode) as ada:
        assert await names(ada) == [*META_NAMES, name]
        assert (await tools(ada))[-1] == {**crib.tools["freight.shipment_get"][0].definition, "name": name}
        found = (await ask(ada, "find_tools", {"task": "shipment"}))["structuredContent"]["tools"]
        assert [t["name"] for t in found] == [name]
        described = await ask(ada, "describe_tools", {"names": [name]})
        assert described["structuredContent"]["tools"][0]["definition"]["name"] == name
        assert (await ask(ada, "call_tool", {"name": name, "arguments": {"id": None}}))["structuredContent"] == {
            "id": None
        }
        assert (await ada.call_tool(name, {"id": "S-204"})).structured_content == {"id": "S-204"}
    assert {call[1:] for call in crib.calls} == {(Channel.HTTP, "ada")}


@era
async def test_two_callers_see_two_lists(crib, mode):
    async with served(crib) as (url, _), client(url, "ada", mode=mode) as ada, client(url, "bob", mode=mode) as bob:
        assert mcp_name("billing.invoice_get") not in await names(ada)
        assert mcp_name("billing.invoice_get") in await names(bob)
        if mode == "auto":
            assert (await raw(bob, "tools/list"))["cacheScope"] == "private"


async def test_modern_stream_tells_only_whose_list_changed(crib):
    async with (
        served(crib) as (url, door),
        client(url, "ada") as ada,
        client(url, "bob") as bob,
        ada.listen(tools_list_changed=True) as ada_hears,
        bob.listen(tools_list_changed=True) as bob_hears,
    ):
        crib.drop("billing.invoice_get")
        assert await door.notify_catalog_changed() == 1
        with anyio.fail_after(5):
            await bob_hears.__anext__()
        crib.drop("freight.shipment_get")
        assert await door.notify_catalog_changed() == 2
        with anyio.fail_after(5):
            await ada_hears.__anext__()


async def test_legacy_session_is_told_on_its_standing_stream(crib):
    heard = anyio.Event()

    async def hear(message):
        if type(message).__name__ == "ToolListChangedNotification":
            heard.set()

    async with served(crib) as (url, door), client(url, "ada", mode="legacy", message_handler=hear) as ada:
        await names(ada)
        with anyio.fail_after(5):
            while not heard.is_set():  # the client opens its stream when it likes; what was said before is lost
                crib.change("freight.shipment_get", description=str(anyio.current_time()))
                await door.notify_catalog_changed()
                await names(ada)


async def test_ended_legacy_session_is_forgotten(crib):
    async with served(crib) as (url, door):
        async with client(url, "ada", mode="legacy") as ada:
            await names(ada)
            assert len(door._changes._watchers) == 1
        with anyio.fail_after(5):
            while len(door._changes._watchers):
                await anyio.lowlevel.checkpoint()


# --- who may come in


@pytest.mark.parametrize(
    "authorization",
    [None, "Bearer nobody", "ada-token", "Basic YWRhOnB3", ""],
    ids=["none", "unknown", "no-scheme", "basic", "empty"],
)
@pytest.mark.parametrize("body", [LIST, INITIALIZE], ids=["list", "initialize"])
async def test_unknown_callers_are_challenged_without_a_word_on_scopes(crib, authorization, body):
    headers = ACCEPT if authorization is None else {**ACCEPT, "Authorization": authorization}
    async with served(crib) as (url, _), httpx2.AsyncClient() as http:
        response = await http.post(url, json=body, headers=headers)
    assert response.status_code == 401
    assert response.headers["www-authenticate"].startswith("Bearer")
    assert "scope" not in response.headers["www-authenticate"]
    assert "freight" not in response.text


async def test_two_authorization_headers_are_nobody(crib):
    headers = [*ACCEPT.items(), ("Authorization", "Bearer ada-token"), ("Authorization", "Bearer bob-token")]
    async with served(crib) as (url, _), httpx2.AsyncClient() as http:
        assert (await http.post(url, json=LIST, headers=headers)).status_code == 401


async def test_identity_that_cannot_be_resolved_lets_nobody_in(crib):
    async def broken(_presented):
        raise RuntimeError("secret: identity store is down")

    async with served(crib, broken) as (url, _), httpx2.AsyncClient() as http:
        response = await http.post(url, **modern("ada", LIST))
    assert response.status_code == 503
    assert "secret" not in response.text


@pytest.mark.parametrize("path", ["/mcp", "/healthz"])
@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "evil.example:80", "[::2]", "localhost:x"])
async def test_wrong_host_is_misdirected(crib, path, host):
    async with served(crib) as (url, _), httpx2.AsyncClient() as http:
        response = await http.post(url.replace("/mcp", path), json=LIST, headers={**bearer("ada"), "Host": host})
    assert response.status_code == 421


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1:1", "http://localhost.evil.example"]
)
async def test_wrong_origin_is_forbidden(crib, origin):
    async with served(crib) as (url, _), httpx2.AsyncClient() as http:
        response = await http.post(url, **modern("ada", LIST, Origin=origin))
    assert response.status_code == 403


async def test_own_and_allowed_origins_are_welcome(crib):
    async with served(crib, allowed_origins=["https://app.example"]) as (url, _), httpx2.AsyncClient() as http:
        for origin in (url.removesuffix("/mcp"), "https://app.example"):
            response = await http.post(url, **modern("ada", LIST, Origin=origin))
            assert response.status_code == 200


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("localhost", True),
        ("LOCALHOST:9", True),
        ("[::1]:80", True),
        ("crib.example:8443", True),
        ("crib.example", False),
        ("crib.example:80", False),
        ("", False),
    ],
)
def test_hosts_are_compared_whole_and_a_port_counts_where_it_is_given(host, allowed):
    guard = HostGuard(lambda *_: None, hosts=["localhost", "[::1]", "crib.example:8443"])
    assert guard._knows(host.lower()) is allowed


@pytest.mark.parametrize("thief", [bearer("bob"), ACCEPT], ids=["another", "nobody"])
async def test_legacy_session_of_one_caller_is_closed_to_others(crib, thief):
    async with served(crib) as (url, _), httpx2.AsyncClient() as http:
        opened = await http.post(url, json=INITIALIZE, headers=bearer("ada"))
        session = {"Mcp-Session-Id": opened.headers["mcp-session-id"]}
        stolen = await http.post(url, json=LIST, headers={**thief, **session})
        ended = await http.delete(url, headers={**thief, **session})
        own = await http.post(url, json=LIST, headers={**bearer("ada"), **session})
        unknown = await http.post(url, json=LIST, headers={**bearer("bob"), "Mcp-Session-Id": "f" * 32})
    assert stolen.status_code == ended.status_code == (404 if "Authorization" in thief else 401)
    assert own.status_code == 200
    if "Authorization" in thief:
        assert stolen.text == unknown.text  # not even that it exists


async def test_same_name_in_another_tenant_is_another_caller(crib):
    callers = {"Bearer one": Caller(subject="ada", tenant="1"), "Bearer two": Caller(subject="ada", tenant="2")}

    async def resolve(presented):
        return callers.get(presented.authorization)

    async with served(crib, resolve) as (url, _), httpx2.AsyncClient() as http:
        opened = await http.post(url, json=INITIALIZE, headers={**ACCEPT, "Authorization": "Bearer one"})
        session = {"Mcp-Session-Id": opened.headers["mcp-session-id"]}
        stolen = await http.post(url, json=LIST, headers={**ACCEPT, "Authorization": "Bearer two", **session})
    assert stolen.status_code == 404


async def test_rights_are_taken_from_each_request_of_a_session(crib):
    rights = {"now": Caller(subject="ada")}

    async def resolve(presented):
        return rights["now"] if presented.authorization else None

    async with (
        served(crib, resolve) as (url, _),
        client(url, "ada", mode="legacy") as ada,
    ):
        assert mcp_name("freight.shipment_get") in await names(ada)
        rights["now"] = Caller(subject="ada", roles=frozenset({"retired"}))
        assert mcp_name("freight.shipment_get") not in await names(ada)


# --- bounds and headers


@pytest.mark.parametrize("chunked", [False, True])
async def test_bodies_are_bounded(crib, chunked):
    body = json.dumps({**LIST, "params": {"pad": "x" * 2_000}}).encode()

    async def chunks():
        yield body

    async with served(crib, max_body_bytes=1_000) as (url, _), httpx2.AsyncClient() as http:
        response = await http.post(url, content=chunks() if chunked else body, headers=bearer("ada"))
    assert response.status_code == 413


async def test_open_sessions_are_bounded(crib):
    async with served(crib, max_sessions=1) as (url, _), httpx2.AsyncClient() as http:
        assert (await http.post(url, json=INITIALIZE, headers=bearer("ada"))).status_code == 200
        assert (await http.post(url, json=INITIALIZE, headers=bearer("bob"))).status_code == 503


async def test_health_says_only_that_it_lives(crib):
    async with served(crib) as (url, _), httpx2.AsyncClient() as http:
        response = await http.get(url.replace("/mcp", "/healthz"))
    assert (response.status_code, response.json()) == (200, {"status": "ok"})


ROUTED = {"inputSchema": {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}}


@pytest.mark.parametrize(
    ("header", "status"), [("eu", 200), ("us", 400), (None, 400)], ids=["same", "other", "missing"]
)
async def test_parameter_headers_must_agree_with_the_body(crib, header, status):
    crib.put(tool("freight.route", ROUTED, preload=True))
    name = mcp_name("freight.route")
    body = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": name, "arguments": {"region": "eu"}}}
    extra = {"Mcp-Name": name} | ({"Mcp-Param-Region": header} if header else {})
    async with served(crib) as (url, _), httpx2.AsyncClient() as http:
        response = await http.post(url, **modern("ada", body, **extra))
    assert response.status_code == status


async def test_parameter_headers_tell_nothing_of_a_hidden_tool(crib):
    crib.put(tool("billing.route", ROUTED), known_to=frozenset({"bob"}))
    answers = []
    async with served(crib) as (url, _), httpx2.AsyncClient() as http:
        for tool_id in ("billing.route", "billing.nowhere"):
            name = mcp_name(tool_id)
            params = {"name": name, "arguments": {"region": "eu"}}
            body = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params}
            response = await http.post(url, **modern("ada", body, **{"Mcp-Name": name, "Mcp-Param-Region": "us"}))
            answers.append((response.status_code, response.content, sorted(response.headers.keys())))
    assert answers[0] == answers[1]
    assert answers[0][0] != 200 or b"-32602" in answers[0][1]


async def test_typed_client_calls_a_tool_with_parameter_headers(crib):
    crib.put(tool("freight.route", ROUTED, preload=True))
    async with served(crib) as (url, _), client(url, "ada") as ada:
        await ada.list_tools()
        result = await ada.call_tool(mcp_name("freight.route"), {"region": "eu"})
    assert result.structured_content == {"region": "eu"}


# --- standing up


async def test_open_address_needs_host_names(crib):
    with pytest.raises(ConfigError):
        await serve_http(crib, resolve_caller=who, host="0.0.0.0")


def test_taken_port_is_said():
    with listen_on("127.0.0.1", 0) as taken, pytest.raises(ConfigError):
        listen_on("127.0.0.1", taken.getsockname()[1])


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("10.0.0.1", False),
        ("x.org", False),
    ],
)
def test_loopback_is_recognised(host, loopback):
    assert is_loopback(host) is loopback
