"""The road from a request to a selection, and from a call to a verdict. Read this file first.

    select:  view (Catalog ─▶ Eligibility ─▶ hard Routing) ─▶ Ranking ─▶ Routing ─▶ Selection
    judge:   view ─▶ Gate                    up to three times a call: before owners are asked, after, with an approval

Floor 3. Above: `crib.py` builds one of these, keeps the store and the servers, and runs what the gate let through.
Below: one room per stage; each is handed all it needs.

Invariants
1. A pipeline is frozen but for a cache of views: snapshot, policy and index belong together. A reload builds a new one
   and swaps the reference.
2. Policy comes before scoring: a tool outside a caller's reach gets no score, no rank and no weight in any statistic.
3. All that leaves here for a caller is a function of that caller's reach (I1); the versions too.
4. Where policy cannot be evaluated, nothing is in reach (I2).
5. `judge` looks at the tool, the caller and the arguments afresh; what was offered before grants nothing (I3).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

import numpy as np

from toolcrib.catalog.digest import digest_of
from toolcrib.errors import RetrievalError
from toolcrib.gate.arguments import ArgumentChecker
from toolcrib.gate.checks import judge as check_call
from toolcrib.gate.masking import masked
from toolcrib.policy.classes import DecisionClasses
from toolcrib.policy.engine import PolicyEngine
from toolcrib.retrieval.index import Index
from toolcrib.retrieval.search import View
from toolcrib.routing.admissible import admissible
from toolcrib.routing.prefer import prefer
from toolcrib.selection.pack import select as pack
from toolcrib.trace.records import (
    eligibility_record,
    gate_record,
    registry_record,
    retrieval_record,
    routing_record,
    selection_record,
)
from toolcrib.types import (
    BoolArray,
    Caller,
    CatalogSnapshot,
    Channel,
    Code,
    Eligibility,
    Hit,
    Ranking,
    Resource,
    ResourceRule,
    RiskCeiling,
    RouteMove,
    Selection,
    SelectRequest,
    StageRecord,
    TokenCost,
    Tool,
    ToolCall,
    Verdict,
)

_MAX_VIEWS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineOptions:
    """What the operator decided, apart from policy and catalog.

    Args:
        confidence_floor: 0 to 1; below it the outcome is `no_match`.
        top_k: candidates that leave retrieval, at least the largest `limit` anybody may ask for.
        unknown_risk: "allow" or "needs_approval" for a channel: what a call to a tool of unknown risk needs there.
        fallback: globs on tool ids: what is offered, as far as permitted, while the index cannot be searched.
    """

    confidence_floor: float
    top_k: int
    unknown_risk: Mapping[Channel, str]
    risk_ceilings: tuple[RiskCeiling, ...] = ()
    fallback: tuple[str, ...] = ()
    resource_rules: tuple[ResourceRule, ...] = ()
    record_arguments: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerView:
    """What one caller can reach in one snapshot, and digests of exactly that.

    Args:
        reach: bool, shape (n_tools,): permitted by policy and not ruled out by routing's hard constraints. Listed,
            found and callable are this one set (I10).
        moves: tools that policy permits and routing ruled out, with the reason.
        search: the index seen through `reach`; None without an index.
    """

    eligibility: Eligibility
    reach: BoolArray
    moves: tuple[RouteMove, ...]
    tools: tuple[Tool, ...]
    namespaces: tuple[str, ...]
    search: View | None
    version: str
    policy_version: str
    index_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected:
    """A selection, the view it was made under, and what each stage wrote down."""

    selection: Selection
    view: CallerView
    records: tuple[StageRecord, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A verdict and what it rests on. `resource_rules`: which resources the arguments of this tool may name."""

    verdict: Verdict
    tool: Tool | None
    records: tuple[StageRecord, ...]
    resource_rules: tuple[ResourceRule, ...] = ()

    @property
    def sound(self) -> bool:
        """Whether nothing but an approval, or nothing at all, stands before the call."""
        return self.verdict.allowed or self.verdict.code is Code.NEEDS_APPROVAL

    def awaiting(self, approval_id: str) -> Judged:
        """The same, with the request that an approver may grant."""
        *before, gate = self.records
        noted = replace(gate, operator_view={**gate.operator_view, "approval_id": approval_id})
        return replace(self, verdict=replace(self.verdict, approval_id=approval_id), records=(*before, noted))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """One catalog version under one policy, ready to answer."""

    snapshot: CatalogSnapshot
    policy: PolicyEngine
    classes: DecisionClasses
    index: Index | None
    options: PipelineOptions
    cost: TokenCost
    checker: ArgumentChecker
    _views: OrderedDict[tuple[str, Channel], CallerView] = field(default_factory=OrderedDict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    # --- stage 1 and 2: what is there, and what may this caller know of

    def view(self, caller: Caller, channel: Channel) -> CallerView:
        """What this caller can reach; remembered by what policy can read of the caller, not by who it is."""
        key = (caller.fingerprint(with_subject=self.policy.names_subjects), channel)
        with self._lock:
            if known := self._views.get(key):
                self._views.move_to_end(key)
                return known
        view = self._build_view(caller, channel)
        if any(decision.errors for decision in (*view.eligibility.discover, *view.eligibility.call)):
            return view  # one caller that policy cannot read must not deny everybody with the same fingerprint
        with self._lock:
            self._views[key] = view
            if len(self._views) > _MAX_VIEWS:
                self._views.popitem(last=False)
        return view

    def _build_view(self, caller: Caller, channel: Channel) -> CallerView:
        tools = self.snapshot.tools
        eligibility = self.policy.eligibility(
            caller,
            tools=tools,
            classes=self.classes,
            snapshot_version=self.snapshot.version,
            channel=channel,
            unknown_risk=self.options.unknown_risk[channel],
        )
        reach, moves = admissible(
            tools, caller=caller, permitted=eligibility.permitted, ceilings=self.options.risk_ceilings
        )
        mine = tuple(tools[number] for number in np.flatnonzero(reach))
        version = digest_of([(t.tool_id, t.digest, t.state, t.metadata.keywords, t.metadata.examples) for t in mine])
        effects = [eligibility.call[eligibility.class_of[number]].effect for number in np.flatnonzero(reach)]
        return CallerView(
            eligibility=eligibility,
            reach=reach,
            moves=moves,
            tools=mine,
            namespaces=tuple(sorted({t.metadata.namespace for t in mine})),
            search=self.index.view(reach) if self.index else None,
            version=version,
            policy_version=digest_of(version, effects),
            index_version=digest_of(version, self.index.model_id if self.index else "none"),
        )

    # --- stages 3 to 5: which of them match, which are preferred, which go into the context

    def select(self, request: SelectRequest, *, caller: Caller, channel: Channel) -> Selected:
        """Answer one request. Never raises for anything in the request; an unfit one has an outcome that says so."""
        view = self.view(caller, channel)
        ranking = self._rank(request, view)
        routed, moves = prefer(ranking, tools=self.snapshot.tools)
        selection = pack(
            routed,
            tools=self.snapshot.tools,
            request=request,
            cost=self.cost,
            floor=self.options.confidence_floor,
            namespaces=view.namespaces,
            disclosed_match=self._disclosed_match(request, ranking, view),
        )
        records = (
            *self._view_records(view, caller),
            retrieval_record(
                ranking,
                request=request,
                index_version=self.index.key if self.index else "",
                caller_version=view.index_version,
            ),
            routing_record((*view.moves, *moves)),
            selection_record(selection),
        )
        return Selected(selection=selection, view=view, records=records)

    def _rank(self, request: SelectRequest, view: CallerView) -> Ranking:
        try:
            if view.search is None:
                raise RetrievalError("there is no index")
            return view.search.search(request.task, request.queries, top_k=max(self.options.top_k, request.limit))
        except RetrievalError:
            return self._safe_set(request, view)

    def _safe_set(self, request: SelectRequest, view: CallerView) -> Ranking:
        """What the operator named for the time when nothing can be searched; never more than is in reach."""
        numbers = [
            int(number)
            for number in np.flatnonzero(view.reach)
            if any(fnmatchcase(self.snapshot.tools[number].tool_id, glob) for glob in self.options.fallback)
        ]
        hits = tuple(
            Hit(tool_idx=number, tool_id=self.snapshot.tools[number].tool_id, score=0.0, confidence=1.0)
            for number in numbers
        )
        return Ranking(hits=hits, capabilities=(request.task,), confidence=1.0 if hits else 0.0, degraded=True)

    def _disclosed_match(self, request: SelectRequest, ranking: Ranking, view: CallerView) -> bool:
        """Whether a tool that policy lets this caller know of, but not use, would have answered.

        I1 holds: policy says that this caller may discover these tools, and they are scored among themselves.
        """
        unanswered = ranking.confidence < self.options.confidence_floor and not ranking.empty_query
        if not unanswered or ranking.degraded or self.index is None or not view.eligibility.disclosed.any():
            return False
        try:
            known = self.index.view(view.eligibility.disclosed).search(request.task, request.queries, top_k=1)
        except RetrievalError:
            return False
        return known.confidence >= self.options.confidence_floor

    # --- the gate

    def judge(
        self,
        call: ToolCall,
        *,
        caller: Caller,
        channel: Channel,
        resources: Sequence[Resource | None] = (),
        approved: bool = False,
        allow_rate: Callable[[], bool] | None = None,
    ) -> Judged:
        """May this very call run, as things stand now.

        Args:
            resources: each resource that the arguments name, as its owner described it; None refuses the call.
            approved: a granted approval for exactly this call is at hand.
            allow_rate: takes one call out of the caller's allowance.
        """
        view = self.view(caller, channel)
        tool, in_reach = self._find(call.tool_id, view)
        decision = None
        if tool is not None and in_reach:
            decision = self.policy.decide_call(
                caller, tool, channel=channel, unknown_risk=self.options.unknown_risk[channel], approved=approved
            )
        verdict = check_call(
            call,
            tool=tool,
            in_reach=in_reach,
            decision=decision,
            checker=self.checker,
            tenant=caller.tenant,
            resources=resources,
            allow_rate=allow_rate,
        )
        gate = gate_record(
            call,
            verdict,
            tool=tool,
            decision=decision,
            resources=resources,
            arguments=masked(call.arguments) if self.options.record_arguments else None,
        )
        return Judged(
            verdict=verdict,
            tool=tool,
            records=(*self._view_records(view, caller), gate),
            resource_rules=tuple(r for r in self.options.resource_rules if fnmatchcase(call.tool_id, r.pattern)),
        )

    def _find(self, tool_id: str, view: CallerView) -> tuple[Tool | None, bool]:
        """The tool in service under this id, and whether this caller can reach it."""
        number = self.classes.number_of(tool_id)
        return (None, False) if number is None else (self.snapshot.tools[number], bool(view.reach[number]))

    def _view_records(self, view: CallerView, caller: Caller) -> Sequence[StageRecord]:
        return (
            registry_record(self.snapshot, caller_version=view.version),
            eligibility_record(view.eligibility, caller=caller, caller_version=view.policy_version, reach=view.reach),
        )
