"""Cases from traces: what was really asked, by whom, and what was called afterwards.

Above: `cli/evals.py`. Below: the store's traces.

    select ─▶ offered: a, b, c     the same caller's calls after it, until its next select: b ran
           ─▶ case: task, caller, expect [[b]]

Invariants
1. Only a tool that was offered, let through and answered counts as expected. Where nothing was called, nothing is known
   of what would have been right, and there is no case, but for an honest "nothing here does that".
2. A caller's fields are those that policy reads; a trace holds no credential, and its mark of one is left out.
3. A task is written as it was asked. It may hold what is nobody's business: whoever imports looks before sharing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from toolcrib.evals.cases import Case
from toolcrib.trace.answered import answered_call, soon_after
from toolcrib.types import Outcome, Stage, Trace

MAX_TRACES = 50_000
_Who = tuple[str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """Cases from traces. `n_selects`: requests that were read. `n_uncalled`: those after which nothing was called."""

    cases: tuple[Case, ...]
    n_selects: int
    n_uncalled: int


def from_traces(traces: Iterable[Trace], *, n: int) -> Taken:
    """The newest `n` distinct requests whose outcome is known.

    Args:
        traces: newest first.
    """
    called: dict[_Who, list[tuple[str, str]]] = {}
    cases: dict[tuple[str, str], Case] = {}
    n_selects = n_uncalled = 0
    for trace in traces:
        who = (trace.tenant, trace.subject, trace.on_behalf_of)
        if trace.kind == "call":
            if answered := answered_call(trace):
                called.setdefault(who, []).append((trace.at, answered[0]))
            continue
        after = called.pop(who, [])
        n_selects += 1
        case = _case(trace, [tool_id for at, tool_id in reversed(after) if soon_after(trace.at, at)])
        if case is None:
            n_uncalled += 1
        elif len(cases) < n:
            cases.setdefault((case.task, repr(case.caller)), case)
    return Taken(cases=tuple(reversed(cases.values())), n_selects=n_selects, n_uncalled=n_uncalled)


def _case(trace: Trace, called: list[str]) -> Case | None:
    views: Mapping[Stage, Mapping[str, Any]] = {record.stage: record.operator_view for record in trace.records}
    if not {Stage.ELIGIBILITY, Stage.RETRIEVAL, Stage.SELECTION} <= set(views):
        return None
    asked, given = views[Stage.RETRIEVAL], views[Stage.SELECTION]
    offered = {row["tool_id"] for row in given["tools"]}
    right = [tool_id for tool_id in dict.fromkeys(called) if tool_id in offered]
    refused = given["outcome"] == Outcome.NO_MATCH
    if not asked["task"].strip() or not (right or refused):
        return None
    what = f"{', '.join(right)} called" if right else "nothing was offered: does really no tool fit?"
    return Case(
        case_id=f"trace-{trace.trace_id[:12]}",
        task=asked["task"],
        queries=tuple(asked["queries"]),
        caller=caller_row(views[Stage.ELIGIBILITY]["caller"]),
        expect=tuple(frozenset({tool_id}) for tool_id in right) if right else None,
        tags=("draft", "trace"),
        note=f"asked {trace.at[:10]}; {what}",
    )


def caller_row(described: Mapping[str, Any]) -> dict[str, Any]:
    """A caller's fields as a trace holds them, for a case: without what is empty, without its credential."""
    row = {key: value for key, value in described.items() if key not in ("credential", "acting_for") and value}
    behind = described.get("acting_for")
    return row | ({"acting_for": caller_row(behind)} if behind else {})
