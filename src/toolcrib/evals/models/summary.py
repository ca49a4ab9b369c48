"""Figures of a run with a model: per way, with intervals, and each way against the first, case by case.

Above: `cli/eval_model.py`. Below: `attempts.py`, `statistics.py`. A figure is averaged over a case's repeats first and
over cases then, so that intervals are over cases, which is what another set of cases would change.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from toolcrib.evals.models.attempts import Attempt
from toolcrib.evals.models.prices import Price
from toolcrib.evals.models.ways import Way
from toolcrib.evals.statistics import FloatArray, intervals, paired

_Key = tuple[str, str]
_NAN = math.nan


def _flag(value: bool | None) -> float:
    return _NAN if value is None else float(value)


def _share(flags: Sequence[bool]) -> float:
    return sum(flags) / len(flags) if flags else _NAN


def _ended(attempt: Attempt, value: float) -> float:
    """The value, unless the vendor gave no answer: what was not said was neither cheap nor harmless."""
    return _NAN if attempt.failed else value


FIGURES: Mapping[str, Callable[[Attempt], float]] = {
    "correct": lambda a: float(a.correct),
    "exact": lambda a: float(a.exact),
    "first_correct": lambda a: _flag(a.first_correct),
    "covered": lambda a: _NAN if a.covered is None else a.covered,
    "forbidden": lambda a: _ended(a, float(a.forbidden) if a.case.forbid else _NAN),
    "needless": lambda a: _ended(a, _NAN if a.case.expect is not None else float(bool(a.called))),
    "unavailable": lambda a: _ended(a, float(any(not made.available for made in a.calls))),
    "valid_arguments": lambda a: _share([made.fits for made in a.calls if made.available]),
    "expected_arguments": lambda a: _share([bool(m.as_expected) for m in a.calls if m.as_expected is not None]),
    "completed": lambda a: _flag(a.completed),
    "lookups": lambda a: _ended(a, float(a.lookups)),
    "turns": lambda a: _ended(a, float(a.turns)),
    "input_tokens": lambda a: _ended(a, float(a.input_tokens)),
    "first_input_tokens": lambda a: _ended(a, float(a.first_input_tokens)),
    "output_tokens": lambda a: _ended(a, float(a.output_tokens)),
}
"""What each attempt is worth; NaN where it has no such figure. `docs/evals.md` says what they mean."""

COMPARED = ("correct", "covered", "valid_arguments", "completed", "input_tokens")
"""What ways are compared by."""


def summarised(attempts: Sequence[Attempt], *, ways: Sequence[Way], price: Price | None, seed: int) -> dict[str, Any]:
    """`ways`: figures of each; `differences`: each later way minus each earlier one, over cases that both have.

    Args:
        price: None: costs are null.
    """
    tables = {way: _per_case([one for one in attempts if one.way is way]) for way in ways}
    return {
        "ways": {
            way.value: _told([one for one in attempts if one.way is way], tables[way], price=price, seed=seed)
            for way in ways
        },
        "differences": {
            f"{later.value} - {earlier.value}": _difference(tables[later], tables[earlier], seed=seed)
            for number, later in enumerate(ways)
            for earlier in ways[:number]
        },
    }


def _per_case(attempts: Sequence[Attempt]) -> dict[_Key, FloatArray]:
    """Case -> float64, shape (n_figures,): means over its repeats; NaN where no repeat has the figure."""
    rows: dict[_Key, list[list[float]]] = {}
    for one in attempts:
        rows.setdefault((one.set_name, one.case.case_id), []).append([value(one) for value in FIGURES.values()])
    return {key: _means(np.asarray(values, dtype=np.float64)) for key, values in rows.items()}


def _means(values: FloatArray) -> FloatArray:
    """Means of columns over what is known."""
    known = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        means: FloatArray = np.where(known, values, 0.0).sum(axis=0) / known.sum(axis=0)
    return means


def _told(
    attempts: Sequence[Attempt], table: Mapping[_Key, FloatArray], *, price: Price | None, seed: int
) -> dict[str, Any]:
    told: dict[str, Any] = {
        "n_cases": len(table),
        "n_attempts": len(attempts),
        "n_failed": sum(bool(one.failed) for one in attempts),
        "n_cut": sum(one.cut for one in attempts),
        "n_out_of_turns": sum(one.out_of_turns for one in attempts),
        "n_calls": sum(len(one.calls) for one in attempts),
        "metrics": dict.fromkeys(FIGURES),
        "intervals": dict.fromkeys(FIGURES),
        "agreement": _agreement(attempts),
        "missed": dict(sorted(Counter(one.missed for one in attempts if one.missed).items())),
        "failures": dict(Counter(one.failed for one in attempts if one.failed).most_common(3)),
        "input_tokens": sum(one.input_tokens for one in attempts),
        "output_tokens": sum(one.output_tokens for one in attempts),
        "usd": None,
    }
    if price is not None:
        told["usd"] = price.of(input_tokens=told["input_tokens"], output_tokens=told["output_tokens"])
    if table:
        values = np.stack(list(table.values()))
        means, ends = _means(values), intervals([values], seed=seed)
        told["metrics"] = {name: _number(mean) for name, mean in zip(FIGURES, means, strict=True)}
        told["intervals"] = {
            name: None if math.isnan(low) else [low, high] for name, (low, high) in zip(FIGURES, ends, strict=True)
        }
    return told


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _agreement(attempts: Sequence[Attempt]) -> float | None:
    """Share of cases, asked more than once, whose repeats are all correct or all not."""
    seen: dict[_Key, list[bool]] = {}
    for one in attempts:
        seen.setdefault((one.set_name, one.case.case_id), []).append(one.correct)
    repeated = [flags for flags in seen.values() if len(flags) > 1]
    return sum(len(set(flags)) == 1 for flags in repeated) / len(repeated) if repeated else None


def _difference(
    later: Mapping[_Key, FloatArray], earlier: Mapping[_Key, FloatArray], *, seed: int
) -> dict[str, dict[str, Any] | None]:
    both = [key for key in later if key in earlier]
    found: dict[str, dict[str, Any] | None] = {}
    names = list(FIGURES)
    for name in COMPARED:
        column = names.index(name)
        values = np.asarray([later[key][column] - earlier[key][column] for key in both], dtype=np.float64)
        one = paired([values], seed=seed) if both else None
        found[name] = (
            None
            if one is None
            else {"mean": one.mean, "low": one.low, "high": one.high, "n": one.n, "clear": one.is_clear}
        )
    return found


def attempt_row(attempt: Attempt) -> dict[str, Any]:
    """An attempt for programs."""
    return {
        "set": attempt.set_name,
        "id": attempt.case.case_id,
        "way": attempt.way.value,
        "repeat": attempt.repeat,
        "tags": list(attempt.case.tags),
        "correct": attempt.correct,
        "missed": attempt.missed,
        "covered": attempt.covered,
        "completed": attempt.completed,
        "calls": [
            {
                "tool_id": made.tool_id,
                "arguments": made.arguments,
                "available": made.available,
                "faults": list(made.faults),
                "as_expected": made.as_expected,
            }
            for made in attempt.calls
        ],
        "answer": attempt.answer,
        "lookups": attempt.lookups,
        "turns": attempt.turns,
        "input_tokens": attempt.input_tokens,
        "output_tokens": attempt.output_tokens,
        "failed": attempt.failed,
    }
