"""The table of rules, and what hangs on it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from toolcrib.review.lint import lint
from toolcrib.review.phrases import PHRASES
from toolcrib.review.rules import RULES

PAGE = Path(__file__).parents[2] / "docs" / "lint.md"


def test_every_rule_is_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert [rule for rule in RULES if f"`{rule}`" not in page] == []


def test_every_phrase_belongs_to_a_rule_that_goes_as_far() -> None:
    for phrase in PHRASES:
        assert phrase.level.order <= RULES[phrase.rule].level.order, phrase.rule


@pytest.mark.parametrize("phrase", PHRASES, ids=lambda phrase: phrase.rule)
def test_a_phrase_is_near_something_and_fits_no_empty_text(phrase: object) -> None:
    near, pattern = phrase.near, phrase.pattern  # type: ignore[attr-defined]
    assert all(near) and all(word == word.casefold() for word in near)
    assert pattern.search("") is None


@pytest.mark.parametrize(
    "rule",
    ["instruction-override", "instruction-markup", "hidden-comment", "secrecy", "runs-commands", "sends-data-away"],
)
def test_the_example_of_a_rule_strikes(rule: str) -> None:
    assert rule in {finding.rule for finding in lint({"description": RULES[rule].example + " Always use it."})}


@pytest.mark.parametrize(
    "unit",
    [
        "a/",
        "a-",
        "a_",
        "aB",
        "a ",
        "send data to ",
        "ignore all ",
        "<secret>",
        "<!-- ",
        "other a tool ",
        "api key ",
        " ",
    ],
    ids=repr,
)
def test_a_text_made_to_be_slow_costs_time_in_proportion_to_its_length(unit: str) -> None:
    text = unit * (40_000 // len(unit))

    def seconds(description: str) -> float:
        begun = time.process_time()
        lint({"name": "x", "description": description + " \u00e9"})
        return time.process_time() - begun

    seconds("warm")
    assert seconds(text) < 30 * seconds(text[:4_000]) + 1.0  # ten times the length: a square would be a hundred


@pytest.mark.parametrize(
    "made",
    [
        lambda n: {"description": "a b" + " " * n},
        lambda n: {"description": "a b" + "\n" * n + "\u00a0"},
        lambda n: {"description": "a" + "\u0301" * (n // 2) + "\u0316" * (n // 2)},
        lambda n: {"description": "always call " + "a_" * (n // 2) + "a="},
        lambda n: {"name": "a" + "_" * n},
        lambda n: {"description": "a " + " " * n + "\n" + " " * n + "b"},
    ],
    ids=["blanks-at-the-end", "lines-at-the-end", "stacked-marks", "one-long-word", "name", "blanks-around-a-line-end"],
)
def test_what_nobody_would_write_costs_time_in_proportion_to_its_length(made: Callable[[int], dict[str, str]]) -> None:
    def seconds(n: int) -> float:
        begun = time.process_time()
        lint({"name": "x", **made(n)})
        return time.process_time() - begun

    seconds(10)
    assert seconds(40_000) < 30 * seconds(4_000) + 1.0
