"""A small model that raises texts which read like known attacks, though no rule has a pattern for them.

    texts ─▶ sentences ─▶ what each has, weighed (`weights/lint.npz`) ─▶ one to three sentences in a row ─▶ the highest

Logistic regression over hashed words, pairs, triples and letters, fitted by `training/fit_lint.py` on attacks written
for this project and on published definitions. Above it: `lint.py`. Below: `model_text.py`, which reads.

Invariants
1. It raises to review; it never blocks, and never clears what a rule found.
2. Same texts and names, same findings: sums run in a fixed order.
3. The highest place of a text counts, so that honest words around an attack do not dilute it.
4. Damaged or missing weights cost this model only, and say so.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from pathlib import Path

import numpy as np
import numpy.typing as npt

from toolcrib.errors import CatalogError
from toolcrib.review.findings import Finding, Level
from toolcrib.review.model_text import (
    LETTER_SHARE,
    N_FEATURES,
    FormOf,
    Sentence,
    letters,
    neighbours,
    seen,
    sentences,
)
from toolcrib.review.reading import Role, Text
from toolcrib.review.surroundings import ALONE, Surroundings
from toolcrib.review.text import show

WEIGHTS = Path(__file__).parent / "weights" / "lint.npz"
FORMAT = 1
MAX_WINDOW = 3
"""Sentences that are read together."""
FEW_TOKENS = 8
"""A shorter place counts as one of this length: three words alone say little."""
_MAX_SHOWN, _N_WORDS = 240, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """`values`: int8, one for each place of a hash, times `scale`. A place scores at `limit` or above: it is raised."""

    values: npt.NDArray[np.int8]
    scale: float
    bias: float
    limit: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """The highest place of one text: sentences `first` to `last` of those read."""

    text_idx: int
    score: float
    first: int
    last: int


def suspicion(read: Sequence[Text], around: Surroundings = ALONE) -> tuple[Finding, ...]:
    """A finding for each text that reads like an attack.

    Args:
        read: the strings of one definition, or a server's instructions.
        around: tells the names of the server's own tools from others.
    """
    try:
        weights = shipped_weights()
    except CatalogError as fault:
        return (_unavailable(fault),)
    parts = sentences(read, form_of=own_names(read, around))
    return tuple(
        Finding(
            rule="model-suspicion",
            level=Level.REVIEW,
            pointer=read[suspect.text_idx].pointer,
            evidence=_evidence(parts[suspect.first : suspect.last + 1]),
            why=_why(parts[suspect.first : suspect.last + 1], suspect, weights),
        )
        for suspect in suspects(parts, weights)
        if suspect.score >= weights.limit
    )


def own_names(read: Sequence[Text], around: Surroundings) -> FormOf:
    """Which names are known from where these texts stand: the tool's own, its parameters', its siblings'."""
    name = next((text.raw.casefold() for text in read if text.role is Role.NAME), "")
    parameters = {text.raw.casefold() for text in read if text.role is Role.PARAMETER_NAME}

    def form_of(word: str) -> str:
        if word == name:
            return "SELF"
        if word in parameters:
            return "PARAMETER"
        return "SIBLING" if around.is_own(word) else ""

    return form_of


def suspects(parts: Sequence[Sentence], weights: Weights) -> Iterator[Suspect]:
    """The highest place of each text, in order; ties go to the shorter and then to the earlier one."""
    if not parts:
        return
    windows = _windows(parts)
    texts = np.array([parts[first].text_idx for first, _ in windows])
    scored = scores(parts, windows, weights)
    for text_idx in np.unique(texts):
        places = np.flatnonzero(texts == text_idx)
        best = places[int(np.argmax(scored[places]))]
        first, last = windows[best]
        yield Suspect(text_idx=int(text_idx), score=float(scored[best]), first=first, last=last)


def _windows(parts: Sequence[Sentence]) -> list[tuple[int, int]]:
    """First and last sentence of every place: one to three sentences in a row of one text."""
    return [
        (first, first + length)
        for length in range(MAX_WINDOW)
        for first in range(len(parts) - length)
        if parts[first].text_idx == parts[first + length].text_idx
    ]


