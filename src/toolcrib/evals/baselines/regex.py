"""Regex search over what Anthropic documents for its regex tool search, without the model that writes the regex.

Documented: the model writes a pattern of at most 200 characters, it is tried with `re.search` on names, descriptions,
argument names and argument descriptions; three to five tools come back. In place of the model stands a rule:

    pattern    (?i)word|word|...: the task's words without function words and words of asking, in their order, each
               once, as many as fit into 200 characters
    a hit      a tool with the pattern in one of its texts
    the order  by how many different words of the pattern its texts hold, then the catalog's

A model that writes a narrower pattern, or several, finds other tools; this shows what the mechanism gives by itself.

Source:
    https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolcrib.evals.baselines.bm25 import SEARCH_TOOL_TOKENS
from toolcrib.evals.baselines.texts import texts_of, words_of
from toolcrib.retrieval.words import STOP_WORDS
from toolcrib.types import Tool

MAX_PATTERN = 200
_FLAG = "(?i)"


def pattern_words(task: str) -> list[str]:
    """The words of the pattern, by the rule above. They hold letters and digits only: nothing is to be escaped."""
    words: list[str] = []
    room = MAX_PATTERN - len(_FLAG)
    for word in dict.fromkeys(words_of(task)):
        cost = len(word) + bool(words)
        if len(word) > 1 and word not in STOP_WORDS and cost <= room:
            words.append(word)
            room -= cost
    return words


class _Opened:
    def __init__(self, tools: Sequence[Tool]) -> None:
        # One text per tool: no word spans a line's end, so this matches where one of the texts does.
        self._texts = [(tool.tool_id, text, text.casefold()) for tool in tools if (text := "\n".join(texts_of(tool)))]

    def search(self, task: str, k: int) -> Sequence[str]:
        words = pattern_words(task)
        if not words:
            return []
        pattern = re.compile(_FLAG + "|".join(words))
        hits = [
            (sum(word in folded for word in words), tool_id)
            for tool_id, text, folded in self._texts
            if pattern.search(text)
        ]
        hits.sort(key=lambda hit: -hit[0])
        return [tool_id for _n_words, tool_id in hits[:k]]


class Regex:
    """Regex as documented for Anthropic's tool search, with a rule in place of the model."""

    name = "regex"
    about = "re.search over the texts that Anthropic documents for its regex tool search, with a pattern made by rule"
    default_k = 5
    overhead_tokens = SEARCH_TOOL_TOKENS

    def open(self, tools: Sequence[Tool]) -> _Opened:
        """Keeps the texts; there is no index."""
        return _Opened(tools)
