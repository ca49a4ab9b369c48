"""ASGI layers in front of everything served over HTTP: the right host, the right origin, a known caller.

Above: `http.py` stacks them. Nothing behind them runs for a request they refuse.

Invariants
1. `HostGuard`: a request whose Host is not one of ours (DNS rebinding) gets 421, one that a foreign web page sent (its
   Origin) gets 403. No Origin is fine: programs send none.
2. `CallerGuard`: no caller, no entry (401). The challenge names no scope, so it tells of none. The token ends here.
3. The caller is bound to the request, and a legacy session to the principal who opened it: for others there is none.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from toolcrib.server.callers import CALLER_KEY, caller_in_task
from toolcrib.types import Caller

LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")

_log = logging.getLogger(__name__)

ResolveCaller = Callable[[str | None], Caller | None]
"""The `Authorization` header, or None without one -> who it is, or None for nobody known. Raising refuses, too."""


class HostGuard:
    """Args:
    hosts: allowed names; one without a port stands for all its ports. IPv6 in brackets.
    origins: allowed beside the request's own origin, written as browsers send them: `https://host[:port]`.
    """

    def __init__(self, app: ASGIApp, *, hosts: Iterable[str], origins: Iterable[str] = ()) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)
        self._origins = frozenset(origin.lower().rstrip("/") for origin in origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] != "lifespan":
                return  # no websockets here
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        hosts = [host.lower() for host in headers.getlist("host")]
        if len(hosts) != 1 or not self._knows(hosts[0]):
            await _refused(421, "invalid_host", "This host name is not served here.")(scope, receive, send)
        elif not all(self._welcomes(origin.lower(), hosts[0]) for origin in headers.getlist("origin")):
            await _refused(403, "invalid_origin", "Requests from this origin are not served.")(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _knows(self, host: str) -> bool:
        return host in self._hosts or _without_port(host) in self._hosts

    def _welcomes(self, origin: str, host: str) -> bool:
        return origin in self._origins or origin in (f"http://{host}", f"https://{host}")


class CallerGuard:
    """Lets in requests whose caller is known, and leaves the caller in the scope."""

    def __init__(self, app: ASGIApp, *, resolve_caller: ResolveCaller) -> None:
        self._app = app
        self._resolve = resolve_caller

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = Headers(scope=scope).getlist("authorization")
        try:
            caller = self._resolve(given[0] if given else None) if len(given) < 2 else None
        except Exception as fault:  # noqa: BLE001 - whatever it is, nobody comes in, and none of its text leaves
            _log.error("callers cannot be identified: %s", fault)
            await _refused(503, "unavailable", "Callers cannot be identified at present.")(scope, receive, send)
            return
        if caller is None:
            response = _refused(401, "unauthorized", "Give a bearer token that is known here.")
            response.headers["WWW-Authenticate"] = 'Bearer error="invalid_token"' if given else "Bearer"
            await response(scope, receive, send)
            return
        token = caller_in_task.set(caller)
        try:
            await self._app({**scope, CALLER_KEY: caller, "user": _principal(caller)}, receive, send)
        finally:
            caller_in_task.reset(token)


def _principal(caller: Caller) -> AuthenticatedUser:
    """Whom the SDK binds legacy sessions to: the same person, for the same other, in the same tenant.

    Rights are not part of it: they are taken anew from each request, and may change while a session lasts.
    """
    who = json.dumps([caller.kind, caller.subject, caller.on_behalf_of, caller.tenant])
    return AuthenticatedUser(AccessToken(token="", client_id=who, scopes=[], subject=caller.subject))


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host


def _refused(status: int, error: str, description: str) -> JSONResponse:
    return JSONResponse({"error": error, "error_description": description}, status_code=status)
