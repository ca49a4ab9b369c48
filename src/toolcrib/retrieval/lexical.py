"""BM25F over inverted lists, with statistics over the permitted tools only.

`Postings` is built once per snapshot and holds integers: who has which term how often in which field, and how long
each field is. Whatever BM25F derives from a collection (document frequency, number of documents, mean lengths) is
counted per view over the permitted tools, as integers, hence exactly.

Invariants
1. The scores of a `LexicalView` equal, to the last bit, those of postings built from the permitted tools alone (I1):
   all floating point work is elementwise, in the order of the query's terms and of `FIELDS`; no sum runs over tools.
2. A tool outside the permitted set gets no score.
3. Postings are a function of the documents in their order: terms are sorted, so `merged` gives what `build_postings`
   would have given.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
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
_MAX_KNOWN = 65_536
_MIN_REMEMBERED = 262_144
_TERM_COST = 24
"""What a remembered term takes beside its entries of 16 bytes, in entries: about 370 bytes, with or without holders."""


class Terms:
    """Terms in code point order and their numbers, searched where they lie: nothing is parsed when a file is read.

    Args:
        text: all terms one after another, UTF-8.
        ends: int64, shape (n_terms,): where each term ends.
    """

    def __init__(self, text: bytes, ends: IntArray) -> None:
        self.text, self.ends = text, ends
        self._ends = np.ascontiguousarray(ends, dtype=np.int64).data  # plain numbers, at once
        self._known: dict[str, int] = {}

    @classmethod
    def of(cls, terms: Iterable[str]) -> Terms:
        """From terms that are sorted and distinct."""
        encoded = [term.encode() for term in terms]
        return cls(b"".join(encoded), np.cumsum([len(term) for term in encoded], dtype=np.int64))

    def __len__(self) -> int:
        return len(self.ends)

    def __iter__(self) -> Iterator[str]:
        start = 0
        for end in self.ends.tolist():
            yield self.text[start:end].decode()
            start = end

    def number(self, term: str) -> int | None:
        """The number of a term, None if no tool has it."""
        found = self._known.get(term)
        if found is None:
            if len(self._known) >= _MAX_KNOWN:
                self._known = {}
            found = self._known[term] = self._find(term.encode(errors="surrogatepass"))
        return None if found < 0 else found

    def _find(self, term: bytes) -> int:
        low, high = 0, len(self._ends)
        while low < high:
            middle = (low + high) // 2
            here = self.text[self._ends[middle - 1] if middle else 0 : self._ends[middle]]
            if here == term:
                return middle
            low, high = (middle + 1, high) if here < term else (low, middle)
        return -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Postings:
    """Inverted lists. Term t is held by `docs[starts[t]:starts[t + 1]]`, ascending.

    Args:
        terms: the terms, sorted.
        starts: int64, shape (n_terms + 1,).
        docs: int32, shape (n_postings,): tool numbers.
        counts: uint8, shape (n_fields, n_postings): occurrences in each field, `MAX_COUNT` at most.
        lengths: int32, shape (n_fields, n_tools): terms in each field.
    """

    terms: Terms
    starts: IntArray
    docs: npt.NDArray[np.int32]
    counts: npt.NDArray[np.uint8]
    lengths: npt.NDArray[np.int32]

    @property
    def n_tools(self) -> int:
        return int(self.lengths.shape[1])

    def slice_of(self, term: str) -> slice | None:
        number = self.terms.number(term)
        return None if number is None else slice(int(self.starts[number]), int(self.starts[number + 1]))


def build_postings(documents: Iterable[Sequence[Sequence[str]]]) -> Postings:
    """Postings of documents in tool order; each document is one list of terms per field."""
    vocabulary: dict[str, int] = {}
    flat, lengths = array("q"), array("q")
    for fields in documents:
        lengths.extend(len(terms) for terms in fields)
        flat.extend(vocabulary.setdefault(term, len(vocabulary)) for terms in fields for term in terms)
    n_fields = len(FIELDS)
    per_tool = np.frombuffer(lengths, dtype=np.int64).reshape(-1, n_fields) if lengths else np.zeros((0, n_fields))
    n_tools = len(per_tool)
    terms, place = _sorted(vocabulary)
    cell = np.repeat(np.arange(n_tools * n_fields), per_tool.ravel().astype(np.int64))
    numbers = place[np.frombuffer(flat, dtype=np.int64)] if flat else np.zeros(0, dtype=np.int64)
    pairs, which = np.unique(numbers * max(n_tools, 1) + cell // n_fields, return_inverse=True)
    counts = np.bincount(which + (cell % n_fields) * len(pairs), minlength=n_fields * len(pairs))
    return Postings(
        terms=terms,
        starts=np.searchsorted(pairs // max(n_tools, 1), np.arange(len(terms) + 1)).astype(np.int64),
        docs=(pairs % max(n_tools, 1)).astype(np.int32),
        counts=np.minimum(counts, MAX_COUNT).astype(np.uint8).reshape(n_fields, len(pairs)),
        lengths=np.ascontiguousarray(per_tool.T, dtype=np.int32),
    )


def merged(parts: Sequence[tuple[Postings, IntArray]], *, n_tools: int) -> Postings:
    """Postings of tools that come from several places, as `build_postings` would give them.

    Args:
        parts: postings, and for each of their tools its number in the whole, or -1 where it is left out.
    """
    names = sorted({term for part, _ in parts for term in part.terms})
    vocabulary = {term: number for number, term in enumerate(names)}
    lengths = np.zeros((len(FIELDS), n_tools), dtype=np.int32)
    keys, counts = [], []
    for part, place in parts:
        kept = place >= 0
        lengths[:, place[kept]] = part.lengths[:, kept]
        numbers = np.array([vocabulary[term] for term in part.terms], dtype=np.int64)
        held = kept[part.docs]
        keys.append((np.repeat(numbers, np.diff(part.starts)) * max(n_tools, 1) + place[part.docs])[held])
        counts.append(part.counts[:, held])
    key = np.concatenate(keys)
    order = np.argsort(key, kind="stable")
    key = key[order]
    used, firsts = np.unique(key // max(n_tools, 1), return_index=True)
    return Postings(
        terms=Terms.of(names[number] for number in used.tolist()),
        starts=np.append(firsts, len(key)).astype(np.int64),
        docs=(key % max(n_tools, 1)).astype(np.int32),
        counts=np.ascontiguousarray(np.concatenate(counts, axis=1)[:, order]),
        lengths=lengths,
    )


def _sorted(vocabulary: dict[str, int]) -> tuple[Terms, IntArray]:
    """Terms in order, and for each number that a term had the one it has among them."""
    ordered = sorted(vocabulary)
    place = np.zeros(len(ordered), dtype=np.int64)
    place[[vocabulary[term] for term in ordered]] = np.arange(len(ordered))
    return Terms.of(ordered), place


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """The permitted tools that hold a term: their positions, ascending, and what the term adds to each."""

    positions: IntArray
    gains: FloatArray


@dataclass(slots=True)
class _Memory:
    """Terms worked out before, as many as fit; all are forgotten when they no longer do."""

    limit: int
    known: dict[str, _Held] = field(default_factory=dict)
    n_entries: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def keep(self, term: str, held: _Held) -> None:
        cost = len(held.positions) + _TERM_COST
        with self.lock:
            if self.n_entries + cost > self.limit:
                self.known, self.n_entries = {}, 0
            self.known[term] = held
            self.n_entries += cost


class LexicalView:
    """BM25F over one permitted set. Scores come in the order of the permitted tools, ascending by tool number."""

    def __init__(self, postings: Postings, permitted: BoolArray) -> None:
        self._postings = postings
        self._permitted = permitted
        self.n_tools = int(permitted.sum())
        self._position = np.cumsum(permitted) - 1
        totals = [int(lengths[permitted].sum(dtype=np.int64)) for lengths in postings.lengths]
        self.mean_lengths = [total / self.n_tools if total else 1.0 for total in totals]
        self._memory = _Memory(limit=max(_MIN_REMEMBERED, 4 * self.n_tools))
        self._holding = self._holding_of_all_terms()
        self.idfs = self._idf_of_all_terms()

    def scores(self, terms: Sequence[str]) -> FloatArray:
        """BM25F score of each permitted tool for distinct terms, 0 where none of them occurs."""
        scores = np.zeros(self.n_tools)
        for term in terms:
            held = self._held(term)
            scores[held.positions] += held.gains
        return scores

    def gains(self, terms: Sequence[str], positions: IntArray) -> FloatArray:
        """What each term adds to the scores of some positions, ascending: float64, shape (n_terms, n_positions)."""
        found = np.zeros((len(terms), len(positions)))
        for row, term in enumerate(terms):
            held = self._held(term)
            if len(held.positions):
                at = np.minimum(np.searchsorted(held.positions, positions), len(held.positions) - 1)
                found[row] = np.where(held.positions[at] == positions, held.gains[at], 0.0)
        return found

    def idf(self, n_holding: int) -> float:
        """How much a term tells that this many permitted tools hold."""
        return log1p((self.n_tools - n_holding + 0.5) / (n_holding + 0.5))

    def n_holding(self, term: str) -> int:
        """How many permitted tools hold a term."""
        number = self._postings.terms.number(term)
        return 0 if number is None else int(self._holding[number])

    def numbers(self, terms: Iterable[str]) -> IntArray:
        """Numbers of those terms that any tool has: int64, in order."""
        found = (self._postings.terms.number(term) for term in terms)
        return np.array([number for number in found if number is not None], dtype=np.int64)

    def matches(self, terms: Sequence[str], tools: IntArray) -> BoolArray:
        """Which term occurs in which of these permitted tools: bool, shape (n_terms, n_tools)."""
        _, held = self._entries(terms, tools)
        return held

    def field_counts(self, terms: Sequence[str], tools: IntArray) -> npt.NDArray[np.uint8]:
        """How often each term occurs in each field of these permitted tools, `MAX_COUNT` at most.

        Returns:
            uint8, shape (n_fields, n_terms, n_tools).
        """
        at, held = self._entries(terms, tools)
        if not len(self._postings.docs):
            return np.zeros((len(FIELDS), *at.shape), dtype=np.uint8)
        found: npt.NDArray[np.uint8] = self._postings.counts[:, at] * held
        return found

    def _entries(self, terms: Sequence[str], tools: IntArray) -> tuple[IntArray, BoolArray]:
        """(where in the postings each term would stand for each tool, whether it does), shape (n_terms, n_tools)."""
        docs = self._postings.docs
        at = np.zeros((len(terms), len(tools)), dtype=np.int64)
        last = np.full((len(terms), 1), -1, dtype=np.int64)
        asked = tools.astype(np.int32)
        for row, term in enumerate(terms):
            where = self._postings.slice_of(term)
            if where is not None and where.stop > where.start:
                at[row] = docs[where].searchsorted(asked) + where.start
                last[row] = where.stop - 1
        np.minimum(at, last, out=at)  # an entry below every list, -1, stands for a term that no tool has
        return (at, (docs[at] == asked) & (at >= 0)) if len(docs) else (at, np.zeros(at.shape, dtype=np.bool_))

    def lengths(self, tools: IntArray) -> npt.NDArray[np.int32]:
        """Terms in each field of these permitted tools: int32, shape (n_fields, n_tools)."""
        return self._postings.lengths[:, tools]

    def _held(self, term: str) -> _Held:
        known = self._memory.known.get(term)
        if known is None:
            docs, counts = self._permitted_postings(term)
            weighted = self._weighted_counts(docs, counts)
            gains = self.idf(len(docs)) * (weighted * (K1 + 1.0) / (weighted + K1)) if len(docs) else weighted
            known = _Held(positions=self._position[docs], gains=gains)
            self._memory.keep(term, known)
        return known

    def _holding_of_all_terms(self) -> IntArray:
        """How many permitted tools hold each term: int64, shape (n_terms,)."""
        starts = self._postings.starts
        if self.n_tools == self._postings.n_tools:
            return np.diff(starts)
        before = np.concatenate([[0], np.cumsum(self._permitted[self._postings.docs], dtype=np.int64)])
        return np.asarray(before[starts[1:]] - before[starts[:-1]], dtype=np.int64)

    def _idf_of_all_terms(self) -> FloatArray:
        """`idf` of each term: float64, shape (n_terms,). By `log1p` of `math`: NumPy's may differ in its last bit."""
        counts = np.flatnonzero(np.bincount(self._holding, minlength=1))
        by_count = np.zeros(int(counts.max(initial=0)) + 1)
        by_count[counts] = [self.idf(n) for n in counts.tolist()]
        found: FloatArray = by_count[self._holding]
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
        for row, (one, mean) in enumerate(zip(FIELDS, self.mean_lengths, strict=True)):
            if counts[row].any():
                norm = (1.0 - B) + B * (self._postings.lengths[row, docs] / mean)
                weighted += one.weight * counts[row] / norm
        return weighted
