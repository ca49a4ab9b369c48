"""What tells two tools of one capability apart, and in which words it is said.

Above: `prefer.py`. Below: `health.py`, for what a report means.

    health    the server is not asked at present: last; recent calls fail or come late too often: behind the others
    order     the place in the `equivalent` group; tools that the group does not name come after those it names
    risk      read, write, destructive
    cost      the smaller `cost` first
    latency   the smaller `latency_ms` first

For cost and latency, 0 is what a tool has that nobody put a figure to, and counts as least: whoever wants a tool used
less says what it costs. A figure is a reason against a tool, never for it.

Invariants
1. Reasons may be shown to the caller: they name a tool of its ranking, and no figure of other callers' calls (I1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from toolcrib.errors import ConfigError
from toolcrib.routing.health import is_poor
from toolcrib.types import Tool, ToolHealth

REPLACEMENT = "replacement"
_WORDS = {
    "order": "{0} serves the same and comes first in its owner's order",
    "risk": "{0} serves the same and does less harm",
    "cost": "{0} serves the same and costs less",
    "latency": "{0} serves the same and answers faster",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighing:
    """Tools weighed by preferences, the first that tells two apart deciding.

    Args:
        preferences: names, without `replacement`, which is a matter of two tools and not of one.
        health: by tool id; a tool that is not there has nothing against it.
    """

    preferences: tuple[str, ...]
    health: Mapping[str, ToolHealth]

    def ranks(self, tool: Tool, *, order: Sequence[str] = ()) -> tuple[float, ...]:
        """A number per preference, the smaller the better; to be compared within one group only.

        Args:
            order: of the tool's group, as its owner wrote it.
        """
        return tuple(self._rank(name, tool, order) for name in self.preferences)

    def deciding(self, better: Tool, worse: Tool, *, order: Sequence[str] = ()) -> str:
        """The preference that puts `better` first; "" where none does."""
        pairs = zip(self.preferences, self.ranks(better, order=order), self.ranks(worse, order=order), strict=True)
        name, first, second = next(((n, a, b) for n, a, b in pairs if a != b), ("", 0.0, 0.0))
        return name if first < second else ""

    def reason(self, name: str, *, better: Tool, worse: Tool) -> str:
        """Why `worse` is behind `better`, in words for the caller."""
        if name != "health":
            return _WORDS[name].format(better.tool_id)
        health = self.health[worse.tool_id]
        if health.circuit_open:
            return f"{better.tool_id} serves the same, and the server of this one does not answer at present"
        trouble = "come late" if health.n_late > health.n_failed else "fail"
        return f"{better.tool_id} serves the same, and recent calls of this one {trouble} more often"

    def _rank(self, name: str, tool: Tool, order: Sequence[str]) -> float:
        match name:
            case "health":
                health = self.health.get(tool.tool_id)
                return 2 if health is not None and health.circuit_open else int(is_poor(health))
            case "order":
                return order.index(tool.tool_id) if tool.tool_id in order else len(order)
            case "risk":
                return tool.metadata.risk.level
            case "cost":
                return tool.metadata.cost
            case "latency":
                return tool.metadata.latency_ms
        raise ConfigError(f"there is no preference {name!r}", hint=f"use {REPLACEMENT}, health, {', '.join(_WORDS)}")
