"""Which servers may serve: whether each is still what a reviewer approved, and its list still ours.

Below: `pins.py`. Above: `assembly.py`, which takes the tools of the others out of service.

Invariants
1. A server without a pin is not held back: its tools were reviewed before pins existed, or never.
2. A pinned server of which nothing is known any more is not the approved one (I2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from toolcrib.catalog.pins import Lock, ServerPin
from toolcrib.types import Publication, ServerSpec, ServerStatus

NOT_APPROVED = "provenance"
OTHER_CREDENTIAL = "credential"


def blocked_servers(
    publication: Publication, *, lock: Lock, servers: Sequence[ServerSpec], credentials: Mapping[str, str]
) -> dict[str, tuple[str, str]]:
    """Servers whose tools are out of service: server id -> code and reason.

    Args:
        credentials: server id -> the credential that its list would be taken with now, by name.
    """
    specs = {server.server_id: server for server in servers}
    held: dict[str, tuple[str, str]] = {}
    for status in publication.servers:
        spec = specs.get(status.server_id)
        if spec is None or status.state == "missing":
            continue
        reason = provenance_fault(status, lock.servers.get(status.server_id))
        if reason and spec.on_provenance == "block":
            held[status.server_id] = NOT_APPROVED, reason
        elif spec.list_varies and status.credential != credentials.get(status.server_id, ""):
            held[status.server_id] = OTHER_CREDENTIAL, _other_credential(status, credentials)
    return held


def provenance_fault(status: ServerStatus, pin: ServerPin | None) -> str:
    """How a server differs from what was approved, or "" where it does not, or nothing was pinned."""
    changes = provenance_changes(status, pin)
    return "; ".join(f"{name} was {was or 'nothing'}, is {now or 'nothing'}" for name, was, now in changes)


def provenance_changes(status: ServerStatus, pin: ServerPin | None) -> tuple[tuple[str, str, str], ...]:
    """(field, approved, now) of each field that is another one now, sorted by field."""
    if pin is None or not pin.provenance:
        return ()
    was = pin.provenance
    now = status.provenance.compared if status.provenance else {}
    return tuple(
        (name, _shown(was.get(name, "")), _shown(now.get(name, "")))
        for name in sorted({*was, *now})
        if was.get(name) != now.get(name)
    )


def _shown(value: object) -> str:
    return " ".join(str(one) for one in value) if isinstance(value, list | tuple) else str(value)


def _other_credential(status: ServerStatus, credentials: Mapping[str, str]) -> str:
    now = credentials.get(status.server_id, "") or "none"
    taken = status.credential or "none"
    return f"its list was taken with the credential {taken}, now it is {now}; run `toolcrib refresh`"
