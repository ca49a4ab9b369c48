"""Tools that a task names: by id, by an identifier that is a tool's name, in quotes, or as the whole task.

Exact names always win: whoever writes `crm.export` or "search_graph" knows what they want. An ordinary word that
happens to be a tool's name (`search`) does not name it unless quoted, prefixed with its server, or all there is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from toolcrib.retrieval.tokenize import query_terms, split_identifier
from toolcrib.types import BoolArray, Tool

_MAX_TOKENS = 2_000
_TOKEN = re.compile(r"[^\s,;!?()\[\]{}<>\"'`“”‘’«»「」|=]+")
_QUOTED = re.compile(
    "\"([^\"\n]{1,200})\"|'([^'\n]{1,200})'|`([^`\n]{1,200})`|“([^”\n]{1,200})”|‘([^’\n]{1,200})’|«([^»\n]{1,200})»|「([^」\n]{1,200})」"
)
_IDENTIFIER = re.compile(r"[_./:-]|[a-z][A-Z]|[A-Za-z][0-9]|[0-9][A-Za-z]")
_MAX_WHOLE_CHARS = 200
_SEPARATORS = (".", "/", ":", "__", "_", " ")


class NameIndex:
    """Which tools a piece of text may mean. Keys are casefolded."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._by_name: dict[str, list[int]] = {}
        self._by_full_name: dict[str, list[int]] = {}
        self._by_words: dict[tuple[str, ...], list[int]] = {}
        self._by_terms: dict[tuple[str, ...], list[int]] = {}
        for idx, tool in enumerate(tools):
            name = tool.name.casefold()
            self._by_name.setdefault(name, []).append(idx)
            for server in {tool.server_id, tool.metadata.namespace} - {""}:
                for separator in _SEPARATORS:
                    self._by_full_name.setdefault(f"{server.casefold()}{separator}{name}", []).append(idx)
            self._by_words.setdefault(_words_of(tool.name), []).append(idx)
            self._by_terms.setdefault(query_terms(split_identifier(tool.name)), []).append(idx)

    def named(self, task: str, permitted: BoolArray) -> tuple[tuple[int, ...], ...]:
        """Groups of permitted tools in the order in which the task names them; a group shares one name."""
        found: dict[int, None] = {}
        groups = []
        for candidates in self._mentions(task):
            group = tuple(idx for idx in candidates if permitted[idx] and idx not in found)
            found.update(dict.fromkeys(group))
            if group:
                groups.append(group)
        return tuple(groups)

    def _mentions(self, task: str) -> Iterator[list[int]]:
        whole = task.strip().strip("\"'`“”‘’«»「」.?!").strip()
        if 0 < len(whole) <= _MAX_WHOLE_CHARS:
            yield self._exactly(whole) or self._in_words(whole) or self._in_terms(whole)
        for _, candidates in sorted((*self._quoted(task), *self._identifiers(task)), key=lambda found: found[0]):
            yield candidates

    def _quoted(self, task: str) -> Iterator[tuple[int, list[int]]]:
        for match in _QUOTED.finditer(task):
            inner = next((group for group in match.groups() if group), "").strip()
            yield match.start() + 1, self._exactly(inner)

    def _identifiers(self, task: str) -> Iterator[tuple[int, list[int]]]:
        for n_seen, match in enumerate(_TOKEN.finditer(task)):
            if n_seen >= _MAX_TOKENS:
                return
            for token in {match.group().rstrip(".:"), match.group().strip(".:-/@#*")}:
                if _IDENTIFIER.search(token):
                    yield match.start(), self._exactly(token) or self._in_words(token)

    def _exactly(self, text: str) -> list[int]:
        key = text.casefold()
        return self._by_full_name.get(key) or self._by_name.get(key) or []

    def _in_words(self, text: str) -> list[int]:
        """`GetWeather` and "get weather" for a tool called `get_weather`; one word alone is too common to name a
        tool.
        """
        words = _words_of(text)
        return self._by_words.get(words, []) if len(words) > 1 else []

    def _in_terms(self, task: str) -> list[int]:
        """The task "create a pull request" for a tool called `create_pull_request`: nothing said but its name."""
        terms = query_terms(task)
        return self._by_terms.get(terms, []) if len(terms) > 1 else []


def _words_of(name: str) -> tuple[str, ...]:
    return tuple(split_identifier(name).casefold().split())
