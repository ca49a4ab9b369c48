"""The learned ranker: small trees over what is known of each candidate, added to the fused score.

    candidates of a request ─▶ features (n, len(FEATURES)) ─▶ trees ─▶ what the fused score gains

Fitted by `training/fit_ranker.py` (LambdaMART, training sets only) and kept as a few flat arrays; LightGBM is not
needed to read them. Above it: `search`. A feature is a function of the request, the tool, counts over the permitted
tools and the request's other candidates, so I1 holds; no text of a tool is read but its name.

Invariants
1. Same candidates, same numbers: all sums run over terms and trees in a fixed order.
2. Without a file for the embedding model in use, or without vectors, the ranker adds nothing.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from io import BytesIO
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from toolcrib.errors import RetrievalError
from toolcrib.retrieval.document import FIELDS
from toolcrib.retrieval.lexical import K1, FloatArray, LexicalView
from toolcrib.retrieval.name_terms import NOT_HERE, NameTerms
from toolcrib.retrieval.telling import name_words, term_weights
from toolcrib.types import IntArray, Tool

WEIGHT = 0.1
"""What a tree score of 1 adds to a fused score. More gained a little on kinds of requests that the trees had seen, and
lost on a set that they had not.
"""
MAX_TERMS = 32
"""Of a longer request the most telling terms are looked at."""
N_LEAVES = 8
"""A tree's leaves, so that one byte holds which of them can still be reached."""
FEATURES = (
    *(
        "total_gap",
        "total_rank",
        "lexical_share",
        "lexical_mass",
        "lexical_rank",
        "cosine",
        "cosine_gap",
        "cosine_rank",
    ),
    *("server", "server_gap", "facet_gap", "facet_share", "facet_mean", "n_facets"),
    *(
        "any",
        "any_gap",
        "long",
        "long_gap",
        "both",
        "name",
        "name_gap",
        "server_words",
        "description",
        "argument_texts",
    ),
    *("name_said", "name_said_gap", "name_unsaid", "name_unsaid_mass", "density", "length"),
    *("n_terms", "n_tools", "unknown", "flatness"),
)
"""`*_gap`: less the best candidate's. `any` to `argument_texts`: share of the request's telling words in that field.
`name_said`: share of the name that the request says.
"""
_FIELD = {field.name: row for row, field in enumerate(FIELDS)}
_MODELS = Path(__file__).parent / "model"
_VALUE_FLOOR, _USUAL_LENGTH = 0.3, 6.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """What search knows of a request's candidates, one entry each.

    Args:
        text: the request, without what it forbids.
        tools: tool numbers. names: their names.
        total: fused scores. lexical, server: BM25F scores, server evidence. peak: the best BM25F score of all tools.
        cosines: adapted ones; None where the dense arm did not speak.
        facets: fused scores for each facet, shape (n_facets, n).
    """

    text: str
    tools: IntArray
    names: Sequence[str]
    total: FloatArray
    lexical: FloatArray
    peak: float
    cosines: FloatArray | None
    server: FloatArray
    facets: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Trees:
    """An ensemble of trees with at most eight leaves each, laid out for vectors.

    Args:
        features, limits: int64, float64, shape (7, n_trees): a node asks whether feature <= limit.
        masks: uint8, shape (7, n_trees): leaves that stay reachable where the answer is no.
        values: float64, shape (n_trees, 8): leaves from left to right; the lowest one reachable counts.
    """

    features: IntArray
    limits: FloatArray
    masks: npt.NDArray[np.uint8]
    values: FloatArray

    by_leaves: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # The value of each tree for each set of leaves that may be left: one look-up instead of two.
        object.__setattr__(self, "by_leaves", self.values[:, _LOWEST].ravel())

    def scores(self, x: FloatArray) -> FloatArray:
        """float64, shape (n,), of features of shape (n_features, n).

        Source:
            QuickScorer, Lucchese et al., SIGIR 2015: all nodes at once, a bit for each leaf.
        """
        n_trees, n = len(self.values), x.shape[1]
        no = x.take(self.features.ravel(), axis=0) > self.limits.ravel()[:, None]
        reachable = (no.view(np.uint8) - np.uint8(1)) | self.masks.ravel()[:, None]  # all leaves where it is no "no"
        left = np.bitwise_and.reduce(reachable.reshape(-1, n_trees, n), axis=0)
        found: FloatArray = self.by_leaves.take(left + _N_SETS * np.arange(n_trees)[:, None]).sum(axis=0)
        return found


