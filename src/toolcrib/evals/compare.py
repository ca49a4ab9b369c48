"""Two runs: kept in a file, and compared case by case.

Above: `cli/evals.py`. Below: `summary.py` (what is kept of a case), `statistics.py`.

Invariants
1. Runs are paired by set and case id; what only one of them has is counted and left out.
2. A case whose task or expectation was rewritten since is another case, and is left out, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from toolcrib.errors import ConfigError
from toolcrib.evals.cases import read_lines
from toolcrib.evals.files import write_private
from toolcrib.evals.statistics import paired
from toolcrib.evals.summary import Measured, rounded, told

FORMAT = "toolcrib-eval/1"
_MAX_CHANGED = 50


def saved(summary: Mapping[str, Any], measured: Measured, *, at: str, version: str) -> dict[str, Any]:
    """A run as it is kept: its summary and each case."""
    return {
        "format": FORMAT,
        "at": at,
        "toolcrib": version,
        "summary": dict(summary),
        "cases": [rounded(told(result, measured.depths)) for result in measured.results],
    }


def write_run(path: Path, run: Mapping[str, Any]) -> None:
    """Readable by its owner alone: it holds tasks. Raises ConfigError where the file cannot be written."""
    try:
        write_private(path, json.dumps(run, indent=1, ensure_ascii=True) + "\n")
    except OSError as fault:
        raise ConfigError(f"the run cannot be written: {fault.strerror}", where=str(path)) from fault


def read_run(path: Path) -> dict[str, Any]:
    """A run that was kept.

    Raises:
        ConfigError: the file is none.
    """
    try:
        run = json.loads("\n".join(read_lines(path)))
    except ValueError as fault:
        raise ConfigError(f"it is not JSON: {fault}", where=str(path), hint=_HINT) from fault
    if not isinstance(run, dict) or run.get("format") != FORMAT:
        raise ConfigError("it is not a run of this program", where=str(path), hint=_HINT)
    return run


_HINT = "keep one: toolcrib eval PATH --save FILE"


def difference(before: Mapping[str, Any], now: Mapping[str, Any], *, seed: int) -> dict[str, Any]:
    """What is another between two kept runs: figures with intervals, and the cases that changed."""
    several = any(len(run["summary"]["sets"]) > 1 for run in (before, now))
    then = {_key(case, several=several): case for case in before["cases"]}
    today = {_key(case, several=several): case for case in now["cases"]}
    both = [key for key in today if key in then]
    same = [key for key in both if _asks(then[key]) == _asks(today[key])]
    pairs = [(then[key], today[key]) for key in same]
    return rounded(
        {
            "before": {"at": before.get("at", ""), "toolcrib": before.get("toolcrib", "")},
            "n_paired": len(pairs),
            "n_only_before": len(then) - len(both),
            "n_only_now": len(today) - len(both),
            "n_rewritten": len(both) - len(same),
            "metrics": _differences(pairs, seed),
            "worse": _changed(pairs, better=False),
            "better": _changed(pairs, better=True),
        }
    )


def _key(case: Mapping[str, Any], *, several: bool) -> tuple[str, str]:
    """A run of one set is compared with another run of one set whatever the two are called."""
    return (str(case["set"]) if several else "", str(case["id"]))


def _asks(case: Mapping[str, Any]) -> tuple[Any, Any]:
    return case["task"], case["expect"]


def _differences(pairs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]], seed: int) -> dict[str, Any]:
    names = list(dict.fromkeys(name for _then, now in pairs for name in now["values"]))
    sets = list(dict.fromkeys(now["set"] for _then, now in pairs))
    told_of = {}
    for name in names:
        known = [(t, n) for t, n in pairs if name in t["values"] and name in n["values"]]
        by_set = [np.array([n["values"][name] - t["values"][name] for t, n in known if n["set"] == s]) for s in sets]
        found = paired(by_set, seed=seed)
        if found is not None:
            told_of[name] = {**asdict(found), "clear": found.is_clear}
    return told_of


def _changed(pairs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]], *, better: bool) -> list[dict[str, Any]]:
    """The cases that came out better, or worse, the largest change first."""
    rows = [(_gain(then, now), then, now) for then, now in pairs]
    wanted = [row for row in rows if (row[0] > 0 if better else row[0] < 0)]
    wanted.sort(key=lambda row: (-abs(row[0]), row[2]["set"], row[2]["id"]))
    return [
        {
            "set": now["set"],
            "id": now["id"],
            "task": now["task"],
            "before": {"ranking": then["ranking"][:3], "offered": then["offered"], "refused": then["refused"]},
            "now": {"ranking": now["ranking"][:3], "offered": now["offered"], "refused": now["refused"]},
        }
        for _gained, then, now in wanted[:_MAX_CHANGED]
    ]


def _gain(then: Mapping[str, Any], now: Mapping[str, Any]) -> float:
    """How much better a case came out: what is offered counts most, then the order."""
    total = 0.0
    for name, weight in (("selected_recall", 4.0), ("false_accept", -4.0), ("false_selection", -4.0), ("ndcg@10", 1.0)):
        if name in then["values"] and name in now["values"]:
            total += weight * (now["values"][name] - then["values"][name])
    return total
