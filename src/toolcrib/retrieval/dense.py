"""Dense vectors: the `Embedder` that anyone may supply, the bundled one, and exact cosines over a permitted set.

    text ─▶ Embedder (float32) ─▶ quantise (int8) ─▶ integer dot products ─▶ cosine

Invariants
1. A row of `quantise` depends on that row alone. int8 rows held in float32 give dot products that are integers below
   2**24, hence exact in any order of summation: a product over more or fewer tools gives the same bits (I1).
2. A broken embedder costs the dense arm, never an answer (I12); one text it cannot embed costs that text.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from math import sqrt
from pathlib import Path
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from toolcrib.errors import RetrievalError
from toolcrib.types import IntArray

Int8Array: TypeAlias = npt.NDArray[np.int8]
Float32Array: TypeAlias = npt.NDArray[np.float32]

MODEL_DIR = Path(__file__).parent / "model"
MAX_DIM = 1024  # 1024 * 127 * 127 < 2**24: above this, integer products in float32 would no longer be exact
_MAX_PIECES = 256
_MAX_CHARS = 2_000
_BATCH = 256


class Embedder(Protocol):
    """Texts to vectors. A row must depend on its own text alone, and the same text must give the same row."""

    @property
    def model_id(self) -> str:
        """Changes whenever the vectors change; part of the index key."""
        ...

    @property
    def dim(self) -> int: ...

    def embed_documents(self, texts: Sequence[str]) -> Float32Array:
        """float32, shape (n_texts, dim); need not be normalised."""
        ...

    def embed_query(self, text: str) -> Float32Array:
        """float32, shape (dim,)."""
        ...


class StaticEmbedder:
    """The packaged model: a sum of word-piece vectors from an int8 table. About 0.1 ms a query, no network."""

    def __init__(self, folder: Path = MODEL_DIR) -> None:
        try:
            self._table: Int8Array = np.load(folder / "table.npy", mmap_mode="r", allow_pickle=False)
            self._scale: Float32Array = np.load(folder / "scale.npy", allow_pickle=False)
            self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        except Exception as fault:  # the tokenizers library raises bare Exception
            raise RetrievalError(
                f"the embedding model cannot be read: {fault}", where=str(folder), hint="reinstall toolcrib"
            ) from fault
        digest = sha256((folder / "scale.npy").read_bytes() + self._table[::97].tobytes()).hexdigest()
        self._model_id = f"toolcrib-static-{self._table.shape[1]}-{digest[:12]}"

    @property
    def model_id(self) -> str:
        return self._model_id

    @property
    def dim(self) -> int:
        return int(self._table.shape[1])

    def embed_documents(self, texts: Sequence[str]) -> Float32Array:
        encoded = self._tokenizer.encode_batch([text[:_MAX_CHARS] for text in texts], add_special_tokens=False)
        return np.array([self._sum(e.ids[:_MAX_PIECES]) for e in encoded], dtype=np.float32).reshape(-1, self.dim)

    def embed_query(self, text: str) -> Float32Array:
        return self._sum(self._tokenizer.encode(text[:_MAX_CHARS], add_special_tokens=False).ids[:_MAX_PIECES])

    def _sum(self, pieces: Sequence[int]) -> Float32Array:
        # One text at a time: its vector must not depend on its neighbours in a batch.
        rows = self._table[pieces].astype(np.float32) * self._scale[pieces, None]
        return np.asarray(rows.sum(axis=0, dtype=np.float64), dtype=np.float32)


@lru_cache(maxsize=1)
def bundled_embedder() -> StaticEmbedder:
    """The packaged model, loaded once per process."""
    return StaticEmbedder()


def quantise(vectors: Float32Array) -> Int8Array:
    """int8 rows, each scaled by its own largest value; a row that is not finite or all zero becomes zeros."""
    rows = np.asarray(vectors, dtype=np.float64)
    peak = np.abs(rows).max(axis=1, initial=0.0, keepdims=True)
    usable = np.isfinite(rows).all(axis=1, keepdims=True) & (peak > 0)
    scaled = np.where(usable, rows, 0.0) / np.where(usable, peak, 1.0) * 127.0
    return np.rint(scaled).astype(np.int8)


def cosine(one: Int8Array, other: Int8Array) -> float:
    """-1 to 1, from exact integer products; 0 where a vector is all zeros. Both: int8, shape (dim,)."""
    a, b = one.astype(np.int64), other.astype(np.int64)
    norms = float(a @ a) * float(b @ b)
    return float(a @ b) / sqrt(norms) if norms > 0 else 0.0


def embed_all(embedder: Embedder, texts: Sequence[str]) -> Int8Array | None:
    """int8 vectors of all texts, or None where the embedder answers for none of them."""
    rows = [_embed_batch(embedder, texts[start : start + _BATCH]) for start in range(0, len(texts), _BATCH)]
    if not rows:
        return np.zeros((0, embedder.dim), dtype=np.int8)
    vectors = np.concatenate(rows)
    return vectors if vectors.any() else None


def embed_one(embedder: Embedder, text: str) -> Int8Array | None:
    """The int8 vector of a query, or None where the embedder fails."""
    try:
        rows = quantise(_checked(embedder.embed_query(text), (embedder.dim,))[None, :])
    except Exception:  # noqa: BLE001 - a supplied embedder may raise anything; the lexical arm goes on (I12)
        return None
    vector: Int8Array = rows[0]
    return vector


def _embed_batch(embedder: Embedder, texts: Sequence[str]) -> Int8Array:
    try:
        return quantise(_checked(embedder.embed_documents(texts), (len(texts), embedder.dim)))
    except Exception:  # noqa: BLE001 - as above; one bad text must not cost its batch, so try each alone
        if len(texts) == 1:
            return np.zeros((1, embedder.dim), dtype=np.int8)
        return np.concatenate([_embed_batch(embedder, [text]) for text in texts])


def _checked(vectors: Float32Array, shape: tuple[int, ...]) -> Float32Array:
    array = np.asarray(vectors, dtype=np.float32)
    if array.shape != shape:
        raise RetrievalError(f"the embedder gave shape {array.shape}, expected {shape}")
    return array


class DenseView:
    """Cosines over one permitted set, in the order of the permitted tools."""

    def __init__(self, vectors: Int8Array, rows: IntArray) -> None:
        chosen = vectors if len(rows) == len(vectors) else vectors[rows]
        self._matrix = np.asarray(chosen, dtype=np.float32)
        self._norms = np.sqrt((self._matrix * self._matrix).sum(axis=1, dtype=np.float64))

    def cosines(self, query: Int8Array) -> npt.NDArray[np.float64]:
        """float64, -1 to 1; 0 where the query or a tool has no vector."""
        integers = query.astype(np.int64)
        norms = self._norms * np.sqrt(float((integers * integers).sum()))
        # Not `@`: for one vector BLAS starts threads that cost more than the product (8 ms against 1, machine busy).
        dots = np.einsum("ij,j->i", self._matrix, query.astype(np.float32)).astype(np.float64)
        found: npt.NDArray[np.float64] = np.divide(dots, norms, out=np.zeros_like(dots), where=norms > 0)
        return found
