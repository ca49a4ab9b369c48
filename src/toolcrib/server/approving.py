"""A caller is asked whether a call of its own may run: MCP elicitation, in both eras. What a yes is worth, policy says.

Above: `calls.py`. Below: the crib, which knows the request that waits and applies the rules for approvers.

    2026-07-28    result `input_required` + sealed `requestState` ─▶ the same `tools/call` with `inputResponses`
    2025-11-25    `elicitation/create` on the stream of the call, which waits for the answer

Invariants
1. Nobody is asked who could not decide: the crib gives a question only where configuration and policy let the caller
   approve what it asked for itself. An answer is judged by the same rules once more.
2. `requestState` comes back from whoever likes to send it. It is sealed (AES-256-GCM, a key of this process, so it does
   not outlive a restart nor reach another replica) and bound to principal, tool, arguments and time. What does not
   verify ends the request; it never counts as "not asked yet".
3. An answer without a state of ours is no answer. A state names one request, which the store lets be decided once, so
   that a replayed one finds nothing waiting.
4. The message shows the tool and every argument; characters that could hide others are written out.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import anyio
from mcp import MCPError
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from toolcrib.server.callers import CallerSource, principal_text
from toolcrib.server.surface import mcp_name
from toolcrib.types import ApprovalRequest, Channel

_STATE_TTL_S = 900.0
_ASK_WITHIN_S = 300.0
_QUESTION = "approval"
_FIELD = "approve"
_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        _FIELD: {
            "type": "boolean",
            "title": "Let this call run",
            "description": "Yes lets exactly this call run, once.",
        }
    },
    "required": [_FIELD],
}

_log = logging.getLogger(__name__)

Ctx = ServerRequestContext[Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the person said. `granted` None: nothing, the question was put away; the request goes on waiting."""

    approval_id: str
    granted: bool | None


class Approving:
    """Questions and answers of one gateway. Two gateways never take each other's states."""

    def __init__(self, *, channel: Channel, callers: CallerSource) -> None:
        self._callers = callers
        security = RequestStateSecurity(keys=[os.urandom(32)], ttl=_STATE_TTL_S, bind_principal=self._principal)
        self._boundary = RequestStateBoundary(security, default_audience=f"toolcrib/{channel.value}")

    async def sealed(self, ctx: Ctx, call_next: CallNext) -> HandlerResult:
        """Run `call_next` with the state of the request verified and opened, and seal the one it answers with.

        Raises:
            MCPError: -32602, the state is not ours, not this caller's, not of this call, or too old.
        """
        modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        return await (self._boundary(ctx, call_next) if modern else call_next(ctx))

    def reply(self, ctx: Ctx) -> Reply | None:
        """The answer that this request brings back, or None. Only behind `sealed`."""
        params = ctx.params or {}
        state = params.get("requestState")
        if state is None or ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return None
        response = (params.get("inputResponses") or {}).get(_QUESTION)
        if not isinstance(response, Mapping):
            return None
        return Reply(approval_id=json.loads(state)["approval_id"], granted=_granted(response))

    def question(self, request: ApprovalRequest) -> dict[str, Any]:
        """The result that asks a client of the newer era."""
        params = {"mode": "form", "message": _message(request), "requestedSchema": _SCHEMA}
        return {
            "resultType": "input_required",
            "inputRequests": {_QUESTION: {"method": "elicitation/create", "params": params}},
            "requestState": json.dumps({"approval_id": request.approval_id}),
        }

    async def ask(self, ctx: Ctx, request: ApprovalRequest) -> Reply:
        """Ask a client of the older era and wait for the answer; no answer is the same as "put away"."""
        granted = None
        with anyio.move_on_after(_ASK_WITHIN_S):
            try:
                answer = await ctx.session.elicit_form(_message(request), _SCHEMA, related_request_id=ctx.request_id)
                granted = _granted({"action": answer.action, "content": answer.content})
            except (MCPError, ValidationError) as fault:
                _log.warning("a client that announced elicitation did not answer: %s", type(fault).__name__)
        return Reply(approval_id=request.approval_id, granted=granted)

    def _principal(self, ctx: Ctx) -> str:
        return principal_text(self._callers.of(ctx))


def can_be_asked(ctx: Ctx) -> bool:
    """Whether the client says that it can show a form; an elicitation capability without modes means forms."""
    declared = ctx.session.client_capabilities
    elicitation = declared.elicitation if declared is not None else None
    if elicitation is None or (elicitation.form is None and elicitation.url is not None):
        return False
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS or ctx.session.can_send_request


def _granted(response: Mapping[str, Any]) -> bool | None:
    """True and False are decisions; anything that is neither counts as none, never as a yes."""
    match response.get("action"):
        case "accept":
            content = response.get("content")
            said = content.get(_FIELD) if isinstance(content, Mapping) else None
            return said if isinstance(said, bool) else None
        case "decline":
            return False
    return None


def _message(request: ApprovalRequest) -> str:
    whom = f"{request.subject} for {request.on_behalf_of}" if request.on_behalf_of else request.subject
    lines = (
        "A tool call waits for your approval. It runs once if you say yes, and not otherwise.",
        f"Tool: {mcp_name(request.tool_id)}",
        f"Arguments: {request.arguments_preview}",
        f"Called by: {whom}",
    )
    return "\n".join(_plain(line) for line in lines)


def _plain(text: str) -> str:
    """Line ends, directions of writing and invisible characters as escapes: they could show another call."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
