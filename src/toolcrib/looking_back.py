"""Looking back at a trace: why a caller did not get a tool, and the same select once more (I6, I11).

Floor 4. Above: `crib.py`. Below: `trace/explain.py`, `pipeline.py`. The operator's view only; writes nothing.

Everything that an answer depends on is in its trace: request, caller, channel, catalog, policy, index, options, the
health of tools. Where catalog, policy, index or options are others by now, a replay says that instead.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from toolcrib.errors import ToolcribError, TraceError
from toolcrib.identity.callers import caller_from_record
from toolcrib.pipeline import Pipeline
from toolcrib.store.protocol import Store
from toolcrib.trace.explain import Explanation, explain
from toolcrib.types import SelectRequest, Stage, ToolHealth, Trace

_MAX_LATER = 500
"""Traces that are searched for what became of an offered tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What came of it. `differs`: what is another by now, or the fields of the selection that came out otherwise."""

    trace_id: str
    same: bool
    differs: tuple[str, ...]


def replay(trace: Trace, pipeline: Pipeline) -> Replayed:
    """The select of this trace once more, under what is in force now.

    Raises:
        TraceError: the trace is of no select, or of one that could not be answered.
    """
    views = {record.stage: record.operator_view for record in trace.records}
    wanted = (Stage.REGISTRY, Stage.ELIGIBILITY, Stage.RETRIEVAL, Stage.ROUTING, Stage.SELECTION)
    if trace.kind != "select" or any(stage not in views for stage in wanted):
        raise TraceError(f"trace {trace.trace_id!r} holds no answered select", hint="see `toolcrib trace list`")
    others = _others(views, pipeline)
    if others:
        return Replayed(trace_id=trace.trace_id, same=False, differs=others)
    asked, given = views[Stage.RETRIEVAL], views[Stage.SELECTION]
    known = {tool_id: ToolHealth(**one) for tool_id, one in views[Stage.ROUTING]["health"].items()}
    done = pipeline.select(
        SelectRequest(
            task=asked["task"],
            queries=tuple(asked["queries"]),
            limit=given["limit"],
            token_budget=given["token_budget"],
        ),
        caller=caller_from_record(views[Stage.ELIGIBILITY]["caller"], where=f"trace {trace.trace_id}"),
        channel=trace.channel,
        health=lambda tools: {tool.tool_id: known[tool.tool_id] for tool in tools if tool.tool_id in known},
    )
    again = next(record.operator_view for record in done.records if record.stage is Stage.SELECTION)
    differs = tuple(key for key in again if _plain(again[key]) != _plain(given.get(key)))
    return Replayed(trace_id=trace.trace_id, same=not differs, differs=differs)


def explained(trace: Trace, *, tool_id: str, store: Store, pipeline: Callable[[], Pipeline]) -> Explanation:
    """Why the caller of that trace did or did not get this tool, with the policies behind it where they are the same.

    Args:
        pipeline: gives the one in force; raises ToolcribError when there is none.
    """
    registry = trace.record(Stage.REGISTRY)
    version = registry.operator_view.get("catalog_version", "") if registry else ""
    later = [t for t in store.traces(limit=_MAX_LATER) if t.kind == "call" and t.at >= trace.at]
    mine = [t for t in reversed(later) if (t.subject, t.tenant) == (trace.subject, trace.tenant)]
    found = explain(trace, tool_id=tool_id, catalog=store.catalog(version), later_calls=mine)
    if found.lost_at is not Stage.ELIGIBILITY:
        return found
    rules = _rules_against(trace, tool_id, version, pipeline)
    return replace(found, reason=f"{found.reason} ({', '.join(rules)})") if rules else found


def _rules_against(
    trace: Trace, tool_id: str, catalog_version: str, in_force: Callable[[], Pipeline]
) -> tuple[str, ...]:
    """Which policies denied this tool to the trace's caller, as far as catalog and policy are still the same."""
    record = trace.record(Stage.ELIGIBILITY)
    try:
        pipeline = in_force()
    except ToolcribError:
        return ()
    view = record.operator_view if record else {}
    tool = pipeline.tool(tool_id)
    same = (pipeline.snapshot.version, pipeline.policy.version) == (catalog_version, view.get("policy_version"))
    if tool is None or not same:
        return ()
    caller = caller_from_record(view["caller"], where="(the trace's caller)")
    decision = pipeline.decision(tool, caller=caller, channel=trace.channel)
    return decision.policies or ("no rule permits it",)


def _others(views: Mapping[Stage, Mapping[str, Any]], pipeline: Pipeline) -> tuple[str, ...]:
    """What the answer rested on and is another by now."""
    retrieval = views[Stage.RETRIEVAL]
    pairs = {
        "catalog": (views[Stage.REGISTRY].get("catalog_version"), pipeline.snapshot.version),
        "policy": (views[Stage.ELIGIBILITY].get("policy_version"), pipeline.policy.version),
        "index": (retrieval.get("index_version"), pipeline.index.key if pipeline.index else ""),
        "options": (retrieval.get("options"), pipeline.options.digest),
    }
    return tuple(name for name, (then, now) in pairs.items() if then != now)


def _plain(value: Any) -> Any:
    """As it comes out of the store."""
    return json.loads(json.dumps(value))
