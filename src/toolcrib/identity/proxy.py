"""Client certificates, as a proxy reports them that the operator trusts by name.

Below: `types/`. Above: `callers.py`, floor 4.

A proxy ends TLS, checks the client's certificate and writes whose it was into a header. Anybody can write a header, so
it counts only from the proxy's address together with the proxy's secret. The proxy must remove the header from what
clients send: what it passes on, it vouches for.

Invariants
1. A certificate header from anybody else lets nobody in, and neither does whatever comes beside it.
2. Two identities in one request are none.
3. The secret is compared in constant time and shown nowhere.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from toolcrib.identity.refused import Refused, shown
from toolcrib.types import Caller, Presented

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustedProxy:
    """One proxy.

    Args:
        networks: where it connects from.
        header: what carries the certificate's subject, `secret_header` what carries the secret; in lower case.
        secret: "" when it cannot be read: the proxy vouches for nobody then.
        clients: the header's exact value -> the caller.
    """

    name: str
    networks: tuple[Network, ...]
    header: str
    secret_header: str
    secret: str = field(repr=False)
    clients: Mapping[str, Caller]


def certified(presented: Presented, proxies: Sequence[TrustedProxy]) -> Caller | Refused | None:
    """Whose certificate a trusted proxy saw; None when the request carries no certificate header at all."""
    claimed = [proxy for proxy in proxies if proxy.header in presented.headers]
    if not claimed:
        return None
    if presented.authorization is not None:
        return Refused("the request shows a certificate header and an Authorization header")
    vouching = [proxy for proxy in claimed if _is_from(proxy, presented)]
    if len(vouching) != 1:
        return Refused(f"a certificate header came from {shown(presented.peer)}, which is no trusted proxy")
    proxy = vouching[0]
    found = proxy.clients.get(presented.headers[proxy.header])
    return found if found is not None else Refused(f"the proxy {proxy.name!r} reports a certificate of nobody known")


def _is_from(proxy: TrustedProxy, presented: Presented) -> bool:
    """Whether this request came through this proxy: by its address and its secret."""
    shown_secret = presented.headers.get(proxy.secret_header, "")
    same = hmac.compare_digest(
        shown_secret.encode("utf-8", "surrogatepass"), proxy.secret.encode("utf-8", "surrogatepass")
    )
    return same and bool(proxy.secret) and _is_within(presented.peer, proxy.networks)


def _is_within(peer: str, networks: Sequence[Network]) -> bool:
    try:
        address = ipaddress.ip_address(peer)
    except ValueError:
        return False
    # A socket for both families gives IPv4 peers as ::ffff:a.b.c.d.
    plain = (isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped) or address
    return any(plain in network for network in networks)
