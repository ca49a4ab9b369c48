"""Approval of one exact call: what it is bound to, and the request that waits for somebody to decide.

    pending ──▶ granted ──▶ used          each only before `expires_at`; the store makes each step once
        └─────▶ denied

Above: `crib.py` writes the request into the store and has a granted one used up there before the call leaves.

Invariants
1. The key covers who calls (and for whom), the tool, its definition and every argument; another value is another key.
2. The approver is shown all of what is approved (`preview.py`).
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import rfc8785

from toolcrib.gate.preview import preview
from toolcrib.types import ApprovalRequest, Caller, JsonObject, Tool


def approval_key(caller: Caller, tool: Tool, arguments: JsonObject) -> str:
    """SHA-256 (hex) of everything an approval is bound to.

    Raises:
        ValueError: the arguments are not JSON.
    """
    who = [caller.subject, caller.kind.value, caller.tenant, caller.on_behalf_of]
    bound = rfc8785.dumps([*who, tool.tool_id, tool.digest])
    return hashlib.sha256(bound + b"\n" + _canonical(arguments)).hexdigest()


def approval_request(
    caller: Caller, tool: Tool, arguments: JsonObject, *, approval_id: str, now: str, ttl_s: float
) -> ApprovalRequest:
    """A pending request to let exactly this call run once.

    Args:
        now: ISO 8601 with an offset. ttl_s: seconds until the request, granted or not, is worth nothing.
    """
    created = datetime.fromisoformat(now).astimezone(UTC)
    return ApprovalRequest(
        approval_id=approval_id,
        key=approval_key(caller, tool, arguments),
        subject=caller.subject,
        tenant=caller.tenant,
        tool_id=tool.tool_id,
        digest=tool.digest,
        arguments_preview=preview(arguments),
        state="pending",
        created_at=_stamp(created),
        expires_at=_stamp(created + timedelta(seconds=ttl_s)),
    )


def _stamp(at: datetime) -> str:
    """One width and one offset, so that stamps sort as text; stores compare them so."""
    return at.isoformat(timespec="microseconds")


def _canonical(arguments: Any) -> bytes:
    """RFC 8785; whole numbers past 2^53, which it has no form for, get sorted JSON with a mark of its own."""
    try:
        return b"jcs " + rfc8785.dumps(arguments)
    except rfc8785.IntegerDomainError:
        return b"json " + json.dumps(arguments, sort_keys=True, allow_nan=False).encode()
