"""Who asks, for one gateway request: taken from what trusted code put there, never from a message (I7).

Above: `mcp_gateway.py` asks. Below: `guard.py` puts the caller of an HTTP request into its scope.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

from mcp.server.context import ServerRequestContext

from toolcrib.errors import ToolcribError
from toolcrib.types import Caller

CALLER_KEY = "toolcrib.caller"
"""Where `guard.py` leaves the caller in an ASGI scope."""

RENEW_KEY = "toolcrib.renew"
"""Where `guard.py` leaves, beside the caller, the way to ask again who it is."""

Renew = Callable[[], Awaitable[Caller | None]]
"""Who it is now that once came in so: None for nobody any more. Raises when that cannot be told."""

caller_in_task: ContextVar[Caller | None] = ContextVar("caller_in_task", default=None)
"""The caller of the HTTP request that this task serves."""


def principal_text(caller: Caller) -> str:
    """Who it is, whatever the rights are now: what sessions and sealed states are bound to."""
    return json.dumps(caller.identity)


class CallerSource(Protocol):
    def of(self, ctx: ServerRequestContext[Any, Any]) -> Caller:
        """The caller of this request.

        Raises:
            ToolcribError: nobody established one; nothing is answered.
        """
        ...

    def renewal(self, ctx: ServerRequestContext[Any, Any]) -> Renew:
        """The way to ask again who made this request, for what outlives it: a stream, a session."""
        ...

    def in_task(self) -> Caller | None:
        """The caller of whatever request this task serves, where no context is at hand."""
        ...


@dataclass(frozen=True, slots=True)
class CurrentCaller:
    """stdio and in-process: one caller, whose rights are looked up on every request, so that losing them counts.

    `current` raises ToolcribError when nobody can be established; nothing is answered then.
    """

    current: Callable[[], Caller]

    def of(self, ctx: ServerRequestContext[Any, Any]) -> Caller:  # noqa: ARG002 - the protocol's signature
        return self.current()

    def renewal(self, ctx: ServerRequestContext[Any, Any]) -> Renew:  # noqa: ARG002 - the protocol's signature
        async def again() -> Caller | None:
            return self.current()

        return again

    def in_task(self) -> Caller | None:
        return self.current()


@dataclass(frozen=True, slots=True)
class RequestCaller:
    """HTTP: each request carries its own."""

    def of(self, ctx: ServerRequestContext[Any, Any]) -> Caller:
        scope = ctx.request.scope if ctx.request is not None else {}
        caller = scope.get(CALLER_KEY)
        if not isinstance(caller, Caller):
            raise ToolcribError("a request without an established caller reached the gateway")
        return caller

    def renewal(self, ctx: ServerRequestContext[Any, Any]) -> Renew:
        scope = ctx.request.scope if ctx.request is not None else {}
        renew: Renew | None = scope.get(RENEW_KEY)
        if renew is None:
            raise ToolcribError("a request without an established caller reached the gateway")
        return renew

    def in_task(self) -> Caller | None:
        return caller_in_task.get()
