"""Adaptation to the permitted tools, without a query: pieces that many of them share weigh less, those that nearly all
of them share nothing, and the direction that all of them share is half taken out.

    pieces of the permitted tools ─▶ how many hold each ─▶ weights ─▶ vectors of tools and requests, summed anew
                                                               rows ─▶ mean direction ─▶ centred cosines

In a catalog of one vendor every text says the vendor's name and the same arguments; their sum hides what tells the
tools apart. Both steps are closed forms, made with a view in milliseconds. On 2,334 written requests, each to the
tools of one server (20 to 127 of them), they took hybrid recall@1/5/10 from 40.2/66.2/78.8 to 41.2/68.2/80.5; over
mixes of 15 servers from 46.0/71.7/80.5 to 46.3/72.7/81.6. Gradient steps on the table (the first sentence of a
description against its rest) gave less on one server, lost where several meet, and added nothing on top of these.

Stands on `vectors`; used by `dense` and `servers`.

Invariants
1. Inputs are the permitted tools' rows alone, and every sum over tools or pieces is a sum of whole numbers below the
   limit of exactness: an adapted view of a masked index equals, bit for bit, that of an index of the permitted tools
   (I1).
2. What is adapted is for ranking. Confidence reads plain cosines, which mean the same for one tool as for thousands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from toolcrib.retrieval.vectors import Float32Array, Float64Array, Int8Array, quantise
from toolcrib.types import IntArray

RARITY = 0.5
"""A piece that a share s of the tools hold weighs RARITY / (RARITY + s) (smooth inverse frequency)."""
EVERYWHERE = 0.8
"""A piece that more than this share of `MIN_SHARED` or more tools hold says nothing, as with words: `search`."""
MIN_SHARED = 8
MEAN_SHARE = 0.6
"""How much of the mean direction is taken out of tools and requests."""
_FEW = 10
"""With so few tools, half of that: the mean of one tool is that tool."""
_COMMON = 50
"""A piece is common, and weighed, if at least one in so many tools holds it."""
_MAX_COMMON = 1_024
_PIECE_LIMIT = 32_000
_SCALE_LIMIT = 60_000
"""Fixed point: the largest entry of a piece's vector is 32,000, so 256 pieces and a row together stay below 2**24."""
_BLOCK = 2_048


