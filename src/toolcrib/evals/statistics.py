"""How sure a figure is: bootstrap intervals, and the paired difference of two runs. Pure and seeded.

Above: `summary.py`, `against.py`, `compare.py`. Cases are drawn again with replacement, whole: a case's figures stay
together. Over several sets each set is drawn for itself and the sets' means are averaged, as the figure itself is.

Source:
    Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapters 13 (percentile interval) and 16; paired over
    queries as in Sakai, SIGIR 2006.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from toolcrib.evals.metrics import auroc

FloatArray = npt.NDArray[np.float64]
N_DRAWS = 1_000
_TAILS = (2.5, 97.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A mean difference, now minus before, with its 95 % interval over `n` pairs of cases."""

    mean: float
    low: float
    high: float
    n: int

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.low > 0 or self.high < 0


def intervals(sets: Sequence[FloatArray], *, seed: int, n_draws: int = N_DRAWS) -> list[tuple[float, float]]:
    """95 % intervals of column means, averaged over sets.

    Args:
        sets: per set float64, shape (n_cases, n_columns); NaN where a case has no such figure.
    Returns:
        (low, high) for each column; NaN for a column without values.
    """
    drawn = [_means(values, seed=seed + place, n_draws=n_draws) for place, values in enumerate(sets) if len(values)]
    if not drawn:
        return []
    stacked = np.stack(drawn)
    known = np.isfinite(stacked)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(known, stacked, 0.0).sum(axis=0) / known.sum(axis=0)
    return [_ends(column) for column in means.T]


def _ends(drawn: FloatArray) -> tuple[float, float]:
    """The interval of a figure's draws; a draw that happened to hold no case of it counts for nothing."""
    known = drawn[np.isfinite(drawn)]
    if not len(known):
        return float("nan"), float("nan")
    low, high = np.percentile(known, _TAILS)
    return float(low), float(high)


def _means(values: FloatArray, *, seed: int, n_draws: int) -> FloatArray:
    """float64, shape (n_draws, n_columns): the means of cases drawn again."""
    random = np.random.default_rng(seed)
    known = np.isfinite(values)
    filled = np.where(known, values, 0.0)
    weights = known.astype(np.float64)
    means = np.empty((n_draws, values.shape[1]))
    for draw in range(n_draws):
        times = np.bincount(random.integers(0, len(values), len(values)), minlength=len(values))
        count = times @ weights
        with np.errstate(invalid="ignore", divide="ignore"):
            means[draw] = (times @ filled) / count
    return np.where(np.isfinite(means), means, np.nan)


def auroc_interval(
    groups: Sequence[tuple[FloatArray, FloatArray]], *, seed: int, n_draws: int = N_DRAWS
) -> tuple[float, float] | None:
    """95 % interval of the mean AUROC over groups of (positive, negative) confidences; both sides drawn again."""
    pairs = [(high, low) for high, low in groups if len(high) and len(low)]
    if not pairs:
        return None
    random = np.random.default_rng(seed)
    n_draws = min(n_draws, max(100, 4_000_000 // max(len(high) + len(low) for high, low in pairs)))
    drawn = np.empty(n_draws)
    for draw in range(n_draws):
        each = [
            auroc(high[random.integers(0, len(high), len(high))], low[random.integers(0, len(low), len(low))])
            for high, low in pairs
        ]
        drawn[draw] = np.mean([value for value in each if value is not None])
    return _ends(drawn)


def paired(sets: Sequence[FloatArray], *, seed: int, n_draws: int = N_DRAWS) -> Difference | None:
    """The mean of paired differences, averaged over sets, with its interval.

    Args:
        sets: per set float64, shape (n_cases,): now minus before, case by case; NaN where one of them is missing.
    """
    known = [values[np.isfinite(values)] for values in sets]
    known = [values for values in known if len(values)]
    if not known:
        return None
    ((low, high),) = intervals([values[:, None] for values in known], seed=seed, n_draws=n_draws)
    mean = float(np.mean([values.mean() for values in known]))
    return Difference(mean=mean, low=low, high=high, n=sum(map(len, known)))
