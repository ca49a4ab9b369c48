"""Words of a text as search terms: one function for documents, one for queries, the same terms from both.

    createPullRequest  ->  create, pull, request, createpullrequest   (parts, and the whole as people also write it)
    get_order_v2       ->  get, order, v, 2, v2
    e-mail             ->  email
    Müllabfuhr         ->  müllabfuhr, mullabfuhr                     (accents folded beside the original)
    查询工单            ->  查, 询, 工, 单, 查询, 询工, 工单      (no word boundaries: characters and bigrams)

Latin words are stemmed (Snowball English). The choice is made by script, word by word; no language is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from threading import Lock

import Stemmer

from toolcrib.retrieval.text import fold
from toolcrib.retrieval.words import PARTICLE_VERBS, PARTICLES, STOP_WORDS

MAX_QUERY_TERMS = 128
_MAX_WORD_CHARS = 48
_PARTICLE_REACH = 4

# Letters and digits, and the vowel signs of scripts whose signs are not letters to Python.
_SIGNS = (
    "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u0900-\u0963\u0966-\u0dff\u0e31-\u0e4e\u0eb1-\u0ece\u102b-\u109d\u17b4-\u17d3"
)
_WORD = re.compile(rf"\b[A-Za-z]-[A-Za-z]{{3,}}|[^\W_][^\W_{_SIGNS}]*[{_SIGNS}]*(?:[^\W_{_SIGNS}]+[{_SIGNS}]*)*")
_UNSPACED = re.compile(
    "[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u3040-\u30ff\uac00-\ud7af\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\U00020000-\U0003ffff]+"
)
_BOUNDARY = re.compile("(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])")
_STEMMER = Stemmer.Stemmer("english")
_STEMMER_LOCK = Lock()  # one stemmer must not run in two threads at once


def words(text: str) -> list[str]:
    """The words of a text as written, underscores and punctuation between them gone."""
    return _WORD.findall(text)


def document_terms(text: str, *, max_terms: int) -> list[str]:
    """Terms in order, repeats kept, at most `max_terms`: past the cap, length buys nothing."""
    found: list[str] = []
    for word in _WORD.finditer(text):
        found.extend(word_terms(word.group()))
        if len(found) >= max_terms:
            return found[:max_terms]
    return found


@lru_cache(maxsize=2_048)
def query_terms(text: str) -> tuple[str, ...]:
    """Distinct terms that say what is wanted, in order of appearance, at most `MAX_QUERY_TERMS`."""
    found: dict[str, None] = {}
    for word in content_words(text):
        found.update(dict.fromkeys(word_terms(word)))
        if len(found) >= MAX_QUERY_TERMS:
            break
    return tuple(found)[:MAX_QUERY_TERMS]


@lru_cache(maxsize=262_144)
def word_terms(word: str) -> tuple[str, ...]:
    """The terms of one word, as in the table above."""
    word = word[:_MAX_WORD_CHARS]
    if word.isascii():
        return _ascii_terms(word)
    found: list[str] = []
    end = 0
    for run in _UNSPACED.finditer(word):
        found += _spaced_terms(word[end : run.start()]) + _unspaced_terms(run.group())
        end = run.end()
    return tuple(found + _spaced_terms(word[end:]))


def content_words(text: str) -> Iterator[str]:
    """Words of a query without function and request words; particles stay where a verb such as `turn` needs them."""
    since_verb = _PARTICLE_REACH + 1
    for word in _WORD.findall(text):
        lower = word.lower()
        since_verb = 0 if lower in PARTICLE_VERBS else since_verb + 1
        if (lower in PARTICLES and since_verb <= _PARTICLE_REACH) or lower not in STOP_WORDS:
            yield word


def is_mostly_latin(text: str) -> bool:
    """Whether at least half of the letters are Latin, the one script the packaged model reads."""
    letters = [char for char in text if char.isalpha()]
    return bool(letters) and 2 * sum(char < "\u0250" or "\u1e00" <= char < "\u1f00" for char in letters) >= len(letters)


def split_identifier(name: str) -> str:
    """A tool or argument name as words with spaces, for the dense text."""
    return " ".join(part for word in words(name) for part in _BOUNDARY.sub(" ", word).split())


def _ascii_terms(word: str) -> tuple[str, ...]:
    word = word.replace("-", "")  # e-mail, x-ray: one word, however it is written
    parts = _BOUNDARY.sub(" ", word).lower().split()
    whole = [word.lower()] if len(parts) > 1 else []
    return tuple(_stem(part) for part in parts + whole)


def _spaced_terms(word: str) -> list[str]:
    if not word or word.isascii():
        return list(_ascii_terms(word))
    lower, folded = word.lower(), fold(word)
    return [_stem(lower)] + ([_stem(folded)] if folded != lower else [])


def _unspaced_terms(run: str) -> list[str]:
    return [*run, *(run[i : i + 2] for i in range(len(run) - 1))]


def _stem(word: str) -> str:
    with _STEMMER_LOCK:
        return str(_STEMMER.stemWord(word))