@runtime_checkable
class PieceEmbedder(Protocol):
    """An embedder whose vector of a text is the sum of its pieces' vectors."""

    @property
    def piece_peak(self) -> float:
        """The largest absolute entry of any piece's vector, above 0."""
        ...

    @property
    def scan_dim(self) -> int:
        """So many leading dimensions tell the likely tools from the rest."""
        ...

    def pieces(self, texts: Sequence[str]) -> list[list[int]]:
        """Piece numbers of each text, at most 256."""
        ...

    def piece_vectors(self, pieces: npt.NDArray[np.integer] | Sequence[int]) -> Float32Array:
        """float32, shape (n_pieces, dim)."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceCounts:
    """Which pieces each tool's text has. Tool i holds `ids[starts[i]:starts[i + 1]]`, ascending.

    Args:
        starts: int64, shape (n_tools + 1,).
        ids: int32, shape (n_entries,): piece numbers.
        counts: uint8, shape (n_entries,).
        scales: int32, shape (n_tools,): what one step of a tool's int8 row is worth, in fixed point.
    """

    starts: IntArray
    ids: npt.NDArray[np.int32]
    counts: npt.NDArray[np.uint8]
    scales: npt.NDArray[np.int32]

    def of(self, rows: IntArray) -> PieceCounts:
        """The same of some tools, in the order given."""
        if len(rows) == len(self.scales) and (rows == np.arange(len(rows))).all():
            return self
        lengths = np.diff(self.starts)[rows]
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        at = np.repeat(self.starts[rows] - starts[:-1], lengths) + np.arange(starts[-1])
        return PieceCounts(starts=starts, ids=self.ids[at], counts=self.counts[at], scales=self.scales[rows])


def count_pieces(pieces: Sequence[Sequence[int]], sums: Float32Array, *, piece_peak: float) -> PieceCounts:
    """Piece counts of texts in order. `sums`: their vectors before they were made int8, shape (n_texts, dim)."""
    n = len(pieces)
    lengths = np.array([len(row) for row in pieces], dtype=np.int64)
    flat = np.array([piece for row in pieces for piece in row], dtype=np.int64)
    keys, counts = np.unique(np.repeat(np.arange(n), lengths) * 2**32 + flat, return_counts=True)
    peak = np.abs(sums).max(axis=1, initial=0.0)
    scales = np.minimum(np.rint(peak.astype(np.float64) / 127.0 * (_PIECE_LIMIT / piece_peak)), _SCALE_LIMIT)
    return PieceCounts(
        starts=np.searchsorted(keys, np.arange(n + 1) * 2**32).astype(np.int64),
        ids=(keys % 2**32).astype(np.int32),
        counts=np.minimum(counts, 255).astype(np.uint8),
        scales=scales.astype(np.int32),
    )


def joined_counts(old: PieceCounts, fresh: PieceCounts | None, picked: IntArray) -> PieceCounts:
    """Counts of tools that come from two places. `picked`: the row of each, those of `fresh` after those of `old`."""
    if fresh is None:
        return old.of(picked)
    both = PieceCounts(
        starts=np.concatenate([old.starts, fresh.starts[1:] + old.starts[-1]]),
        ids=np.concatenate([old.ids, fresh.ids]),
        counts=np.concatenate([old.counts, fresh.counts]),
        scales=np.concatenate([old.scales, fresh.scales]),
    )
    return both.of(picked)


class PieceWeights:
    """What is taken off for each common piece of one permitted set: a share of the piece's vector, in whole units."""

    def __init__(self, counts: PieceCounts, embedder: PieceEmbedder) -> None:
        self._counts = counts
        self._one = _PIECE_LIMIT / embedder.piece_peak
        n_tools = len(counts.scales)
        n_holding = np.bincount(counts.ids)
        common = np.flatnonzero((n_holding * _COMMON >= n_tools) & (n_holding > 0))
        if len(common) > _MAX_COMMON:
            common = np.sort(common[np.argsort(-n_holding[common], kind="stable")[:_MAX_COMMON]])
        self._common: IntArray = common.astype(np.int64)
        share = n_holding[common] / (RARITY * n_tools + n_holding[common])
        if n_tools >= MIN_SHARED:
            share[n_holding[common] > EVERYWHERE * n_tools] = 1.0
        taken = np.rint(embedder.piece_vectors(self._common).astype(np.float64) * share[:, None] * self._one)
        self._taken: Float32Array = np.clip(taken, -_PIECE_LIMIT, _PIECE_LIMIT).astype(np.float32)

    def tools(self, rows: Int8Array) -> Int8Array:
        """Rows of the permitted tools, weighed. int8, shape (n_tools, dim)."""
        adapted = np.empty_like(rows)
        for start in range(0, len(rows), _BLOCK):
            block = slice(start, min(start + _BLOCK, len(rows)))
            whole = rows[block].astype(np.float32) * self._counts.scales[block, None].astype(np.float32)
            # Whole numbers below 2**24, in BLAS as elsewhere: exact however they are summed.
            adapted[block] = quantise(whole - self._common_counts(block) @ self._taken)
        return adapted

    def query(self, total: Float32Array, pieces: Sequence[int]) -> Float32Array:
        """A request's vector, weighed as the tools are. `total`: the sum of its pieces' vectors, shape (dim,)."""
        if not len(self._common):
            return total
        ids = np.asarray(pieces, dtype=np.int64)
        at = np.minimum(np.searchsorted(self._common, ids), len(self._common) - 1)
        taken = self._taken[at[self._common[at] == ids]].sum(axis=0, dtype=np.float64) / self._one
        return np.asarray(total - taken, dtype=np.float32)

    def _common_counts(self, block: slice) -> Float32Array:
        """How often each tool of a block has each common piece: float32, shape (n_block, n_common)."""
        starts = self._counts.starts
        entries = slice(int(starts[block.start]), int(starts[block.stop]))
        ids = self._counts.ids[entries]
        tool = np.repeat(np.arange(block.stop - block.start), np.diff(starts[block.start : block.stop + 1]))
        at = np.searchsorted(self._common, ids)
        held = self._common[np.minimum(at, len(self._common) - 1)] == ids if len(self._common) else ids < 0
        found = np.zeros((block.stop - block.start, len(self._common)), dtype=np.float32)
        found[tool[held], at[held]] = self._counts.counts[entries][held]
        return found


