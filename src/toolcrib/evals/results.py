"""What came of a case: the measured values that everything else is made of.

Above: `summary.py`, `compare.py`, `page.py`. Below: `run.py` makes them.
"""

from __future__ import annotations

from dataclasses import dataclass

from toolcrib.evals.cases import Case
from toolcrib.types import Stage

BUDGETS = (250, 500, 1_000, 2_000, 4_000, 8_000, 16_000)
"""Tokens for definitions at which recall is drawn."""
EQUAL_TOKENS = (1_000, 2_000, 4_000, 8_000)
"""Those of them at which ways of finding tools stand beside each other in tables."""
EQUAL_FIGURES = {
    "recall": "recall",
    "completeness": "all that a task needs",
    "several": "the same, tasks for several tools",
}
"""What is told at equal tokens, and in which words."""
MAX_FILLED = 20
"""Tools of a ranking that are filled into tokens, at most: Toolcrib's and any other's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """A capability that was not offered: the stage that lost its last acceptable tool, and how."""

    capability: int
    stage: Stage
    code: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """The answer of the whole road to one case.

    Args:
        ranks: for each capability the place of its first acceptable tool in the ranking, from 1; 0: not in it.
        first_rank: the place of the first acceptable tool of all, 0: none in the ranking.
        ranking: tool ids, best first, the first ten.
        offered: tool ids of the selection. offers: for each capability whether it is among them.
        in_service, permitted: for each capability, whether some acceptable tool of it is.
        by_budget: for each of `BUDGETS`, the share of capabilities covered when the ranking is filled in up to it.
        rounds: requests until all is covered, if each asked for the next `limit` of the ranking; 0: never.
        misfits: tools whose expected arguments do not fit their schema as it is now, and why, of `n_arguments`.
        exposed: what of a tool that the caller may not know of showed, and where.
        wall_ms, cpu_ms: of the select, milliseconds.
    """

    ranks: tuple[int, ...]
    first_rank: int
    ranking: tuple[str, ...]
    outcome: str
    offered: tuple[str, ...]
    offers: tuple[bool, ...]
    in_service: tuple[bool, ...]
    permitted: tuple[bool, ...]
    tokens: int
    tokens_of_first: int
    by_budget: tuple[float, ...]
    rounds: int
    lost: tuple[Lost, ...]
    forbidden: tuple[str, ...]
    moved: int
    misfits: tuple[str, ...]
    n_arguments: int
    exposed: tuple[str, ...]
    all_tokens: int
    confidence: float
    wall_ms: float
    cpu_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One case, asked.

    Args:
        searched: None for a case that is about refusal over its own candidates alone.
        confidence: of the ranking over the case's candidates, or the whole; what refusal is measured by.
        refused: no tool was offered.
        fits: some acceptable tool was there to be offered (True), none fits (False), or the case expects a tool that
            this caller could not have been offered at all (None): refusal is not measured on it.
    """

    set_name: str
    case: Case
    searched: Searched | None
    confidence: float
    refused: bool
    fits: bool | None

    @property
    def key(self) -> tuple[str, str]:
        return self.set_name, self.case.case_id
