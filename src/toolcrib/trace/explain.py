"""Why did this caller not get tool X? Names the stage that lost it, for any X, from the trace alone.

    a fault (at its own stage) ▸ not in the catalog ▸ quarantined ▸ not permitted ▸ routed away ▸ not retrieved
    ▸ dropped ▸ offered, not chosen ▸ refused at the gate ▸ failed in execution ▸ carried out

The operator's view only: it tells what the caller may not know.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolcrib.trace.records import bit
from toolcrib.types import Stage, Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Where a tool's way ended. `lost_at` is None when it was offered or carried out."""

    trace_id: str
    tool_id: str
    lost_at: Stage | None
    code: str
    reason: str


def explain(
    trace: Trace, *, tool_id: str, catalog: Mapping[str, Any] | None, later_calls: Sequence[Trace] = ()
) -> Explanation:
    """The stage that lost `tool_id` in this request.

    Args:
        catalog: the summary of the catalog version recorded in the trace: {"tools": [[id, digest, state]…],
            "withheld": [[id, code, reason]…]}; None when it is not remembered.
        later_calls: call traces of the same caller, newest last; they tell what became of an offered tool.
    """
    gate = _view(trace, Stage.GATE)
    if gate.get("called_as") == tool_id:
        tool_id = str(gate["tool_id"])  # what it is called by then
    stage, code, reason = _fault(trace) or _registry(tool_id, catalog)
    if not code:
        number = [row[0] for row in (catalog or {})["tools"]].index(tool_id)
        stage, code, reason = (_call if trace.kind == "call" else _select)(trace, tool_id, number, later_calls)
    return Explanation(trace_id=trace.trace_id, tool_id=tool_id, lost_at=stage, code=code, reason=reason)


_FAULTS = {"UnknownCallerError": "unknown_caller"}
_Step = tuple[Stage | None, str, str]


def _fault(trace: Trace) -> _Step | None:
    """What could not be done, before any tool was looked at; it lost them all."""
    for record in trace.records:
        if kind := record.operator_view.get("fault"):
            code = _FAULTS.get(str(kind)) or (
                "policy_error" if record.stage is Stage.ELIGIBILITY else _snake_case(kind)
            )
            return record.stage, code, f"nothing could be decided: {record.operator_view.get('what') or kind}"
    return None


def _snake_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _registry(tool_id: str, catalog: Mapping[str, Any] | None) -> _Step:
    if catalog is None:
        return Stage.REGISTRY, "no_catalog", "there was no valid catalog when this was asked"
    if any(row[0] == tool_id for row in catalog["tools"]):
        return None, "", ""
    for held_id, code, reason in catalog["withheld"]:
        if held_id == tool_id:
            return Stage.REGISTRY, code, reason
    return Stage.REGISTRY, "not_in_catalog", "no server listed a tool with this id in that catalog version"


def _select(trace: Trace, tool_id: str, number: int, later_calls: Sequence[Trace]) -> _Step:
    return (
        _eligibility(trace, number)
        or _routing(trace, number)
        or _selection(trace, tool_id)
        or _retrieval(trace, tool_id)
        or _after_offer(trace, tool_id, number, later_calls)
    )


def _view(trace: Trace, stage: Stage) -> Mapping[str, Any]:
    record = trace.record(stage)
    return record.operator_view if record else {}


def _eligibility(trace: Trace, number: int) -> _Step | None:
    view = _view(trace, Stage.ELIGIBILITY)
    if not view:
        return Stage.ELIGIBILITY, "no_policy", "policy could not be evaluated, so nothing was permitted"
    if bit(view["permitted"], number):
        return None
    if bit(view["disclosed"], number):
        return Stage.ELIGIBILITY, "not_callable", "policy lets this caller know of it, but not call it"
    if view["errors"]:
        return Stage.ELIGIBILITY, "policy_error", f"policy failed for some tools, which denies: {view['errors'][0]}"
    return Stage.ELIGIBILITY, "not_permitted", "policy does not let this caller know of it"


