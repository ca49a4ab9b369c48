from __future__ import annotations

import json
import socket

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.errors import InvalidDefinitionError
from toolcrib.gate.arguments import ArgumentChecker, check_arguments, schema_fault
from toolcrib.gate.faults import MAX_FAULTS
from toolcrib.types import ArgumentFault

from .making import tool

DRAFTS = {
    "4": "http://json-schema.org/draft-04/schema#",
    "6": "http://json-schema.org/draft-06/schema#",
    "7": "http://json-schema.org/draft-07/schema#",
    "2019-09": "https://json-schema.org/draft/2019-09/schema",
    "2020-12": "https://json-schema.org/draft/2020-12/schema",
}


def places(schema, arguments):
    return [fault.path for fault in check_arguments(schema, arguments)]


# --- dialects


@pytest.mark.parametrize("uri", DRAFTS.values(), ids=DRAFTS)
def test_every_dialect_accepts_what_fits_and_refuses_what_does_not(uri):
    schema = {"$schema": uri, "type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}}
    assert places(schema, {"n": 1}) == []
    assert places(schema, {"n": 0}) == ["/n"]
    assert places(schema, {"n": "1"}) == ["/n"]


def test_the_declared_dialect_decides_what_a_keyword_means():
    above_three = {"minimum": 3, "exclusiveMinimum": True}
    assert places({"$schema": DRAFTS["4"], "properties": {"n": above_three}}, {"n": 3}) == ["/n"]
    assert schema_fault({"properties": {"n": above_three}})  # a number in every later draft
    pair = {"properties": {"p": {"prefixItems": [{"type": "string"}]}}}
    assert places(pair, {"p": [1]}) == ["/p/0"]
    assert places({"$schema": DRAFTS["7"], **pair}, {"p": [1]}) == []


def test_an_unknown_dialect_is_refused():
    assert schema_fault({"$schema": "http://example.com/mine", "type": "object"})


# --- references


TREE = {"type": "object", "properties": {"v": {"type": "integer"}, "kids": {"type": "array", "items": {}}}}


@pytest.mark.parametrize(
    "schema",
    [
        {"$defs": {"N": {**TREE, "properties": {"kids": {"items": {"$ref": "#/$defs/N"}}, "v": {"type": "integer"}}}}},
        {
            "$schema": DRAFTS["7"],
            "definitions": {
                "N": {"properties": {"kids": {"items": {"$ref": "#/definitions/N"}}, "v": {"type": "integer"}}}
            },
        },
        {"$defs": {"N": {"$anchor": "n", "properties": {"kids": {"items": {"$ref": "#n"}}, "v": {"type": "integer"}}}}},
        {
            "$id": "https://example.com/tree",
            "$defs": {
                "N": {
                    "properties": {
                        "kids": {"items": {"$ref": "https://example.com/tree#/$defs/N"}},
                        "v": {"type": "integer"},
                    }
                }
            },
        },
    ],
    ids=["$defs", "definitions", "$anchor", "$id of its own"],
)
def test_local_references_are_followed_also_recursive_ones(schema):
    inside = "#/definitions/N" if "definitions" in schema else "#/$defs/N"
    whole = {**schema, "type": "object", "properties": {"root": {"$ref": inside}}}
    assert places(whole, {"root": {"kids": [{"kids": [{"v": 1}]}]}}) == []
    assert places(whole, {"root": {"kids": [{"kids": [{"v": "x"}]}]}}) == ["/root/kids/0/kids/0/v"]


@pytest.mark.parametrize(
    "ref", ["http://127.0.0.1:9/x.json", "https://schemas.invalid/x.json", "file:///etc/passwd", "other.json", "#/nope"]
)
def test_a_reference_that_leaves_the_schema_is_refused_and_never_fetched(ref, monkeypatch):
    def no_socket(*args, **kwargs):
        raise AssertionError("the network was touched")

    monkeypatch.setattr(socket, "socket", no_socket)
    schema = {"type": "object", "properties": {"x": {"$ref": ref}}}
    assert schema_fault(schema)
    with pytest.raises(InvalidDefinitionError):
        check_arguments(schema, {"x": 1})


def test_no_server_hears_of_a_network_reference():
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        port = server.getsockname()[1]
        assert schema_fault({"properties": {"x": {"$ref": f"http://127.0.0.1:{port}/x.json"}}})
        with pytest.raises(TimeoutError):
            server.accept()


# --- schemas that cannot be compiled


@pytest.mark.parametrize(
    "schema",
    [True, None, [], "object", {"type": "int"}, {"properties": []}, {"properties": {"a": {"pattern": "("}}}],
    ids=str,
)
def test_a_broken_schema_accepts_nothing(schema):
    assert schema_fault(schema)
    with pytest.raises(InvalidDefinitionError):
        check_arguments(schema, {})


def test_a_schema_nested_without_end_is_refused():
    deep: dict = {}
    for _ in range(5000):
        deep = {"not": deep}
    assert schema_fault(deep)


def test_a_sound_schema_has_no_fault():
    assert schema_fault({"type": "object"}) == ""
    assert schema_fault({}) == ""


# --- what counts as arguments


@pytest.mark.parametrize("arguments", ["text", 5, None, True, [{"a": 1}]], ids=str)
def test_arguments_must_be_an_object_even_under_an_empty_schema(arguments):
    assert places({}, arguments) == [""]


@pytest.mark.parametrize(
    "arguments",
    [
        {"a": float("nan")},
        {"a": float("inf")},
        {"a": {1}},
        {"a": b"x"},
        {"a": "\ud800"},
        {"a": {1: 2}},
        {"a": 10**5_000},
    ],
    ids=["nan", "infinity", "set", "bytes", "surrogate", "number as name", "unwritable number"],
)
def test_what_json_cannot_hold_is_a_fault_not_a_crash(arguments):
    assert places({}, arguments) == [""]


def test_arguments_nested_without_end_are_a_fault():
    deep: dict = {}
    for _ in range(5000):
        deep = {"a": deep}
    assert places({"type": "object"}, deep) == [""]


def test_large_integers_pass():
    assert places({"properties": {"id": {"type": "integer"}}}, {"id": 2**63 + 1}) == []


def test_formats_are_not_asserted():
    schema = {"$schema": DRAFTS["7"], "properties": {"mail": {"type": "string", "format": "email"}}}
    assert places(schema, {"mail": "not an address"}) == []


def test_unknown_properties_go_by_the_schemas_own_word():
    assert places({"type": "object", "properties": {"a": {}}}, {"b": 1}) == []
    assert places({"type": "object", "properties": {"a": {}}, "additionalProperties": False}, {"b": 1}) == ["/b"]
    assert places({"type": "object", "properties": {"a": {}}, "unevaluatedProperties": False}, {"b": 1}) == ["/b"]


def test_defaults_are_not_filled_in():
    arguments = {}
    schema = {"properties": {"a": {"default": 5}}, "required": ["a"]}
    assert places(schema, arguments) == ["/a"]
    assert arguments == {}


# --- faults


FAULTS = [
    ({"properties": {"a": {"type": "integer"}}}, {"a": "12"}, ("/a", "integer", 'string "12"')),
    ({"properties": {"a": {"type": ["string", "null"]}}}, {"a": 1}, ("/a", "string or null", "number 1")),
    ({"properties": {"a": {"type": "string"}}, "required": ["a"]}, {}, ("/a", "a required string", "nothing")),
    ({"required": ["a"]}, {}, ("/a", "a required property", "nothing")),
    ({"properties": {"c": {"enum": ["x", "y"]}}}, {"c": "z"}, ("/c", 'one of "x", "y"', 'string "z"')),
    ({"properties": {"c": {"const": 3}}}, {"c": 4}, ("/c", "3", "number 4")),
    ({"properties": {"n": {"maximum": 9}}}, {"n": 10}, ("/n", "a number of at most 9", "number 10")),
    ({"properties": {"s": {"minLength": 3}}}, {"s": ""}, ("/s", "at least 3 characters", 'string ""')),
    ({"properties": {"s": {"pattern": "^a"}}}, {"s": "b"}, ("/s", "text that matches ^a", 'string "b"')),
    ({"properties": {"l": {"maxItems": 1}}}, {"l": [1, 2]}, ("/l", "at most 1 items", "an array of 2")),
    ({"properties": {"l": {"uniqueItems": True}}}, {"l": [1, 1]}, ("/l", "items that all differ", "an array of 2")),
    (
        {"properties": {"a": {}}, "additionalProperties": False},
        {"b": 1},
        ("/b", "no property of this name; there are a", "number 1"),
    ),
    (
        {"properties": {"d": {"anyOf": [{"type": "string"}, {"required": ["id"]}]}}},
        {"d": {}},
        ("/d", "any of: string; with id", "an empty object"),
    ),
    (
        {"properties": {"d": {"oneOf": [{"type": "string"}, {"minLength": 1}]}}},
        {"d": "x"},
        ("/d", "exactly one of the alternatives, not several at once", 'string "x"'),
    ),
    ({"propertyNames": {"maxLength": 2}}, {"abc": 1}, ("", "property names that are at most 2 characters", None)),
    ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, ("/b", "a required property", "nothing")),
    ({"properties": {"x": False}}, {"x": 1}, ("/x", "nothing in this place", "number 1")),
]


