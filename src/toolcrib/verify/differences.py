"""Where two answers part, and the fewest changes that make them. Pure.

Above: `isolation.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from toolcrib.verify.asking import Request

_AROUND = 60
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterexample:
    """The smallest proof found that a promise is broken.

    Args:
        variant: which change of the catalog, or which rule of parity. tools: what was done to which tools.
        offset: bytes into the answer at which the two sides part. before, after: both sides around it.
    """

    caller: str
    surface: str
    request: str
    variant: str
    tools: tuple[str, ...]
    offset: int
    before: str
    after: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def lines(self) -> list[str]:
        """For people."""
        return [
            f"caller   {self.caller}",
            f"surface  {self.surface}",
            f"request  {self.request}",
            f"because  {self.variant}",
            *(f"  tool   {tool}" for tool in self.tools),
            f"at byte {self.offset}:",
            f"  before {self.before}",
            f"  after  {self.after}",
        ]


def counterexample(
    one: Request, before: bytes, after: bytes, *, caller: str, variant: str, tools: Sequence[str]
) -> Counterexample:
    """A counterexample from two answers that differ."""
    offset = first_difference(before, after)
    return Counterexample(
        caller=caller,
        surface=one.surface,
        request=one.what,
        variant=variant,
        tools=tuple(tools),
        offset=offset,
        before=excerpt(before, offset),
        after=excerpt(after, offset),
    )


def first_difference(before: bytes, after: bytes) -> int:
    """The first byte at which they differ; the length of the shorter where one begins the other."""
    shared = min(len(before), len(after))
    return next((at for at in range(shared) if before[at] != after[at]), shared)


def excerpt(answer: bytes, offset: int) -> str:
    """The answer around that byte, on one line."""
    start, end = max(0, offset - _AROUND), offset + _AROUND
    text = answer[start:end].decode("utf-8", "replace").replace("\n", "\\n")
    return ("…" if start else "") + text + ("…" if end < len(answer) else "")


def smallest(items: Sequence[_T], breaks: Callable[[Sequence[_T]], bool], *, max_trials: int) -> tuple[_T, ...]:
    """A small part of the items that still breaks it; all of them break it. No single one of it can be left out,
    unless the trials ran out before.

    Source:
        Zeller, Hildebrandt: Simplifying and isolating failure-inducing input (2002), ddmin.
    """
    kept, n_parts, n_trials = tuple(items), 2, 0
    while len(kept) > 1 and n_trials < max_trials:
        size = -(-len(kept) // n_parts)
        parts = [kept[at : at + size] for at in range(0, len(kept), size)]
        rests = [tuple(item for item in kept if item not in part) for part in parts] if len(parts) > 2 else []
        for candidate in (*parts, *rests):
            n_trials += 1
            if candidate and breaks(candidate):
                n_parts = 2 if candidate in parts else max(n_parts - 1, 2)
                kept = candidate
                break
            if n_trials >= max_trials:
                break
        else:
            if n_parts >= len(kept):
                break
            n_parts = min(2 * n_parts, len(kept))
    return kept
