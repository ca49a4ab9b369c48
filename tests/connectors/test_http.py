"""MCP over streamable HTTP, against real servers on a loopback port."""

from __future__ import annotations

import asyncio
import json
import socket
from urllib.parse import urlsplit

import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from toolcrib.connectors.mcp import McpConnector
from toolcrib.connectors.pool import ConnectorPool
from toolcrib.errors import (
    ConfigError,
    ConnectorError,
    ConnectorProtocolError,
    ConnectorTimeoutError,
    NoCredentialError,
)
from toolcrib.types import Code, SecretRef, ServerSpec, Transport

from .conftest import http_connector, serving
from .servers.polite import TOOLS, make_server

DISCOVERED = {
    "resultType": "complete",
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {}},
    "ttlMs": 0,
    "cacheScope": "private",
}


class Scripted:
    """A hand-written endpoint. `answers`: method -> response, or a function of the request's body."""

    def __init__(self, **answers):
        self.answers = {"server/discover": DISCOVERED, **{k.replace("_", "/"): v for k, v in answers.items()}}
        self.seen = []

    async def respond(self, request):
        body = json.loads(await request.body()) if request.method == "POST" else {"method": request.method}
        self.seen.append((body, dict(request.headers)))
        answer = self.answers.get(body["method"], PlainTextResponse("no", status_code=405))
        if callable(answer) and not isinstance(answer, Response):
            answer = await answer(body)
        if isinstance(answer, dict):
            answer = JSONResponse({"jsonrpc": "2.0", "id": body.get("id"), "result": answer})
        return answer

    @property
    def app(self):
        return Starlette(routes=[Route("/mcp", self.respond, methods=["GET", "POST", "DELETE"])])

    def of(self, method):
        return [(body, headers) for body, headers in self.seen if body["method"] == method]


def rpc_error(code, message, *, status):
    async def answer(body):
        error = {"code": code, "message": message}
        return JSONResponse({"jsonrpc": "2.0", "id": body["id"], "error": error}, status_code=status)

    return answer


def legacy(**answers):
    """The old handshake, with a session."""

    async def refuse(body):
        error = {"code": -32601, "message": "Method not found"}
        return JSONResponse({"jsonrpc": "2.0", "id": body["id"], "error": error})

    async def initialize(body):
        info = {"name": "old", "version": "1"}
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
        reply = {"jsonrpc": "2.0", "id": body["id"], "result": result}
        return JSONResponse(reply, headers={"mcp-session-id": "s1"})

    scripted = Scripted(server_discover=refuse, initialize=initialize, DELETE=Response(status_code=204), **answers)
    scripted.answers["notifications/initialized"] = Response(status_code=202)
    return scripted


@pytest.mark.parametrize("json_response", [True, False], ids=["json", "event stream"])
async def test_modern_server_lists_and_calls_as_received(json_response):
    app = make_server().streamable_http_app(json_response=json_response)
    async with serving(app) as url:
        connector = http_connector(url)
        listing = await connector.list_tools()
        result = await connector.call("echo", {"text": "hi"}, timeout_s=20)
        await connector.aclose()
    assert (listing.protocol_version, listing.server_name) == ("2026-07-28", "polite")
    assert json.dumps(listing.tools) == json.dumps(TOOLS)
    assert (result.code, result.structured) == (Code.OK, {"got": {"text": "hi"}})


async def test_raw_call_carries_the_headers_that_modern_servers_check():
    scripted = Scripted(tools_call={"resultType": "complete", "content": []})
    async with serving(scripted.app) as url:
        connector = http_connector(url, headers={"Authorization": "Bearer operator", "X-Team": "a"})
        await connector.call("näme", {"n": 1}, timeout_s=20)
        await connector.aclose()
    ((body, headers),) = scripted.of("tools/call")
    assert headers["mcp-method"] == "tools/call"
    assert headers["mcp-name"].startswith("=?base64?")
    assert headers["mcp-protocol-version"] == "2026-07-28"
    assert body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
    assert body["params"]["_meta"]["io.modelcontextprotocol/clientInfo"]["name"] == "toolcrib"
    assert (headers["authorization"], headers["x-team"]) == ("Bearer operator", "a")


