"""What policy can read of the decision classes, turned on its side: a column per attribute, a row per class.

Below: `entities.py`, `values.py`. Above: `classes.py` makes them once per snapshot, `operands.py` reads them.

A column keeps each distinct value once and a code per class, so that an operator is worked out once per distinct value.

Invariants
1. Row n is what Cedar would read of the representative of class n: attributes, id and ancestors.
2. Columns do not change. What is worked out on the way is kept: bounded by the values and by the policy text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from toolcrib.policy.entities import Attribute, tool_attributes, tool_entity
from toolcrib.policy.values import Uid, Value
from toolcrib.types import BoolArray, IntArray, Tool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Column:
    """A value per class.

    Args:
        codes: int64, shape (n_classes,): positions in `values`.
        values: without repetition in a column that `Columns` holds; a computed one may repeat them.
        places: value -> its code, where values do not repeat; else None.
    """

    codes: IntArray
    values: tuple[Value, ...]
    places: Mapping[Value, int] | None = None
    _kept: dict[object, BoolArray] = field(default_factory=dict, repr=False)
    _holders: dict[Value, list[int]] = field(default_factory=dict, repr=False)

    def equal_to(self, value: Value) -> BoolArray | None:
        """bool, shape (n_classes,): where the value stands; None where values may repeat."""
        return None if self.places is None else self.codes == self.places.get(value, -1)

    def among(self, wanted: frozenset[Value]) -> BoolArray | None:
        """bool, shape (n_classes,): where one of these values stands; None where values may repeat."""
        if self.places is None:
            return None
        return self._at([self.places[value] for value in wanted if value in self.places])

    def holding(self, value: Value) -> BoolArray | None:
        """bool, shape (n_classes,): where the set holds this value; None where not all values are known to be sets."""
        return None if self.places is None or not self._holders else self._at(self._holders.get(value, []))

    def kept(self, key: object, work: Callable[[Value], bool]) -> BoolArray | None:
        """bool, shape (n_classes,): an operator over all values, worked out once per `key`.

        The keys must come from the policy text, never from a caller: they are kept as long as the column is.
        """
        if self.places is None:
            return None
        known = self._kept.get(key)
        if known is None:
            known = self._kept[key] = np.array([work(value) for value in self.values], dtype=np.bool_)[self.codes]
        return known

    def _at(self, codes: Sequence[int]) -> BoolArray:
        chosen = np.zeros(len(self.values), dtype=np.bool_)
        chosen[codes] = True
        return chosen[self.codes]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Columns:
    """The columns of one set of classes.

    Args:
        attributes: attribute of a tool -> its column.
        tools: the representatives' own ids.
        members: entity -> int64, the classes that are in it, itself included.
    """

    n_classes: int
    attributes: Mapping[str, Column]
    tools: Column
    members: Mapping[Uid, IntArray]

    def within(self, groups: frozenset[Value]) -> BoolArray:
        """bool, shape (n_classes,): `resource in [...]` for named entities."""
        inside = np.zeros(self.n_classes, dtype=np.bool_)
        for group in groups:
            if isinstance(group, Uid) and group in self.members:
                inside[self.members[group]] = True
        return inside


def columns(representatives: Sequence[Tool]) -> Columns:
    """The columns of these tools, one row each, in their order."""
    rows = [tool_attributes(tool) for tool in representatives]
    names = rows[0] if rows else ()
    ids = [Uid("Tool", tool.tool_id) for tool in representatives]
    members: dict[Uid, list[int]] = {}
    for row, (uid, tool) in enumerate(zip(ids, representatives, strict=True)):
        members.setdefault(uid, []).append(row)
        for parent in tool_entity(tool)["parents"]:
            members.setdefault(Uid(parent["type"], parent["id"]), []).append(row)
    return Columns(
        n_classes=len(rows),
        attributes={name: _column([_value(row[name]) for row in rows]) for name in names},
        tools=_column(ids),
        members={uid: np.array(found, dtype=np.int64) for uid, found in members.items()},
    )


def _column(values: Sequence[Value]) -> Column:
    places: dict[Value, int] = {}
    codes = np.array([places.setdefault(value, len(places)) for value in values], dtype=np.int64)
    holders: dict[Value, list[int]] = {}
    for value, code in places.items():
        for element in value if isinstance(value, frozenset) else ():
            holders.setdefault(element, []).append(code)
    return Column(codes=codes, values=tuple(places), places=places, _holders=holders)


def _value(attribute: Attribute) -> Value:
    return frozenset(attribute) if isinstance(attribute, tuple) else attribute
