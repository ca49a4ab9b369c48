"""What a change of a definition touches: what a model reads, what approval rests on, or nothing.

Below: `schema_change.py` for the two schemas, `pins.py` for digests by field. Above: `comparison.py`, `review_desk.py`.

Invariants
1. A field counts as read by a model unless it is known that no model's answer can depend on it: offers hold definitions
   whole, `_meta` and unknown fields included.
2. The grade says where to look first. It lets nothing in: whatever changed is out of service until approved (I4).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from toolcrib.catalog.pins import field_digests
from toolcrib.catalog.schema_change import SchemaChange, schema_change
from toolcrib.catalog.schema_values import same_json, shortened

SCHEMAS = ("inputSchema", "outputSchema")
_HINTS = frozenset(("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"))
"""Of the annotations: what risk, and with it policy, is told from."""
_OF_AN_ICON = frozenset(("src", "mimeType", "sizes", "theme"))
_MAX_ICON_TEXT = 256
_MAX_READ = 20_000
"""Characters: putting stacked marks in order takes time in the square of their number."""


class Grade(StrEnum):
    """What a change touches, the worst first."""

    MODEL_READS = "model_reads"
    APPROVAL_RESTS_ON = "approval_rests_on"
    CHANGES_NOTHING = "changes_nothing"

    @property
    def rank(self) -> int:
        """0 for the worst, so that sorting by it brings that first."""
        return list(Grade).index(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldChange:
    """One field that is another one now. `field`: top-level key, "" for the definition as a whole.

    `schema`: what became of a schema, where both are at hand.
    """

    field: str
    grade: Grade
    summary: str
    schema: SchemaChange | None = None

    @property
    def label(self) -> str:
        """The field, and of a schema which way it went: `inputSchema (widened)`."""
        return f"{self.field} ({self.schema.summary})" if self.schema else self.field


def changes(before: Any, after: Any) -> tuple[FieldChange, ...]:
    """What differs between two definitions, worst first; none where they are one JSON value."""
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        same = same_json(before, after)
        return () if same else (_whole("one of the two is not an object"),)
    keys = [key for key in {**before, **after} if not _same(before, after, key)]
    return in_order([_change(key, before, after) for key in keys])


def graded_from_pins(pin_fields: Mapping[str, str], definition: Any) -> tuple[FieldChange, ...]:
    """What differs between a pinned definition, of which only the digests by field are at hand, and this one."""
    now = field_digests(definition)
    if not pin_fields or not now:
        why = "the lock holds its whole digest alone" if now else "it is not one that could be pinned"
        return (_whole(f"which fields changed is not known: {why}"),)
    changed = [key for key in sorted({*pin_fields, *now}) if pin_fields.get(key) != now.get(key)]
    return in_order([_pinned_change(key, pin_fields, definition) for key in changed])


def worst(found: Sequence[FieldChange]) -> Grade:
    """The grade that counts for all of them; nothing changed changes nothing."""
    return min((change.grade for change in found), key=lambda grade: grade.rank, default=Grade.CHANGES_NOTHING)


def in_order(found: Sequence[FieldChange]) -> tuple[FieldChange, ...]:
    """Worst grade first, then by field."""
    return tuple(sorted(found, key=lambda change: (change.grade.rank, change.field)))


def _whole(summary: str) -> FieldChange:
    return FieldChange(field="", grade=Grade.MODEL_READS, summary=summary)


def _same(before: Mapping[str, Any], after: Mapping[str, Any], key: str) -> bool:
    return key in before and key in after and same_json(before[key], after[key])


def _change(key: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> FieldChange:
    schema = schema_change(before[key], after[key]) if key in SCHEMAS and key in before and key in after else None
    if schema is not None:
        # Only the order of `required`, a number written otherwise: nobody could tell by what it takes or says.
        grade = Grade.MODEL_READS if schema.kind != "same" or schema.notes else Grade.CHANGES_NOTHING
        return FieldChange(field=key, grade=grade, summary=schema.summary, schema=schema)
    if key == "annotations":
        grade = _grade_of_annotations(before.get(key), after.get(key))
    else:
        grade = _grade(key, before.get(key), after.get(key))
    return FieldChange(field=key, grade=grade, summary=_summary(key, before, after))


def _pinned_change(key: str, pin_fields: Mapping[str, str], definition: Mapping[str, Any]) -> FieldChange:
    told = "added" if key not in pin_fields else "removed" if key not in definition else "another one"
    now = definition.get(key)
    # What stood there before is not at hand: any words there now may be new ones.
    grade = _grade_of_annotations(None, now) if key == "annotations" else _grade(key, now, now)
    return FieldChange(field=key, grade=grade, summary=told)


def _grade(key: str, before: Any, after: Any) -> Grade:
    is_picture = key == "icons" and _are_plain_icons(before) and _are_plain_icons(after)
    return Grade.CHANGES_NOTHING if is_picture else Grade.MODEL_READS


def _grade_of_annotations(before: Any, after: Any) -> Grade:
    """Hints are what approval rests on; a title or a field of the server's own is text like any other."""
    same_words = same_json(_words_of(before), _words_of(after))
    return Grade.APPROVAL_RESTS_ON if same_words else Grade.MODEL_READS


def _words_of(annotations: Any) -> Any:
    if isinstance(annotations, Mapping):
        return {key: value for key, value in annotations.items() if key not in _HINTS}
    return {} if annotations is None else annotations


def _are_plain_icons(icons: Any) -> bool:
    """Whether they are addresses of pictures and nothing that could be read as text."""
    if icons is None:
        return True
    if not isinstance(icons, list | tuple):
        return False
    return all(
        isinstance(icon, Mapping)
        and icon.keys() <= _OF_AN_ICON
        and all(_is_plain(text) for value in icon.values() for text in (value if isinstance(value, list) else [value]))
        for icon in icons
    )


def _is_plain(text: Any) -> bool:
    is_data = isinstance(text, str) and text.startswith("data:image/") and ";base64," in text[:_MAX_ICON_TEXT]
    return isinstance(text, str) and (is_data or len(text) <= _MAX_ICON_TEXT) and not any(c.isspace() for c in text)


def _summary(key: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    if key not in before:
        return "added"
    if key not in after:
        return "removed"
    was, now = before[key], after[key]
    if isinstance(was, str) and isinstance(now, str):
        if max(len(was), len(now)) <= _MAX_READ and _as_read(was) == _as_read(now):
            return "reads the same: hidden or look-alike characters differ"
        return f"another text ({len(now)} characters, was {len(was)})"
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        return ", ".join(
            f"{name} is {shortened(now.get(name))}, was {shortened(was.get(name))}"
            for name in {**was, **now}
            if not _same(was, now, name)
        )
    return f"{shortened(now)}, was {shortened(was)}"


def _as_read(text: str) -> str:
    """The text as a reader sees it: without format and control characters, compatible forms made one, spaces joined."""
    plain = unicodedata.normalize("NFKC", text)
    return " ".join("".join(c for c in plain if c.isspace() or unicodedata.category(c)[0] != "C").split())
