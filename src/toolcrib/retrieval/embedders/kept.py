"""Any embedder, with its vectors of documents kept on disk: a text is embedded once per model, not once per index.

    texts ─▶ known by hash? ─▶ the row on disk
               └─ no ─▶ the embedder, a few at a time ─▶ written at once, so that an interrupted build goes on later

One SQLite file per model, `embeddings/<model id>.db`. Vectors of requests are kept in memory only, the latest few
hundred. Stands on `vectors`; wraps whatever `models.py` makes.

Invariants
1. A row from disk is the row that the embedder gave, bit for bit as the index holds it: both went through `quantise`.
2. What is damaged, of another length or another model is never used; it is made again.
3. A file that cannot be read or written costs time, never an answer.
"""

from __future__ import annotations

import logging
import os
import re
import sqlite3
import zlib
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np

from toolcrib.retrieval.dense import Embedder
from toolcrib.retrieval.embedders.shaping import RefusedTextError
from toolcrib.retrieval.vectors import Float32Array, Int8Array, quantise

_CHUNK = 64
"""So many texts are embedded between two writes."""
_ASK = 500
_N_QUERIES = 512
_KEPT_FILES = 3
_TIMEOUT_S = 5.0
_log = logging.getLogger(__name__)


@runtime_checkable
class Watched(Protocol):
    """An embedder that takes long enough to tell how far it is, and counts what it could not do."""

    @property
    def n_failed(self) -> int: ...

    def watch(self, n_texts: int, on_progress: Callable[[str], None] | None) -> None: ...


def watched(embedder: object) -> Watched | None:
    """The embedder itself, if it is one to watch."""
    return embedder if isinstance(embedder, Watched) else None


class KeptEmbedder:
    """Gives what `inner` gives, as whole numbers of at most 127, which is all that an index holds of a vector.

    Args:
        folder: where files are kept, made when needed; None: nothing is kept on disk.
    """

    def __init__(self, inner: Embedder, *, folder: Path | None) -> None:
        self._inner = inner
        self._path = None if folder is None else folder / f"{_file_name(inner.model_id)}.db"
        self._model_id, self._dim = inner.model_id, inner.dim
        self.multilingual = bool(getattr(inner, "multilingual", False))
        self.scan_dim = int(getattr(inner, "scan_dim", self._dim))
        self._ask = lru_cache(maxsize=_N_QUERIES)(self._query)
        self._n_done = self._n_texts = self._n_failed = self._n_unanswered = 0
        self._on_progress: Callable[[str], None] | None = None

    @property
    def model_id(self) -> str:
        return self._model_id

    @property
    def dim(self) -> int:
        return self._dim

    @property
    def n_failed(self) -> int:
        """How many single texts could not be embedded since `watch`."""
        return self._n_failed

    @property
    def n_unanswered(self) -> int:
        """How many of those failed for another reason than that the model takes no such text: worth another try."""
        return self._n_unanswered

    def watch(self, n_texts: int, on_progress: Callable[[str], None] | None) -> None:
        """Tell of what is embedded from now on, as `embedding 1200 of 4000`; texts known from before are not told."""
        self._n_done = self._n_failed = self._n_unanswered = 0
        self._n_texts, self._on_progress = n_texts, on_progress

    def embed_documents(self, texts: Sequence[str]) -> Float32Array:
        keys = [sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
        rows = self._known(keys)
        missing = list({key: text for key, text in zip(keys, texts, strict=True) if key not in rows}.items())
        for start in range(0, len(missing), _CHUNK):
            chunk = missing[start : start + _CHUNK]
            rows |= self._made(chunk)
            self._tell(len(texts) - len(missing) + start + len(chunk))
        self._n_done += len(texts)
        return np.array([rows[key] for key in keys], dtype=np.float32).reshape(-1, self._dim)

    def embed_query(self, text: str) -> Float32Array:
        return self._ask(text)

    def _query(self, text: str) -> Float32Array:
        vector = np.asarray(self._inner.embed_query(text), dtype=np.float32)
        vector.setflags(write=False)
        return vector

    def _made(self, chunk: Sequence[tuple[bytes, str]]) -> dict[bytes, Int8Array]:
        try:
            vectors = np.asarray(self._inner.embed_documents([text for _, text in chunk]), dtype=np.float64)
            if vectors.shape != (len(chunk), self._dim):
                raise ValueError(f"the embedder gave shape {vectors.shape}, expected {(len(chunk), self._dim)}")
            if not np.isfinite(vectors).all():
                raise ValueError("the embedder gave numbers that are not finite")
            rows = quantise(vectors)
        except Exception as fault:
            self._n_failed += len(chunk) == 1
            self._n_unanswered += len(chunk) == 1 and not isinstance(fault, RefusedTextError)
            raise
        made = {key: row for (key, _), row in zip(chunk, rows, strict=True)}
        self._keep(made)
        return made

    def _tell(self, n_more: int) -> None:
        if self._on_progress is not None and self._n_texts:
            self._on_progress(f"embedding {min(self._n_done + n_more, self._n_texts)} of {self._n_texts}")

    def _known(self, keys: Sequence[bytes]) -> dict[bytes, Int8Array]:
        found: dict[bytes, Int8Array] = {}

        def read(file: sqlite3.Connection) -> None:
            for start in range(0, len(keys), _ASK):
                asked = keys[start : start + _ASK]
                marks = ",".join("?" * len(asked))
                rows = file.execute(f"SELECT key, crc, row FROM vectors WHERE key IN ({marks})", asked)  # noqa: S608
                for key, crc, row in rows:
                    if isinstance(row, bytes) and len(row) == self._dim and zlib.crc32(key + row) == crc:
                        found[key] = np.frombuffer(row, dtype=np.int8)

        if self._path is not None and self._path.exists():
            _with_file(self._path, read)
        return found

    def _keep(self, rows: dict[bytes, Int8Array]) -> None:
        packed = [(key, zlib.crc32(key + row.tobytes()), row.tobytes()) for key, row in rows.items() if row.any()]

        def write(file: sqlite3.Connection) -> None:
            with file:
                file.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", packed)

        if self._path is not None:
            _with_file(self._path, write)


def _with_file(path: Path, work: Callable[[sqlite3.Connection], None]) -> None:
    """Do this with the file, opened for it alone since threads and processes share it. A fault ends the work only."""
    try:
        if not path.exists():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _drop_oldest(path.parent)
        with closing(sqlite3.connect(path, timeout=_TIMEOUT_S)) as file:
            file.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, crc INTEGER, row BLOB)")
            work(file)
        os.utime(path)  # used now, if only read
    except sqlite3.OperationalError as fault:
        _log.warning("vectors could not be kept in %s: %s", path, fault)
    except sqlite3.DatabaseError as fault:
        _log.warning("%s is damaged (%s), its vectors are made again", path, fault)
        with suppress(OSError):
            path.unlink(missing_ok=True)
    except OSError as fault:
        _log.warning("vectors could not be kept in %s: %s", path, fault)


def _file_name(model_id: str) -> str:
    """A file's name for any model id: readable, and another one for another id."""
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", model_id)[-80:].lstrip(".-")
    return readable if readable == model_id else f"{readable}-{sha256(model_id.encode()).hexdigest()[:12]}"


def _drop_oldest(folder: Path) -> None:
    """Leave room for one more file: those of models that were last used longest ago go."""
    by_age = sorted(folder.glob("*.db"), key=lambda file: file.stat().st_mtime)
    for old in by_age[: max(0, len(by_age) - _KEPT_FILES + 1)]:
        old.unlink(missing_ok=True)
