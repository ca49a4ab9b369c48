"""The way in over HTTP, as clients are told of it: RFC 6750 challenges and the RFC 9728 document that they point at.

Above: `guard.py` refuses with these, `http.py` serves the document. Behind them `calls.py` settles what a call lacked.

    no caller known                     401   Bearer [resource_metadata], [error="invalid_token"], [scope]
    a scope lacks that all need         403   Bearer error="insufficient_scope", scope
    a scope lacks that one tool needs   403   the same, for a tool that the caller may know of and not call (step-up)

Invariants
1. A challenge names the scopes that every request needs, or those of the one tool that was called; the document names
   the former alone. Neither is ever a catalog of scopes.
2. A tool that the caller may not know of is never stepped up to: it gets the answer of a tool that does not exist (I1).
3. Without an authorization server to send clients to there is no document (404), and no challenge points at one.
4. Strangers are told of one issuer at most, unless the operator names more: several would be the list of tenants.
5. What can't stand in a header as a scope is not written there: the parameter is then left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

import anyio
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MCP_PATH = "/mcp"
WELL_KNOWN = "/.well-known/oauth-protected-resource"
CHALLENGE_KEY = "toolcrib.challenge"
"""Where `StepUp` leaves the request's `Challenge` in an ASGI scope."""

_SETTLED_WITHIN_S = 5.0
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")  # RFC 6749, section 3.3
_URL_SAFE = ":/?#[]@!$&'()*+,;=%-._~"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectedResource:
    """This gateway as a resource of OAuth 2.

    Args:
        resource: its own URL as clients know it; "" takes it from the host name that the request came to.
        authorization_servers: see `named_servers`; none: there is no document.
        required_scopes: without all of which no caller comes in.
    """

    resource: str = ""
    authorization_servers: tuple[str, ...] = ()
    required_scopes: tuple[str, ...] = ()

    def identifier(self, scope: Scope) -> str:
        """The URL that tokens are made for. The host was checked before, so nobody else's name gets in."""
        if self.resource:
            return self.resource
        asked = HTTPConnection(scope)
        return f"{asked.url.scheme}://{asked.headers['host']}{MCP_PATH}"

    def metadata_url(self, scope: Scope) -> str:
        """Where the document lies (RFC 9728, section 3.1), or "" where there is none."""
        if not self.authorization_servers:
            return ""
        parts = urlsplit(self.identifier(scope))
        path = "" if parts.path == "/" else parts.path
        return quote(urlunsplit((parts.scheme, parts.netloc, WELL_KNOWN + path, "", "")), safe=_URL_SAFE)


def named_servers(configured: Sequence[str], *, issuers: Iterable[str]) -> tuple[str, ...]:
    """Whom clients are sent to for tokens: those configured, or else the only issuer; of several, nobody.

    Each tenant may have an identity provider of its own, and who asks here is not known yet.
    """
    distinct = tuple(dict.fromkeys(issuers))
    return tuple(configured) or (distinct if len(distinct) == 1 else ())


DescribeResource = Callable[[], ProtectedResource]
"""The gateway as it is configured when the request comes."""


def challenge(protected: ProtectedResource, scope: Scope, *, error: str = "", scopes: Iterable[str] = ()) -> str:
    """The value of a `WWW-Authenticate` header."""
    scopes = tuple(scopes)
    given = {
        "resource_metadata": protected.metadata_url(scope),
        "error": error,
        "scope": " ".join(scopes) if expressible(scopes) else "",
    }
    return " ".join(("Bearer", ", ".join(f'{name}="{value}"' for name, value in given.items() if value))).rstrip()


def expressible(scopes: Iterable[str]) -> bool:
    """Whether all of these can be written into a challenge."""
    return all(_SCOPE.fullmatch(scope) for scope in scopes)


def refused(status: int, error: str, description: str, *, challenged: str = "") -> JSONResponse:
    """The answer to a request that goes no further. `challenged`: its `WWW-Authenticate` header."""
    headers = {"WWW-Authenticate": challenged} if challenged else None
    return JSONResponse({"error": error, "error_description": description}, status_code=status, headers=headers)


def lacks_scopes(protected: ProtectedResource, scope: Scope, scopes: Iterable[str]) -> JSONResponse:
    """403: who asks is known, and needs these scopes."""
    told = challenge(protected, scope, error="insufficient_scope", scopes=scopes)
    return refused(403, "insufficient_scope", "The token lacks a scope that this needs.", challenged=told)


class Document:
    """The protected-resource document, for everybody: who has no token yet must be able to read it.

    It lies at the gateway's own path and at the root; of a configured `resource`, also at that one's path.
    """

    def __init__(self, describe: DescribeResource) -> None:
        self._describe = describe

    async def answer(self, request: Request) -> Response:
        protected = self._describe()
        own = protected.identifier(request.scope)
        if not protected.authorization_servers or request.path_params["rest"] not in ("", MCP_PATH, urlsplit(own).path):
            return refused(404, "not_found", "There is nothing here.")
        body: dict[str, Any] = {
            "resource": own,
            "authorization_servers": list(protected.authorization_servers),
            "bearer_methods_supported": ["header"],
        }
        if protected.required_scopes:
            body["scopes_supported"] = list(protected.required_scopes)
        return JSONResponse(body)


class Challenge:
    """What one request turned out to lack. The gateway settles it, once; `StepUp` reads it."""

    __slots__ = ("_settled", "scopes")

    def __init__(self) -> None:
        self.scopes: tuple[str, ...] = ()
        self._settled = anyio.Event()

    def settle(self, scopes: Iterable[str] = ()) -> None:
        """From now on the answer may leave. What comes after the first word counts no more."""
        if not self._settled.is_set():
            scopes = tuple(scopes)
            self.scopes = scopes if expressible(scopes) else ()
            self._settled.set()

    async def settled(self, *, within_s: float) -> None:
        with anyio.move_on_after(within_s):
            await self._settled.wait()


def challenge_of(scope: Scope) -> Challenge | None:
    """The open challenge of the request with this scope; None where nobody could send one."""
    found = scope.get(CHALLENGE_KEY)
    return found if isinstance(found, Challenge) else None


class StepUp:
    """Answers 403 in the place of a refusal that the gateway has settled to be one for want of scopes.

    The refusal itself was judged and traced like any other; only its form on the wire changes. A JSON answer is
    complete when it begins. An event stream of the older era begins before its request is looked at, so its beginning
    waits until the gateway has.
    """

    def __init__(self, app: ASGIApp, *, describe: DescribeResource) -> None:
        self._app = app
        self._describe = describe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        open_challenge = Challenge()
        replaced = False

        async def send_or_challenge(message: Message) -> None:
            nonlocal replaced
            if message["type"] == "http.response.start" and scope["method"] == "POST":
                if message["status"] == 200 and _streams(message):
                    await open_challenge.settled(within_s=_SETTLED_WITHIN_S)
                if open_challenge.scopes:
                    replaced = True
                    await lacks_scopes(self._describe(), scope, open_challenge.scopes)(scope, receive, send)
            if not replaced:
                await send(message)

        await self._app({**scope, CHALLENGE_KEY: open_challenge}, receive, send_or_challenge)


def _streams(start: Message) -> bool:
    return any(name.lower() == b"content-type" and b"event-stream" in value for name, value in start["headers"])
