"""Whether a candidate may be released: a TOML file of bounds on the figures of `shadow.py`.

    [shadow]
    min_compared = 500               # selects that were compared
    min_labelled = 50                # of these, with a call afterwards
    min_agreement = 0.8              # share with the same first tool
    min_overlap = 0.6
    max_outcomes_changed = 0.02
    max_lost_calls = 0.01            # share of labelled selects whose called tool would not have been offered
    min_recall_difference = -0.01    # of called tools, candidate minus present
    max_tokens_ratio = 1.1
    max_latency_ratio = 2.0          # of the 95th percentiles
    max_gained_tools = 0             # tools that somebody's reach would gain
    max_lost_tools = 0
    max_failed = 0.0
    max_dropped = 0.05

Invariants
1. A figure that is not known holds no bound: it fails, and says so.
2. An unknown bound is an error, not a bound that always holds.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from toolcrib.errors import ConfigError
from toolcrib.evals.cases import read_lines

_FIGURES: Mapping[str, tuple[str, ...]] = {
    "compared": ("n_compared",),
    "labelled": ("n_labelled",),
    "agreement": ("agreement", "first"),
    "overlap": ("agreement", "overlap"),
    "outcomes_changed": ("outcomes", "changed"),
    "lost_calls": ("calls", "lost"),
    "recall": ("calls", "recall_candidate"),
    "recall_difference": ("calls", "difference", "mean"),
    "tokens_ratio": ("tokens", "ratio"),
    "latency_ratio": ("latency_ms", "ratio"),
    "gained_tools": ("reach", "n_gained_tools"),
    "lost_tools": ("reach", "n_lost_tools"),
    "failed": ("failed",),
    "dropped": ("dropped",),
}
"""Figure -> where it stands in the report."""
_MORE_IS_BETTER = ("compared", "labelled", "agreement", "overlap", "recall", "recall_difference")
BOUNDS = tuple(f"{'min' if name in _MORE_IS_BETTER else 'max'}_{name}" for name in _FIGURES)
_HINT = "for example [shadow] and below it min_agreement = 0.8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """One bound and whether the figures hold it. `got` is None where the figure is not known."""

    name: str
    bound: float
    got: float | None
    holds: bool

    def __str__(self) -> str:
        got = "is not known" if self.got is None else f"is {self.got:.4g}"
        most = "at least" if self.name.startswith("min_") else "at most"
        return f"{self.name.partition('_')[2]} {got}, {most} {self.bound:g} is asked"


def read_bounds(path: Path) -> dict[str, float]:
    """Bounds by name.

    Raises:
        ConfigError: the file cannot be read, is no TOML, or names a bound that there is not.
    """
    try:
        document = tomllib.loads("\n".join(read_lines(path)))
    except tomllib.TOMLDecodeError as fault:
        raise ConfigError(f"it is not TOML: {fault}", where=str(path), hint=_HINT) from fault
    table = document.get("shadow")
    if set(document) != {"shadow"} or not isinstance(table, Mapping) or not table:
        raise ConfigError("it holds one table [shadow] with bounds, and nothing else", where=str(path), hint=_HINT)
    for name, value in table.items():
        if name not in BOUNDS:
            close = get_close_matches(name, BOUNDS, n=1)
            hint = f"did you mean {close[0]}?" if close else f"there are: {', '.join(BOUNDS)}"
            raise ConfigError(f"there is no bound {name!r}", where=str(path), hint=hint)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ConfigError(f"{name} must be a number", where=str(path), hint="shares are 0 to 1")
    return dict(table)


def held(bounds: Mapping[str, float], figures: Mapping[str, Any]) -> tuple[Bound, ...]:
    """Each bound against the figures, in the order of the file."""
    found = []
    for name, bound in bounds.items():
        side, _, figure = name.partition("_")
        got: Any = figures
        for key in _FIGURES[figure]:
            got = got.get(key) if isinstance(got, Mapping) else None
        holds = got is not None and (got >= bound if side == "min" else got <= bound)
        found.append(Bound(name=name, bound=bound, got=got, holds=holds))
    return tuple(found)
