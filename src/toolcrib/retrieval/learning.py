"""What was learned from use, and for whom it may count: the parts of a learned file, read, chosen, written.

    requests and calls of one audience ─▶ tuning ─▶ Part ─▶ file ─▶ Learned.for_reach ─▶ one view's requests

A part moves requests, never tools: pieces of words that occur in logged requests get a correction, which is added to a
request's vector; tools that were called get the mean direction of the requests that called them. Vectors of tools and
the index stay as they are.

Stands on `storage` and `vectors`; `tuning` makes parts; `dense` and `search` use one.

Invariants
1. A part names every tool it was learned over: all that its callers could reach. It counts in a view only if all of
   them are in that view's reach, with the same definitions. So what a caller sees stays a function of its reach (I1).
2. Of several parts the one with most tools counts, ties by digest: a function of the reach, too (I11).
3. A part of one tenant counts for that tenant alone, unless the operator had all tenants pooled.
4. No request is in the file, and nothing that rests on too few people or requests: see `tuning`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from toolcrib.errors import RetrievalError
from toolcrib.retrieval.storage import read_arrays, write_arrays
from toolcrib.retrieval.vectors import Float32Array, Float64Array, Int8Array
from toolcrib.types import IntArray

FORMAT = "toolcrib-learned/1"
ANY_TENANT = "*"
"""The tenant of a part that counts for all; `toolcrib learn` makes none for a tenant of that name."""
_HINT = "make it again with `toolcrib learn`, or take `learned` out of [retrieval]"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """What was learned from one audience.

    Args:
        tenant: whose requests; `ANY_TENANT` for those of all.
        tools: (tool id, digest) of all that the audience could reach, sorted by id.
        model_id: of the embedder whose vectors are corrected.
        pieces: int32, shape (n_pieces,), ascending: numbers of word pieces.
        deltas, scales: int8, shape (n_pieces, dim), and float32, shape (n_pieces,): what each occurrence adds.
        called: int32, shape (n_called,): positions in `tools`, ascending.
        precedents: int8, shape (n_called, dim): mean direction of the requests that called each of them.
        lengths: float32, shape (n_called,): how long each mean is, 0 to 1: the more its requests agree and the more
            they are, the longer.
        base: float32, shape (dim,): mean direction of all requests, taken off before directions are compared.
        weight: what a precedent adds to a score at a cosine of 1 and a length of 1.
        n_requests, n_subjects: how many different requests of how many people it rests on.
    """

    tenant: str
    tools: tuple[tuple[str, str], ...]
    model_id: str
    pieces: npt.NDArray[np.int32]
    deltas: Int8Array
    scales: Float32Array
    called: npt.NDArray[np.int32]
    precedents: Int8Array
    lengths: Float32Array
    base: Float32Array
    weight: float
    n_requests: int
    n_subjects: int
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        hashed = sha256(json.dumps(_head_of(self), sort_keys=True).encode())
        for name in _ARRAYS:
            hashed.update(np.ascontiguousarray(getattr(self, name)).tobytes())
        object.__setattr__(self, "digest", f"sha256:{hashed.hexdigest()}")

    @property
    def dim(self) -> int:
        return len(self.base)

    def delta(self, pieces: Sequence[int]) -> Float32Array:
        """What is added to the vector of a request with these pieces: float32, shape (dim,)."""
        ids, counts = np.unique(np.asarray(pieces, dtype=np.int64), return_counts=True)
        at = np.minimum(np.searchsorted(self.pieces, ids), max(len(self.pieces) - 1, 0))
        held = np.zeros(len(ids), dtype=np.bool_) if not len(self.pieces) else self.pieces[at] == ids
        steps = counts[held] * self.scales[at[held]].astype(np.float64)
        return np.asarray((self.deltas[at[held]] * steps[:, None]).sum(axis=0), dtype=np.float32)

    def weighted_precedents(self) -> Float64Array:
        """Rows whose products with a request's direction are what precedents add: float64, shape (n_called, dim)."""
        rows = self.precedents.astype(np.float64)
        norms = np.maximum(np.sqrt(np.einsum("ij,ij->i", rows, rows)), 1.0)
        return np.asarray(rows * (self.weight * self.lengths / norms)[:, None], dtype=np.float64)


class Precedents:
    """A part's precedents in one view. `tool_ids`: of the permitted tools, ascending, all of the part's among them."""

    def __init__(self, part: Part, tool_ids: Sequence[str]) -> None:
        place = {tool_id: position for position, tool_id in enumerate(tool_ids)}
        self._base, self._rows = part.base, part.weighted_precedents()
        self._at: IntArray = np.array([place[part.tools[number][0]] for number in part.called], dtype=np.int64)

    def add(self, scores: Float64Array, plain: Int8Array) -> Float64Array:
        """Scores with the precedents' share. `scores`: float64, shape (n_permitted,). `plain`: the request."""
        if not len(self._at):
            return scores
        found = scores.copy()
        direction = away_from(self._base, plain[None, :])[0].astype(np.float64)
        found[self._at] += np.einsum("ij,j->i", self._rows, direction)
        return found


_ARRAYS = ("pieces", "deltas", "scales", "called", "precedents", "lengths", "base")
_TYPES = {"pieces": "int32", "deltas": "int8", "called": "int32", "precedents": "int8"}
"""The rest are float32, kept as the same bits in int32."""


