"""Two JSON Schemas gone through side by side: what changed at every place, and which way.

    properties, items, allOf, anyOf, then ...   a part that widened widens the whole
    not                                         the other way round
    if, oneOf whose forms overlap, contains with a count, unevaluated...   cannot be told, unless unchanged

Below: `schema_values.py` compares single keywords, `schema_refs.py` finds what a reference names. Above:
`schema_change.py`.

Invariants
1. A change without `narrowed` and `unknown` takes every value that was taken; one without `widened` and `unknown` takes
   none that was not.
2. References are followed inside the schema only. A pair of schemas is entered through references once, so that
   recursive ones end; very large ones end as `unknown`.
3. A property that was never declared and is now counts as widened although an open object took its name before: a
   model is told of it now. That its values are checked now counts as narrowed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from toolcrib.catalog.schema_refs import Pair, keys_of, pointer, text_of, texts_of
from toolcrib.catalog.schema_values import (
    STRUCTURE,
    UNEVALUATED,
    Schema,
    Way,
    are_apart,
    kinds_of,
    marks_of,
    moved_limits,
    moved_values,
    names_in,
    same_json,
    shortened,
)

_MAX_STEPS = 5_000
_MAX_DEPTH = 120
_MAX_FORMS = 100
"""Of a `oneOf`; more are not compared with each other."""
_ASIDE = ("$defs", "definitions", "$schema", "$id")
_EVERYTHING: Schema = {}
_NOTHING: Schema = {"not": {}}
Found: TypeAlias = tuple[Way, str, str]
"""Which way, the place as a JSON pointer, a sentence."""


class SchemaWalk:
    """One comparison: the two documents, the pairs that were entered, the work that is left."""

    def __init__(self, pair: Pair) -> None:
        self._pair = pair
        self._entered: set[tuple[int, int]] = set()
        self._kept: list[Any] = []  # what `_entered` knows by id must stay
        self._steps = 0

    def all_found(self) -> list[Found]:
        """All that changed, in the order of the schema. Raises what a malformed schema makes of it."""
        found = list(self._compared(self._pair.before, self._pair.after, ""))
        if why := self._pair.doubt:
            if any(way is not Way.WORDS for way, _, _ in found) or self._pair.differs_in_dialect:
                found.append((Way.UNKNOWN, "", why))
        elif self._pair.differs_in_dialect:
            found.append((Way.WORDS, "/$schema", "another dialect"))
        if not found and texts_of(self._pair.before) != texts_of(self._pair.after):
            found.append((Way.WORDS, "", "told in other words"))
        return found

    def _compared(self, before: Any, after: Any, at: str) -> Iterator[Found]:
        self._steps += 1
        if self._steps <= 2 * _MAX_STEPS and self._pair.is_alike(before, after):
            return
        if self._steps > _MAX_STEPS or at.count("/") > _MAX_DEPTH:
            yield Way.UNKNOWN, at, "too large to be compared in full"
            return
        was, now = _as_object(before), _as_object(after)
        if "$ref" in was or "$ref" in now:
            yield from self._through_references(was, now, at)
        else:
            yield from self._bodies(was, now, at)

    def _through_references(self, before: Schema, after: Schema, at: str) -> Iterator[Found]:
        was, now = self._pair.target(before, is_after=False), self._pair.target(after, is_after=True)
        if was is None or now is None:
            yield Way.UNKNOWN, pointer(at, "$ref"), "a reference that cannot be followed"
            return
        key = id(was.named), id(now.named)
        if key in self._entered:
            yield from _words(before, after, at)
            return
        self._entered.add(key)
        self._kept += (was.named, now.named)
        yield from self._compared(was.whole, now.whole, at)

    def _bodies(self, before: Schema, after: Schema, at: str) -> Iterator[Found]:
        yield from _words(before, after, at)
        if _takes_nothing(before) or _takes_nothing(after):
            if not _takes_nothing(after):
                yield Way.WIDENED, at, "values are taken now, none was"
            elif not _takes_nothing(before):
                yield Way.NARROWED, at, "nothing is taken any more"
            return
        was, now = self._forms(before, is_after=False), self._forms(after, is_after=True)
        if was or now:
            yield from self._unions(was or _by_kind(before), now or _by_kind(after), at)
            return
        for way, text in (*moved_values(before, after), *moved_limits(before, after)):
            yield way, at, text
        yield from self._objects(before, after, at)
        yield from self._lists(before, after, at)
        yield from self._combined(before, after, at)

    # --- objects

    def _objects(self, before: Schema, after: Schema, at: str) -> Iterator[Found]:
        was, now = names_in(before, "required"), names_in(after, "required")
        for name in sorted(now - was):
            yield Way.NARROWED, pointer(at, "required"), f"{shortened(name)} must be given now"
        for name in sorted(was - now):
            yield Way.WIDENED, pointer(at, "required"), f"{shortened(name)} may be left out now"
        yield from self._properties(before, after, at)
        yield from self._patterns(before, after, at)
        others = before.get("additionalProperties", True), after.get("additionalProperties", True)
        yield from self._others(*others, at=pointer(at, "additionalProperties"))
        names = before.get("propertyNames", True), after.get("propertyNames", True)
        yield from self._compared(*names, pointer(at, "propertyNames"))
        yield from self._dependent(before, after, at)

    def _properties(self, before: Schema, after: Schema, at: str) -> Iterator[Found]:
        was, now = before.get("properties", {}), after.get("properties", {})
        patterns = before.get("patternProperties") or after.get("patternProperties")
        for name in (*was, *(name for name in now if name not in was)):
            place = pointer(at, "properties", name)
            if name in was and name in now:
                yield from self._compared(was[name], now[name], place)
            elif patterns:
                yield Way.UNKNOWN, place, "declared here or under a pattern of names"
            elif name in now:
                if not _takes_nothing(_as_object(now[name])):
                    yield Way.WIDENED, place, "a new property, which a model is told of"
                ways = {way for way, _, _ in self._compared(before.get("additionalProperties", True), now[name], place)}
                for way in ways & {Way.NARROWED, Way.UNKNOWN}:
                    yield way, place, "what stands under this name is checked now"
            else:
                if not _takes_nothing(_as_object(was[name])):
                    yield Way.NARROWED, place, "this property is gone"
                ways = {way for way, _, _ in self._compared(was[name], after.get("additionalProperties", True), place)}
                for way in ways & {Way.WIDENED, Way.UNKNOWN}:
                    yield way, place, "what stands under this name is not checked any more"

    def _patterns(self, before: Schema, after: Schema, at: str) -> Iterator[Found]:
        was, now = before.get("patternProperties", {}), after.get("patternProperties", {})
        is_open = [
            _takes_all(_as_object(side.get("additionalProperties", True))) and "unevaluatedProperties" not in side
            for side in (before, after)
        ]
        for pattern in (*was, *(pattern for pattern in now if pattern not in was)):
            place = pointer(at, "patternProperties", pattern)
            if pattern in was and pattern in now:
                yield from self._compared(was[pattern], now[pattern], place)
            elif pattern in now:
                yield Way.NARROWED if is_open[0] else Way.UNKNOWN, place, "names like this are checked now"
            else:
                yield Way.WIDENED if is_open[1] else Way.UNKNOWN, place, "names like this are not checked any more"

    def _others(self, was: Any, now: Any, *, at: str) -> Iterator[Found]:
        if _takes_nothing(_as_object(was)) and not _takes_nothing(_as_object(now)):
            yield Way.WIDENED, at, "properties of any other name are taken now"
        elif _takes_nothing(_as_object(now)) and not _takes_nothing(_as_object(was)):
            yield Way.NARROWED, at, "properties of other names are not taken any more"
        else:
            yield from self._compared(was, now, at)

    def _dependent(self, before: Schema, after: Schema, at: str) -> Iterator[Found]:
        was, now = before.get("dependentRequired", {}), after.get("dependentRequired", {})
        for name in sorted({*was, *now}):
            place = pointer(at, "dependentRequired", name)
            if more := sorted(set(now.get(name, ())) - set(was.get(name, ()))):
                yield Way.NARROWED, place, f"with it {', '.join(map(shortened, more))} must be given now"
            if less := sorted(set(was.get(name, ())) - set(now.get(name, ()))):
                yield Way.WIDENED, place, f"with it {', '.join(map(shortened, less))} may be left out now"
        old, new = before.get("dependentSchemas", {}), after.get("dependentSchemas", {})
        for name in sorted({*old, *new}):
            yield from self._compared(old.get(name, True), new.get(name, True), pointer(at, "dependentSchemas", name))
        yield from self._unless_alike(before, after, "dependencies", at)

    # --- lists

    def _lists(self, before: Schema, after: Schema, at: str) -> Iterator[Found]:
        (first_was, rest_was), (first_now, rest_now) = _entries(before), _entries(after)
        for place in range(max(len(first_was), len(first_now))):
            was = first_was[place] if place < len(first_was) else rest_was
            now = first_now[place] if place < len(first_now) else rest_now
            yield from self._compared(was, now, pointer(at, "prefixItems", str(place)))
        yield from self._compared(rest_was, rest_now, pointer(at, "items"))
        yield from self._contained(before, after, at)

    def _contained(self, before: Schema, after: Schema, at: str) -> Iterator[Found]:
        counted = any(f"{which}Contains" in side for side in (before, after) for which in ("min", "max"))
        keys = ("contains", "minContains", "maxContains")
        was, now = ({key: side[key] for key in keys if key in side} for side in (before, after))
        place = pointer(at, "contains")
        if self._pair.is_alike(was, now):
            return
        if counted:
            yield Way.UNKNOWN, place, "how many entries of a kind are wanted"
        elif "contains" not in was or "contains" not in now:
            yield (Way.NARROWED, place, "an entry of a kind is wanted now") if now else (
                Way.WIDENED, place, "no entry of a kind is wanted any more",
            )  # fmt: skip
        else:
            yield from self._compared(was["contains"], now["contains"], place)

    # --- schemas made of schemas

    def _combined(self, before: Schema, after: Schema, at: str) -> Iterator[Found]:
        yield from self._all_of(before.get("allOf", ()), after.get("allOf", ()), pointer(at, "allOf"))
        for keyword in ("anyOf", "oneOf"):
            yield from self._either(before, after, keyword, at)
        yield from self._negated(before, after, at)
        yield from self._conditional(before, after, at)
        for keyword in UNEVALUATED:
            yield from self._unless_alike(before, after, keyword, at)

    def _all_of(self, before: Sequence[Any], after: Sequence[Any], at: str) -> Iterator[Found]:
        was, now = self._without_common(before, after)
        for place, (one, other) in enumerate(zip(was, now, strict=False)):
            yield from self._compared(one, other, pointer(at, str(place)))
        if len(now) > len(was):
            yield Way.NARROWED, at, "one more condition must be met"
        elif len(was) > len(now):
            yield Way.WIDENED, at, "one condition less must be met"

    def _either(self, before: Schema, after: Schema, keyword: str, at: str) -> Iterator[Found]:
        place = pointer(at, keyword)
        was, now = before.get(keyword), after.get(keyword)
        if was is None and now is None:
            return
        if was is None or now is None:
            yield (Way.NARROWED, place, "one of several forms is wanted now") if was is None else (
                Way.WIDENED, place, "it need not be one of several forms any more",
            )  # fmt: skip
        elif keyword == "anyOf" or (self._exclusive(was, is_after=False) and self._exclusive(now, is_after=True)):
            yield from self._unions(was, now, place)
        else:
            yield from self._unless_alike(before, after, keyword, at)

    def _unions(self, before: Sequence[Any], after: Sequence[Any], at: str) -> Iterator[Found]:
        """Forms of which a value fits one. A form that another one covers adds or takes nothing."""
        was, now = self._without_common(before, after)
        for one, other in self._of_one_kind(was, now):
            yield from self._compared(one, other, at)
            was = [form for form in was if form is not one]
            now = [form for form in now if form is not other]
        for one in now:
            if not any(self._goes(earlier, one, never=Way.WIDENED) for earlier in before):
                yield Way.WIDENED, at, f"another form is taken now: {shortened(one)}"
        for one in was:
            if not any(self._goes(one, later, never=Way.NARROWED) for later in after):
                yield Way.NARROWED, at, f"a form is not taken any more: {shortened(one)}"

    def _of_one_kind(self, before: Sequence[Any], after: Sequence[Any]) -> list[tuple[Any, Any]]:
        """Pairs of forms that are alone, each on its side, in taking their kind of values."""
        was: dict[frozenset[str], list[Any]] = {}
        now: dict[frozenset[str], list[Any]] = {}
        for one in before:
            was.setdefault(kinds_of(self._seen_through(one, is_after=False)), []).append(one)
        for other in after:
            now.setdefault(kinds_of(self._seen_through(other, is_after=True)), []).append(other)
        return [(was[k][0], now[k][0]) for k in was if len(was[k]) == 1 and len(now.get(k, ())) == 1]

    def _goes(self, before: Any, after: Any, *, never: Way) -> bool:
        """Whether the change between two forms is known not to go this way."""
        if self._steps > _MAX_STEPS:
            return False
        entered = set(self._entered)
        found = {way for way, _, _ in self._compared(before, after, "")}
        self._entered = entered
        return never not in found and Way.UNKNOWN not in found

    def _negated(self, before: Schema, after: Schema, at: str) -> Iterator[Found]:
        was, now = before.get("not", False), after.get("not", False)
        place = pointer(at, "not")
        if self._pair.is_alike(was, now):
            return
        if "$ref" in keys_of((was, now)):
            yield Way.UNKNOWN, place, "what is not taken is another now"
            return
        for way, where, text in self._compared(was, now, place):
            yield way.flipped, where, f"of what is not taken: {text}"

    def _conditional(self, before: Schema, after: Schema, at: str) -> Iterator[Found]:
        was, now = "if" in before, "if" in after
        if was and now and self._pair.is_alike(before["if"], after["if"]):
            for keyword in ("then", "else"):
                yield from self._compared(before.get(keyword, True), after.get(keyword, True), pointer(at, keyword))
        elif was and now:
            yield Way.UNKNOWN, pointer(at, "if"), "another condition decides"
        elif was or now:
            way, more = (Way.WIDENED, "less") if was else (Way.NARROWED, "more")
            yield way, pointer(at, "if"), f"one condition {more} decides"

    def _unless_alike(self, before: Schema, after: Schema, keyword: str, at: str) -> Iterator[Found]:
        if not self._pair.is_alike(before.get(keyword), after.get(keyword)):
            yield Way.UNKNOWN, pointer(at, keyword), "another value"

    # --- helpers

    def _without_common(self, before: Sequence[Any], after: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        there: dict[str, list[Any]] = {}
        for other in after:
            there.setdefault(text_of(other), []).append(other)
        was = []
        for one in before:
            same = there.get(text_of(one), [])
            place = next((n for n, other in enumerate(same) if self._pair.is_alike(one, other)), None)
            if place is None:
                was.append(one)
            else:
                del same[place]
        left = {id(other) for others in there.values() for other in others}
        return was, [other for other in after if id(other) in left]

    def _forms(self, schema: Schema, *, is_after: bool) -> Sequence[Any]:
        """The forms of a schema that is nothing but a choice of forms; none for others."""
        said = [key for key in schema if key in STRUCTURE and key not in _ASIDE]
        if said == ["anyOf"] or (said == ["oneOf"] and self._exclusive(schema["oneOf"], is_after=is_after)):
            forms: Sequence[Any] = schema[said[0]]
            return forms
        return ()

    def _exclusive(self, forms: Sequence[Any], *, is_after: bool) -> bool:
        """Whether no value can fit two of them."""
        if len(forms) > _MAX_FORMS:
            return False
        seen = [marks_of(self._seen_through(one, is_after=is_after)) for one in forms]
        return all(are_apart(one, other) for n, one in enumerate(seen) for other in seen[:n])

    def _seen_through(self, schema: Any, *, is_after: bool) -> Schema:
        """The schema itself, or what its reference names."""
        body = _as_object(schema)
        target = self._pair.target(body, is_after=is_after) if "$ref" in body else None
        return _as_object(target.whole) if target else body


def _words(before: Schema, after: Schema, at: str) -> Iterator[Found]:
    for key in (*before, *(key for key in after if key not in before)):
        if key not in STRUCTURE and not (key in before and key in after and same_json(before[key], after[key])):
            told = "added" if key not in before else "removed" if key not in after else "another one"
            yield Way.WORDS, pointer(at, key), told


def _as_object(schema: Any) -> Schema:
    """A schema as an object: `true` is empty, `false` is the one that takes nothing."""
    if isinstance(schema, bool):
        return _EVERYTHING if schema else _NOTHING
    if not isinstance(schema, Mapping):
        raise TypeError("a schema is an object, true or false")
    return schema


def _takes_nothing(schema: Schema) -> bool:
    refused = schema.get("not", False)
    return refused is True or (isinstance(refused, Mapping) and _takes_all(refused))


def _takes_all(schema: Schema) -> bool:
    return not any(key in STRUCTURE for key in schema)


def _by_kind(schema: Schema) -> list[Any]:
    """The same without words as a choice of forms: one for each kind of value, where it names several."""
    said, kinds = {key: schema[key] for key in schema if key in STRUCTURE}, schema.get("type")
    return [{**said, "type": kind} for kind in kinds] if isinstance(kinds, list | tuple) and kinds else [said]


def _entries(schema: Schema) -> tuple[Sequence[Any], Any]:
    """The schemas of a list's first entries, and that of the others. Before 2020-12 `items` could be a list itself."""
    items = schema.get("items", True)
    if isinstance(items, list | tuple):
        return items, schema.get("additionalItems", True)
    return schema.get("prefixItems", ()), items