@pytest.mark.parametrize(("schema", "arguments", "fault"), FAULTS, ids=[f[2][1][:30] for f in FAULTS])
def test_a_fault_says_where_what_was_expected_and_what_came(schema, arguments, fault):
    path, expected, got = fault
    (found,) = check_arguments(schema, arguments)
    assert (found.path, found.expected) == (path, expected)
    assert got is None or found.got == got


def test_a_pointer_escapes_its_own_marks():
    schema = {"properties": {"a/b": {"properties": {"c~d": {"type": "string"}}}}}
    assert places(schema, {"a/b": {"c~d": 1}}) == ["/a~1b/c~0d"]


def test_no_fault_shows_a_secret_or_a_value_beside_the_faulty_one():
    schema = {
        "type": "object",
        "properties": {
            "password": {"type": "string", "minLength": 40},
            "nested": {"not": {}},
            "one": {"anyOf": [{"type": "integer"}, {"properties": {"apiKey": {"type": "integer"}}}]},
        },
        "minProperties": 9,
        "additionalProperties": False,
    }
    secret = "s3cr3t-value"
    arguments = {"password": secret, "nested": {"x": secret}, "one": {"apiKey": secret}, "token": secret}
    faults = check_arguments(schema, arguments)
    assert {fault.path for fault in faults} == {"", "/nested", "/one", "/password", "/token"}
    assert secret not in repr(faults)


