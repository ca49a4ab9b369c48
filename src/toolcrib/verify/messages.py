"""MCP requests as plain JSON-RPC, for both protocol eras. Pure: `mcp_wire.py` and `http_wire.py` carry them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from toolcrib.verify.questions import Questions, mcp_name

MODERN: Final = "2026-07-28"
LEGACY: Final = "2025-11-25"
_CLIENT: Final = {"name": "toolcrib-verify", "version": "1"}
_META: Final = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": _CLIENT,
}
INITIALIZE: Final = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": _CLIENT}


def conversation(era: str, questions: Questions, *, brief: bool) -> Sequence[tuple[str, str, dict[str, Any]]]:
    """(in words, method, params) of each request, in order.

    Args:
        brief: every third question, for a carrier whose answers are made by the same code as another's.
    """
    every = 3 if brief else 1
    asked: list[tuple[str, str, dict[str, Any]]] = [
        ("initialize", "initialize", dict(INITIALIZE)) if era == LEGACY else ("server/discover", "server/discover", {}),
        ("tools/list", "tools/list", {}),
        ("tools/list with a cursor", "tools/list", {"cursor": "next"}),
        ("find_tools with wrong arguments", "tools/call", {"name": "find_tools", "arguments": {"query": 1}}),
        ("tools/call without a name", "tools/call", {"arguments": {}}),
        ("resources/list", "resources/list", {}),
    ]
    asked += [_call("find_tools", {"task": task}) for task in questions.tasks[::every]]
    asked += [_call("find_tools", {"task": task, "limit": 50}) for task in questions.tasks[::-3][:2]]
    public = [mcp_name(name) for name in questions.names if "." in name]
    names = [*questions.names, *public]
    asked += [_call("describe_tools", {"names": names[at : at + 20]}) for at in range(0, len(names), 20)]
    asked += [_call("call_tool", {"name": name, "arguments": {}}) for name in questions.names[::every]]
    asked += [_call("call_tool", {"name": name, "arguments": {}}) for name in public[::6]]
    asked += [_call(name, {}) for name in public[::every]]
    asked += [_call(mcp_name(tool_id), arguments) for tool_id, arguments in questions.calls[::every]]
    return asked


def message(era: str, method: str, params: dict[str, Any], *, number: int) -> dict[str, Any]:
    """One JSON-RPC request, with the envelope of its era."""
    sent = params if era == LEGACY else {**params, "_meta": _META}
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": sent}


def _call(name: str, arguments: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
    return f"{name} {arguments}", "tools/call", {"name": name, "arguments": arguments}
