"""What lint says about one place of a definition, and how much it matters.

Above: every source of findings (`lint.py`, `probe.py`, `model.py`) and everything that shows them.

Invariants
1. A finding never clears or blocks by itself: it ranks what a reviewer reads first.
2. Evidence is safe to print: characters that a reader would not see are written out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """`info`: good to know. `review`: read this before approving. `block`: approve only with a reason."""

    INFO = "info"
    REVIEW = "review"
    BLOCK = "block"

    @property
    def order(self) -> int:
        """0 info, 1 review, 2 block."""
        return list(Level).index(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing to look at. `pointer` is a JSON pointer into the definition; `evidence` shows hidden characters."""

    rule: str
    level: Level = Level.REVIEW
    pointer: str
    evidence: str
    why: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", Level(self.level))  # findings kept as JSON come back with words


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Each finding once, the gravest first; ties by rule, then by place."""
    return tuple(sorted(dict.fromkeys(findings), key=lambda f: (-f.level.order, f.rule, f.pointer, f.evidence)))


def worst(findings: Iterable[Finding]) -> Level | None:
    """The gravest level among them; None where there are none."""
    return max((f.level for f in findings), key=lambda level: level.order, default=None)
