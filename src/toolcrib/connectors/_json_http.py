"""One exchange of JSON with an endpoint of the operator's: bounded, never redirected, https or this machine only.

Below `lookup.py` (whose resource is it) and `webhook.py` (may this call run). Both decide by the answer, so everything
that is not plainly an answer is a fault in words, and nothing secret is in those words.

Invariants
1. Plain http goes to a loopback address only, and never through a proxy; a redirect is a fault.
2. The whole exchange has one deadline; a body is read up to `max_bytes`, uncompressed.
3. A fault names a status or the kind of an error: never a header, a body or the address, which may hold an identifier.
4. JSON with a name given twice, or with NaN, is no JSON: readers would disagree on what it says.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import httpx2

MAX_URL_CHARS = 8_000


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswer:
    """What came back. `fault` says why nothing did; the rest is then empty. Header names are in lower case."""

    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)
    fault: str = ""


def url_fault(url: str) -> str:
    """Why this address is not asked, or "": it must be https, or http to this machine, without a user and password.

    `settings/fields.py` says the same of what an operator writes; one table of addresses tests both.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return "it is not an address"
    if port == 0 or len(url) > MAX_URL_CHARS or not url.isprintable() or " " in url or "\\" in url:
        return "it is not an address"
    if parts.scheme not in ("https", "http") or not host:
        return "it must begin with https:// (or http:// for this machine)"
    if parts.username is not None or parts.password is not None:
        return "a user or password belongs into a header, not into the address"
    if parts.scheme == "http" and not is_loopback(host):
        return "plain http may go to this machine only; use https"
    return ""


def is_loopback(host: str) -> bool:
    """Whether only this machine answers under that name: as in `settings/hosts.py`, which is of another room."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def exchange(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str],
    body: bytes | None = None,
    timeout_s: float,
    max_bytes: int,
) -> HttpAnswer:
    """What the endpoint answered, of whatever status, or why nothing came. Never raises for what an endpoint does.

    Args:
        url: one that `url_fault` has nothing against.
        timeout_s: seconds for all of it. max_bytes: of the answer's body.
    """
    import httpx2  # takes 0.2 s, which every command would pay

    local = urlsplit(url).scheme == "http"
    try:
        async with asyncio.timeout(timeout_s):
            client = httpx2.AsyncClient(
                verify=_tls(), trust_env=not local, follow_redirects=False, timeout=httpx2.Timeout(timeout_s)
            )
            async with client, client.stream(method, url, headers=_sent(headers), content=body) as response:
                return await _read(response, max_bytes=max_bytes)
    except TimeoutError:
        return HttpAnswer(fault=f"no answer within {timeout_s:g} s")
    except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, ValueError, OSError) as fault:
        # The text of these errors may quote a header's value or the address.
        return HttpAnswer(fault=f"the request failed: {type(fault).__name__}")


def json_of(answer: HttpAnswer) -> Any:
    """The answer's JSON.

    Raises:
        ValueError: it is not one JSON value in UTF-8 under a JSON content type.
    """
    media = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != "application/json" and not (media.startswith("application/") and media.endswith("+json")):
        raise ValueError("it is not JSON by its content type")
    try:
        return json.loads(answer.body.decode(), object_pairs_hook=_once, parse_constant=_no_number)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError):
        raise ValueError("it is not JSON") from None


async def _read(response: httpx2.Response, *, max_bytes: int) -> HttpAnswer:
    if response.headers.get("content-encoding", "identity") != "identity":
        return HttpAnswer(fault="it sent a compressed body although asked not to")
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > max_bytes:
            return HttpAnswer(fault=f"its answer is longer than {max_bytes} bytes")
    headers = {name.lower(): value for name, value in response.headers.items()}
    return HttpAnswer(status=response.status_code, headers=headers, body=bytes(body))


def _sent(headers: Mapping[str, str]) -> dict[str, str]:
    return {"accept": "application/json", **headers, "accept-encoding": "identity"}


@cache
def _tls() -> ssl.SSLContext:
    """One context for all exchanges: reading the authorities' certificates takes longer than most of them."""
    import httpx2

    return httpx2.create_ssl_context()


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) != len(pairs):
        raise ValueError("it gives a name twice")
    return read


def _no_number(_text: str) -> float:
    raise ValueError("it holds what is no number in JSON")
