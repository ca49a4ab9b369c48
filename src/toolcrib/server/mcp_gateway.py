"""One MCP server in front of a crib, for clients of both protocol eras.

Above: `stdio.py` and `http.py` carry it. Below: `surface.py` (what the caller sees), `calls.py` (what is run).

    tools/list     surface_of(view), crib.note_offered   whole, on one page
    tools/call     calls.py
    subscriptions/listen, legacy sessions                changes.py

The SDK's typed path drops unknown fields and fails whole lists, so both methods are answered as plain objects from its
middleware, which must then bring the envelope itself: modern results carry `resultType`, `ttlMs`, `cacheScope` and
`serverInfo`, legacy ones none of them.

Invariants
1. Every answer is made from the caller's own view, taken anew for each request (I1, I3).
2. A fault gives a fixed text; what happened goes to the log (never an exception's text over the wire).
3. A name that is missing, hidden or withheld gives one answer: -32602 for a direct call, `not_available` through
   `call_tool` and `describe_tools`. A resource that is not available is an error result in either case.
"""

from __future__ import annotations

import json
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as wire
from mcp import MCPError
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp_types import methods as wire_methods
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from toolcrib.errors import ToolcribError
from toolcrib.server import answers
from toolcrib.server.approving import Approving
from toolcrib.server.callers import CallerSource
from toolcrib.server.calls import Calls
from toolcrib.server.challenge import challenge_of
from toolcrib.server.changes import Changes
from toolcrib.server.needs import GatewayCrib
from toolcrib.server.surface import Surface, SurfaceKind, for_legacy, surface_of
from toolcrib.types import Caller, Channel, Code, JsonObject, Tool

_SURFACES_KEPT = 64

_log = logging.getLogger(__name__)

Ctx = ServerRequestContext[Any, Any]


