"""A folder of the sentence-transformers library, which the operator installs: read from disk, never from a hub.

Stands on `shaping`; made by `models.py`.

Invariants
1. What is loaded is a folder that is there, with `local_files_only`, and no code of the model's own is run.
2. Each text is encoded alone, so its vector does not depend on its neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from toolcrib.errors import ConfigError
from toolcrib.retrieval.embedders.shaping import Shaping, digest_of
from toolcrib.retrieval.vectors import Float32Array

_MODEL_FILES = frozenset({".json", ".txt", ".model", ".safetensors", ".bin", ".pt", ".onnx"})


class SentenceTransformerEmbedder:
    """The model of a folder, on the CPU.

    Args:
        folder: as `SentenceTransformer.save` writes it.
    Raises:
        ConfigError: the library is not installed, the folder is missing, or no model can be loaded from it.
    """

    def __init__(self, folder: Path, *, shaping: Shaping | None = None) -> None:
        self._shaping = shaping or Shaping()
        where = str(folder)
        if not folder.is_dir():
            hint = "path = a folder that SentenceTransformer.save wrote"
            raise ConfigError("there is no such folder", where=where, hint=hint)
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as fault:
            hint = 'pip install "toolcrib[sentence-transformers]"'
            raise ConfigError("sentence-transformers is not installed", where=where, hint=hint) from fault
        try:
            self._model: Any = SentenceTransformer(
                str(folder.absolute()), device="cpu", local_files_only=True, trust_remote_code=False
            )
            own = getattr(self._model, "max_seq_length", None)
            self._model.max_seq_length = min(own or self._shaping.max_tokens, self._shaping.max_tokens)
            digest = digest_of(sorted(file for file in folder.rglob("*") if file.suffix in _MODEL_FILES))
            given = len(self._raw("a"))
        except Exception as fault:  # the library raises whatever its own libraries do
            hint = "path = a folder that SentenceTransformer.save wrote"
            raise ConfigError(f"no model can be loaded from it: {fault}", where=where, hint=hint) from fault
        self._dim = self._shaping.dim(given, where=where)
        self._model_id = self._shaping.model_id("st", folder.absolute().name, digest)

    @property
    def model_id(self) -> str:
        return self._model_id

    @property
    def dim(self) -> int:
        return self._dim

    def embed_documents(self, texts: Sequence[str]) -> Float32Array:
        rows = [self._vector(self._shaping.document(text)) for text in texts]
        return np.array(rows, dtype=np.float32).reshape(-1, self._dim)

    def embed_query(self, text: str) -> Float32Array:
        return self._vector(self._shaping.query(text))

    def _vector(self, text: str) -> Float32Array:
        return self._shaping.cut(self._raw(text), dim=self._dim)

    def _raw(self, text: str) -> Float32Array:
        found = self._model.encode([text], batch_size=1, show_progress_bar=False, convert_to_numpy=True)
        return np.asarray(found[0], dtype=np.float32)
