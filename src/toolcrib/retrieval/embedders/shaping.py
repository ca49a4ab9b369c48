"""What every embedder of the operator's own does to texts and vectors: prefixes, the cut, unit length, the id.

Below it: `vectors.py`. Used by all of this package.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from toolcrib.errors import ConfigError, RetrievalError
from toolcrib.retrieval.vectors import MAX_DIM, Float32Array

MAX_CHARS = 8_000
"""Of one text, before any tokenizer sees it."""
_BLOCK_BYTES = 1 << 20


class RefusedTextError(RetrievalError):
    """The model is there and takes no such text: asking again is of no use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shaping:
    """How texts go into a model and how its vectors come out.

    Args:
        dimensions: how many of a vector's first numbers are kept; 0: all.
        query_prefix, document_prefix: put before each text.
        max_tokens: of one text, at most.
    """

    dimensions: int = 0
    query_prefix: str = ""
    document_prefix: str = ""
    max_tokens: int = 256

    def dim(self, n_given: int, *, where: str) -> int:
        """How many numbers are left of a model's `n_given`.

        Raises:
            ConfigError: more than can be compared exactly, or fewer than are wanted.
        """
        if self.dimensions > n_given:
            hint = f"set dimensions = {n_given} or less, or leave it out"
            raise ConfigError(
                f"the model gives {n_given} numbers a text, {self.dimensions} are wanted", where=where, hint=hint
            )
        kept = self.dimensions or n_given
        if not 0 < kept <= MAX_DIM:
            hint = f"set dimensions = {MAX_DIM} or less, if the model allows a cut"
            raise ConfigError(
                f"{kept} numbers a text, at most {MAX_DIM} can be compared exactly", where=where, hint=hint
            )
        return kept

    def cut(self, vector: npt.NDArray[np.floating], *, dim: int) -> Float32Array:
        """float32, shape (dim,), of unit length; zeros stay zeros."""
        return unit(np.asarray(vector, dtype=np.float64)[:dim])

    def query(self, text: str) -> str:
        return self.query_prefix + text[:MAX_CHARS]

    def document(self, text: str) -> str:
        return self.document_prefix + text[:MAX_CHARS]

    def model_id(self, kind: str, name: str, *facts: object) -> str:
        """An id of letters, digits, `.`, `_` and `-`: what it is, and a hash over all that its vectors depend on."""
        told = repr((name, self.dimensions, self.query_prefix, self.document_prefix, self.max_tokens, *facts))
        readable = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[-40:]
        return f"{kind}-{readable}-{hashlib.sha256(told.encode()).hexdigest()[:16]}"


def unit(vector: npt.NDArray[np.floating]) -> Float32Array:
    """The vector at length 1, float32; one that is all zeros or not finite becomes zeros."""
    whole = np.asarray(vector, dtype=np.float64)
    length = float(np.sqrt(np.sum(whole * whole)))
    if not np.isfinite(length) or length == 0.0:
        return np.zeros(whole.shape, dtype=np.float32)
    return np.asarray(whole / length, dtype=np.float32)


def digest_of(files: Sequence[Path]) -> str:
    """SHA-256 over the names and contents of files, in the order given: hexadecimal.

    Raises:
        OSError: one cannot be read.
    """
    hashed = hashlib.sha256()
    for path in files:
        hashed.update(f"{path.name}\0{path.stat().st_size}\0".encode())
        with path.open("rb") as file:
            while block := file.read(_BLOCK_BYTES):
                hashed.update(block)
    return hashed.hexdigest()
