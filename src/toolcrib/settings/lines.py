"""On which line of `toolcrib.toml` a key stands: the standard parser does not say.

Below `loading.py`. Reads text that the standard parser has already accepted, so it can be simple: it finds where keys
and list elements begin and skips over the values.

Invariants
1. A path is made of keys and positions: `("servers", 2, "env", "TOKEN")`; the n-th `[[servers]]` is position n - 1.
2. A path that is not in the text (a missing key, a default) has the line of its nearest parent that is.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

KeyPath: TypeAlias = tuple[str | int, ...]

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BLANK_OR_COMMA = re.compile(r"(?:[ \t\r\n,]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_BARE_KEY = re.compile(r"[^\s.=\[\]{}\"'#,]+")
_QUOTED_KEY = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'')
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"""(?:"{0,2})' + r"|'''.*?'''(?:'{0,2})" + r'|"(?:[^"\\\n]|\\.)*"' + r"|'[^'\n]*'", re.DOTALL
)
_SCALAR = re.compile(r"[^,\]}\n#]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Lines of one file, counted from 1. `source` is the file's name as errors show it."""

    source: str
    by_path: Mapping[KeyPath, int] = field(default_factory=dict)

    def line(self, path: KeyPath) -> int:
        """The line of this path or of its nearest parent in the text; 0 when there is none."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.by_path:
                return self.by_path[path[:length]]
        return 0

    def where(self, path: KeyPath) -> str:
        """`toolcrib.toml:12`, or the file's name alone where no line can be told."""
        line = self.line(path)
        return f"{self.source}:{line}" if line else self.source


def lines_of(text: str, *, source: str) -> Lines:
    """The lines of every key and list element. `text` must be valid TOML with `\\n` line ends."""
    scanner = _Scanner(text)
    scanner.scan()
    return Lines(source=source, by_path=scanner.found)


class _Scanner:
    """One pass over the text; `pos` only moves forward."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.pos = 0
        self.found: dict[KeyPath, int] = {}
        self._n_tables: dict[KeyPath, int] = {}
        self._newlines = [match.start() for match in re.finditer("\n", text)]

    def scan(self) -> None:
        base: KeyPath = ()
        while self._skip(_BLANK) < len(self.text):
            before = self.pos
            if self.text.startswith("[[", self.pos):
                base = self._header(brackets=2)
            elif self.text[self.pos] == "[":
                base = self._header(brackets=1)
            else:
                self._pair(base)
            if self.pos == before:
                return  # not TOML after all; better no line than no end

    def _skip(self, pattern: re.Pattern[str]) -> int:
        match = pattern.match(self.text, self.pos)
        if match:
            self.pos = match.end()
        return self.pos

    def _mark(self, path: KeyPath, pos: int) -> None:
        self.found.setdefault(path, bisect_left(self._newlines, pos) + 1)

    def _header(self, *, brackets: int) -> KeyPath:
        start = self.pos
        self.pos += brackets
        keys = self._keys()
        self.pos += brackets
        path: KeyPath = ()
        for key in keys[:-1]:
            path = self._latest((*path, key))
            self._mark(path, start)
        path = (*path, keys[-1])
        self._mark(path, start)
        if brackets == 2:
            self._n_tables[path] = self._n_tables.get(path, 0) + 1
            path = self._latest(path)
            self._mark(path, start)
        return path

    def _latest(self, path: KeyPath) -> KeyPath:
        """Where a header's key leads: into the last element when it names an array of tables."""
        return (*path, self._n_tables[path] - 1) if path in self._n_tables else path

    def _keys(self) -> list[str]:
        keys: list[str] = []
        while True:
            self._skip(_SPACE)
            quoted = _QUOTED_KEY.match(self.text, self.pos)
            match = quoted or _BARE_KEY.match(self.text, self.pos)
            if match is None:
                return keys or [""]
            keys.append(str(tomllib.loads(f"key = {match[0]}")["key"]) if quoted else match[0])
            self.pos = match.end()
            self._skip(_SPACE)
            if not self.text.startswith(".", self.pos):
                return keys
            self.pos += 1

    def _pair(self, base: KeyPath) -> None:
        start = self.pos
        path = base
        for key in self._keys():
            path = (*path, key)
            self._mark(path, start)
        self._skip(_SPACE)
        self.pos += 1  # the equals sign
        self._skip(_SPACE)
        self._value(path)

    def _value(self, path: KeyPath) -> None:
        if self.text.startswith("[", self.pos):
            self._array(path)
        elif self.text.startswith("{", self.pos):
            self._inline_table(path)
        else:
            self._skip(_STRING if self.text[self.pos : self.pos + 1] in ('"', "'") else _SCALAR)

    def _array(self, path: KeyPath) -> None:
        self.pos += 1
        position = 0
        while self._skip(_BLANK_OR_COMMA) < len(self.text) and self.text[self.pos] != "]":
            self._mark((*path, position), self.pos)
            self._value((*path, position))
            position += 1
        self.pos += 1

    def _inline_table(self, path: KeyPath) -> None:
        self.pos += 1
        while self._skip(_BLANK_OR_COMMA) < len(self.text) and self.text[self.pos] != "}":
            self._pair(path)
        self.pos += 1
