"""How a text reads, whatever letters it is written in: what a model makes of it, in plain lower-case words.

    raw ─▶ entities and escapes ─▶ tag characters ─▶ hidden characters ─▶ NFKC ─▶ lookalikes ─▶ spaced letters ─▶ spaces

Above: every rule that reads words. Beside it: `characters.py`, which turns the marks left here into findings.

Invariants
1. Honest text comes out as it went in, but for case and spaces; every other change leaves a mark.
2. Nothing is lost: text hidden in tag characters, escapes or base64 is read with the rest.
3. Time grows with the text's length.
"""

from __future__ import annotations

import base64
import binascii
import html
import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, islice, pairwise

from toolcrib.review.confusables import as_read
from toolcrib.review.text import is_hidden, may_hide

_ENTITY = re.compile(r"&#(?:[xX]0{0,64}[0-9a-fA-F]{1,6}|0{0,64}[0-9]{1,7});?|&[a-zA-Z]{2,32};")
"""As lenient as a reader of HTML, but for longer numbers: no letter has one, and Python refuses to read them."""
_ESCAPE = re.compile(r"(?:\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}|%[2-7][0-9a-fA-F]){4,}")
_ONE_ESCAPE = re.compile(r"(?:\\u|\\x|%)([0-9a-fA-F]{2,4})")
_TAGGED = re.compile("[\U000e0020-\U000e007e]+")
_SPACED = re.compile(r"(?<![^\W_])(?:[^\W\d_][ .\-_*·|]{1,2}){5,}[^\W\d_](?![^\W_])")
_SEPARATOR = re.compile(r"[ .\-_*·|]")
_BLOB = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{24,4000}={0,2}")
_HEX = re.compile(r"(?<![0-9a-zA-Z])(?:[2-7][0-9a-fA-F]){16,}(?![0-9a-zA-Z])")
_SPACE = re.compile(r"\s+")
_MAX_STACKED = 32
"""Marks on one letter. No script has as many; normalising takes time in the square of their number."""
_LEET = str.maketrans("013457@$", "oleastas")
_LEET_WORD = re.compile(r"(?<![\w@$])(?=[\w@$]*[a-z])(?=[\w@$]*[0-9@$])[a-z0-9@$]{4,20}(?![\w@$])")
_NOT_IN_NAMES = re.compile(r"[\W_]+")
_LOADED = frozenset(
    "ignore disregard override previous instruction instructions system prompt secret secretly password passwords "
    "passwd token tokens credential credentials user users tell silently always never must before execute read send "
    "private access bypass admin hidden conversation forward email files".split()
)
"""Words worth spelling with digits only to hide them; "v2", "s3" and "base64" stay as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """A text as read. Each mark holds what was changed ("" where nothing was), for evidence.

    `entities`: letters written as codes. `disguised`: letters of other scripts or shapes. `spaced`: letters set apart.
    `digits`: digits in place of letters. `encoded`: text found inside base64 or hex, appended to `text` as well.
    """

    text: str
    entities: str = ""
    disguised: str = ""
    spaced: str = ""
    digits: str = ""
    encoded: str = ""


@lru_cache(maxsize=1 << 14)
def plain(raw: str) -> Plain:
    """The text as read, with what had to be undone to read it."""
    text, entities = _unescaped(raw)
    text = visible(text)
    text, shaped = _unshaped(text)
    text, mixed = as_read(text)
    text, encoded = _decoded(text)
    text, spaced = _closed(text)
    text, digits = _respelled(_SPACE.sub(" ", text).strip().casefold())
    return Plain(text=text, entities=entities, disguised=shaped or mixed, spaced=spaced, digits=digits, encoded=encoded)


@lru_cache(maxsize=1 << 16)
def skeleton(name: str) -> str:
    """What a name reads as, for comparing names: case, separators and lookalike letters make no difference."""
    if name.isascii():
        return _NOT_IN_NAMES.sub("", name).casefold().replace("0", "o")
    text, _ = as_read(_normalized(visible(name)))
    return _NOT_IN_NAMES.sub("", text).casefold().replace("0", "o")


def _unescaped(text: str) -> tuple[str, str]:
    """Codes written out as characters; the mark is the first place where a plain letter stood as a code."""
    mark = ""
    for _ in range(2):
        if "&" not in text or not _ENTITY.search(text):
            break
        mark = mark or next((m[0] for m in _ENTITY.finditer(text) if _is_letter(html.unescape(m[0]))), "")
        text = _ENTITY.sub(lambda m: html.unescape(m[0]), text)
    if found := _ESCAPE.search(text):
        out = _ESCAPE.sub(lambda m: _ONE_ESCAPE.sub(lambda one: chr(int(one[1], 16)), m[0]), text)
        mark = mark or (found[0] if sum(map(_is_letter, out)) > sum(map(_is_letter, text)) // 2 else "")
        text = f"{text} {out}"
    return text, mark


def _is_letter(character: str) -> bool:
    return len(character) == 1 and character.isascii() and character.isalpha()


def visible(text: str) -> str:
    """Without the characters that a reader does not see; what tag characters spell is read as plain text."""
    if not may_hide(text):
        return text
    spelled = "".join(chr(ord(c) - 0xE0000) for run in _TAGGED.findall(text) for c in run)
    shown = "".join(c for c in text if not is_hidden(c) or c == "\r")
    return f"{shown} {spelled}" if spelled.strip() else shown


def _unshaped(text: str) -> tuple[str, str]:
    """NFKC; the mark is the first word of three letters and more that is written in shaped ones."""
    if text.isascii():
        return text, ""
    normal = _normalized(text)
    if normal == text:
        return text, ""
    return normal, "" if _mostly_east_asian(text) else _shaped_word(text)


def _normalized(text: str) -> str:
    """NFKC, in time that grows with the text's length."""
    runs = (
        "".join(run) if not is_mark else "".join(islice(run, _MAX_STACKED)) for is_mark, run in groupby(text, _is_mark)
    )
    return unicodedata.normalize("NFKC", "".join(runs))


