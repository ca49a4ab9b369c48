"""Plain BM25 over what Anthropic documents for its BM25 tool search: a stand-in, since theirs is not published.

Documented: names, descriptions, argument names and argument descriptions are searched with the task in its own words;
three to five tools come back. Not documented, and set here to what is usual: Okapi BM25 with k1 1.5 and b 0.75, words
as runs of letters and digits in lower case, no stems, five tools.

    score(q, d) = sum over words w of q:  idf(w) * tf * (k1 + 1) / (tf + k1 * (1 - b + b * |d| / mean |d|))
    idf(w)      = ln(1 + (N - n(w) + 0.5) / (n(w) + 0.5))

Source:
    https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool
    Robertson and Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond (2009); the idf of Lucene, never
    negative.
    https://www.anthropic.com/engineering/advanced-tool-use (the search tool takes about 500 tokens)
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

from toolcrib.evals.baselines.texts import texts_of, words_of
from toolcrib.types import Tool

K1 = 1.5
B = 0.75
SEARCH_TOOL_TOKENS = 500


class _Opened:
    def __init__(self, tools: Sequence[Tool]) -> None:
        self._ids = [tool.tool_id for tool in tools]
        self._postings: dict[str, list[tuple[int, float]]] = defaultdict(list)
        counts = [Counter(word for text in texts_of(tool) for word in words_of(text)) for tool in tools]
        lengths = [sum(count.values()) for count in counts]
        mean = sum(lengths) / max(1, len(lengths))
        for number, (count, length) in enumerate(zip(counts, lengths, strict=True)):
            for word, tf in count.items():
                weight = tf * (K1 + 1) / (tf + K1 * (1 - B + B * length / mean))
                self._postings[word].append((number, weight))

    def scores(self, task: str) -> dict[int, float]:
        """Tool number -> score, of the tools that hold a word of the task."""
        scores: dict[int, float] = defaultdict(float)
        for word in words_of(task):
            held = self._postings.get(word, [])
            idf = math.log(1 + (len(self._ids) - len(held) + 0.5) / (len(held) + 0.5))
            for number, weight in held:
                scores[number] += idf * weight
        return scores

    def search(self, task: str, k: int) -> Sequence[str]:
        scores = self.scores(task)
        best = sorted(scores, key=lambda number: (-scores[number], number))
        return [self._ids[number] for number in best[:k]]


class Bm25:
    """BM25 as documented for Anthropic's tool search; ties in the catalog's order."""

    name = "bm25"
    about = "plain Okapi BM25 over the texts that Anthropic documents for its BM25 tool search (k1 1.5, b 0.75)"
    default_k = 5
    overhead_tokens = SEARCH_TOOL_TOKENS

    def open(self, tools: Sequence[Tool]) -> _Opened:
        """An index over names, descriptions and arguments."""
        return _Opened(tools)