def test_faults_are_bounded_short_sorted_and_stable():
    schema = {"additionalProperties": {"enum": ["option" * 40] * 1 + [f"{n}" * 30 for n in range(200)]}}
    arguments = {f"name_{n:03}": "v" * 10_000 for n in range(500)}
    faults = check_arguments(schema, arguments)
    assert len(faults) == MAX_FAULTS
    assert list(faults) == sorted(faults, key=lambda fault: fault.path)
    assert all(len(fault.expected) + len(fault.got) < 600 for fault in faults)
    assert check_arguments(schema, arguments) == faults


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=4), JSON, max_size=4))
def test_any_json_object_gets_an_answer_and_stays_as_it_was(arguments):
    before = json.dumps(arguments)
    schema = {"properties": {"a": {"type": "string"}}, "additionalProperties": {"type": ["integer", "array"]}}
    faults = check_arguments(schema, arguments)
    assert all(isinstance(fault, ArgumentFault) for fault in faults)
    assert json.dumps(arguments) == before


# --- the checker


def test_the_checker_answers_for_each_definition_by_itself():
    checker = ArgumentChecker()
    old = tool(schema={"type": "object", "required": ["a"]}, digest="sha256:old")
    new = tool(schema={"type": "object", "required": ["b"]}, digest="sha256:new")
    for _ in range(2):
        assert [fault.path for fault in checker.check(old, {})] == ["/a"]
        assert [fault.path for fault in checker.check(new, {})] == ["/b"]


def test_the_checker_compiles_a_definition_once(monkeypatch):
    compiled = []
    compile_schema = jsonschema_rs.validator_for

    def counting(schema, **options):
        compiled.append(schema)
        return compile_schema(schema, **options)

    monkeypatch.setattr(jsonschema_rs, "validator_for", counting)
    checker = ArgumentChecker()
    for _ in range(3):
        checker.check(tool(), {"order_id": "A-1"})
    assert len(compiled) == 1


def test_the_checker_forgets_the_oldest_and_still_answers():
    checker = ArgumentChecker(max_schemas=2)
    tools = [tool(schema={"required": [f"p{n}"]}, digest=f"sha256:{n}") for n in range(5)]
    for one in [*tools, *tools]:
        assert len(checker.check(one, {})) == 1


@pytest.mark.parametrize("schema", [True, [], {"type": "int"}], ids=str)
def test_the_checker_refuses_a_tool_whose_schema_cannot_be_compiled(schema):
    with pytest.raises(InvalidDefinitionError):
        ArgumentChecker().check(tool(schema=schema), {})


def test_arguments_nested_as_deeply_as_the_gate_lets_through_can_be_checked():
    deep: dict = {"v": "x"}
    for _ in range(126):
        deep = {"kid": deep}
    schema = {
        "$ref": "#/$defs/n",
        "$defs": {"n": {"properties": {"kid": {"$ref": "#/$defs/n"}, "v": {"type": "null"}}}},
    }
    assert places(schema, deep) == ["/kid" * 126 + "/v"]
