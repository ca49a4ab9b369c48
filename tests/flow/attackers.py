"""What the negative suite attacks with, and what it holds a refusal to.

Wire          a client without manners: says what it likes to the gateway, in either protocol era
refused_at    a request that got past the door: refused with this code, and its trace says at which stage
kept_out      a request that did not: nothing on record, nothing sent, and not a word on why
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
from mcp.shared.inbound import encode_header_value

from tests.flow.worlds import World, Worlds, tool
from tests.identity.signing import EC_256, RSA_A, RSA_B, key_file, key_set, public_jwk, signed
from toolcrib.cli.serve import _Door
from toolcrib.crib import Crib
from toolcrib.identity.keys import new_key
from toolcrib.server.challenge import ProtectedResource
from toolcrib.server.http import http_app
from toolcrib.types import (
    Code,
    JsonObject,
    Presented,
    Revocation,
    RevokedKind,
    Stage,
    ToolResult,
    Trace,
)

MODERN, LEGACY = "2026-07-28", "2025-11-25"
ERAS = (MODERN, LEGACY)
FORMS = {"elicitation": {"form": {}}}
INVALID_PARAMS = -32602
_CLIENT = {"name": "attacker", "version": "1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back over HTTP. `body`: the JSON-RPC message, or whatever JSON it was."""

    status: int
    headers: Mapping[str, str]
    text: str
    body: Any

    @property
    def result(self) -> Any:
        return self.body["result"]

    @property
    def told(self) -> Any:
        """What the gateway itself says in a tool's result."""
        return json.loads(self.result["content"][0]["text"])

    @property
    def ran(self) -> bool:
        """Whether a tool was run, and well."""
        return self.status == 200 and "result" in self.body and not self.result.get("isError")

    @property
    def error(self) -> Any:
        """The code of a JSON-RPC error, None for a result."""
        fault = self.body.get("error")
        return fault.get("code") if isinstance(fault, Mapping) else None


class Wire:
    """Requests to one gateway over HTTP, in process. `era`: the protocol revision that is spoken."""

    def __init__(self, http: httpx2.AsyncClient, *, era: str = MODERN) -> None:
        self._http = http
        self._era = era
        self.session = ""

    async def open(self, token: str) -> None:
        """A session for this caller, where the era has sessions."""
        self.session = ""
        if self._era == LEGACY:
            hello = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": _CLIENT}
            opened = await self.post("initialize", hello, token=token)
            assert opened.status == 200, opened.text
            self.session = opened.headers["mcp-session-id"]
            await self.post("notifications/initialized", {}, token=token)

    async def call(self, name: str, arguments: JsonObject | None = None, *, token: str, **more: Any) -> Answer:
        """A `tools/call` of this name, as it is written."""
        extra = more.pop("params", {})
        return await self.post("tools/call", {"name": name, "arguments": arguments or {}, **extra}, token=token, **more)

    async def through(self, name: str, arguments: JsonObject | None = None, *, token: str, **more: Any) -> Answer:
        """The same through the gateway's `call_tool`."""
        return await self.call("call_tool", {"name": name, "arguments": arguments or {}}, token=token, **more)

    async def find(self, task: str, *, token: str, **more: Any) -> list[str]:
        """The ids of the tools that `find_tools` offers."""
        found = await self.call("find_tools", {"task": task}, token=token, **more)
        return [tool["tool_id"] for tool in found.told["tools"]]

    async def post(
        self,
        method: str,
        params: JsonObject,
        *,
        token: str | None,
        headers: Mapping[str, str] | None = None,
        query: str = "",
        can: JsonObject | None = None,
        meta: JsonObject | None = None,
    ) -> Answer:
        """One message.

        Args:
            token: None for a request without an `Authorization` header.
            can: the client capabilities that the request claims. meta: what else stands in its `_meta`.
        """
        sent = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
        sent |= {} if token is None else {"authorization": f"Bearer {token}"}
        body: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": dict(params)}
        if not method.startswith("notifications/"):
            body["id"] = 1
        if self._era == MODERN:
            sent |= {"mcp-protocol-version": MODERN, "mcp-method": method}
            if isinstance(params.get("name"), str):
                sent["mcp-name"] = encode_header_value(params["name"])
            body["params"]["_meta"] = {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": can or {},
                "io.modelcontextprotocol/clientInfo": _CLIENT,
                **(meta or {}),
            }
        else:
            body["params"] |= {"_meta": meta} if meta else {}
            sent |= {"mcp-protocol-version": LEGACY, "mcp-session-id": self.session} if self.session else {}
        answer = await self._http.post(f"/mcp{query}", json=body, headers={**sent, **(headers or {})})
        return Answer(status=answer.status_code, headers=answer.headers, text=answer.text, body=_message(answer.text))


def _message(text: str) -> Any:
    """The message in a body: of an event stream the last one, which is the answer."""
    events = [line.removeprefix("data:").strip() for line in text.splitlines() if line.startswith("data:")]
    said = [event for event in events if event]
    return json.loads(said[-1] if said else text or "null")


