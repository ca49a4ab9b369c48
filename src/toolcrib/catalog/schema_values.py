"""One JSON Schema against another, keyword by keyword: what each takes of single values, and which way that moved.

Below: nothing. Above: `schema_change.py`, which walks whole schemas and asks here at every step.

Invariants
1. Keywords of a schema are conditions that must all hold. A change that is called widened takes every value that was
   taken before, one that is called narrowed takes no value that was not; what cannot be told is `unknown`.
2. Values are compared as JSON does: 1 and 1.0 are one number, 1 and true are not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any, TypeAlias

Schema: TypeAlias = Mapping[str, Any]


class Way(StrEnum):
    """Where a change leads. `words`: what is said of the values changed, not which are taken."""

    WIDENED = "widened"
    NARROWED = "narrowed"
    UNKNOWN = "unknown"
    WORDS = "words"

    @property
    def flipped(self) -> Way:
        """The way of a condition whose opposite went this way."""
        return _FLIPPED.get(self, self)


_FLIPPED = {Way.WIDENED: Way.NARROWED, Way.NARROWED: Way.WIDENED}
Moved: TypeAlias = tuple[Way, str]
"""A change of one keyword, and a sentence about it."""

_KINDS = {
    "null": ("null",),
    "boolean": ("boolean",),
    "string": ("string",),
    "array": ("array",),
    "object": ("object",),
    "integer": ("integer",),
    "number": ("integer", "fraction"),
}
ALL_KINDS = frozenset(kind for kinds in _KINDS.values() for kind in kinds)
_SPOKEN = {
    "null": "null",
    "boolean": "true or false",
    "string": "text",
    "array": "list",
    "object": "object",
    "integer": "whole number",
    "fraction": "fraction",
}
STRUCTURE = frozenset(
    """type enum const minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength pattern minItems
    maxItems uniqueItems minProperties maxProperties required properties patternProperties additionalProperties
    propertyNames dependentRequired dependentSchemas dependencies items prefixItems additionalItems contains minContains
    maxContains allOf anyOf oneOf not if then else unevaluatedProperties unevaluatedItems $ref $dynamicRef $recursiveRef
    $defs definitions $schema $id $anchor $dynamicAnchor $recursiveAnchor""".split()
)
"""Keywords that say which values are taken. All others are words; `format` is one, since nobody asserts it here."""
UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")
_MAX_SHOWN = 5
_MAX_CHARS = 60
_LIMITS = {
    "minLength": ("characters: at least", 1),
    "maxLength": ("characters: at most", -1),
    "minItems": ("entries: at least", 1),
    "maxItems": ("entries: at most", -1),
    "minProperties": ("properties: at least", 1),
    "maxProperties": ("properties: at most", -1),
}
"""Keyword -> how it is spoken of, and whether a greater number takes less (1) or more (-1)."""


def same_json(one: Any, other: Any) -> bool:
    """Whether two JSON values are one; Python alone would take true for 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same_json(value, other[key]) for key, value in one.items())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(same_json(a, b) for a, b in zip(one, other, strict=True))
    return bool(one == other)


def kinds_of(schema: Schema) -> frozenset[str]:
    """The kinds of values that can be taken, as far as `type`, `enum` and `const` tell."""
    values = allowed(schema)
    return frozenset(map(_kind, values.values())) if values is not None else _declared(schema)


def _declared(schema: Schema) -> frozenset[str]:
    if "type" not in schema:
        return ALL_KINDS
    named: Any = schema["type"]
    return frozenset(kind for name in ([named] if isinstance(named, str) else named) for kind in _KINDS[name])


