"""The index of one snapshot: built once, searched through views of what a caller may know.

    Index.build(tools, embedder=...) ─▶ index.view(permitted) ─▶ view.search(task)
    index.updated(tools, embedder=...) when a few tools changed
    index.save(path), Index.load(path, tools=..., embedder=...)

Above it: `pipeline.py`, which holds a snapshot and its index together. Below it: `lexical`, `dense`, `adapt`,
`naming`, `storage`.

Invariants
1. An index belongs to its tools in their order (sorted by tool id) and to one embedding model: both are in its key.
2. An index holds integers only; whatever depends on a collection is computed in a view, over the permitted tools (I1).
3. A tool's rows depend on that tool alone, so an update equals a build, bit for bit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from toolcrib.errors import IndexFormatError, IndexStaleError, RetrievalError
from toolcrib.retrieval.adapt import PieceCounts, joined_counts
from toolcrib.retrieval.dense import Embedder, embed_tools
from toolcrib.retrieval.document import FIELDS, SearchDocument, search_document
from toolcrib.retrieval.learning import Part
from toolcrib.retrieval.lexical import Postings, Terms, build_postings, merged
from toolcrib.retrieval.name_terms import NameTerms, joined_name_terms, name_terms, own_words
from toolcrib.retrieval.naming import NameIndex, NameKeys, merged_keys, name_keys
from toolcrib.retrieval.search import View
from toolcrib.retrieval.storage import read_arrays, write_arrays
from toolcrib.retrieval.vectors import MAX_DIM, Int8Array, cosine
from toolcrib.types import BoolArray, IntArray, Tool

INDEX_VERSION = 4
"""Raised whenever tokens, fields or the meaning of an array change: older files are then stale."""
_PROGRESS_EVERY = 200
_KEY_BYTES = 16
_FRESH_SHARE = 0.5
"""From this share of changed tools on, an update is a build."""

OnProgress: TypeAlias = Callable[[int, int], None]


def index_key(tools: Sequence[Tool], embedder: Embedder | None) -> str:
    """SHA-256 over all that an index depends on: ids, digests, searchable metadata, the model, the version."""
    hashed = hashlib.sha256(_basis(embedder).encode() + b"\0")
    for tool in tools:
        hashed.update(_tool_key(tool))
    return f"sha256:{hashed.hexdigest()}"


def model_id(embedder: Embedder | None) -> str:
    return "none" if embedder is None else embedder.model_id


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """What an index holds of its tools, in their order. `keys`: uint8, shape (n_tools, 16), of all it depends on."""

    postings: Postings
    vectors: Int8Array | None
    pieces: PieceCounts | None
    names: NameKeys
    name_terms: NameTerms
    keys: npt.NDArray[np.uint8]

    @classmethod
    def of(cls, tools: Sequence[Tool], *, embedder: Embedder | None, on_progress: OnProgress | None) -> _Parts:
        texts: list[str] = []
        words: list[tuple[str, ...] | None] = []
        postings = build_postings(document.terms for document in _documents(tools, texts, words, on_progress))
        vectors, pieces = (None, None) if embedder is None else embed_tools(embedder, texts)
        keys = np.frombuffer(b"".join(_tool_key(tool) for tool in tools), dtype=np.uint8).reshape(-1, _KEY_BYTES)
        return cls(
            postings=postings,
            vectors=vectors,
            pieces=pieces,
            names=name_keys(tools),
            name_terms=name_terms(words, postings.terms),
            keys=keys,
        )

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        found: dict[str, npt.NDArray[Any]] = {
            "tools": self.keys,
            "terms": np.frombuffer(self.postings.terms.text, dtype=np.uint8),
            "term_ends": self.postings.terms.ends,
            "starts": self.postings.starts,
            "docs": self.postings.docs,
            "counts": self.postings.counts,
            "lengths": self.postings.lengths,
            "name_hashes": self.names.hashes,
            "name_tools": self.names.tools,
            "word_starts": self.name_terms.starts,
            "word_ids": self.name_terms.ids,
        }
        if self.vectors is not None:
            found["vectors"] = self.vectors
        if self.pieces is not None:
            found["piece_starts"], found["piece_ids"] = self.pieces.starts, self.pieces.ids
            found["piece_counts"], found["piece_scales"] = self.pieces.counts, self.pieces.scales
        return found

    @classmethod
    def read(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> _Parts:
        """From the arrays of a file. Raises KeyError for one that is missing, ValueError where two do not agree."""
        postings = Postings(
            terms=Terms(arrays["terms"].tobytes(), arrays["term_ends"]),
            starts=arrays["starts"],
            docs=arrays["docs"],
            counts=arrays["counts"],
            lengths=arrays["lengths"],
        )
        pieces = None
        if "piece_starts" in arrays:
            pieces = PieceCounts(
                starts=arrays["piece_starts"],
                ids=arrays["piece_ids"],
                counts=arrays["piece_counts"],
                scales=arrays["piece_scales"],
            )
        names = NameKeys(hashes=arrays["name_hashes"], tools=arrays["name_tools"])
        words = NameTerms(starts=arrays["word_starts"], ids=arrays["word_ids"])
        vectors, keys = arrays.get("vectors"), arrays["tools"]
        n_tools = {len(keys), postings.n_tools, len(words.starts) - 1}
        n_tools |= {len(vectors)} if vectors is not None else set()
        n_tools |= {len(pieces.scales)} if pieces is not None else set()
        if len(n_tools) > 1 or len(postings.lengths) != len(FIELDS) or len(postings.starts) != len(postings.terms) + 1:
            raise ValueError("its arrays do not agree")
        return cls(postings=postings, vectors=vectors, pieces=pieces, names=names, name_terms=words, keys=keys)

    def rows(self) -> dict[bytes, int]:
        """The row of each tool that can be taken over, by key. One that could not be embedded is worth another try."""
        keys = [key.tobytes() for key in self.keys]
        held = set(range(len(keys)) if self.vectors is None else np.flatnonzero(self.vectors.any(axis=1)).tolist())
        return {key: row for row, key in enumerate(keys) if row in held}


class Index:
    """Postings, vectors and names of one snapshot's tools."""

    def __init__(self, *, tools: Sequence[Tool], parts: _Parts, embedder: Embedder | None, key: str) -> None:
        self.tools = tuple(tools)
        self.key = key
        self._parts = parts
        self._embedder = embedder
        self._names = NameIndex(self.tools, parts.names)

    @classmethod
    def build(cls, tools: Sequence[Tool], *, embedder: Embedder | None, on_progress: OnProgress | None = None) -> Index:
        """Index of tools sorted by tool id.

        Args:
            embedder: None for a lexical index. One that fails leaves the index lexical, and `degraded` says so.
            on_progress: called with (tools done, tools in all).
        """
        _check_dim(embedder)
        parts = _Parts.of(tools, embedder=embedder, on_progress=on_progress)
        if on_progress is not None:
            on_progress(len(tools), len(tools))
        return cls(tools=tools, parts=parts, embedder=embedder, key=index_key(tools, embedder))

    def updated(
        self, tools: Sequence[Tool], *, embedder: Embedder | None, on_progress: OnProgress | None = None
    ) -> Index:
        """The index of other tools, which takes over what this one holds of those that did not change.

        Equal, bit for bit, to one built anew. Built anew it is, too, with another model or when most tools changed.
        """
        usable = model_id(embedder) == self.model_id and not self.degraded
        return _updated(self._parts if usable else None, tools, embedder=embedder, on_progress=on_progress)

    @classmethod
    def update_file(
        cls,
        path: Path,
        *,
        tools: Sequence[Tool],
        embedder: Embedder | None,
        on_progress: OnProgress | None = None,
    ) -> Index:
        """As `updated`, from the file of an earlier index, whose tools need not be known.

        Raises:
            IndexFormatError: the file is damaged or of another format.
        """
        key, arrays = read_arrays(path)
        usable = key.partition(" ")[2] == _basis(embedder)
        parts = _parts_of(arrays, path) if usable else None
        return _updated(parts, tools, embedder=embedder, on_progress=on_progress)

    @property
    def model_id(self) -> str:
        """The model behind the vectors, `none` for a lexical index."""
        return model_id(self._embedder)

    @property
    def degraded(self) -> bool:
        """Whether an embedder was given and gave no vectors. Such an index is better built anew than kept."""
        return self._embedder is not None and self._parts.vectors is None

    def view(
        self, permitted: BoolArray, *, adapt: bool = True, rerank: bool = True, learned: Part | None = None
    ) -> View:
        """What one permitted set can be searched with.

        Args:
            permitted: bool, shape (n_tools,).
            adapt: whether vectors are adapted to the permitted tools.
            rerank: whether the learned ranker reorders the best candidates.
            learned: what was learned from use, over tools that are all permitted.
        """
        mask = np.asarray(permitted, dtype=np.bool_)
        if mask.shape != (len(self.tools),):
            raise RetrievalError(f"permitted has shape {mask.shape}, the index holds {len(self.tools)} tools")
        return View(
            tools=self.tools,
            postings=self._parts.postings,
            vectors=self._parts.vectors,
            pieces=self._parts.pieces,
            names=self._names,
            name_terms=self._parts.name_terms,
            embedder=self._embedder,
            permitted=mask,
            adapt=adapt,
            rerank=rerank,
            learned=learned,
        )

    def similarity(self, a_idx: int, b_idx: int) -> float | None:
        """Cosine of two tools' definitions, -1 to 1; None for an index without vectors. No third tool matters (I1)."""
        vectors = self._parts.vectors
        return None if vectors is None else cosine(vectors[a_idx], vectors[b_idx])

    def similar_among(self, tool_idx: Sequence[int], at_least: float) -> BoolArray | None:
        """Which pairs of these tools have at least this `similarity`: bool, shape (n, n); None without vectors."""
        vectors = self._parts.vectors
        if vectors is None:
            return None
        rows = vectors[list(tool_idx)].astype(np.float32)
        products = (rows @ rows.T).astype(np.float64)  # whole numbers below 2**24: exact in any order
        squares = products.diagonal()
        scale = np.sqrt(np.outer(squares, squares))
        similar: BoolArray = np.divide(products, scale, out=np.zeros_like(products), where=scale > 0) >= at_least
        return similar

    def save(self, path: Path) -> None:
        """Write the index into one file, atomically."""
        write_arrays(path, self._parts.arrays(), key=f"{self.key} {_basis(self._embedder)}")

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
        written, arrays = read_arrays(path)
        key = written.partition(" ")[0]
        if key != expected:
            raise IndexStaleError(
                "the index was built from another snapshot or model",
                where=str(path),
                hint="delete it; it is built anew",
            )
        parts = _parts_of(arrays, path)
        if len(parts.keys) != len(tools):
            raise IndexFormatError("the index holds another number of tools", where=str(path), hint="delete it")
        return cls(tools=tools, parts=parts, embedder=embedder, key=key)


