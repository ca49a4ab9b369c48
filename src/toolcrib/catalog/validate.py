"""Whether a definition can be served at all. What fails here is quarantined and can't be approved until it changes.

The rule behind every check: a client of the protocol must accept the tool, because most clients refuse the whole list
over one malformed entry, and arguments must be checkable without the network. Depth is bounded because whoever walks a
definition later (encoders, compilers, checkers) may do so by recursion, and would fail the whole list over this one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

SchemaFault = Callable[[Mapping[str, Any]], str]
"""Why a JSON Schema cannot be compiled without the network, or "". Given by whoever checks arguments."""

_MAX_NAME = 256
MAX_DEPTH = 100
"""Levels of objects and lists in one definition, itself counted; what people write has less than 30."""
_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


def definition_fault(definition: Any, *, schema_fault: SchemaFault) -> str:
    """Why this entry cannot be a tool, or "" when it can.

    Args:
        definition: an entry of `tools/list` as received; anything JSON allows.
    """
    if not isinstance(definition, Mapping):
        return f"a tool must be an object, got {_kind(definition)}"
    if is_too_deep(definition):
        return f"the definition is nested more than {MAX_DEPTH} levels deep"
    return (
        _name_fault(definition.get("name"))
        or _text_fault(definition, "description")
        or _text_fault(definition, "title")
        or _input_fault(definition.get("inputSchema", _ABSENT), schema_fault)
        or _output_fault(definition.get("outputSchema"))
        or _annotations_fault(definition.get("annotations"))
        or _meta_fault(definition.get("_meta"))
    )


def is_too_deep(value: Any) -> bool:
    """Whether objects and lists lie in it more than `MAX_DEPTH` levels deep. Walks level by level, no recursion."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for one in level for inner in _inside(one)]
        if not level:
            return False
    return any(isinstance(one, Mapping | list | tuple) for one in level)


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list | tuple) else ()


_ABSENT = object()


def _name_fault(name: Any) -> str:
    if not isinstance(name, str) or not name:
        return f"a tool needs a name: a non-empty string, got {_kind(name)}"
    if len(name) > _MAX_NAME:
        return f"the name has {len(name)} characters, at most {_MAX_NAME} are served"
    if not name.isprintable() or name != name.strip():
        return "the name holds control or invisible characters, or begins or ends with a space"
    return ""


def _text_fault(definition: Mapping[str, Any], key: str) -> str:
    value = definition.get(key, "")
    return "" if isinstance(value, str) else f"{key} must be a string, got {_kind(value)}"


def _input_fault(schema: Any, schema_fault: SchemaFault) -> str:
    if schema is _ABSENT:
        return "inputSchema is missing"
    if not isinstance(schema, Mapping):
        return f"inputSchema must be an object, got {_kind(schema)}"
    if schema.get("type") != "object":
        return 'inputSchema must have "type": "object" at its root; clients refuse the whole list over it'
    properties = schema.get("properties", {})
    if not isinstance(properties, Mapping):
        return f"inputSchema.properties must be an object, got {_kind(properties)}"
    fault = schema_fault(schema)
    return f"inputSchema cannot be compiled: {fault}" if fault else ""


def _output_fault(schema: Any) -> str:
    return (
        "" if schema is None or isinstance(schema, Mapping) else f"outputSchema must be an object, got {_kind(schema)}"
    )


def _annotations_fault(annotations: Any) -> str:
    if annotations is None:
        return ""
    if not isinstance(annotations, Mapping):
        return f"annotations must be an object, got {_kind(annotations)}"
    for hint in _HINTS:
        if annotations.get(hint) is not None and not isinstance(annotations[hint], bool):
            return f"annotations.{hint} must be true or false, got {_kind(annotations[hint])}"
    title = annotations.get("title")
    return "" if title is None or isinstance(title, str) else f"annotations.title must be a string, got {_kind(title)}"


def _meta_fault(meta: Any) -> str:
    return "" if meta is None or isinstance(meta, Mapping) else f"_meta must be an object, got {_kind(meta)}"


def _kind(value: Any) -> str:
    if value is _ABSENT or value is None:
        return "null"
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list", dict: "an object"}
    return names.get(type(value), type(value).__name__) if value != "" else "an empty string"