async def test_arguments_that_route_go_into_headers_too():
    schemas = {tool["name"]: tool["inputSchema"] for tool in TOOLS}
    async with serving(make_server(schemas.get).streamable_http_app(json_response=True)) as url:
        listed, told, neither = http_connector(url), http_connector(url), http_connector(url)
        await listed.list_tools()
        results = [
            await listed.call("routed", {"region": "eu"}, timeout_s=20),
            await told.call("routed", {"region": "eu"}, timeout_s=20, input_schema=schemas["routed"]),
            await neither.call("routed", {"region": "eu"}, timeout_s=20),
        ]
        await asyncio.gather(*(c.aclose() for c in (listed, told, neither)))
    assert [r.code for r in results] == [Code.OK, Code.OK, Code.TOOL_ERROR]


async def test_legacy_server_with_a_session_lists_and_is_said_goodbye():
    scripted = legacy(tools_list={"tools": [{"name": "a", "x": 1}]})
    async with serving(scripted.app) as url:
        connector = http_connector(url)
        listing = await connector.list_tools()
        await connector.aclose()
    assert (listing.protocol_version, listing.tools) == ("2025-06-18", ({"name": "a", "x": 1},))
    assert scripted.of("tools/list")[0][1]["mcp-session-id"] == "s1"
    assert len(scripted.of("DELETE")) == 1


async def test_session_that_the_server_forgot_is_given_up_and_not_tried_again():
    scripted = legacy(tools_call=rpc_error(-32001, "Session not found", status=404))
    async with serving(scripted.app) as url:
        connector = http_connector(url)
        result = await connector.call("a", {}, timeout_s=20)
        assert (result.code, result.refused, connector.broken) == (Code.UNAVAILABLE, True, True)
        await connector.aclose()
    assert len(scripted.of("tools/call")) == 1


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        (PlainTextResponse("boom", status_code=500), Code.UNAVAILABLE, "HTTP 500"),
        (PlainTextResponse("away", status_code=503), Code.UNAVAILABLE, "HTTP 503"),
        (PlainTextResponse("late", status_code=408), Code.UNAVAILABLE, "HTTP 408"),
        (rpc_error(-32603, "no", status=200), Code.TOOL_ERROR, "-32603"),
        (rpc_error(-32000, "database is down", status=200), Code.TOOL_ERROR, "database is down"),
        (PlainTextResponse("<html>", status_code=200), Code.TOOL_ERROR, "content type"),
        (Response("{", media_type="application/json"), Code.TOOL_ERROR, "parse"),
        (Response("", media_type="text/event-stream"), Code.UNAVAILABLE, "ended the connection"),
        (Response(status_code=307, headers={"location": "http://127.0.0.1:9/mcp"}), Code.TOOL_ERROR, "not followed"),
        (
            Response("{}", media_type="application/json", headers={"content-encoding": "gzip"}),
            Code.UNAVAILABLE,
            "ended",
        ),
    ],
    ids=[
        "500",
        "503",
        "408",
        "error in the body",
        "error with the code of a lost connection",
        "html",
        "bad json",
        "empty stream",
        "redirect elsewhere",
        "compressed",
    ],
)
async def test_what_http_says_becomes_the_right_code_and_costs_one_call(answer, code, words):
    scripted = Scripted(tools_call=answer, tools_list={"tools": [], "resultType": "complete"})
    async with serving(scripted.app) as url:
        connector = http_connector(url)
        result = await connector.call("a", {}, timeout_s=20)
        still_works = await connector.list_tools()
        await connector.aclose()
    assert (result.code, result.reached_server, result.refused) == (code, True, False)
    assert words in result.message
    assert len(scripted.of("tools/call")) == 1
    assert still_works.tools == ()


