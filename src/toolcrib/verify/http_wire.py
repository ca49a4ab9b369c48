"""Everything served over HTTP as a client sees it: status, headers and body of each answer, without a socket.

Requests go into the ASGI application itself, so nothing listens and nothing is sent anywhere.

Invariants
1. All headers count, in their order; only the id of a legacy session is blanked.
2. A legacy session is opened anew for each set of requests and used as a client would use it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from mcp.shared.inbound import encode_header_value
from starlette.applications import Starlette

from toolcrib.server.challenge import MCP_PATH, WELL_KNOWN, ProtectedResource
from toolcrib.server.http import http_app
from toolcrib.types import Caller, Presented
from toolcrib.verify.asking import Request, Seat, failed, request
from toolcrib.verify.messages import INITIALIZE, LEGACY, MODERN, conversation, message
from toolcrib.verify.questions import Questions

_HOST = "127.0.0.1:8765"
_TOKEN = "Bearer verify"  # noqa: S105 - stands for the caller in this process, and nowhere else
_SESSION = "mcp-session-id"
_ANSWERED_WITHIN_S = 120.0
_DOCUMENTS = ("/healthz", WELL_KNOWN, f"{WELL_KNOWN}{MCP_PATH}", "/openapi.json", "/console", "/nowhere")


class HttpSurface:
    """One protocol era over streamable HTTP, and the documents beside it."""

    def __init__(self, era: str) -> None:
        self.name = f"http {era}"
        self._era = era

    def requests(self, questions: Questions) -> Sequence[Request]:
        asked = [
            request(self.name, what, {"rpc": [method, params]})
            for what, method, params in conversation(self._era, questions, brief=True)
        ]
        if self._era == MODERN:
            asked += [request(self.name, f"GET {path}", {"get": path}) for path in _DOCUMENTS]
            asked.append(request(self.name, "tools/list without a token", {"rpc": ["tools/list", {}], "token": ""}))
            asked.append(
                request(self.name, "tools/list, unknown token", {"rpc": ["tools/list", {}], "token": "Bearer x"})
            )
        return asked

    def answers(self, seat: Seat, requests: Sequence[Request]) -> list[bytes]:
        return asyncio.run(self._answers(seat, requests))

    async def _answers(self, seat: Seat, requests: Sequence[Request]) -> list[bytes]:
        async def resolve(shown: Presented) -> Caller | None:
            return seat.caller if shown.authorization == _TOKEN else None

        identity = seat.crib.settings.identity
        described = ProtectedResource(
            resource=identity.resource,
            authorization_servers=identity.authorization_servers,
            required_scopes=identity.required_scopes,
        )
        app = http_app(seat.crib, resolve_caller=resolve, describe=lambda: described, poll_s=0)
        async with app.router.lifespan_context(app):
            client = _Client(app, era=self._era)
            return [await client.ask(one.read(), number=number) for number, one in enumerate(requests, start=1)]


class _Client:
    """Sends requests into an ASGI application, in a session where the era has sessions."""

    def __init__(self, app: Starlette, *, era: str) -> None:
        self._app = app
        self._era = era
        self._session = ""

    async def ask(self, body: dict[str, Any], *, number: int) -> bytes:
        try:
            if "get" in body:
                return _shown(*await self._send("GET", body["get"], {}, b""))
            method, params = body["rpc"]
            if self._era == LEGACY and not self._session and method != "initialize":
                await self._post("initialize", dict(INITIALIZE), number=0, token=_TOKEN)
            return _shown(*await self._post(method, params, number=number, token=body.get("token", _TOKEN)))
        except Exception as fault:  # noqa: BLE001 - whatever a client would meet here is its answer
            return failed(fault)

    async def _post(
        self, method: str, params: dict[str, Any], *, number: int, token: str
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
        if token:
            headers["authorization"] = token
        if self._era == MODERN:
            headers |= {"mcp-protocol-version": MODERN, "mcp-method": method}
            if isinstance(params.get("name"), str):
                headers["mcp-name"] = encode_header_value(params["name"])
        elif self._session:
            headers |= {"mcp-protocol-version": LEGACY, _SESSION: self._session}
        sent = json.dumps(message(self._era, method, params, number=number)).encode()
        status, received, answer = await self._send("POST", MCP_PATH, headers, sent)
        self._session = self._session or dict(received).get(_SESSION, "")
        if self._era == LEGACY and method == "initialize" and self._session:
            note = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode()
            again = {**headers, "mcp-protocol-version": LEGACY, _SESSION: self._session}
            await self._send("POST", MCP_PATH, again, note)
        return status, received, answer

    async def _send(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        """(status, headers, body) of one request."""
        raw = [(b"host", _HOST.encode()), *((k.encode(), v.encode("latin-1", "replace")) for k, v in headers.items())]
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": b"",
            "headers": [*raw, (b"content-length", str(len(body)).encode())],
            "client": ("127.0.0.1", 50_000),
            "server": ("127.0.0.1", 8765),
        }
        waiting = [{"type": "http.request", "body": body, "more_body": False}]
        sent: list[Any] = []
        gone = asyncio.Event()

        async def receive() -> Any:
            if waiting:
                return waiting.pop()
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(part: Any) -> None:
            sent.append(part)
            if part["type"] == "http.response.body" and not part.get("more_body"):
                gone.set()

        async with asyncio.timeout(_ANSWERED_WITHIN_S):
            await self._app(scope, receive, send)
        start = next(part for part in sent if part["type"] == "http.response.start")
        answer = b"".join(part.get("body", b"") for part in sent if part["type"] == "http.response.body")
        return start["status"], [(k.decode("latin-1"), v.decode("latin-1")) for k, v in start["headers"]], answer


def _shown(status: int, headers: Sequence[tuple[str, str]], body: bytes) -> bytes:
    lines = [f"{name}: {'RANDOM' if name.lower() == _SESSION else value}" for name, value in headers]
    return "\n".join([str(status), *lines, ""]).encode() + b"\n" + body
