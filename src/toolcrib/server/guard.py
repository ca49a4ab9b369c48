"""ASGI layers in front of everything served over HTTP: the right host, the right origin, a known caller.

Above: `http.py` stacks them. Nothing behind them runs for a request they refuse.

Invariants
1. `HostGuard`: a request whose Host is not one of ours (DNS rebinding) gets 421, one that a foreign web page sent (its
   Origin) gets 403. No Origin is fine: programs send none.
2. `CallerGuard`: no caller, no entry (401); no entry without the scopes that all need (403). The token ends here.
3. Who it is comes from the resolver alone. No header is read here, and one given twice is never taken for one.
4. The caller is bound to the request, and a legacy session to the principal who opened it: for others there is none.
5. The operator's log names each request that is refused here and why, as long as nobody floods it; why nobody was known
   is said by the resolver.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from toolcrib.identity.refusals import RefusalLog, request_refused
from toolcrib.identity.refused import shown
from toolcrib.server.callers import CALLER_KEY, RENEW_KEY, caller_in_task, principal_text
from toolcrib.server.challenge import DescribeResource, ProtectedResource, challenge, lacks_scopes, refused
from toolcrib.types import Caller, Presented

LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")

_log = logging.getLogger(__name__)

ResolveCaller = Callable[[Presented], Awaitable[Caller | None]]
"""What a request shows of itself -> who it is, or None for nobody known. Raising refuses, too."""


class HostGuard:
    """Args:
    hosts: allowed names; one without a port stands for all its ports. IPv6 in brackets.
    origins: allowed beside the request's own origin, written as browsers send them: `https://host[:port]`.
    """

    def __init__(self, app: ASGIApp, *, hosts: Iterable[str], origins: Iterable[str] = ()) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)
        self._origins = frozenset(origin.lower().rstrip("/") for origin in origins)
        self._refusals = RefusalLog(_log)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] != "lifespan":
                return  # no websockets here
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        hosts = [host.lower() for host in headers.getlist("host")]
        if len(hosts) != 1 or not self._knows(hosts[0]):
            named = shown(hosts[0]) if len(hosts) == 1 else f"{len(hosts)} host names"
            why = f"it came to {named}, which is not served here (toolcrib serve --allow-host NAME)"
            self._refusals.say(why, what=request_refused(_peer(scope), status=421))
            await refused(421, "invalid_host", "This host name is not served here.")(scope, receive, send)
        elif not all(self._welcomes(origin.lower(), hosts[0]) for origin in headers.getlist("origin")):
            why = f"a web page of {shown(headers['origin'])} sent it"
            self._refusals.say(why, what=request_refused(_peer(scope), status=403))
            await refused(403, "invalid_origin", "Requests from this origin are not served.")(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _knows(self, host: str) -> bool:
        return host in self._hosts or _without_port(host) in self._hosts

    def _welcomes(self, origin: str, host: str) -> bool:
        return origin in self._origins or origin in (f"http://{host}", f"https://{host}")


class CallerGuard:
    """Lets in requests whose caller is known, and leaves the caller in the scope.

    Args:
        describe: what clients are told of the way in, and the scopes that everybody needs.
    """

    def __init__(
        self, app: ASGIApp, *, resolve_caller: ResolveCaller, describe: DescribeResource = ProtectedResource
    ) -> None:
        self._app = app
        self._resolve = resolve_caller
        self._describe = describe
        self._refusals = RefusalLog(_log)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = presented(scope)
        try:
            protected = self._describe()
            caller = await self._resolve(given) if given is not None else None
        except Exception as fault:  # noqa: BLE001 - whatever it is, nobody comes in, and none of its text leaves
            words = f"callers cannot be identified: {fault}"
            self._refusals.say(words, what=request_refused(_peer(scope), status=503))
            await refused(503, "unavailable", "Callers cannot be identified at present.")(scope, receive, send)
            return
        if given is None or caller is None:
            if given is None:
                self._refusals.say("it has several Authorization headers", what=request_refused(_peer(scope)))
            error = "invalid_token" if given is None or given.authorization is not None else ""
            told = challenge(protected, scope, error=error, scopes=protected.required_scopes)
            say = "Give a bearer token that is known here."
            await refused(401, "unauthorized", say, challenged=told)(scope, receive, send)
            return
        if not caller.scopes.issuperset(protected.required_scopes):
            lacking = ", ".join(sorted(set(protected.required_scopes) - caller.scopes))
            why = f"{caller.subject!r} lacks the required scopes {lacking}"
            self._refusals.say(why, what=request_refused(_peer(scope), status=403))
            await lacks_scopes(protected, scope, protected.required_scopes)(scope, receive, send)
            return
        token = caller_in_task.set(caller)
        established = {CALLER_KEY: caller, RENEW_KEY: partial(self._again, given), "user": _principal(caller)}
        try:
            await self._app({**scope, **established}, receive, send)
        finally:
            caller_in_task.reset(token)

    async def _again(self, given: Presented) -> Caller | None:
        """Who it is now, as far as that one would still be let in."""
        caller = await self._resolve(given)
        required = self._describe().required_scopes
        return caller if caller is not None and caller.scopes.issuperset(required) else None


def presented(scope: Scope) -> Presented | None:
    """What the request shows; None for one with two `Authorization` headers, which is nobody's."""
    headers: dict[str, str] = {}
    for name, value in Headers(scope=scope).items():
        headers[name] = f"{headers[name]},{value}" if name in headers else value
    given = Headers(scope=scope).getlist("authorization")
    if len(given) > 1:
        return None
    return Presented(authorization=given[0] if given else None, peer=_peer(scope), headers=headers)


def _peer(scope: Scope) -> str:
    """The address of the connection, "" where there is none. Forwarding headers are not read."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def _principal(caller: Caller) -> AuthenticatedUser:
    """Whom the SDK binds legacy sessions to: the same person, for the same other, in the same tenant.

    Rights are not part of it: they are taken anew from each request, and may change while a session lasts.
    """
    who = principal_text(caller)
    return AuthenticatedUser(AccessToken(token="", client_id=who, scopes=[], subject=caller.subject))


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host