REFUSED = "The tool's server refused the request (HTTP {})."
BAD_CREDENTIAL = "The tool's server refused the credential it was given."


@pytest.mark.parametrize(
    ("answer", "code", "message", "reached"),
    [
        (PlainTextResponse("no", status_code=401), Code.NO_CREDENTIAL, BAD_CREDENTIAL, False),
        (PlainTextResponse("no", status_code=403), Code.NO_CREDENTIAL, BAD_CREDENTIAL, False),
        (rpc_error(-32000, "who are you", status=401), Code.NO_CREDENTIAL, BAD_CREDENTIAL, False),
        (
            Response("no", status_code=401, headers={"content-encoding": "gzip"}),
            Code.NO_CREDENTIAL,
            BAD_CREDENTIAL,
            False,
        ),
        (PlainTextResponse("slow", status_code=429), Code.RATE_LIMITED, "server 'web' has had too many requests "
         "(HTTP 429)", True),
        (PlainTextResponse("no", status_code=400), Code.TOOL_ERROR, REFUSED.format(400), True),
        (PlainTextResponse("no", status_code=404), Code.TOOL_ERROR, REFUSED.format(404), True),
        (PlainTextResponse("no", status_code=413), Code.TOOL_ERROR, REFUSED.format(413), True),
        (Response("{", media_type="application/json", status_code=422), Code.TOOL_ERROR, REFUSED.format(422), True),
        (Response("x", status_code=400, headers={"content-encoding": "br"}), Code.TOOL_ERROR, REFUSED.format(400),
         True),
        (rpc_error(-32602, "Unknown tool: a", status=400), Code.TOOL_ERROR, "server 'web' answered with error -32602: "
         "Unknown tool: a", True),
        (rpc_error(-32602, "Bad input", status=200), Code.TOOL_ERROR, "server 'web' answered with error -32602: "
         "Bad input", True),
        (rpc_error(-32601, "No such method", status=200), Code.TOOL_ERROR, "server 'web' answered with error -32601: "
         "No such method", True),
    ],
    ids=["401", "403", "401 with an error", "401 compressed", "429", "400", "404", "413", "422 broken",
         "400 compressed", "400 with an error", "invalid parameters", "unknown method"],
)  # fmt: skip
async def test_a_server_that_says_it_did_nothing_has_refused_the_call(answer, code, message, reached):
    scripted = Scripted(tools_call=answer, tools_list={"tools": [], "resultType": "complete"})
    async with serving(scripted.app) as url:
        connector = http_connector(url)
        result = await connector.call("a", {}, timeout_s=20)
        still_works = await connector.list_tools()
        await connector.aclose()
    assert (result.code, result.message) == (code, message)
    assert (result.refused, result.reached_server) == (True, reached)
    assert len(scripted.of("tools/call")) == 1
    assert still_works.tools == ()


async def test_a_broken_stream_that_cannot_be_resumed_is_no_refusal():
    begun = Response("id: 7\nretry: 1\ndata:\n\n", media_type="text/event-stream")
    for status in (401, 404, 429):
        scripted = legacy(tools_call=begun, GET=PlainTextResponse("no", status_code=status))
        async with serving(scripted.app) as url:
            connector = http_connector(url)
            result = await connector.call("a", {}, timeout_s=20)
            await connector.aclose()
        assert len([h for _, h in scripted.of("GET") if h.get("last-event-id") == "7"]) == 2
        assert (result.code, result.reached_server, result.refused) == (Code.UNAVAILABLE, True, False)


