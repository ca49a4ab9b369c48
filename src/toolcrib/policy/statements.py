"""Where each policy stands in a policy text, and whether the text is safe to hand to Cedar's parser.

Below: nothing of ours. Above: `policies.py`.

Cedar's faults carry no line here, so the text is cut into its policies: the line where the faulty one starts is the
next best. Its parser recurses without a limit of its own, and a text nested some thousand levels deep would end the
whole process; hence the two bounds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# A comment, a string, or a token that ends a policy or nests an expression. The order matters: "//" within a string is
# text, a quote within a comment is not the start of a string.
_TOKEN = re.compile(r'//[^\n]*|"(?:\\.|[^"\\])*"|&&|\|\||\bif\b|[-+*!.;()\[\]{}]', re.DOTALL)
_BLANK = re.compile(r"(?:\s+|//[^\n]*)*")

MAX_BRACKETS = 100
MAX_OPERATORS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One policy of a text. `line`: where it starts, from 1.

    Args:
        n_brackets: the deepest nesting of brackets.
        n_operators: how many operators it has, each of which may nest the expression by one level.
    """

    text: str
    line: int
    n_brackets: int
    n_operators: int

    @property
    def too_deep(self) -> bool:
        return self.n_brackets > MAX_BRACKETS or self.n_operators > MAX_OPERATORS


def statements(text: str) -> tuple[Statement, ...]:
    """The policies of a text in order, with what is left after the last `;` unless that is blank."""
    found: list[Statement] = []
    start, depth, deepest, operators = 0, 0, 0, 0
    for token in _TOKEN.finditer(text):
        sign = token.group()
        if sign == ";":
            found.append(_statement(text, start, token.end(), n_brackets=deepest, n_operators=operators))
            start, depth, deepest, operators = token.end(), 0, 0, 0
        elif sign in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif sign in ")]}":
            depth -= 1
        elif not sign.startswith(("//", '"')):
            operators += 1
    if _first(text, start) < len(text):
        found.append(_statement(text, start, len(text), n_brackets=deepest, n_operators=operators))
    return tuple(found)


def _statement(text: str, start: int, end: int, *, n_brackets: int, n_operators: int) -> Statement:
    first = min(_first(text, start), end)
    line = text.count("\n", 0, first) + 1
    return Statement(text=text[first:end], line=line, n_brackets=n_brackets, n_operators=n_operators)


def _first(text: str, start: int) -> int:
    """The first position from `start` on that is neither blank nor comment."""
    blank = _BLANK.match(text, start)
    return blank.end() if blank else start
