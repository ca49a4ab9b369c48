"""What lint is worth on labelled definitions: how many poisoned ones it finds, and how many honest ones it raises.

    {"id", "server", "name", "description", "input_schema", "label", "attack_class"?, "source"?, "annotations"?}

Each source of a file is a catalog of its own: rows of one server are siblings, other servers of the source are foreign.
Nothing else is known around a row, so a file with all tools of its servers is judged as a crib would judge them.

Above: `toolcrib lint --score`, `benchmarks/lint.py`. Below: `lint.py`.

Invariants
1. Every row counts once, under its label; a row that cannot be read stops the scoring, with file and line.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any

from toolcrib.errors import CatalogError
from toolcrib.review.findings import Level, worst
from toolcrib.review.lint import lint, surroundings
from toolcrib.types import ListedTool

POISONED = ("poisoned", "attack", "malicious")
HONEST = ("published", "benign", "honest")
_Z = 1.959964
"""Of the normal distribution, for 95 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One labelled definition. `line`: its place in the file, from 1."""

    row_id: str
    entry: ListedTool
    poisoned: bool
    attack_class: str
    source: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A row and the gravest level that lint gave it; None where it found nothing."""

    row: Row
    level: Level | None

    def is_at(self, level: Level) -> bool:
        return self.level is not None and self.level.order >= level.order


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """`n_raised` of `n`, with its 95 % interval."""

    n_raised: int
    n: int

    @property
    def value(self) -> float | None:
        return self.n_raised / self.n if self.n else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Wilson's score interval.

        Source:
            Wilson, Probable inference, the law of succession, and statistical inference (1927).
        """
        if not self.n:
            return None
        share, n = self.n_raised / self.n, self.n
        middle = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
        half = _Z * sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2)) / (1 + _Z**2 / n)
        return max(0.0, middle - half), min(1.0, middle + half)


def read_rows(path: Path) -> tuple[Row, ...]:
    """The labelled definitions in a file of JSON lines.

    Raises:
        CatalogError: the file cannot be read, or a line is no such row; names the line.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")  # a text may hold what `splitlines` takes for an end
    except (OSError, UnicodeDecodeError) as fault:
        raise CatalogError(f"the rows cannot be read: {fault}", where=str(path)) from fault
    rows = tuple(_row(line, path, number) for number, line in enumerate(lines, start=1) if line.strip())
    if not rows:
        raise CatalogError(
            "there is no row in it", where=str(path), hint='{"id", "server", "name", ..., "label"} a line'
        )
    return rows


def _row(line: str, path: Path, number: int) -> Row:
    where = f"{path}:{number}"
    try:
        body = json.loads(line)
    except (ValueError, RecursionError) as fault:
        raise CatalogError(f"this is not JSON: {fault}", where=where) from fault
    if not isinstance(body, Mapping):
        raise CatalogError("a row must be an object", where=where)
    for key in ("server", "name", "label"):
        if not isinstance(body.get(key), str):
            raise CatalogError(f"`{key}` must be a text", where=where, hint="every row has server, name and label")
    if body["label"] not in (*POISONED, *HONEST):
        hint = f"poisoned ones: {', '.join(POISONED)}; others: {', '.join(HONEST)}"
        raise CatalogError(f"unknown label {body['label']!r}", where=where, hint=hint)
    return Row(
        row_id=str(body.get("id") or number),
        entry=ListedTool(
            server_id=body["server"], name=body["name"], definition=_definition(body), digest=f"row:{number}"
        ),
        poisoned=body["label"] in POISONED,
        attack_class=str(body.get("attack_class") or "unnamed"),
        source=str(body.get("source") or ""),
        line=number,
    )


def _definition(body: Mapping[str, Any]) -> dict[str, Any]:
    """The row as its server would list it; keys that only labelling needs are left out."""
    schema = body.get("input_schema", body.get("inputSchema", {"type": "object"}))
    made = {"name": body["name"], "description": body.get("description") or "", "inputSchema": schema}
    for key, given in (("title", "title"), ("annotations", "annotations"), ("outputSchema", "output_schema")):
        if body.get(given) is not None:
            made[key] = body[given]
    return made


def judged(rows: Iterable[Row]) -> tuple[Judged, ...]:
    """Each row as lint judges it among the others of its source, in the order given."""
    found = list(rows)
    by_source: dict[str, list[Row]] = defaultdict(list)
    for row in found:
        by_source[row.source].append(row)
    around = {source: surroundings([row.entry for row in some]) for source, some in by_source.items()}
    return tuple(
        Judged(row=row, level=worst(lint(row.entry.definition, around=around[row.source][row.entry.server_id])))
        for row in found
    )


def scores(found: Sequence[Judged]) -> dict[str, Any]:
    """Detection and false alarms as plain values; a share of nothing is None.

    Returns:
        {"review": {"detection", "false_alarms", ...}, "block": {...}, "by_class": {...}, "by_source": {...}}.
    """
    poisoned = [one for one in found if one.row.poisoned]
    classes = sorted({one.row.attack_class for one in poisoned})
    sources = sorted({one.row.source for one in found})
    return {
        "n_poisoned": len(poisoned),
        "n_published": len(found) - len(poisoned),
        **_at_levels(found),
        "by_class": {name: _at_levels([one for one in poisoned if one.row.attack_class == name]) for name in classes},
        "by_source": {name or "unnamed": _at_levels([o for o in found if o.row.source == name]) for name in sources},
    }


def _at_levels(found: Sequence[Judged]) -> dict[str, Any]:
    return {level.value: _at(found, level) for level in (Level.REVIEW, Level.BLOCK)}


def _at(found: Sequence[Judged], level: Level) -> dict[str, Any]:
    detection = _share([one for one in found if one.row.poisoned], level)
    alarms = _share([one for one in found if not one.row.poisoned], level)
    return {
        "detection": detection.value,
        "detection_interval": detection.interval,
        "n_found": detection.n_raised,
        "n_poisoned": detection.n,
        "false_alarms": alarms.value,
        "false_alarms_interval": alarms.interval,
        "n_alarms": alarms.n_raised,
        "n_published": alarms.n,
    }


def _share(found: Sequence[Judged], level: Level) -> Share:
    return Share(n_raised=sum(one.is_at(level) for one in found), n=len(found))
