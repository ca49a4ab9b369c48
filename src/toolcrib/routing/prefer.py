"""Which of several matches operating rules prefer: replacements before what they replace, less risk among equals.

Above: `pipeline.py`, after retrieval. Below: nothing.

Invariants
1. Only tools in the ranking matter, and those the caller may know of are all that is in it (I1).
2. Nothing is added, dropped or scored anew; a tool is moved down only, and each move says why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from toolcrib.types import Hit, Ranking, RouteMove, Tool, ToolState

_NEAR = 1e-6
"""Scores within this share of the group's best count as equal: far below any difference that means something."""


def prefer(ranking: Ranking, *, tools: Sequence[Tool]) -> tuple[Ranking, tuple[RouteMove, ...]]:
    """The ranking in preferred order, and a move for each tool that ended up lower.

    Args:
        tools: of one snapshot, in its order; `Hit.tool_idx` points here.
    """
    by_risk, risk_moves = _less_risk_first(ranking.hits, tools)
    ordered, replaced_moves = _replacement_first(by_risk, tools)
    return replace(ranking, hits=ordered), (*risk_moves, *replaced_moves)


def _less_risk_first(hits: Sequence[Hit], tools: Sequence[Tool]) -> tuple[tuple[Hit, ...], list[RouteMove]]:
    """Among hits of practically one score, the less risky first; the order stays otherwise."""
    ordered: list[Hit] = []
    moves: list[RouteMove] = []
    for group in _equals(hits):
        by_risk = sorted(group, key=lambda hit: tools[hit.tool_idx].metadata.risk.level)
        for place, hit in enumerate(group):
            if by_risk.index(hit) > place:
                risk = tools[hit.tool_idx].metadata.risk.value
                reason = f"an equal match does less harm; its own risk is {risk}"
                moves.append(RouteMove(tool_id=hit.tool_id, action="demoted", code="risk", reason=reason))
        ordered += by_risk
    return tuple(ordered), moves


def _equals(hits: Sequence[Hit]) -> list[list[Hit]]:
    """Neighbours grouped by score, each measured against the first of its group so that groups cannot creep."""
    groups: list[list[Hit]] = []
    for hit in hits:
        if groups and abs(groups[-1][0].score - hit.score) <= _NEAR * abs(groups[-1][0].score):
            groups[-1].append(hit)
        else:
            groups.append([hit])
    return groups


def _replacement_first(hits: Sequence[Hit], tools: Sequence[Tool]) -> tuple[tuple[Hit, ...], list[RouteMove]]:
    """A deprecated hit ahead of its replacement goes directly behind it, the nearest kin first."""
    kin = {hit.tool_id: tools[hit.tool_idx] for hit in hits}
    place = {hit.tool_id: number for number, hit in enumerate(hits)}
    ordered: list[Hit] = []
    moves: list[RouteMove] = []
    waiting: dict[str, list[tuple[int, Hit]]] = {}
    for hit in hits:
        heir, n_steps = _heir(hit.tool_id, kin)
        if heir != hit.tool_id and place[heir] > place[hit.tool_id]:
            waiting.setdefault(heir, []).append((n_steps, hit))
            continue
        ordered.append(hit)
        for _, held in sorted(waiting.pop(hit.tool_id, ()), key=lambda pair: pair[0]):
            ordered.append(held)
            reason = f"deprecated; {hit.tool_id} replaces it"
            moves.append(RouteMove(tool_id=held.tool_id, action="demoted", code="deprecated", reason=reason))
    return tuple(ordered), moves


def _heir(tool_id: str, kin: Mapping[str, Tool]) -> tuple[str, int]:
    """The tool in the ranking that finally replaces this one, and how many replacements away it is.

    A tool that is not deprecated, or whose replacement is not in the ranking, is its own heir; so is one in a circle.
    """
    seen = [tool_id]
    while _is_deprecated(kin[seen[-1]]) and kin[seen[-1]].metadata.replaced_by in kin:
        following = kin[seen[-1]].metadata.replaced_by
        if following in seen:
            return tool_id, 0
        seen.append(following)
    return seen[-1], len(seen) - 1


def _is_deprecated(tool: Tool) -> bool:
    return tool.state is ToolState.DEPRECATED or tool.metadata.status == "deprecated"
