"""Which of several matches operating rules prefer: replacements before what they replace, and the better of twins.

    ranking ─▶ replaced tools are set aside ─▶ twins ordered within their slots ─▶ replaced tools behind their heirs

Above: `pipeline.py`, after retrieval. Below: `twins.py` (who serves the same capability), `preferences.py` (what tells
them apart).

Invariants
1. Only tools in the ranking matter, and those the caller may know of are all that is in it (I1).
2. Nothing is added, dropped or scored anew. Twins change places among themselves, in the slots that they hold; every
   other tool keeps its place relative to the rest. Each tool that ends behind another one has a move that says why.
3. A function of hits, tools, rules and health; what nothing tells apart keeps its order. Doing it twice changes
   nothing more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from toolcrib.routing.preferences import REPLACEMENT, Weighing
from toolcrib.routing.twins import Similar, TwinGroup, twin_groups
from toolcrib.types import Hit, Ranking, RouteMove, RoutingRules, Tool, ToolHealth, ToolState


def prefer(
    ranking: Ranking,
    *,
    tools: Sequence[Tool],
    rules: RoutingRules,
    similar: Similar | None = None,
    health: Mapping[str, ToolHealth] | None = None,
) -> tuple[Ranking, tuple[RouteMove, ...]]:
    """The ranking in preferred order, and a move for each tool that was put behind another one.

    A deprecated tool goes behind its replacement whatever their distance, unless a preference that `rules.prefer` puts
    before `replacement` speaks for the old one.

    Args:
        tools: of one snapshot, in its order; `Hit.tool_idx` points here.
        similar: which tools' definitions mean the same; without it only declared twins are known.
        health: by tool id, what the tracker reports (see `health.py`).
    """
    known = {hit.tool_id: tools[hit.tool_idx] for hit in ranking.hits}
    weighing = Weighing(preferences=tuple(p for p in rules.prefer if p != REPLACEMENT), health=health or {})
    heirs = _heirs(known, rules, weighing)
    free = [place for place, hit in enumerate(ranking.hits) if hit.tool_id not in heirs]
    twins, twin_moves = _better_first([ranking.hits[place] for place in free], known, weighing, rules, similar)
    hits = list(ranking.hits)
    for place, hit in zip(free, twins, strict=True):
        hits[place] = hit
    ordered, replaced_moves = _replacement_first(hits, heirs)
    return replace(ranking, hits=ordered), (*twin_moves, *replaced_moves)


def _better_first(
    hits: Sequence[Hit],
    known: Mapping[str, Tool],
    weighing: Weighing,
    rules: RoutingRules,
    similar: Similar | None,
) -> tuple[list[Hit], list[RouteMove]]:
    """The preferred one of each group of twins in the first of the group's slots, and so on."""
    ordered = list(hits)
    moves: list[RouteMove] = []
    for group in twin_groups(hits, rules=rules, similar=similar):
        wanted = sorted(group.places, key=lambda p: weighing.ranks(known[hits[p].tool_id], order=group.order))
        for slot, place in zip(group.places, wanted, strict=True):
            ordered[slot] = hits[place]
        moves += _explained(wanted, hits, known, weighing, group)
    return ordered, moves


def _explained(
    wanted: Sequence[int], hits: Sequence[Hit], known: Mapping[str, Tool], weighing: Weighing, group: TwinGroup
) -> list[RouteMove]:
    """A move for each member that is lower in its group than before, behind the best that overtook it."""
    moves = []
    for rank, place in enumerate(wanted):
        overtaker = next((other for other in wanted[:rank] if other > place), None)
        if overtaker is None or group.places[rank] <= place:
            continue
        better, worse = known[hits[overtaker].tool_id], known[hits[place].tool_id]
        code = weighing.deciding(better, worse, order=group.order)
        reason = weighing.reason(code, better=better, worse=worse)
        moves.append(
            RouteMove(
                tool_id=worse.tool_id,
                action="demoted",
                code=code,
                reason=reason,
                behind=better.tool_id,
            )
        )
    return moves


# --- lifecycle


@dataclass(frozen=True, slots=True, kw_only=True)
class _Heir:
    """The tool in the ranking that finally replaces another one, and how many replacements away it is."""

    tool_id: str
    n_steps: int


def _heirs(known: Mapping[str, Tool], rules: RoutingRules, weighing: Weighing) -> dict[str, _Heir]:
    """The heir of each tool that has one in the ranking, unless a weightier preference speaks for the old tool."""
    if REPLACEMENT not in rules.prefer or not any(map(_is_deprecated, known.values())):
        return {}
    weightier = replace(weighing, preferences=rules.prefer[: rules.prefer.index(REPLACEMENT)])
    heirs = {}
    for tool_id, tool in known.items():
        heir = _heir(tool_id, known)
        if heir is None:
            continue
        order = next((g for g in rules.equivalent if tool_id in g and heir.tool_id in g), ())
        if not weightier.deciding(tool, known[heir.tool_id], order=order):
            heirs[tool_id] = heir
    return heirs


def _heir(tool_id: str, known: Mapping[str, Tool]) -> _Heir | None:
    """None for a tool that is not deprecated, whose replacement is not in the ranking, or that is in a circle."""
    seen = [tool_id]
    while _is_deprecated(known[seen[-1]]) and known[seen[-1]].metadata.replaced_by in known:
        following = known[seen[-1]].metadata.replaced_by
        if following in seen:
            return None
        seen.append(following)
    return _Heir(tool_id=seen[-1], n_steps=len(seen) - 1) if len(seen) > 1 else None


def _is_deprecated(tool: Tool) -> bool:
    return tool.state is ToolState.DEPRECATED or tool.metadata.status == "deprecated"


def _replacement_first(hits: Sequence[Hit], heirs: Mapping[str, _Heir]) -> tuple[tuple[Hit, ...], list[RouteMove]]:
    """A replaced hit ahead of its heir goes directly behind it, the nearest kin first."""
    if not heirs:
        return tuple(hits), []
    place: dict[str, int] = {}
    for number, hit in enumerate(hits):
        place.setdefault(hit.tool_id, number)
    ordered: list[Hit] = []
    moves: list[RouteMove] = []
    waiting: dict[str, list[tuple[int, Hit]]] = {}
    for hit in hits:
        heir = heirs.get(hit.tool_id)
        if heir is not None and place[heir.tool_id] > place[hit.tool_id]:
            waiting.setdefault(heir.tool_id, []).append((heir.n_steps, hit))
            continue
        ordered.append(hit)
        for _, held in sorted(waiting.pop(hit.tool_id, ()), key=lambda pair: pair[0]):
            ordered.append(held)
            reason = f"deprecated; {hit.tool_id} replaces it"
            moves.append(
                RouteMove(tool_id=held.tool_id, action="demoted", code=REPLACEMENT, reason=reason, behind=hit.tool_id)
            )
    return tuple(ordered), moves
