"""Tools that a task names: by id, by an identifier that is a tool's name, in quotes, or as the whole task.

Exact names always win: whoever writes `crm.export` or "search_graph" knows what they want. A word of ordinary
language that happens to be a tool's name (`search`, `up-to-date`, `GitHub`) does not name it unless quoted, prefixed
with its server, or all there is: else a stranger's tool of that name would stand first wherever the word is said.

Invariant: which reading of a text counts (id, name, words) is decided by permitted tools alone (I1).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from toolcrib.retrieval.telling import name_words
from toolcrib.retrieval.tokenize import query_terms, split_identifier
from toolcrib.retrieval.words import ACTION_VERBS, PARTICLES, STOP_WORDS
from toolcrib.types import BoolArray, IntArray, Tool

_MAX_TOKENS = 2_000
_TOKEN = re.compile(r"[^\s,;!?()\[\]{}<>\"'`“”‘’«»「」|=]+")
_QUOTED = re.compile(
    "\"([^\"\n]{1,200})\"|'([^'\n]{1,200})'|`([^`\n]{1,200})`|“([^”\n]{1,200})”|‘([^’\n]{1,200})’|«([^»\n]{1,200})»|「([^」\n]{1,200})」"
)
_IDENTIFIER = re.compile(r"[_./:-]|[a-z][A-Z]")
_SNAKE = re.compile(r"[^\W_]_+[^\W_]")
_CAMEL_PART = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_MAX_WHOLE_CHARS = 200
_SEPARATORS = (".", "/", ":", "__", "_", " ")
_MAX_SPLITS = 64
_NAME, _FULL, _WORDS, _TERMS = "n", "f", "w", "t"


@dataclass(frozen=True, slots=True, kw_only=True)
class NameKeys:
    """Hashes of all that may name a tool, ascending, beside the tool's number: found by bisection where they lie.

    Args:
        hashes: int64, shape (n_keys,), ascending.
        tools: int32, shape (n_keys,): tool numbers, ascending among equal hashes.
    """

    hashes: IntArray
    tools: npt.NDArray[np.int32]


def name_keys(tools: Sequence[Tool]) -> NameKeys:
    """The keys of tools in order."""
    per_tool = [sorted({_hashed(kind, text) for kind, text in _keys_of(tool)}) for tool in tools]
    hashes = np.array([h for keys in per_tool for h in keys], dtype=np.int64)
    return _in_order(hashes, np.repeat(np.arange(len(tools)), [len(keys) for keys in per_tool]))


def merged_keys(parts: Sequence[tuple[NameKeys, IntArray]]) -> NameKeys:
    """Keys of tools that come from several places, as `name_keys` would give them.

    Args:
        parts: keys, and for each of their tools its number in the whole, or -1 where it is left out.
    """
    placed = [(keys.hashes, place[keys.tools]) for keys, place in parts]
    return _in_order(
        np.concatenate([hashes[numbers >= 0] for hashes, numbers in placed]),
        np.concatenate([numbers[numbers >= 0] for _, numbers in placed]),
    )


class NameIndex:
    """Which tools a piece of text may mean. A hash only finds candidates; each is then compared as text (casefolded).

    `keys`: worked out from the tools if absent.
    """

    def __init__(self, tools: Sequence[Tool], keys: NameKeys | None = None) -> None:
        self._tools = tools
        self.keys = name_keys(tools) if keys is None else keys
        self._hashes = np.ascontiguousarray(self.keys.hashes, dtype=np.int64).data  # plain numbers, at once

    def named(self, task: str, permitted: BoolArray) -> tuple[tuple[int, ...], ...]:
        """Groups of permitted tools in the order in which the task names them; a group shares one name."""
        found: dict[int, None] = {}
        groups = []
        for candidates in self._mentions(task, permitted):
            group = tuple(idx for idx in candidates if idx not in found)
            found.update(dict.fromkeys(group))
            if group:
                groups.append(group)
        return tuple(groups)

    def _mentions(self, task: str, permitted: BoolArray) -> Iterator[list[int]]:
        whole = task.strip().strip("\"'`“”‘’«»「」.?!").strip()
        if 0 < len(whole) <= _MAX_WHOLE_CHARS:
            yield (
                self._exactly(whole, permitted) or self._in_words(whole, permitted) or self._in_terms(whole, permitted)
            )
        found = (*self._quoted(task, permitted), *self._identifiers(task, permitted))
        for _, candidates in sorted(found, key=lambda one: one[0]):
            yield candidates

    def _quoted(self, task: str, permitted: BoolArray) -> Iterator[tuple[int, list[int]]]:
        for match in _QUOTED.finditer(task):
            inner = next((group for group in match.groups() if group), "").strip()
            yield match.start() + 1, self._exactly(inner, permitted)

    def _identifiers(self, task: str, permitted: BoolArray) -> Iterator[tuple[int, list[int]]]:
        for n_seen, match in enumerate(_TOKEN.finditer(task)):
            if n_seen >= _MAX_TOKENS:
                return
            for token in dict.fromkeys((match.group().rstrip(".:"), match.group().strip(".:-/@#*"))):
                if not _IDENTIFIER.search(token):
                    continue
                if _is_written_as_a_name(token):
                    yield match.start(), self._exactly(token, permitted) or self._in_words(token, permitted)
                else:
                    yield match.start(), self._with_server(token.casefold(), permitted)

    def _exactly(self, text: str, permitted: BoolArray) -> list[int]:
        key = text.casefold()
        return self._with_server(key, permitted) or self._holding(_NAME, [key], permitted)

    def _with_server(self, key: str, permitted: BoolArray) -> list[int]:
        splits = [
            f"{key[:at]}\0{key[at + len(mark) :]}"
            for mark in _SEPARATORS
            for at in _places(key, mark)
            if at and at + len(mark) < len(key)
        ]
        return self._holding(_FULL, splits[:_MAX_SPLITS], permitted)

    def _in_words(self, text: str, permitted: BoolArray) -> list[int]:
        """`GetWeather` and "get weather" for a tool called `get_weather`; one word alone is too common to name a
        tool.
        """
        words = _words_of(text)
        return self._holding(_WORDS, ["\0".join(words)], permitted) if len(words) > 1 else []

    def _in_terms(self, task: str, permitted: BoolArray) -> list[int]:
        """The task "create a pull request" for a tool called `create_pull_request`: nothing said but its name."""
        terms = query_terms(task)
        return self._holding(_TERMS, ["\0".join(terms)], permitted) if len(terms) > 1 else []

    def _holding(self, kind: str, texts: Sequence[str], permitted: BoolArray) -> list[int]:
        """Permitted tools that have one of these keys, ascending; those that had one before, where none has it now."""
        found = {
            idx
            for text in texts
            for idx in self._sharing(_hashed(kind, text))
            if permitted[idx] and _goes_by(self._tools[idx], kind, text)
        }
        own = [idx for idx in found if any(_has(self._tools[idx], kind, text) for text in texts)] if found else []
        return sorted(own or found)

    def _sharing(self, hashed: int) -> list[int]:
        """Tools with a key of this hash."""
        first = bisect_left(self._hashes, hashed)
        if first == len(self._hashes) or self._hashes[first] != hashed:
            return []
        found: list[int] = self.keys.tools[first : bisect_right(self._hashes, hashed, lo=first)].tolist()
        return found


def _is_written_as_a_name(token: str) -> bool:
    """Whether only a program's name is written like this token; ordinary language is not (`real-time`, `iPhone`).

    Snake case; a path; camel case that begins small or with a verb (`GetWeather`) or has three parts; kebab case of
    three parts, or of two that begin with a verb, without function words.
    """
    if _SNAKE.search(token) or token.count("/") > 1:
        return True
    if "-" in token:
        parts = token.casefold().split("-")
        return not (STOP_WORDS | PARTICLES) & {*parts} and (len(parts) > 2 or parts[0] in ACTION_VERBS)
    parts = _CAMEL_PART.findall(token)
    if len(parts) < 2 or "".join(parts) != token:
        return False
    return len(parts) > 2 or parts[0].casefold() in ACTION_VERBS or (parts[0].islower() and len(parts[0]) > 1)


def _keys_of(tool: Tool) -> set[tuple[str, str]]:
    """(kind, text) of all that may name a tool, names it had before included."""
    keys = _keys_of_name(tool.name, {tool.server_id, tool.metadata.namespace} - {""})
    for alias in tool.metadata.aliases:
        server, _, name = alias.partition(".")
        keys |= _keys_of_name(name, {server})
    return keys


def _keys_of_name(name: str, servers: Set[str]) -> set[tuple[str, str]]:
    folded = name.casefold()
    full = {(_FULL, f"{server.casefold()}\0{folded}") for server in servers}
    words, terms = _words_of(name), name_words(name)
    return full | {(_NAME, folded), (_WORDS, "\0".join(words)), (_TERMS, "\0".join(terms))}


def _goes_by(tool: Tool, kind: str, text: str) -> bool:
    """Whether this key is one of the tool's own, or of a name that it had before."""
    return _has(tool, kind, text) or (bool(tool.metadata.aliases) and (kind, text) in _keys_of(tool))


def _has(tool: Tool, kind: str, text: str) -> bool:
    """Whether this key is one of the tool's own, told from its text."""
    if kind == _NAME:
        return tool.name.casefold() == text
    if kind == _FULL:
        server, _, name = text.partition("\0")
        servers = {tool.server_id.casefold(), tool.metadata.namespace.casefold()}
        return name == tool.name.casefold() and server in servers
    return (kind, text) in _keys_of_name(tool.name, {tool.server_id})


def _hashed(kind: str, text: str) -> int:
    digest = blake2b(f"{kind}\0{text}".encode(errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def _in_order(hashes: IntArray, tools: npt.NDArray[np.integer]) -> NameKeys:
    order = np.lexsort((tools, hashes))
    return NameKeys(hashes=hashes[order], tools=tools[order].astype(np.int32))


def _places(text: str, mark: str) -> Iterator[int]:
    at = text.find(mark)
    while at >= 0:
        yield at
        at = text.find(mark, at + 1)


def _words_of(name: str) -> tuple[str, ...]:
    return tuple(split_identifier(name).casefold().split())
