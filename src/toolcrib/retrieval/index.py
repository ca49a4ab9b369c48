"""The index of one snapshot: built once, searched through views of what a caller may know.

    Index.build(tools, embedder=...) ─▶ index.view(permitted) ─▶ view.search(task)
    index.save(path), Index.load(path, tools=..., embedder=...)

Above it: `pipeline.py`, which holds a snapshot and its index together. Below it: `lexical`, `dense`, `naming`,
`storage`.

Invariants
1. An index belongs to its tools in their order (sorted by tool id) and to one embedding model: both are in its key.
2. An index holds integers only; whatever depends on a collection is computed in a view, over the permitted tools (I1).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from toolcrib.errors import IndexFormatError, IndexStaleError, RetrievalError
from toolcrib.retrieval.dense import MAX_DIM, Embedder, Int8Array, cosine, embed_all
from toolcrib.retrieval.document import FIELDS, SearchDocument, search_document
from toolcrib.retrieval.lexical import Postings, build_postings
from toolcrib.retrieval.naming import NameIndex
from toolcrib.retrieval.search import View
from toolcrib.retrieval.storage import read_arrays, write_arrays
from toolcrib.types import BoolArray, Tool

INDEX_VERSION = 2
"""Raised whenever tokens, fields or the meaning of an array change: older files are then stale."""
_PROGRESS_EVERY = 200


def index_key(tools: Sequence[Tool], embedder: Embedder | None) -> str:
    """SHA-256 over all that an index depends on: ids, digests, searchable metadata, the model, the version."""
    hashed = hashlib.sha256(f"{INDEX_VERSION}\0{model_id(embedder)}".encode())
    for tool in tools:
        meta = tool.metadata
        row = [tool.tool_id, tool.server_id, tool.name, tool.digest, meta.namespace, meta.keywords, meta.examples]
        hashed.update(json.dumps(row).encode() + b"\0")
    return f"sha256:{hashed.hexdigest()}"


def model_id(embedder: Embedder | None) -> str:
    return "none" if embedder is None else embedder.model_id


class Index:
    """Postings, vectors and names of one snapshot's tools."""

    def __init__(
        self,
        *,
        tools: Sequence[Tool],
        postings: Postings,
        vectors: Int8Array | None,
        embedder: Embedder | None,
        key: str,
    ) -> None:
        self.tools = tuple(tools)
        self.key = key
        self._postings = postings
        self._vectors = vectors
        self._embedder = embedder
        self._names = NameIndex(self.tools)

    @classmethod
    def build(
        cls,
        tools: Sequence[Tool],
        *,
        embedder: Embedder | None,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> Index:
        """Index of tools sorted by tool id.

        Args:
            embedder: None for a lexical index. One that fails leaves the index lexical, and `degraded` says so.
            on_progress: called with (tools done, tools in all).
        """
        if embedder is not None and not 0 < embedder.dim <= MAX_DIM:
            raise RetrievalError(f"the embedder has {embedder.dim} dimensions, 1 to {MAX_DIM} can be held exactly")
        texts: list[str] = []
        postings = build_postings(document.terms for document in _documents(tools, texts, on_progress))
        vectors = None if embedder is None else embed_all(embedder, texts)
        if on_progress is not None:
            on_progress(len(tools), len(tools))
        key = index_key(tools, embedder)
        return cls(tools=tools, postings=postings, vectors=vectors, embedder=embedder, key=key)

    @property
    def model_id(self) -> str:
        """The model behind the vectors, `none` for a lexical index."""
        return model_id(self._embedder)

    @property
    def degraded(self) -> bool:
        """Whether an embedder was given and gave no vectors. Such an index is better built anew than kept."""
        return self._embedder is not None and self._vectors is None

    def view(self, permitted: BoolArray) -> View:
        """What one permitted set can be searched with. `permitted`: bool, shape (n_tools,)."""
        mask = np.asarray(permitted, dtype=np.bool_)
        if mask.shape != (len(self.tools),):
            raise RetrievalError(f"permitted has shape {mask.shape}, the index holds {len(self.tools)} tools")
        return View(
            tools=self.tools,
            postings=self._postings,
            vectors=self._vectors,
            names=self._names,
            embedder=self._embedder,
            permitted=mask,
        )

    def similarity(self, a_idx: int, b_idx: int) -> float | None:
        """Cosine of two tools' definitions, -1 to 1; None for an index without vectors. No third tool matters (I1)."""
        return None if self._vectors is None else cosine(self._vectors[a_idx], self._vectors[b_idx])

    def save(self, path: Path) -> None:
        """Write the index into one file, atomically."""
        terms = "\n".join(self._postings.vocabulary).encode()
        arrays: dict[str, npt.NDArray[Any]] = {
            "terms": np.frombuffer(terms, dtype=np.uint8),
            "starts": self._postings.starts,
            "docs": self._postings.docs,
            "counts": self._postings.counts,
            "lengths": self._postings.lengths,
        }
        if self._vectors is not None:
            arrays["vectors"] = self._vectors
        write_arrays(path, arrays, key=self.key)

    @classmethod
    def load(
        cls, path: Path, *, tools: Sequence[Tool], embedder: Embedder | None, expect_key: str | None = None
    ) -> Index:
        """The index in a file, for the tools it was built from.

        Args:
            expect_key: what the file's key must be; computed from tools and embedder if absent.
        Raises:
            IndexFormatError: the file is damaged or of another format.
            IndexStaleError: it was built from other tools or with another model.
        """
        expected = index_key(tools, embedder) if expect_key is None else expect_key
        key, arrays = read_arrays(path)
        if key != expected:
            raise IndexStaleError(
                "the index was built from another snapshot or model",
                where=str(path),
                hint="delete it; it is built anew",
            )
        try:
            postings, vectors = _postings_of(arrays), arrays.get("vectors")
        except (KeyError, UnicodeDecodeError) as fault:
            raise IndexFormatError(
                f"the index lacks {fault}", where=str(path), hint="delete it; it is built anew"
            ) from fault
        if postings.n_tools != len(tools) or (vectors is not None and len(vectors) != len(tools)):
            raise IndexFormatError("the index holds another number of tools", where=str(path), hint="delete it")
        return cls(tools=tools, postings=postings, vectors=vectors, embedder=embedder, key=key)


def _documents(
    tools: Sequence[Tool], texts: list[str], on_progress: Callable[[int, int], None] | None
) -> Iterator[SearchDocument]:
    """Search documents in tool order; leaves their dense texts in `texts`."""
    for n_done, tool in enumerate(tools):
        if on_progress is not None and n_done % _PROGRESS_EVERY == 0:
            on_progress(n_done, len(tools))
        document = search_document(tool)
        texts.append(document.dense)
        yield document


def _postings_of(arrays: dict[str, npt.NDArray[Any]]) -> Postings:
    text = arrays["terms"].tobytes().decode()
    terms = text.split("\n") if text else []
    if arrays["lengths"].shape[0] != len(FIELDS) or len(arrays["starts"]) != len(terms) + 1:
        raise KeyError("terms")
    return Postings(
        vocabulary={term: number for number, term in enumerate(terms)},
        starts=arrays["starts"],
        docs=arrays["docs"],
        counts=arrays["counts"],
        lengths=arrays["lengths"],
    )
