"""A validator's errors as faults that a model can act on: where, what was expected, what came.

Above: `arguments.py`. Below: `jsonschema_rs` errors, read but never shown, because their texts quote whole values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from jsonschema_rs import ValidationError

from toolcrib.gate.masking import cut, described, shown
from toolcrib.types import ArgumentFault, JsonObject

MAX_FAULTS = 20
_MAX_ERRORS_READ = 200
_MAX_OPTIONS = 20
_MAX_ALTERNATIVES = 4
_MAX_TEXT = 400

_WORDS = {
    "minimum": "a number of at least {limit}",
    "maximum": "a number of at most {limit}",
    "exclusiveMinimum": "a number above {limit}",
    "exclusiveMaximum": "a number below {limit}",
    "multipleOf": "a multiple of {multiple_of}",
    "minLength": "at least {limit} characters",
    "maxLength": "at most {limit} characters",
    "minItems": "at least {limit} items",
    "maxItems": "at most {limit} items",
    "additionalItems": "at most {limit} items",
    "minProperties": "at least {limit} properties",
    "maxProperties": "at most {limit} properties",
    "pattern": "text that matches {pattern}",
    "contentEncoding": "text encoded as {content_encoding}",
    "contentMediaType": "text that is {content_media_type}",
    "uniqueItems": "items that all differ",
    "contains": "the items that the schema says it must contain",
    "falseSchema": "nothing in this place",
    "not": "a value that the schema does not rule out",
}


def argument_faults(errors: Iterable[ValidationError], *, schema: JsonObject) -> tuple[ArgumentFault, ...]:
    """Faults sorted by place, each once, at most `MAX_FAULTS`."""
    found = {fault for error in islice(errors, _MAX_ERRORS_READ) for fault in _faults(error, schema)}
    return tuple(sorted(found, key=lambda f: (f.path, f.expected, f.got))[:MAX_FAULTS])


def pointer(path: Iterable[object]) -> str:
    """A JSON pointer (RFC 6901); "" for the root."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def _faults(error: ValidationError, schema: JsonObject) -> list[ArgumentFault]:
    path, detail = list(error.instance_path), error.kind.as_dict()
    if "unexpected" in detail:
        return [_unexpected(path, name, error, schema) for name in detail["unexpected"]]
    if "property" in detail:
        missing = str(detail["property"])
        expected = f"a required {_kind_of(missing, error, schema)}"
        return [ArgumentFault(path=pointer([*path, missing]), expected=expected, got="nothing")]
    return [ArgumentFault(path=pointer(path), expected=_expected(error), got=described(error.instance, path=path))]


def _unexpected(path: list[Any], name: Any, error: ValidationError, schema: JsonObject) -> ArgumentFault:
    """One name or item too many. `name` is the value itself where items of an array are too many."""
    if not isinstance(error.instance, Mapping):
        return ArgumentFault(path=pointer(path), expected="no further items", got=described(error.instance, path=path))
    place = [*path, name]
    known = list(_properties(error, schema))[:_MAX_OPTIONS]
    expected = "no property of this name" + (f"; there are {', '.join(map(str, known))}" if known else "")
    got = described(error.instance.get(name), path=place)
    return ArgumentFault(path=pointer(place), expected=cut(expected, at=_MAX_TEXT), got=got)


def _expected(error: ValidationError) -> str:
    """What the failed keyword asks for, from the schema's side only."""
    keyword, detail = error.kind.name, error.kind.as_dict()
    if "types" in detail:
        return " or ".join(sorted(map(str, detail["types"]), key=lambda kind: kind == "null"))
    if "options" in detail:
        more = ", …" if len(detail["options"]) > _MAX_OPTIONS else ""
        return cut("one of " + ", ".join(map(shown, detail["options"][:_MAX_OPTIONS])) + more, at=_MAX_TEXT)
    if "expected_value" in detail:
        return cut(shown(detail["expected_value"]), at=_MAX_TEXT)
    if "context" in detail:
        return _alternatives(keyword, detail["context"], depth=len(error.instance_path))
    if keyword == "propertyNames":
        return f"property names that are {_expected(detail['error'])}"
    words = _WORDS.get(keyword, f"a value that satisfies `{keyword}`")
    try:
        return cut(words.format_map(detail), at=_MAX_TEXT)
    except KeyError:
        return f"a value that satisfies `{keyword}`"


def _alternatives(keyword: str, context: Sequence[Sequence[ValidationError]], *, depth: int) -> str:
    """What each branch of `anyOf` or `oneOf` would have wanted, each once, in the schema's order."""
    if keyword == "oneOf" and any(not branch for branch in context):
        return "exactly one of the alternatives, not several at once"
    wanted = dict.fromkeys(_branch(branch[0], depth=depth) for branch in context if branch)
    more = "; …" if len(wanted) > _MAX_ALTERNATIVES else ""
    return cut("any of: " + "; ".join(list(wanted)[:_MAX_ALTERNATIVES]) + more, at=_MAX_TEXT)


def _branch(error: ValidationError, *, depth: int) -> str:
    """What one branch wanted; `depth` path parts are those of the value that all branches were tried on."""
    detail = error.kind.as_dict()
    if "property" in detail:
        return f"with {detail['property']}"
    if "unexpected" in detail:
        return f"without {', '.join(map(str, detail['unexpected'][:_MAX_ALTERNATIVES]))}"
    where = pointer(list(error.instance_path)[depth:]).removeprefix("/")
    return f"{where}: {_expected(error)}" if where else _expected(error)


def _kind_of(name: str, error: ValidationError, schema: JsonObject) -> str:
    """What a missing property is, where the schema plainly says so."""
    declared = _properties(error, schema).get(name)
    kind = declared.get("type") if isinstance(declared, Mapping) else None
    return kind if isinstance(kind, str) else "property"


def _properties(error: ValidationError, schema: Any) -> Mapping[str, Any]:
    """`properties` beside the failed keyword; empty where the place cannot be found (an embedded `$id`, for one)."""
    for part in list(error.schema_path)[:-1]:
        if isinstance(schema, Mapping):
            schema = schema.get(part)
        elif isinstance(schema, list) and isinstance(part, int) and part < len(schema):
            schema = schema[part]
        else:
            return {}
    found = schema.get("properties") if isinstance(schema, Mapping) else None
    return found if isinstance(found, Mapping) else {}
