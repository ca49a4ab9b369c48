"""Findings about one definition: what a reviewer should look at first. A finding never clears or blocks by itself."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolcrib.review.text import is_hidden, show, strings

_LONG_DESCRIPTION = 6_000
_JOINERS = {"\u200d", "\u200c", "\ufe0f"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing to look at. `pointer` is a JSON pointer into the definition; `evidence` shows hidden characters."""

    rule: str
    pointer: str
    evidence: str
    why: str


def lint(definition: Any) -> tuple[Finding, ...]:
    """Findings in every string of the definition, in a stable order."""
    rules: tuple[Callable[[Any], Iterator[Finding]], ...] = (_hidden_characters, _changed_by_normalising, _long_text)
    found = [finding for rule in rules for finding in rule(definition)]
    return tuple(sorted(found, key=lambda f: (f.rule, f.pointer)))


def _hidden_characters(definition: Any) -> Iterator[Finding]:
    for pointer, text in strings(definition):
        hidden = [n for n, c in enumerate(text) if is_hidden(c) and not _joins(text, n) and not _ends_line(text, n)]
        if hidden:
            first = hidden[0]
            yield Finding(
                rule="invisible-characters",
                pointer=pointer,
                evidence=show(text[max(0, first - 20) : first + 40]),
                why=f"{len(hidden)} characters that a reader does not see and a model does",
            )


def _joins(text: str, place: int) -> bool:
    """Joiners inside emoji or inside scripts that need them are spelling, not hiding."""
    if text[place] not in _JOINERS or place in (0, len(text) - 1):
        return False
    around = text[place - 1] + text[place + 1]
    return not any(c.isascii() or unicodedata.name(c, "").startswith(("LATIN", "CYRILLIC", "GREEK")) for c in around)


def _ends_line(text: str, place: int) -> bool:
    """A carriage return before a line feed is how some systems write the end of a line."""
    return text[place : place + 2] == "\r\n"


def _changed_by_normalising(definition: Any) -> Iterator[Finding]:
    for pointer, text in strings(definition):
        normal = unicodedata.normalize("NFKC", text)
        odd = next((c for c in text if _disguised(c)), "")
        if odd and normal != text:
            place = text.index(odd)
            yield Finding(
                rule="disguised-letters",
                pointer=pointer,
                evidence=show(text[max(0, place - 20) : place + 40]),
                why=f"U+{ord(odd):04X} reads as a plain letter after normalising",
            )


def _disguised(character: str) -> bool:
    plain = unicodedata.normalize("NFKC", character)
    return not character.isascii() and plain.isascii() and plain.isalnum() and not character.isnumeric()


def _long_text(definition: Any) -> Iterator[Finding]:
    text = definition.get("description") if isinstance(definition, Mapping) else None
    if isinstance(text, str) and len(text) > _LONG_DESCRIPTION:
        yield Finding(
            rule="long-description",
            pointer="/description",
            evidence=show(text[:80]) + "…",
            why=f"{len(text)} characters: costly in every context it enters, and much to review",
        )
