"""Approval of one exact call: what it is bound to, and the request that waits for somebody to decide.

    pending ──▶ granted ──▶ used          each only before `expires_at`; the store makes each step once
        └─────▶ denied

Above: `dispatch.py` writes the request into the store and has a granted one used up there before the call leaves;
`approvals.py` says who may decide.

Invariants
1. The key covers who calls (and for whom), the tool, its definition and every argument; another value is another key.
2. The approver is shown all of what is approved (`preview.py`).
3. What policy reads of a caller beyond its identity (roles, scopes) does not bind: the call is judged again anyway.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from toolcrib.gate.canonical import canonical
from toolcrib.gate.offers import holder_key
from toolcrib.gate.preview import preview
from toolcrib.gate.stamps import stamp
from toolcrib.types import ApprovalRequest, Caller, Channel, JsonObject, Tool


def approval_key(caller: Caller, tool: Tool, arguments: JsonObject) -> str:
    """SHA-256 (hex) of everything an approval is bound to.

    Raises:
        ValueError: the arguments are not JSON.
    """
    bound = json.dumps([*caller.identity, tool.tool_id, tool.digest]).encode()
    return hashlib.sha256(bound + b"\n" + canonical(arguments)).hexdigest()


def approval_request(
    caller: Caller,
    tool: Tool,
    arguments: JsonObject,
    *,
    approval_id: str,
    now: str,
    ttl_s: float,
    channel: Channel | None = None,
    policies: Sequence[str] = (),
) -> ApprovalRequest:
    """A pending request to let exactly this call run once.

    Args:
        now: ISO 8601 with an offset. ttl_s: seconds until the request, granted or not, is worth nothing.
        channel: where the call came in. policies: the rules that ask for the approval.
    """
    return ApprovalRequest(
        approval_id=approval_id,
        key=approval_key(caller, tool, arguments),
        subject=caller.subject,
        tenant=caller.tenant,
        tool_id=tool.tool_id,
        digest=tool.digest,
        arguments_preview=preview(arguments),
        state="pending",
        created_at=stamp(now),
        expires_at=stamp(now, plus_s=ttl_s),
        holder=holder_key(caller),
        on_behalf_of=caller.on_behalf_of or (caller.acting_for.subject if caller.acting_for else ""),
        channel=channel.value if channel else "",
        policies=tuple(policies),
    )
