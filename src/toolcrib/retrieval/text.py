"""Text from anywhere made safe to read: normalised, bounded, without what cannot be seen.

Invariants
1. `clean` never fails, whatever the string holds (lone surrogates, null bytes, bidirectional marks).
2. The result is bounded by `max_chars`, and it can be encoded as UTF-8.
"""

from __future__ import annotations

import re
import unicodedata

_INVISIBLE = re.compile("[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]")
"""Format characters that would split or disguise a word. Zero-width joiners go too: a word split is worse than a
ligature lost.
"""
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_TAIL_SHARE = 4


def clean(text: str, *, max_chars: int) -> str:
    """NFKC text without invisible and control characters; a longer one keeps its head and the last quarter of the
    bound.

    People put the request before or after what they paste, seldom in its middle.
    """
    if len(text) > max_chars:
        tail = max_chars // _TAIL_SHARE
        text = f"{text[: max_chars - tail - 1]} {text[-tail:]}"
    visible = _CONTROL.sub(" ", _INVISIBLE.sub("", text))
    return visible if visible.isascii() else unicodedata.normalize("NFKC", visible)[:max_chars]


def fold(word: str) -> str:
    """The word without accents, and with `ß` as `ss`: how people type it on another keyboard."""
    decomposed = unicodedata.normalize("NFKD", word.casefold())
    return "".join(char for char in decomposed if not unicodedata.combining(char))
