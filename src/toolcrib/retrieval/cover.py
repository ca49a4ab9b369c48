"""The order of a ranking's first places: tools that together cover what a task speaks of.

    worth of a tool = its score for the whole task + its score for the facet that it answers best

Each tool taken lowers what the facets it answers still count for, so that a second tool for one facet waits behind the
first tool for another. Above it: `search`, which hands over the scores of a few candidates. Chosen on training sets
against clause heads (completeness@10 +3.3 points), discounted terms, and residual vectors (both of which lost).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

N_COVERING = 10
"""So many places are given by coverage; behind them the scores decide, undiscounted."""
FACET_WEIGHT = 1.0
FIRST_WEIGHT = 0.5
"""The facets' weight for the first place: the tool that fits the whole task should lead."""
ANSWERED = 0.6
"""Share of a facet that is taken away by a tool which answers it as well as any does."""


def covering(whole: npt.NDArray[np.float64], facets: npt.NDArray[np.float64]) -> list[int]:
    """Candidates, best first; ties by place.

    Args:
        whole: float64, shape (n,): scores for the whole task.
        facets: float64, shape (n_facets, n): scores for each facet; none for a task of one facet.
    """
    if len(facets) == 0:
        return list(np.argsort(-whole, kind="stable").tolist())
    share = np.clip(facets / np.maximum(facets.max(axis=1, keepdims=True), 1e-9), 0.0, 1.0)
    still = np.ones((len(facets), 1))
    waiting = whole.copy()
    order: list[int] = []
    for weight in (FIRST_WEIGHT, *([FACET_WEIGHT] * (N_COVERING - 1)))[: len(whole)]:
        best = int((waiting + weight * (facets * still).max(axis=0)).argmax())
        order.append(best)
        waiting[best] = -np.inf
        still = np.minimum(still, 1.0 - ANSWERED * share[:, best : best + 1])
    rest = np.flatnonzero(np.isfinite(waiting))
    total = whole + FACET_WEIGHT * facets.max(axis=0)
    return [*order, *rest[np.argsort(-total[rest], kind="stable")].tolist()]