def _routing(trace: Trace, number: int) -> _Step | None:
    for drop in _view(trace, Stage.ROUTING).get("drops", ()):
        if bit(drop["tools"], number):
            return Stage.ROUTING, drop["code"], drop["reason"]
    return None


def _selection(trace: Trace, tool_id: str) -> _Step | None:
    view = _view(trace, Stage.SELECTION)
    for dropped in view.get("dropped", ()):
        if dropped["tool_id"] == tool_id:
            return Stage.SELECTION, dropped["reason"], f"a candidate, dropped for its {dropped['reason']}"
    return None


def _retrieval(trace: Trace, tool_id: str) -> _Step | None:
    offered = [row["tool_id"] for row in _view(trace, Stage.SELECTION).get("tools", ())]
    if tool_id in offered:
        return None
    hits = _view(trace, Stage.RETRIEVAL).get("hits", ())
    for rank, hit in enumerate(hits, start=1):
        if hit["tool_id"] == tool_id:
            outcome = _view(trace, Stage.SELECTION).get("outcome", "")
            if not offered:
                return (
                    Stage.SELECTION,
                    str(outcome),
                    f"ranked {rank}, but the outcome was {outcome}: nothing was offered",
                )
            return Stage.SELECTION, "limit", f"ranked {rank}, behind the {len(offered)} tools that were offered"
    return Stage.RETRIEVAL, "not_retrieved", f"permitted, but not among the {len(hits)} best matches for the task"


def _after_offer(trace: Trace, tool_id: str, number: int, later_calls: Sequence[Trace]) -> _Step:
    version = _view(trace, Stage.REGISTRY).get("catalog_version")
    for call in reversed(later_calls):
        if _view(call, Stage.GATE).get("tool_id") == tool_id:
            # A tool number means the same tool in the same catalog version only.
            same = _view(call, Stage.REGISTRY).get("catalog_version") == version
            return _call(call, tool_id, number if same else None, ())
    return None, "not_chosen", "offered; no call to it is recorded since"


def _call(trace: Trace, tool_id: str, number: int | None, _later: Sequence[Trace]) -> _Step:
    gate = _view(trace, Stage.GATE)
    if gate.get("tool_id") != tool_id:
        return None, "not_this_call", f"this call was to {gate.get('tool_id', 'another tool')}"
    if gate.get("check") in ("known", "reach") and (step := _out_of_reach(trace, number, str(gate["check"]))):
        return step
    if gate.get("code") != "ok":
        return Stage.GATE, str(gate.get("code")), _refusal(gate)
    done = _view(trace, Stage.EXECUTION)
    if done.get("code") != "ok":
        words = done.get("message") or "the tool's own words are not recorded"
        return Stage.EXECUTION, str(done.get("code")), f"the call was let through and failed: {words}"
    return None, "carried_out", f"the call was carried out (trace {trace.trace_id})"


def _refusal(gate: Mapping[str, Any]) -> str:
    """What the caller was told, and what it was not told of the resources that it named."""
    told = f"refused at the check {gate.get('check')!r}: {gate.get('message')}"
    if gate.get("check") != "resource":
        return told
    rules = gate.get("policies") if gate.get("effect") == "forbid" else ()
    return "; ".join([told, *gate.get("resources", ()), *([f"forbidden by {', '.join(rules)}"] if rules else [])])


def _out_of_reach(trace: Trace, number: int | None, check: str) -> _Step | None:
    """Why this caller could not reach the tool at all: the gate only said so, an earlier stage decided it."""
    view = _view(trace, Stage.ELIGIBILITY)
    if number is None and check == "known":
        return (
            Stage.REGISTRY,
            "not_in_service",
            "not in service any more when it was called, in another catalog version",
        )
    if number is None:
        return Stage.ELIGIBILITY, "out_of_reach", "out of this caller's reach when it was called"
    if step := _eligibility(trace, number):
        return step
    if "reach" in view and not bit(view["reach"], number):
        return Stage.ROUTING, "out_of_reach", "permitted by policy, but ruled out by routing's hard constraints"
    return None
