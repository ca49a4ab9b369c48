"""What is left of a policy once the caller is known, worked out over all decision classes at once.

Below: `operands.py`, `columns.py`, `values.py`. Above: `partial.py` asks Cedar for the residuals.

A residual is Cedar's own JSON of an expression in which `resource` alone is unknown. `&&`, `||` and `if` look at the
second operand only where the first one says so, as Cedar does: an error there is no error elsewhere.

Invariant
1. Exact or not at all: what is not known to be worked out just as Cedar would raises `NotExact`, and the caller of this
   asks Cedar class by class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from toolcrib.policy.columns import Column, Columns
from toolcrib.policy.operands import (
    THE_RESOURCE,
    Constant,
    Operand,
    Resource,
    Truth,
    binary,
    column_of,
    either,
    mapped,
    negation,
    truth_of,
)
from toolcrib.policy.values import (
    ADDED,
    BINARY,
    FAILED,
    Long,
    Pattern,
    Uid,
    Value,
    is_empty,
    like,
    negated,
)

Node: TypeAlias = Mapping[str, Any]
"""An expression in Cedar's JSON: one operator and its operands."""

_RESOURCE: Final = [{"Value": "resource"}]


class NotExact(Exception):  # noqa: N818 - no error: another way is taken
    """This residual is beyond what is worked out here; no fault, and nobody outside this room sees it."""


def satisfied(residual: Mapping[str, Any], over: Columns) -> Truth:
    """For which classes this policy is satisfied.

    Raises:
        NotExact: it reads something that is not worked out here.
    """
    if any(residual[scope]["op"] != "All" for scope in ("principal", "action", "resource")):
        raise NotExact("a scope is left over")
    whole: Operand = Constant(True)
    for condition in residual["conditions"]:
        body = _without_true(condition["body"])
        whole = _and(whole, body if condition["kind"] == "when" else {"!": {"arg": body}}, over)
    return truth_of(whole, over)


def _without_true(body: Node) -> Node:
    """What is left of `true && true && … && x` where a Bool is wanted: Cedar leaves one `true` per scope."""
    while "&&" in body and _is_true(body["&&"]["left"]):
        body = body["&&"]["right"]
    return body


def _is_true(node: Node) -> bool:
    return node.get("Value") is True  # not `==`: to Python, the number 1 is equal to it


def _operand(node: Node, over: Columns) -> Operand:
    if len(node) != 1:
        raise NotExact("an expression of more than one operator")
    ((operator, inner),) = node.items()
    if work := _OPERATORS.get(operator):
        return work(inner, over)
    if operator in BINARY:
        return binary(operator, _operand(inner["left"], over), _operand(inner["right"], over), over)
    raise NotExact(f"the operator {operator}")


def _value(inner: Any, _over: Columns) -> Operand:
    return Constant(_literal(inner))


def _unknown(inner: Any, _over: Columns) -> Operand:
    if inner != _RESOURCE:
        raise NotExact("something besides the resource is unknown")
    return THE_RESOURCE


def _literal(said: Any) -> Value:
    match said:
        case bool() | str():
            return said
        case int():
            return Long(said)
        case list():
            return frozenset(_literal(element) for element in said)
        case {"__entity": {"type": str(kind), "id": str(entity_id)}} if len(said) == 1:
            return Uid(kind, entity_id)
    raise NotExact("a record or a value of an extension")


def _pattern(said: Sequence[Any]) -> Pattern:
    parts = [""]
    for element in said:
        if element == "Wildcard":
            parts.append("")
        else:
            parts[-1] += element["Literal"]
    return tuple(parts)


# --- truth ------------------------------------------------------------------------------------------------------------


def _both(inner: Node, over: Columns) -> Operand:
    return _and(_operand(inner["left"], over), inner["right"], over)


def _and(left: Operand, right: Node, over: Columns) -> Operand:
    if isinstance(left, Constant) and left.value is True:
        return _checked(_operand(right, over), over)
    if _is_true(right):
        return _checked(left, over)
    first = truth_of(left, over)
    if not first.holds.any():
        return first
    second = truth_of(_operand(right, over), over)
    late = None if second.failed is None else first.holds & second.failed
    return Truth(holds=first.holds & second.holds, failed=either(first.failed, late))


def _or(inner: Node, over: Columns) -> Operand:
    left, right = _operand(inner["left"], over), inner["right"]
    if isinstance(left, Constant) and left.value is False:
        return _checked(_operand(right, over), over)
    first = truth_of(left, over)
    goes_on = ~first.holds if first.failed is None else ~(first.holds | first.failed)
    if not goes_on.any():
        return first
    second = truth_of(_operand(right, over), over)
    late = None if second.failed is None else goes_on & second.failed
    return Truth(holds=first.holds | (goes_on & second.holds), failed=either(first.failed, late))


