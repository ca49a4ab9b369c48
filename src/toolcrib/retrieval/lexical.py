"""BM25F over inverted lists, with statistics over the permitted tools only.

`Postings` is built once per snapshot and holds integers: who has which term how often in which field, and how long
each field is. Whatever BM25F derives from a collection (document frequency, number of documents, mean lengths) is
counted per request or per view over the permitted tools, as integers, hence exactly.

Invariants
1. The scores of a `LexicalView` equal, to the last bit, those of postings built from the permitted tools alone (I1):
   all floating point work is elementwise, in the order of the query's terms and of `FIELDS`; no sum runs over tools.
2. A tool outside the permitted set gets no score.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log1p
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from toolcrib.retrieval.document import FIELDS
from toolcrib.types import BoolArray, IntArray

FloatArray: TypeAlias = npt.NDArray[np.float64]

K1 = 1.2
B = 0.75
MAX_COUNT = 3
"""Occurrences that count in one field. More told nothing (measured on training sets), and repeating a word must buy
no rank.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Postings:
    """Inverted lists. Term t is held by `docs[starts[t]:starts[t + 1]]`, ascending.

    Args:
        vocabulary: term -> term number.
        starts: int64, shape (n_terms + 1,).
        docs: int32, shape (n_postings,): tool numbers.
        counts: uint8, shape (n_fields, n_postings): occurrences in each field, `MAX_COUNT` at most.
        lengths: int32, shape (n_fields, n_tools): terms in each field.
    """

    vocabulary: dict[str, int]
    starts: IntArray
    docs: npt.NDArray[np.int32]
    counts: npt.NDArray[np.uint8]
    lengths: npt.NDArray[np.int32]

    @property
    def n_tools(self) -> int:
        return int(self.lengths.shape[1])

    def slice_of(self, term: str) -> slice | None:
        number = self.vocabulary.get(term)
        return None if number is None else slice(int(self.starts[number]), int(self.starts[number + 1]))


def build_postings(documents: Iterable[Sequence[Sequence[str]]]) -> Postings:
    """Postings of documents in tool order; each document is one list of terms per field."""
    vocabulary: dict[str, int] = {}
    flat: list[int] = []
    lengths: list[list[int]] = []
    for fields in documents:
        lengths.append([len(terms) for terms in fields])
        flat.extend([vocabulary.setdefault(term, len(vocabulary)) for terms in fields for term in terms])
    n_tools, n_fields = len(lengths), len(FIELDS)
    per_tool = np.array(lengths, dtype=np.int64).reshape(n_tools, n_fields)
    cell = np.repeat(np.arange(n_tools * n_fields), per_tool.ravel())
    key = np.array(flat, dtype=np.int64) * max(n_tools, 1) + cell // n_fields
    pairs, which = np.unique(key, return_inverse=True)
    counts = np.bincount(which + (cell % n_fields) * len(pairs), minlength=n_fields * len(pairs))
    term_of = pairs // max(n_tools, 1)
    return Postings(
        vocabulary=vocabulary,
        starts=np.searchsorted(term_of, np.arange(len(vocabulary) + 1)).astype(np.int64),
        docs=(pairs % max(n_tools, 1)).astype(np.int32),
        counts=np.minimum(counts, MAX_COUNT).astype(np.uint8).reshape(n_fields, len(pairs)),
        lengths=np.ascontiguousarray(per_tool.T, dtype=np.int32),
    )


class LexicalView:
    """BM25F over one permitted set. Scores come in the order of the permitted tools, ascending by tool number."""

    def __init__(self, postings: Postings, permitted: BoolArray) -> None:
        self._postings = postings
        self._permitted = permitted
        self.n_tools = int(permitted.sum())
        self._position = np.cumsum(permitted) - 1
        totals = [int(lengths[permitted].sum(dtype=np.int64)) for lengths in postings.lengths]
        self._mean_lengths = [total / self.n_tools if total else 1.0 for total in totals]

    def scores(self, terms: Sequence[str]) -> FloatArray:
        """BM25F score of each permitted tool for distinct terms, 0 where none of them occurs."""
        scores = np.zeros(self.n_tools)
        for term in terms:
            docs, counts = self._permitted_postings(term)
            if len(docs):
                weighted = self._weighted_counts(docs, counts)
                scores[self._position[docs]] += self.idf(len(docs)) * (weighted * (K1 + 1.0) / (weighted + K1))
        return scores

    def idf(self, n_holding: int) -> float:
        """How much a term tells that this many permitted tools hold."""
        return log1p((self.n_tools - n_holding + 0.5) / (n_holding + 0.5))

    def n_holding(self, term: str) -> int:
        """How many permitted tools hold a term."""
        return len(self._permitted_postings(term)[0])

    def matches(self, terms: Sequence[str], tools: IntArray) -> BoolArray:
        """Which term occurs in which of these permitted tools: bool, shape (n_terms, n_tools)."""
        found = np.zeros((len(terms), len(tools)), dtype=np.bool_)
        for row, term in enumerate(terms):
            where = self._postings.slice_of(term)
            if where is not None:
                docs = self._postings.docs[where]
                found[row] = docs[np.minimum(np.searchsorted(docs, tools), len(docs) - 1)] == tools
        return found

    def _permitted_postings(self, term: str) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
        where = self._postings.slice_of(term) or slice(0, 0)
        docs, counts = self._postings.docs[where], self._postings.counts[:, where]
        if self.n_tools == self._postings.n_tools:
            return docs, counts
        keep = self._permitted[docs]
        return docs[keep], counts[:, keep]

    def _weighted_counts(self, docs: npt.NDArray[np.int32], counts: npt.NDArray[np.uint8]) -> FloatArray:
        """Occurrences of a term in each tool, weighted by field and set against the field's length."""
        weighted = np.zeros(len(docs))
        for row, (field, mean) in enumerate(zip(FIELDS, self._mean_lengths, strict=True)):
            if counts[row].any():
                norm = (1.0 - B) + B * (self._postings.lengths[row, docs] / mean)
                weighted += field.weight * counts[row] / norm
        return weighted
