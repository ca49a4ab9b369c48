"""A ranking into a selection: which definitions go into the context, and what is said when none do.

Above: `pipeline.py`. Below: the cost function it hands over, and `outcomes.py` for the words.

Invariants
1. Definitions go in whole or not at all; neither `limit` nor `token_budget` is ever exceeded (I5).
2. Every part of the task gets its first tool before any part gets a second one.
3. What goes in stays in the ranking's order. Same input, same selection (I11).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from toolcrib.selection import outcomes
from toolcrib.types import (
    DroppedTool,
    Hit,
    Outcome,
    Ranking,
    SelectedTool,
    Selection,
    SelectRequest,
    TokenCost,
    Tool,
)

_TIE = 1e-9
"""Share of the best score within which candidates are told apart by nothing but their ids."""
_MAX_DROPPED = 20


def select(
    ranking: Ranking,
    *,
    tools: Sequence[Tool],
    request: SelectRequest,
    cost: TokenCost,
    floor: float,
    disclosed_match: bool = False,
    namespaces: Sequence[str] = (),
    tail_share: float = 0.1,
    known_costs: dict[int, int] | None = None,
) -> Selection:
    """What goes into the context, or why nothing does.

    Args:
        tools: of one snapshot, in its order; `Hit.tool_idx` points here.
        floor: 0 to 1; below this confidence nothing is offered.
        disclosed_match: a tool that this caller may know of, but not use, would have answered.
        namespaces: of everything this caller may discover.
        tail_share: a hit whose confidence is below this share of the floor is not offered beside better ones.
        known_costs: by tool number, filled as they are worked out; kept by whoever asks again for the same tools.
    """
    refused = _unfit(ranking, request=request, floor=floor, disclosed_match=disclosed_match, namespaces=namespaces)
    if refused is not None:
        return refused
    if tied := _tied_namespaces(ranking, tools=tools, limit=request.limit):
        return _no_tools(Outcome.NEEDS_CLARIFICATION, outcomes.say_which(tied), ranking=ranking, request=request)
    packing = _Packing(tools=tools, request=request, cost=cost, costs={} if known_costs is None else known_costs)
    hits = _confident(ranking.hits, weakest=floor * tail_share)
    packing.cover(hits)
    packing.fill(hits)
    return _packed(packing, ranking, request=request, kept=hits)


def _unfit(
    ranking: Ranking, *, request: SelectRequest, floor: float, disclosed_match: bool, namespaces: Sequence[str]
) -> Selection | None:
    """Why nothing may be offered at all, or None."""
    if ranking.empty_query:
        outcome, message = Outcome.NEEDS_CLARIFICATION, outcomes.say_what(namespaces)
    elif not ranking.hits or not ranking.confidence >= floor:
        if disclosed_match:
            outcome, message = Outcome.DENIED, outcomes.DENIED
        else:
            outcome = Outcome.NO_MATCH
            message = outcomes.NO_MATCH_DEGRADED if ranking.degraded else outcomes.NO_MATCH
    elif request.limit < 1:
        outcome, message = Outcome.NEEDS_CLARIFICATION, outcomes.NO_ROOM
    else:
        return None
    return _no_tools(outcome, message, ranking=ranking, request=request)


def _tied_namespaces(ranking: Ranking, *, tools: Sequence[Tool], limit: int) -> tuple[str, ...]:
    """The areas that the best candidates come from, when more of them tie than may go in; else nothing.

    Hits without a score (a configured safe set) do not compete, and a tool the task names is what was meant.
    """
    best = ranking.hits[0]
    if best.score <= 0 or best.named:
        return ()
    tied = [hit for hit in ranking.hits if abs(hit.score - best.score) <= _TIE * best.score]
    areas = sorted({tools[hit.tool_idx].metadata.namespace for hit in tied})
    return tuple(areas) if len(tied) > limit and len(areas) > 1 else ()


def _confident(hits: Sequence[Hit], *, weakest: float) -> list[Hit]:
    """The hits worth offering, each tool once; the best always, since the ranking cleared the floor."""
    seen: set[int] = set()
    kept: list[Hit] = []
    for hit in hits:
        if hit.tool_idx not in seen and (not kept or hit.confidence >= weakest):
            kept.append(hit)
            seen.add(hit.tool_idx)
    return kept


@dataclass(slots=True)
class _Packing:
    """What has gone in so far. Lives for one `select`."""

    tools: Sequence[Tool]
    request: SelectRequest
    cost: TokenCost
    costs: dict[int, int]
    chosen: dict[int, int] = field(default_factory=dict)
    too_large: dict[int, int] = field(default_factory=dict)
    covered: set[int] = field(default_factory=set)
    tokens: int = 0

    def cover(self, hits: Sequence[Hit]) -> None:
        """For every part of the task the best hit that fits."""
        for hit in hits:
            if self._is_full:
                return
            if hit.capability not in self.covered:
                self._put(hit)

    def fill(self, hits: Sequence[Hit]) -> None:
        """Then whatever fits, best first. What did not fit before cannot fit now: nothing was taken out."""
        for hit in hits:
            if self._is_full:
                return
            if hit.tool_idx not in self.chosen and hit.tool_idx not in self.too_large:
                self._put(hit)

    @property
    def _is_full(self) -> bool:
        return len(self.chosen) >= self.request.limit

    def _put(self, hit: Hit) -> None:
        tokens = self._cost_of(hit.tool_idx)
        if self.tokens + tokens > self.request.token_budget:
            self.too_large[hit.tool_idx] = tokens
            return
        self.chosen[hit.tool_idx] = tokens
        self.tokens += tokens
        self.covered.add(hit.capability)

    def _cost_of(self, tool_idx: int) -> int:
        known = self.costs.get(tool_idx)
        if known is None:
            known = self.costs[tool_idx] = self.cost(self.tools[tool_idx].definition)
        return known


def _packed(packing: _Packing, ranking: Ranking, *, request: SelectRequest, kept: Sequence[Hit]) -> Selection:
    dropped = _dropped(packing, ranking, kept=kept)
    if not packing.chosen:
        message = outcomes.too_large(request.token_budget, needed=min(packing.too_large.values()))
        return _no_tools(Outcome.NEEDS_CLARIFICATION, message, ranking=ranking, request=request, dropped=dropped)
    chosen = [hit for hit in kept if hit.tool_idx in packing.chosen]
    uncovered = [part for number, part in enumerate(ranking.capabilities) if number not in packing.covered]
    return Selection(
        outcome=Outcome.SELECTED,
        message=outcomes.selected(len(chosen), uncovered=uncovered),
        tools=tuple(
            SelectedTool(
                tool=packing.tools[hit.tool_idx],
                rank=rank,
                score=hit.score,
                capability=_capability(ranking, hit),
                tokens=packing.chosen[hit.tool_idx],
            )
            for rank, hit in enumerate(chosen, start=1)
        ),
        dropped=dropped,
        tokens=packing.tokens,
        token_budget=request.token_budget,
        limit=request.limit,
        confidence=ranking.confidence,
        degraded=ranking.degraded,
    )


def _dropped(packing: _Packing, ranking: Ranking, *, kept: Sequence[Hit]) -> tuple[DroppedTool, ...]:
    """Why the best candidates did not go in; the long tail is the trace's business."""
    confident = {hit.tool_idx for hit in kept}
    why: dict[str, str] = {}
    for hit in ranking.hits:
        if hit.tool_idx in packing.chosen or len(why) >= _MAX_DROPPED:
            continue
        if hit.tool_idx in packing.too_large:
            why[hit.tool_id] = "token_budget"
        else:
            why[hit.tool_id] = "limit" if hit.tool_idx in confident else "confidence"
    return tuple(DroppedTool(tool_id=tool_id, reason=reason) for tool_id, reason in why.items())


def _capability(ranking: Ranking, hit: Hit) -> str:
    return ranking.capabilities[hit.capability] if 0 <= hit.capability < len(ranking.capabilities) else ""


def _no_tools(
    outcome: Outcome,
    message: str,
    *,
    ranking: Ranking,
    request: SelectRequest,
    dropped: tuple[DroppedTool, ...] = (),
) -> Selection:
    return outcomes.unanswered(
        outcome,
        message,
        request=request,
        confidence=ranking.confidence,
        degraded=ranking.degraded,
        dropped=dropped,
    )
