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

from toolcrib.types import BoolArray, Hit, RoutingRules

Similar: TypeAlias = Callable[[Sequence[int], float], BoolArray | None]
"""Of tools, by number, which pairs' definitions have at least this cosine: bool, shape (n, n); None where nobody can
say.
"""


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
    """`places`: of the hits, the best first."""

    places: list[int]
    order: tuple[str, ...] = ()


def twin_groups(hits: Sequence[Hit], *, rules: RoutingRules, similar: Similar | None) -> tuple[TwinGroup, ...]:
    """The groups among these hits, disjoint, by their first place.

    A tool in several `equivalent` groups counts for the first one. Without `similar` only declared twins are known.
    """
    near = _near_in_meaning(hits, rules, similar)
    if not near and not rules.equivalent:
        return ()
    by_score = sorted(range(len(hits)), key=lambda place: (-hits[place].score, hits[place].tool_id, place))
    groups = _declared(hits, by_score, rules)
    taken = {place for group in groups for place in group.places}
    declared, within = list(groups), deque[_Group]()
    for place in by_score:
        if place in taken or place not in near:  # who is near to nobody neither joins a group nor is joined
            continue
        hit = hits[place]
        # Scores fall: a group out of reach of this one is out of reach of all that follow.
        while within and not _near_in_score(hits[within[0].places[0]], hit, rules):
            within.popleft()
        home = _home(place, chain(declared, within), hits, near[place], rules)
        if home is None:
            groups.append(_Group(places=[place]))
            within.append(groups[-1])
        else:
            home.places.append(place)
    found = (TwinGroup(places=tuple(sorted(g.places)), order=g.order) for g in groups if len(g.places) > 1)
    return tuple(sorted(found, key=lambda group: group.places))


def _near_in_meaning(hits: Sequence[Hit], rules: RoutingRules, similar: Similar | None) -> dict[int, list[bool]]:
    """For each place that any other is near to, which ones are."""
    table = None if similar is None else similar([hit.tool_idx for hit in hits], rules.near_meaning)
    if table is None:
        return {}
    some = (table.sum(axis=1) - table.diagonal()).tolist()
    return {place: table[place].tolist() for place, n_near in enumerate(some) if n_near}


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
        _Group(places=places, order=rules.equivalent[number])
        for (number, _, _), places in members.items()
        if len(places) > 1
    ]


def _home(
    place: int, groups: Iterable[_Group], hits: Sequence[Hit], near: Sequence[bool], rules: RoutingRules
) -> _Group | None:
    """The first group whose best hit means the same, is near in score, and answers the same part."""
    hit = hits[place]
    for group in groups:
        first = group.places[0]
        best = hits[first]
        if (
            near[first]
            and (best.capability, best.named) == (hit.capability, hit.named)
            and _near_in_score(best, hit, rules)
        ):
            return group
    return None


def _near_in_score(best: Hit, hit: Hit, rules: RoutingRules) -> bool:
    return abs(best.score - hit.score) <= rules.near_score * max(abs(best.score), abs(hit.score))
