"""One small document over HTTPS, for `jwks.py`: no redirects, a deadline, a bound on its size.

Blocks; whoever asks does so in a thread.

Invariants
1. What comes over plain http comes from this machine: keys that somebody on the way could swap are worth nothing.
2. One deadline holds for all of it, from the look-up of the name to the last byte: who drips, ends nothing but itself.
3. Redirects are not followed: the address that the operator wrote is the one that is asked.
"""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from urllib.parse import urlsplit

from toolcrib.errors import ConfigError, ConnectorError

_HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "toolcrib"}


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
        timeout_s: seconds for all of it.
    Raises:
        ConfigError: see `check_url`.
        ConnectorError: no answer in time, one that is not 200, or more than `max_bytes` of it.
    """
    check_url(url)
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(_get(url, timeout_s=timeout_s, max_bytes=max_bytes))
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()  # not `asyncio.run`, which would wait for a resolver that hangs, too


async def _get(url: str, *, timeout_s: float, max_bytes: int) -> bytes:
    import httpx2  # takes 0.2 s, which every command with an issuer would pay

    # Through the environment's proxy, if it names one; this machine is asked directly.
    direct = _is_this_machine(urlsplit(url).hostname or "")
    try:
        async with (
            asyncio.timeout(timeout_s),
            httpx2.AsyncClient(
                verify=ssl.create_default_context(), trust_env=not direct, follow_redirects=False, timeout=timeout_s
            ) as client,
            client.stream("GET", url, headers=_HEADERS) as response,
        ):
            if response.status_code != 200:
                raise ConnectorError(f"it answered {response.status_code}", where=url)
            body = b""
            async for part in response.aiter_raw():
                body += part
                if len(body) > max_bytes:
                    raise ConnectorError(f"it answered more than {max_bytes} bytes", where=url)
            return body
    except TimeoutError:
        raise ConnectorError(f"it gave no answer within {timeout_s:g} s", where=url) from None
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as fault:
        raise ConnectorError(f"it gave no answer: {type(fault).__name__}", where=url) from fault


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