def _checked(operand: Operand, over: Columns) -> Operand:
    """The second operand of `&&` or `||`: a Bool, or an error."""
    return operand if isinstance(operand, Constant) and isinstance(operand.value, bool) else truth_of(operand, over)


def _negated_truth(inner: Node, over: Columns) -> Operand:
    return negation(truth_of(_operand(inner["arg"], over), over))


def _if(inner: Node, over: Columns) -> Operand:
    condition = truth_of(_operand(inner["if"], over), over)
    first, second = (column_of(_operand(inner[branch], over), over) for branch in ("then", "else"))
    codes = np.where(condition.holds, first.codes, second.codes + len(first.values))
    if condition.failed is not None:
        codes = np.where(condition.failed, len(first.values) + len(second.values), codes)
    return Column(codes=codes, values=(*first.values, *second.values, FAILED))


# --- the tool ---------------------------------------------------------------------------------------------------------


def _attribute(inner: Node, over: Columns) -> Operand:
    if not isinstance(_operand(inner["left"], over), Resource):
        raise NotExact("an attribute of something else than the resource")
    return over.attributes.get(inner["attr"], Constant(FAILED))


def _has(inner: Node, over: Columns) -> Operand:
    if not isinstance(_operand(inner["left"], over), Resource):
        raise NotExact("an attribute of something else than the resource")
    return Constant(inner["attr"] in over.attributes)


def _is(inner: Node, over: Columns) -> Operand:
    if not isinstance(_operand(inner["left"], over), Resource):
        raise NotExact("the type of something else than the resource")
    is_tool = Constant(inner["entity_type"] == "Tool")
    return (
        is_tool
        if "in" not in inner
        else _and(is_tool, {"in": {"left": {"unknown": _RESOURCE}, "right": inner["in"]}}, over)
    )


def _in(inner: Node, over: Columns) -> Operand:
    of, groups = _operand(inner["left"], over), _operand(inner["right"], over)
    if not isinstance(of, Resource) and not any(isinstance(value, Uid) for value in column_of(of, over).values):
        return Constant(FAILED)
    if not isinstance(of, Resource) or not isinstance(groups, Constant):
        raise NotExact("ancestors of something else than the resource, or groups that differ from tool to tool")
    named = groups.value if isinstance(groups.value, frozenset) else frozenset([groups.value])
    if not all(isinstance(group, Uid) for group in named):
        return Constant(FAILED)
    return Truth(holds=over.within(named))


# --- values -----------------------------------------------------------------------------------------------------------


def _like(inner: Node, over: Columns) -> Operand:
    column, pattern = column_of(_operand(inner["left"], over), over), _pattern(inner["pattern"])
    if all(isinstance(value, str) for value in column.values[:1]):
        known = column.kept(("like", pattern), lambda value: like(value, pattern) is True)
        if known is not None:
            return Truth(holds=known)
    return mapped(column, lambda value: like(value, pattern))


def _is_empty(inner: Node, over: Columns) -> Operand:
    column = column_of(_operand(inner["arg"], over), over)
    if all(isinstance(value, frozenset) for value in column.values[:1]):
        known = column.kept("isEmpty", lambda value: is_empty(value) is True)
        if known is not None:
            return Truth(holds=known)
    return mapped(column, is_empty)


def _minus(inner: Node, over: Columns) -> Operand:
    return mapped(column_of(_operand(inner["arg"], over), over), negated)


def _unequal(inner: Node, over: Columns) -> Operand:
    return negation(truth_of(binary("==", _operand(inner["left"], over), _operand(inner["right"], over), over), over))


def _greater(inner: Node, over: Columns) -> Operand:
    return binary("<", _operand(inner["right"], over), _operand(inner["left"], over), over)


def _at_least(inner: Node, over: Columns) -> Operand:
    return binary("<=", _operand(inner["right"], over), _operand(inner["left"], over), over)


def _set(elements: Sequence[Node], over: Columns) -> Operand:
    operands = [_operand(element, over) for element in elements]
    known = [operand.value for operand in operands if isinstance(operand, Constant)]
    if FAILED in known:
        return Constant(FAILED)
    whole: Operand = Constant(frozenset(known))
    for operand in operands:
        if not isinstance(operand, Constant):
            whole = binary(ADDED, whole, operand, over)
    return whole


_OPERATORS: Final[Mapping[str, Callable[[Any, Columns], Operand]]] = {
    "Value": _value,
    "unknown": _unknown,
    ".": _attribute,
    "&&": _both,
    "||": _or,
    "!": _negated_truth,
    "if-then-else": _if,
    "has": _has,
    "is": _is,
    "in": _in,
    "like": _like,
    "isEmpty": _is_empty,
    "neg": _minus,
    "Set": _set,
    "!=": _unequal,
    ">": _greater,
    ">=": _at_least,
}
"""What is worked out here, besides `BINARY`."""
