"""How likely it is that a tool does what is asked: a logistic over features of the match, fitted on training data only.

The constants come from `training/fit_confidence.py` (its printed report is in docs/decisions/011-fusion.md). Features
are functions of the query, the tool and counts over the permitted set; they use no catalog-wide mean, so they hold
for one tool as for thousands.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256

import numpy as np
import numpy.typing as npt

from toolcrib.retrieval.lexical import LexicalView
from toolcrib.retrieval.telling import term_weights
from toolcrib.retrieval.tokenize import query_terms
from toolcrib.types import IntArray

FEATURES = ("cosine", "coverage", "name_matched", "n_terms", "no_dense")
WEIGHTS: tuple[float, ...] = (5.07, 5.218, 2.595, 1.316, 2.813)
BIAS = -8.354
DEFAULT_FLOOR = 0.12
"""Under it fall 2 % of the answerable requests of the hardest training source (stabletoolbench, half kept out of the
fit).
"""


def basis_of(model_id: str) -> str:
    """What confidences of a model rest on: a calibration is of use only where this is the same."""
    return sha256(repr((model_id, FEATURES, WEIGHTS, BIAS)).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What ranking knows of its first hits, one entry per hit. `cosines` is None where the dense arm did not speak."""

    tools: IntArray
    names: tuple[str, ...]
    cosines: npt.NDArray[np.float64] | None


def probabilities(text: str, evidence: Evidence, view: LexicalView) -> npt.NDArray[np.float64]:
    """Probability for each hit that it does what the text asks: float64, shape (n_hits,)."""
    x = features(text, evidence, view)
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip((x * np.array(WEIGHTS)).sum(axis=1) + BIAS, -30.0, 30.0))))


def features(text: str, evidence: Evidence, view: LexicalView) -> npt.NDArray[np.float64]:
    """float64, shape (n_hits, n_features), columns as in `FEATURES`."""
    weights = term_weights(text)
    terms = tuple(weights)
    anywhere = view.matches(terms, evidence.tools)
    weight = np.array(list(weights.values()), dtype=np.float64)[:, None]
    total = max(float(weight.sum()), 1e-9)
    n_hits = len(evidence.tools)
    columns = (
        np.zeros(n_hits) if evidence.cosines is None else evidence.cosines,
        (weight * anywhere).sum(axis=0) / total,
        np.array([_share_in(name, weights) for name in evidence.names], dtype=np.float64),
        np.full(n_hits, np.log1p(len(terms))),
        np.full(n_hits, float(evidence.cosines is None)),
    )
    return np.stack(columns, axis=1)


def _share_in(name: str, weights: dict[str, float]) -> float:
    """Share of the telling words of a tool's name that the query says."""
    terms = name_terms(name)
    return sum(term in weights for term in terms) / len(terms) if terms else 0.0


@lru_cache(maxsize=65_536)
def name_terms(name: str) -> tuple[str, ...]:
    """The telling words of a tool's name. Remembered: the names of hits come again with each request."""
    return query_terms(name)
