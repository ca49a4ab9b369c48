"""Which hits serve one capability, so that operating rules may choose between them.

Two ways to be twins, both within one part of the task only:

    declared    the operator put both into one `equivalent` group, whatever their scores
    near        scores within `near_score` of the better one, and definitions that mean the same (`near_meaning`)

Above: `prefer.py`. Below: nothing.

Invariants
1. Groups do not creep: every near member was measured against the group's best hit, never against a neighbour.
2. Groups depend on which hits there are and on their scores, not on the order they come in: ordering a ranking by
   preference does not change its groups.
3. A tool that the task names has only named twins: what somebody asked for by name is not put behind another tool.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

from toolcrib.types import Hit, RoutingRules

Similarity: TypeAlias = Callable[[int, int], float | None]
"""Cosine of the definitions of two tools, by tool number; None where nobody can say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinGroup:
    """Two or more hits that serve one capability.

    Args:
        places: of the hits, ascending.
        order: the tool ids of the `equivalent` group that holds two of them, in its owner's order; else empty.
    """

    places: tuple[int, ...]
    order: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class _Group:
    best: Hit
    places: list[int]
    order: tuple[str, ...] = ()


def twin_groups(hits: Sequence[Hit], *, rules: RoutingRules, similarity: Similarity | None) -> tuple[TwinGroup, ...]:
    """The groups among these hits, disjoint, by their first place.

    A tool in several `equivalent` groups counts for the first one. Without `similarity` only declared twins are known.
    """
    by_score = sorted(range(len(hits)), key=lambda place: (-hits[place].score, hits[place].tool_id, place))
    groups = _declared(hits, by_score, rules)
    taken = {place for group in groups for place in group.places}
    declared, within = list(groups), deque[_Group]()
    for place in by_score if similarity is not None else ():
        if place in taken:
            continue
        hit = hits[place]
        # Scores fall: a group out of reach of this one is out of reach of all that follow.
        while within and not _near_in_score(within[0].best, hit, rules):
            within.popleft()
        home = _home(hit, chain(declared, within), rules, similarity)
        if home is None:
            groups.append(_Group(best=hit, places=[place]))
            within.append(groups[-1])
        else:
            home.places.append(place)
    found = (TwinGroup(places=tuple(sorted(g.places)), order=g.order) for g in groups if len(g.places) > 1)
    return tuple(sorted(found, key=lambda group: group.places))


def _declared(hits: Sequence[Hit], by_score: Sequence[int], rules: RoutingRules) -> list[_Group]:
    """Groups out of the operator's `equivalent` groups, as far as two or more of their tools are there."""
    number_of: dict[str, int] = {}
    for number, tool_ids in enumerate(rules.equivalent):
        for tool_id in tool_ids:
            number_of.setdefault(tool_id, number)
    members: dict[tuple[int, int, bool], list[int]] = {}
    for place in by_score:
        hit = hits[place]
        if hit.tool_id in number_of:
            members.setdefault((number_of[hit.tool_id], hit.capability, hit.named), []).append(place)
    return [
        _Group(best=hits[places[0]], places=places, order=rules.equivalent[number])
        for (number, _, _), places in members.items()
        if len(places) > 1
    ]


def _home(hit: Hit, groups: Iterable[_Group], rules: RoutingRules, similarity: Similarity | None) -> _Group | None:
    """The first group whose best hit means the same, is near in score, and answers the same part."""
    if similarity is None:
        return None
    for group in groups:
        best = group.best
        alike = similarity(best.tool_idx, hit.tool_idx)
        if (
            alike is not None
            and alike >= rules.near_meaning
            and (best.capability, best.named) == (hit.capability, hit.named)
            and _near_in_score(best, hit, rules)
        ):
            return group
    return None


def _near_in_score(best: Hit, hit: Hit, rules: RoutingRules) -> bool:
    return abs(best.score - hit.score) <= rules.near_score * max(abs(best.score), abs(hit.score))
