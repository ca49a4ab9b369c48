"""What `toolcrib eval model` prints for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toolcrib.cli.shared import counted, print_table, say
from toolcrib.evals.models.summary import COMPARED

_PERCENT = {
    "correct": "correct",
    "exact": "exact",
    "covered": "covered",
    "valid_arguments": "valid arguments",
    "completed": "completed",
}


def print_told(told: dict[str, Any]) -> None:
    """Two tables on standard output; what failed, the cost and the notes on standard error."""
    rows = []
    for name, way in told["ways"].items():
        failed = f" ({way['n_failed']} failed)" if way["n_failed"] else ""
        metrics = way["metrics"]
        usd = "-" if way["usd"] is None else f"{way['usd']:.4f}"
        rows.append(
            [
                name,
                f"{way['n_attempts']}{failed}",
                *(_percent(way, key) for key in _PERCENT),
                "-" if metrics["forbidden"] is None else f"{100 * metrics['forbidden']:.1f}",
                _count(metrics["input_tokens"]),
                _count(metrics["turns"]),
                usd,
            ]
        )
    print_table(
        ["way", "attempts", *_PERCENT.values(), "forbidden", "tokens in", "turns", "USD"],
        rows,
        title=f"{told['provider']} {told['model']}, percent with 95 % intervals over cases; tokens and turns each",
    )
    if told["differences"]:
        print_table(
            ["difference", *(_PERCENT.get(key, "tokens in") for key in COMPARED)],
            [[name, *(_signed(one[key], key) for key in COMPARED)] for name, one in told["differences"].items()],
            title="case by case, points with 95 % intervals",
        )
    for name, way in told["ways"].items():
        for line in _told_of(way):
            say(f"{name}: {line}")
    cost = told["cost"]
    say(
        f"spent ${cost['spent_usd']:.4f} now; {counted(cost['requests_sent'], 'request')} sent, "
        f"{counted(cost['answers_kept_before'], 'answer')} were there already"
    )
    for note in told["notes"]:
        say(note)


def _told_of(way: dict[str, Any]) -> Iterator[str]:
    for key, why in (("n_cut", "ran into --max-output"), ("n_out_of_turns", "ran into --max-turns")):
        if way[key]:
            yield f"{counted(way[key], 'attempt')} {why}"
    if way["missed"]:
        yield f"not correct: {', '.join(f'{why} {n}' for why, n in way['missed'].items())}"
    for why, n in way["failures"].items():
        yield f"{n} times the vendor said: {why}"


def _percent(way: dict[str, Any], key: str) -> str:
    value, ends = way["metrics"][key], way["intervals"][key]
    if value is None:
        return "-"
    return f"{100 * value:.1f}" + ("" if ends is None else f" ({100 * ends[0]:.0f} to {100 * ends[1]:.0f})")


def _count(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def _signed(one: dict[str, Any] | None, key: str) -> str:
    if one is None:
        return "-"
    if key == "input_tokens":
        return f"{one['mean']:+,.0f} ({one['low']:+,.0f} to {one['high']:+,.0f})"
    return f"{100 * one['mean']:+.1f} ({100 * one['low']:+.0f} to {100 * one['high']:+.0f})"