async def test_a_refused_answer_to_the_servers_own_question_is_no_refusal_of_the_call():
    answered = asyncio.Event()

    async def asks_first(body):
        async def events():
            question = {"jsonrpc": "2.0", "id": "q1", "method": "ping"}
            yield f"data: {json.dumps(question)}\n\n"
            await answered.wait()
            error = {"code": -32000, "message": "half of it is done"}
            yield f"data: {json.dumps({'jsonrpc': '2.0', 'id': body['id'], 'error': error})}\n\n"

        return StreamingResponse(events(), media_type="text/event-stream")

    class Asking(Scripted):
        async def respond(self, request):
            if request.method == "POST" and "method" not in json.loads(await request.body()):
                answered.set()
                return PlainTextResponse("no", status_code=401)
            return await super().respond(request)

    scripted = legacy(tools_call=asks_first)
    asking = Asking()
    asking.answers, asking.seen = scripted.answers, scripted.seen
    async with serving(asking.app) as url:
        connector = http_connector(url)
        result = await connector.call("a", {}, timeout_s=20)
        await connector.aclose()
    assert (result.code, result.reached_server, result.refused) == (Code.TOOL_ERROR, True, False)
    assert "half of it is done" in result.message


@pytest.mark.parametrize("status", [401, 403])
async def test_a_credential_refused_at_the_opening_is_no_outage_of_the_server(status):
    async def refuse(request):
        return PlainTextResponse("no", status_code=status)

    app = Starlette(routes=[Route("/mcp", refuse, methods=["GET", "POST"])])
    async with serving(app) as url:
        with pytest.raises(NoCredentialError):
            await http_connector(url).ready()
        result = await http_connector(url).call("a", {}, timeout_s=20)
        pool = ConnectorPool(lambda _server_id, _caller: http_connector(url))
        code = await pool.ready("web")
        await pool.aclose()
    assert (result.code, result.message) == (Code.NO_CREDENTIAL, BAD_CREDENTIAL)
    assert (result.refused, result.reached_server) == (True, False)
    assert code is Code.NO_CREDENTIAL


async def test_a_server_that_is_away_at_the_opening_is_unavailable_and_refused_nothing():
    async def away(request):
        return PlainTextResponse("no", status_code=503)

    app = Starlette(routes=[Route("/mcp", away, methods=["GET", "POST"])])
    async with serving(app) as url:
        with pytest.raises(ConnectorError):
            await http_connector(url).ready()
        result = await http_connector(url).call("a", {}, timeout_s=20)
    assert (result.code, result.refused, result.reached_server) == (Code.UNAVAILABLE, False, False)


async def test_broken_body_costs_its_own_call_and_no_other():
    release = asyncio.Event()

    async def answer(body):
        if body["params"]["name"] == "good":
            await release.wait()
            return {"resultType": "complete", "content": []}

        async def breaks_off():
            yield b'{"jsonrpc":'
            raise ConnectionError("planted")

        return StreamingResponse(breaks_off(), media_type="application/json", headers={"content-length": "9999"})

    scripted = Scripted(tools_call=answer)
    async with serving(scripted.app) as url:
        connector = http_connector(url)
        good = asyncio.create_task(connector.call("good", {}, timeout_s=20))
        bad = await connector.call("bad", {}, timeout_s=20)
        release.set()
        assert (bad.code, bad.reached_server) == (Code.UNAVAILABLE, True)
        assert (await good).code is Code.OK
        await connector.aclose()


async def test_body_longer_than_a_message_is_refused(monkeypatch):
    monkeypatch.setattr("toolcrib.connectors._session._MIN_MESSAGE_BYTES", 10_000)
    long = {"resultType": "complete", "tools": ["x" * 20_000], "content": []}
    scripted = Scripted(tools_list=long, tools_call={**long, "content": [{"type": "text", "text": "x" * 20_000}]})
    async with serving(scripted.app) as url:
        connector = http_connector(url, max_list_bytes=5_000)
        with pytest.raises(ConnectorProtocolError):
            await connector.list_tools()
        assert (await connector.call("a", {}, timeout_s=20)).code is Code.TOOL_ERROR
        await connector.aclose()