def _is_mark(character: str) -> bool:
    return not character.isascii() and unicodedata.category(character).startswith("M")


def _shaped_word(text: str) -> str:
    for word in text.split():
        shaped = [c for c in word if is_shaped_letter(c)]
        if shaped and sum(c.isalpha() or c in shaped for c in word) >= 3 and (len(shaped) >= 2 or len(word) >= 4):
            return word
    return ""


def is_shaped_letter(character: str) -> bool:
    """Full-width, mathematical, circled: one sign that NFKC makes one plain letter. Raised ones are notation."""
    if character.isascii() or not character.isprintable():
        return False
    plain_one = unicodedata.normalize("NFKC", character)
    raised = unicodedata.decomposition(character).startswith(("<super>", "<sub>"))
    return _is_letter(plain_one) and not raised


def _mostly_east_asian(text: str) -> bool:
    """Full-width letters are how some write Latin ones between Chinese, Japanese or Korean."""
    letters = [c for c in text if c.isalpha()]
    return sum("\u2e80" <= c <= "\u9fff" or "\uac00" <= c <= "\ud7a3" for c in letters) * 4 > len(letters)


def _decoded(text: str) -> tuple[str, str]:
    """The text, followed by what its base64 and hex runs say where they say something in words."""
    said = [words for m in _BLOB.finditer(text) if (words := _from_base64(m[0]))]
    said += [words for m in _HEX.finditer(text) if (words := _in_words(bytes.fromhex(m[0])))]
    if not said:
        return text, ""
    return " ".join([text, *said]), said[0]


def _from_base64(run: str) -> str:
    if run.islower() or run.isupper() or run.isalpha():
        return ""
    standard = run.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return _in_words(base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True))
    except (binascii.Error, ValueError):
        return ""


def _in_words(data: bytes) -> str:
    """These bytes as text, if they read as at least three words."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return ""
    letters = sum(c.isalpha() or c == " " for c in text)
    good = text.isprintable() and letters > 0.8 * len(text) and len(text.split()) >= 3
    return text if good else ""


def _closed(text: str) -> tuple[str, str]:
    """Letters that were set apart ("i g n o r e"), set together again; a run of the alphabet is left as it is."""
    mark: list[str] = []

    def joined(match: re.Match[str]) -> str:
        letters = _SEPARATOR.sub("", match[0])
        words = " ".join(_SEPARATOR.sub("", part) for part in re.split(r"[ ]{2,}", match[0]))
        if len(set(letters.casefold())) < 4 or _is_sequence(letters.casefold()):
            return match[0]
        mark.append(match[0])
        return words

    closed = _SPACED.sub(joined, text)
    return closed, (mark[0] if mark else "")


def _is_sequence(letters: str) -> bool:
    """Letters in rising order are a list ("a b c", "x y z"), not a word."""
    return all(one <= two for one, two in pairwise(letters))


def _respelled(text: str) -> tuple[str, str]:
    """Words that only digits hide ("1gn0re"), spelled out."""
    mark: list[str] = []

    def spelled(match: re.Match[str]) -> str:
        for word in (match[0].translate(_LEET), match[0].replace("1", "i").translate(_LEET)):
            if word in _LOADED:
                mark.append(match[0])
                return word
        return match[0]

    return _LEET_WORD.sub(spelled, text), (mark[0] if mark else "")
