"""Cases from traces: what was really asked, by whom, and what was called afterwards.

Above: `cli/evals.py`. Below: the store's traces.

    select ─▶ offered: a, b, c     the same caller's calls that belong to it (`trace/answered.py`): b ran
           ─▶ case: task, caller, expect [[b]]

Invariants
1. Only a tool that was offered, let through and answered counts as expected. Where nothing was called, nothing is known
   of what would have been right, and there is no case, but for an honest "nothing here does that".
2. A caller's fields are those that policy reads; a trace holds no credential, and its mark of one is left out.
3. A task is written as it was asked. It may hold what is nobody's business: whoever imports looks before sharing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from toolcrib.evals.cases import Case
from toolcrib.trace.answered import Following, Offered, answered_call, holder_of, offered_in
from toolcrib.types import Outcome, Stage, Trace

MAX_TRACES = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """Cases from traces. `n_selects`: requests that were read. `n_uncalled`: those after which nothing was called."""

    cases: tuple[Case, ...]
    n_selects: int
    n_uncalled: int


@dataclass(slots=True, kw_only=True, eq=False)
class _Asked:
    """What is kept of one select: whole traces would not fit into memory together.

    Args:
        case: what was asked; None where a record is missing. refused: nothing was offered. called: in order.
    """

    at: str
    offered: frozenset[Offered]
    case: Case | None
    refused: bool
    called: list[str] = field(default_factory=list)


def from_traces(traces: Iterable[Trace], *, n: int) -> Taken:
    """The newest `n` distinct requests whose outcome is known.

    Args:
        traces: newest first.
    """
    events = [(holder_of(trace), trace.at, _event(trace)) for trace in traces]
    following: Following[_Asked] = Following()
    for holder, at, event in reversed(events):
        if isinstance(event, _Asked):
            following.asked(holder, at=at, offered=event.offered, request=event)
        elif event is not None and (asked := following.called(holder, at=at, tool=event)):
            asked.called.append(event[0])
    selects = [event for _holder, _at, event in events if isinstance(event, _Asked)]
    cases: dict[tuple[str, str], Case] = {}
    n_uncalled = 0
    for asked in selects:
        case = _case(asked)
        if case is None:
            n_uncalled += 1
        elif len(cases) < n:
            cases.setdefault((case.task, repr(case.caller)), case)
    return Taken(cases=tuple(reversed(cases.values())), n_selects=len(selects), n_uncalled=n_uncalled)


def _event(trace: Trace) -> _Asked | Offered | None:
    if trace.kind == "call":
        return answered_call(trace)
    views: Mapping[Stage, Mapping[str, Any]] = {record.stage: record.operator_view for record in trace.records}
    given = views.get(Stage.SELECTION, {})
    whole = {Stage.ELIGIBILITY, Stage.RETRIEVAL, Stage.SELECTION} <= set(views)
    return _Asked(
        at=trace.at,
        offered=offered_in(given),
        case=_asked_case(trace, views) if whole else None,
        refused=given.get("outcome") == Outcome.NO_MATCH,
    )


def _asked_case(trace: Trace, views: Mapping[Stage, Mapping[str, Any]]) -> Case | None:
    asked = views[Stage.RETRIEVAL]
    if not asked["task"].strip():
        return None
    return Case(
        case_id=f"trace-{trace.trace_id[:12]}",
        task=asked["task"],
        queries=tuple(asked["queries"]),
        caller=caller_row(views[Stage.ELIGIBILITY]["caller"]),
        expect=None,
        tags=("draft", "trace"),
    )


def _case(asked: _Asked) -> Case | None:
    """The case that came of it; None where nothing is known of what would have been right."""
    right = tuple(dict.fromkeys(asked.called))
    if asked.case is None or not (right or asked.refused):
        return None
    what = f"{', '.join(right)} called" if right else "nothing was offered: does really no tool fit?"
    expect = tuple(frozenset({tool_id}) for tool_id in right) if right else None
    return replace(asked.case, expect=expect, note=f"asked {asked.at[:10]}; {what}")


def caller_row(described: Mapping[str, Any]) -> dict[str, Any]:
    """A caller's fields as a trace holds them, for a case: without what is empty, without its credential."""
    row = {key: value for key, value in described.items() if key not in ("credential", "acting_for") and value}
    behind = described.get("acting_for")
    return row | ({"acting_for": caller_row(behind)} if behind else {})
