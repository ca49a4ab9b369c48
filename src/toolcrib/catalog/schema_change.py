"""What a changed JSON Schema takes that it did not, and what it does not take any more.

Below: `schema_walk.py` goes through both. Above: `grading.py`, and whoever shows a reviewer what changed.

Invariants
1. `widened`: every value that was taken still is. `narrowed`: every value that is taken was before. `same`: both. Where
   neither can be proven the kind is `both` or `other`.
2. Each note says where, what, and which way it went.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from toolcrib.catalog.schema_refs import Pair
from toolcrib.catalog.schema_values import Way
from toolcrib.catalog.schema_walk import SchemaWalk


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaChange:
    """What became of a schema. `notes`: a place and a sentence each, ending in which way it went.

    `same`: takes the same values, whatever is said of them. `other`: cannot be told.
    """

    kind: Literal["same", "widened", "narrowed", "both", "other"]
    notes: tuple[str, ...] = ()
    ways: frozenset[Way] = frozenset()

    @property
    def summary(self) -> str:
        """In a few words."""
        if self.kind == "same":
            return "takes the same, other words" if self.notes else "takes the same"
        moved = " and ".join(way for way in (Way.WIDENED, Way.NARROWED) if way in self.ways)
        return (
            moved if self.kind != "other" else f"{moved}, and more that cannot be told" if moved else "cannot be told"
        )


def schema_change(before: Any, after: Any) -> SchemaChange:
    """How `after` differs from `before` in what it takes.

    Args:
        before, after: JSON Schemas of any draft from 6 on; with older ones most changes are `other`.
    """
    try:
        found = SchemaWalk(Pair(before, after)).all_found()
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError, RecursionError):
        found = [(Way.UNKNOWN, "", "one of the two cannot be read as a JSON Schema")]
    ways = frozenset(way for way, _, _ in found)
    notes = dict.fromkeys(f"`{at or '/'}`: {text}{_ENDING[way]}" for way, at, text in found)
    return SchemaChange(kind=_kind_of(ways), notes=tuple(notes), ways=ways)


_ENDING = {
    Way.WIDENED: " (widened)",
    Way.NARROWED: " (narrowed)",
    Way.UNKNOWN: " (cannot be told)",
    Way.WORDS: " (words only)",
}


def _kind_of(ways: frozenset[Way]) -> Literal["same", "widened", "narrowed", "both", "other"]:
    if Way.UNKNOWN in ways:
        return "other"
    if Way.WIDENED in ways:
        return "both" if Way.NARROWED in ways else "widened"
    return "narrowed" if Way.NARROWED in ways else "same"
