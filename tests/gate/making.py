"""Small values for the gate's tests."""

from __future__ import annotations

from typing import Any

from toolcrib.types import Caller, Decision, Effect, Tool, ToolCall, ToolMetadata, ToolState

REFUND_SCHEMA = {
    "type": "object",
    "properties": {"order_id": {"type": "string"}, "amount": {"type": "number"}},
    "required": ["order_id"],
    "additionalProperties": False,
}
PERMIT = Decision(effect=Effect.PERMIT, policies=("default",))


def tool(tool_id: str = "shop.issue_refund", *, schema: Any = None, digest: str = "sha256:aa", **metadata: Any) -> Tool:
    server_id, _, name = tool_id.partition(".")
    return Tool(
        tool_id=tool_id,
        server_id=server_id,
        name=name,
        definition={"name": name, "inputSchema": REFUND_SCHEMA if schema is None else schema},
        digest=digest,
        state=ToolState.APPROVED,
        metadata=ToolMetadata(**metadata),
    )


def call(
    tool_id: str = "shop.issue_refund", arguments: Any = None, *, offered_digest: str = "", idempotency_key: str = ""
) -> ToolCall:
    given = {"order_id": "A-1"} if arguments is None else arguments
    return ToolCall(tool_id=tool_id, arguments=given, offered_digest=offered_digest, idempotency_key=idempotency_key)


def caller(subject: str = "ann", **fields: Any) -> Caller:
    return Caller(subject=subject, **{"tenant": "acme", **fields})
