"""Several embedders as one vector: their unit vectors side by side, each times its weight.

    [w1 * u1, w2 * u2] of length 1   ─▶   cosine = w1² cos1 + w2² cos2

So the dense arm stays one exact integer product, and a word-piece table and a transformer, which fail on different
requests, help each other. Stands on `shaping`; put together by `packaged`.

Invariants
1. A row depends on its own text alone, if those of the parts do.
2. A part that is silent on a text (zeros) leaves the others to speak; one that fails fails the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from toolcrib.errors import RetrievalError
from toolcrib.retrieval.dense import Embedder
from toolcrib.retrieval.embedders.kept import Watched
from toolcrib.retrieval.embedders.shaping import unit
from toolcrib.retrieval.vectors import MAX_DIM, Float32Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """`weight`: above 0; only its ratio to the others' counts. `reads`: whether it speaks on a text at all."""

    embedder: Embedder
    weight: float
    reads: Callable[[str], bool] | None = None


class JointEmbedder:
    """Parts in order; the first one's numbers lead.

    Args:
        multilingual: whether it reads scripts that are not Latin.
        scan_dim: so many leading numbers tell the likely tools from the rest; 0: all of them.
    """

    def __init__(self, parts: Sequence[Part], *, name: str, multilingual: bool = False, scan_dim: int = 0) -> None:
        total = float(np.sqrt(sum(part.weight**2 for part in parts)))
        if not parts or not total > 0 or any(part.weight <= 0 for part in parts):
            raise RetrievalError("a joint embedder needs parts with weights above 0")
        self._parts = [(part, part.weight / total) for part in parts]
        self._dim = sum(part.embedder.dim for part in parts)
        if self._dim > MAX_DIM:
            raise RetrievalError(f"the parts have {self._dim} dimensions together, {MAX_DIM} can be held exactly")
        self.multilingual = multilingual
        self.scan_dim = scan_dim or self._dim
        told = repr([(part.embedder.model_id, round(weight, 9), part.reads is None) for part, weight in self._parts])
        self._model_id = f"{name}-{sha256(told.encode()).hexdigest()[:16]}"

    @property
    def model_id(self) -> str:
        return self._model_id

    @property
    def dim(self) -> int:
        return self._dim

    def embed_documents(self, texts: Sequence[str]) -> Float32Array:
        blocks = [self._block(part, weight, texts) for part, weight in self._parts]
        return np.concatenate(blocks, axis=1)

    def embed_query(self, text: str) -> Float32Array:
        halves = [
            _weighed(part.embedder.embed_query(text), weight, part.embedder.dim)
            if part.reads is None or part.reads(text)
            else np.zeros(part.embedder.dim, dtype=np.float32)
            for part, weight in self._parts
        ]
        return np.concatenate(halves)

    @property
    def n_failed(self) -> int:
        """How many single texts parts could not embed since `watch`, as far as they count."""
        return sum(part.embedder.n_failed for part, _ in self._parts if isinstance(part.embedder, Watched))

    def watch(self, n_texts: int, on_progress: Callable[[str], None] | None) -> None:
        """As `KeptEmbedder.watch`, of each part that is worth watching."""
        for part, _ in self._parts:
            if isinstance(part.embedder, Watched):
                part.embedder.watch(n_texts, on_progress)

    def _block(self, part: Part, weight: float, texts: Sequence[str]) -> Float32Array:
        read = [idx for idx, text in enumerate(texts) if part.reads is None or part.reads(text)]
        rows = np.zeros((len(texts), part.embedder.dim), dtype=np.float32)
        if read:
            found = part.embedder.embed_documents([texts[idx] for idx in read])
            rows[read] = [_weighed(row, weight, part.embedder.dim) for row in found]
        return rows


def _weighed(vector: Float32Array, weight: float, dim: int) -> Float32Array:
    if np.shape(vector) != (dim,):
        raise RetrievalError(f"an embedder gave shape {np.shape(vector)}, expected {(dim,)}")
    return np.asarray(unit(vector) * np.float32(weight), dtype=np.float32)
