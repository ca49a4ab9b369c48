"""Asking: every case of a place through the whole road, and what each stage did with the tools it expects.

    case ─▶ pipeline.select ─▶ ranking, selection, records ─▶ Searched
         └▶ its candidates alone ─▶ confidence, refused        (cases that name candidates)

Above: `cli/evals.py`. Below: `pipeline.py`, `trace/explain.py`, `exposure.py`.

Invariants
1. What is measured is what serves: the same `Pipeline.select`, timed from outside; nothing is asked twice but refusal
   over candidates.
2. Attribution comes from the records that a trace holds, by the code that `toolcrib explain` uses.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from toolcrib.errors import InvalidDefinitionError
from toolcrib.evals.cases import Capabilities, Case
from toolcrib.evals.exposure import Hidden, exposed
from toolcrib.evals.places import Asked, Place
from toolcrib.evals.results import BUDGETS, MAX_FILLED, Lost, Result, Searched
from toolcrib.pipeline import CallerView, Selected
from toolcrib.retrieval.search import View
from toolcrib.selection.pack import select as pack
from toolcrib.trace.explain import explain
from toolcrib.types import BoolArray, Caller, Ranking, Selection, SelectRequest, Stage, StageRecord, Trace

_KEPT = 10
_STAGES = (Stage.REGISTRY, Stage.ELIGIBILITY, Stage.ROUTING, Stage.RETRIEVAL, Stage.SELECTION)
"""In the order in which they lose a tool for good: what routing rules out is never searched."""
_MAX_VIEWS = 2_000

Progress = Callable[[int, int], None]


def sampled(place: Place, *, sample: int, seed: int) -> Place:
    """The place with at most `sample` answerable cases and as many of those that no tool fits; 0: all."""
    if sample <= 0:
        return place
    chosen: list[int] = []
    for answerable in (True, False):
        numbers = [n for n, one in enumerate(place.asked) if one.case.answerable is answerable]
        chosen += numbers if len(numbers) <= sample else random.Random(seed).sample(numbers, sample)  # noqa: S311
    return replace(place, asked=tuple(place.asked[n] for n in sorted(chosen)))


def run(place: Place, *, on_progress: Progress = lambda _done, _all: None) -> tuple[Result, ...]:
    """Ask every case, in order. Callers' views are made before anything is timed."""
    for caller in dict.fromkeys(one.caller for one in place.asked):
        place.pipeline.view(caller, place.channel)
    asking, results = _Asking(place), []
    for done, asked in enumerate(place.asked):
        on_progress(done, len(place.asked))
        results.append(asking.result(asked))
    on_progress(len(place.asked), len(place.asked))
    return tuple(results)


def request_of(asked: Asked, place: Place) -> SelectRequest:
    """The request that a case makes."""
    return SelectRequest(
        task=asked.case.task, queries=asked.case.queries, limit=place.limit, token_budget=place.token_budget
    )


