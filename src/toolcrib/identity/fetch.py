"""One small document over HTTPS, for `jwks.py`: no redirects, a deadline, a bound on its size.

Blocks; whoever asks does so in a thread.

Invariants
1. What comes over plain http comes from this machine: keys that somebody on the way could swap are worth nothing.
2. Redirects are not followed: the address that the operator wrote is the one that is asked.
"""

from __future__ import annotations

import http.client
import ipaddress
import time
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, ProxyHandler, Request, build_opener

from toolcrib.errors import ConfigError, ConnectorError

_CHUNK_BYTES = 64 * 1024


def check_url(url: str) -> None:
    """Raises ConfigError for an address that keys must not come from."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        raise ConfigError("this is not an address", where=url, hint="https://issuer.example/keys") from None
    if "@" in parts.netloc or not host:
        raise ConfigError("the address of a key set is a host without a user", where="keys_url")
    if parts.scheme != "https" and not (parts.scheme == "http" and _is_this_machine(host)):
        raise ConfigError("a key set is fetched over https", where=url, hint="plain http is for this machine alone")


def fetch(url: str, *, timeout_s: float, max_bytes: int) -> bytes:
    """What lies at this address.

    Args:
        timeout_s: seconds for each wait and for the body as a whole.
    Raises:
        ConfigError: see `check_url`.
        ConnectorError: no answer in time, one that is not 200, or more than `max_bytes` of it.
    """
    check_url(url)
    deadline = time.monotonic() + timeout_s
    request = Request(url, headers={"Accept": "application/json", "User-Agent": "toolcrib"})  # noqa: S310 - checked above
    try:
        with _opener(url).open(request, timeout=timeout_s) as response:
            return _body(response, url, deadline=deadline, max_bytes=max_bytes)
    except HTTPError as fault:
        with fault:
            raise ConnectorError(f"it answered {fault.code}", where=url) from None
    except (OSError, http.client.HTTPException) as fault:
        raise ConnectorError(f"it gave no answer: {type(fault).__name__}", where=url) from fault


def _body(response: Any, url: str, *, deadline: float, max_bytes: int) -> bytes:
    if response.status != 200:
        raise ConnectorError(f"it answered {response.status}", where=url)
    parts: list[bytes] = []
    while chunk := response.read1(_CHUNK_BYTES):
        parts.append(chunk)
        if sum(map(len, parts)) > max_bytes:
            raise ConnectorError(f"it answered more than {max_bytes} bytes", where=url)
        if time.monotonic() > deadline:
            raise ConnectorError("its answer took too long", where=url)
    return b"".join(parts)


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_args: Any, **_more: Any) -> None:
        return None  # the answer is then an error like any other


def _opener(url: str) -> OpenerDirector:
    """Through the environment's proxy, if it names one; this machine is asked directly."""
    direct = (ProxyHandler({}),) if _is_this_machine(urlsplit(url).hostname or "") else ()
    return build_opener(_NoRedirect, *direct)


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
