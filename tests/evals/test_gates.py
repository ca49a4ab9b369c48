"""Thresholds: what holds, what falls short, and what is no threshold at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from toolcrib.errors import ConfigError
from toolcrib.evals.gates import fallen_short, read_gate

SUMMARY: dict[str, Any] = {
    "metrics": {"recall@5": 0.8, "false_accept": None, "mrr": 0.7},
    "latency_ms": {"p95": 12.0},
    "by_tag": {"money": {"recall@5": 0.5}},
    "sets": {"shop": {"recall@5": 0.9}},
    "stages": {"exposure": {"total": 0}},
    "notes": ['false_accept is null: no case has "expect": null'],
}


def gate(tmp_path: Path, text: str, **more: Any) -> list[str]:
    path = tmp_path / "gate.toml"
    path.write_text(text, encoding="utf-8")
    return [str(short) for short in fallen_short(read_gate(path), {**SUMMARY, **more})]


def test_thresholds_that_hold_say_nothing(tmp_path: Path) -> None:
    text = """
    [metrics]
    "recall@5" = { min = 0.8 }
    mrr = { min = 0.5, max = 0.9 }
    [latency_ms]
    p95 = { max = 12 }
    [tags.money]
    "recall@5" = { min = 0.5 }
    [sets.shop]
    "recall@5" = { min = 0.9 }
    [exposure]
    total = { max = 0 }
    """
    assert gate(tmp_path, text) == []


def test_what_falls_short_is_told_with_both_numbers(tmp_path: Path) -> None:
    text = (
        '[metrics]\n"recall@5" = { min = 0.9 }\n[latency_ms]\np95 = { max = 5 }\n[tags.money]\n"recall@5" = { min = 1 }'
    )
    assert gate(tmp_path, text) == [
        "metrics recall@5 is 0.8, at least 0.9 is asked",
        "latency_ms p95 is 12, at most 5 is asked",
        "tags.money recall@5 is 0.5, at least 1 is asked",
    ]


def test_an_undefined_figure_and_a_tag_without_cases_hold_nothing(tmp_path: Path) -> None:
    text = '[metrics]\nfalse_accept = { max = 0.1 }\n[tags.monye]\n"recall@5" = { min = 0.1 }'
    undefined, tag = gate(tmp_path, text)
    assert "is not defined" in undefined and "no case has" in undefined
    assert "no case has this tag" in tag


def test_differences_to_an_earlier_run_can_be_bounded(tmp_path: Path) -> None:
    text = '[compare]\n"recall@5" = { min = -0.01 }'
    compare = {"metrics": {"recall@5": {"mean": -0.05, "low": -0.1, "high": 0.0}}}
    assert gate(tmp_path, text, compare=compare) == ["compare recall@5 is -0.05, at least -0.01 is asked"]
    assert "give --compare FILE" in gate(tmp_path, text)[0]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[metrics]\n"recall@6" = { min = 0.1 }', 'did you mean "recall@5"?'),
        ("[metric]\nmrr = { min = 0.1 }", "did you mean [metrics]?"),
        ("[metrics]\nmrr = 0.1", "a threshold is { min = number }"),
        ('[metrics]\nmrr = { min = "high" }', "min and max are numbers"),
        ("[metrics]\nmrr = { least = 1 }", "a threshold is { min = number }"),
        ("", "there is no threshold in it"),
        ("[metrics", "it is not TOML"),
        ("[metrics]\nmrr = { min = nan }", "finite"),
        ("[metrics]\nmrr = { max = inf }", "finite"),
    ],
    ids=["figure", "table", "bare", "text", "word", "empty", "toml", "nan", "inf"],
)
def test_what_is_no_threshold_is_an_error(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ConfigError) as fault:
        gate(tmp_path, text)
    assert told in str(fault.value)