_LOWEST = np.array([(n & -n).bit_length() - 1 if n else 0 for n in range(256)], dtype=np.int64)
_N_SETS = len(_LOWEST)


@lru_cache(maxsize=8)
def trees_for(model_id: str) -> Trees | None:
    """The trees fitted for an embedding model; None for one that there are none for."""
    files = {"toolcrib-static-": "ranker.npz", "toolcrib-quality-": "ranker-quality.npz"}
    paths = [_MODELS / name for prefix, name in files.items() if model_id.startswith(prefix)]
    return read_trees(paths[0]) if paths and paths[0].exists() else None


def read_trees(path: Path) -> Trees:
    """Raises RetrievalError for a file that is damaged, whose arrays do not fit together, or of other features."""
    try:
        with np.load(BytesIO(path.read_bytes()), allow_pickle=False) as held:
            if tuple(held["names"].tolist()) != FEATURES:
                raise ValueError("it was fitted for other features")
            _check({name: held[name] for name in ("features", "limits", "masks", "values")})
            return Trees(
                features=held["features"].astype(np.int64),
                limits=held["limits"].astype(np.float64),
                masks=held["masks"],
                values=held["values"].astype(np.float64),
            )
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, zlib.error) as fault:
        raise RetrievalError(
            f"the ranker cannot be read: {fault}", where=str(path), hint="reinstall toolcrib"
        ) from fault


def _check(held: Mapping[str, npt.NDArray[Any]]) -> None:
    """Raises ValueError for arrays that are no trees over `FEATURES`."""
    n_trees = len(held["values"])
    for name, kinds in {"features": "iu", "limits": "f", "masks": "u", "values": "f"}.items():
        shape = (n_trees, N_LEAVES) if name == "values" else (N_LEAVES - 1, n_trees)
        if held[name].shape != shape or held[name].dtype.kind not in kinds:
            raise ValueError(f"{name} is {held[name].dtype} of shape {held[name].shape}, not of shape {shape}")
    if held["masks"].dtype != np.uint8:
        raise ValueError(f"masks is of type {held['masks'].dtype}, not uint8")
    if held["features"].min(initial=0) < 0 or held["features"].max(initial=0) >= len(FEATURES):
        raise ValueError(f"a tree asks for a feature outside 0 to {len(FEATURES) - 1}")
    if np.isnan(held["limits"]).any() or not np.isfinite(held["values"]).all():
        raise ValueError("a number is not finite")


