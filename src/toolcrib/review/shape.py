"""What a definition's parts say beside its words: annotations against the name, faults of the schema, length.

Above: `lint.py`. What makes a definition unfit to serve at all is judged elsewhere, at intake; here is what a reviewer
should know of those that could be served.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from toolcrib.review.findings import Finding, Level
from toolcrib.review.reading import description_of, name_of
from toolcrib.review.rules import RULES
from toolcrib.review.text import show

_LONG_DESCRIPTION = 6_000
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_UNDOES = frozenset("delete remove drop destroy purge wipe erase truncate terminate kill revoke uninstall".split())
_CHANGES = frozenset(
    "create update insert write edit send post put set add pay transfer upload publish rename move merge install "
    "deploy "
    "execute approve cancel refund".split()
)
_REQUEST_WORDS = frozenset(
    "can could you your please help me i my we want need would like recommend suggest find show tell give what "
    "which how where when why "
    "who best top good great any some the a an to for of and or is are do does it with about".split()
)
_ASKING = frozenset(
    "can could you please help me i want need would like recommend suggest tell give what how best top show "
    "find".split()
)
_MAX_DEPTH = 40


def shape(definition: Any) -> Iterator[Finding]:
    """Findings about the parts of one definition."""
    if not isinstance(definition, Mapping):
        return
    yield from _annotations(definition)
    yield from _name(definition)
    yield from _length(definition)
    yield from _stuffing(definition)
    for key in ("inputSchema", "outputSchema"):
        if definition.get(key) is not None:
            yield from _schema(definition[key], f"/{key}")


def _annotations(definition: Mapping[str, Any]) -> Iterator[Finding]:
    hints = definition.get("annotations")
    verb = next(iter(_WORDS.findall(name_of(definition))), "").casefold()
    if not isinstance(hints, Mapping) or not verb:
        return
    if hints.get("readOnlyHint") is True and verb in _UNDOES | _CHANGES:
        level = Level.REVIEW if verb in _UNDOES else Level.INFO
        yield _finding(
            "annotation-contradiction", level, "/annotations/readOnlyHint", f"readOnlyHint: true, and {verb!r}"
        )
    elif hints.get("destructiveHint") is False and verb in _UNDOES:
        yield _finding(
            "annotation-contradiction",
            Level.INFO,
            "/annotations/destructiveHint",
            f"destructiveHint: false, and {verb!r}",
        )


def _name(definition: Mapping[str, Any]) -> Iterator[Finding]:
    name = name_of(definition)
    if name and not _NAME.fullmatch(name):
        yield _finding("name-refused", Level.INFO, "/name", show(name[:80]))


def _length(definition: Mapping[str, Any]) -> Iterator[Finding]:
    text = description_of(definition)
    if len(text) > _LONG_DESCRIPTION:
        why = f"{len(text)} characters: {RULES['long-description'].title}"
        yield Finding(
            rule="long-description", level=Level.INFO, pointer="/description", evidence=show(text[:80]) + "…", why=why
        )


def _stuffing(definition: Mapping[str, Any]) -> Iterator[Finding]:
    """Descriptions made of words of asking: tool texts hardly hold any, so a search takes them for very telling."""
    words = [word.casefold() for word in re.findall(r"[A-Za-z']+", description_of(definition))][:400]
    asking = {word for word in words if word in _ASKING}
    if len(asking) >= 7 and sum(word in _REQUEST_WORDS for word in words) > 0.6 * len(words):
        yield _finding("keyword-stuffing", Level.REVIEW, "/description", show(description_of(definition)[:120]))


def _schema(schema: Any, pointer: str, depth: int = 0) -> Iterator[Finding]:
    """Faults of a schema's form, at any depth."""
    if isinstance(schema, bool) or depth > _MAX_DEPTH:
        return
    if not isinstance(schema, Mapping):
        yield _finding("schema-fault", Level.REVIEW, pointer, f"a schema is an object, this is {_kind(schema)}")
        return
    if depth == 0 and schema.get("type", "object") != "object":
        yield _finding(
            "schema-fault", Level.INFO, f"{pointer}/type", f"the root is {show(str(schema.get('type')))}, not object"
        )
    yield from _keywords(schema, pointer)
    for key in ("properties", "$defs", "definitions", "patternProperties"):
        parts = schema.get(key)
        if isinstance(parts, Mapping):
            for name, part in parts.items():
                yield from _schema(part, f"{pointer}/{key}/{_step(name)}", depth + 1)
    for key in ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"):
        if isinstance(schema.get(key), Mapping):
            yield from _schema(schema[key], f"{pointer}/{key}", depth + 1)
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        if isinstance(schema.get(key), list):
            for number, part in enumerate(schema[key]):
                yield from _schema(part, f"{pointer}/{key}/{number}", depth + 1)


def _keywords(schema: Mapping[str, Any], pointer: str) -> Iterator[Finding]:
    properties, required, enum = schema.get("properties"), schema.get("required"), schema.get("enum")
    if properties is not None and not isinstance(properties, Mapping):
        yield _finding("schema-fault", Level.REVIEW, f"{pointer}/properties", f"properties is {_kind(properties)}")
    if required is not None and not (isinstance(required, list) and all(isinstance(one, str) for one in required)):
        yield _finding(
            "schema-fault", Level.INFO, f"{pointer}/required", f"required is {_kind(required)}, not a list of names"
        )
    elif isinstance(required, list) and isinstance(properties, Mapping) and "$ref" not in schema:
        missing = [one for one in required if one not in properties]
        if missing and not any(key in schema for key in ("anyOf", "oneOf", "allOf", "patternProperties")):
            yield _finding(
                "schema-fault",
                Level.INFO,
                f"{pointer}/required",
                f"requires what it does not describe: {show(missing[0])}",
            )
    if isinstance(enum, list) and not enum:
        yield _finding("schema-fault", Level.INFO, f"{pointer}/enum", "no value is allowed")
    reference = schema.get("$ref")
    if isinstance(reference, str) and not reference.startswith("#"):
        yield _finding("schema-fault", Level.REVIEW, f"{pointer}/$ref", f"refers outside: {show(reference[:80])}")
    if schema.get("type") == "array" and "items" not in schema and "prefixItems" not in schema:
        yield _finding("schema-fault", Level.INFO, pointer, "an array without items: some providers refuse it")


def _step(name: Any) -> str:
    return str(name).replace("~", "~0").replace("/", "~1")


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    return {bool: "a boolean", str: "a string", list: "a list", dict: "an object"}.get(type(value), "a number")


def _finding(rule: str, level: Level, pointer: str, evidence: str) -> Finding:
    return Finding(rule=rule, level=level, pointer=pointer, evidence=evidence, why=RULES[rule].title)
