"""Searching one permitted set: from a task to a ranking.

    task ─▶ both arms and its servers score it over all permitted tools
         ─▶ candidates: the best of these, and what the words of its facets find
         ─▶ learned ranker ─▶ order that covers the facets ─▶ named tools first ─▶ confidence

Stands on everything else in this room; made by `Index.view`. A view holds what depends on the permitted set alone, so
one view serves all callers that may know of the same tools. Inside, a `position` counts permitted tools, ascending by
tool number, and a `place` counts a request's candidates, ascending by position.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from toolcrib.retrieval import decompose
from toolcrib.retrieval.adapt import PieceCounts
from toolcrib.retrieval.confidence import Evidence, probabilities
from toolcrib.retrieval.cover import covering
from toolcrib.retrieval.dense import Asked, DenseView, Embedder, Summed
from toolcrib.retrieval.fusion import PART_WEIGHT, best_first, fuse
from toolcrib.retrieval.learning import Part, Precedents
from toolcrib.retrieval.lexical import FloatArray, LexicalView, Postings
from toolcrib.retrieval.naming import NameIndex
from toolcrib.retrieval.ranker import WEIGHT, Candidates, features, trees_for
from toolcrib.retrieval.servers import SERVER_WEIGHT, ServerEvidence
from toolcrib.retrieval.text import clean
from toolcrib.retrieval.tokenize import is_mostly_latin, query_terms, word_terms, words
from toolcrib.retrieval.vectors import Int8Array
from toolcrib.types import BoolArray, Hit, IntArray, Ranking, Tool

MAX_TASK_CHARS = 8_000
MAX_QUERIES = 16
COMMON_SHARE = 0.8
MIN_COMMON_TOOLS = 8
_ALSO = 200
"""So many of the lexical arm's best get an exact cosine even where a first look would not have chosen them."""

_MIN_CANDIDATES = 80
_OF_A_FACET = 12
"""So many tools that a facet's own words find are candidates beside the task's best."""

