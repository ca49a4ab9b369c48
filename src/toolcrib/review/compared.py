"""Two definitions beside one another: each place that differs, and in texts the words that do.

Above: `cli/review_pages.py`. Below: `text.py` shows what hides.

Invariants
1. Nothing here can act on a terminal: hidden characters are written out, and one text stays on its line.
2. Every difference is shown or counted; none is left out without a word.
3. Time is bounded: of long texts only what lies between their common beginning and end is compared word by word, and
   where that is long, too, it is shown one after the other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Final, Literal, TypeAlias

from toolcrib.review.text import is_hidden, show

_MAX_WORDS = 3_000
"""Longer texts are not compared word by word."""
_AROUND = 8
"""Words and spaces that stay beside a change."""
_TOKEN = re.compile(r"\w+|\s+|.", re.DOTALL)
_Step: TypeAlias = tuple[str, int, int, int, int]


class _Absent:
    """Stands for nothing at all, which is not JSON's null."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One place that differs. `was`, `now`: JSON, or ABSENT where there was nothing, or is nothing now."""

    pointer: str
    was: Any
    now: Any

    @property
    def kind(self) -> Literal["added", "removed", "changed"]:
        if self.was is ABSENT:
            return "added"
        return "removed" if self.now is ABSENT else "changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a text, safe to print. `mark`: whether the other text does not have it; `skipped`: words left out."""

    text: str
    mark: bool = False
    skipped: bool = False


def differences(was: Any, now: Any, pointer: str = "") -> Iterator[Difference]:
    """Each place that differs, in the order of the keys; lists of one length item by item, others whole."""
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        for key in sorted({*was, *now}, key=str):
            step = f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}"
            if key not in was or key not in now:
                yield Difference(pointer=step, was=was.get(key, ABSENT), now=now.get(key, ABSENT))
            else:
                yield from differences(was[key], now[key], step)
    elif _are_lists(was, now):
        for number, (one, other) in enumerate(zip(was, now, strict=True)):
            yield from differences(one, other, f"{pointer}/{number}")
    elif not _is_same(was, now):
        yield Difference(pointer=pointer, was=was, now=now)


def marked(was: str, now: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    """Both texts with the words that only one of them has marked, and long stretches that both have left out."""
    before, after = _tokens(was), _tokens(now)
    steps = _steps(before, after)
    old, new = list[Piece](), list[Piece]()
    for number, (step, first, last, start, end) in enumerate(steps):
        if step == "equal":
            pieces = _shared(before[first:last], at_start=number == 0, at_end=number == len(steps) - 1)
            old += pieces
            new += pieces
            continue
        if last > first:
            old.append(Piece(text=in_a_line("".join(before[first:last])), mark=True))
        if end > start:
            new.append(Piece(text=in_a_line("".join(after[start:end])), mark=True))
    return tuple(old), tuple(new)


def _steps(before: Sequence[str], after: Sequence[str]) -> list[_Step]:
    """How one becomes the other: kind, first and last of `before`, first and last of `after`."""
    if max(len(before), len(after)) <= _MAX_WORDS:
        return [*SequenceMatcher(None, before, after, autojunk=False).get_opcodes()]
    head = _n_same(before, after)
    tail = _n_same(before[head:][::-1], after[head:][::-1])
    inner = before[head : len(before) - tail], after[head : len(after) - tail]
    between: list[_Step] = (
        [("replace", 0, len(inner[0]), 0, len(inner[1]))] if max(map(len, inner)) > _MAX_WORDS else _steps(*inner)
    )
    return [
        *([("equal", 0, head, 0, head)] if head else []),
        *((kind, first + head, last + head, start + head, end + head) for kind, first, last, start, end in between),
        *([("equal", len(before) - tail, len(before), len(after) - tail, len(after))] if tail else []),
    ]


def _n_same(one: Sequence[str], other: Sequence[str]) -> int:
    """How many tokens both begin with."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def in_a_line(text: str) -> str:
    """The text on one line: hidden characters and the ends of lines are written out."""
    return show(text).replace("\n", "<LF>").replace("\t", "<TAB>")


def as_json(value: Any) -> str:
    """A value as JSON on one line, safe to print."""
    return in_a_line(json.dumps(value, ensure_ascii=False, sort_keys=True, default=str))


def _tokens(text: str) -> list[str]:
    """Words, spaces, and signs one by one; a hidden character is one of its own, never a part of a word."""
    found: list[str] = []
    for token in _TOKEN.findall(text):
        if any(map(is_hidden, token)):
            found += token
        else:
            found.append(token)
    return found


def _shared(tokens: Sequence[str], *, at_start: bool, at_end: bool) -> list[Piece]:
    """What both texts have, its middle left out where it is long; at the ends of a text only the side that counts."""
    head = 0 if at_start else _AROUND
    tail = 0 if at_end else _AROUND
    n_left_out = len(tokens) - head - tail
    if n_left_out <= _AROUND:
        return [Piece(text=in_a_line("".join(tokens)))]
    middle = tokens[head : len(tokens) - tail]
    n_words = sum(token.isalnum() for token in middle)
    return [
        *([Piece(text=in_a_line("".join(tokens[:head])))] if head else []),
        Piece(text=f" [... {n_words} words ...] ", skipped=True),
        *([Piece(text=in_a_line("".join(tokens[len(tokens) - tail :])))] if tail else []),
    ]


def _are_lists(was: Any, now: Any) -> bool:
    return isinstance(was, list) and isinstance(now, list) and len(was) == len(now)


def _is_same(was: Any, now: Any) -> bool:
    """Equal as JSON: true is not 1, 1 is 1.0."""
    if isinstance(was, bool) or isinstance(now, bool):
        return was is now
    return bool(was == now)