class Gateway:
    """The gateway of one crib on one channel. `server` is what a transport runs.

    Args:
        ttl_ms: how long a client may keep a listing; keeping it grants nothing.
        poll_s: how often to look whether somebody's tools changed, while somebody listens; 0: only when told.
    """

    def __init__(
        self,
        crib: GatewayCrib,
        *,
        channel: Channel,
        callers: CallerSource,
        surface: SurfaceKind = SurfaceKind.SEARCH,
        version: str = "",
        ttl_ms: int = 60_000,
        poll_s: float = 2.0,
    ) -> None:
        self._crib = crib
        self._channel = channel
        self._callers = callers
        self._kind = surface
        self._ttl_ms = ttl_ms
        self._poll_s = poll_s
        self._surfaces: OrderedDict[int, tuple[tuple[Tool, ...], Surface]] = OrderedDict()
        self._approving = Approving(channel=channel, callers=callers)
        self._calls = Calls(crib, channel=channel, approving=self._approving)
        self._changes = Changes(lambda caller: self._surface(caller).version)
        self.server: Server[Any] = Server(
            "toolcrib",
            version=version,
            title=crib.name or None,
            lifespan=self._lifespan,
            on_list_tools=_answered_in_middleware,
            on_call_tool=_answered_in_middleware,
            on_subscriptions_listen=self._listen,
            get_tool_input_schema=self._input_schema,
        )
        self.server.middleware = [self._answer]

    async def notify_catalog_changed(self) -> int:
        """Tell those whose own listing changed, on the loop that serves them; how many were told."""
        return await self._changes.announce()

    def close_streams(self) -> None:
        """End all open `subscriptions/listen` streams in good order."""
        self._changes.close_streams()

    # --- requests ---------------------------------------------------------------------------------------------------

    async def _answer(self, ctx: Ctx, call_next: CallNext) -> HandlerResult:
        open_challenge = challenge_of(ctx.request.scope) if ctx.request is not None else None
        try:
            if open_challenge is not None and ctx.method != "tools/call":
                open_challenge.settle()
            if not _modern(ctx):
                self._changes.renew_session(ctx, self._callers.renewal(ctx))
            match ctx.method:
                case "tools/list":
                    return self._list(ctx)
                case "tools/call":
                    _checked(ctx)
                    return await self._approving.sealed(ctx, self._call)
                case "initialize" | "server/discover":
                    return self._introduced(ctx, await call_next(ctx))
                case "notifications/initialized":
                    await call_next(ctx)
                    if not _modern(ctx):
                        self._changes.watch_session(ctx, self._callers.of(ctx), self._callers.renewal(ctx))
                    return None
            return await call_next(ctx)
        except (MCPError, ValidationError):
            raise
        except ToolcribError as fault:
            _log.error("%s cannot be answered: %s", ctx.method, fault)
            raise MCPError(code=wire.INTERNAL_ERROR, message=answers.UNAVAILABLE) from None
        except Exception:  # noqa: BLE001 - the SDK would send an unknown exception's text to a legacy client
            _log.exception("%s failed", ctx.method)
            raise MCPError(code=wire.INTERNAL_ERROR, message=answers.UNAVAILABLE) from None
        finally:
            if open_challenge is not None:
                open_challenge.settle()

    def _list(self, ctx: Ctx) -> dict[str, Any]:
        params = _checked(ctx)
        if params.get("cursor") is not None:
            raise MCPError(code=wire.INVALID_PARAMS, message="Unknown cursor")
        caller = self._callers.of(ctx)
        surface = self._surface(caller)
        if surface.listed:
            self._crib.note_offered(surface.listed, caller=caller)
        if not _modern(ctx):
            return {"tools": [for_legacy(definition) for definition in surface.listing]}
        listed = {"tools": list(surface.listing), "ttlMs": self._ttl_ms, "cacheScope": "private"}
        return self._modern_result(listed)

    async def _call(self, ctx: Ctx) -> dict[str, Any]:
        caller = self._callers.of(ctx)
        try:
            result = await self._calls.answer(ctx, ctx.params or {}, caller=caller, surface=self._surface(caller))
        except MCPError:
            raise
        except ToolcribError as fault:
            _log.error("tools/call cannot be answered: %s", fault)
            result = answers.refusal(Code.UNAVAILABLE, answers.UNAVAILABLE)
        except Exception:  # noqa: BLE001 - whatever it is: an error result, and none of its text
            _log.exception("tools/call failed")
            result = answers.refusal(Code.UNAVAILABLE, answers.UNAVAILABLE)
        return self._modern_result(result) if _modern(ctx) else answers.legacy_result(result)

    def _introduced(self, ctx: Ctx, result: HandlerResult) -> HandlerResult:
        """The SDK's `initialize` or `server/discover` result, with this caller's instructions."""
        if not isinstance(result, dict):
            return result
        try:
            instructions = self._surface(self._callers.of(ctx)).instructions
        except ToolcribError as fault:
            _log.warning("no instructions for a new client: %s", fault)
            instructions = answers.UNAVAILABLE
        if _modern(ctx):
            return {**result, "instructions": instructions, "ttlMs": self._ttl_ms, "cacheScope": "private"}
        return {
            **result,
            "instructions": instructions,
            "capabilities": {**result["capabilities"], "tools": {"listChanged": True}},
        }

    # --- the caller's surface -----------------------------------------------------------------------------------------

    def _surface(self, caller: Caller) -> Surface:
        """What this caller sees now. Kept per tuple of tools, which callers with equal rights share."""
        view = self._crib.view(caller, self._channel)
        key = id(view.tools)
        kept = self._surfaces.get(key)
        if kept is None:
            # The tuple is held beside its surface, so its id cannot come to mean another one.
            kept = self._surfaces[key] = (view.tools, surface_of(view, self._kind))
            while len(self._surfaces) > _SURFACES_KEPT:
                self._surfaces.popitem(last=False)
        self._surfaces.move_to_end(key)
        return kept[1]

    def _input_schema(self, name: str) -> JsonObject | None:
        """The schema that a request's `Mcp-Param-*` headers are checked against: of a permitted tool, or none."""
        caller = self._callers.in_task()
        if caller is None:
            return None
        tool = self._surface(caller).tool(name)
        return tool.input_schema if tool else None

    def _modern_result(self, result: dict[str, Any]) -> dict[str, Any]:
        meta = result.get("_meta")
        own = {wire.SERVER_INFO_META_KEY: self.server.server_info_stamp}
        return {"resultType": "complete", **result, "_meta": {**(meta if isinstance(meta, Mapping) else {}), **own}}

    async def _listen(self, ctx: Ctx, params: wire.SubscriptionsListenRequestParams) -> wire.SubscriptionsListenResult:
        return await self._changes.listen(ctx, self._callers.of(ctx), params, renew=self._callers.renewal(ctx))

    @asynccontextmanager
    async def _lifespan(self, _server: Server[Any]) -> AsyncIterator[dict[str, Any]]:
        async with anyio.create_task_group() as tasks:
            if self._poll_s > 0:
                tasks.start_soon(self._changes.poll, self._poll_s)
            yield {}
            tasks.cancel_scope.cancel()


async def _answered_in_middleware(_ctx: Ctx, _params: Any) -> Any:
    """Registered so that the SDK announces `tools`; the middleware answers before this is reached."""
    raise ToolcribError("a tools request passed the gateway's middleware")


def _modern(ctx: Ctx) -> bool:
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def _checked(ctx: Ctx) -> JsonObject:
    """The request's parameters, once they have the protocol's shape: the middleware runs before the SDK's own check."""
    if not ctx.session._connection.initialize_accepted:
        raise MCPError(code=wire.INVALID_PARAMS, message="Invalid request parameters", data="")
    wire_methods.validate_client_request(ctx.method, ctx.protocol_version, ctx.params)
    params = ctx.params or {}
    try:
        json.dumps(params, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError):
        # A lone surrogate would break whoever writes it as UTF-8 further on: a server, the trace, a stdio client.
        raise MCPError(code=wire.INVALID_PARAMS, message="Not Unicode text, or nested too deeply") from None
    return params
