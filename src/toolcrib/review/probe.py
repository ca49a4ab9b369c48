"""The probe at intake: does a new definition turn up for requests that have nothing to do with it?

A tool that is stuffed with words (request words, common nouns, long lists of topics) takes places from the right tools
in every search. No single text gives that away; asking does: 300 fixed, varied requests are searched in the catalog
that the tool would join, and the share is counted in which it would be among the first five. An honest tool answers a
few requests, a stuffed one many.

Above: `intake.py`, which brings the search (a room of this floor knows no other). Beside it: `lint.py`, whose kind of
finding this gives.

Invariants
1. A finding holds nothing back by itself: it tells a reviewer what to look at first.
2. Tools that wait do not shield each other: with enough tools in service, places are counted among those alone.
3. The same catalog and search give the same findings.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import TypeAlias

from toolcrib.review.lint import Finding

RULE = "search-hijack"
DEPTH = 5
"""Places that count: what a selection holds by default."""
MIN_TOOLS = 50
"""Below this, five tools are a tenth of the catalog, and being among them says nothing."""
PROBE_VERSION = 1
"""Raised when requests or limits change: findings kept from before are then made anew."""
_FLOOR = 0.03
_TIMES_EVEN = 5.0
_N_SHOWN = 3

Search: TypeAlias = Callable[[str], Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entered:
    """How often one tool was among the first five. `requests`: those where it was, best place first."""

    share: float
    requests: tuple[str, ...]


@lru_cache(maxsize=1)
def probe_requests() -> tuple[str, ...]:
    """The fixed requests: written for this project over tools of 155 servers, and never trained on.

    A third are put as people put them to an assistant ("Can you recommend ..."): a tool made of those very words is
    found for nothing else.
    """
    text = (files("toolcrib.review") / "probe_requests.txt").read_text(encoding="utf-8")
    return tuple(text.splitlines())


def limit(n_rivals: int) -> float:
    """The share of requests above which a tool is worth a look, 0 to 1.

    Five places among few tools come round more often: of `n` tools each has an even share of 5 / n. The honest tool
    found most often, new or in service, had 26 % among 75 tools, 13 % among 200, 5 % among 1,000, 2 % among 4,000.
    """
    return _FLOOR + _TIMES_EVEN * DEPTH / max(1, n_rivals)


def entered(search: Search, *, waiting: Collection[str], rivals: Collection[str]) -> dict[str, Entered]:
    """How often each waiting tool comes before all but four of its rivals.

    Args:
        search: a task -> tool ids, best first, of a catalog that holds the waiting tools as well.
        rivals: the tools that count as taking a place.
    """
    asked, standing, others = probe_requests(), frozenset(waiting), frozenset(rivals)
    found: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for request in asked:
        n_before = 0
        for tool_id in search(request):
            if n_before >= DEPTH:
                break
            if tool_id in standing:
                found[tool_id].append((n_before, request))
            n_before += tool_id in others
    return {
        tool_id: Entered(share=len(places) / len(asked), requests=tuple(request for _, request in sorted(places)))
        for tool_id, places in found.items()
    }


def probe(search: Search, *, waiting: Collection[str], in_service: Collection[str]) -> dict[str, Finding]:
    """Findings about tools that wait, by tool id.

    Args:
        search: as in `entered`; it should give some fifty ids, so that tools that wait cannot shield each other.
        in_service: the tools that serve now; where they are fewer than `MIN_TOOLS`, those that wait count as well.
    """
    rivals = in_service if len(in_service) >= MIN_TOOLS else {*in_service, *waiting}
    if len(rivals) < MIN_TOOLS:
        return {}
    most = limit(len(rivals))
    shares = entered(search, waiting=waiting, rivals=rivals)
    return {tool_id: _finding(found, most) for tool_id, found in sorted(shares.items()) if found.share > most}


def _finding(found: Entered, most: float) -> Finding:
    shown = "; ".join(repr(request) for request in found.requests[:_N_SHOWN])
    return Finding(
        rule=RULE,
        pointer="",
        evidence=shown,
        why=(
            f"among the first {DEPTH} for {found.share:.0%} of {len(probe_requests())} varied requests "
            f"(honest tools of a catalog of this size: at most {most:.0%}); "
            "its text may be stuffed with words to be found for everything"
        ),
    )
