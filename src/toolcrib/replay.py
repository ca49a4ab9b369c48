"""A select made again from its trace: the same answer, or why it cannot be the same (I6, I11).

Floor 4. Above: `crib.py`. Below: `pipeline.py`. Asks nobody and writes nothing.

Everything that an answer depends on is in its trace: request, caller, channel, catalog, policy, index, options, the
health of tools. Where catalog, policy, index or options are others by now, that is the answer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolcrib.errors import TraceError
from toolcrib.identity.callers import caller_from_record
from toolcrib.pipeline import Pipeline
from toolcrib.types import SelectRequest, Stage, ToolHealth, Trace


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
