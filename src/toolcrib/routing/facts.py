"""What operating rules read of the tools of one snapshot, as columns of small integers.

    tools ─▶ routing_facts ─▶ a column for each: regions, environments, (data class, residency), risk

Above: `admissible.py`, which judges each distinct value once and spreads the answer over the tools with NumPy; the
pipeline makes the facts once per snapshot. A catalog of 10,000 tools has a handful of distinct values per column.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from toolcrib.types import IntArray, Risk, Tool

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Column(Generic[T]):
    """One attribute of all tools: tool `n` has `values[code_of[n]]`.

    Args:
        code_of: int64, shape (n_tools,), read-only.
        values: the distinct values, in the order of their first tool.
    """

    code_of: IntArray
    values: tuple[T, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RoutingFacts:
    """What hard constraints read of a snapshot's tools, and nothing else of them.

    Args:
        kept: (data class, residency): what a residency rule reads.
    """

    regions: Column[tuple[str, ...]]
    environments: Column[tuple[str, ...]]
    kept: Column[tuple[str, tuple[str, ...]]]
    risk: Column[Risk]

    @property
    def n_tools(self) -> int:
        return len(self.risk.code_of)


def routing_facts(tools: Sequence[Tool]) -> RoutingFacts:
    """The facts of these tools, in their order. Once per snapshot: about 1 ms for 1,000 tools."""
    said = [tool.metadata for tool in tools]
    return RoutingFacts(
        regions=_column(m.regions for m in said),
        environments=_column(m.environments for m in said),
        kept=_column((m.data_class, m.residency) for m in said),
        risk=_column(m.risk for m in said),
    )


def _column(values: Iterable[T]) -> Column[T]:
    number: dict[T, int] = {}
    code_of = np.array([number.setdefault(value, len(number)) for value in values], dtype=np.int64)
    code_of.flags.writeable = False
    return Column(code_of=code_of, values=tuple(number))
