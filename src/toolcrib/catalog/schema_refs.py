"""References inside two schemas that are compared, and whether the same text means the same in both.

Below: `schema_values.py`. Above: `schema_change.py`.

Invariants
1. Nothing outside the two documents is looked at.
2. Two parts are alike only where their texts are equal and all that they refer to is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from toolcrib.catalog.schema_values import STRUCTURE, UNEVALUATED, Schema, same_json

_DEFAULT_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_OLD = ("draft-03", "draft-04", "draft-06")
_REF_ALONE = (*_OLD, "draft-07")
"""Drafts in which whatever stands beside a reference is ignored."""
_DYNAMIC = frozenset(("$dynamicRef", "$recursiveRef"))
_BASES = frozenset(("$id", "$anchor", "$dynamicAnchor"))
_OF_SOME_DIALECTS = frozenset(
    """$ref $defs dependencies dependentRequired dependentSchemas unevaluatedProperties unevaluatedItems prefixItems
    additionalItems minContains maxContains""".split()
)
"""Keywords that mean one thing in one dialect and another, or nothing, in the next."""
_TOGETHER = frozenset(
    """properties patternProperties additionalProperties items prefixItems additionalItems contains minContains
    maxContains if then else unevaluatedProperties unevaluatedItems""".split()
)
"""Keywords that other ones beside them lend a meaning."""
_SHELVES = ("$defs", "definitions")
_MAX_HOPS = 50


@dataclass(frozen=True, slots=True)
class Target:
    """What a reference names (`named`), and the schema as a whole: with what stands beside the reference."""

    named: Any
    whole: Any


class Pair:
    """Two documents, before and after."""

    def __init__(self, before: Any, after: Any) -> None:
        self.before = before
        self.after = after
        self._keys = keys_of(before) | keys_of(after)
        self._same_shelves = self._have_same_shelves()

    @property
    def differs_in_dialect(self) -> bool:
        """Whether they are of two drafts."""
        return _dialect(self.before) != _dialect(self.after)

    @property
    def doubt(self) -> str:
        """Why a change of these two cannot be judged keyword by keyword, or ""."""
        if any(old in _dialect(side) for side in (self.before, self.after) for old in _OLD):
            return "an old dialect of JSON Schema"
        if self.differs_in_dialect and self._keys & _OF_SOME_DIALECTS:
            return "another dialect, in which some keywords mean something else"
        if self._keys & {*UNEVALUATED}:
            return "what is left over (unevaluated) depends on everything beside it"
        return "references that move with their place" if self._keys & _DYNAMIC else ""

    def is_alike(self, one: Any, other: Any) -> bool:
        """Whether these parts, one of each document, mean the same for sure."""
        if not same_json(one, other):
            return False
        if self.differs_in_dialect and keys_of(one) & _OF_SOME_DIALECTS:
            return False
        return all(self._is_steady(ref) for ref in references_in(one))

    def target(self, schema: Schema, *, is_after: bool) -> Target | None:
        """What a schema stands for once its reference is followed; itself without one. None: it cannot be followed."""
        document = self.after if is_after else self.before
        beside: list[Schema] = []
        body: Any = schema
        for _ in range(_MAX_HOPS):
            if not isinstance(body, Mapping) or "$ref" not in body:
                return Target(body, _joined(body, beside))
            if not any(name in _dialect(document) for name in _REF_ALONE):
                beside.append({key: value for key, value in body.items() if key not in ("$ref", *_SHELVES)})
            found = self._found(body["$ref"], document)
            if found is None:
                return None
            body = found[0]
        return None

    def _found(self, reference: Any, document: Any) -> tuple[Any] | None:
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
            return None
        if self._keys & _BASES and self._moves_bases():
            return None
        value = document
        for step in reference.split("/")[1:]:
            key = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(value, Mapping) and key in value:
                value = value[key]
            elif isinstance(value, list | tuple) and key.isdigit() and int(key) < len(value):
                value = value[int(key)]
            else:
                return None
        return (value,)

    def _moves_bases(self) -> bool:
        """Whether an `$id` below the root changes what references mean. A property of that name does not."""
        return any(
            isinstance(value, str)
            for side in (self.before, self.after)
            if isinstance(side, Mapping)
            for inner in side.values()
            for value in _values_of(inner, "$id")
        )

    def _is_steady(self, reference: Any) -> bool:
        """Whether a reference means the same in both documents."""
        if not isinstance(reference, str):
            return True  # a property called `$ref`
        if not reference.startswith("#"):
            return not self._keys & _BASES
        return self._same_shelves and reference.split("/")[1:2] in [[name] for name in _SHELVES]

    def _have_same_shelves(self) -> bool:
        """Whether what lies in `$defs` and `definitions` is the same, and refers to nothing else."""
        for name in _SHELVES:
            was, now = (side.get(name) if isinstance(side, Mapping) else None for side in (self.before, self.after))
            if not same_json(was, now):
                return False
            steps = [ref.split("/")[:2] for ref in references_in(was) if isinstance(ref, str)]
            if any(step not in [["#", shelf] for shelf in _SHELVES] for step in steps):
                return False
        return not self._keys & _DYNAMIC


def _joined(body: Any, beside: list[Schema]) -> Any:
    """A schema and what stands beside the references to it. Words there come before its own."""
    conditions = {key: value for one in beside for key, value in one.items() if key in STRUCTURE}
    words = {key: value for one in reversed(beside) for key, value in one.items() if key not in STRUCTURE}
    n_conditions = sum(key in STRUCTURE for one in beside for key in one)
    if isinstance(body, Mapping):
        stand_alone = not conditions.keys() & (body.keys() | _TOGETHER) and n_conditions == len(conditions)
        if stand_alone:
            return {**body, **conditions, **words} if beside else body
    return {"allOf": [body, *beside], **words} if beside else body


def _dialect(document: Any) -> str:
    named = document.get("$schema", _DEFAULT_DIALECT) if isinstance(document, Mapping) else _DEFAULT_DIALECT
    return str(named).rstrip("#").replace("http:", "https:")


def keys_of(value: Any) -> frozenset[str]:
    """Every key in it, at any depth."""
    return frozenset(key for mapping in _mappings(value) for key in mapping)


def references_in(value: Any) -> list[Any]:
    """What stands under `$ref`, at any depth."""
    return _values_of(value, "$ref")


def _values_of(value: Any, key: str) -> list[Any]:
    return [mapping[key] for mapping in _mappings(value) if key in mapping]


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    found, waiting = [], [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Mapping):
            found.append(one)
            waiting.extend(one.values())
        elif isinstance(one, list | tuple):
            waiting.extend(one)
    return found


def pointer(at: str, *steps: str) -> str:
    """The JSON pointer of a place below another."""
    return "".join((at, *("/" + step.replace("~", "~0").replace("/", "~1") for step in steps)))


def text_of(value: Any) -> str:
    """A text that is the same for the same JSON, but for numbers written otherwise."""
    return json.dumps(value, sort_keys=True)


def texts_of(value: Any) -> list[str]:
    """Every text in it, keys included, sorted: equal where only the order of things differs."""
    found, waiting = [], [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            found.append(one)
        elif isinstance(one, Mapping):
            waiting += [*one.keys(), *one.values()]
        elif isinstance(one, list | tuple):
            waiting.extend(one)
    return sorted(found)
