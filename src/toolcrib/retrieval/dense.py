"""Dense vectors: the `Embedder` that anyone may supply, the bundled one, and cosines over a permitted set.

    text ─▶ Embedder (float32) ─▶ quantise (int8) ─▶ integer dot products ─▶ cosine, adapted to the permitted tools

Stands on `vectors` (exact products) and `adapt`; used by `index` and `search`.

Invariants
1. What a `DenseView` answers is a function of the permitted tools' rows alone, to the last bit (I1).
2. A broken embedder costs the dense arm, never an answer (I12); one text it cannot embed costs that text.
3. Above `SCAN_ALL` tools a first look reads the leading dimensions only; the likely ones are then scored in full.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from toolcrib.errors import RetrievalError
from toolcrib.retrieval.adapt import Along, MeanDirection, PieceCounts, PieceEmbedder, PieceWeights, count_pieces
from toolcrib.retrieval.learning import Part
from toolcrib.retrieval.vectors import MAX_DIM as MAX_DIM
from toolcrib.retrieval.vectors import Float32Array as Float32Array
from toolcrib.retrieval.vectors import Float64Array, kth_largest, norms, over, products, quantise_one
from toolcrib.retrieval.vectors import Int8Array as Int8Array
from toolcrib.retrieval.vectors import cosine as cosine
from toolcrib.retrieval.vectors import quantise as quantise
from toolcrib.types import IntArray

MODEL_DIR = Path(__file__).parent / "model"
SCAN_ALL = 4_096
"""Up to so many permitted tools every cosine is exact at once."""
_MIN_LIKELY, _LIKELY_SHARE = 512, 64
"""So many of the likely ones are scored in full, one in so many: 99.8 % of the true first ten among 17,479 tools."""
_MAX_PIECES = 256
_MAX_CHARS = 2_000
_BATCH = 256
_PLAIN = re.compile(r"[ !-Z\\-~\n]*")
"""Text that the tokenizer cuts into words and single marks as `_PLAIN_WORD` does: ASCII without control characters, and
without `[`, which begins the names of its special pieces.
"""
_PLAIN_WORD = re.compile(r"[0-9A-Za-z]+|[^0-9A-Za-z\s]")
_MAX_WORDS = 65_536
_MAX_KEPT_WORD = 64
"""Characters: longer ones are told apart by nobody, and would only fill the memory."""


class Embedder(Protocol):
    """Texts to vectors. A row must depend on its own text alone, and the same text must give the same row.

    One that has `scan_dim` says that so many leading dimensions tell the likely tools from the rest.
    """

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
            self._words: dict[str, list[int]] = {}
        except Exception as fault:  # the tokenizers library raises bare Exception
            raise RetrievalError(
                f"the embedding model cannot be read: {fault}", where=str(folder), hint="reinstall toolcrib"
            ) from fault
        digest = sha256((folder / "scale.npy").read_bytes() + self._table[::97].tobytes()).hexdigest()
        self._piece_peak = float((np.abs(self._table).max(axis=1).astype(np.float64) * self._scale).max())
        self._model_id = f"toolcrib-static-{self._table.shape[1]}-{digest[:12]}"

    @property
    def model_id(self) -> str:
        return self._model_id

    @property
    def dim(self) -> int:
        return int(self._table.shape[1])

    @property
    def scan_dim(self) -> int:
        return min(64, self.dim)  # the table is ordered by principal components

    @property
    def piece_peak(self) -> float:
        return self._piece_peak

    def embed_documents(self, texts: Sequence[str]) -> Float32Array:
        return np.array([self._sum(row) for row in self.pieces(texts)], dtype=np.float32).reshape(-1, self.dim)

    def embed_query(self, text: str) -> Float32Array:
        return self._sum(self._pieces_of(text))

    def pieces(self, texts: Sequence[str]) -> list[list[int]]:
        if len(texts) == 1:
            return [self._pieces_of(texts[0])]
        encoded = self._tokenizer.encode_batch([text[:_MAX_CHARS] for text in texts], add_special_tokens=False)
        return [one.ids[:_MAX_PIECES] for one in encoded]

    def _pieces_of(self, text: str) -> list[int]:
        """A request's pieces: word by word where all of it is plain, since its words were met before."""
        text = text[:_MAX_CHARS]
        if not _PLAIN.fullmatch(text):
            return self._tokenizer.encode(text, add_special_tokens=False).ids[:_MAX_PIECES]
        if len(self._words) > _MAX_WORDS:
            self._words = {}
        found: list[int] = []
        for word in _PLAIN_WORD.findall(text):
            known = self._words.get(word)
            if known is None:
                known = self._tokenizer.encode(word, add_special_tokens=False).ids
                if len(word) <= _MAX_KEPT_WORD:
                    self._words[word] = known
            found += known
        return found[:_MAX_PIECES]

    def piece_vectors(self, pieces: npt.NDArray[np.integer] | Sequence[int]) -> Float32Array:
        return np.asarray(self._table[pieces].astype(np.float32) * self._scale[pieces, None])

    def _sum(self, pieces: Sequence[int]) -> Float32Array:
        # One text at a time: its vector must not depend on its neighbours in a batch.
        return np.asarray(self.piece_vectors(pieces).sum(axis=0, dtype=np.float64), dtype=np.float32)


