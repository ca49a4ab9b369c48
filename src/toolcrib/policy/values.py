"""Cedar's values and operators on single values, errors included.

Below: nothing of ours. Above: `operands.py` applies these to the distinct values of columns.

Invariants
1. Each operator gives what Cedar gives, or `FAILED` where Cedar reports an evaluation error. Nothing is raised.
2. Values of different Cedar types never compare equal here: a number is a `Long`, so that 1 is not `true`.

Source: the Cedar reference, https://docs.cedarpolicy.com/policies/syntax-operators.html
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

_MIN_LONG, _MAX_LONG = -(2**63), 2**63 - 1


class Long(NamedTuple):
    value: int


class Uid(NamedTuple):
    """An entity by name."""

    type: str
    id: str


class Fault(Enum):
    """What stands for a value that could not be computed."""

    FAILED = "failed"


FAILED: Final = Fault.FAILED

Value: TypeAlias = "bool | str | Long | Uid | frozenset[Value] | Fault"
Pattern: TypeAlias = tuple[str, ...]
"""The literal parts of a `like` pattern, in order; between two of them is a wildcard. One part: no wildcard."""


def like(value: Value, pattern: Pattern) -> Value:
    """Whether the whole string fits. No regular expression: those take time without bound on some patterns."""
    if not isinstance(value, str):
        return FAILED
    if len(pattern) == 1:
        return value == pattern[0]
    first, *middle, last = pattern
    end = len(value) - len(last)
    if not value.startswith(first) or not value.endswith(last) or end < len(first):
        return False
    at = len(first)
    for part in middle:
        found = value.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def is_empty(value: Value) -> Value:
    return not value if isinstance(value, frozenset) else FAILED


def negated(value: Value) -> Value:
    """Arithmetic minus."""
    return _long(-value.value) if isinstance(value, Long) else FAILED


def _equal(left: Value, right: Value) -> Value:
    return left == right


def _contains(left: Value, right: Value) -> Value:
    return right in left if isinstance(left, frozenset) else FAILED


def _contains_all(left: Value, right: Value) -> Value:
    return left >= right if isinstance(left, frozenset) and isinstance(right, frozenset) else FAILED


def _contains_any(left: Value, right: Value) -> Value:
    return not left.isdisjoint(right) if isinstance(left, frozenset) and isinstance(right, frozenset) else FAILED


def _less(left: Value, right: Value) -> Value:
    return left.value < right.value if isinstance(left, Long) and isinstance(right, Long) else FAILED


def _at_most(left: Value, right: Value) -> Value:
    return left.value <= right.value if isinstance(left, Long) and isinstance(right, Long) else FAILED


def _sum(left: Value, right: Value) -> Value:
    return _long(left.value + right.value) if isinstance(left, Long) and isinstance(right, Long) else FAILED


def _difference(left: Value, right: Value) -> Value:
    return _long(left.value - right.value) if isinstance(left, Long) and isinstance(right, Long) else FAILED


def _product(left: Value, right: Value) -> Value:
    return _long(left.value * right.value) if isinstance(left, Long) and isinstance(right, Long) else FAILED


def _long(value: int) -> Value:
    return Long(value) if _MIN_LONG <= value <= _MAX_LONG else FAILED


def _added(left: Value, right: Value) -> Value:
    """A set and one more element: how a set literal is built."""
    return left | {right} if isinstance(left, frozenset) else FAILED


ADDED: Final = "added"
BINARY: Final[Mapping[str, Callable[[Value, Value], Value]]] = {
    "==": _equal,
    "contains": _contains,
    "containsAll": _contains_all,
    "containsAny": _contains_any,
    "<": _less,
    "<=": _at_most,
    "+": _sum,
    "-": _difference,
    "*": _product,
    ADDED: _added,
}


def apply(operator: str, left: Value, right: Value) -> Value:
    """One of `BINARY`; a failed operand fails the whole."""
    if left is FAILED or right is FAILED:
        return FAILED
    return BINARY[operator](left, right)