def features(found: Candidates, view: LexicalView, names_said: FloatArray) -> FloatArray:
    """float64, shape (len(FEATURES), n), rows as in `FEATURES`. `names_said`: as `NameWords.of` gives it."""
    said = _Said.of(found.text, view)
    n = len(found.tools)
    has = view.field_counts(said.terms, found.tools) > 0
    by_field = (said.say[None, :, None] * has).sum(axis=1) / said.mass
    anywhere = has.any(axis=0)
    any_ = (said.say[:, None] * anywhere).sum(axis=0) / said.mass
    long = (said.length[:, None] * anywhere).sum(axis=0) / max(float(said.length.sum()), 1e-9)
    both = (said.say[:, None] * (has[_FIELD["name"]] & has[_FIELD["description"]])).sum(axis=0) / said.mass
    name, description = by_field[_FIELD["name"]], by_field[_FIELD["description"]]
    mass, hit, n_hit, n_words = names_said
    name_said = hit / np.maximum(mass, 1e-9)
    length = view.lengths(found.tools)[_FIELD["description"]].astype(np.float64)
    cosines = np.zeros(n) if found.cosines is None else found.cosines
    facets = found.facets if len(found.facets) else found.total[None, :]
    best_facet = facets.max(axis=0)
    ordered = np.sort(found.lexical)
    rows = (
        _gap(found.total),
        _place(found.total),
        found.lexical / max(found.peak, 1e-9),
        found.lexical / ((K1 + 1.0) * max(said.idf_mass, 1e-9)),
        _place(found.lexical),
        cosines,
        _gap(cosines),
        _place(cosines),
        found.server,
        _gap(found.server),
        _gap(best_facet),
        (facets / np.maximum(facets.max(axis=1, keepdims=True), 1e-9)).max(axis=0),
        _gap(facets.mean(axis=0)),
        np.log1p(len(found.facets)),
        any_,
        _gap(any_),
        long,
        _gap(long),
        both,
        name,
        _gap(name),
        by_field[_FIELD["server"]],
        description,
        by_field[_FIELD["argument_texts"]],
        name_said,
        _gap(name_said),
        n_words - n_hit,
        mass - hit,
        has[_FIELD["description"]].sum(axis=0) / np.sqrt(length + 1.0),
        np.log1p(length),
        np.log1p(said.n_terms),
        np.log(max(view.n_tools, 1)),
        said.unknown,
        float(ordered[max(n - 5, 0)]) / max(found.peak, 1e-9),
    )
    x = np.empty((len(FEATURES), n))
    for row, values in zip(x, rows, strict=True):  # quicker than `stack`, and a number fills its row
        row[:] = values
    return x


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """The telling terms of a request. `say`: how much each tells, by rarity among the permitted tools and by length."""

    terms: list[str]
    say: FloatArray
    length: FloatArray
    mass: float
    idf: dict[str, float]
    idf_mass: float
    unknown: float
    n_terms: int

    @classmethod
    def of(cls, text: str, view: LexicalView) -> _Said:
        weights = term_weights(text)
        holding = {term: view.n_holding(term) for term in weights}
        idf = {term: view.idf(n) for term, n in holding.items()}
        say = {t: idf[t] * sqrt(max(weight, _VALUE_FLOOR) / _USUAL_LENGTH) for t, weight in weights.items()}
        telling = set(sorted(say, key=lambda t: (-say[t], t))[:MAX_TERMS])
        terms = [term for term in weights if term in telling]
        mass = max(sum(say[term] for term in terms), 1e-9)
        return cls(
            terms=terms,
            say=np.array([say[term] for term in terms]),
            length=np.array([weights[term] for term in terms]),
            mass=mass,
            idf=idf,
            idf_mass=sum(idf.values()),
            unknown=sum(say[term] for term in terms if not holding[term]) / mass,
            n_terms=len(weights),
        )


class NameWords:
    """How much the words of tools' names tell in one view."""

    def __init__(self, view: LexicalView, names: NameTerms, tools: Sequence[Tool]) -> None:
        self._view = view
        self._names = names
        self._tools = tools
        self._idfs = np.append(view.idfs, 0.0)

    def of(self, tools: IntArray, said: Collection[str]) -> FloatArray:
        """Of each name how much its words tell, how much of that is said, how many words are said, how many it has.

        Args:
            tools: numbers of permitted tools. said: the request's terms.
        Returns:
            float64, shape (4, n_tools).
        """
        words = self._names.of(tools)
        held = words >= 0
        mass = self._idfs[np.where(held, words, -1)]
        hit = (words == self._view.numbers(said)[:, None, None]).any(axis=0)
        rows = np.empty((4, len(tools)))
        for row, values in zip(rows, (mass, mass * hit, hit, held), strict=True):
            values.sum(axis=0, out=row)  # word by word, as they stand in the name
        for column in np.flatnonzero((words == NOT_HERE).any(axis=0)).tolist():
            rows[:, column] = self._read(self._tools[int(tools[column])].name, said)
        return rows

    def _read(self, name: str, said: Collection[str]) -> tuple[float, float, int, int]:
        """A column of `of`, from the text of a name."""
        words = name_words(name)
        told = {word: self._view.idf(self._view.n_holding(word)) for word in words}
        hits = [told[word] for word in words if word in said]
        return sum(told.values()), sum(hits), len(hits), len(words)


def _gap(values: FloatArray) -> FloatArray:
    """Each value less the best."""
    gap: FloatArray = values - np.maximum.reduce(values)
    return gap


def _place(values: FloatArray) -> FloatArray:
    """log(1 + place), the best at 0; ties by order."""
    place = np.empty(len(values))
    place[(-values).argsort(kind="stable")] = _logs(len(values))
    return place


@lru_cache(maxsize=1_024)
def _logs(n: int) -> FloatArray:
    """log(1 + place) of so many places. Remembered: three features of each request ask."""
    found: FloatArray = np.log1p(np.arange(n))
    found.flags.writeable = False
    return found
