"""One score from two arms: `cosine + 0.25 * bm25 / max(bm25)`.

By normalised score, not by rank: reciprocal rank fusion lost 1.5 points of recall@5 everywhere it was measured. Of the
normalisations that tie in quality (z-score, min-max, this one), this one needs no mean or deviation over tools, so it
is exact for any permitted set (I1).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from toolcrib.retrieval.vectors import kth_largest

LEXICAL_WEIGHT = 0.25
"""Chosen on acebench and the dev part of the written requests: more loses what is asked in other words, less what is
asked in the same."""
PART_WEIGHT = 0.5
"""How much the best part adds to the whole task's score. More loses what only the whole says; measured neutral to
better.
"""

_ABOVE_NOTHING = 5e-324
"""The smallest number above 0."""


def fuse(
    cosines: npt.NDArray[np.float64] | None, lexical: npt.NDArray[np.float64], *, peak: float
) -> npt.NDArray[np.float64]:
    """Fused score of each tool; lexical alone where there are no cosines. `peak`: the best of all lexical scores."""
    scaled = LEXICAL_WEIGHT / peak * lexical if peak > 0 else np.zeros_like(lexical)
    return scaled if cosines is None else cosines + scaled


def best_first(scores: npt.NDArray[np.float64], *, top_k: int) -> npt.NDArray[np.int64]:
    """Positions of the `top_k` largest scores above 0, best first; ties by position, also at the cut."""
    k = min(top_k, len(scores))
    if k <= 0:
        return np.zeros(0, dtype=np.int64)
    found = np.flatnonzero(scores >= max(kth_largest(scores, k), _ABOVE_NOTHING))
    return found[np.argsort(-scores[found], kind="stable")][:k]
