"""Searching one permitted set: from a task to a ranking.

    task ─▶ both arms and its servers score it over all permitted tools
         ─▶ candidates: the best of these, and what the words of its facets find
         ─▶ learned ranker ─▶ order that covers the facets ─▶ named tools first ─▶ confidence

Stands on everything else in this room; made by `Index.view`. A view holds what depends on the permitted set alone, so
one view serves all callers that may know of the same tools. Inside, a `position` counts permitted tools, ascending by
tool number, and a `place` counts a request's candidates, ascending by position.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from toolcrib.retrieval.name_terms import NameTerms
from toolcrib.retrieval.naming import NameIndex
from toolcrib.retrieval.ranker import WEIGHT, Candidates, NameWords, features, trees_for
from toolcrib.retrieval.servers import SERVER_WEIGHT, ServerEvidence
from toolcrib.retrieval.telling import term_weights
from toolcrib.retrieval.text import clean
from toolcrib.retrieval.tokenize import content_words, is_mostly_latin, query_terms, word_terms
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
_POOL = 400
"""They are sought among so many that the whole task's words find."""

_Groups: TypeAlias = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Facet:
    """A piece of a task. `terms`: what the lexical arm looks for. `asked`: None where the dense arm does not speak.

    `embedded`: what of the text the dense arm reads.
    """

    text: str
    embedded: str
    terms: Sequence[str]
    asked: Asked | None
    failed: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Scored(_Facet):
    """A text scored over all permitted tools, in their order. `heard`: the lexical arm's best, where they are known."""

    lexical: FloatArray
    peak: float
    cosines: FloatArray | None
    server: FloatArray
    fused: FloatArray
    heard: IntArray | None


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
        name_terms: NameTerms,
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
        self._rerank = rerank
        self._permitted = permitted
        self._rows: IntArray = np.flatnonzero(permitted).astype(np.int64)
        self._lexical = LexicalView(postings, permitted)
        self._name_words = NameWords(self._lexical, name_terms, tools)
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
        scored = self._score(clean(task, max_chars=MAX_TASK_CHARS))
        if self._dense is None or scored.cosines is None:
            return None
        asked = self._dense.summed(scored.embedded)
        if asked is None:
            return None
        return LookedAt(asked=asked, cosines=scored.cosines, fused=scored.fused)

    def candidates(self, task: str) -> Candidates:
        """What the learned ranker sees of a task: for fitting it, and for looking into a ranking."""
        text = clean(task, max_chars=MAX_TASK_CHARS)
        whole = self._score(text)
        parts, facets = self._parts(text, decompose.parts(text), whole, own=False)
        at, _, by_facet = self._found(whole, parts, facets, (), top_k=_MIN_CANDIDATES)
        return self._seen(whole, at, by_facet)

    def features(self, candidates: Candidates) -> FloatArray:
        """The learned ranker's features of candidates: float64, shape (len(ranker.FEATURES), n)."""
        return features(candidates, self._lexical, self._names_said(candidates.text, candidates.tools))

    def _names_said(self, text: str, tools: IntArray) -> FloatArray:
        """What a text says of these tools' names, as `NameWords.of` gives it."""
        return self._name_words.of(tools, term_weights(text))

    def _named(self, text: str) -> _Groups:
        """Groups of positions, in the order in which the text names their tools."""
        groups = self._names.named(text, self._permitted)
        return tuple(tuple(np.searchsorted(self._rows, group).tolist()) for group in groups)

    def _score(self, text: str) -> _Scored:
        facet = self._facet(text)
        lexical = self._lexical.scores(facet.terms)
        peak = float(lexical.max(initial=0.0))
        cosines: FloatArray | None = None
        heard: IntArray | None = None
        if facet.asked is not None and self._dense is not None:
            heard = best_first(lexical, top_k=_POOL) if self._dense.looks_twice else None
            cosines = self._dense.cosines(facet.asked, also=None if heard is None else heard[:_ALSO])
        server = self._servers.scores(facet.asked)
        fused = fuse(cosines, lexical, peak=peak) + SERVER_WEIGHT * server
        if facet.asked is not None and self._precedents is not None:
            fused = self._precedents.add(fused, facet.asked.plain)
        return _Scored(
            text=facet.text,
            embedded=facet.embedded,
            terms=facet.terms,
            asked=facet.asked,
            failed=facet.failed,
            lexical=lexical,
            peak=peak,
            cosines=cosines,
            server=server,
            fused=fused,
            heard=heard,
        )

    def _facet(self, text: str) -> _Facet:
        text = decompose.wanted(text)
        terms = query_terms(text)
        telling = self._telling(terms)
        embedded = text if len(telling) == len(terms) else _without(text, {*terms} - {*telling})
        asked, failed = self._asked(embedded)
        said = terms if asked is None else telling
        return _Facet(text=text, embedded=embedded, terms=said, asked=asked, failed=failed)

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
        at, by_part, by_facet = self._found(whole, parts, facets, named, top_k=max(top_k, _MIN_CANDIDATES))
        if not len(at):
            return ()
        names_said = self._names_said(whole.text, self._rows[at])
        total = whole.fused[at] + self._learned(whole, at, by_facet, names_said)
        first = self._first(named, at, total)
        order = self._in_turn(by_part, total) if own else covering(total, by_facet)
        ranked: IntArray = np.array(list(dict.fromkeys([*first, *order]))[:top_k], dtype=np.int64)
        positions, capability = at[ranked], by_part[:, ranked].argmax(axis=0)
        cosines = self._plain(whole, positions)
        confidence = self._likely(whole, positions, cosines, names_said[:, ranked])
        self._raise_by_parts(confidence, whole, parts, positions, capability)
        confidence[: len(first)] = 1.0
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

    def _found(
        self, whole: _Scored, parts: Sequence[_Facet], facets: Sequence[_Facet], named: _Groups, *, top_k: int
    ) -> tuple[IntArray, FloatArray, FloatArray]:
        """Candidates, ascending, and their scores for each part and each facet, shape (n, n_candidates).

        Candidates are the whole task's best, the best of the caller's own queries, what the task names, and of the
        tools that the whole task's words find, the best by the words of a facet. So a facet costs no look at all tools.
        """
        sure = [best_first(one.fused, top_k=top_k) for one in (whole, *parts) if isinstance(one, _Scored)]
        sure += [np.array(group, dtype=np.int64) for group in named]
        asking = parts if len(parts) > 1 else ()
        pieces = list({id(piece): piece for piece in (*asking, *facets)}.values())
        if not pieces:
            at = np.unique(np.concatenate(sure))
            return at, np.zeros((1, len(at))), np.zeros((0, len(at)))
        heard = best_first(whole.lexical, top_k=_POOL) if whole.heard is None else whole.heard
        pool = np.unique(np.concatenate([*sure, heard]))
        lexical = self._heard(pieces, pool)
        sure += [pool[best_first(scores, top_k=_OF_A_FACET)] for scores in lexical]
        at = np.unique(np.concatenate(sure))
        fused = self._fused(pieces, lexical, lexical[:, np.searchsorted(pool, at)], at)
        row = {id(piece): number for number, piece in enumerate(pieces)}
        by_part = fused[[row[id(part)] for part in asking]] if asking else np.zeros((1, len(at)))
        return at, by_part, fused[[row[id(facet)] for facet in facets]]

    def _heard(self, pieces: Sequence[_Facet], pool: IntArray) -> FloatArray:
        """BM25F scores of some positions for each piece: float64, shape (n_pieces, n)."""
        row = {term: number for number, term in enumerate(dict.fromkeys(t for piece in pieces for t in piece.terms))}
        gains = self._lexical.gains(list(row), pool)
        return np.stack([gains[[row[term] for term in piece.terms]].sum(axis=0) for piece in pieces])

    def _fused(self, pieces: Sequence[_Facet], pool: FloatArray, lexical: FloatArray, at: IntArray) -> FloatArray:
        """Scores of candidates for each piece. `pool`: lexical scores that compete for each piece's best."""
        asked = [piece.asked for piece in pieces if piece.asked is not None]
        cosines = iter([] if self._dense is None else self._dense.cosines_of(asked, at))
        found = np.zeros(lexical.shape)
        for number, piece in enumerate(pieces):
            heard = next(cosines, None) if piece.asked is not None else None
            found[number] = fuse(heard, lexical[number], peak=float(pool[number].max(initial=0.0)))
            if piece.asked is not None and self._precedents is not None:
                found[number] += self._precedents.add(np.zeros(len(self._rows)), piece.asked.plain)[at]
        return found

    def _learned(self, whole: _Scored, at: IntArray, facets: FloatArray, names_said: FloatArray) -> FloatArray | float:
        """What the learned ranker adds to the candidates' scores; it knows only requests that have a vector."""
        if not self._rerank or self._embedder is None or whole.asked is None or len(at) < 2:
            return 0.0
        trees = trees_for(self._embedder.model_id)
        if trees is None:
            return 0.0
        return WEIGHT * trees.scores(features(self._seen(whole, at, facets), self._lexical, names_said))

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

    def _raise_by_parts(
        self, likely: FloatArray, whole: _Scored, parts: Sequence[_Facet], positions: IntArray, capability: IntArray
    ) -> None:
        """To how likely each hit does its part, where that is more likely than that it does the whole."""
        for number, part in enumerate(parts):
            mine = np.flatnonzero(capability == number)
            if part is not whole and len(mine):
                at = positions[mine]
                names_said = self._names_said(part.text, self._rows[at])
                likely[mine] = np.maximum(likely[mine], self._likely(part, at, self._plain(part, at), names_said))

    def _likely(
        self, scored: _Facet, positions: IntArray, cosines: FloatArray | None, names_said: FloatArray
    ) -> FloatArray:
        """How likely each of some tools does what a text asks."""
        tools = self._rows[positions]
        _, _, n_said, n_words = names_said
        evidence = Evidence(
            tools=tools,
            names=tuple(self._tools[idx].name for idx in tools.tolist()),
            cosines=cosines,
            asked=None if scored.asked is None else scored.asked.plain,
            model_id="none" if self._embedder is None else self._embedder.model_id,
            said=n_said / np.maximum(n_words, 1.0),
        )
        return probabilities(scored.text, evidence, self._lexical)


def _without(text: str, common: set[str]) -> str:
    """The text's telling words without those that are common; the whole text where nothing else is left."""
    kept = " ".join(word for word in content_words(text) if not common >= {*word_terms(word)})
    return kept if query_terms(kept) else text
