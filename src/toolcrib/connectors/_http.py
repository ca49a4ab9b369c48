"""The HTTP client under the SDK's streamable HTTP transport: bounded bodies, and faults that cost one request only.

Below `_session.py`. The SDK lets one refused connection or one broken body end the whole session, and with it every
other call in flight; here such a fault answers its own request, and its `Exchange` notes what happened.

Invariants
1. Only the operator's headers and those of the protocol are sent; environment proxies are honoured, netrc is not.
2. A body that is not an event stream is read up to `max_body_bytes`, uncompressed (a compressed one could grow a
   thousandfold while it is read). Events have the same limit in the SDK.
3. A request is sent once; redirects within the origin are the SDK's matter.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal

import httpx2

_CONNECT_S = 10.0
_WRITE_S = 60.0
_ASIDE_S = 2.0
"""For a session's goodbye and for notifications. The SDK sends these in line: a server that hangs on one would hold up
the closing, or every later request."""
_MAX_NOTIFICATION_BYTES = 4_096
_NOT_SENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.LocalProtocolError,
)
"""Faults that come before the first byte of a request has left."""


@dataclass(slots=True)
class Exchange:
    """What HTTP knows of one request. The context variable travels with the request into the SDK's own tasks.

    There, other requests may follow: the stream of an answer is asked for once more when it broke off, and a server's
    own question is answered. Once the request was accepted (`accepted`), none of these says anything of it.

    Args:
        handshake: several requests belong together, and the last one counts.
    """

    handshake: bool = False
    status: int | None = None
    accepted: bool = False
    unsent: bool = False
    fault: str = ""
    oversized: bool = False

    @property
    def turned_away(self) -> bool:
        """Whether the server refused the request by its status, a time-out (408) apart: that may come too late."""
        return self.status is not None and 400 <= self.status < 500 and self.status != 408


_EXCHANGE: ContextVar[Exchange | None] = ContextVar("toolcrib_exchange", default=None)


@contextmanager
def watched(exchange: Exchange | None = None) -> Iterator[Exchange]:
    """What HTTP says of the requests sent inside."""
    exchange = exchange or Exchange()
    token = _EXCHANGE.set(exchange)
    try:
        yield exchange
    finally:
        _EXCHANGE.reset(token)


class BoundedClient(httpx2.AsyncClient):
    """An HTTP client for one server.

    `certificate`: the server's own of the last connection, DER; b"" where there was no TLS. `standing`: how it is with
    the stream that is asked for with GET, and brings what the server says unasked. `counted_on`: somebody waits for
    what it brings, so that an answer that comes too late and is a refusal is its end, too.

    Args:
        on_stream_end: called when that stream ended or broke off. The SDK asks for it again some times, and then no
            more, without a word.
    """

    def __init__(
        self, *, headers: Mapping[str, str], max_body_bytes: int, on_stream_end: Callable[[], None] = lambda: None
    ) -> None:
        # No read timeout: an event stream may be silent for long, and every request has a deadline above this.
        timeout = httpx2.Timeout(connect=_CONNECT_S, read=None, write=_WRITE_S, pool=None)
        super().__init__(headers={"accept-encoding": "identity", **headers}, timeout=timeout)
        self._max_body_bytes = max_body_bytes
        self._on_stream_end = on_stream_end
        self.standing: Literal["none", "asked", "open", "refused", "failed"] = "none"
        self.standing_answered = asyncio.Event()
        self.counted_on = False
        self.certificate = b""

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        exchange = _EXCHANGE.get() or Exchange()
        if exchange.accepted and not exchange.handshake:
            exchange = Exchange()
        if _nobody_waits_for(request):
            request.extensions = {**request.extensions, "timeout": httpx2.Timeout(_ASIDE_S).as_dict()}
        if request.method == "GET":
            self.standing = "asked"
        try:
            response = await super().send(request, **options)
        except httpx2.TransportError as exc:
            if request.method == "GET":
                self._stands("failed")
            if request.method != "POST":
                raise
            exchange.unsent = isinstance(exc, _NOT_SENT)
            exchange.fault = f"{type(exc).__name__}: {exc}"
            return _answer(request, "the connection failed")
        self.certificate = _certificate(response) or self.certificate
        exchange.status = response.status_code
        exchange.accepted = response.is_success
        return await self._bounded(response, request, exchange)

    async def _bounded(self, response: httpx2.Response, request: httpx2.Request, exchange: Exchange) -> httpx2.Response:
        if response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            exchange.fault = "it sent a compressed body although asked not to"
            return _answer(request, exchange.fault)
        if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = _BoundedStream(response.stream, self._max_body_bytes, exchange)
        elif request.method == "GET" and response.is_success:
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = _StandingStream(response.stream, self._on_stream_end)
            self._stands("open")
            return response
        if request.method == "GET":
            self._stands("failed" if response.is_server_error else "refused")
        return response

    def _stands(self, how: Literal["open", "refused", "failed"]) -> None:
        self.standing = how
        self.standing_answered.set()
        if self.counted_on and how != "open":
            self._on_stream_end()


class _BoundedStream(httpx2.AsyncByteStream):
    """Passes a body on until it is too long. Faults become `StreamError`, which the SDK answers to one request."""

    def __init__(self, inner: httpx2.AsyncByteStream, max_bytes: int, exchange: Exchange) -> None:
        self._inner = inner
        self._left_bytes = max_bytes
        self._exchange = exchange

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._inner:
                self._left_bytes -= len(chunk)
                if self._left_bytes < 0:
                    self._exchange.oversized = True
                    raise httpx2.StreamError("the body is too long")
                yield chunk
        except httpx2.TransportError as exc:
            self._exchange.fault = f"{type(exc).__name__}: {exc}"
            raise httpx2.StreamError("the body broke off") from exc

    async def aclose(self) -> None:
        await self._inner.aclose()


class _StandingStream(httpx2.AsyncByteStream):
    """Passes events on, and tells when the server's end came; not when we leave ourselves."""

    def __init__(self, inner: httpx2.AsyncByteStream, on_end: Callable[[], None]) -> None:
        self._inner = inner
        self._on_end = on_end

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._inner:
                yield chunk
        except httpx2.TransportError:
            self._on_end()
            raise
        self._on_end()

    async def aclose(self) -> None:
        await self._inner.aclose()


def _certificate(response: httpx2.Response) -> bytes:
    stream = response.extensions.get("network_stream")
    secured = stream.get_extra_info("ssl_object") if stream is not None else None
    return (secured.getpeercert(binary_form=True) or b"") if secured is not None else b""


def _nobody_waits_for(request: httpx2.Request) -> bool:
    if request.method == "DELETE":
        return True
    if request.method != "POST" or len(request.content) > _MAX_NOTIFICATION_BYTES:
        return False
    message = json.loads(request.content)
    return isinstance(message, dict) and "id" not in message


def _answer(request: httpx2.Request, message: str) -> httpx2.Response:
    """A response in place of the one that never came; the SDK gives its error to the request that waits."""
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": -32603, "message": message}}
    return httpx2.Response(502, json=body, request=request)