class MeanDirection:
    """The direction that the permitted tools share, taken out of cosines by arithmetic: no row is changed.

    With unit vectors q, x and the mean m of the x, and k = `MEAN_SHARE`, the centred cosine is that of q - k m and
    x - k m; it follows from cos(q, x), m x and m q.
    """

    def __init__(self, rows: Int8Array, lengths: Float64Array) -> None:
        n_tools = int((lengths > 0).sum())
        self._sum: IntArray = rows.sum(axis=0, dtype=np.int64)
        self._total = max(int(np.rint(lengths).astype(np.int64).sum()), 1)
        self._share = MEAN_SHARE * n_tools / (n_tools + _FEW)
        self.square = self._share**2 * (float(self._sum.astype(object) @ self._sum.astype(object)) / self._total**2)
        self.of_tools = self.of(rows, lengths)

    @property
    def direction(self) -> Float32Array:
        """k m: float32, shape (dim,)."""
        return np.asarray(self._share * self._sum.astype(np.float64) / self._total, dtype=np.float32)

    def of(self, rows: npt.NDArray[np.generic], lengths: Float64Array) -> Along:
        """What centring needs of some rows. `rows`: integers, shape (n, dim). `lengths`: theirs."""
        along = np.zeros(len(rows))
        for start in range(0, len(rows), _BLOCK):
            block = rows[start : start + _BLOCK].astype(np.float64)
            # Whole numbers below 2**53: exact. Not `@`, see `vectors.products`.
            along[start : start + _BLOCK] = np.einsum("ij,j->i", block, self._sum[: block.shape[1]].astype(np.float64))
        scaled = self._share * np.divide(along, lengths, out=np.zeros_like(along), where=lengths > 0) / self._total
        rest = 1.0 / np.sqrt(np.maximum(1.0 - 2.0 * scaled + self.square, 1e-6))
        return Along(shift=scaled, rest=np.where(lengths > 0, rest, 0.0))

    def of_query(self, query: Int8Array) -> tuple[float, float]:
        """(shift, rest) of a request, as in `Along`."""
        whole = query.astype(np.int64)
        length = float(np.sqrt(float(whole @ whole)))
        shift = self._share * float(whole @ self._sum) / (length * self._total) if length > 0 else 0.0
        return shift, float(1.0 / np.sqrt(max(1.0 - 2.0 * shift + self.square, 1e-6)))

    def centred(self, cosines: Float64Array, query: tuple[float, float], along: Along) -> Float64Array:
        """Centred cosines from plain ones, elementwise, 0 for a row without a vector.

        The request's own share of the mean is added again: the same for all tools, it changes no order among them and
        keeps the unlikely ones above those that could not be embedded.
        """
        shift, rest = query
        found = (cosines - along.shift + (self.square - shift)) * (along.rest * rest)
        return np.asarray(found + max(shift, 0.0) * (along.rest > 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Along:
    """`shift`: k m x of each row. `rest`: one over the length of x - k m, 0 for a row without a
    vector. float64, shape (n,) each."""

    shift: Float64Array
    rest: Float64Array

    def at(self, positions: IntArray) -> Along:
        return Along(shift=self.shift[positions], rest=self.rest[positions])
