"""The tools that hard constraints took out, each with its reason: a sequence of moves that are made when looked at.

A view of 100,000 tools may lose most of them, and hundreds of views are remembered: an array of numbers and a few
sentences are kept, not a hundred thousand objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from toolcrib.types import IntArray, RouteMove, Tool


class Drops(Sequence[RouteMove]):
    """Moves with the action `dropped`, in the order of their tools. Immutable.

    Args:
        tools: of the snapshot.
        numbers: int64, shape (n_dropped,), ascending: the tools that were taken out.
        ground_of: int64, shape (n_dropped,): a place in `grounds` for each of them.
        grounds: (code, reason).
    """

    __slots__ = ("_ground_of", "_grounds", "_numbers", "_tools")

    def __init__(
        self, tools: Sequence[Tool], *, numbers: IntArray, ground_of: IntArray, grounds: Sequence[tuple[str, str]]
    ) -> None:
        self._tools = tools
        self._numbers = numbers
        self._ground_of = ground_of
        self._grounds = tuple(grounds)

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, place: int) -> RouteMove: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[RouteMove]: ...
    def __getitem__(self, place: int | slice) -> RouteMove | Sequence[RouteMove]:
        if isinstance(place, slice):
            return Drops(
                self._tools,
                numbers=self._numbers[place],
                ground_of=self._ground_of[place],
                grounds=self._grounds,
            )
        code, reason = self._grounds[self._ground_of[place]]
        return RouteMove(tool_id=self._tools[self._numbers[place]].tool_id, action="dropped", code=code, reason=reason)

    def by_ground(self) -> Iterator[tuple[str, str, IntArray]]:
        """(code, reason, tool numbers ascending) for each reason that took a tool out: how a trace keeps them."""
        for number, (code, reason) in enumerate(self._grounds):
            mine = self._numbers[self._ground_of == number]
            if len(mine):
                yield code, reason, mine

    def __repr__(self) -> str:
        return f"Drops({[(code, reason, len(numbers)) for code, reason, numbers in self.by_ground()]})"
