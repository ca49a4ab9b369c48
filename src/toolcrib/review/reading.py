"""Every string of a definition, with the part it plays and how it reads.

Above: every rule. Below: `text.strings` walks, `normal.plain` reads.

Invariants
1. No string is left out: names, titles, descriptions, parameters, enums, defaults, examples, nested schemas, `_meta`.
2. A name is read as the words it is made of, so that an order written with underscores is an order.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from toolcrib.review.normal import Plain, plain
from toolcrib.review.text import strings

_KEYS_OF_PARAMETERS = (
    "properties",
    "$defs",
    "definitions",
    "patternProperties",
    "dependentSchemas",
    "dependentRequired",
)
_VALUES = ("enum", "default", "const", "examples", "example", "x-enumDescriptions", "enumDescriptions")
_SCHEMA_WORDS = (
    "type",
    "format",
    "$ref",
    "$schema",
    "$id",
    "$anchor",
    "required",
    "contentMediaType",
    "contentEncoding",
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_MIN_SPACES = 3
"""A key or a keyword of more words than that says something, whatever its place is for."""
MAX_CHARS = 200_000
"""Of one string; the rest is told of as length, not read."""


class Role(StrEnum):
    """What part a string plays."""

    NAME = "name"
    TITLE = "title"
    DESCRIPTION = "description"
    PARAMETER = "parameter"
    PARAMETER_NAME = "parameter_name"
    VALUE = "value"
    KEYWORD = "keyword"
    KEY = "key"
    ANNOTATION = "annotation"
    META = "meta"
    INSTRUCTIONS = "instructions"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """One string: where, what part it plays, as received, and as read."""

    pointer: str
    role: Role
    raw: str
    plain: Plain


def texts(definition: Any) -> tuple[Text, ...]:
    """Every string of a definition, in the order met."""
    return tuple(text_at(pointer, raw) for pointer, raw in strings(definition) if raw)


def text_at(pointer: str, raw: str) -> Text:
    """One string as it reads in this place."""
    role = role_of(pointer)
    read = raw[:MAX_CHARS]
    as_name = role in (Role.NAME, Role.PARAMETER_NAME, Role.KEY, Role.KEYWORD)
    if as_name or (role is Role.VALUE and " " not in read):
        read = _CAMEL.sub(" ", read).replace("_", " ").replace("-", " ") if len(read) < 2_000 else read
    read_as = plain(read)
    if role in (Role.KEY, Role.KEYWORD) and read_as.text.count(" ") >= _MIN_SPACES:
        role = Role.OTHER
    return Text(pointer=pointer, role=role, raw=raw, plain=read_as)


def role_of(pointer: str) -> Role:
    """The part that a string at this place plays."""
    steps = pointer.split("/")[1:]
    if not steps:
        return Role.OTHER
    last, is_key = steps[-1].removesuffix("~key"), steps[-1].endswith("~key")
    above = steps[-2] if len(steps) > 1 else ""
    if is_key:
        return Role.PARAMETER_NAME if above in _KEYS_OF_PARAMETERS else Role.KEY
    if len(steps) == 1:
        return _TOP.get(last, Role.OTHER)
    if steps[0] in ("annotations", "_meta"):
        return Role.ANNOTATION if steps[0] == "annotations" else Role.META
    if any(step in _VALUES for step in steps[1:-1]) or last in _VALUES:
        return Role.VALUE
    named = above in _KEYS_OF_PARAMETERS
    if last in ("description", "$comment", "markdownDescription", "help") and not named:
        return Role.PARAMETER
    if last == "title" and not named:
        return Role.TITLE
    if last in _SCHEMA_WORDS or "required" in steps or "type" in steps:
        return Role.KEYWORD
    return Role.OTHER


_TOP = {
    "name": Role.NAME,
    "title": Role.TITLE,
    "description": Role.DESCRIPTION,
    "instructions": Role.INSTRUCTIONS,
}


def description_of(definition: Any) -> str:
    """The tool's own description, "" where it has none."""
    return _string(definition, "description")


def name_of(definition: Any) -> str:
    """The tool's own name, "" where it has none."""
    return _string(definition, "name")


def _string(definition: Any, key: str) -> str:
    value = definition.get(key) if isinstance(definition, Mapping) else None
    return value if isinstance(value, str) else ""
