"""Whether arguments fit a tool's input schema: every dialect from draft 4 to 2020-12, never the network.

Above: `checks.py` at the gate; the catalog asks `schema_fault` before a definition can be approved.

Invariants
1. No reference leaves the schema: whatever isn't inside it or a published meta-schema is refused, never fetched.
2. A schema that cannot be compiled accepts nothing (I2).
3. Arguments are a JSON object, whatever the schema says; they are checked as they came, and defaults are not filled in.
4. Formats are not asserted: what an implementation calls an e-mail address is no reason to refuse a call.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NoReturn

import jsonschema_rs

from toolcrib.errors import InvalidDefinitionError
from toolcrib.gate.faults import argument_faults
from toolcrib.gate.masking import kind_of
from toolcrib.types import ArgumentFault, JsonObject, Tool

_MAX_DEPTH = 128
"""Levels of arguments; the validator gives up at about twice as many."""
_MAX_INTEGER_BITS = 8_192
"""Python writes no number of more than 4,300 digits."""


def check_arguments(schema: JsonObject, arguments: Any) -> tuple[ArgumentFault, ...]:
    """What is wrong with the arguments; empty when they fit.

    Args:
        schema: the tool's input schema; its `$schema` names the dialect, 2020-12 if it names none.
        arguments: as the model sent them, an object or not.
    Raises:
        InvalidDefinitionError: the schema cannot be compiled.
    """
    return _check(compile_schema(schema), schema, arguments)


def schema_fault(schema: Any) -> str:
    """Why this input schema cannot be compiled without the network, or "" when it can."""
    try:
        compile_schema(schema)
    except InvalidDefinitionError as fault:
        return fault.what
    return ""


class ArgumentChecker:
    """`check_arguments` for tools, with compiled schemas remembered by digest. Safe to share between threads."""

    def __init__(self, *, max_schemas: int = 1_024) -> None:
        self._max_schemas = max_schemas
        self._compiled: OrderedDict[str, jsonschema_rs.Validator] = OrderedDict()
        self._lock = threading.Lock()

    def check(self, tool: Tool, arguments: Any) -> tuple[ArgumentFault, ...]:
        """What is wrong with the arguments for this tool; empty when they fit.

        Raises:
            InvalidDefinitionError: the tool's schema cannot be compiled.
        """
        schema = tool.definition.get("inputSchema")
        if not isinstance(schema, Mapping):
            raise InvalidDefinitionError("inputSchema must be an object", where=tool.tool_id)
        return _check(self._validator(tool, schema), schema, arguments)

    def _validator(self, tool: Tool, schema: JsonObject) -> jsonschema_rs.Validator:
        with self._lock:
            if known := self._compiled.get(tool.digest):
                self._compiled.move_to_end(tool.digest)
                return known
        compiled = compile_schema(schema)
        with self._lock:
            self._compiled[tool.digest] = compiled
            if len(self._compiled) > self._max_schemas:
                self._compiled.popitem(last=False)
        return compiled


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"references are never fetched: {uri}")


def compile_schema(schema: Any) -> jsonschema_rs.Validator:
    """The schema's validator; `output.py` asks for one, too.

    Raises:
        InvalidDefinitionError: it is no object, or cannot be compiled without the network.
    """
    if not isinstance(schema, Mapping):
        raise InvalidDefinitionError(f"a schema must be an object, got {kind_of(schema)}")
    try:
        return jsonschema_rs.validator_for(dict(schema), retriever=_refuse, validate_formats=False)
    except (ValueError, TypeError, RecursionError, jsonschema_rs.ReferencingError) as fault:
        what = getattr(fault, "message", "") or str(fault).partition("\n")[0]
        raise InvalidDefinitionError(what, hint="its server must mend the schema") from fault


def _check(validator: jsonschema_rs.Validator, schema: JsonObject, arguments: Any) -> tuple[ArgumentFault, ...]:
    if not isinstance(arguments, Mapping):
        # The type alone is told: a bare text or number may be a secret in the wrong place.
        expected, got = "a JSON object with the tool's arguments", kind_of(arguments)
        return (ArgumentFault(path="", expected=expected, got=got),)
    plain = dict(arguments)
    if not is_json(plain):
        expected, got = "plain JSON, not nested too deeply", "an object that is more than that"
        return (ArgumentFault(path="", expected=expected, got=got),)
    return argument_faults(validator.iter_errors(plain), schema=schema)


def is_json(value: Any, *, depth: int = 0) -> bool:
    """Whether JSON can hold it and the validator can read it, which takes NaN for null and raises on the rest."""
    if isinstance(value, dict):
        names_fit = all(isinstance(name, str) and _is_text(name) for name in value)
        return depth < _MAX_DEPTH and names_fit and all(is_json(v, depth=depth + 1) for v in value.values())
    if isinstance(value, list | tuple):
        return depth < _MAX_DEPTH and all(is_json(v, depth=depth + 1) for v in value)
    if isinstance(value, str):
        return _is_text(value)
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, int):
        return value.bit_length() <= _MAX_INTEGER_BITS
    return value is None


def _is_text(text: str) -> bool:
    """No lone surrogates, which no encoding of JSON can carry."""
    return text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text)