def scores(parts: Sequence[Sentence], windows: Sequence[tuple[int, int]], weights: Weights) -> npt.NDArray[np.float64]:
    """How much each place reads like an attack: the logarithm of its odds."""
    has = seen(parts)
    each = np.bincount(has.rows, weights=weights.values[has.ids] * has.shares, minlength=len(parts)) * weights.scale
    sums = np.concatenate((np.zeros(1), np.cumsum(each)))
    lengths = np.concatenate((np.zeros(1), np.cumsum([len(part.tokens) for part in parts])))
    first, last = np.array(windows).T
    n_tokens = lengths[last + 1] - lengths[first]
    found: npt.NDArray[np.float64] = (sums[last + 1] - sums[first]) / np.sqrt(np.maximum(n_tokens, FEW_TOKENS))
    return found + weights.bias


def _evidence(parts: Sequence[Sentence]) -> str:
    shown = " ".join(show(" … ".join(part.text for part in parts)).split())
    return shown if len(shown) <= _MAX_SHOWN else shown[:_MAX_SHOWN] + "…"


def _why(parts: Sequence[Sentence], suspect: Suspect, weights: Weights) -> str:
    words = ", ".join(f'"{word}"' for word in _telling(parts, weights))
    return f"reads like known attacks (score {suspect.score:.1f}, limit {weights.limit:.1f}), mostly for {words}"


def _telling(parts: Sequence[Sentence], weights: Weights) -> list[str]:
    """The words that raised these sentences most, in the order in which they stand there."""
    tokens = [token for part in parts for token in part.tokens]
    near = neighbours(parts)
    weighed = np.where(near >= 0, weights.values[near], 0).sum(axis=1, dtype=np.float64)
    weighed += [LETTER_SHARE * float(weights.values[letters(token.spelled)].sum(dtype=np.int64)) for token in tokens]
    most: dict[str, int] = {}
    for place in np.argsort(-weighed, kind="stable"):
        if len(most) < _N_WORDS and tokens[place].spelled and weighed[place] > 0:
            most.setdefault(tokens[place].spelled, int(place))
    return sorted(most, key=most.__getitem__)


def _unavailable(fault: CatalogError) -> Finding:
    return Finding(
        rule="model-unavailable",
        level=Level.INFO,
        pointer="",
        evidence="",
        why=f"the lint model was not asked: {fault.what}",
    )


@lru_cache(maxsize=1)
def shipped_weights() -> Weights:
    """The weights that come with the package. Raises CatalogError like `read_weights`."""
    return read_weights(WEIGHTS)


def read_weights(path: Path) -> Weights:
    """Raises CatalogError for a file that is missing, damaged, or made for another way of reading."""
    try:
        with np.load(BytesIO(path.read_bytes()), allow_pickle=False) as held:
            if int(held["format"]) != FORMAT:
                raise ValueError("it is of another format")
            values = held["values"]
            scale, bias, limit = (float(held[name]) for name in ("scale", "bias", "limit"))
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, zlib.error) as fault:
        raise _damaged(path, str(fault)) from fault
    if values.shape != (N_FEATURES,) or values.dtype != np.int8:
        raise _damaged(path, f"its values are {values.dtype} of shape {values.shape}")
    if not np.isfinite([scale, bias, limit]).all():
        raise _damaged(path, "a number is not finite")
    return Weights(values=values, scale=scale, bias=bias, limit=limit)


def _damaged(path: Path, why: str) -> CatalogError:
    return CatalogError(f"the lint model cannot be read: {why}", where=str(path), hint="reinstall toolcrib")


def write_weights(path: Path, weights: Weights) -> None:
    np.savez_compressed(
        path,
        format=np.array(FORMAT),
        values=weights.values,
        scale=np.array(weights.scale),
        bias=np.array(weights.bias),
        limit=np.array(weights.limit),
    )
