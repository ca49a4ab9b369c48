"""Values of the crib -> result objects of `tools/call`. Pure; the only place where our codes become wire text.

Above: `calls.py`. Invariants
1. A result of a server passes as it came: content, structuredContent, isError, `_meta`, unknown fields. Only what
   belongs to one hop is taken off: `resultType`, cache hints, the server's own name in `_meta`. What the gate has to
   say of it stands in `_meta` under a key that no server can write.
2. Missing, quarantined and not permitted are one answer, whose text is written here and nowhere else (I1). A resource
   that isn't the caller's is another: the gate looks at it only after policy let this caller know of the tool. A
   retired tool is the third, for those whom policy would have let know of it.
3. No exception text and no operator's field (`check`, `policies`) goes in.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from toolcrib.catalog.lifecycle import deprecated_in_words, is_deprecated, renamed_in_words
from toolcrib.server.needs import CallOutcome, Offer
from toolcrib.server.surface import Surface, mcp_name, public_definition
from toolcrib.types import ArgumentFault, Code, JsonObject, Tool

NOT_AVAILABLE = "No tool of this name is available to you."
UNAVAILABLE = "This cannot be answered at present. Try again later."
CHECK_ARGUMENTS = "The arguments do not fit this tool's inputSchema. Correct them and call again."

_SERVER_INFO = "io.modelcontextprotocol/serverInfo"
_NOTES = "io.toolcrib/notes"
_OWN_META = (_SERVER_INFO, _NOTES)
_PER_HOP = ("resultType", "ttlMs", "cacheScope")
_OFFER = "io.toolcrib/offer"
_FOR_MODELS = ("outcome", "message", "degraded", "tools", "dropped", "trace_id")
_OF_A_TOOL = ("tool_id", "digest", "note")


def found(offer: Offer) -> dict[str, Any]:
    """The answer of `find_tools`: the offered tools under their public names.

    What a model can act on is the answer; versions and figures, which only cost it tokens, stand in `_meta`.
    """
    whole = dict(offer.to_dict())
    entries = whole.get("tools", ())
    body = {key: whole[key] for key in _FOR_MODELS if whole.get(key) or key in ("outcome", "tools")}
    body["tools"] = [_found_tool(entry) for entry in entries]
    figures = {key: value for key, value in whole.items() if key not in _FOR_MODELS}
    figures["tools"] = [_figures_of(entry) for entry in entries]
    return {**_structured(body), "_meta": {_OFFER: figures}}


def described(names: Sequence[str], surface: Surface) -> dict[str, Any]:
    """The answer of `describe_tools`: for each name, in order, a whole definition or `not_available`."""
    return _structured({"tools": [_described_tool(name, surface) for name in names]})


def called(outcome: CallOutcome, *, typed_output: bool = False) -> dict[str, Any]:
    """The answer of `call_tool` and of a direct call.

    Args:
        typed_output: the tool was called under a definition with an `outputSchema`, so that clients check
            `structuredContent` against it, of a refusal too; the refusal is then given as text alone.
    """
    result = outcome.result
    if result is not None and outcome.code in (Code.OK, Code.TOOL_ERROR):
        if result.raw is not None:
            return _relayed(result.raw, notes=result.notes)
        if outcome.code is Code.OK:
            relayed: dict[str, Any] = {"content": [dict(block) for block in result.content], "isError": False}
            if result.structured is not None:
                relayed["structuredContent"] = result.structured
            return _relayed(relayed, notes=result.notes)
    if outcome.code is Code.NOT_AVAILABLE and not is_told_more(outcome):
        return refusal(Code.NOT_AVAILABLE, NOT_AVAILABLE, trace_id=outcome.trace_id, typed_output=typed_output)
    return refusal(
        outcome.code,
        outcome.message,
        faults=outcome.verdict.faults,
        approval_id=outcome.verdict.approval_id,
        earlier_trace_id=outcome.verdict.earlier_trace,
        trace_id=outcome.trace_id,
        typed_output=typed_output,
    )


def is_told_more(outcome: CallOutcome) -> bool:
    """Whether it is the resource that is not available, or a retired tool that this caller could have known."""
    return outcome.verdict.check in ("resource", "retired")


def refusal(
    code: Code,
    message: str,
    *,
    faults: Sequence[ArgumentFault] = (),
    approval_id: str = "",
    earlier_trace_id: str = "",
    trace_id: str = "",
    typed_output: bool = False,
) -> dict[str, Any]:
    """An error result that a model can act on."""
    body: dict[str, Any] = {"code": code.value, "message": message}
    if faults:
        body["faults"] = [{"path": f.path, "expected": f.expected, "got": f.got} for f in faults]
    if approval_id:
        body["approval_id"] = approval_id
    if earlier_trace_id:
        body["earlier_trace_id"] = earlier_trace_id
    if trace_id:
        body["trace_id"] = trace_id
    answer = {**_structured(body), "isError": True}
    if typed_output:
        del answer["structuredContent"]
    return answer


def legacy_result(result: dict[str, Any]) -> dict[str, Any]:
    """The result as a 2025-11-25 client can take it: `structuredContent` is an object there, or not there at all."""
    if isinstance(result.get("structuredContent", {}), Mapping):
        return result
    kept = {key: value for key, value in result.items() if key != "structuredContent"}
    if not kept.get("content"):
        kept["content"] = [_text(result["structuredContent"])]
    return kept


def _found_tool(entry: JsonObject) -> dict[str, Any]:
    name = mcp_name(entry["tool_id"])
    shown = {key: entry[key] for key in _OF_A_TOOL if key in entry}
    capability = {"capability": entry["capability"]} if entry.get("capability") else {}
    return {"name": name, **shown, **capability, "definition": {**entry["definition"], "name": name}}


def _figures_of(entry: JsonObject) -> dict[str, Any]:
    kept = {key: entry[key] for key in ("rank", "tokens") if key in entry}
    return {"name": mcp_name(entry["tool_id"]), **kept}


def _described_tool(name: str, surface: Surface) -> dict[str, Any]:
    tool = surface.tool(name)
    if tool is None:
        return {"name": name, "code": Code.NOT_AVAILABLE.value, "message": NOT_AVAILABLE}
    return {
        "name": mcp_name(tool.tool_id),
        "code": Code.OK.value,
        "tool_id": tool.tool_id,
        "digest": tool.digest,
        **_said_of(tool, name, surface),
        "definition": public_definition(tool),
    }


def _said_of(tool: Tool, name: str, surface: Surface) -> dict[str, str]:
    """Its operator's word on it: which version, that it is deprecated, that it was asked for by a name it had."""
    said = {"version": tool.metadata.version} if tool.metadata.version else {}
    if is_deprecated(tool):
        heir = surface.tool(tool.metadata.replaced_by)
        said["note"] = deprecated_in_words(mcp_name(heir.tool_id) if heir else "")
    if name not in (tool.tool_id, mcp_name(tool.tool_id)):
        said["message"] = renamed_in_words(name, mcp_name(tool.tool_id))
    return said


def _relayed(raw: JsonObject, *, notes: Sequence[str]) -> dict[str, Any]:
    result = {key: value for key, value in raw.items() if key not in _PER_HOP}
    result.setdefault("content", [])
    meta = result.get("_meta")
    if isinstance(meta, Mapping) and not meta.keys().isdisjoint(_OWN_META):
        result["_meta"] = {key: value for key, value in meta.items() if key not in _OWN_META}
        if not result["_meta"]:
            del result["_meta"]
    if notes:
        kept = result.get("_meta")
        result["_meta"] = {**(kept if isinstance(kept, Mapping) else {}), _NOTES: list(notes)}
    return result


def _structured(body: dict[str, Any]) -> dict[str, Any]:
    """The body twice: structured, and as text for clients that read only that."""
    return {"content": [_text(body)], "structuredContent": body, "isError": False}


def _text(body: Any) -> dict[str, Any]:
    return {"type": "text", "text": json.dumps(body, ensure_ascii=False, separators=(",", ":"))}
