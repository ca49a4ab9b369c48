"""Searching one permitted set: from a task to a ranking.

    task ─▶ named tools, parts ─▶ both arms score each part, fused ─▶ named first, then each part's best ─▶ confidence

Stands on everything else in this room; made by `Index.view`. A view holds what depends on the permitted set alone, so
one view serves all callers that may know of the same tools. Inside, a `position` counts permitted tools, ascending by
tool number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from toolcrib.retrieval import decompose
from toolcrib.retrieval.adapt import PieceCounts
from toolcrib.retrieval.confidence import Evidence, probabilities
from toolcrib.retrieval.dense import Asked, DenseView, Embedder, Summed
from toolcrib.retrieval.fusion import PART_WEIGHT, best_first, fuse
from toolcrib.retrieval.learning import Part, Precedents
from toolcrib.retrieval.lexical import FloatArray, LexicalView, Postings
from toolcrib.retrieval.naming import NameIndex
from toolcrib.retrieval.servers import SERVER_WEIGHT, ServerEvidence
from toolcrib.retrieval.text import clean
from toolcrib.retrieval.tokenize import is_mostly_latin, query_terms
from toolcrib.retrieval.vectors import Int8Array
from toolcrib.types import BoolArray, Hit, IntArray, Ranking, Tool

MAX_TASK_CHARS = 8_000
MAX_QUERIES = 16
HEAD_FLOOR = 0.15
"""A part's best tool is put among the first only if it is at least this likely to do that part."""
COMMON_SHARE = 0.8
MIN_COMMON_TOOLS = 8
_ALSO = 200
"""So many of the lexical arm's best get an exact cosine even where a first look would not have chosen them."""

_Groups: TypeAlias = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Scored:
    """One text scored over the permitted tools. `cosines` is None where the dense arm did not speak."""

    text: str
    lexical: FloatArray
    cosines: FloatArray | None
    asked: Asked | None
    fused: FloatArray
    failed: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LookedAt:
    """One text's scores over the permitted tools, for learning: float64, shape (n_permitted,) each."""

    asked: Summed
    cosines: FloatArray
    fused: FloatArray


