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


def pattern_of(task: str) -> str:
    """The pattern by the rule above, "" where no word is left."""
    words: list[str] = []
    room = MAX_PATTERN - len(_FLAG)
    for word in dict.fromkeys(words_of(task)):
        escaped = re.escape(word)
        if len(word) < 2 or word in STOP_WORDS or len(escaped) + bool(words) > room:
            continue
        words.append(escaped)
        room -= len(escaped) + (len(words) > 1)
    return _FLAG + "|".join(words) if words else ""


class _Opened:
    def __init__(self, tools: Sequence[Tool]) -> None:
        self._texts = [(tool.tool_id, texts_of(tool)) for tool in tools]

    def search(self, task: str, k: int) -> Sequence[str]:
        written = pattern_of(task)
        if not written:
            return []
        pattern = re.compile(written)
        hits: list[tuple[int, str]] = []
        for tool_id, texts in self._texts:
            if any(pattern.search(text) for text in texts):
                found = {word.casefold() for text in texts for word in pattern.findall(text)}
                hits.append((len(found), tool_id))
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