def _basis(embedder: Embedder | None) -> str:
    """What rows of two indexes must have in common to be exchanged."""
    return f"{INDEX_VERSION} {model_id(embedder)}"


def _tool_key(tool: Tool) -> bytes:
    """16 bytes over all that an index reads of one tool."""
    meta = tool.metadata
    old = (meta.aliases,) if meta.aliases else ()
    row = (tool.tool_id, tool.server_id, tool.name, tool.digest, meta.namespace, meta.keywords, meta.examples, *old)
    return hashlib.blake2b(repr(row).encode(errors="surrogatepass"), digest_size=_KEY_BYTES).digest()


def _check_dim(embedder: Embedder | None) -> None:
    if embedder is not None and not 0 < embedder.dim <= MAX_DIM:
        raise RetrievalError(f"the embedder has {embedder.dim} dimensions, 1 to {MAX_DIM} can be held exactly")


def _updated(
    old: _Parts | None, tools: Sequence[Tool], *, embedder: Embedder | None, on_progress: OnProgress | None
) -> Index:
    _check_dim(embedder)
    rows = {} if old is None else old.rows()
    from_row: IntArray = np.array([rows.get(_tool_key(tool), -1) for tool in tools], dtype=np.int64)
    changed = np.flatnonzero(from_row < 0)
    if old is None or len(changed) >= _FRESH_SHARE * len(tools):
        return Index.build(tools, embedder=embedder, on_progress=on_progress)
    fresh = _Parts.of([tools[int(idx)] for idx in changed], embedder=embedder, on_progress=on_progress)
    parts = _joined(old, fresh, from_row)
    if on_progress is not None:
        on_progress(len(tools), len(tools))
    return Index(tools=tools, parts=parts, embedder=embedder, key=index_key(tools, embedder))


