"""Decision classes: tools that no policy can tell apart are judged once.

Below: `entities.py`, `columns.py`. Above: `engine.py`.

Invariants
1. Two tools of one class agree in everything that a policy can see of them. All attributes of the schema are in the
   key; the id and the name are not, so
2. a tool that a policy names is alone in its class, and where a policy reads `resource.name` the name is in the key.
3. Classes are numbered in the order of their first tool, which represents the class.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import cedarpy
import numpy as np

from toolcrib.policy.columns import Columns, columns
from toolcrib.policy.entities import tool_attributes, tool_entity
from toolcrib.types import IntArray, Tool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DecisionClasses:
    """The classes of a snapshot's tools under one policy text.

    Args:
        class_of: int64, shape (n_tools,), read-only: the class of each tool.
        representatives: a tool per class.
        entities: the representatives as Cedar reads them, parsed once.
        columns: the same, an array per attribute.
        faults: class -> why Cedar cannot read its tools; they are denied, the others are unaffected.
        tool_idx: tool id -> tool number.
    """

    class_of: IntArray
    representatives: tuple[Tool, ...]
    entities: cedarpy.Entities
    columns: Columns
    faults: Mapping[int, str]
    tool_idx: Mapping[str, int]

    def number_of(self, tool_id: str) -> int | None:
        """The number of a tool in the snapshot, or None where it is not in service."""
        return self.tool_idx.get(tool_id)


def decision_classes(
    tools: Sequence[Tool], *, named_tools: frozenset[str], by_name: bool, schema: cedarpy.Schema
) -> DecisionClasses:
    """Tools grouped by what policies can see of them.

    Args:
        named_tools: tool ids that policies name.
        by_name: a policy reads `resource.name`.
    """
    class_of = np.empty(len(tools), dtype=np.int64)
    number: dict[tuple[Any, ...], int] = {}
    representatives: list[Tool] = []
    for tool_idx, tool in enumerate(tools):
        key = _key(tool, named=tool.tool_id in named_tools, by_name=by_name)
        class_idx = number.setdefault(key, len(number))
        if class_idx == len(representatives):
            representatives.append(tool)
        class_of[tool_idx] = class_idx
    class_of.flags.writeable = False
    entities, faults = _store(representatives, schema)
    return DecisionClasses(
        class_of=class_of,
        representatives=tuple(representatives),
        entities=entities,
        columns=columns(representatives),
        faults=faults,
        tool_idx={tool.tool_id: tool_idx for tool_idx, tool in enumerate(tools)},
    )


def _key(tool: Tool, *, named: bool, by_name: bool) -> tuple[Any, ...]:
    values = tuple(tool_attributes(tool).values())
    shown = values if by_name else values[:-1]
    return (tool.tool_id, *shown) if named else ("", *shown)


def _store(representatives: Sequence[Tool], schema: cedarpy.Schema) -> tuple[cedarpy.Entities, dict[int, str]]:
    """The representatives as one entity store, without those that Cedar refuses (a lone surrogate in a name)."""
    entities = [tool_entity(tool) for tool in representatives]
    try:
        return cedarpy.Entities.from_json_str(json.dumps(entities), schema), {}
    except ValueError:
        faults = {idx: fault for idx, entity in enumerate(entities) if (fault := _fault(entity, schema))}
        kept = [entity for idx, entity in enumerate(entities) if idx not in faults]
        return cedarpy.Entities.from_json_str(json.dumps(kept), schema), faults


def _fault(entity: dict[str, Any], schema: cedarpy.Schema) -> str:
    try:
        cedarpy.Entities.from_json_str(json.dumps([entity]), schema)
    except ValueError as fault:
        return f"the tool cannot be put before policy: {fault}"
    return ""
