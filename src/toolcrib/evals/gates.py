"""Thresholds that a run must hold, for CI: a TOML file of figures with a least or a most.

    [metrics]
    "recall@5" = { min = 0.85 }
    "false_accept" = { max = 0.10 }

    [latency_ms]
    p95 = { max = 50 }

    [tags.billing]
    "recall@5" = { min = 0.90 }

    [sets.azure_mcp]
    mrr = { min = 0.7 }

    [compare]                        differences to the run of --compare, now minus before
    "recall@5" = { min = -0.01 }

Invariants
1. A figure that is not defined holds no threshold: it fails, with the reason. So does a tag that no case has.
2. An unknown figure is an error, not a threshold that always holds.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from toolcrib.errors import ConfigError
from toolcrib.evals.cases import read_lines

_PLAIN = ("metrics", "latency_ms", "compare", "exposure")
_NESTED = {"tags": "by_tag", "sets": "sets"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """One bound. `table`: as `metrics` or `tags.billing`. `least` or `most` may be None, not both."""

    table: tuple[str, ...]
    name: str
    least: float | None
    most: float | None

    def __str__(self) -> str:
        return f"{'.'.join(self.table)} {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortFall:
    """A threshold that does not hold. `got` is None where the figure is not defined."""

    threshold: str
    bound: str
    got: float | None
    why: str = ""

    def __str__(self) -> str:
        got = f"is {self.got:.4g}" if self.got is not None else "is not defined"
        return f"{self.threshold} {got}, {self.bound}" + (f" ({self.why})" if self.why else "")


def read_gate(path: Path) -> tuple[Threshold, ...]:
    """The thresholds of a file.

    Raises:
        ConfigError: it is no TOML, names an unknown table, or a threshold is no { min, max } of finite numbers.
    """
    try:
        document = tomllib.loads("\n".join(read_lines(path)))
    except tomllib.TOMLDecodeError as fault:
        raise ConfigError(f"it is not TOML: {fault}", where=str(path), hint=_HINT) from fault
    found = tuple(_thresholds(document, where=str(path)))
    if not found:
        raise ConfigError("there is no threshold in it", where=str(path), hint=_HINT)
    return found


_HINT = 'for example [metrics] and below it "recall@5" = { min = 0.8 }'


def _thresholds(document: Mapping[str, Any], *, where: str) -> Iterator[Threshold]:
    for table, rows in document.items():
        if table not in _PLAIN and table not in _NESTED:
            known = [*_PLAIN, *_NESTED]
            close = get_close_matches(table, known, n=1)
            hint = f"did you mean [{close[0]}]?" if close else f"there are: {', '.join(known)}"
            raise ConfigError(f"there is no table [{table}]", where=where, hint=hint)
        if not isinstance(rows, Mapping):
            raise ConfigError(f"[{table}] must be a table", where=where, hint=_HINT)
        if table in _PLAIN:
            yield from (_threshold((table,), name, bound, where=where) for name, bound in rows.items())
            continue
        for inner, bounds in rows.items():
            if not isinstance(bounds, Mapping):
                raise ConfigError(f"[{table}.{inner}] must be a table", where=where, hint=_HINT)
            yield from (_threshold((table, inner), name, bound, where=where) for name, bound in bounds.items())


def _threshold(table: tuple[str, ...], name: str, bound: Any, *, where: str) -> Threshold:
    place = f"{where}: [{'.'.join(table)}] {name}"
    if not isinstance(bound, Mapping) or not bound or not set(bound) <= {"min", "max"}:
        raise ConfigError("a threshold is { min = number }, { max = number } or both", where=place, hint=_HINT)
    for value in bound.values():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ConfigError("min and max are numbers; shares are 0 to 1", where=place, hint=_HINT)
        if not math.isfinite(value):
            raise ConfigError("min and max are finite: nan and inf bound nothing", where=place, hint=_HINT)
    return Threshold(table=table, name=name, least=bound.get("min"), most=bound.get("max"))


def fallen_short(thresholds: tuple[Threshold, ...], summary: Mapping[str, Any]) -> tuple[ShortFall, ...]:
    """The thresholds that do not hold.

    Args:
        summary: as `summary.summarised` gives it, with `compare` where runs were compared.
    Raises:
        ConfigError: a threshold is on a figure that there is not.
    """
    return tuple(short for one in thresholds for short in _shortfalls(one, summary))


def _shortfalls(threshold: Threshold, summary: Mapping[str, Any]) -> Iterator[ShortFall]:
    bounds = []
    if threshold.least is not None:
        bounds.append(f"at least {threshold.least:g} is asked")
    if threshold.most is not None:
        bounds.append(f"at most {threshold.most:g} is asked")
    figures, why = _figures(threshold, summary)
    if figures is None:
        yield ShortFall(threshold=str(threshold), bound=bounds[0], got=None, why=why)
        return
    if threshold.name not in figures:
        close = get_close_matches(threshold.name, list(figures), n=1)
        hint = f'did you mean "{close[0]}"?' if close else f"there are: {', '.join(figures)}"
        raise ConfigError(f'there is no figure "{threshold.name}"', where=f"[{'.'.join(threshold.table)}]", hint=hint)
    got = figures[threshold.name]
    if isinstance(got, Mapping):
        got = got.get("mean")
    if got is None:
        notes = [note for note in summary.get("notes", ()) if threshold.name.split("@")[0] in note]
        yield ShortFall(threshold=str(threshold), bound=bounds[0], got=None, why="; ".join(notes))
        return
    if threshold.least is not None and got < threshold.least:
        yield ShortFall(threshold=str(threshold), bound=bounds[0], got=got)
    if threshold.most is not None and got > threshold.most:
        yield ShortFall(threshold=str(threshold), bound=bounds[-1], got=got)


def _figures(threshold: Threshold, summary: Mapping[str, Any]) -> tuple[Mapping[str, Any] | None, str]:
    """The figures that a threshold is among, or why there are none."""
    table = threshold.table[0]
    if table == "exposure":
        return summary["stages"]["exposure"], ""
    if table == "compare":
        if not summary.get("compare"):
            return None, "nothing was compared: give --compare FILE"
        return summary["compare"]["metrics"], ""
    if table in _NESTED:
        found = summary[_NESTED[table]].get(threshold.table[1])
        return found, "" if found else f"no case has this {table.removesuffix('s')}"
    return summary[table], ""
