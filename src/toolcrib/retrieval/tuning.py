"""Learning from use: corrections for the word pieces of logged requests, and precedents, from what was called.

    examples ─▶ Ground (vectors and other scores, once) ─▶ gradient steps ─▶ the steps that did best on examples left
                out ─▶ int8

What is minimised is the cross entropy of the called tool against all tools of the audience, where a tool's score is
what `search` gives it: the corrected cosine plus lexical, server and precedent scores, which stay fixed. So only what
words and servers leave wrong is corrected. The tools' vectors stay fixed: the index need not be built again, and a
correction means the same in every view.

Constants were chosen on written requests over MCP servers and on labelled sets that the tuned table had not seen
(docs/learning.md). Correcting tools' vectors instead, or both, did worse: a few requests move a tool too far.

Stands on `learning`, `search` and `vectors`; used by `learn`. NumPy only.

Invariants
1. Nothing but the audience's examples and the tools in its reach is looked at.
2. A piece is corrected only if `MIN_PIECE_REQUESTS` different requests of enough people hold it, and a tool has a
   precedent only if `MIN_PRECEDENT_REQUESTS` called it: a single request, or a single person, cannot be told from it.
3. The same examples in the same order give the same part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from toolcrib.retrieval.learning import Part, away_from
from toolcrib.retrieval.search import View
from toolcrib.retrieval.vectors import Float32Array, Float64Array, Int8Array, quantise
from toolcrib.types import BoolArray, IntArray

MIN_PIECE_REQUESTS = 2
MIN_PRECEDENT_REQUESTS = 3
PRECEDENT_WEIGHTS = (0.0, 0.5, 1.0)
"""Tried in turn; what does best on the examples left out is taken."""
LEARNING_RATE = 0.005
"""Of the median length of a piece's vector."""
TEMPERATURE = 0.07
N_EPOCHS = 24
PATIENCE = 3
BATCH = 32
MAX_COLUMNS = 4_096
"""Above so many tools those that no logged request comes near are left out of the sum."""
LEFT_OUT = 5
"""One in so many examples tells when to stop."""
_NEAR = 50
_FEW = 1.0
_DEPTHS = (1, 5, 10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One request and what was called for it.

    Args:
        called: positions in the view, one per capability.
        weight: above 0; of a request that was made again and again.
        subjects: who made it, by any names that tell people apart.
    """

    text: str
    called: tuple[int, ...]
    weight: float = 1.0
    subjects: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Ground:
    """All that stays fixed while corrections are learned. `n`: examples that the dense arm can read.

    Args:
        tools: float32, shape (n_columns, dim): centred unit rows of the tools that are looked at.
        shared: float32, shape (dim,): the direction taken off, see `adapt.MeanDirection`.
        requests: float32, shape (n, dim): vectors before correction.
        plain: int8, shape (n, dim). others: float32, shape (n, n_columns): scores but for the cosine.
        pieces: ids and counts of each example's pieces.
        called: columns of the tools that were called, per example.
    """

    examples: tuple[Example, ...]
    tools: Float32Array
    columns: IntArray
    shared: Float32Array
    requests: Float32Array
    plain: Int8Array
    others: Float32Array
    pieces: tuple[tuple[IntArray, IntArray], ...]
    called: tuple[IntArray, ...]

    @property
    def n(self) -> int:
        return len(self.examples)


def fit(
    view: View,
    examples: Sequence[Example],
    *,
    tools: Sequence[tuple[str, str]],
    tenant: str,
    model_id: str,
    min_subjects: int = 2,
    seed: int = 0,
    on_progress: Callable[[str], None] = lambda _text: None,
) -> Part | None:
    """A part from an audience's examples; None where nothing can be learned.

    Args:
        view: of all that the audience can reach, without a part.
        tools: (tool id, digest) of each of the view's tools, in their order.
        min_subjects: people that a correction must rest on, 1 or more.
    """
    ground = _ground(view, examples)
    if ground is None or ground.n < 2 * LEFT_OUT:
        return None
    left_out = np.array([_is_left_out(example) for example in ground.examples])
    if left_out.all() or not left_out.any():
        return None
    shared = _shared_pieces(ground, ~left_out, min_subjects=min_subjects)
    precedents = _Precedents(ground, ~left_out, min_subjects=min_subjects)
    best: tuple[float, Float32Array, float] | None = None
    for weight in PRECEDENT_WEIGHTS:
        if weight and not len(precedents.tools):
            continue
        fixed = ground.others + np.float32(weight) * precedents.scores()
        found, deltas = _descend(ground, fixed, shared, left_out, seed=seed)
        on_progress(f"precedents x {weight:g}: {100 * found:.1f} on the requests left out")
        if best is None or found > best[0]:
            best = (found, deltas, weight)
    assert best is not None
    _, deltas, weight = best
    return _part(ground, shared, deltas, precedents, weight, tools=tools, tenant=tenant, model_id=model_id)


def _is_left_out(example: Example) -> bool:
    """By the text, so that the same request never stands on both sides."""
    return sha256(example.text.encode("utf-8", "surrogatepass")).digest()[0] % LEFT_OUT == 0


def _ground(view: View, examples: Sequence[Example]) -> _Ground | None:
    """None for a view without vectors."""
    if view.dense is None or view.dense.is_empty:
        return None
    read, requests, plain, others, pieces = [], [], [], [], []
    columns = _columns(view, examples)
    for example in examples:
        looked = view.looked_at(example.text)
        if looked is None or not looked.asked.plain.any():
            continue
        asked = looked.asked
        read.append(example)
        requests.append(asked.total)
        plain.append(asked.plain)
        others.append((looked.fused - looked.cosines)[columns].astype(np.float32))
        pieces.append(np.unique(np.asarray(asked.pieces, dtype=np.int64), return_counts=True))
    if not read:
        return None
    rows, shared = view.dense.centred_rows(columns)
    place = {int(position): column for column, position in enumerate(columns)}
    return _Ground(
        examples=tuple(read),
        tools=rows,
        columns=columns,
        shared=shared,
        requests=np.stack(requests),
        plain=np.stack(plain),
        others=np.stack(others),
        pieces=tuple(pieces),
        called=tuple(np.array(sorted({place[p] for p in example.called}), dtype=np.int64) for example in read),
    )


def _columns(view: View, examples: Sequence[Example]) -> IntArray:
    """Positions of the tools that are looked at, ascending: all, or the called and the nearest ones."""
    assert view.dense is not None
    n = view.n_tools
    if n <= MAX_COLUMNS:
        return np.arange(n, dtype=np.int64)
    near = np.zeros(n, dtype=np.int64)
    for example in examples:
        if looked := view.looked_at(example.text):
            near[np.argpartition(-looked.fused, _NEAR)[:_NEAR]] += 1
        near[list(example.called)] += len(examples) + 1
    return np.sort(np.argsort(-near, kind="stable")[:MAX_COLUMNS])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Shared:
    """Pieces that may be corrected.

    Args:
        ids: ascending. of: for each example the places in `ids` of its pieces, ascending, and how often it has them.
    """

    ids: IntArray
    of: tuple[tuple[IntArray, IntArray], ...]


def _shared_pieces(ground: _Ground, used: BoolArray, *, min_subjects: int) -> _Shared:
    """Those that enough requests of enough people hold."""
    requests: dict[int, int] = {}
    people: dict[int, set[str]] = {}
    for place in np.flatnonzero(used):
        for piece in ground.pieces[place][0].tolist():
            requests[piece] = requests.get(piece, 0) + 1
            people.setdefault(piece, set()).update(ground.examples[place].subjects)
    kept = [p for p, n in requests.items() if n >= MIN_PIECE_REQUESTS and len(people[p]) >= min_subjects]
    shared: IntArray = np.array(sorted(kept), dtype=np.int64)
    held = [np.isin(ids, shared) for ids, _ in ground.pieces]
    return _Shared(
        ids=shared,
        of=tuple(
            (np.searchsorted(shared, ids[mine]).astype(np.int64), times[mine])
            for (ids, times), mine in zip(ground.pieces, held, strict=True)
        ),
    )


class _Precedents:
    """Mean directions of the requests that called each tool; the used examples do not see themselves in them."""

    def __init__(self, ground: _Ground, used: BoolArray, *, min_subjects: int) -> None:
        self._ground, self._used = ground, used
        whole = ground.plain.astype(np.float64)
        units = whole / np.maximum(np.sqrt(np.einsum("ij,ij->i", whole, whole)), 1e-12)[:, None]
        self.base: Float32Array = units[used].mean(axis=0).astype(np.float32)
        self._directions = away_from(self.base, ground.plain)
        n_columns, dim = ground.tools.shape
        self._sums = np.zeros((n_columns, dim), dtype=np.float32)
        self._n = np.zeros(n_columns)
        people: dict[int, set[str]] = {}
        for place in np.flatnonzero(used):
            self._sums[ground.called[place]] += self._directions[place]
            self._n[ground.called[place]] += 1
            for column in ground.called[place].tolist():
                people.setdefault(column, set()).update(ground.examples[place].subjects)
        kept = [c for c, who in people.items() if self._n[c] >= MIN_PRECEDENT_REQUESTS and len(who) >= min_subjects]
        self.tools: IntArray = np.array(sorted(kept), dtype=np.int64)

    def means(self) -> Float32Array:
        """float32, shape (n_kept, dim): shorter than 1 where requests are few or differ."""
        return np.asarray(self._sums[self.tools] / (self._n[self.tools] + _FEW)[:, None], dtype=np.float32)

    def scores(self) -> Float32Array:
        """float32, shape (n, n_columns)."""
        found = np.zeros((self._ground.n, len(self._n)), dtype=np.float32)
        found[:, self.tools] = self._directions @ self.means().T
        for place in np.flatnonzero(self._used):
            mine = np.intersect1d(self._ground.called[place], self.tools)
            own = self._directions[place]
            found[place, mine] = (self._sums[mine] - own) @ own / (self._n[mine] - 1 + _FEW)
        return found


def _descend(
    ground: _Ground, fixed: Float32Array, shared: _Shared, left_out: BoolArray, *, seed: int
) -> tuple[float, Float32Array]:
    """(mean recall on the examples left out, deltas of the shared pieces) after the epoch that did best."""
    deltas = np.zeros((len(shared.ids), ground.tools.shape[1]), dtype=np.float32)
    check = np.flatnonzero(left_out)
    best = (_recall(ground, fixed, shared, deltas, check), deltas.copy())
    if not len(shared.ids):
        return best
    steps = _Adam(deltas, rate=LEARNING_RATE * _typical_length(ground))
    used, random, n_worse = np.flatnonzero(~left_out), np.random.default_rng(seed), 0
    for _ in range(N_EPOCHS):
        order = random.permutation(used)
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            at, counts = _counts(shared, batch)
            steps.take(at, counts.T @ _gradient(ground, fixed, batch, counts @ deltas[at]))
        found = _recall(ground, fixed, shared, deltas, check)
        n_worse = 0 if found > best[0] else n_worse + 1
        if n_worse == 0:
            best = (found, deltas.copy())
        elif n_worse > PATIENCE:
            break
    return best


def _typical_length(ground: _Ground) -> float:
    """Of a piece's vector: a request's, over the root of its pieces."""
    n_pieces = np.array([max(int(counts.sum()), 1) for _, counts in ground.pieces])
    return float(np.median(np.linalg.norm(ground.requests, axis=1) / np.sqrt(n_pieces)))


def _counts(shared: _Shared, batch: IntArray) -> tuple[IntArray, Float32Array]:
    """Which shared pieces a batch has (their places), and how often each example has them."""
    held = np.unique(np.concatenate([shared.of[place][0] for place in batch]))
    counts = np.zeros((len(batch), len(held)), dtype=np.float32)
    for row, place in enumerate(batch):
        at, times = shared.of[place]
        counts[row, np.searchsorted(held, at)] = times
    return held, counts


def _directions(
    ground: _Ground, batch: IntArray, added: Float32Array
) -> tuple[Float32Array, Float32Array, Float32Array, Float32Array]:
    """(centred unit requests, their lengths before; unit requests, their lengths before)."""
    whole = ground.requests[batch] + added
    lengths = np.maximum(np.linalg.norm(whole, axis=1, keepdims=True), 1e-9)
    units = whole / lengths
    centred = units - ground.shared
    rests = np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), 1e-9)
    return centred / rests, rests, units, lengths


def _gradient(ground: _Ground, fixed: Float32Array, batch: IntArray, added: Float32Array) -> Float32Array:
    """Of the loss by each request's vector: float32, shape (n_batch, dim)."""
    facing, rests, units, lengths = _directions(ground, batch, added)
    logits = (facing @ ground.tools.T + fixed[batch]).astype(np.float64) / TEMPERATURE
    by_score = np.zeros_like(logits)
    total = sum(ground.examples[place].weight for place in batch)
    for row, place in enumerate(batch):
        by_score[row] = ground.examples[place].weight / total * _against(logits[row], ground.called[place])
    upward = ((by_score / TEMPERATURE) @ ground.tools).astype(np.float32)
    inward = (upward - facing * (upward * facing).sum(axis=1, keepdims=True)) / rests
    return np.asarray((inward - units * (inward * units).sum(axis=1, keepdims=True)) / lengths, dtype=np.float32)


def _against(logits: Float64Array, called: IntArray) -> Float64Array:
    """Gradient by the scores of one request: each called tool against all that were not called, averaged."""
    weights = np.exp(logits - logits.max())
    others = weights.copy()
    others[called] = 0.0
    rest = others.sum()
    found = np.zeros_like(logits)
    for tool in called:
        total = rest + weights[tool]
        found += others / total
        found[tool] += weights[tool] / total - 1.0
    return found / len(called)


class _Adam:
    """Adam over rows that are seen now and then, each with its own count of steps.

    Source:
        Kingma and Ba, Adam: a method for stochastic optimization, 2015.
    """

    def __init__(self, weights: Float32Array, *, rate: float) -> None:
        self._weights, self._rate = weights, rate
        self._mean, self._square = np.zeros_like(weights), np.zeros_like(weights)
        self._times = np.zeros((len(weights), 1), dtype=np.float32)

    def take(self, at: IntArray, gradient: Float32Array) -> None:
        self._times[at] += 1
        self._mean[at] += 0.1 * (gradient - self._mean[at])
        self._square[at] += 0.001 * (gradient * gradient - self._square[at])
        mean = self._mean[at] / (1 - 0.9 ** self._times[at])
        square = self._square[at] / (1 - 0.999 ** self._times[at])
        self._weights[at] -= self._rate * mean / (np.sqrt(square) + 1e-8)


def _recall(ground: _Ground, fixed: Float32Array, shared: _Shared, deltas: Float32Array, places: IntArray) -> float:
    """Mean over depths 1, 5, 10 of the share of called tools found, weighted by example."""
    found, total = 0.0, 0.0
    for start in range(0, len(places), BATCH):
        batch = places[start : start + BATCH]
        at, counts = _counts(shared, batch)
        facing = _directions(ground, batch, counts @ deltas[at])[0]
        scores = facing @ ground.tools.T + fixed[batch]
        for row, place in enumerate(batch):
            called = ground.called[place]
            ranks = (scores[row][None, :] > scores[row, called][:, None]).sum(axis=1)
            weight = ground.examples[place].weight
            found += weight * float(np.mean([(ranks < depth).mean() for depth in _DEPTHS]))
            total += weight
    return found / total


def _part(
    ground: _Ground,
    shared: _Shared,
    deltas: Float32Array,
    precedents: _Precedents,
    weight: float,
    *,
    tools: Sequence[tuple[str, str]],
    tenant: str,
    model_id: str,
) -> Part | None:
    moved = np.flatnonzero(np.abs(deltas).max(axis=1, initial=0.0) > 0)
    kept = precedents.tools if weight else precedents.tools[:0]
    if not len(moved) and not len(kept):
        return None
    means = precedents.means()[: len(kept)]
    return Part(
        tenant=tenant,
        tools=tuple(tools),
        model_id=model_id,
        pieces=shared.ids[moved].astype(np.int32),
        deltas=quantise(deltas[moved]),
        scales=(np.abs(deltas[moved]).max(axis=1, initial=0.0) / 127.0).astype(np.float32),
        called=ground.columns[kept].astype(np.int32),
        precedents=quantise(means),
        lengths=np.linalg.norm(means, axis=1).astype(np.float32),
        base=precedents.base,
        weight=weight,
        n_requests=ground.n,
        n_subjects=len({subject for example in ground.examples for subject in example.subjects}),
    )