def _joined(old: _Parts, fresh: _Parts, from_row: IntArray) -> _Parts:
    """Rows of an old index and of its changed tools. `from_row`: each tool's old row, -1 for the next fresh one."""
    kept, changed = np.flatnonzero(from_row >= 0), np.flatnonzero(from_row < 0)
    old_place = np.full(len(old.keys), -1, dtype=np.int64)
    old_place[from_row[kept]] = kept
    places = ((old, old_place), (fresh, changed))
    picked = np.where(from_row >= 0, from_row, 0)
    picked[changed] = len(old.keys) + np.arange(len(changed))
    postings = merged([(parts.postings, place) for parts, place in places], n_tools=len(from_row))
    words = [(parts.name_terms, parts.postings.terms, place) for parts, place in places]
    return _Parts(
        postings=postings,
        vectors=_joined_vectors(old.vectors, fresh.vectors, picked, n_fresh=len(changed)),
        pieces=None if old.pieces is None else joined_counts(old.pieces, fresh.pieces, picked),
        names=merged_keys([(parts.names, place) for parts, place in places]),
        name_terms=joined_name_terms(words, terms=postings.terms, n_tools=len(from_row)),
        keys=np.concatenate([old.keys, fresh.keys])[picked],
    )


def _joined_vectors(
    old: Int8Array | None, fresh: Int8Array | None, picked: IntArray, *, n_fresh: int
) -> Int8Array | None:
    if old is None:
        return None
    new = np.zeros((n_fresh, old.shape[1]), dtype=np.int8) if fresh is None else fresh
    vectors: Int8Array = np.concatenate([old, new])[picked]
    return vectors if vectors.any() else None


def _documents(
    tools: Sequence[Tool], texts: list[str], words: list[tuple[str, ...] | None], on_progress: OnProgress | None
) -> Iterator[SearchDocument]:
    """Search documents in tool order; leaves their dense texts in `texts`, the words of their names in `words`."""
    for n_done, tool in enumerate(tools):
        if on_progress is not None and n_done % _PROGRESS_EVERY == 0:
            on_progress(n_done, len(tools))
        document = search_document(tool)
        texts.append(document.dense)
        words.append(own_words(tool.name, document.terms[0]))
        yield document


def _parts_of(arrays: Mapping[str, npt.NDArray[Any]], path: Path) -> _Parts:
    try:
        return _Parts.read(arrays)
    except KeyError as fault:
        raise IndexFormatError(
            f"the index lacks {fault}", where=str(path), hint="delete it; it is built anew"
        ) from fault
    except ValueError as fault:
        raise IndexFormatError(
            f"the index cannot be used: {fault}", where=str(path), hint="delete it; it is built anew"
        ) from fault
