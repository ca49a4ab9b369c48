"""Vectors as integers: int8 rows, whose products are exact.

    float32 ─▶ quantise ─▶ int8 rows ─▶ dot products that are whole numbers

Stands on nothing; `adapt`, `dense` and `servers` stand on it.

Invariants
1. A row of `quantise` depends on that row alone.
2. int8 rows held in float32 give dot products that are integers below 2**24, up to `MAX_DIM` dimensions: exact in any
   order of summation, so a product over more or fewer tools gives the same bits (I1).
"""

from __future__ import annotations

from math import sqrt
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Int8Array: TypeAlias = npt.NDArray[np.int8]
Float32Array: TypeAlias = npt.NDArray[np.float32]
Float64Array: TypeAlias = npt.NDArray[np.float64]

MAX_DIM = 1024  # 1024 * 127 * 127 < 2**24: above this, integer products in float32 would no longer be exact
_BLOCK = 4_096
_ALONE = 8_192
"""Numbers in a block of rows that BLAS multiplies with a vector in one thread."""
_PEAKS_PER_PLACE = 4


def quantise(vectors: npt.NDArray[np.generic]) -> Int8Array:
    """int8 rows, each scaled by its own largest value; a row that is not finite or all zero becomes zeros."""
    rows = np.asarray(vectors, dtype=np.float64)
    peak = np.abs(rows).max(axis=1, initial=0.0, keepdims=True)
    usable = np.isfinite(rows).all(axis=1, keepdims=True) & (peak > 0)
    scaled = np.where(usable, rows, 0.0) / np.where(usable, peak, 1.0) * 127.0
    return np.rint(scaled).astype(np.int8)


def quantise_one(vector: npt.NDArray[np.floating]) -> Int8Array:
    """As `quantise`, of one vector: int8, shape (dim,)."""
    row = np.asarray(vector, dtype=np.float64)
    peak = float(np.abs(row).max(initial=0.0))
    if not 0.0 < peak < np.inf:  # also a NaN
        return np.zeros(len(row), dtype=np.int8)
    return np.rint(row / peak * 127.0).astype(np.int8)


def cosine(one: Int8Array, other: Int8Array) -> float:
    """-1 to 1, from exact integer products; 0 where a vector is all zeros. Both: int8, shape (dim,)."""
    a, b = one.astype(np.float32), other.astype(np.float32)  # whole below 2**24, and BLAS is quick with one pair
    squares = float(np.dot(a, a)) * float(np.dot(b, b))
    return float(np.dot(a, b)) / sqrt(squares) if squares > 0 else 0.0


def norms(rows: npt.NDArray[np.generic]) -> Float64Array:
    """Lengths of integer rows: float64, shape (n_rows,), each the root of an exact sum of squares."""
    found = np.zeros(len(rows))
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK].astype(np.float64)
        found[start : start + _BLOCK] = np.sqrt(np.einsum("ij,ij->i", block, block))
    return found


def products(rows: Float32Array, vector: npt.NDArray[np.generic]) -> Float32Array:
    """Exact dot products of integer rows with an integer vector: float32, shape (n_rows,).

    In small blocks: for many rows at once BLAS starts threads that cost more than the product (8 ms against 0.6 with
    the machine busy).
    """
    n_rows, dim = rows.shape
    asked, found = vector.astype(np.float32), np.empty(n_rows, dtype=np.float32)
    height = max(_ALONE // max(dim, 1), 1)
    whole = n_rows - n_rows % height
    np.matmul(rows[:whole].reshape(-1, height, dim), asked, out=found[:whole].reshape(-1, height))
    np.matmul(rows[whole:], asked, out=found[whole:])
    return found


def kth_largest(values: npt.NDArray[np.floating], k: int) -> float:
    """The k-th largest of at least k values."""
    n_peaks = _PEAKS_PER_PLACE * k
    folds = len(values) // n_peaks
    if folds > 1:
        # The k-th largest of the peaks of many groups is at most the one sought: few values are left to order.
        peaks = values[: folds * n_peaks].reshape(folds, n_peaks).max(axis=0)
        values = values[values >= np.partition(peaks, n_peaks - k)[n_peaks - k]]
    return float(np.partition(values, len(values) - k)[len(values) - k])


def over(dots: Float32Array, lengths: Float64Array, vector: Int8Array) -> Float64Array:
    """Cosines from products and lengths of rows and a vector: float64, 0 where a length is 0."""
    whole = vector.astype(np.int64)
    length = sqrt(float(whole @ whole))
    found: Float64Array = np.divide(dots, lengths * length, out=np.zeros(len(dots)), where=lengths * length > 0)
    return found