class _Asking:
    """One run over one place, and what is worked out once for all of its cases."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._narrow = _Candidates(place)
        self._hidden: dict[tuple[str, bytes], Hidden] = {}
        self._totals: dict[str, int] = {}

    def result(self, asked: Asked) -> Result:
        case, place = asked.case, self._place
        view = place.pipeline.view(asked.caller, place.channel)
        searched = self._searched(asked) if case.answerable or case.candidates is None else None
        if case.candidates is not None:
            among = place.mask(case.candidates) & view.reach
            confidence, refused = self._narrow.ask(asked, among)
        else:
            assert searched is not None
            among, confidence, refused = view.reach, searched.confidence, not searched.offered
        fits: bool | None = False
        if case.expect is not None:
            fits = any(bool(among[number]) for tools in case.expect for number in place.numbers(tools)) or None
        return Result(
            set_name=place.name, case=case, searched=searched, confidence=confidence, refused=refused, fits=fits
        )

    def _searched(self, asked: Asked) -> Searched:
        place, case, request = self._place, asked.case, request_of(asked, self._place)
        cpu, wall = time.process_time(), time.perf_counter()
        done = place.pipeline.select(request, caller=asked.caller, channel=place.channel)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        records = {record.stage: record.operator_view for record in done.records}
        ranking = [str(hit["tool_id"]) for hit in records[Stage.RETRIEVAL]["hits"]]
        costs = {tool_id: place.cost_of(tool_id) for tool_id in ranking[:MAX_FILLED]}
        offered = tuple(chosen.tool.tool_id for chosen in done.selection.tools)
        wanted = case.expect or ()
        ranks = tuple(_first(ranking, tools) for tools in wanted)
        offers = tuple(not tools.isdisjoint(offered) for tools in wanted)
        numbers = [place.numbers(tools) for tools in wanted]
        return Searched(
            ranks=ranks,
            first_rank=min((rank for rank in ranks if rank), default=0),
            ranking=tuple(ranking[:_KEPT]),
            outcome=done.selection.outcome.value,
            offered=offered,
            offers=offers,
            in_service=tuple(bool(known) for known in numbers),
            permitted=tuple(any(bool(done.view.reach[n]) for n in known) for known in numbers),
            tokens=done.selection.tokens,
            tokens_of_first=sum(costs[tool_id] for tool_id in ranking[: min(place.limit, MAX_FILLED)]),
            by_budget=tuple(share(wanted, filled(list(costs), costs, budget)) for budget in BUDGETS),
            rounds=_rounds(ranks, place.limit),
            lost=tuple(_lost(asked, place, done, ranking, offers)),
            forbidden=tuple(tool_id for tool_id in offered if tool_id in case.forbid),
            moved=sum(move["action"] == "demoted" for move in records[Stage.ROUTING]["moves"]),
            misfits=tuple(self._misfits(case)),
            n_arguments=len(case.arguments),
            exposed=self._exposed(done, request),
            all_tokens=self._all_tokens(done.view),
            confidence=float(records[Stage.RETRIEVAL]["confidence"]),
            wall_ms=1_000 * wall,
            cpu_ms=1_000 * cpu,
        )

    def _misfits(self, case: Case) -> Iterator[str]:
        """Expected arguments that the gate would refuse today: the case is out of date, or the tool has changed."""
        pipeline = self._place.pipeline
        for tool_id, arguments in case.arguments.items():
            tool = pipeline.tool(tool_id)
            if tool is None:
                yield f"{tool_id}: not in service"
                continue
            try:
                faults = pipeline.checker.check(tool, arguments)
            except InvalidDefinitionError as fault:
                yield f"{tool_id}: {fault.what}"
                continue
            if faults:
                yield f"{tool_id}: {faults[0].path or '(root)'}: expected {faults[0].expected}, got {faults[0].got}"

    def _exposed(self, done: Selected, request: SelectRequest) -> tuple[str, ...]:
        snapshot, view = self._place.pipeline.snapshot, done.view
        key = (view.version, view.disclosed.tobytes())
        if key not in self._hidden:
            self._hidden[key] = Hidden.of(view, snapshot)
        return exposed(done, hidden=self._hidden[key], request=request)

    def _all_tokens(self, view: CallerView) -> int:
        """Tokens of all definitions in this caller's reach: what a client without search would carry."""
        if view.version not in self._totals:
            self._totals[view.version] = sum(self._place.cost_of(tool.tool_id) for tool in view.tools)
        return self._totals[view.version]


def _first(ranking: Sequence[str], tools: frozenset[str]) -> int:
    return next((rank for rank, tool_id in enumerate(ranking, start=1) if tool_id in tools), 0)