async def test_list_of_several_megabytes_arrives_over_an_event_stream():
    result = {"resultType": "complete", "tools": [{"name": "a", "description": "x" * 3_000_000}]}

    async def answer(body):
        data = json.dumps({"jsonrpc": "2.0", "id": body["id"], "result": result})
        return Response(f"event: message\ndata: {data}\n\n", media_type="text/event-stream")

    async with serving(Scripted(tools_list=answer).app) as url:
        connector = http_connector(url)
        assert len((await connector.list_tools()).tools[0]["description"]) == 3_000_000
        await connector.aclose()


async def test_call_past_its_deadline_is_a_timeout_and_arrives_once():
    async def never(body):
        await asyncio.Event().wait()

    scripted = Scripted(tools_call=never)
    async with serving(scripted.app) as url:
        connector = http_connector(url)
        result = await connector.call("a", {}, timeout_s=0.3)
        await connector.aclose()
    assert (result.code, result.reached_server) == (Code.TIMEOUT, True)
    assert len(scripted.of("tools/call")) == 1


async def test_server_that_hangs_on_a_notification_does_not_hold_up_later_calls(monkeypatch):
    monkeypatch.setattr("toolcrib.connectors._http._ASIDE_S", 0.2)

    async def never(body):
        await asyncio.Event().wait()

    async def answer(body):
        return await never(body) if body["params"]["name"] == "slow" else {"content": []}

    scripted = legacy(tools_call=answer, notifications_cancelled=never)
    async with serving(scripted.app) as url:
        connector = http_connector(url)
        slow = await connector.call("slow", {}, timeout_s=0.2)
        fast = await connector.call("fast", {}, timeout_s=5)
        await connector.aclose()
    assert (slow.code, fast.code) == (Code.TIMEOUT, Code.OK)
    assert len(scripted.of("notifications/cancelled")) == 1


async def test_list_past_its_deadline_names_the_server():
    async def never(body):
        await asyncio.Event().wait()

    async with serving(Scripted(tools_list=never).app) as url:
        connector = http_connector(url, start_timeout_s=0.5)
        with pytest.raises(ConnectorTimeoutError) as caught:
            await connector.list_tools()
        await connector.aclose()
    assert "'web'" in caught.value.where


async def test_server_gone_before_the_call_was_not_reached_and_a_later_call_finds_it_again():
    scripted = Scripted(tools_call={"resultType": "complete", "content": []}, tools_list={"tools": []})
    async with serving(scripted.app) as url:
        connector = http_connector(url)
        await connector.list_tools()
    gone = await connector.call("a", {}, timeout_s=20)
    async with serving(scripted.app, port=urlsplit(url).port):
        back = await connector.call("a", {}, timeout_s=20)
        await connector.aclose()
    assert (gone.code, gone.reached_server) == (Code.UNAVAILABLE, False)
    assert back.code is Code.OK
    assert len(scripted.of("tools/call")) == 1


async def test_nobody_listening_says_where_and_hides_credentials():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    connector = http_connector(f"http://user:hunter2@127.0.0.1:{port}/mcp?key=hunter3")
    with pytest.raises(ConnectorError, match=f"could not be reached at http://127.0.0.1:{port}/mcp") as caught:
        await connector.list_tools()
    assert "hunter" not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "words"), [(401, "credentials"), (404, "HTTP 404"), (503, "HTTP 503")], ids=["401", "404", "503"]
)
async def test_endpoint_that_refuses_the_handshake_says_its_status(status, words):
    async def refuse(request):
        return PlainTextResponse("no", status_code=status)

    app = Starlette(routes=[Route("/mcp", refuse, methods=["GET", "POST"])])
    async with serving(app) as url:
        with pytest.raises(ConnectorError, match=words):
            await http_connector(url).list_tools()


def test_header_that_http_does_not_allow_is_refused_without_its_value(tmp_path):
    spec = ServerSpec(
        server_id="web", transport=Transport.HTTP, url="http://x/", headers={"Authorization": SecretRef("file:token")}
    )
    with pytest.raises(ConfigError) as caught:
        McpConnector(spec, env={}, headers={"Authorization": "Bearer tok-12345\n"}, root=tmp_path)
    assert "tok-12345" not in str(caught.value)
