"""Characters that a reader does not see, or sees as others, and blanks that push text out of sight.

Above: `lint.py`. Beside it: `normal.py` undoes the disguise, so that the words are judged as well.

Invariants
1. Joiners inside emoji and in scripts that need them, marks of writing direction beside such scripts, and line ends
   are spelling.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

from toolcrib.review.findings import Finding, Level
from toolcrib.review.reading import MAX_CHARS, Role, Text
from toolcrib.review.rules import RULES
from toolcrib.review.text import is_hidden, may_hide, show

_JOINERS = {"\u200d", "\u200c", "\ufe0f"}
_DIRECTION = {"\u200e", "\u200f", "\u061c"}
_TAGS = re.compile("[\U000e0020-\U000e007e]{2,}")
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{3,}")
_REORDERS = frozenset("\u202a\u202b\u202d\u202e\u2066\u2067\u2068")
_BLANK = re.compile(
    r"(?<![ \t\u00a0\u2000-\u200a\u3000])[ \t\u00a0\u2000-\u200a\u3000]{80,}+(?=\S)"
    r"|(?<![ \t\r\n])(?:[ \t\r]*+\n){12,}+(?=[ \t]*+\S)"
)
"""Looked for once where a blank begins, and never given back: a long one that leads nowhere costs its length."""
_MIN_BLANK, _MIN_CREDENTIAL = 12, 19
_N_SPREAD = 12
"""This many hidden characters in one text are no slip of an editor."""
_CREDENTIALS = re.compile(
    r"\bgh[pousr]_[A-Za-z0-9]{36}\b|\bgithub_pat_\w{60,}|\bAKIA[0-9A-Z]{16}\b|\bsk-(?:ant-|"
    r"proj-)?[A-Za-z0-9_-]{32,}|\bxox[abpr]-\d[\w-]{20,}|"
    r"\bglpat-[\w-]{20}\b|\bAIza[\w-]{35}\b|-----BEGIN (?:\w+ )?PRIVATE KEY-----|\bnpm_[A-Za-z0-9]{36}\b|"
    r"\bsk_live_[A-Za-z0-9]{20,}"
)
_MARKS = (
    ("disguised", "disguised-letters", Level.REVIEW),
    ("entities", "letters-as-codes", Level.REVIEW),
    ("spaced", "spaced-letters", Level.REVIEW),
    ("digits", "letters-as-digits", Level.REVIEW),
    ("encoded", "encoded-text", Level.REVIEW),
)


def characters(read: Sequence[Text]) -> Iterator[Finding]:
    """Findings in what these texts are written with."""
    for text in read:
        yield from _hidden(text)
        yield from _disguise(text)
        if len(text.raw) > _MIN_BLANK and (blank := _BLANK.search(text.raw)):
            shown = show(" ".join(text.raw[blank.end() :][:120].split()))
            yield _finding(text, "padding", f"({len(blank[0])} blanks) {shown}")
        if len(text.raw) > _MIN_CREDENTIAL and (found := _CREDENTIALS.search(text.raw)):
            yield _finding(text, "secret-in-definition", f"{found[0][:8]}… ({len(found[0])} characters)")
        if len(text.raw) > MAX_CHARS:
            yield _finding(text, "unread-text", f"{len(text.raw)} characters; the first {MAX_CHARS} were read")


def _hidden(text: Text) -> Iterator[Finding]:
    raw = text.raw
    if not may_hide(raw):
        return
    places = [n for n, c in enumerate(raw) if is_hidden(c) and not _spelling(raw, n)]
    selectors = _SELECTORS.search(raw)
    if selectors:
        places = sorted({*places, selectors.start()})
    if places:
        first = places[0]
        grave = (
            len(places) >= _N_SPREAD or bool(_TAGS.search(raw) or selectors) or any(raw[n] in _REORDERS for n in places)
        )
        yield Finding(
            rule="invisible-characters",
            level=Level.BLOCK if grave else Level.REVIEW,
            pointer=text.pointer,
            evidence=show(raw[max(0, first - 20) : first + 40]),
            why=f"{len(places)} {RULES['invisible-characters'].title}",
        )


def _spelling(text: str, place: int) -> bool:
    """Joiners inside emoji or inside scripts that need them, direction marks beside those, and the end of a line."""
    character = text[place]
    if text[place : place + 2] == "\r\n":
        return True
    if character == "\ufeff" and place == 0:
        return True
    if character in _DIRECTION:
        return any(unicodedata.bidirectional(c) in ("R", "AL") for c in text[max(0, place - 40) : place + 40])
    if character > "\U000e00ff":
        return place > 0 and unicodedata.name(text[place - 1], "").startswith("CJK")
    if character not in _JOINERS or place in (0, len(text) - 1):
        return False
    around = text[place - 1] + text[place + 1]
    return not any(c.isascii() or unicodedata.name(c, "").startswith(("LATIN", "CYRILLIC", "GREEK")) for c in around)


def _disguise(text: Text) -> Iterator[Finding]:
    if text.role is Role.KEYWORD:
        return
    for mark, rule, level in _MARKS:
        if found := getattr(text.plain, mark):
            yield _finding(text, rule, show(found[:80]), level=level)


def _finding(text: Text, rule: str, evidence: str, *, level: Level = Level.REVIEW) -> Finding:
    return Finding(rule=rule, level=level, pointer=text.pointer, evidence=evidence, why=RULES[rule].title)
