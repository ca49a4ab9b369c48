"""An MCP server over stdio or streamable HTTP: raw listing, raw calls.

Above it `pool.py` and `listing.py`; below it `_session.py` (the connection) and `_raw.py` (the private parts of the
SDK). The protocol revision is negotiated: 2026-07-28 and everything older that the SDK speaks.

Invariants
1. A call is written at most once. Whatever happens after that, the answer says `reached_server=True`; only a server
   that refuses the credential (401, 403) counts as not reached.
2. Of the caller's request only the name, the arguments and trace `_meta` keys are sent on; never a caller's token.
3. Definitions and results are the objects that came, not models of them.
4. `refused` is said only where the server itself said that it did nothing: a 4xx status to the call (408 may come too
   late), or the JSON-RPC errors "unknown method" and "invalid parameters".
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
from mcp import ClientSession, MCPError
from mcp.client.subscriptions import SubscriptionLost

from toolcrib.connectors import _raw
from toolcrib.connectors._announcements import Announcements
from toolcrib.connectors._http import Exchange, watched
from toolcrib.connectors._results import result_from_wire, short
from toolcrib.connectors._session import Session
from toolcrib.connectors.base import trace_meta
from toolcrib.errors import ConfigError, ConnectorError, ConnectorProtocolError, NoCredentialError
from toolcrib.types import Code, JsonObject, Provenance, ServerListing, ServerSpec, ToolResult, Transport

_log = logging.getLogger(__name__)
_BAD_CREDENTIAL = ToolResult(
    code=Code.NO_CREDENTIAL, message="The tool's server refused the credential it was given.", refused=True
)


class McpConnector:
    """One session with one MCP server, opened by the first use.

    Args:
        env: the server's configured environment, secrets resolved.
        headers: the server's configured HTTP headers, secrets resolved.
        root: where relative paths of the configuration begin.
    """

    def __init__(self, spec: ServerSpec, *, env: Mapping[str, str], headers: Mapping[str, str], root: Path) -> None:
        for name, value in headers.items():
            if not value.isprintable() or not value.isascii():
                raise ConfigError(
                    f"the value of header {name!r} holds characters that HTTP does not allow",
                    where=f"server {spec.server_id!r}",
                    hint="a secret file that ends in more than one line break is a common cause",
                )
        self._spec = spec
        self._env = dict(env)
        self._headers = dict(headers)
        self._root = root
        self._session: Session | None = None
        self._lost = False
        self._header_schemas: dict[str, JsonObject] = {}
        self._announcements: Announcements | None = None

    @property
    def broken(self) -> bool:
        return self._lost or (self._session is not None and self._session.ended)

    async def aclose(self) -> None:
        self._lost = True
        if self._announcements is not None:
            self._announcements.close()
        if self._session is not None:
            await self._session.aclose()

    async def list_tools(self) -> ServerListing:
        session = self._open()
        pages: list[dict[str, Any]] = []
        try:
            async with asyncio.timeout(self._spec.start_timeout_s) as deadline:
                client = await session.started()
                session.observe()
                await self._read_pages(client, session, pages)
        except TimeoutError:
            if not deadline.expired():
                raise
            late = session.timeout_error("start and list its tools")
            late.pages_read = len(pages)
            raise late from None
        except ConnectorError as fault:
            fault.pages_read = len(pages)
            raise
        tools = [tool for page in pages for tool in page["tools"]]
        self._remember_header_schemas(tools)
        info = client.server_info
        capabilities = client.server_capabilities
        return ServerListing(
            server_id=self._spec.server_id,
            tools=tuple(tools),
            protocol_version=client.protocol_version or "",
            server_name=info.name if info is not None else "",
            server_version=info.version if info is not None else "",
            instructions=client.instructions or "",
            capabilities=capabilities.model_dump(by_alias=True, mode="json", exclude_none=True) if capabilities else {},
            n_pages=len(pages),
            provenance=await session.observed(),
        )

    async def observed(self) -> Provenance:
        session = self._open()
        await session.started()
        return await session.observed()

    async def ready(self) -> None:
        session = self._open()
        try:
            await session.started()
        except ConnectorError as exc:
            if not session.credential_refused:
                raise
            _log.warning("%s", exc)
            raise NoCredentialError(exc.what, where=exc.where, hint=exc.hint) from exc

    async def call(
        self,
        name: str,
        arguments: JsonObject,
        *,
        timeout_s: float,
        meta: JsonObject | None = None,
        input_schema: JsonObject | None = None,
    ) -> ToolResult:
        session = self._open()
        try:
            client = await session.started()
        except ConnectorError as exc:
            # The details are the operator's (paths, stderr); the caller learns only that the server is not there.
            _log.warning("%s", exc)
            if session.credential_refused:
                return _BAD_CREDENTIAL
            return self._unavailable("could not be opened; nothing was sent", reached_server=False)
        params: dict[str, Any] = {"name": name, "arguments": dict(arguments)}
        if kept := trace_meta(meta or {}):
            params["_meta"] = kept
        with anyio.move_on_after(timeout_s), watched() as exchange:
            try:
                raw = await _raw.request(
                    client, "tools/call", params, headers=self._param_headers(client, name, arguments, input_schema)
                )
                return result_from_wire(session.mask.result(raw), server_id=self._spec.server_id)
            except _raw.JsonRpcError as fault:
                return self._from_fault(fault, exchange, session, modern=_raw.is_modern(client))
        message = (
            f"server {self._spec.server_id!r} did not answer within {timeout_s:g} s; the tool may still be running"
        )
        return ToolResult(code=Code.TIMEOUT, message=message, reached_server=True)

    async def watch(self, on_changed: Callable[[], None], on_lost: Callable[[], None]) -> bool:
        """As `watching.Announcing` says. A stateless server is asked to announce, another one does so by itself."""
        session = self._open()
        client = await session.started()
        if not _announces(client):
            return False
        session.listen(on_changed, on_lost)
        if not _raw.is_modern(client):
            return await session.hears()
        self._announcements = Announcements(client, on_lost=on_lost)
        try:
            async with asyncio.timeout(self._spec.start_timeout_s):
                return await self._announcements.begun()
        except TimeoutError:
            raise session.timeout_error("answer subscriptions/listen") from None
        except (MCPError, SubscriptionLost) as fault:
            what = f"did not take a subscription to its changes: {short(session.mask(str(fault)))}"
            raise ConnectorError(what, where=self._where, reached_server=True) from None

    # --- listing ---

    async def _read_pages(self, client: ClientSession, session: Session, pages: list[dict[str, Any]]) -> None:
        """Adds all pages to `pages`, as far as they come.

        Only an absent or null cursor ends; the empty string is a cursor like any other.
        """
        seen: set[str] = set()
        cursor: str | None = None
        n_bytes = 0
        for n_pages in range(1, self._spec.max_pages + 1):
            page = await self._page(client, session, cursor)
            n_bytes += len(json.dumps(page, ensure_ascii=False).encode("utf-8", "surrogatepass"))
            if n_bytes > self._spec.max_list_bytes:
                raise self._bad_list(f"its list is longer than {self._spec.max_list_bytes} bytes", "max_list_bytes")
            pages.append(page)
            cursor = page.get("nextCursor")
            if cursor is None:
                return
            if not isinstance(cursor, str):
                raise self._bad_list(f"page {n_pages} has a cursor that is no string")
            if cursor in seen:
                raise self._bad_list(f"its pages loop: page {n_pages} repeats the cursor {cursor[:80]!r}")
            seen.add(cursor)
        raise self._bad_list(f"its list has more than {self._spec.max_pages} pages", "max_pages")

    async def _page(self, client: ClientSession, session: Session, cursor: str | None) -> dict[str, Any]:
        with watched() as exchange:
            try:
                page = await _raw.request(client, "tools/list", {} if cursor is None else {"cursor": cursor})
            except _raw.JsonRpcError as fault:
                if fault.unknown_method and cursor is None and not _offers_tools(client):
                    return {"tools": []}
                raise self._list_fault(fault, exchange, session) from None
        if not isinstance(page.get("tools"), list):
            raise self._bad_list("answered tools/list without a list of tools")
        return page

    def _list_fault(self, fault: _raw.JsonRpcError, exchange: Exchange, session: Session) -> ConnectorError:
        if exchange.oversized:
            return self._bad_list("a page is longer than one message may be", "max_list_bytes")
        if fault.closed and self._spec.transport is Transport.STDIO:
            return session.ended_error()
        status = f" (HTTP {exchange.status})" if fault.made_up and exchange.status else ""
        said = short(session.mask(exchange.fault or fault.message))
        if fault.unreadable:
            return self._bad_list(f"answered tools/list outside the protocol: {said}")
        if exchange.status in (400, 404) and self._spec.transport is Transport.HTTP:
            self._lost = True  # how servers with sessions say that they no longer know this one
        return ConnectorError(f"did not list its tools: {said}{status}", where=self._where, reached_server=True)

    def _bad_list(self, what: str, limit: str = "") -> ConnectorProtocolError:
        hint = f"raise {limit} for this server if that is right" if limit else ""
        return ConnectorProtocolError(what, where=self._where, hint=hint, reached_server=True)

    # --- calling ---

    def _from_fault(
        self, fault: _raw.JsonRpcError, exchange: Exchange, session: Session, *, modern: bool
    ) -> ToolResult:
        stateful_http = self._spec.transport is Transport.HTTP and not modern
        if exchange.unsent:
            self._lost = self._lost or stateful_http
            return self._unavailable("could not be reached; nothing was sent", reached_server=False)
        if exchange.turned_away:
            return self._turned_away(exchange, fault, session, stateful_http=stateful_http)
        if exchange.oversized:
            return self._failed("answered with more than one message may hold")
        if exchange.fault or fault.closed:
            # Had the session been known to be over, `started` would have said so: the request may have left.
            return self._unavailable("ended the connection before it answered", reached_server=True)
        if fault.made_up:
            return self._unavailable(f"answered HTTP {exchange.status}", reached_server=True)
        return self._failed(self._said(fault, session), refused=fault.did_nothing)

    def _turned_away(
        self, exchange: Exchange, fault: _raw.JsonRpcError, session: Session, *, stateful_http: bool
    ) -> ToolResult:
        """What a 4xx to the call itself means."""
        status = exchange.status
        if status in (401, 403):
            _log.warning("server %r refused the credential of a call (HTTP %d)", self._spec.server_id, status)
            return _BAD_CREDENTIAL
        if status == 429:
            message = f"server {self._spec.server_id!r} has had too many requests (HTTP 429)"
            return ToolResult(code=Code.RATE_LIMITED, message=message, reached_server=True, refused=True)
        if stateful_http and status in (400, 404):
            self._lost = True  # how such servers say that they no longer know the session
            return self._unavailable("no longer knows this session", reached_server=True, refused=True)
        if fault.made_up or fault.unreadable or fault.closed or exchange.fault or exchange.oversized:
            message = f"The tool's server refused the request (HTTP {status})."
            return ToolResult(code=Code.TOOL_ERROR, message=message, reached_server=True, refused=True)
        return self._failed(self._said(fault, session), refused=True)

    def _said(self, fault: _raw.JsonRpcError, session: Session) -> str:
        return f"answered with error {fault.code}: {short(session.mask(fault.message))}"

    def _unavailable(self, what: str, *, reached_server: bool, refused: bool = False) -> ToolResult:
        message = f"server {self._spec.server_id!r} {what}"
        return ToolResult(code=Code.UNAVAILABLE, message=message, reached_server=reached_server, refused=refused)

    def _failed(self, what: str, *, refused: bool = False) -> ToolResult:
        message = f"server {self._spec.server_id!r} {what}"
        return ToolResult(code=Code.TOOL_ERROR, message=message, reached_server=True, refused=refused)

    def _param_headers(
        self, client: ClientSession, name: str, arguments: JsonObject, input_schema: JsonObject | None
    ) -> dict[str, str]:
        if self._spec.transport is not Transport.HTTP or not _raw.is_modern(client):
            return {}
        return _raw.param_headers(input_schema or self._header_schemas.get(name), arguments)

    def _remember_header_schemas(self, tools: list[Any]) -> None:
        """Schemas that ask for headers, for calls whose caller does not bring the schema along."""
        for tool in tools:
            if isinstance(tool, Mapping) and "x-mcp-header" in json.dumps(tool.get("inputSchema")):
                self._header_schemas[str(tool.get("name"))] = tool["inputSchema"]

    # --- the session ---

    def _open(self) -> Session:
        if self._session is None:
            self._session = Session(self._spec, env=self._env, headers=self._headers, root=self._root)
        return self._session

    @property
    def _where(self) -> str:
        return f"server {self._spec.server_id!r}"


def _announces(client: ClientSession) -> bool:
    capabilities = client.server_capabilities
    return capabilities is not None and capabilities.tools is not None and bool(capabilities.tools.list_changed)


def _offers_tools(client: ClientSession) -> bool:
    capabilities = client.server_capabilities
    return capabilities is not None and capabilities.tools is not None