@asynccontextmanager
async def gateway(one: World) -> AsyncIterator[httpx2.AsyncClient]:
    """The world's gateway with the door that `toolcrib serve --http` puts before it, without a socket."""
    door = _Door(crib=one.crib, as_file=None, alone=False, open_to_anybody=False)

    def describe() -> ProtectedResource:
        identity = one.crib.settings.identity
        return ProtectedResource(resource=identity.resource, required_scopes=identity.required_scopes)

    app = http_app(one.crib, resolve_caller=door.caller, describe=describe, poll_s=0)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://127.0.0.1:8765") as http,
    ):
        yield http


@asynccontextmanager
async def wire(one: World, *, era: str = MODERN) -> AsyncIterator[Wire]:
    async with gateway(one) as http:
        yield Wire(http, era=era)


async def bearer(crib: Crib, token: str) -> Any:
    """The caller that a request with this token is."""
    return await crib.identify(Presented(authorization=f"Bearer {token}"))


def sent(one: World) -> list[tuple[str, str]]:
    """(server id, the server's own name of the tool) of every call that reached a server."""
    return [(server_id, name) for server_id, server in one.servers.items() for name, _ in server.calls]


def on_record(one: World) -> list[Trace]:
    """All traces, newest first."""
    return list(one.crib.store.traces(limit=10_000))


@contextmanager
def kept_out(one: World) -> Iterator[None]:
    """Nobody was established within: nothing is on record, nothing waits for approval, nothing was sent."""
    before = (sent(one), len(on_record(one)), one.crib.approvals())
    yield
    assert (sent(one), len(on_record(one)), one.crib.approvals()) == before


@contextmanager
def nothing_sent(one: World) -> Iterator[None]:
    before = sent(one)
    yield
    assert sent(one) == before


def refused_at(
    one: World, trace_id: str, tool_id: str, stage: Stage, *, code: Code, why: str, check: str = ""
) -> Trace:
    """The trace of a refused call, once it was held to what it must say.

    Args:
        stage: that lost the tool, as `toolcrib explain` names it. why: its code for the reason.
        code: of the gate; for a request that failed before the gate, UNAVAILABLE, and the trace has no gate record.
        check: of the gate, where the test is particular about it.
    """
    trace = one.crib.trace(trace_id)
    found = one.crib.explain(trace_id, tool_id=tool_id)
    assert (found.lost_at, found.code) == (stage, why), found
    gate = trace.record(Stage.GATE)
    if gate is None:
        assert code is Code.UNAVAILABLE
        assert trace.records[-1].stage is stage and trace.records[-1].operator_view["fault"]
    else:
        assert (gate.operator_view["tool_id"], gate.operator_view["code"]) == (tool_id, code)
        assert not check or gate.operator_view["check"] == check
    assert trace.record(Stage.EXECUTION) is None, "a refused call has no execution"
    return trace


# --- a shop with every kind of credential

_TEXT = {"type": "string"}
_SHOP = [
    tool("get_order", "Look up one order of a customer.", properties={"order_id": _TEXT, "tenant": _TEXT}),
    tool("get_ledger", "Read the ledger of the company globex.", properties={"tenant": _TEXT}),
    tool("order_owner", "Whose order it is.", properties={"order_id": _TEXT}),
]
GET, LEDGER, ONE = "shop.get_order", "shop.get_ledger", {"order_id": "mine"}
OTHER_ISSUER, BOT = "https://other.example", "a-token-of-some-length"
_TOML = """
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
tenants = ["acme", "globex"]
keys_file = "keys.json"
claims = {tenant = "org.id", roles = "roles"}
[[identity.jwt]]
issuer = "https://other.example"
audience = ["toolcrib"]
tenants = ["initech"]
keys_file = "other.json"
claims = {tenant = "org.id"}
[[identity.agents]]
caller = {subject = "helper", kind = "agent", scopes = ["orders"]}
[[identity.agents]]
caller = {subject = "clerk", kind = "agent"}
[[identity.agents]]
caller = {subject = "checker", kind = "agent", scopes = ["orders"], roles = ["auditor"]}
[[identity.agents]]
caller = {subject = "theirs", kind = "agent", tenant = "globex", scopes = ["orders"]}
"""


async def _owners(name: str, arguments: JsonObject) -> ToolResult:
    block = {"type": "text", "text": f"{name} was run"}
    whose = {"tenant": {"mine": "acme"}.get(str(arguments.get("order_id")), "globex")}
    structured = whose if name == "order_owner" else None
    return ToolResult(
        code=Code.OK, content=(block,), structured=structured, raw={"content": [block]}, reached_server=True
    )


def guarded_shop(make_world: Worlds, **more: Any) -> World:
    """A shop that callers of two issuers, agents, key holders and a bot with a token come to; all of acme by default.

    The ledger is for the tenant globex alone; orders are looked up at their owner, and "mine" is acme's.
    """
    one: World = make_world({"shop": _SHOP}, toml=_TOML, handler=_owners, **more)
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


def end_key(one: World, key_id: str, *, at: str = "2026-01-01T00:00:00+00:00") -> None:
    """Revoke an API key as `toolcrib key revoke` does; "" takes it back, which no command does."""
    record = one.crib.store.api_key(key_id)
    assert record is not None
    one.crib.store.put_key(replace(record, revoked_at=at))