_Groups: TypeAlias = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Facet:
    """A piece of a task. `lexical`: over the permitted tools. `asked`: None where the dense arm does not speak."""

    text: str
    lexical: FloatArray
    asked: Asked | None
    failed: bool

    @property
    def peak(self) -> float:
        return float(self.lexical.max(initial=0.0))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Scored(_Facet):
    """A text scored over all permitted tools, in their order."""

    cosines: FloatArray | None
    server: FloatArray
    fused: FloatArray


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
        rerank: bool = True,
        learned: Part | None = None,
    ) -> None:
        self._tools = tools
        self._names = names
        self._embedder = embedder
        self._permitted = permitted
        self._rerank = rerank
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
        parts, facets = self._parts(text, capabilities, whole, own=bool(own))
        hits = self._hits(whole, parts, facets, named=named, own=bool(own), top_k=top_k)
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
    def lexical(self) -> LexicalView:
        """The lexical arm."""
        return self._lexical

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

    def candidates(self, task: str) -> Candidates:
        """What the learned ranker sees of a task: for fitting it, and for looking into a ranking."""
        text = clean(task, max_chars=MAX_TASK_CHARS)
        whole = self._score(text)
        _, facets = self._parts(text, decompose.parts(text), whole, own=False)
        at = self._candidates(whole, facets, (), top_k=_MIN_CANDIDATES)
        return self._seen(whole, at, self._fused(facets, at))

    def _named(self, text: str) -> _Groups:
        """Groups of positions, in the order in which the text names their tools."""
        groups = self._names.named(text, self._permitted)
        return tuple(tuple(np.searchsorted(self._rows, group).tolist()) for group in groups)

    def _score(self, text: str) -> _Scored:
        facet = self._facet(text)
        cosines: FloatArray | None = None
        if facet.asked is not None and self._dense is not None:
            also = best_first(facet.lexical, top_k=_ALSO) if self._dense.looks_twice else None
            cosines = self._dense.cosines(facet.asked, also=also)
        server = self._servers.scores(facet.asked)
        fused = fuse(cosines, facet.lexical, peak=facet.peak) + SERVER_WEIGHT * server
        if facet.asked is not None and self._precedents is not None:
            fused = self._precedents.add(fused, facet.asked.plain)
        return _Scored(
            text=facet.text,
            lexical=facet.lexical,
            asked=facet.asked,
            failed=facet.failed,
            cosines=cosines,
            server=server,
            fused=fused,
        )

    def _facet(self, text: str) -> _Facet:
        text = decompose.wanted(text)
        terms = query_terms(text)
        telling = self._telling(terms)
        asked, failed = self._asked(text if len(telling) == len(terms) else _without(text, {*terms} - {*telling}))
        lexical = self._lexical.scores(terms if asked is None else telling)
        return _Facet(text=text, lexical=lexical, asked=asked, failed=failed)

    def _parts(
        self, text: str, capabilities: Sequence[str], whole: _Scored, *, own: bool
    ) -> tuple[Sequence[_Facet], Sequence[_Facet]]:
        """The task's parts, which are told and counted, and the facets that a ranking should cover."""
        if own:
            queries = [self._score(query) for query in capabilities]
            return queries, queries
        parts: list[_Facet] = [self._facet(part) for part in capabilities] if len(capabilities) > 1 else [whole]
        known = {part.text: part for part in parts}
        facets = [known.get(facet) or self._facet(facet) for facet in decompose.facets(text, parts=tuple(known))]
        return parts, facets

    def _fused(self, facets: Sequence[_Facet], at: IntArray) -> FloatArray:
        """Each facet's scores at some positions, its best lexical score of all tools being 1: (n_facets, n)."""
        found = np.zeros((len(facets), len(at)))
        for row, facet in enumerate(facets):
            if facet.asked is None or self._dense is None:
                found[row] = fuse(None, facet.lexical[at], peak=facet.peak)
                continue
            found[row] = fuse(self._dense.cosines_at(facet.asked, at), facet.lexical[at], peak=facet.peak)
            if self._precedents is not None:
                found[row] += self._precedents.add(np.zeros(len(self._rows)), facet.asked.plain)[at]
        return found

    def _telling(self, terms: Sequence[str]) -> Sequence[str]:
        """Terms without those that nearly every permitted tool has: scaled to the best score, they would rank by
        length, and all vectors lie near to such a word's.

        Only where the dense arm speaks, which then decides; alone, the lexical arm needs every word.
        """
        n = len(self._rows)
        if n < MIN_COMMON_TOOLS:
            return terms
        return [term for term in terms if self._lexical.n_holding(term) <= COMMON_SHARE * n]

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

    def _plain(self, scored: _Facet, at: IntArray) -> FloatArray | None:
        """Cosines that are not adapted to the permitted tools, of some positions."""
        return None if scored.asked is None or self._dense is None else self._dense.plain(scored.asked, at)

    def _hits(
        self,
        whole: _Scored,
        parts: Sequence[_Facet],
        facets: Sequence[_Facet],
        *,
        named: _Groups,
        own: bool,
        top_k: int,
    ) -> tuple[Hit, ...]:
        if not len(self._rows) or top_k <= 0:
            return ()
        at = self._candidates(whole, facets, named, top_k=max(top_k, _MIN_CANDIDATES))
        if not len(at):
            return ()
        by_part = self._fused(parts, at) if len(parts) > 1 else np.zeros((1, len(at)))
        by_facet = by_part if own else self._fused(facets, at)
        total = whole.fused[at] + self._learned(whole, at, by_facet)
        first = self._first(named, at, total)
        order = self._in_turn(by_part, total) if own else covering(total, by_facet)
        ranked: IntArray = np.array(list(dict.fromkeys([*first, *order]))[:top_k], dtype=np.int64)
        positions, capability = at[ranked], by_part[:, ranked].argmax(axis=0)
        confidence = self._confidence(whole, parts, positions, capability)
        confidence[: len(first)] = 1.0
        cosines = self._plain(whole, positions)
        shown = total[ranked] + by_facet[:, ranked].max(axis=0, initial=0.0)
        # Tools that are named or cover a facet stand above tools of a higher score; what is shown must fall.
        columns = (
            self._rows[positions].tolist(),
            np.round(np.maximum.accumulate(shown[::-1])[::-1], 9).tolist(),
            whole.lexical[positions].tolist(),
            [0.0] * len(ranked) if cosines is None else cosines.tolist(),
            capability.tolist(),
            confidence.tolist(),
        )
        return tuple(
            Hit(
                tool_idx=tool_idx,
                tool_id=self._tools[tool_idx].tool_id,
                score=score,
                lexical=lexical,
                dense=dense,
                named=rank < len(first),
                capability=part,
                confidence=likely,
            )
            for rank, (tool_idx, score, lexical, dense, part, likely) in enumerate(zip(*columns, strict=True))
        )

    def _candidates(self, whole: _Scored, facets: Sequence[_Facet], named: _Groups, *, top_k: int) -> IntArray:
        """Positions worth a closer look, ascending: the whole task's best, each facet's, and what the task names."""
        found = [best_first(whole.fused, top_k=top_k)]
        for facet in facets:
            if isinstance(facet, _Scored):
                found.append(best_first(facet.fused, top_k=top_k))
            else:
                found.append(best_first(facet.lexical, top_k=_OF_A_FACET))
        found += [np.array(group, dtype=np.int64) for group in named]
        return np.unique(np.concatenate(found))

    def _learned(self, whole: _Scored, at: IntArray, facets: FloatArray) -> FloatArray | float:
        """What the learned ranker adds to the candidates' scores; it knows only requests that have a vector."""
        if not self._rerank or self._embedder is None or whole.asked is None or len(at) < 2:
            return 0.0
        trees = trees_for(self._embedder.model_id)
        if trees is None:
            return 0.0
        return WEIGHT * trees.scores(features(self._seen(whole, at, facets), self._lexical))

    def _seen(self, whole: _Scored, at: IntArray, facets: FloatArray) -> Candidates:
        tools = self._rows[at]
        return Candidates(
            text=whole.text,
            tools=tools,
            names=[self._tools[idx].name for idx in tools.tolist()],
            total=whole.fused[at],
            lexical=whole.lexical[at],
            peak=whole.peak,
            cosines=None if whole.cosines is None else whole.cosines[at],
            server=whole.server[at],
            facets=facets,
        )

    def _first(self, named: _Groups, at: IntArray, total: FloatArray) -> list[int]:
        """Places of the named tools: groups in the text's order, within a group the better first."""
        groups = [np.searchsorted(at, group).tolist() for group in named]
        return [place for group in groups for place in sorted(group, key=lambda place: (-total[place], place))]

    def _in_turn(self, by_part: FloatArray, total: FloatArray) -> list[int]:
        """Each of the caller's queries gives its best tool, in the queries' order, then each its second, and so on."""
        lists = np.argsort(-(by_part + PART_WEIGHT * total), axis=1, kind="stable")
        return list(lists.T.ravel().tolist())

    def _confidence(
        self, whole: _Scored, parts: Sequence[_Facet], positions: IntArray, capability: IntArray
    ) -> FloatArray:
        """For each hit the larger of two: that it does its part, that it does the whole."""
        found = probabilities(whole.text, self._evidence(whole, positions), self._lexical)
        for number, part in enumerate(parts):
            mine = np.flatnonzero(capability == number)
            if part is not whole and len(mine):
                evidence = self._evidence(part, positions[mine])
                found[mine] = np.maximum(found[mine], probabilities(part.text, evidence, self._lexical))
        return found

    def _evidence(self, scored: _Facet, positions: IntArray) -> Evidence:
        tools = self._rows[positions]
        return Evidence(
            tools=tools,
            names=tuple(self._tools[idx].name for idx in tools.tolist()),
            cosines=self._plain(scored, positions),
        )


def _without(text: str, common: Set[str]) -> str:
    """The text's words without those that are common; the whole text where nothing else is left."""
    kept = [word for word in words(text) if not common.issuperset(word_terms(word))]
    return " ".join(kept) if query_terms(" ".join(kept)) else text
