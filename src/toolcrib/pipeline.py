"""The road from a request to a selection, and from a call to a verdict. Read this file first.

    select:  view (Catalog ─▶ Eligibility ─▶ hard Routing) ─▶ Ranking ─▶ Routing ─▶ Selection
    judge:   view ─▶ Gate                    up to three times a call: before owners are asked, after, with an approval

Floor 3. Above: `crib.py` builds one of these, keeps the store and the servers, and runs what the gate let through.
Below: one room per stage; each is handed all it needs.

Invariants
1. A pipeline is frozen but for what it remembers: snapshot, policy and index belong together. A reload builds a new one
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
from dataclasses import asdict, dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from itertools import compress

import numpy as np

from toolcrib.catalog.digest import digest_of
from toolcrib.catalog.lifecycle import (
    Past,
    deprecated_in_words,
    is_deprecated,
    past_of,
    renamed_in_words,
    retired_in_words,
)
from toolcrib.catalog.rows import ToolRows, tool_rows
from toolcrib.errors import RetrievalError
from toolcrib.gate.arguments import ArgumentChecker
from toolcrib.gate.checks import Named, strictest
from toolcrib.gate.checks import judge as check_call
from toolcrib.gate.limits import Limited
from toolcrib.gate.masking import masked
from toolcrib.policy.classes import DecisionClasses
from toolcrib.policy.engine import PolicyEngine
from toolcrib.providers.names import NameTarget, public_name
from toolcrib.retrieval.calibration import Calibration
from toolcrib.retrieval.index import Index
from toolcrib.retrieval.learning import NOTHING, Learned, Part
from toolcrib.retrieval.search import View
from toolcrib.routing.admissible import admissible
from toolcrib.routing.drops import Drops
from toolcrib.routing.facts import RoutingFacts
from toolcrib.routing.prefer import prefer
from toolcrib.routing.preferences import REPLACEMENT
from toolcrib.selection.pack import select as pack
from toolcrib.trace.records import (
    eligibility_record,
    gate_record,
    moved,
    registry_record,
    retrieval_record,
    routing_record,
    seen_by,
    selection_record,
)
from toolcrib.types import (
    BoolArray,
    Caller,
    CatalogSnapshot,
    Channel,
    Code,
    Decision,
    Effect,
    Eligibility,
    Hit,
    Ranking,
    ResourceRule,
    RoutingRules,
    Selection,
    SelectRequest,
    StageRecord,
    TokenCost,
    Tool,
    ToolCall,
    ToolHealth,
    Verdict,
)

MAX_VIEWS = 256
MAX_FINGERPRINTS = 16_384
"""How many views, and callers whose view is known, are remembered."""
MAX_VIEW_TOOLS = 2_000_000
"""Tools in all remembered views together; each costs some 600 bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineOptions:
    """What the operator decided, apart from policy and catalog.

    Args:
        confidence_floor: 0 to 1; below it the outcome is `no_match`.
        top_k: candidates that leave retrieval, at least the largest `limit` anybody may ask for.
        unknown_risk: "allow" or "needs_approval" for a channel: what a call to a tool of unknown risk needs there.
        fallback: globs on tool ids: what is offered, as far as permitted, while the index cannot be searched.
        adapt: whether vectors are adapted to the tools in reach. rerank: whether the learned ranker has its say.
        calibration: the operator's own map of confidence, the same for all callers; the floor is one of what it gives.
    """

    confidence_floor: float
    top_k: int
    unknown_risk: Mapping[Channel, str]
    rules: RoutingRules = field(default_factory=RoutingRules)
    fallback: tuple[str, ...] = ()
    resource_rules: tuple[ResourceRule, ...] = ()
    record_arguments: bool = False
    calibration: Calibration | None = None
    adapt: bool = True
    rerank: bool = True

    @property
    def digest(self) -> str:
        """SHA-256 over what a selection depends on: all but what only calls are judged by."""
        calibration = [] if self.calibration is None else [asdict(self.calibration)]
        return digest_of(
            self.confidence_floor,
            self.top_k,
            sorted(self.unknown_risk.items()),
            asdict(self.rules),
            self.fallback,
            self.adapt,
            self.rerank,
            *calibration,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerView:
    """What one caller can reach in one snapshot, and digests of exactly that.

    Args:
        reach: bool, shape (n_tools,): permitted by policy and not ruled out by routing's hard constraints. Listed,
            found and callable are this one set (I10).
        disclosed: bool, shape (n_tools,): policy lets the caller know that they exist, not use them, and routing
            would not rule them out either.
        moves: tools that policy permits and routing ruled out, with the reason.
        search: the index seen through `reach`; None without an index.
        registry_record, eligibility_record, routing_record: what every request of this view writes down; who asks and
            what is moved is filled in.
    """

    eligibility: Eligibility
    reach: BoolArray
    disclosed: BoolArray
    moves: Drops
    tools: tuple[Tool, ...]
    namespaces: tuple[str, ...]
    search: View | None
    version: str
    policy_version: str
    index_version: str
    registry_record: StageRecord
    eligibility_record: StageRecord
    routing_record: StageRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected:
    """A selection, the view it was made under, and what each stage wrote down."""

    selection: Selection
    view: CallerView
    records: tuple[StageRecord, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A verdict and what it rests on.

    Args:
        resource_rules: which resources the arguments of this tool may name.
        renamed: what the caller is told where it asked by a name that the tool had before, or "".
    """

    verdict: Verdict
    tool: Tool | None
    records: tuple[StageRecord, ...]
    resource_rules: tuple[ResourceRule, ...] = ()
    renamed: str = ""

    @property
    def sound(self) -> bool:
        """Whether nothing but an approval, or nothing at all, stands before the call."""
        return self.verdict.allowed or self.verdict.code is Code.NEEDS_APPROVAL

    def awaiting(self, approval_id: str, *, message: str = "") -> Judged:
        """The same, with the request that an approver may grant, or has refused, and what is said of it."""
        verdict = replace(self.verdict, approval_id=approval_id, message=message or self.verdict.message)
        *before, gate = self.records
        noted = {"approval_id": approval_id, "message": verdict.message}
        gate = replace(
            gate,
            operator_view={**gate.operator_view, **noted},
            caller_view={**gate.caller_view, "message": verdict.message},
        )
        return replace(self, verdict=verdict, records=(*before, gate))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """One catalog version under one policy, ready to answer.

    Args:
        policy_fault: why `policy` is not the text on disk, or "": the last good one stays in force meanwhile.
        facts: what routing's hard constraints look at, once for all tools.
        learned: from use; each of its parts counts only for those who can reach all that it was learned over.
    """

    snapshot: CatalogSnapshot
    policy: PolicyEngine
    policy_fault: str = ""
    classes: DecisionClasses
    facts: RoutingFacts
    index: Index | None
    options: PipelineOptions
    cost: TokenCost
    checker: ArgumentChecker
    learned: Learned = NOTHING
    _views: OrderedDict[tuple[str, Channel], CallerView] = field(default_factory=OrderedDict, init=False, repr=False)
    _fingerprints: dict[Caller, str] = field(default_factory=dict, init=False, repr=False)
    _rows: list[ToolRows] = field(default_factory=list, init=False, repr=False)
    _costs: dict[int, int] = field(default_factory=dict, init=False, repr=False)
    _digests: list[str] = field(default_factory=list, init=False, repr=False)
    _pasts: list[Past] = field(default_factory=list, init=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    # --- stage 1 and 2: what is there, and what may this caller know of

    def view(self, caller: Caller, channel: Channel) -> CallerView:
        """What this caller can reach; remembered by what policy can read of the caller, not by who it is.

        Callers that are equal in all their fields have one fingerprint, which is remembered, too: it takes longer to
        work out than to look up. Both memories are bounded.
        """
        fingerprint = self._fingerprints.get(caller) or self._fingerprint(caller)
        key = (fingerprint, channel)
        with self._lock:
            if known := self._views.get(key):
                self._views.move_to_end(key)
                return known
        view = self._build_view(caller, channel)
        if view.eligibility.errors:
            return view  # one caller that policy cannot read must not deny everybody with the same fingerprint
        with self._lock:
            self._views[key] = view
            held = sum(len(each.tools) for each in self._views.values())
            while len(self._views) > MAX_VIEWS or (held > MAX_VIEW_TOOLS and len(self._views) > 1):
                _, oldest = self._views.popitem(last=False)
                held -= len(oldest.tools)
        return view

    def asked_lately(self) -> tuple[tuple[Caller, Channel], ...]:
        """Whose views are remembered, over which channel, newest first: one caller for each view."""
        with self._lock:
            callers = {fingerprint: caller for caller, fingerprint in self._fingerprints.items()}
            keys = [*reversed(self._views)]
        return tuple((callers[key], channel) for key, channel in keys if key in callers)

    def _fingerprint(self, caller: Caller) -> str:
        fingerprint = caller.fingerprint(with_subject=self.policy.names_subjects)
        with self._lock:
            if len(self._fingerprints) >= MAX_FINGERPRINTS:
                del self._fingerprints[next(iter(self._fingerprints))]
            self._fingerprints[caller] = fingerprint
        return fingerprint

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
            tools, caller=caller, permitted=eligibility.permitted, rules=self.options.rules, facts=self.facts
        )
        disclosed, _ = admissible(
            tools, caller=caller, permitted=eligibility.disclosed, rules=self.options.rules, facts=self.facts
        )
        rows = self._tool_rows()
        version = rows.version(reach)
        reachable = tuple(compress(tools, reach.tolist()))
        part = self._part_for(reachable, caller)
        index_version = digest_of(version, self.index.model_id if self.index else "none")
        policy_version = digest_of(version, eligibility.needs_approval[reach].tobytes().hex())
        return CallerView(
            eligibility=eligibility,
            reach=reach,
            disclosed=disclosed,
            moves=moves,
            tools=reachable,
            namespaces=rows.namespaces_of(reach),
            search=self.search_view(reach, learned=part),
            version=version,
            policy_version=policy_version,
            index_version=index_version if part is None else digest_of(index_version, part.digest),
            registry_record=registry_record(self.snapshot, caller_version=version),
            eligibility_record=eligibility_record(
                eligibility,
                caller=caller,
                caller_version=policy_version,
                reach=reach,
                policy_fault=self.policy_fault,
            ),
            routing_record=routing_record((), drops=self._dropped(moves), rules=self.options.rules),
        )

    def search_view(self, reach: BoolArray, *, learned: Part | None = None) -> View | None:
        """The index seen through a reach, and through what was learned over it; None without an index."""
        if self.index is None:
            return None
        return self.index.view(reach, adapt=self.options.adapt, rerank=self.options.rerank, learned=learned)

    def _part_for(self, tools: Sequence[Tool], caller: Caller) -> Part | None:
        if self.index is None or not self.learned.parts:
            return None
        reach = {tool.tool_id: tool.digest for tool in tools}
        return self.learned.for_reach(reach, tenant=caller.tenant, model_id=self.index.model_id)

    def _tool_rows(self) -> ToolRows:
        """Made for the first view: whoever only builds a pipeline need not wait for it."""
        if not self._rows:
            self._rows.append(tool_rows(self.snapshot.tools))
        return self._rows[0]

    def _past(self) -> Past:
        """The names that tools had before, and what is retired: worked out once."""
        if not self._pasts:
            past = past_of(self.snapshot)
            known = dict(past.retired)
            for name, were in past.retired.items():
                public = public_name(name, target=NameTarget.MCP)
                known[public] = (*known.get(public, ()), *(was for was in were if was not in known.get(public, ())))
            self._pasts.append(replace(past, retired=known))
        return self._pasts[0]

    def _options_digest(self) -> str:
        """Of the options, worked out once."""
        if not self._digests:
            self._digests.append(self.options.digest)
        return self._digests[0]

    # --- stages 3 to 5: which of them match, which are preferred, which go into the context

    def select(
        self,
        request: SelectRequest,
        *,
        caller: Caller,
        channel: Channel,
        health: Callable[[Sequence[Tool]], Mapping[str, ToolHealth]] = lambda _tools: {},
    ) -> Selected:
        """Answer one request. Never raises for anything in the request; an unfit one has an outcome that says so.

        Args:
            health: tools -> those that something speaks against, by tool id.
        """
        view = self.view(caller, channel)
        ranking = self._with_replacements(self._rank(request, view), view)
        known = health([self.snapshot.tools[hit.tool_idx] for hit in ranking.hits])
        routed, moves = prefer(
            ranking,
            tools=self.snapshot.tools,
            rules=self.options.rules,
            similar=self.index.similar_among if self.index else None,
            health=known,
        )
        selection = pack(
            routed,
            tools=self.snapshot.tools,
            request=request,
            cost=self.cost,
            known_costs=self._costs,
            floor=self.options.confidence_floor,
            namespaces=view.namespaces,
            disclosed_match=self._disclosed_match(request, ranking, view),
        )
        selection = self._noted(selection, view)
        records = (
            *self._view_records(view, caller),
            retrieval_record(
                ranking,
                request=request,
                index_version=self.index.key if self.index else "",
                caller_version=view.index_version,
                options=self._options_digest(),
                learned=self.learned.digest,
            ),
            moved(view.routing_record, moves, health=known),
            selection_record(selection),
        )
        return Selected(selection=selection, view=view, records=records)

    def _rank(self, request: SelectRequest, view: CallerView) -> Ranking:
        try:
            if view.search is None:
                raise RetrievalError("there is no index")
            return self.ranked(view.search, request, top_k=max(self.options.top_k, request.limit))
        except RetrievalError:
            return self._safe_set(request, view)

    def ranked(self, search: View, request: SelectRequest, *, top_k: int) -> Ranking:
        """What a view finds for a request, its confidence calibrated as the options say. Raises RetrievalError."""
        ranking = search.search(request.task, request.queries, top_k=top_k)
        return ranking if self.options.calibration is None else self.options.calibration.applied(ranking)

    def _with_replacements(self, ranking: Ranking, view: CallerView) -> Ranking:
        """A deprecated hit has its replacement before it, found or not, where the caller can reach that."""
        if REPLACEMENT not in self.options.rules.prefer:
            return ranking
        found = {hit.tool_id for hit in ranking.hits}
        hits: list[Hit] = []
        for hit in ranking.hits:
            tool = self.snapshot.tools[hit.tool_idx]
            heir, in_reach = self._find(tool.metadata.replaced_by, view) if is_deprecated(tool) else (None, False)
            number = self.classes.number_of(heir.tool_id) if heir is not None and in_reach else None
            if heir is not None and number is not None and heir.tool_id not in found:
                found.add(heir.tool_id)
                hits.append(replace(hit, tool_idx=number, tool_id=heir.tool_id))
            hits.append(hit)
        return ranking if len(hits) == len(ranking.hits) else replace(ranking, hits=tuple(hits))

    def _noted(self, selection: Selection, view: CallerView) -> Selection:
        """The selection, with a word on each deprecated tool in it."""
        if not any(is_deprecated(chosen.tool) for chosen in selection.tools):
            return selection
        noted = tuple(
            replace(chosen, note=deprecated_in_words(self._replacement(chosen.tool, view)))
            if is_deprecated(chosen.tool)
            else chosen
            for chosen in selection.tools
        )
        return replace(selection, tools=noted)

    def _replacement(self, tool: Tool, view: CallerView) -> str:
        """The id of what replaces a tool, as far as the caller can reach it, or ""."""
        heir, in_reach = self._find(tool.metadata.replaced_by, view)
        return heir.tool_id if heir is not None and in_reach else ""

    def _dropped(self, moves: Drops) -> list[tuple[str, str, BoolArray]]:
        """The tools that each hard constraint took out of a caller's reach."""
        found = []
        for code, reason, numbers in moves.by_ground():
            bits = np.zeros(len(self.snapshot.tools), dtype=np.bool_)
            bits[numbers] = True
            found.append((code, reason, bits))
        return found

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
        if not unanswered or ranking.degraded or not view.disclosed.any():
            return False
        search = self.search_view(view.disclosed)
        try:
            known = None if search is None else self.ranked(search, request, top_k=1)
        except RetrievalError:
            return False
        return known is not None and known.confidence >= self.options.confidence_floor

    # --- the gate

    def judge(
        self,
        call: ToolCall,
        *,
        caller: Caller,
        channel: Channel,
        approved: bool = False,
        offered: Callable[[Tool], bool] | None = None,
        resources: Sequence[Named] = (),
        limited: Limited | None = None,
        earlier_trace: str = "",
        overtaken: bool = False,
    ) -> Judged:
        """May this very call run, as things stand now.

        Args:
            approved: a granted approval for exactly this call is at hand.
            offered: whether this tool was offered to the caller lately; asked only of a tool in reach. None: no matter.
            resources: each resource that the arguments name, as its owner described it.
            limited: the limit that refuses the call. earlier_trace: of the call that made this write already.
            overtaken: what the call waited for rests on what is not in force any more.
        """
        view = self.view(caller, channel)
        tool, in_reach = self._find(call.tool_id, view)
        asked = call.tool_id
        if tool is not None and in_reach:
            call = replace(call, tool_id=tool.tool_id)
        renamed = renamed_in_words(asked, call.tool_id) if call.tool_id != asked else ""
        decision: Decision | None = None
        targets: tuple[Decision, ...] = ()
        was_offered: bool | None = None
        if tool is not None and in_reach:
            decide = partial(
                self.policy.decide_call,
                caller,
                tool,
                channel=channel,
                unknown_risk=self.options.unknown_risk[channel],
                approved=approved,
            )
            decision = decide()
            targets = tuple(decide(target=named.resource) for named in resources if named.resource is not None)
            was_offered = offered(tool) if offered is not None else None
        verdict = check_call(
            call,
            tool=tool,
            in_reach=in_reach,
            decision=decision,
            checker=self.checker,
            tenant=caller.tenant,
            offered=was_offered,
            resources=resources,
            targets=targets,
            limited=limited,
            earlier_trace=earlier_trace,
            overtaken=overtaken,
            retired="" if in_reach else self._retired(asked, view, caller=caller, channel=channel),
        )
        if renamed and not verdict.allowed:
            verdict = replace(verdict, message=f"{verdict.message} {renamed}")
        gate = gate_record(
            call,
            verdict,
            tool=tool,
            decision=strictest(decision, targets) if decision else None,
            resources=[named.told(tenant=caller.tenant) for named in resources],
            arguments=masked(call.arguments) if self.options.record_arguments else None,
            called_as=asked if renamed else "",
        )
        return Judged(
            verdict=verdict,
            tool=tool,
            records=(*self._view_records(view, caller), gate),
            resource_rules=tuple(r for r in self.options.resource_rules if fnmatchcase(call.tool_id, r.pattern)),
            renamed=renamed,
        )

    def decision(self, tool: Tool, *, caller: Caller, channel: Channel) -> Decision:
        """Policy's word on this tool, for the operator: on discovery if that is denied, else on a call."""
        risk = self.options.unknown_risk[channel]
        return self.policy.decide_call(caller, tool, channel=channel, unknown_risk=risk, approved=False)

    def would_suffice(self, tool: Tool, *, caller: Caller, channel: Channel) -> tuple[str, ...]:
        """The tool's required scopes, sorted, where holding them all is what a call lacks; else none.

        Only for a tool that policy lets this caller know of: it says what the tool needs.
        """
        wanted = frozenset(tool.metadata.required_scopes)
        behind = caller.acting_for
        if wanted <= caller.scopes and (behind is None or wanted <= behind.scopes):
            return ()
        holder = replace(
            caller,
            scopes=caller.scopes | wanted,
            acting_for=replace(behind, scopes=behind.scopes | wanted) if behind else None,
        )
        sufficient = self.decision(tool, caller=holder, channel=channel).effect is not Effect.FORBID
        return tuple(sorted(wanted)) if sufficient else ()

    def tool(self, tool_id: str) -> Tool | None:
        """The tool in service under this id, whoever asks: for operators and approvers."""
        number = self.classes.number_of(tool_id)
        return None if number is None else self.snapshot.tools[number]

    def _find(self, tool_id: str, view: CallerView) -> tuple[Tool | None, bool]:
        """The tool that this caller means by an id, and whether it can reach it.

        A tool that the caller may not know of does not keep it from a name that another tool had before (I1); one that
        it may know of does.
        """
        number = self.classes.number_of(tool_id)
        if number is None or not self._may_know(number, view):
            for before in self._past().renamed.get(tool_id, ()):
                if view.reach[before]:
                    return self.snapshot.tools[before], True
        return (None, False) if number is None else (self.snapshot.tools[number], bool(view.reach[number]))

    def _may_know(self, number: int, view: CallerView) -> bool:
        return bool(view.reach[number] or view.disclosed[number])

    def _retired(self, name: str, view: CallerView, *, caller: Caller, channel: Channel) -> str:
        """What this caller is told of a retired tool that it could have known while it served; else ""."""
        number = self.classes.number_of(name)
        if number is not None and self._may_know(number, view):
            return ""
        could = (w for w in self._past().retired.get(name, ()) if self._could_know(w, caller=caller, channel=channel))
        was = next(could, None)
        return "" if was is None else retired_in_words(self._replacement(was, view))

    def _could_know(self, was: Tool, *, caller: Caller, channel: Channel) -> bool:
        risk = self.options.unknown_risk[channel]
        decision = self.policy.decide_discover(caller, was, channel=channel, unknown_risk=risk)
        if decision.errors or decision.effect is not Effect.PERMIT:
            return False
        left, _ = admissible([was], caller=caller, permitted=np.ones(1, dtype=np.bool_), rules=self.options.rules)
        return bool(left[0])

    def retired_known_to(self, caller: Caller, channel: Channel) -> frozenset[str]:
        """Ids of retired tools of which this caller is told that they are retired."""
        view = self.view(caller, channel)
        ids = {was.tool_id for were in self._past().retired.values() for was in were}
        return frozenset(name for name in ids if self._retired(name, view, caller=caller, channel=channel))

    def _view_records(self, view: CallerView, caller: Caller) -> Sequence[StageRecord]:
        return view.registry_record, seen_by(view.eligibility_record, caller)
