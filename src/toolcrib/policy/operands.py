"""What an expression comes to over all decision classes, and operators on two of these.

Below: `columns.py`, `values.py`. Above: `residuals.py`, which walks the expressions.

    Truth       a Bool per class, as two arrays          Constant    one value for all classes
    Column      any value per class                      Resource    the tool itself

Invariants
1. A class is never both satisfied and failed.
2. An operator on columns is worked out once per distinct value or pair of values; look-ups give the same, sooner.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from toolcrib.policy.columns import Column, Columns
from toolcrib.policy.values import FAILED, Value, apply
from toolcrib.types import BoolArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Truth:
    """Where a condition holds. bool, shape (n_classes,); `failed`: where Cedar would report an error, None: nowhere."""

    holds: BoolArray
    failed: BoolArray | None = None


@dataclass(frozen=True, slots=True)
class Constant:
    value: Value


class Resource:
    """The tool itself."""


Operand: TypeAlias = Truth | Column | Constant | Resource
THE_RESOURCE: Final = Resource()


def truth_of(operand: Operand, over: Columns) -> Truth:
    """An operand where Cedar wants a Bool; anything else is an error there."""
    if isinstance(operand, Truth):
        return operand
    if isinstance(operand, Constant):
        everywhere = np.full(over.n_classes, operand.value is True)
        return Truth(
            holds=everywhere,
            failed=None if isinstance(operand.value, bool) else np.ones(over.n_classes, dtype=np.bool_),
        )
    column = column_of(operand, over)
    holds = np.array([value is True for value in column.values], dtype=np.bool_)
    failed = np.array([not isinstance(value, bool) for value in column.values], dtype=np.bool_)
    return Truth(holds=holds[column.codes], failed=failed[column.codes] if failed.any() else None)


def negation(truth: Truth) -> Truth:
    holds = ~truth.holds if truth.failed is None else ~(truth.holds | truth.failed)
    return Truth(holds=holds, failed=truth.failed)


def either(first: BoolArray | None, second: BoolArray | None) -> BoolArray | None:
    if first is None or second is None:
        return second if first is None else first
    return first | second


def column_of(operand: Operand, over: Columns) -> Column:
    """Any operand as a column."""
    if isinstance(operand, Column):
        return operand
    if isinstance(operand, Resource):
        return over.tools
    if isinstance(operand, Constant):
        return Column(codes=np.zeros(over.n_classes, dtype=np.int64), values=(operand.value,))
    codes = operand.holds.astype(np.int64)
    if operand.failed is not None:
        codes[operand.failed] = 2
    return Column(codes=codes, values=(False, True, FAILED))


def binary(operator: str, left: Operand, right: Operand, over: Columns) -> Operand:
    if isinstance(left, Constant) and isinstance(right, Constant):
        return Constant(apply(operator, left.value, right.value))
    if (quick := _looked_up(operator, left, right, over)) is not None:
        return Truth(holds=quick)
    if isinstance(right, Constant):
        value = right.value
        return mapped(column_of(left, over), lambda each: apply(operator, each, value))
    if isinstance(left, Constant):
        value = left.value
        return mapped(column_of(right, over), lambda each: apply(operator, value, each))
    return _paired(operator, column_of(left, over), column_of(right, over))


def _looked_up(operator: str, left: Operand, right: Operand, over: Columns) -> BoolArray | None:
    """The common cases by look-up: an attribute, or the tool, against a constant."""
    if operator == "==" and isinstance(left, Constant):
        left, right = right, left
    if isinstance(right, Constant) and right.value is not FAILED and not isinstance(left, Truth):
        column = column_of(left, over)
        if operator == "==":
            return column.equal_to(right.value)
        if operator == "contains":
            return column.holding(right.value)
    if operator == "contains" and isinstance(left, Constant) and isinstance(left.value, frozenset):
        return None if isinstance(right, Truth) else column_of(right, over).among(left.value)
    return None


def mapped(column: Column, work: Callable[[Value], Value]) -> Column:
    """One operand that is a column: once per distinct value. A failed one stays failed."""
    return Column(
        codes=column.codes, values=tuple(FAILED if value is FAILED else work(value) for value in column.values)
    )


def _paired(operator: str, left: Column, right: Column) -> Column:
    """Two operands that are columns: once per distinct pair."""
    pairs, codes = np.unique(left.codes * len(right.values) + right.codes, return_inverse=True)
    firsts, seconds = np.divmod(pairs, len(right.values))
    values = tuple(
        apply(operator, left.values[first], right.values[second])
        for first, second in zip(firsts.tolist(), seconds.tolist(), strict=True)
    )
    return Column(codes=codes.astype(np.int64), values=values)