class View:
    """The permitted tools of one index. `search` answers about them and nothing else (I1)."""

    def __init__(
        self,
        *,
        tools: Sequence[Tool],
        postings: Postings,
        vectors: Int8Array | None,
        names: NameIndex,
        embedder: Embedder | None,
        permitted: BoolArray,
        pieces: PieceCounts | None = None,
        adapt: bool = True,
        learned: Part | None = None,
    ) -> None:
        self._tools = tools
        self._names = names
        self._embedder = embedder
        self._permitted = permitted
        self._rows: IntArray = np.flatnonzero(permitted).astype(np.int64)
        self._lexical = LexicalView(postings, permitted)
        # Whether the arm is down is told from the permitted tools' vectors alone, as everything else (I1).
        self._dense: DenseView | None = None
        if vectors is not None:
            dense = DenseView(vectors, self._rows, embedder=embedder, pieces=pieces, adapt=adapt, learned=learned)
            self._dense = None if dense.is_empty else dense
        self._precedents = Precedents(learned, [tools[idx].tool_id for idx in self._rows.tolist()]) if learned else None
        self._servers = ServerEvidence([tools[idx].server_id for idx in self._rows.tolist()], self._dense)

    def search(self, task: str, queries: Sequence[str] = (), *, top_k: int = 50) -> Ranking:
        """Permitted tools for a task, best first; ties by tool id.

        Args:
            queries: the caller's own parts of the task; they replace the parts found in its text.
            top_k: how many hits at most.
        """
        text = clean(task, max_chars=MAX_TASK_CHARS)
        asked = [clean(query, max_chars=MAX_TASK_CHARS).strip() for query in queries[:MAX_QUERIES]]
        own = tuple(query for query in asked if query_terms(query))
        named = self._named("\n".join([text, *asked]))
        if not (named or own or query_terms(text)):
            return Ranking(hits=(), capabilities=(), confidence=0.0, empty_query=True)
        capabilities = own or decompose.parts(text)
        whole = self._score(text if query_terms(text) or not own else " ".join(own))
        parts = [self._score(part) for part in capabilities] if own or len(capabilities) > 1 else [whole]
        hits = self._hits(whole, parts, named=named, every_round=bool(own), top_k=top_k)
        return Ranking(
            hits=hits,
            capabilities=capabilities,
            confidence=max((hit.confidence for hit in hits), default=0.0),
            degraded=whole.failed or any(part.failed for part in parts),
        )

    @property
    def n_tools(self) -> int:
        """How many tools are permitted."""
        return len(self._rows)

    @property
    def dense(self) -> DenseView | None:
        """The dense arm; None where it is down."""
        return self._dense

    def looked_at(self, task: str) -> LookedAt | None:
        """The scores behind a search for a whole task; None where the dense arm does not speak."""
        text = decompose.wanted(clean(task, max_chars=MAX_TASK_CHARS))
        scored = self._score(text)
        asked = self._dense.summed(text) if self._dense is not None and scored.cosines is not None else None
        if asked is None or scored.cosines is None:
            return None
        return LookedAt(asked=asked, cosines=scored.cosines, fused=scored.fused)

    def _named(self, text: str) -> _Groups:
        """Groups of positions, in the order in which the text names their tools."""
        groups = self._names.named(text, self._permitted)
        return tuple(tuple(np.searchsorted(self._rows, group).tolist()) for group in groups)

    def _score(self, text: str) -> _Scored:
        text = decompose.wanted(text)
        asked, failed = self._asked(text)
        terms = query_terms(text)
        lexical = self._lexical.scores(terms if asked is None else self._telling(terms))
        if asked is None or self._dense is None:
            fused = fuse(None, lexical)
            return _Scored(text=text, lexical=lexical, cosines=None, asked=None, fused=fused, failed=failed)
        also = best_first(lexical, top_k=_ALSO) if self._dense.looks_twice else None
        cosines = self._dense.cosines(asked, also=also)
        fused = fuse(cosines, lexical) + SERVER_WEIGHT * self._servers.scores(asked)
        fused = fused if self._precedents is None else self._precedents.add(fused, asked.plain)
        return _Scored(text=text, lexical=lexical, cosines=cosines, asked=asked, fused=fused, failed=failed)

    def _telling(self, terms: Sequence[str]) -> list[str]:
        """Terms without those that nearly every permitted tool has: scaled to the best score, they would rank by
        length.

        Only beside the dense arm, which then decides; alone, the lexical arm needs every word.
        """
        n = len(self._rows)
        return [t for t in terms if n < MIN_COMMON_TOOLS or self._lexical.n_holding(t) <= COMMON_SHARE * n]

    def _asked(self, text: str) -> tuple[Asked | None, bool]:
        """The request's vectors, and whether the arm is down. It stays out, soundly, of scripts it cannot read."""
        if self._embedder is None:
            return None, False
        if self._dense is None:
            return None, len(self._rows) > 0
        if not is_mostly_latin(text) and not getattr(self._embedder, "multilingual", False):
            return None, False
        asked = self._dense.ask(text)
        return asked, asked is None

    def _plain(self, scored: _Scored, at: IntArray) -> FloatArray | None:
        """Cosines that are not adapted to the permitted tools, of some positions."""
        return None if scored.asked is None or self._dense is None else self._dense.plain(scored.asked, at)

    def _hits(
        self, whole: _Scored, parts: Sequence[_Scored], *, named: _Groups, every_round: bool, top_k: int
    ) -> tuple[Hit, ...]:
        if not len(self._rows) or top_k <= 0:
            return ()
        by_part = np.stack([part.fused for part in parts])
        total = by_part[0] if len(parts) == 1 else whole.fused + PART_WEIGHT * by_part.max(axis=0)
        first = [p for group in named for p in sorted(group, key=lambda p: (-total[p], p))]
        heads = self._heads(whole, parts, total, every_round=every_round, top_k=top_k) if len(parts) > 1 else []
        order = list(dict.fromkeys([*first, *heads, *best_first(total, top_k=top_k).tolist()]))[:top_k]
        at: IntArray = np.array(order, dtype=np.int64)
        capability = by_part[:, at].argmax(axis=0)
        confidence = self._confidence(whole, parts, at, capability)
        confidence[: len(first)] = 1.0
        cosines = self._plain(whole, at)
        # Named tools and heads stand above tools of a higher score; what is shown must fall with the rank.
        shown = np.maximum.accumulate(total[at][::-1])[::-1]
        return tuple(
            Hit(
                tool_idx=int(self._rows[position]),
                tool_id=self._tools[int(self._rows[position])].tool_id,
                score=round(float(shown[rank]), 9),
                lexical=float(whole.lexical[position]),
                dense=0.0 if cosines is None else float(cosines[rank]),
                named=rank < len(first),
                capability=int(capability[rank]),
                confidence=float(confidence[rank]),
            )
            for rank, position in enumerate(order)
        )

    def _heads(
        self, whole: _Scored, parts: Sequence[_Scored], total: FloatArray, *, every_round: bool, top_k: int
    ) -> list[int]:
        """The best tool of each part, best first; parts the caller gave keep their order, round after round."""
        rounds = top_k if every_round else 1
        lists = [best_first(part.fused + PART_WEIGHT * whole.fused, top_k=rounds).tolist() for part in parts]
        heads: list[int] = []
        for turn in range(min(rounds, max(len(ranked) for ranked in lists))):
            for part, ranked in zip(parts, lists, strict=True):
                if turn < len(ranked) and (every_round or self._likely(part, ranked[turn])):
                    heads.append(ranked[turn])
        return heads if every_round else sorted(set(heads), key=lambda p: (-total[p], p))

    def _likely(self, part: _Scored, position: int) -> bool:
        at: IntArray = np.array([position], dtype=np.int64)
        return bool(probabilities(part.text, self._evidence(part, at), self._lexical)[0] >= HEAD_FLOOR)

    def _confidence(self, whole: _Scored, parts: Sequence[_Scored], at: IntArray, capability: IntArray) -> FloatArray:
        """For each hit the larger of two: that it does its part, that it does the whole."""
        found = probabilities(whole.text, self._evidence(whole, at), self._lexical)
        for number, part in enumerate(parts):
            mine = np.flatnonzero(capability == number)
            if part is not whole and len(mine):
                evidence = self._evidence(part, at[mine])
                found[mine] = np.maximum(found[mine], probabilities(part.text, evidence, self._lexical))
        return found

    def _evidence(self, scored: _Scored, at: IntArray) -> Evidence:
        tools = self._rows[at]
        return Evidence(
            tools=tools,
            names=tuple(self._tools[int(idx)].name for idx in tools),
            cosines=self._plain(scored, at),
        )
