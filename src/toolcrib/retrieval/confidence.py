"""How likely it is that a tool does what is asked: a logistic over features of the match, fitted on training data only.

    request, tool ─▶ features ─▶ weights of the embedding model in use ─▶ probability ─▶ max over hits: that any fits

Weights lie in `model/confidence.npz`, made by `training/fit_confidence.py`; its report and what was looked at are in
docs/decisions/015-confidence.md. Above: `search`. Beside it: `calibration`, an operator's own map of these numbers.

Invariants
1. Features are functions of the request, the tool and the model; no mean over tools, so they hold for one tool as for
   thousands, and no tool that is not permitted has a say (I1).
2. `DEFAULT_FLOOR` means the same for every model: the fit puts there the confidence under which the stated share of
   answerable requests falls.
"""

from __future__ import annotations

import logging
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from io import BytesIO
from pathlib import Path

import numpy as np
import numpy.typing as npt

from toolcrib.errors import RetrievalError
from toolcrib.retrieval.lexical import LexicalView
from toolcrib.retrieval.telling import name_words, term_weights
from toolcrib.retrieval.vectors import Int8Array
from toolcrib.types import IntArray

FEATURES = ("cosine", "coverage", "name_matched", "n_terms", "asks")
"""`asks`: how much the request is like one for a tool, and unlike chat, by its direction alone."""
DEFAULT_FLOOR = 0.12
"""Below it lie 2 % of the answerable requests that were kept out of the fit, written directly, indirectly, as a need
and for several tools at once.
"""
FALSE_REFUSALS = 0.02
KINDS = ("static", "quality", "other", "none")
"""Weights for the bundled table, for it with the packaged encoder, for models never seen, and for words alone."""
MODEL_FILE = Path(__file__).parent / "model" / "confidence.npz"
_MAX_ASKS = 4.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What ranking knows of its first hits, one entry per hit.

    Args:
        cosines: None where the dense arm did not speak.
        asked: the request's vector, not adapted; int8, shape (dim,).
        model_id: of the embedder in use.
        said: share of the telling words of each name that the request says; worked out from the names if absent.
    """

    tools: IntArray
    names: tuple[str, ...]
    cosines: npt.NDArray[np.float64] | None
    asked: Int8Array | None = None
    model_id: str = "none"
    said: npt.NDArray[np.float64] | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Weights:
    """Of one kind of model. `direction`: float64, shape (dim,), of requests for a tool; empty where none is known."""

    weights: npt.NDArray[np.float64]
    bias: float
    direction: npt.NDArray[np.float64]
    offset: float

    def asks(self, asked: Int8Array | None) -> float:
        """How much a request is like one for a tool: about -4 to 4; 0 where nothing is known."""
        if asked is None or asked.shape != self.direction.shape:
            return 0.0
        whole = asked.astype(np.int64)
        length = float(np.sqrt(float((whole * whole).sum())))
        along = float((whole * self.direction).sum()) / length if length > 0 else 0.0
        return min(max(along + self.offset, -_MAX_ASKS), _MAX_ASKS)


_BUILT_IN = {
    kind: Weights(weights=np.array(weights), bias=bias, direction=np.zeros(0), offset=0.0)
    for kind, weights, bias in (
        ("other", (5.7, 3.6, 1.4, -0.1, 0.0), -3.45),
        ("none", (0.0, 6.3, 2.3, 0.5, 0.0), -3.57),
    )
}
"""For an installation whose file is damaged: those of the fit, rounded, in the order of `FEATURES`."""


def kind_of(model_id: str) -> str:
    """Which of `KINDS` a model's weights are."""
    if model_id == "none":
        return "none"
    for kind in ("static", "quality"):
        if model_id.startswith(f"toolcrib-{kind}-"):
            return kind
    return "other"


def basis_of(model_id: str) -> str:
    """What confidences of a model rest on: a calibration is of use only where this is the same."""
    mine = weights_of(kind_of(model_id))
    numbers = (mine.weights.tolist(), mine.bias, mine.direction.tolist(), mine.offset)
    return sha256(repr((model_id, FEATURES, numbers)).encode()).hexdigest()[:16]


def weights_of(kind: str) -> Weights:
    """The packaged weights of a kind; those of `other` where a kind has none yet, the built-in ones without a file."""
    known, _ = _packaged()
    return known.get(kind, known["other"])


def weights_fault() -> str:
    """Why the packaged weights are not in use, or ""."""
    return _packaged()[1]


@lru_cache(maxsize=1)
def _packaged() -> tuple[dict[str, Weights], str]:
    """The packaged weights; where they cannot be read the built-in ones, and why (I12)."""
    try:
        return read_weights(MODEL_FILE), ""
    except RetrievalError as fault:
        _log.error("confidence goes by its built-in weights: %s", fault)
        return _BUILT_IN, str(fault)


def read_weights(path: Path) -> dict[str, Weights]:
    """Weights by kind.

    Raises:
        RetrievalError: the file is missing or damaged, or was fitted for other features.
    """
    try:
        with np.load(BytesIO(path.read_bytes()), allow_pickle=False) as held:
            if tuple(held["features"].tolist()) != FEATURES:
                raise ValueError("it was fitted for other features")
            return {
                str(kind): Weights(
                    weights=held[f"{kind}_weights"].astype(np.float64),
                    bias=float(held[f"{kind}_bias"]),
                    direction=held[f"{kind}_direction"].astype(np.float64),
                    offset=float(held[f"{kind}_offset"]),
                )
                for kind in held["kinds"].tolist()
            }
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, zlib.error) as fault:
        raise RetrievalError(
            f"the weights of confidence cannot be read: {fault}", where=str(path), hint="reinstall toolcrib"
        ) from fault


def probabilities(text: str, evidence: Evidence, view: LexicalView) -> npt.NDArray[np.float64]:
    """Probability for each hit that it does what the text asks: float64, shape (n_hits,)."""
    mine = weights_of("none" if evidence.cosines is None else kind_of(evidence.model_id))
    x = features(text, evidence, view, asks=mine.asks(evidence.asked))
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip((x * mine.weights).sum(axis=1) + mine.bias, -30.0, 30.0))))


def features(text: str, evidence: Evidence, view: LexicalView, *, asks: float) -> npt.NDArray[np.float64]:
    """float64, shape (n_hits, n_features), columns as in `FEATURES`."""
    weights = term_weights(text)
    terms = tuple(weights)
    anywhere = view.matches(terms, evidence.tools)
    weight = np.array(list(weights.values()), dtype=np.float64)[:, None]
    coverage = (weight * anywhere).sum(axis=0) / max(float(weight.sum()), 1e-9)
    n_hits = len(evidence.tools)
    columns = (
        np.zeros(n_hits) if evidence.cosines is None else evidence.cosines,
        coverage,
        _said(evidence, weights),
        np.full(n_hits, np.log1p(len(terms))),
        np.full(n_hits, asks),
    )
    return np.stack(columns, axis=1)


def _said(evidence: Evidence, weights: Mapping[str, float]) -> npt.NDArray[np.float64]:
    if evidence.said is not None:
        return evidence.said
    return np.array([_share_in(name, weights) for name in evidence.names], dtype=np.float64)


def _share_in(name: str, weights: Mapping[str, float]) -> float:
    """Share of the telling words of a tool's name that the query says."""
    terms = name_words(name)
    return sum(term in weights for term in terms) / len(terms) if terms else 0.0
