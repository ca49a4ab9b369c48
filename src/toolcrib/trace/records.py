"""A record per stage: what each stage writes down, for the operator and, where the caller may see it, for the caller.

Above: `pipeline.py` and `crib.py` collect them. Below: `store/` keeps them.

Invariants
1. `caller_view` holds only what the caller's own answer already told (I1).
2. Sets of tools are bitmaps over tool numbers of the recorded catalog version, so that any tool can be explained later.
3. Arguments are never written down unless the operator asked for it, and then masked by whoever hands them over. A
   tool's own words are not either: its error texts quote arguments.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from operator import attrgetter
from typing import Any

import numpy as np

from toolcrib.types import (
    BoolArray,
    Caller,
    CatalogSnapshot,
    Decision,
    DroppedTool,
    Eligibility,
    Hit,
    JsonObject,
    Ranking,
    RouteMove,
    RoutingRules,
    Selection,
    SelectRequest,
    Stage,
    StageRecord,
    Tool,
    ToolCall,
    ToolHealth,
    ToolResult,
    Verdict,
)

_DROPPED_FIELDS = tuple(field.name for field in fields(DroppedTool))
_HIT_FIELDS = tuple(field.name for field in fields(Hit) if field.name != "tool_idx")
_HIT_VALUES = attrgetter(*_HIT_FIELDS)
_MOVE_FIELDS = tuple(field.name for field in fields(RouteMove))


def registry_record(snapshot: CatalogSnapshot, *, caller_version: str) -> StageRecord:
    stale = {s.server_id: s.state for s in snapshot.servers if s.state != "fresh"}
    return StageRecord(
        stage=Stage.REGISTRY,
        operator_view={
            "catalog_version": snapshot.version,
            "n_tools": len(snapshot.tools),
            "n_withheld": len(snapshot.withheld),
            "not_fresh": stale,
        },
        caller_view={"catalog_version": caller_version},
    )


def eligibility_record(
    eligibility: Eligibility, *, caller: Caller, caller_version: str, reach: BoolArray, policy_fault: str = ""
) -> StageRecord:
    """What this caller may know of.

    Args:
        policy_fault: why the policy in force is not the one on disk, or "".
    """
    return StageRecord(
        stage=Stage.ELIGIBILITY,
        operator_view={
            "policy_version": eligibility.policy_version,
            "caller": caller_fields(caller),
            "n_permitted": int(eligibility.permitted.sum()),
            "permitted": pack_bits(eligibility.permitted),
            "disclosed": pack_bits(eligibility.disclosed),
            "reach": pack_bits(reach),
            "errors": list(eligibility.errors),
            "policy_fault": policy_fault,
        },
        caller_view={"policy_version": caller_version},
    )


def seen_by(record: StageRecord, caller: Caller) -> StageRecord:
    """A record of eligibility, made for another caller of the same view."""
    return replace(record, operator_view={**record.operator_view, "caller": caller_fields(caller)})


def retrieval_record(
    ranking: Ranking,
    *,
    request: SelectRequest,
    index_version: str,
    caller_version: str,
    options: str = "",
    learned: str = "",
) -> StageRecord:
    """What was asked and found.

    Args:
        options: digest of all that the operator decided about search and selection.
        learned: digest of what was learned from use, or "".
    """
    return StageRecord(
        stage=Stage.RETRIEVAL,
        operator_view={
            "index_version": index_version,
            "options": options,
            "learned": learned,
            "task": request.task,
            "queries": list(request.queries),
            "capabilities": list(ranking.capabilities),
            "confidence": ranking.confidence,
            "degraded": ranking.degraded,
            "empty_query": ranking.empty_query,
            "hits": [_hit(hit) for hit in ranking.hits],
        },
        caller_view={"index_version": caller_version, "confidence": ranking.confidence},
    )


def _hit(hit: Hit) -> dict[str, Any]:
    return dict(zip(_HIT_FIELDS, _HIT_VALUES(hit), strict=True))


def routing_record(
    moves: Sequence[RouteMove],
    *,
    drops: Sequence[tuple[str, str, BoolArray]] = (),
    rules: RoutingRules | None = None,
    health: Mapping[str, ToolHealth] | None = None,
) -> StageRecord:
    """What was ruled out and what was moved, each with its reason, and all that was looked at for it.

    Args:
        moves: of hits in the ranking.
        drops: (code, reason, bool of shape (n_tools,)): the tools that each hard constraint took out.
        rules, health: those in force, so that the request can be made again.
    """
    record = StageRecord(
        stage=Stage.ROUTING,
        operator_view={
            "moves": [],
            "drops": [
                {"code": code, "reason": reason, "n_tools": int(bits.sum()), "tools": pack_bits(bits)}
                for code, reason, bits in drops
            ],
            "rules": asdict(rules) if rules else {},
            "health": {},
        },
        caller_view={"moves": []},
    )
    return moved(record, moves, health=health or {})


def moved(record: StageRecord, moves: Sequence[RouteMove], *, health: Mapping[str, ToolHealth]) -> StageRecord:
    """A record of routing with what was moved for one request, and why."""
    shown = [{name: getattr(move, name) for name in _MOVE_FIELDS} for move in moves]
    known = {tool_id: asdict(one) for tool_id, one in health.items()}
    view = {**record.operator_view, "moves": shown, "health": known}
    return StageRecord(stage=Stage.ROUTING, operator_view=view, caller_view={"moves": shown})


def selection_record(selection: Selection) -> StageRecord:
    view = {
        "outcome": selection.outcome,
        "message": selection.message,
        "degraded": selection.degraded,
        "tools": [
            {
                "tool_id": s.tool.tool_id,
                "digest": s.tool.digest,
                "rank": s.rank,
                "score": s.score,
                "capability": s.capability,
                "tokens": s.tokens,
            }
            for s in selection.tools
        ],
        "dropped": [{name: getattr(d, name) for name in _DROPPED_FIELDS} for d in selection.dropped],
        "tokens": selection.tokens,
        "token_budget": selection.token_budget,
        "limit": selection.limit,
        "confidence": selection.confidence,
    }
    return StageRecord(stage=Stage.SELECTION, operator_view=view, caller_view=view)


def gate_record(
    call: ToolCall,
    verdict: Verdict,
    *,
    tool: Tool | None,
    decision: Decision | None,
    resources: Sequence[str] = (),
    arguments: JsonObject | None = None,
    called_as: str = "",
) -> StageRecord:
    """What was asked and answered at the gate.

    Args:
        resources: what the arguments name, a line each: whose it is, or why nobody knows. The operator's view only.
        arguments: with secrets masked, where the operator wants them written down; else None.
        called_as: the name that the tool had before, where it was called by that.
    """
    told: dict[str, Any] = {"tool_id": call.tool_id, "code": verdict.code, "message": verdict.message}
    if called_as:
        told["called_as"] = called_as
    if verdict.earlier_trace:
        told["earlier_trace"] = verdict.earlier_trace
    operator: dict[str, Any] = {
        **told,
        "check": verdict.check,
        "effect": decision.effect if decision else "",
        "policies": list(decision.policies) if decision else [],
        "policy_errors": list(decision.errors) if decision else [],
        "resources": list(resources),
        "faults": [{"path": fault.path, "expected": fault.expected} for fault in verdict.faults],
        "offered_digest": call.offered_digest,
        "digest": tool.digest if tool else "",
        "argument_names": sorted(map(str, call.arguments)) if isinstance(call.arguments, Mapping) else [],
    }
    return StageRecord(
        stage=Stage.GATE,
        operator_view=operator if arguments is None else {**operator, "arguments": arguments},
        caller_view=told,
    )


def cancelled_record(call: ToolCall) -> StageRecord:
    """For a call that was given up before its request left."""
    view = {"tool_id": call.tool_id, "code": "cancelled", "message": "given up before anything was sent"}
    return StageRecord(stage=Stage.GATE, operator_view={**view, "check": "cancelled"}, caller_view=view)


def sent_record(server_id: str) -> StageRecord:
    """Written before a request leaves; stays in the trace of a call that was cut off before its answer came."""
    view = {"server_id": server_id, "code": "sent", "message": "no answer is on record; it may have taken effect"}
    return StageRecord(stage=Stage.EXECUTION, operator_view=view)


def execution_record(
    result: ToolResult,
    *,
    server_id: str,
    duration_ms: float,
    record_text: bool = False,
    attempts: int = 1,
    check: str = "",
) -> StageRecord:
    """What became of a call that was let through.

    Args:
        record_text: write the message down too, where the operator wants arguments written down.
        attempts: how often the request left; 2 for a read that failed on its way and was sent again.
        check: why nothing was sent: `circuit`, `session`, `credential`.
    """
    return StageRecord(
        stage=Stage.EXECUTION,
        operator_view={
            "server_id": server_id,
            "code": result.code,
            "message": result.message if record_text else "",
            "n_message_chars": len(result.message),
            "reached_server": result.reached_server,
            "n_content": len(result.content),
            "has_structured": result.structured is not None,
            "notes": list(result.notes),
            "attempts": attempts,
            "check": check,
            "duration_ms": round(duration_ms, 1),
        },
        caller_view={"code": result.code},
    )


def caller_fields(caller: Caller) -> dict[str, Any]:
    """Everything of a caller that policy can read, sets sorted, and whom it acts for with the same of that caller.

    Holds no secret: tokens never get into a Caller. What it came in with is named by kind and id alone.
    """
    told: dict[str, Any] = {}
    for one in fields(caller):
        value = getattr(caller, one.name)
        if one.name == "acting_for":
            told |= {"acting_for": caller_fields(value)} if value is not None else {}
        elif one.name == "credential":
            told |= {"credential": {"kind": value.kind, "id": value.key_id or value.issuer}} if value else {}
        else:
            told[one.name] = sorted(value) if isinstance(value, frozenset) else value
    return told


def pack_bits(bits: BoolArray) -> str:
    """A bitmap as base64 text, tool number 0 first."""
    return base64.b64encode(np.packbits(bits).tobytes()).decode()


def set_bits(text: str) -> list[int]:
    """The numbers set in `pack_bits` text, ascending. Raises ValueError for other text."""
    packed = np.frombuffer(base64.b64decode(text, validate=True), dtype=np.uint8)
    return [int(number) for number in np.flatnonzero(np.unpackbits(packed))]


def bit(text: str, number: int) -> bool:
    """One bit of `pack_bits` text."""
    packed = base64.b64decode(text)
    return number // 8 < len(packed) and bool(packed[number // 8] >> (7 - number % 8) & 1)