def _kind(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    if isinstance(value, int | float):
        return "integer" if value == int(value) else "fraction"
    return "string" if isinstance(value, str) else "object" if isinstance(value, Mapping) else "array"


def allowed(schema: Schema) -> dict[str, Any] | None:
    """The only values that are taken, by their canonical text; None where `enum` and `const` do not say."""
    lists = [schema["enum"]] if "enum" in schema else []
    lists += [[schema["const"]]] if "const" in schema else []
    if not lists:
        return None
    kinds = _declared(schema)
    found = [{_canonical(value): value for value in values if _kind(value) in kinds} for values in lists]
    return {key: value for key, value in found[0].items() if all(key in other for other in found)}


def _canonical(value: Any) -> str:
    return json.dumps(_normal(value), sort_keys=True)


def _normal(value: Any) -> Any:
    if isinstance(value, float) and value == int(value):
        return int(value)
    if isinstance(value, Mapping):
        return {key: _normal(inner) for key, inner in value.items()}
    return [_normal(inner) for inner in value] if isinstance(value, list | tuple) else value


def moved_values(before: Schema, after: Schema) -> Iterator[Moved]:
    """`type`, `enum` and `const`, which say together which values are taken at all."""
    was, now = allowed(before), allowed(after)
    if was is None and now is None:
        yield from _moved_kinds(_declared(before), _declared(after))
    elif was is not None and now is not None:
        yield from _moved_lists(was, now)
    elif was is not None:
        kinds = _declared(after)
        yield Way.WIDENED, f"{_any(kinds)} is taken now, was {_one_of(was)}"
        if lost := [value for value in was.values() if _kind(value) not in kinds]:
            yield Way.NARROWED, f"{listed(lost)} not taken any more"
    elif now is not None:
        kinds = _declared(before)
        yield Way.NARROWED, f"{_one_of(now)} is taken now, was {_any(kinds)}"
        if gained := [value for value in now.values() if _kind(value) not in kinds]:
            yield Way.WIDENED, f"{listed(gained)} taken now as well"


def _moved_kinds(was: frozenset[str], now: frozenset[str]) -> Iterator[Moved]:
    if now - was:
        yield Way.WIDENED, f"{_any(now)} is taken now, was {_any(was)}"
    if was - now:
        yield Way.NARROWED, f"{_any(now)} is taken now, was {_any(was)}"


def _moved_lists(was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Moved]:
    if gained := [value for key, value in now.items() if key not in was]:
        yield Way.WIDENED, f"{listed(gained)} taken now as well"
    if lost := [value for key, value in was.items() if key not in now]:
        yield Way.NARROWED, f"{listed(lost)} not taken any more"


def _any(kinds: frozenset[str]) -> str:
    if kinds == ALL_KINDS:
        return "any value"
    spoken = [_SPOKEN[kind] for kind in sorted(kinds - {"fraction"})] if "integer" in kinds else None
    names = spoken if spoken is not None else [_SPOKEN[kind] for kind in sorted(kinds)]
    if {"integer", "fraction"} <= kinds:
        names = ["number" if name == "whole number" else name for name in names]
    return f"any of {', '.join(names)}" if len(names) > 1 else f"any {names[0]}" if names else "nothing"


def _one_of(values: Mapping[str, Any]) -> str:
    return f"one of {len(values)} values" if len(values) != 1 else f"only {shortened(next(iter(values.values())))}"


def listed(values: list[Any]) -> str:
    """Some of the values, and whether it is one or more: `"a", "b" are`."""
    shown = ", ".join(shortened(value) for value in values[:_MAX_SHOWN])
    more = f" and {len(values) - _MAX_SHOWN} more" if len(values) > _MAX_SHOWN else ""
    return f"{shown}{more} {'is' if len(values) == 1 else 'are'}"


def shortened(value: Any) -> str:
    """A value as JSON, cut where it is long."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MAX_CHARS else text[: _MAX_CHARS - 1] + "…"


def moved_limits(before: Schema, after: Schema) -> Iterator[Moved]:
    """Numbers, lengths, counts, `pattern`, `multipleOf`, `uniqueItems`."""
    for keyword, (spoken, sense) in _LIMITS.items():
        yield from _moved_limit(before.get(keyword), after.get(keyword), spoken=spoken, sense=sense)
    yield from _moved_edge(before, after, keywords=("minimum", "exclusiveMinimum"), sense=1)
    yield from _moved_edge(before, after, keywords=("maximum", "exclusiveMaximum"), sense=-1)
    yield from _moved_steps(before.get("multipleOf"), after.get("multipleOf"))
    was, now = before.get("pattern"), after.get("pattern")
    if was != now:
        way = Way.NARROWED if was is None else Way.WIDENED if now is None else Way.UNKNOWN
        yield way, f"pattern {shortened(now) if now else 'none'}, was {shortened(was) if was else 'none'}"
    was, now = before.get("uniqueItems", False), after.get("uniqueItems", False)
    if was is not now:
        yield (Way.NARROWED, "no entry twice") if now else (Way.WIDENED, "an entry may stand twice now")


def _moved_limit(was: Any, now: Any, *, spoken: str, sense: int) -> Iterator[Moved]:
    if same_json(was, now):
        return
    if not all(value is None or _is_number(value) for value in (was, now)):
        yield Way.UNKNOWN, f"{spoken} {shortened(now)}, was {shortened(was)}"
        return
    told = f"{spoken} {'any' if now is None else now}, was {'any' if was is None else was}"
    is_tighter = was is None or (now is not None and (now - was) * sense > 0)
    yield (Way.NARROWED if is_tighter else Way.WIDENED), told


def _moved_edge(before: Schema, after: Schema, *, keywords: tuple[str, str], sense: int) -> Iterator[Moved]:
    """The least or the greatest number, which stands itself or does not."""
    said = [before.get(keyword) for keyword in keywords], [after.get(keyword) for keyword in keywords]
    if same_json(*said):
        return
    if not all(value is None or _is_number(value) for values in said for value in values):
        yield Way.UNKNOWN, f"{keywords[0]} is {shortened(said[1])}, was {shortened(said[0])}"
        return
    was, now = _edge(*said[0], sense=sense), _edge(*said[1], sense=sense)
    if was != now:
        told = f"{_spoken_edge(now, sense)}, was {_spoken_edge(was, sense)}"
        is_tighter = was is None or (now is not None and now > was)
        yield (Way.NARROWED if is_tighter else Way.WIDENED), told


def _edge(inclusive: Any, exclusive: Any, *, sense: int) -> tuple[Any, int] | None:
    """(number times `sense`, whether it is left out): greater takes less. None: no edge."""
    edges = [(value * sense, out) for value, out in ((inclusive, 0), (exclusive, 1)) if value is not None]
    return max(edges) if edges else None


def _spoken_edge(edge: tuple[Any, int] | None, sense: int) -> str:
    if edge is None:
        return "any"
    words = ("at least", "more than") if sense > 0 else ("at most", "less than")
    return f"{words[edge[1]]} {edge[0] * sense}"


def _moved_steps(was: Any, now: Any) -> Iterator[Moved]:
    """`multipleOf`. Fractions are left open: validators round them in ways of their own."""
    if same_json(was, now):
        return
    told = f"multiples of {'any' if now is None else now}, was {'any' if was is None else was}"
    if was is None or now is None:
        yield (Way.NARROWED if was is None else Way.WIDENED), told
    elif not (isinstance(was, int) and isinstance(now, int) and was > 0 and now > 0):
        yield Way.UNKNOWN, told
    else:
        ratio = Fraction(now, was)
        if ratio.denominator != 1:
            yield Way.WIDENED, told
        if ratio.numerator != 1:
            yield Way.NARROWED, told


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def names_in(schema: Schema, keyword: str) -> frozenset[str]:
    """The names that a list keyword such as `required` holds. Draft 3 had booleans there."""
    named = schema.get(keyword, ())
    return frozenset(named) if isinstance(named, list | tuple) else frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """What tells a schema from another one. Taken once: forms are held against each other in pairs.

    Args:
        values: the only ones that are taken, by canonical text; None where no list says. named: the same of each
            property that must be there.
    """

    kinds: frozenset[str]
    values: frozenset[str] | None
    named: Mapping[str, frozenset[str] | None]


def marks_of(schema: Schema) -> Marks:
    named = {name: _values(_property(schema, name)) for name in names_in(schema, "required")}
    return Marks(kinds=kinds_of(schema), values=_values(schema), named=named)


def _values(schema: Schema) -> frozenset[str] | None:
    found = allowed(schema)
    return None if found is None else frozenset(found)


def are_apart(one: Marks, other: Marks) -> bool:
    """Whether no value can fit both, as far as kinds, listed values and a property that tells them apart say."""
    if one.kinds.isdisjoint(other.kinds) or _have_no_common_value(one.values, other.values):
        return True
    if not one.kinds & other.kinds <= {"object"}:
        return False
    shared = one.named.keys() & other.named.keys()
    return any(_have_no_common_value(one.named[name], other.named[name]) for name in shared)


def _have_no_common_value(one: frozenset[str] | None, other: frozenset[str] | None) -> bool:
    return one is not None and other is not None and one.isdisjoint(other)


def _property(schema: Schema, name: str) -> Schema:
    properties = schema.get("properties", {})
    found = properties.get(name, {}) if isinstance(properties, Mapping) else {}
    return found if isinstance(found, Mapping) else {}
