"""`tools/call`: the gateway's own three tools, and permitted tools by their names.

Above: `mcp_gateway.py`, which wraps the answer for the client's era. Below: `answers.py`, `approving.py`, the crib.

    find_tools                     ─▶ crib.select
    describe_tools                 ─▶ surface, crib.note_offered
    call_tool, a tool's own name   ─▶ crib.call ─▶ may the caller approve it itself? ─▶ ask, decide, crib.call again

Invariants
1. Every call goes to the crib, also one of a name that is not there: it leaves a trace (I6).
2. Missing, hidden and withheld are one answer (I1). Scopes are named for a tool that the crib discloses, and only where
   a transport can say so (HTTP); see `challenge.py`.
3. A call is asked about once at most: if it still waits after a yes, that is the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
import mcp_types as wire
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolcrib.connectors.base import trace_meta
from toolcrib.gate.arguments import check_arguments
from toolcrib.server import answers
from toolcrib.server.approving import Approving, Reply, can_be_asked
from toolcrib.server.challenge import Challenge, challenge_of
from toolcrib.server.meta_tools import CALL, CALL_SCHEMA, DESCRIBE, DESCRIBE_SCHEMA, FIND, FIND_SCHEMA, MAX_KEY_CHARS
from toolcrib.server.needs import CallOutcome, GatewayCrib
from toolcrib.server.surface import Surface
from toolcrib.types import ApprovalRequest, Caller, Channel, Code, JsonObject

UNKNOWN_TOOL = "Unknown tool"
IDEMPOTENCY_KEY = "io.toolcrib/idempotencyKey"
DECLINED = "You declined this call. Nothing was done."
STILL_WAITS = "This call waits for an approval. Nothing was done."
NOT_WAITING = "This approval does not wait for you any more. Nothing was done. Call again to ask anew."

_MAX_NAME_CHARS = 512
_SCHEMAS: Mapping[str, JsonObject] = {FIND: FIND_SCHEMA, DESCRIBE: DESCRIBE_SCHEMA, CALL: CALL_SCHEMA}

Ctx = ServerRequestContext[Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Proposed:
    """One call as the client means it. `name`: as it was written. `direct`: by the tool's own name."""

    name: str
    arguments: JsonObject
    direct: bool
    offered_digest: str = ""
    idempotency_key: str = ""