def away_from(base: Float32Array, rows: npt.NDArray[np.generic]) -> Float32Array:
    """Unit directions of rows, less what all requests share: float32, shape (n, dim); zeros stay zeros."""
    whole = rows.astype(np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", whole, whole))[:, None]
    units = np.where(lengths > 0, whole / np.maximum(lengths, 1e-12) - base, 0.0)
    lengths = np.sqrt(np.einsum("ij,ij->i", units, units))[:, None]
    return np.asarray(units / np.maximum(lengths, 1e-12), dtype=np.float32)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Learned:
    """All parts of one file. `made`: ISO 8601, UTC."""

    parts: tuple[Part, ...]
    made: str = ""

    @property
    def digest(self) -> str:
        """Of what can change an answer; "" for nothing."""
        if not self.parts:
            return ""
        return f"sha256:{sha256(' '.join(sorted(part.digest for part in self.parts)).encode()).hexdigest()}"

    def for_reach(self, reach: Mapping[str, str], *, tenant: str, model_id: str) -> Part | None:
        """The part that counts in one view, or None.

        Args:
            reach: digest of each tool in reach, by id.
            tenant: of the caller. model_id: of the index's embedder.
        """
        fitting = [
            part
            for part in self.parts
            if part.model_id == model_id
            and part.tenant in (tenant, ANY_TENANT)
            and len(part.tools) <= len(reach)
            and all(reach.get(tool_id) == digest for tool_id, digest in part.tools)
        ]
        return max(fitting, key=lambda part: (len(part.tools), part.digest), default=None)

    def write(self, path: Path) -> None:
        """Write the file, whole or not at all; readable for its owner only.

        Raises:
            RetrievalError: it cannot be written.
        """
        head = {"made": self.made, "parts": [_head_of(part) for part in self.parts]}
        arrays: dict[str, npt.NDArray[Any]] = {"head": np.frombuffer(json.dumps(head).encode(), dtype=np.uint8)}
        for number, part in enumerate(self.parts):
            for name in _ARRAYS:
                array = np.ascontiguousarray(getattr(part, name))
                arrays[f"{number}.{name}"] = array if name in _TYPES else array.view(np.int32)
        try:
            write_arrays(path, arrays, key=FORMAT)
        except RetrievalError as fault:
            raise RetrievalError("what was learned cannot be written", where=str(path), hint=fault.what) from fault

    @classmethod
    def read(cls, path: Path) -> Learned:
        """The file's content, checked.

        Raises:
            RetrievalError: there is no such file, or it is damaged or of another format.
        """
        if not path.is_file():
            raise RetrievalError("there is no such file", where=str(path), hint="run `toolcrib learn` first")
        try:
            key, arrays = read_arrays(path)
            if key != FORMAT:
                raise ValueError(f"it is of format {key}, this version reads {FORMAT}")
            head = json.loads(arrays["head"].tobytes())
            parts = tuple(_part(row, number, arrays) for number, row in enumerate(head["parts"]))
            return cls(parts=parts, made=str(head["made"]))
        except RetrievalError as fault:
            why = fault.what.removeprefix("the index cannot be used: ")
            raise RetrievalError(f"not a learned file: {why}", where=str(path), hint=_HINT) from fault
        except (ValueError, KeyError, TypeError, AttributeError) as fault:
            raise RetrievalError(f"not a learned file: {fault}", where=str(path), hint=_HINT) from fault


NOTHING = Learned(parts=())


def _head_of(part: Part) -> dict[str, Any]:
    return {
        "tenant": part.tenant,
        "tools": [list(tool) for tool in part.tools],
        "model_id": part.model_id,
        "weight": part.weight,
        "n_requests": part.n_requests,
        "n_subjects": part.n_subjects,
    }


def _part(row: Mapping[str, Any], number: int, arrays: Mapping[str, npt.NDArray[Any]]) -> Part:
    """One part, its shapes checked against each other. Raises ValueError."""
    read: dict[str, npt.NDArray[Any]] = {}
    for name in _ARRAYS:
        array = arrays[f"{number}.{name}"]
        wanted = _TYPES.get(name, "int32")
        if str(array.dtype) != wanted:
            raise ValueError(f"{name} is of type {array.dtype}, not {wanted}")
        read[name] = array if name in _TYPES else array.view(np.float32)
    tools = tuple((str(tool_id), str(digest)) for tool_id, digest in row["tools"])
    weight = float(row["weight"])
    if not math.isfinite(weight):
        raise ValueError("weight is not finite")
    _check(read, n_tools=len(tools))
    return Part(
        tenant=str(row["tenant"]),
        tools=tools,
        model_id=str(row["model_id"]),
        weight=weight,
        n_requests=int(row["n_requests"]),
        n_subjects=int(row["n_subjects"]),
        **read,
    )


def _check(read: Mapping[str, npt.NDArray[Any]], *, n_tools: int) -> None:
    n_pieces, n_called, dim = len(read["pieces"]), len(read["called"]), len(read["base"])
    shapes = {
        "deltas": (n_pieces, dim),
        "scales": (n_pieces,),
        "precedents": (n_called, dim),
        "lengths": (n_called,),
    }
    for name, shape in shapes.items():
        if read[name].shape != shape:
            raise ValueError(f"{name} has shape {read[name].shape}, not {shape}")
    for name, end in (("pieces", 2**31 - 1), ("called", n_tools)):
        numbers = read[name].astype(np.int64)
        if len(numbers) and (numbers[0] < 0 or numbers[-1] >= end or (np.diff(numbers) <= 0).any()):
            raise ValueError(f"{name} are not ascending numbers below {end}")
    if not all(np.isfinite(read[name]).all() for name in ("scales", "lengths", "base")):
        raise ValueError("a number is not finite")
