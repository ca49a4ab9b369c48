"""Text of a definition made safe and honest to look at: characters that hide or reorder text are shown, not obeyed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

_HIDDEN = {"Cf", "Cc", "Co", "Cn", "Cs", "Zl", "Zp"}
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and marks that print nothing."""
_HARMLESS = {"\n", "\t"}
"""A carriage return is not: on a terminal it sends what follows over what was written."""


_MAY_HIDE = re.compile(r"[^\x20-\x7e\n\t]")
"""Most texts hold nothing that could be hidden; asking once is cheaper than asking for each character."""


def may_hide(text: str) -> bool:
    """Whether any character of this text needs a look."""
    return _MAY_HIDE.search(text) is not None


def is_hidden(character: str) -> bool:
    """Whether a reader would not see this character: format, control, private, unassigned, surrogate, separators."""
    if character.isascii():
        return not character.isprintable() and character not in _HARMLESS
    return (
        unicodedata.category(character) in _HIDDEN or character in _BLANK or "\U000e0100" <= character <= "\U000e01ef"
    )


def show(text: str) -> str:
    """The text with every hidden character written as `<U+XXXX NAME>`."""
    return "".join(_shown(c) if is_hidden(c) else c for c in text) if may_hide(text) else text


def _shown(character: str) -> str:
    name = unicodedata.name(character, "")
    return f"<U+{ord(character):04X}{' ' + name if name else ''}>"


def strings(value: Any, pointer: str = "") -> Iterator[tuple[str, str]]:
    """Every string in a JSON value with its JSON pointer, keys included (their pointer ends in `~key`)."""
    stack: list[tuple[Any, str]] = [(value, pointer)]
    while stack:
        item, where = stack.pop()
        if isinstance(item, str):
            yield where, item
        elif isinstance(item, Mapping):
            for key, inner in item.items():
                step = str(key).replace("~", "~0").replace("/", "~1")
                yield f"{where}/{step}~key", str(key)
                stack.append((inner, f"{where}/{step}"))
        elif isinstance(item, list | tuple):
            stack.extend((inner, f"{where}/{number}") for number, inner in enumerate(item))
