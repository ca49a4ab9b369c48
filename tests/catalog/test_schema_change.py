"""What a changed schema takes: said in notes, and never said of a change that it keeps what it does not keep."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from toolcrib.catalog import schema_values
from toolcrib.catalog.schema_change import SchemaChange, schema_change

TEXT, NUMBER, NULL = {"type": "string"}, {"type": "number"}, {"type": "null"}


def an_object(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **more}


def closed(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return an_object(properties, additionalProperties=False, **more)


def first_entries(*schemas: Any) -> dict[str, Any]:
    return {"prefixItems": list(schemas), "items": False}


def mail(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "object", "required": ["kind"], "properties": {"kind": {"const": kind}, **fields}}


CHANGES = [
    ("nothing", an_object({"a": TEXT}), an_object({"a": TEXT}), "same"),
    ("order", an_object({"a": TEXT}, required=["a", "b"]), an_object({"a": TEXT}, required=["b", "a"]), "same"),
    ("words", an_object({"a": TEXT}), an_object({"a": {**TEXT, "description": "x"}}), "same"),
    ("format-is-not-checked", an_object({"a": TEXT}), an_object({"a": {**TEXT, "format": "uri"}}), "same"),
    ("number-written-otherwise", {"const": 1}, {"const": 1.0}, "same"),
    ("true-is-not-one", {"enum": [1]}, {"enum": [True]}, "both"),
    ("property-added-closed", closed({"a": TEXT}), closed({"a": TEXT, "b": TEXT}), "widened"),
    ("property-removed-closed", closed({"a": TEXT, "b": TEXT}), closed({"a": TEXT}), "narrowed"),
    ("property-added-open", an_object({}), an_object({"b": TEXT}), "both"),
    ("property-added-open-unchecked", an_object({}), an_object({"b": {"description": "any"}}), "widened"),
    ("closed-opened", closed({"a": TEXT}), an_object({"a": TEXT}), "widened"),
    ("opened-closed", an_object({"a": TEXT}), closed({"a": TEXT}), "narrowed"),
    ("required-added", an_object({"a": TEXT}), an_object({"a": TEXT}, required=["a"]), "narrowed"),
    ("required-removed", an_object({"a": TEXT}, required=["a"]), an_object({"a": TEXT}), "widened"),
    ("type-added", TEXT, {"type": ["string", "null"]}, "widened"),
    ("type-removed", {"type": ["string", "null"]}, TEXT, "narrowed"),
    ("type-gone", TEXT, {}, "widened"),
    ("type-swapped", TEXT, NUMBER, "both"),
    ("integer-to-number", {"type": "integer"}, NUMBER, "widened"),
    ("enum-gone", {**TEXT, "enum": ["a", "b"]}, TEXT, "widened"),
    ("enum-added", TEXT, {"enum": ["a", "b"]}, "narrowed"),
    ("enum-grows", {"enum": ["a"]}, {"enum": ["a", "b"]}, "widened"),
    ("const-to-enum", {"const": "a"}, {"enum": ["a", "b"]}, "widened"),
    ("max-length-raised", {"maxLength": 5}, {"maxLength": 50}, "widened"),
    ("max-length-gone", {"maxLength": 5}, {}, "widened"),
    ("min-items-raised", {"minItems": 1}, {"minItems": 2}, "narrowed"),
    ("maximum-lowered", {"maximum": 5}, {"maximum": 4}, "narrowed"),
    ("edge-left-out", {"minimum": 5}, {"exclusiveMinimum": 5}, "narrowed"),
    ("coarser-steps", {"multipleOf": 2}, {"multipleOf": 4}, "narrowed"),
    ("other-steps", {"multipleOf": 2}, {"multipleOf": 3}, "both"),
    ("pattern-gone", {"pattern": "^a"}, {}, "widened"),
    ("pattern-other", {"pattern": "^a"}, {"pattern": "^b"}, "other"),
    ("entries", {"items": TEXT}, {"items": {"type": ["string", "number"]}}, "widened"),
    ("first-entries", first_entries(TEXT), first_entries(TEXT, NULL), "widened"),
    ("optional", TEXT, {"anyOf": [TEXT, NULL]}, "widened"),
    ("optional-as-list", {"type": ["string", "null"]}, {"anyOf": [TEXT, NULL]}, "same"),
    ("form-added", {"anyOf": [TEXT, NULL]}, {"anyOf": [TEXT, NULL, NUMBER]}, "widened"),
    ("form-widened", {"anyOf": [{**TEXT, "maxLength": 2}, NULL]}, {"anyOf": [TEXT, NULL]}, "widened"),
    ("covered-form-gone", {"anyOf": [{"const": 1}, NUMBER]}, {"anyOf": [NUMBER]}, "same"),
    ("told-apart-form-added", {"oneOf": [mail("a")]}, {"oneOf": [mail("a"), mail("b")]}, "widened"),
    ("overlapping-form-added", {"oneOf": [NUMBER, {"minimum": 1}]}, {"oneOf": [NUMBER, {"minimum": 1}, NULL]}, "other"),
    ("condition-added", {"allOf": [TEXT]}, {"allOf": [TEXT, {"maxLength": 3}]}, "narrowed"),
    ("not-shrinks", {"not": {"enum": ["a", "b"]}}, {"not": {"enum": ["a"]}}, "widened"),
    ("then", {"if": TEXT, "then": {"maxLength": 2}}, {"if": TEXT, "then": {"maxLength": 3}}, "widened"),
    ("if", {"if": TEXT, "then": {"maxLength": 2}}, {"if": NUMBER, "then": {"maxLength": 2}}, "other"),
    ("names-by-pattern", {}, {"patternProperties": {"^a": TEXT}}, "narrowed"),
    ("names-by-pattern-closed", closed({}), closed({}, patternProperties={"^a": TEXT}), "other"),
    ("names-by-pattern-widened", {"patternProperties": {"^a": TEXT}}, {"patternProperties": {"^a": {}}}, "widened"),
    ("never-again", an_object({"a": TEXT}), an_object({"a": False}), "narrowed"),
    ("names", {"propertyNames": {"maxLength": 3}}, {"propertyNames": {"maxLength": 9}}, "widened"),
    ("with-it", {"dependentRequired": {"a": ["b"]}}, {"dependentRequired": {"a": ["b", "c"]}}, "narrowed"),
    ("unevaluated", {"unevaluatedProperties": False}, an_object({}, unevaluatedProperties=False), "other"),
    ("old-dialect", {"$schema": "http://json-schema.org/draft-04/schema#"}, {"maximum": 3}, "other"),
    ("no-schema", {"type": "object"}, {"type": 5}, "other"),
    ("no-object", {"type": "object"}, ["x"], "other"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "kind"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_the_kind_of_a_change(before: Any, after: Any, kind: str) -> None:
    assert schema_change(before, after).kind == kind
    back = {"widened": "narrowed", "narrowed": "widened"}.get(kind, kind)
    assert schema_change(after, before).kind == back


def test_a_note_names_the_place_and_the_way() -> None:
    change = schema_change(an_object({"to": {**TEXT, "enum": ["a", "b", "c"]}}), an_object({"to": TEXT}))
    assert change == SchemaChange(
        kind="widened",
        notes=("`/properties/to`: any text is taken now, was one of 3 values (widened)",),
        ways=change.ways,
    )


def test_names_in_a_place_are_escaped() -> None:
    (note,) = schema_change(an_object({"a/b~c": TEXT}), an_object({"a/b~c": {}})).notes
    assert note.startswith("`/properties/a~1b~0c`")


def test_words_are_told_and_take_nothing_away() -> None:
    change = schema_change(an_object({"a": {**TEXT, "title": "A"}}), an_object({"a": {**TEXT, "title": "B"}}))
    assert (change.kind, change.notes) == ("same", ("`/properties/a/title`: another one (words only)",))


def test_words_in_a_part_that_nothing_refers_to_are_told() -> None:
    change = schema_change({"$defs": {"a": {"title": "A"}}}, {"$defs": {"a": {"title": "B"}}})
    assert change.kind == "same" and change.notes


def with_node(**more: Any) -> dict[str, Any]:
    node = closed({"next": {"$ref": "#/$defs/node"}, **more})
    return an_object({"list": {"$ref": "#/$defs/node", "description": "the list"}}, **{"$defs": {"node": node}})


def test_references_are_followed_and_recursion_ends() -> None:
    change = schema_change(with_node(value={"maximum": 3}), with_node(value={"maximum": 5}))
    assert change.kind == "widened"
    assert change.notes == ("`/properties/list/properties/value`: at most 5, was at most 3 (widened)",)


def test_a_reference_written_out_is_the_same() -> None:
    named = an_object({"to": {"$ref": "#/$defs/to"}}, **{"$defs": {"to": {**TEXT, "maxLength": 9}}})
    assert schema_change(named, an_object({"to": {**TEXT, "maxLength": 9}})).kind == "same"


def test_the_same_reference_to_another_thing_is_a_change() -> None:
    before = {"not": {"$ref": "#/$defs/x"}, "$defs": {"x": {"maximum": 3}}}
    assert schema_change(before, {**before, "$defs": {"x": {"maximum": 5}}}).kind == "other"


def test_what_stands_beside_a_reference_counts_unless_the_dialect_ignores_it() -> None:
    before = an_object({"a": {"$ref": "#/$defs/x"}}, **{"$defs": {"x": TEXT}})
    after = an_object({"a": {"$ref": "#/$defs/x", "maxLength": 3}}, **{"$defs": {"x": TEXT}})
    assert schema_change(before, after).kind == "narrowed"
    old = {"$schema": "http://json-schema.org/draft-07/schema#"}
    assert schema_change({**old, **before}, {**old, **after}).kind == "same"


@pytest.mark.parametrize("reference", ["#/$defs/none", "https://example.com/x", "#anchor", "#/$defs/loop", 5])
def test_a_reference_that_leads_nowhere_cannot_be_told(reference: Any) -> None:
    shelves = {"$defs": {"loop": {"$ref": "#/$defs/loop"}}}
    after = {"$ref": reference, **shelves} if reference == "#/$defs/loop" else {"$ref": reference}
    assert schema_change({"maximum": 3, **shelves}, after).kind == "other"


def test_a_schema_that_unfolds_to_many_is_given_up() -> None:
    def folded(limit: int) -> dict[str, Any]:
        def form(n: int, longest: int) -> dict[str, Any]:
            return {"type": "array", "items": {"$ref": f"#/$defs/n{n + 1}"}, "maxItems": longest}

        levels = {f"n{n}": {"anyOf": [form(n, longest) for longest in (1, 2, 3)]} for n in range(40)}
        return {"$ref": "#/$defs/n0", "$defs": {**levels, "n40": {"maximum": limit}}}

    assert schema_change(folded(1), folded(2)).kind in ("both", "other")


# --- properties over random schemas: whatever is claimed holds for every value that was tried

NAMES = st.sampled_from(["a", "b", "c"])
SCALARS = st.sampled_from([None, True, False, 0, 1, 2, 1.5, -3, "", "a", "ab", "abc"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
TYPES = st.sampled_from(["null", "boolean", "string", "integer", "number", "array", "object"])


def some(**keywords: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=keywords)


LEAVES = st.booleans() | some(
    type=TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
    enum=st.lists(SCALARS, min_size=1, max_size=3),
    const=SCALARS,
    minimum=st.integers(-2, 3),
    exclusiveMaximum=st.integers(-2, 3),
    multipleOf=st.integers(1, 3),
    maxLength=st.integers(0, 3),
    pattern=st.sampled_from(["a", "^b"]),
    title=st.sampled_from(["x", "y"]),
)


def deeper(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    forms = st.lists(inner, min_size=1, max_size=3)
    properties = st.dictionaries(NAMES, inner, max_size=3)
    return st.one_of(
        some(
            type=TYPES,
            properties=properties,
            patternProperties=st.dictionaries(st.sampled_from(["a", "b|c"]), inner, max_size=1),
            required=st.lists(NAMES, max_size=2, unique=True),
            additionalProperties=inner,
            propertyNames=inner,
            dependentRequired=st.dictionaries(NAMES, st.lists(NAMES, max_size=2, unique=True), max_size=1),
            minProperties=st.integers(0, 2),
        ),
        some(
            prefixItems=st.lists(inner, min_size=1, max_size=2),
            items=inner,
            contains=inner,
            minContains=st.integers(0, 2),
            uniqueItems=st.booleans(),
            minItems=st.integers(0, 2),
            unevaluatedItems=inner,
        ),
        some(**{"anyOf": forms, "oneOf": forms, "allOf": forms, "not": inner}),
        some(**{"if": inner, "then": inner, "else": inner, "properties": properties, "unevaluatedProperties": inner}),
        some(**{"$ref": st.sampled_from(["#/$defs/x", "#"]), "title": st.just("t"), "maxLength": st.integers(0, 2)}),
    )


SCHEMAS = st.recursive(LEAVES, deeper, max_leaves=8)


@st.composite
def edited(draw: st.DrawFn, schema: Any) -> Any:
    """The schema with one part of it made anew: what servers do, and what unrelated schemas never show."""
    if not isinstance(schema, dict) or not schema or draw(st.integers(0, 4)) == 0:
        return draw(SCHEMAS)
    key = draw(st.sampled_from(sorted(schema)))
    value = schema[key]
    if key in ("properties", "patternProperties") and value:
        name = draw(st.sampled_from(sorted(value)))
        changed = {**value, name: draw(edited(value[name]))}
        return {**schema, key: draw(st.sampled_from([changed, {n: v for n, v in value.items() if n != name}]))}
    if key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        place = draw(st.integers(0, len(value) - 1))
        return {**schema, key: [*value[:place], draw(edited(value[place])), *value[place + 1 :]]}
    if key in ("items", "not", "if", "then", "else", "additionalProperties", "propertyNames", "contains"):
        return {**schema, key: draw(edited(value))}
    more = draw(SCHEMAS)
    without = {name: inner for name, inner in schema.items() if name != key}
    return {**without, **more} if isinstance(more, dict) else without


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Any, Any]:
    before, shelf = draw(SCHEMAS), draw(LEAVES)
    after = draw(edited(before))
    assume(isinstance(before, dict) and isinstance(after, dict))
    other = draw(st.just(shelf) | LEAVES)
    return {**before, "$defs": {"x": shelf}}, {**after, "$defs": {"x": other}}


def compiled(schema: Any) -> jsonschema_rs.Validator:
    try:
        return jsonschema_rs.validator_for(schema, validate_formats=False)
    except ValueError:
        assume(False)
        raise


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(pairs(), st.lists(VALUES, min_size=25, max_size=40))
def test_what_is_called_widened_takes_all_it_took_and_what_is_called_narrowed_nothing_new(
    pair: tuple[Any, Any], values: list[Any]
) -> None:
    kind = schema_change(*pair).kind
    before, after = (compiled(schema) for schema in pair)
    for value in values:
        try:
            was, now = before.is_valid(value), after.is_valid(value)
        except ValueError:  # a reference that goes round without end
            continue
        assert not (was and not now and kind in ("widened", "same")), value
        assert not (now and not was and kind in ("narrowed", "same")), value


def test_listed_values_are_read_once_however_many_forms_are_held_against_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    n_read = []
    canonical = schema_values._canonical
    monkeypatch.setattr(schema_values, "_canonical", lambda value: n_read.append(1) or canonical(value))
    forms = [{"enum": list(range(n * 100, n * 100 + 100))} for n in range(60)]
    before, after = {"oneOf": forms}, {"oneOf": [*forms[:-1], {"enum": [*forms[-1]["enum"], -1]}]}
    assert schema_change(before, after).kind == "widened"
    assert len(n_read) < 20 * 6_000
