"""The answer of a crib that does not choose: whole definitions of everything in the caller's reach.

Floor 4. Above: `crib.py`, under `[shadow] present = "all"`. Below: `pipeline.py` says what is in reach; the rooms write
the same records as for any other select.

Invariants
1. What a caller gets is a function of its reach and of the request (I1): the tools by id, no scores.
2. A limit or a budget that the caller gave is kept (I5); without them there is none, the crib's own do not count.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from toolcrib.pipeline import CallerView, Pipeline, Selected
from toolcrib.selection.outcomes import NO_MATCH, selected, unanswered
from toolcrib.trace.records import (
    eligibility_record,
    registry_record,
    retrieval_record,
    routing_record,
    selection_record,
)
from toolcrib.types import (
    BoolArray,
    Caller,
    Channel,
    DroppedTool,
    Hit,
    Outcome,
    Ranking,
    SelectedTool,
    Selection,
    SelectRequest,
    StageRecord,
)

_MAX_DROPPED = 20


def select_everything(
    pipeline: Pipeline,
    *,
    task: str,
    queries: Sequence[str],
    limit: int | None,
    token_budget: int | None,
    caller: Caller,
    channel: Channel,
) -> Selected:
    """Everything in reach, by tool id.

    Args:
        limit, token_budget: as the caller gave them; None where it gave none.
    """
    view = pipeline.view(caller, channel)
    chosen, dropped, tokens = _packed(pipeline, view, task=task, limit=limit, token_budget=token_budget)
    request = SelectRequest(
        task=task,
        queries=tuple(queries),
        limit=max(1, len(chosen)) if limit is None else limit,
        token_budget=max(1, tokens) if token_budget is None else token_budget,
    )
    if chosen:
        selection = Selection(
            outcome=Outcome.SELECTED,
            message=selected(len(chosen), uncovered=()),
            tools=chosen,
            dropped=dropped,
            tokens=tokens,
            token_budget=request.token_budget,
            limit=request.limit,
            confidence=1.0,
        )
    else:
        selection = unanswered(Outcome.NO_MATCH, NO_MATCH, request=request, dropped=dropped)
    records = _records(pipeline, view, request=request, selection=selection, caller=caller)
    return Selected(selection=selection, view=view, records=_marked(records, limit=limit, token_budget=token_budget))


def _packed(
    pipeline: Pipeline, view: CallerView, *, task: str, limit: int | None, token_budget: int | None
) -> tuple[tuple[SelectedTool, ...], tuple[DroppedTool, ...], int]:
    """What goes in, why the first of the others do not, and the tokens of what does."""
    chosen: list[SelectedTool] = []
    dropped: list[DroppedTool] = []
    total = 0
    for tool in view.tools:
        if limit is not None and len(chosen) >= limit:
            dropped.append(DroppedTool(tool_id=tool.tool_id, reason="limit"))
        elif token_budget is not None and total + (tokens := pipeline.cost(tool.definition)) > token_budget:
            dropped.append(DroppedTool(tool_id=tool.tool_id, reason="token_budget"))
        else:
            tokens = tokens if token_budget is not None else pipeline.cost(tool.definition)
            total += tokens
            chosen.append(SelectedTool(tool=tool, rank=len(chosen) + 1, score=0.0, capability=task, tokens=tokens))
    return tuple(chosen), tuple(dropped[:_MAX_DROPPED]), total


def _records(
    pipeline: Pipeline, view: CallerView, *, request: SelectRequest, selection: Selection, caller: Caller
) -> tuple[StageRecord, ...]:
    hits = tuple(
        Hit(tool_idx=int(number), tool_id=pipeline.snapshot.tools[number].tool_id, score=0.0, confidence=1.0)
        for number in np.flatnonzero(view.reach)
    )
    drops: list[tuple[str, str, BoolArray]] = []
    for code, reason, numbers in view.moves.by_ground():
        bits = np.zeros(len(pipeline.snapshot.tools), dtype=np.bool_)
        bits[numbers] = True
        drops.append((code, reason, bits))
    return (
        registry_record(pipeline.snapshot, caller_version=view.version),
        eligibility_record(
            view.eligibility,
            caller=caller,
            caller_version=view.policy_version,
            reach=view.reach,
            policy_fault=pipeline.policy_fault,
        ),
        retrieval_record(
            Ranking(hits=hits, capabilities=(request.task,), confidence=selection.confidence),
            request=request,
            index_version=pipeline.index.key if pipeline.index else "",
            caller_version=view.index_version,
            options=pipeline.options.digest,
            learned=pipeline.learned.digest,
        ),
        routing_record((), drops=drops, rules=pipeline.options.rules),
        selection_record(selection),
    )


def _marked(records: Sequence[StageRecord], *, limit: int | None, token_budget: int | None) -> tuple[StageRecord, ...]:
    """The records, the one of retrieval with the note that nothing was searched, and what the caller gave."""
    note = {"present": "all", "given": {"limit": limit, "token_budget": token_budget}}
    return tuple(
        StageRecord(stage=r.stage, operator_view={**r.operator_view, **note}, caller_view=r.caller_view)
        if r.stage == "retrieval"
        else r
        for r in records
    )