def _rounds(ranks: Sequence[int], limit: int) -> int:
    return 0 if not ranks or not all(ranks) else -(-max(ranks) // limit)


def filled(ranking: Sequence[str], costs: Mapping[str, int], budget: int) -> list[str]:
    """The tools that go into `budget` tokens: whole definitions in order, each that still fits."""
    kept, left = [], budget
    for tool_id in ranking:
        if costs[tool_id] <= left:
            kept.append(tool_id)
            left -= costs[tool_id]
    return kept


def share(wanted: Capabilities, found: Sequence[str]) -> float:
    """The share of capabilities with an acceptable tool among those found; 0 where nothing is wanted."""
    return sum(not tools.isdisjoint(found) for tools in wanted) / len(wanted) if wanted else 0.0


# --- which stage lost it ---------------------------------------------------------------------------------


def _lost(asked: Asked, place: Place, done: Selected, ranking: Sequence[str], offers: Sequence[bool]) -> list[Lost]:
    """For each capability that is not offered: where the last of its tools was lost."""
    found: list[Lost] = []
    trace: Trace | None = None
    for number, tools in enumerate(asked.case.expect or ()):
        if offers[number]:
            continue
        trace = trace or _trace(asked.caller, done.records, place)
        best_first = sorted(
            tools, key=lambda tool_id: (_first(ranking, frozenset({tool_id})) or len(ranking) + 1, tool_id)
        )
        steps = [_step(trace, tool_id, place, done, ranking) for tool_id in best_first]
        stage, code, reason = max(steps, key=lambda step: _STAGES.index(step[0]))
        found.append(Lost(capability=number, stage=stage, code=code, reason=reason))
    return found


def _step(trace: Trace, tool_id: str, place: Place, done: Selected, ranking: Sequence[str]) -> tuple[Stage, str, str]:
    found = explain(trace, tool_id=tool_id, catalog=place.summary)
    stage = found.lost_at or Stage.SELECTION
    if stage is Stage.SELECTION and found.code == "limit":
        moves: Sequence[Mapping[str, Any]] = next(
            record.operator_view["moves"] for record in done.records if record.stage is Stage.ROUTING
        )
        demoted = next((m for m in moves if m["tool_id"] == tool_id and m["action"] == "demoted"), None)
        if demoted is not None and tool_id in ranking[: place.limit]:
            behind = f" behind {demoted['behind']}" if demoted.get("behind") else ""
            return Stage.ROUTING, "demoted", f"ranked {ranking.index(tool_id) + 1}, put{behind}: {demoted['reason']}"
    return stage, found.code, found.reason


def _trace(caller: Caller, records: Sequence[StageRecord], place: Place) -> Trace:
    return Trace(
        trace_id="eval",
        kind="select",
        at="",
        subject=caller.subject,
        on_behalf_of=caller.on_behalf_of,
        tenant=caller.tenant,
        channel=place.channel,
        records=tuple(records),
    )


# --- refusal over a case's own candidates ----------------------------------------------------------------


class _Candidates:
    """Requests of callers who may use nothing but a case's candidates: the same index, another view of it."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._views: dict[bytes, View] = {}

    def ask(self, asked: Asked, mask: BoolArray) -> tuple[float, bool]:
        """The confidence that some candidate fits, and whether none was offered.

        Args:
            mask: bool, shape (n_tools,): the candidates in the caller's reach.
        """
        place, pipeline = self._place, self._place.pipeline
        key = mask.tobytes()
        if key not in self._views:
            if len(self._views) >= _MAX_VIEWS:
                self._views.clear()
            view = pipeline.search_view(mask)
            if view is None:
                return 0.0, True
            self._views[key] = view
        request = request_of(asked, place)
        ranking = pipeline.ranked(self._views[key], request, top_k=pipeline.options.top_k)
        return ranking.confidence, not self._selected(ranking, request).tools

    def _selected(self, ranking: Ranking, request: SelectRequest) -> Selection:
        pipeline = self._place.pipeline
        return pack(
            ranking,
            tools=pipeline.snapshot.tools,
            request=request,
            cost=pipeline.cost,
            floor=pipeline.options.confidence_floor,
        )