@lru_cache(maxsize=1)
def bundled_embedder() -> StaticEmbedder:
    """The packaged model, loaded once per process."""
    return StaticEmbedder()


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


def _sum_of(by_pieces: PieceEmbedder, text: str) -> tuple[list[int], Float32Array] | None:
    """(a request's pieces, the sum of their vectors), or None where the embedder fails."""
    try:
        pieces = by_pieces.pieces([text])[0]
        return pieces, by_pieces.piece_vectors(pieces).sum(axis=0, dtype=np.float64).astype(np.float32)
    except Exception:  # noqa: BLE001 - as above
        return None


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
    if not np.isfinite(array).all():
        raise RetrievalError("the embedder gave numbers that are not finite")
    return array


def embed_tools(embedder: Embedder, texts: Sequence[str]) -> tuple[Int8Array | None, PieceCounts | None]:
    """(vectors as `embed_all` gives them, piece counts where the embedder has pieces)."""
    by_pieces = _by_pieces(embedder)
    if by_pieces is None or not texts:
        return embed_all(embedder, texts), None
    pieces: list[list[int]] = []
    rows = []
    sums = np.zeros((len(texts), embedder.dim), dtype=np.float32)
    for start in range(0, len(texts), _BATCH):
        found, summed = _pieces_and_sums(embedder, by_pieces, texts[start : start + _BATCH])
        pieces += found
        sums[start : start + len(found)] = summed
        rows.append(quantise(summed))
    vectors = np.concatenate(rows)
    return (vectors if vectors.any() else None), count_pieces(pieces, sums, piece_peak=by_pieces.piece_peak)


def _pieces_and_sums(
    embedder: Embedder, by_pieces: PieceEmbedder, texts: Sequence[str]
) -> tuple[list[list[int]], Float32Array]:
    """Pieces and vectors of texts; none and zeros for a text that cannot be embedded."""
    try:
        return by_pieces.pieces(texts), _checked(embedder.embed_documents(texts), (len(texts), embedder.dim))
    except Exception:  # noqa: BLE001 - as in `_embed_batch`
        if len(texts) == 1:
            return [[]], np.zeros((1, embedder.dim), dtype=np.float32)
        each = [_pieces_and_sums(embedder, by_pieces, [text]) for text in texts]
        return [row for found, _ in each for row in found], np.concatenate([summed for _, summed in each])


def _by_pieces(embedder: object) -> PieceEmbedder | None:
    return embedder if isinstance(embedder, PieceEmbedder) else None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Asked:
    """A request as vectors, int8, shape (dim,): as it stands, and adapted to one permitted set."""

    plain: Int8Array
    adapted: Int8Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Summed:
    """A request before it is made int8: what corrections are learned on.

    Args:
        pieces: none for an embedder without pieces, which cannot be corrected.
        total: float32, shape (dim,), adapted to the permitted set. plain: as in `Asked`.
    """

    pieces: tuple[int, ...]
    total: Float32Array
    plain: Int8Array


