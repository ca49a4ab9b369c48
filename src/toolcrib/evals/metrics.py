"""The figures of finding tools, each with its formula and where it comes from. Pure; all are 0 to 1.

Above: `summary.py`. A task needs capabilities; each has a set of acceptable tools, any of which will do. What is judged
is a ranking of tools. With one acceptable tool per capability these are the usual figures of search, and a test holds
them to `ir-measures`.

    ranks     for each capability, the place of its first acceptable tool, from 1; 0 when it is not in the ranking
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


def recall(ranks: Sequence[int], k: int) -> float:
    """Share of capabilities with an acceptable tool among the first `k`.

    Formula: |{c: 1 <= rank(c) <= k}| / |capabilities|. A second tool for a capability counts nothing.
    Source: subtopic recall (S-recall), Zhai, Cohen and Lafferty, SIGIR 2003; with one tool per capability, R@k.
    """
    return sum(0 < rank <= k for rank in ranks) / len(ranks)


def completeness(ranks: Sequence[int], k: int) -> float:
    """1 when every capability has an acceptable tool among the first `k`, else 0.

    Formula: recall@k == 1. An agent that lacks one tool of the three that a task needs cannot finish it.
    Source: COMP@K, Qu et al., "Towards Completeness-Oriented Tool Retrieval", CIKM 2024.
    """
    return float(all(0 < rank <= k for rank in ranks))


def ndcg(ranks: Sequence[int], k: int) -> float:
    """Normalised discounted cumulative gain, gain once per capability.

    Formula: DCG = sum over places r <= k of gain(r) / log2(r + 1), where gain(r) is the number of capabilities whose
    first acceptable tool stands at r; divided by the DCG of one new capability at each place, at most 1 (one tool that
    serves several capabilities could beat that).
    Source: Järvelin and Kekäläinen, TOIS 2002; gain once per subtopic as in alpha-nDCG with alpha = 1, Clarke et al.,
        SIGIR 2008.
    """
    gains = Counter(rank for rank in ranks if 0 < rank <= k)
    found = sum(gain / math.log2(rank + 1) for rank, gain in gains.items())
    best = sum(1 / math.log2(rank + 1) for rank in range(1, min(len(ranks), k) + 1))
    return min(1.0, found / best)


def reciprocal_rank(ranks: Sequence[int]) -> float:
    """1 over the place of the first acceptable tool of all; 0 when there is none. Its mean is the MRR.

    Formula: 1 / min(rank(c): rank(c) > 0).
    Source: Voorhees, TREC-8 question answering track, 1999.
    """
    first = min((rank for rank in ranks if rank), default=0)
    return 1 / first if first else 0.0


def auroc(positive: FloatArray | Sequence[float], negative: FloatArray | Sequence[float]) -> float | None:
    """How well confidence tells tasks that some tool fits from tasks that none fits.

    Formula: P(confidence of a positive > confidence of a negative) + P(equal) / 2 over all pairs. 0.5 is chance.
    Source: Mann and Whitney 1947; Hanley and McNeil, Radiology 1982.
    Args:
        positive: confidences where some tool fits. negative: where none does.
    Returns:
        None where there is nothing to tell apart.
    """
    high, low = np.asarray(positive, dtype=np.float64), np.sort(np.asarray(negative, dtype=np.float64))
    if not len(high) or not len(low):
        return None
    below = np.searchsorted(low, high, side="left")
    upto = np.searchsorted(low, high, side="right")
    return float((below + upto).sum() / (2.0 * len(high) * len(low)))


def quantile(values: Sequence[float], share: float) -> float | None:
    """The value that `share` of all values are at most, linear between two; None of nothing."""
    return float(np.quantile(np.asarray(values, dtype=np.float64), share)) if len(values) else None
