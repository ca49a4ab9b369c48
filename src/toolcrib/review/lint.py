"""Findings about definitions: what a reviewer should look at first, read in the place where the definition stands.

    definition ─▶ texts, as received and as read ─▶ characters, wording, other tools, names, shape, model ─▶ findings

Above: `curation.py`, `toolcrib lint`, `scoring.py`. Below: one file per kind of finding; `rules.py` has every rule.

Invariants
1. A finding never clears or blocks by itself.
2. Every string of a definition is read, and a server's instructions as well.
3. The same definitions give the same findings in the same order: the gravest first, then by rule and place.
4. Time grows with the catalog's size, not with its square.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from toolcrib.review.characters import characters
from toolcrib.review.findings import Finding, Level, in_order, worst
from toolcrib.review.foreign import foreign
from toolcrib.review.model import suspicion
from toolcrib.review.reading import Text, description_of, name_of, text_at, texts
from toolcrib.review.shadowing import shadowing
from toolcrib.review.shape import shape
from toolcrib.review.surroundings import ALONE, Known, Surroundings, known, parameters_of, surroundings
from toolcrib.review.wording import asked_for, wording
from toolcrib.types import ListedTool

__all__ = [
    "ALONE",
    "Finding",
    "Known",
    "Level",
    "Place",
    "Surroundings",
    "known",
    "lint",
    "lint_catalog",
    "lint_instructions",
    "surroundings",
    "worst",
]

Place: TypeAlias = tuple[str, str, str]
"""Server id, tool name, digest: which entry of a catalog."""


def lint(definition: Any, *, around: Surroundings = ALONE) -> tuple[Finding, ...]:
    """Findings in every string and part of the definition.

    Args:
        around: the catalog it stands in, seen from its server; alone, names of other tools mean less.
    """
    read, name = texts(definition), name_of(definition)
    about = f"{name} {description_of(definition)}"
    found = [*_in_words(read, around, name=name), *asked_for(read, about), *shape(definition)]
    if name:
        found += shadowing(name, description_of(definition), around, parameters=parameters_of(definition))
    return in_order(found)


def lint_instructions(server_id: str, text: str, *, around: Surroundings = ALONE) -> tuple[Finding, ...]:
    """Findings in what a server tells every client about itself; pointers begin with `/instructions`."""
    return in_order(_in_words((text_at("/instructions", text),), around, name=server_id)) if text else ()


def lint_catalog(entries: Sequence[ListedTool]) -> dict[Place, tuple[Finding, ...]]:
    """Findings of each entry, each read among all the others."""
    places = surroundings(entries)
    return {(e.server_id, e.name, e.digest): lint(e.definition, around=places[e.server_id]) for e in entries}


def _in_words(read: Sequence[Text], around: Surroundings, *, name: str) -> list[Finding]:
    return [
        *characters(read),
        *wording(read, around),
        *foreign(read, around, name=name),
        *suspicion(read, around),
    ]
