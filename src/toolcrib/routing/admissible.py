"""Hard constraints: what operating rules rule out for a caller, whatever the task.

Above: `pipeline.py`, before retrieval, so that a tool ruled out here is neither listed, found nor callable (I10).
Below: `facts.py` (the columns that are read), `drops.py` (what was taken out, and why).

Invariants
1. A function of the caller and of one tool at a time: no other tool matters (I1).
2. An agent that acts for somebody is held to what both may: each constraint must hold for either of them.
3. "None" is never "any": a caller without a region is in no region, and a tool that does not say where it keeps data
   keeps it in no allowed place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

import numpy as np

from toolcrib.errors import CatalogError
from toolcrib.routing.drops import Drops
from toolcrib.routing.facts import Column, RoutingFacts, routing_facts
from toolcrib.types import BoolArray, Caller, ResidencyRule, Risk, RoutingRules, Tool


def admissible(
    tools: Sequence[Tool],
    *,
    caller: Caller,
    permitted: BoolArray,
    rules: RoutingRules,
    facts: RoutingFacts | None = None,
) -> tuple[BoolArray, Drops]:
    """What is left of `permitted`, and a move for every tool that was taken out, in the order of the tools.

    Where several constraints rule a tool out, the first of region, environment, residency and risk ceiling is named.

    Args:
        tools: of one snapshot, in its order.
        permitted: bool, shape (n_tools,): what policy permits this caller; not changed.
        facts: of these tools; made here if absent, which is what takes long.
    Raises:
        CatalogError: `facts` or `permitted` belong to other tools.
    """
    known = routing_facts(tools) if facts is None else facts
    left = np.array(permitted, dtype=np.bool_)
    if known.n_tools != len(tools) or left.shape != (len(tools),):
        raise CatalogError(
            f"routing got {len(tools)} tools, facts of {known.n_tools} and a permitted set of {left.shape}",
            hint="take all three from one snapshot",
        )
    grounds: list[tuple[str, str]] = []
    ground_of = np.full(len(tools), -1, dtype=np.int64)
    for code, column, why in _constraints(caller, rules, known):
        reasons = [why(value) for value in column.values]
        if not any(reasons):
            continue
        against: BoolArray = np.array([bool(reason) for reason in reasons], dtype=np.bool_)
        out = against[column.code_of] & left
        ground_of[out] = column.code_of[out] + len(grounds)
        grounds += [(code, reason) for reason in reasons]
        left &= ~out
    numbers = np.flatnonzero(ground_of >= 0).astype(np.int64)
    return left, Drops(tools, numbers=numbers, ground_of=ground_of[numbers], grounds=grounds)


_Constraint = tuple[str, Column[Any], Callable[[Any], str]]


def _constraints(caller: Caller, rules: RoutingRules, facts: RoutingFacts) -> Iterator[_Constraint]:
    """(code, what is read, value -> why it rules a tool out, or ""), one for each rule and party."""
    parties = tuple(_parties(caller))
    for party in parties:
        yield "region", facts.regions, partial(_region, party)
    for party in parties:
        yield "environment", facts.environments, partial(_environment, party)
    for rule in rules.residency:
        if any(_is_about(rule, party.caller) for party in parties):
            yield "residency", facts.kept, partial(_residency, rule)
    ceilings = [(c.max_risk, party) for party in parties for c in rules.risk_ceilings if c.holds_for(party.caller)]
    if ceilings:
        ceiling, party = min(ceilings, key=lambda row: row[0].level)
        yield "risk_ceiling", facts.risk, partial(_risk, party, ceiling)


@dataclass(frozen=True, slots=True)
class _Party:
    """One of those who must all pass, and words for it."""

    caller: Caller
    words: str


def _parties(caller: Caller) -> Iterator[_Party]:
    """The caller, and everybody it acts for."""
    first, *behind = caller.chain
    yield _Party(first, "the caller")
    for one in behind:
        yield _Party(one, f"{one.subject!r}, for whom it acts,")


def _region(party: _Party, regions: tuple[str, ...]) -> str:
    mine = party.caller.region
    if not regions or mine in regions:
        return ""
    return f"is kept to {', '.join(regions)}; {party.words} {f'is in {mine!r}' if mine else 'has no region'}"


def _environment(party: _Party, environments: tuple[str, ...]) -> str:
    mine = party.caller.environment
    if not environments or mine in environments:
        return ""
    return f"is for {', '.join(environments)}; {party.words} {f'is in {mine!r}' if mine else 'has no environment'}"


def _is_about(rule: ResidencyRule, caller: Caller) -> bool:
    return not rule.tenants or any(fnmatchcase(caller.tenant, glob) for glob in rule.tenants)


def _residency(rule: ResidencyRule, kept: tuple[str, tuple[str, ...]]) -> str:
    data_class, residency = kept
    if rule.data_classes and not any(fnmatchcase(data_class, glob) for glob in rule.data_classes):
        return ""
    allowed = ", ".join(rule.within) or "nowhere"
    if not residency:
        return f"does not say where it keeps data, which must stay within {allowed}"
    outside = [place for place in residency if place not in rule.within]
    return f"keeps data in {', '.join(outside)}; it must stay within {allowed}" if outside else ""


def _risk(party: _Party, ceiling: Risk, risk: Risk) -> str:
    if risk.level <= ceiling.level:
        return ""
    stage = f"is in stage {party.caller.stage!r}" if party.caller.stage else "has no stage"
    return f"its risk is {risk.value}; {party.words} {stage}, where the most is {ceiling.value}"
