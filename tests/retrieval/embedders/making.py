"""Embedders for the tests of this folder: vectors from letters, counted and failing on demand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from toolcrib.retrieval.vectors import Float32Array


class Letters:
    """A text's vector is its counts of the first `dim` letters. `asked` holds every text it was given."""

    def __init__(self, *, dim: int = 6, model_id: str = "letters", poison: str = "") -> None:
        self.model_id, self.dim, self.poison = model_id, dim, poison
        self.asked: list[str] = []

    def embed_documents(self, texts: Sequence[str]) -> Float32Array:
        self.asked += texts
        if self.poison and any(self.poison in text for text in texts):
            raise RuntimeError("poisoned")
        return np.array([self._row(text) for text in texts], dtype=np.float32).reshape(-1, self.dim)

    def embed_query(self, text: str) -> Float32Array:
        return self.embed_documents([text])[0]

    def _row(self, text: str) -> list[float]:
        return [float(text.count(chr(ord("a") + place))) for place in range(self.dim)]
