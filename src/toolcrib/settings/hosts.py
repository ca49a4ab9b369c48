"""Which hosts are this machine: there, plain http can be read by nobody else.

`is_loopback` is the one answer for what is allowed; `server/serve.py` asks it, too. `seems_local` is for warnings only.
"""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """Whether only this machine can answer under that name: `localhost`, or a loopback address, in brackets or not.

    `*.localhost` is not enough: a resolver may look it up like any other name.
    """
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def seems_local(host: str) -> bool:
    """Whether the name is meant for this machine, as names under `localhost` are."""
    return is_loopback(host) or host.lower().endswith(".localhost")