class DenseView:
    """Cosines over one permitted set, in the order of the permitted tools.

    Args:
        vectors: int8, shape (n_tools, dim), of all tools; only those in `rows` are ever read.
        rows: numbers of the permitted tools, ascending.
        embedder: makes the vectors of requests.
        pieces: of all tools, where the embedder has pieces.
        adapt: whether `cosines` are adapted to the permitted set.
        learned: corrects the adapted vector of a request.
    """

    def __init__(
        self,
        vectors: Int8Array,
        rows: IntArray,
        *,
        embedder: Embedder | None = None,
        pieces: PieceCounts | None = None,
        adapt: bool = False,
        learned: Part | None = None,
    ) -> None:
        self._embedder = embedder
        self._learned = learned
        self._by_pieces = by_pieces = _by_pieces(embedder)
        self._vectors, self._numbers = vectors, rows
        chosen = vectors if len(rows) == len(vectors) else vectors[rows]
        self._weights: PieceWeights | None = None
        if adapt and pieces is not None and by_pieces is not None:
            self._weights = PieceWeights(pieces.of(rows), by_pieces)
            chosen = self._weights.tools(chosen)
        self._rows: Int8Array = chosen
        self._norms = norms(chosen)
        self.mean = MeanDirection(chosen, self._norms) if adapt else None
        self.scan_dim = int(getattr(embedder, "scan_dim", None) or vectors.shape[1])
        self.looks_twice = len(rows) > SCAN_ALL and self.scan_dim < vectors.shape[1]
        self._look = _FirstLook(chosen[:, : self.scan_dim], self.mean) if self.looks_twice else None
        self._matrix = None if self.looks_twice else np.ascontiguousarray(chosen, dtype=np.float32)

    @property
    def is_empty(self) -> bool:
        """Whether no permitted tool has a vector."""
        return not bool((self._norms > 0).any())

    def ask(self, text: str) -> Asked | None:
        """A request's vectors, or None where the embedder fails."""
        if self._embedder is None:
            return None
        if self._by_pieces is None:
            vector = embed_one(self._embedder, text)
            return None if vector is None else Asked(plain=vector, adapted=vector)
        found = _sum_of(self._by_pieces, text)
        if found is None:
            return None
        pieces, total = found
        plain = quantise_one(total)
        if self._weights is None and self._learned is None:
            return Asked(plain=plain, adapted=plain)
        adapted = total if self._weights is None else self._weights.query(total, pieces)
        return Asked(
            plain=plain, adapted=quantise_one(adapted if self._learned is None else self._corrected(adapted, pieces))
        )

    def _corrected(self, adapted: Float32Array, pieces: Sequence[int]) -> Float32Array:
        assert self._learned is not None
        return adapted + self._learned.delta(pieces)

    def summed(self, text: str) -> Summed | None:
        """A request's vector before it is made int8, without corrections; None where the embedder fails."""
        if self._embedder is None:
            return None
        if self._by_pieces is None:
            vector = embed_one(self._embedder, text)
            return None if vector is None else Summed(pieces=(), total=vector.astype(np.float32), plain=vector)
        found = _sum_of(self._by_pieces, text)
        if found is None:
            return None
        pieces, total = found
        adapted = total if self._weights is None else self._weights.query(total, pieces)
        return Summed(pieces=tuple(pieces), total=adapted, plain=quantise_one(total))

    def centred_rows(self, at: IntArray) -> tuple[Float32Array, Float32Array]:
        """(unit rows of some positions less the direction all share, made unit again; that direction).

        float32, shapes (len(at), dim) and (dim,): their products with requests centred likewise rank as `cosines` do.
        """
        shared = np.zeros(self._rows.shape[1], dtype=np.float32) if self.mean is None else self.mean.direction
        lengths = self._norms[at][:, None]
        units = np.where(lengths > 0, self._rows[at] / np.maximum(lengths, 1.0) - shared, 0.0)
        lengths = np.linalg.norm(units, axis=1, keepdims=True)
        return np.asarray(units / np.maximum(lengths, 1e-9), dtype=np.float32), shared

    def cosines(self, query: Asked | Int8Array, *, also: IntArray | None = None) -> Float64Array:
        """float64, about -1 to 1; 0 where the query or a tool has no vector. Adapted, where this view is.

        Args:
            also: positions to score in full whatever the first look says of them, such as the best of another arm.
        """
        vector = query.adapted if isinstance(query, Asked) else query
        if self._look is None:
            assert self._matrix is not None
            along = None if self.mean is None else self.mean.of_tools
            return self._centred(over(products(self._matrix, vector), self._norms, vector), vector, along)
        seen = self._look.cosines(vector)
        n_likely = min(max(_MIN_LIKELY, len(seen) // _LIKELY_SHARE), len(seen))
        likely = np.flatnonzero(seen >= kth_largest(seen, n_likely))
        chosen = np.zeros(len(seen), dtype=np.bool_)
        chosen[likely[: 2 * n_likely]] = True
        if also is not None:
            chosen[also] = True
        at = np.flatnonzero(chosen)
        found = seen.astype(np.float64)
        found[at] = self.cosines_at(vector, at)
        return found

    def cosines_at(self, query: Asked | Int8Array, at: IntArray) -> Float64Array:
        """As `cosines`, of some positions and from all dimensions: float64, shape (len(at),)."""
        found: Float64Array = self.cosines_of([query], at)[0]
        return found

    def cosines_of(self, queries: Sequence[Asked | Int8Array], at: IntArray) -> Float64Array:
        """As `cosines_at`, for several requests: float64, shape (n_queries, len(at))."""
        rows, lengths = self._rows[at].astype(np.float32), self._norms[at]
        along = None if self.mean is None else self.mean.of_tools.at(at)
        found = np.zeros((len(queries), len(at)))
        for number, query in enumerate(queries):
            vector = query.adapted if isinstance(query, Asked) else query
            found[number] = self._centred(over(products(rows, vector), lengths, vector), vector, along)
        return found

    def plain(self, query: Asked, at: IntArray) -> Float64Array:
        """Cosines of some positions, not adapted: they mean the same for one tool as for thousands."""
        rows = self._vectors[self._numbers[at]]
        return over(products(rows.astype(np.float32), query.plain), norms(rows), query.plain)

    def rows_of(self, at: IntArray) -> Int8Array:
        """Vectors of some positions as `cosines` reads them: int8, shape (len(at), dim)."""
        return self._rows[at]

    def sums(self, groups: IntArray, n_groups: int) -> Int8Array:
        """Sum of the rows of each group, made int8 as rows are: shape (n_groups, dim). `groups`: one per tool."""
        order = np.argsort(groups, kind="stable")
        firsts = np.searchsorted(groups[order], np.arange(n_groups))
        return quantise(np.add.reduceat(self._rows[order], firsts, axis=0, dtype=np.int64))

    def _centred(self, cosines: Float64Array, vector: Int8Array, along: Along | None) -> Float64Array:
        if self.mean is None or along is None or not vector.any():
            return cosines
        return self.mean.centred(cosines, self.mean.of_query(vector), along)


class _FirstLook:
    """Cosines of many tools from their leading dimensions: near the full ones, and good enough to choose the likely.

    The products are exact; what follows is elementwise, in float32, with all that does not depend on the request
    worked out before.
    """

    def __init__(self, rows: Int8Array, mean: MeanDirection | None) -> None:
        lengths = norms(rows)
        self._mean = mean
        self._matrix = np.ascontiguousarray(rows, dtype=np.float32)
        rest = np.ones(len(rows)) if mean is None else mean.of_tools.rest
        over_length = np.divide(rest, lengths, out=np.zeros(len(rows)), where=lengths > 0)
        self._rest, self._scale = rest.astype(np.float32), over_length.astype(np.float32)
        self._shift = None if mean is None else (mean.of_tools.shift * rest).astype(np.float32)
        self._without: IntArray = np.flatnonzero((lengths == 0) | (rest == 0)).astype(np.int64)

    def cosines(self, vector: Int8Array) -> Float32Array:
        """float32, shape (n_tools,), as `DenseView.cosines`."""
        seen = products(self._matrix, vector[: self._matrix.shape[1]])
        head = vector[: self._matrix.shape[1]].astype(np.int64)
        length = np.sqrt(float(head @ head))
        if length == 0:
            return np.zeros_like(seen)
        seen *= self._scale
        seen *= np.float32(1.0 / length)
        if self._mean is not None and self._shift is not None:
            shift, rest = self._mean.of_query(vector)
            seen -= self._shift
            seen += self._rest * np.float32(self._mean.square - shift)
            seen *= np.float32(rest)
            seen += np.float32(max(shift, 0.0))
        seen[self._without] = 0.0
        return seen
