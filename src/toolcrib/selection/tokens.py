"""What a definition costs in a model's context: an estimate of o200k tokens without its 200,000-entry table.

Above: handed to the pipeline as its cost function. A text is split the way o200k splits it before merging, which
is public and simple; what merging then makes of a piece is estimated from its length and shape.

Calibrated on half of 118 published servers, by file, and measured on the other half (see `TOKEN_ESTIMATE_ERROR`;
`benchmarks/token_estimate.py` measures it again). Other models count differently, and a text made of nonsense words
costs more than any estimate from shapes can know.

Source:
    The o200k_base pre-tokenization pattern, as published with tiktoken.
"""

from __future__ import annotations

import json
import math
import re
from functools import lru_cache
from typing import Any, Final

from toolcrib.types import JsonObject

TOKEN_ESTIMATE_ERROR: Final[dict[str, float]] = {
    "median_abs_percent": 1.6,
    "p95_abs_percent": 4.5,
    "total_percent": 1.1,
}
"""Against o200k, over whole definitions of servers that it was not calibrated on. Positive totals are over-counts."""

_UNSENDABLE = 1_000_000_000
_MARGIN = 1.01
"""Counting 1 % too many keeps most budgets; counting too few breaks them."""

_PIECE = re.compile(
    r"""
      (?:[^\r\n\w]|_)?                                                   # a word takes the mark or space before it
      (?:[A-ZÀ-ÖØ-Þ]*[a-zß-öø-ÿĀ-ſ]+(?:'(?:s|t|re|ve|m|ll|d)(?![a-z]))? | [A-ZÀ-ÖØ-Þ]+)
    | [0-9]{1,3}
    | [ ]?[^\x00-\x7f\s]+                                                # other scripts, dashes, pictographs
    | [ ]?[!-/:-@\[-`{-~]+[\r\n/]*
    | \s*[\r\n]+ | \s+(?!\S) | \s+ | .
    """,
    re.VERBOSE | re.DOTALL,
)

# (characters that are free after the first token, tokens for each further one), by shape and by what stands before.
_PLAIN = {"lower": (5, 0.015), "capital": (3, 0.035), "upper": (3, 0.18), "mixed": (2, 0.2)}
_MARKED = {"lower": (2, 0.115), "capital": (1, 0.15), "upper": (1, 0.3), "mixed": (1, 0.3)}
_ACCENTED = (3, 0.28)
_LONG_WORD_CHARS = 13
_LONG_WORD_RATE = 0.25
_PUNCTUATION = (3, 0.72)
_WIDE_RATE = 0.72
_PICTOGRAPH_RATE = 2.0
_SCRIPT_RATE = 0.38


def estimate_tokens(definition: JsonObject) -> int:
    """Estimated o200k tokens of the whole definition, written as JSON.

    All of it is counted, `outputSchema`, annotations and `_meta` too: `find_tools`, `tools/list` and the command line
    send it whole (I5). What is left out for some provider makes a selection cheaper than said, never dearer. One that
    is nested too deeply to be written fits no budget.
    """
    try:
        return estimate_text_tokens(json.dumps(definition, ensure_ascii=False, default=_as_text))
    except RecursionError:
        return _UNSENDABLE


def estimate_text_tokens(text: str) -> int:
    """Estimated o200k tokens of any text."""
    return math.ceil(_MARGIN * sum(map(_piece_tokens, _PIECE.findall(text))))


def _as_text(value: Any) -> Any:
    """Mappings and tuples of other types count as the JSON they would be sent as."""
    return dict(value) if hasattr(value, "keys") else str(value)


@lru_cache(maxsize=65_536)
def _piece_tokens(piece: str) -> float:
    """Tokens of one piece, 1 or more on average; remembered because few pieces make up most texts."""
    body = piece if piece[0].isalpha() else piece[1:]
    if body and body[0].isalpha() and body[0] <= "ſ":
        return _word_tokens(body, is_plain=piece[0] == " " or piece[0].isalpha())
    if not piece.isascii():
        return max(1.0, sum(map(_char_tokens, piece.lstrip())))
    if piece[0].isdigit() or piece.isspace():
        return 1.0
    free, rate = _PUNCTUATION
    return 1.0 + rate * max(0, len(piece) - free)


def _word_tokens(word: str, *, is_plain: bool) -> float:
    if not word.isascii():
        free, rate = _ACCENTED
    elif word.islower():
        free, rate = (_PLAIN if is_plain else _MARKED)["lower"]
    elif word.isupper():
        free, rate = (_PLAIN if is_plain else _MARKED)["upper"]
    else:
        free, rate = (_PLAIN if is_plain else _MARKED)["capital" if word[1:].islower() else "mixed"]
    return 1.0 + rate * max(0, len(word) - free) + _LONG_WORD_RATE * max(0, len(word) - _LONG_WORD_CHARS)


def _char_tokens(char: str) -> float:
    """Tokens of one character of a script that words are not told apart in here."""
    if char >= "\U00010000":
        return _PICTOGRAPH_RATE
    return _WIDE_RATE if char >= "\u2e80" else _SCRIPT_RATE