class Calls:
    """The calls of one gateway."""

    def __init__(self, crib: GatewayCrib, *, channel: Channel, approving: Approving) -> None:
        self._crib = crib
        self._channel = channel
        self._approving = approving

    async def answer(self, ctx: Ctx, params: JsonObject, *, caller: Caller, surface: Surface) -> dict[str, Any]:
        """The result object, or one that asks for input; without what belongs to an era.

        Raises:
            MCPError: a direct call of a name that is not there.
        """
        name, arguments = params["name"], params.get("arguments") or {}
        if name not in surface.meta_names:
            proposed = _Proposed(name=name, arguments=arguments, direct=True)
            return await self._called(ctx, proposed, caller=caller, surface=surface)
        faults = check_arguments(_SCHEMAS[name], arguments)
        if faults:
            return answers.refusal(Code.INVALID_ARGUMENTS, answers.CHECK_ARGUMENTS, faults=faults)
        if name == DESCRIBE:
            return self._described(arguments["names"], caller=caller, surface=surface)
        if name == FIND:
            return await self._found(arguments, caller=caller)
        proposed = _Proposed(
            name=arguments["name"],
            arguments=arguments.get("arguments", {}),
            direct=False,
            offered_digest=arguments.get("digest", ""),
            idempotency_key=arguments.get("idempotency_key", ""),
        )
        return await self._called(ctx, proposed, caller=caller, surface=surface)

    async def _found(self, arguments: JsonObject, *, caller: Caller) -> dict[str, Any]:
        select = partial(
            self._crib.select,
            arguments["task"],
            caller=caller,
            channel=self._channel,
            queries=tuple(arguments.get("queries", ())),
            limit=arguments.get("limit"),
            token_budget=arguments.get("token_budget"),
        )
        return answers.found(await anyio.to_thread.run_sync(select))  # a long task must not hold up the others

    def _described(self, names: list[str], *, caller: Caller, surface: Surface) -> dict[str, Any]:
        shown = {tool.tool_id: tool for name in names if (tool := surface.tool(name)) is not None}
        if shown:
            self._crib.note_offered(tuple(shown.values()), caller=caller)
        return answers.described(names, surface)

    async def _called(self, ctx: Ctx, proposed: _Proposed, *, caller: Caller, surface: Surface) -> dict[str, Any]:
        tool = surface.tool(proposed.name)
        typed_output = proposed.direct and tool is not None and "outputSchema" in tool.definition
        idempotency_key, challenge = _idempotency_key(ctx) or proposed.idempotency_key, _open_challenge(ctx)
        if tool is not None and challenge is not None:
            challenge.settle()  # whatever becomes of it, it isn't refused for scopes: an event stream may begin

        async def run() -> CallOutcome:
            return await self._crib.call(
                surface.asked_id(proposed.name) or proposed.name[:_MAX_NAME_CHARS],
                proposed.arguments,
                caller=caller,
                channel=self._channel,
                offered_digest=proposed.offered_digest,
                meta=trace_meta(_meta(ctx)),
                idempotency_key=idempotency_key,
            )

        reply = self._approving.reply(ctx)
        if reply is None:
            outcome = await run()
            request = self._to_ask(ctx, outcome, caller=caller)
            if request is not None and ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
                return self._approving.question(request)
            if request is not None:
                reply = await self._approving.ask(ctx, request)
        if reply is not None:
            refused = await self._decide(reply, caller=caller)
            if refused:
                return answers.refusal(
                    Code.NEEDS_APPROVAL, refused, approval_id=reply.approval_id, typed_output=typed_output
                )
            outcome = await run()
        if outcome.code is Code.NOT_AVAILABLE and not answers.is_told_more(outcome):
            if challenge is not None:
                wanted = self._crib.missing_scopes(proposed.name, caller=caller, channel=self._channel)
                challenge.settle(wanted)
            if proposed.direct:
                raise MCPError(code=wire.INVALID_PARAMS, message=UNKNOWN_TOOL)
        return answers.called(outcome, typed_output=typed_output)

    def _to_ask(self, ctx: Ctx, outcome: CallOutcome, *, caller: Caller) -> ApprovalRequest | None:
        """The request that the caller may be asked to decide, or None."""
        approval_id = outcome.verdict.approval_id
        if outcome.code is not Code.NEEDS_APPROVAL or not approval_id or not can_be_asked(ctx):
            return None
        return self._crib.own_approval(approval_id, caller=caller, channel=self._channel)

    async def _decide(self, reply: Reply, *, caller: Caller) -> str:
        """Why the call does not run now, or "" when it was granted."""
        if reply.granted is None:
            return STILL_WAITS
        done = await self._crib.answer_approval(
            reply.approval_id, granted=reply.granted, caller=caller, channel=self._channel
        )
        if not done:
            return NOT_WAITING
        return "" if reply.granted else DECLINED


def _open_challenge(ctx: Ctx) -> Challenge | None:
    return challenge_of(ctx.request.scope) if ctx.request is not None else None


def _meta(ctx: Ctx) -> JsonObject:
    meta = (ctx.params or {}).get("_meta")
    return meta if isinstance(meta, Mapping) else {}


def _idempotency_key(ctx: Ctx) -> str:
    """The caller's word on whether this is the same write as one before.

    Raises:
        MCPError: it is there, and is no text of 1 to 200 characters.
    """
    meta = _meta(ctx)
    if IDEMPOTENCY_KEY not in meta:
        return ""
    key = meta[IDEMPOTENCY_KEY]
    if not isinstance(key, str) or not 1 <= len(key) <= MAX_KEY_CHARS:
        message = f"{IDEMPOTENCY_KEY} must be a text of 1 to {MAX_KEY_CHARS} characters"
        raise MCPError(code=wire.INVALID_PARAMS, message=message)
    return key
