"""What the lint model sees of a text: its sentences, and in each the words, their letters and their neighbours, hashed.

    string ─▶ lines ─▶ as read (`normal.plain`) ─▶ sentences ─▶ tokens ─▶ ids of words, letters in words, pairs, triples

Above it: `model`, which weighs the ids, and `training/fit_lint.py`, which learns the weights. Both read through this
file, so that they cannot differ.

Invariants
1. Same text and names, same ids, on every machine: CRC-32 and whole-number arithmetic only.
2. Linear in the length of the text; a sentence without an end is cut.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from toolcrib.review.normal import plain
from toolcrib.review.reading import Role, Text

Ids: TypeAlias = npt.NDArray[np.int64]
FormOf: TypeAlias = Callable[[str], str]
"""A lower-case name -> the form it counts as (`SELF`, `SIBLING`, `PARAMETER`); "" for one that is not known here."""

N_BITS = 18
N_FEATURES = 1 << N_BITS
MAX_TOKENS = 40
"""A longer sentence is cut; what hides in a text without full stops is still seen by itself."""
MIN_WORDS = 3
LETTERS = (3, 4, 5)
LETTER_SHARE = 0.3
"""What letters count beside words: there are some ten times as many."""
N_NEIGHBOURS = 4
_WORD_SHARE = 0.5
_MAX_LETTERS = 24
_MAX_LINES = 2_000
_UNREAD = (Role.NAME, Role.PARAMETER_NAME, Role.KEYWORD, Role.KEY)
_LINE = re.compile(
    r"(?<!\s)(?:[^\S\n]*+\n(?:[^\S\n]*+\n\s*+|\s*+(?![a-z]))|(?<=[.!?:;。])[^\S\n]*+\n\s*+|[^\S\n]{5,}+(?=\S))"
)
"""Where a text stops being one paragraph: at a line end that is more than a wrapped line, and at a wide gap."""
_SENTENCE = re.compile(r"(?<=[.!?])[\"')\]]*\s+|(?<=[。！？；])|[\n\r]+")
_TOKEN = re.compile(
    r"""
    (?P<url>(?:https?|wss?|ftp)://[^\s)>\]"'`]+|www\.[^\s)>\]"'`]+)
    |(?P<mail>[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+)
    |(?P<path>(?<![\w<])(?:~|\.{1,2}|[a-z]:)?[/\\][\w.@~*-]+(?:[/\\][\w.@~*-]*)*|(?<![\w.])\.[a-z][\w-]+(?:[/.][\w.-]+)*)
    |(?P<tag></?[a-z][\w -]{1,30}>|<!--|-->)
    |(?P<code>[^\W_]+(?:_+[^\W_]+)+)
    |(?P<joined>[^\W_]+(?:-[^\W_]+)+)
    |(?P<number>\d[\d.,]*%?)
    |(?P<sign>[\u3040-\u30ff\u3400-\u9fff])
    |(?P<word>[^\W\d_\u3040-\u30ff\u3400-\u9fff]+(?:['’][^\W\d_]+)?)
    |(?P<mark>[!?:;"`$|&*])
    """,
    re.VERBOSE,
)
_EAST_ASIAN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_PIECE = re.compile(r"[^\W\d_]+")
_START = "START"


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """`form`: how it counts among its neighbours. `spelled`: what its letters are; empty for a name known here."""

    form: str
    spelled: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """A sentence of the text with that number."""

    text_idx: int
    text: str
    tokens: tuple[Token, ...]


def sentences(read: Sequence[Text], *, form_of: FormOf) -> list[Sentence]:
    """All sentences of those texts that may speak to a model, in order."""
    return [
        Sentence(text_idx=number, text=part, tokens=tokens)
        for number, text in enumerate(read)
        if text.role not in _UNREAD and (" " in text.plain.text or not text.plain.text.isascii())
        for line in _lines(text)
        for part, tokens in _parts(line, form_of)
    ]


def _lines(text: Text) -> Iterator[str]:
    """The paragraphs of a text, each as read."""
    lines = _LINE.split(text.raw.strip())
    if len(lines) == 1 or len(lines) > _MAX_LINES:
        yield text.plain.text
    else:
        yield from (plain(line).text for line in lines)


def _parts(line: str, form_of: FormOf) -> Iterator[tuple[str, tuple[Token, ...]]]:
    for sentence in _SENTENCE.split(line):
        found = [(match.start(), match.end(), _token(match, form_of)) for match in _TOKEN.finditer(sentence)]
        n_parts = -(-len(found) // MAX_TOKENS)
        for number in range(n_parts):
            part = found[number * len(found) // n_parts : (number + 1) * len(found) // n_parts]
            tokens = tuple(token for _, _, token in part)
            if _is_prose(tokens):
                yield sentence[part[0][0] : part[-1][1]], tokens


def _is_prose(tokens: Sequence[Token]) -> bool:
    """Whether somebody says something here; lists of values, tables and code look like nothing that was learned."""
    if any(_EAST_ASIAN.match(token.form) for token in tokens):
        return True
    n_words = sum(token.form == token.spelled and token.form[0].isalpha() for token in tokens)
    varied = len({token.form for token in tokens}) * 2 >= len(tokens)
    return n_words >= MIN_WORDS and n_words >= _WORD_SHARE * len(tokens) and varied


def _token(match: re.Match[str], form_of: FormOf) -> Token:
    kind, text = match.lastgroup, match.group()
    if kind in ("url", "mail", "number"):
        return Token(form=kind.upper(), spelled="")
    if kind in ("path", "tag"):
        return Token(form=kind.upper(), spelled=text)
    if kind in ("code", "joined"):
        known = form_of(text)
        return Token(form=known or ("CODE" if kind == "code" else text), spelled="" if known else text)
    return Token(form=text, spelled=text)


@lru_cache(maxsize=1 << 16)
def letters(spelled: str) -> Ids:
    """Ids of the words in a spelling and of the letters within them."""
    pieces = [piece[:_MAX_LETTERS] for piece in _PIECE.findall(spelled)]
    grams = [
        padded[start : start + n]
        for padded in (f"<{piece}>" for piece in pieces)
        for n in LETTERS
        for start in range(len(padded) - n + 1)
    ]
    return _places(np.array([zlib.crc32(gram.encode()) for gram in (*grams, *pieces)], dtype=np.uint64), 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What each sentence has, each thing once: sentence `rows[i]` has `ids[i]`, which counts `shares[i]`."""

    rows: Ids
    ids: Ids
    shares: npt.NDArray[np.float64]


def seen(read: Sequence[Sentence]) -> Seen:
    """What these sentences have; a thing said twice in a sentence is said."""
    rows = np.repeat(np.arange(len(read)), [len(sentence.tokens) for sentence in read])
    near = neighbours(read)
    spelled = [letters(token.spelled) for sentence in read for token in sentence.tokens]
    within = np.repeat(rows, [len(ids) for ids in spelled]) * N_FEATURES + np.concatenate(spelled)
    words, parts = np.unique((rows[:, None] * N_FEATURES + near)[near >= 0]), np.unique(within)
    both = np.concatenate((words, parts))
    shares = np.concatenate((np.ones(len(words)), np.full(len(parts), LETTER_SHARE)))
    return Seen(rows=both // N_FEATURES, ids=both % N_FEATURES, shares=shares)


def neighbours(read: Sequence[Sentence]) -> Ids:
    """Ids of each token of the sentences: alone, with the one before, with the one before that, with both.

    Returns:
        int64, shape (n_tokens, 4); -1 where it would reach before the start of its sentence.
    """
    forms = [form for sentence in read for form in (_START, _START, *(token.form for token in sentence.tokens))]
    codes = np.array([_code(form) for form in forms], dtype=np.uint64)
    ids = np.full((len(codes), N_NEIGHBOURS), -1, dtype=np.int64)
    ids[:, 0] = _places(codes, 2)
    ids[1:, 1] = _places(codes[:-1] * _A + codes[1:], 3)
    ids[2:, 2] = _places(codes[:-2] * _A + codes[2:], 4)
    ids[2:, 3] = _places((codes[:-2] * _A + codes[1:-1]) * _A + codes[2:], 5)
    starts = codes == _code(_START)
    ids[np.concatenate((np.zeros(1, dtype=np.bool_), starts[:-1])) & ~starts, 2] = -1
    kept: Ids = ids[~starts]
    return kept


@lru_cache(maxsize=1 << 16)
def _code(form: str) -> int:
    return zlib.crc32(form.encode())


_A = np.uint64(0x100000001B3)
_MIX = np.uint64(0x9E3779B97F4A7C15)


def _places(codes: npt.NDArray[np.uint64], kind: int) -> Ids:
    """Numbers spread over the places, another spread for each kind (arithmetic modulo 2^64)."""
    mixed = (codes + np.uint64(kind * 0x51ED270B)) * _MIX
    mixed = (mixed ^ (mixed >> np.uint64(29))) * _MIX
    return (mixed >> np.uint64(64 - N_BITS)).astype(np.int64)
