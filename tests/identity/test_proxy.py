"""Certificates that a proxy reports: from that proxy alone, and never beside another identity."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest

from toolcrib.identity.proxy import TrustedProxy, certified
from toolcrib.identity.refused import Refused
from toolcrib.types import Caller, Presented

BOT = Caller(subject="bot", tenant="acme")
SECRET = "a-secret-of-the-proxy"
EDGE = TrustedProxy(
    name="edge",
    networks=(ipaddress.ip_network("10.0.0.0/24"), ipaddress.ip_network("fd00::/64")),
    header="x-client-cert",
    secret_header="x-proxy-secret",
    secret=SECRET,
    clients={"CN=bot,O=acme": BOT},
)
GOOD = {"x-client-cert": "CN=bot,O=acme", "x-proxy-secret": SECRET}


def shows(peer: str = "10.0.0.7", authorization: str | None = None, **headers: str) -> Presented:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Presented(authorization=authorization, peer=peer, headers={**GOOD, **named})


@pytest.mark.parametrize("peer", ["10.0.0.7", "::ffff:10.0.0.7", "fd00::1"])
def test_the_trusted_proxy_says_who_it_is(peer: str) -> None:
    assert certified(shows(peer), (EDGE,)) is BOT


@pytest.mark.parametrize(
    "presented",
    [
        shows("10.0.1.7"),
        shows("127.0.0.1"),
        shows(""),
        shows("testclient"),
        shows("10.0.0.7, 10.0.0.8"),
        shows(x_proxy_secret=""),
        shows(x_proxy_secret=SECRET[:-1]),
        shows(x_proxy_secret=f"{SECRET},{SECRET}"),
        shows(x_proxy_secret="\ud800"),
        shows(x_client_cert="CN=other"),
        shows(x_client_cert="cn=bot,o=acme"),
        shows(x_client_cert="CN=bot,O=acme "),
        shows(x_client_cert=""),
        shows(authorization="Bearer something-else"),
        Presented(peer="10.0.0.7", headers={"x-client-cert": "CN=bot,O=acme"}),
    ],
    ids=[
        "other-network", "loopback", "no-peer", "not-an-address", "list-of-peers", "no-secret", "nearly", "twice",
        "not-text", "unknown", "case", "spaced", "empty", "with-authorization", "no-secret-header",
    ],
)  # fmt: skip
def test_a_certificate_header_from_anybody_else_is_nobodys(presented: Presented) -> None:
    found = certified(presented, (EDGE,))
    assert isinstance(found, Refused)
    assert SECRET not in found.reason


def test_without_a_certificate_header_other_credentials_are_looked_at() -> None:
    for headers in ({}, {"x-proxy-secret": SECRET}):
        assert certified(Presented(authorization="Bearer x", peer="10.0.0.7", headers=headers), (EDGE,)) is None


def test_a_proxy_whose_secret_cannot_be_read_vouches_for_nobody() -> None:
    mute = TrustedProxy(**{**_fields(EDGE), "secret": ""})
    assert isinstance(certified(shows(x_proxy_secret=""), (mute,)), Refused)


def test_each_proxy_is_known_by_its_own_secret() -> None:
    other = TrustedProxy(**{**_fields(EDGE), "name": "other", "secret": "another-secret", "clients": {}})
    assert certified(shows(), (EDGE, other)) is BOT
    assert isinstance(certified(shows(x_proxy_secret="another-secret"), (EDGE, other)), Refused)


def test_the_secret_is_in_no_repr() -> None:
    assert SECRET not in repr(EDGE)
    assert SECRET not in repr(shows())


def _fields(proxy: TrustedProxy) -> dict[str, Any]:
    return {name: getattr(proxy, name) for name in TrustedProxy.__dataclass_fields__}
