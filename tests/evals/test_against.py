"""Baselines: at equal k, at equal tokens, by themselves, and when they fail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.evals.making import shop_place
from toolcrib.evals.against import compared
from toolcrib.evals.run import run
from toolcrib.types import Tool


@dataclass
class Fixed:
    """Gives the same tools whatever is asked, or breaks."""

    name: str
    gives: Sequence[str]
    default_k: int = 5
    overhead_tokens: int = 0
    about: str = "for tests"
    breaks: bool = False
    opened: list[tuple[str, ...]] = field(default_factory=list)
    asked: list[tuple[str, int]] = field(default_factory=list)

    def open(self, tools: Sequence[Tool]) -> Fixed:
        self.opened.append(tuple(tool.tool_id for tool in tools))
        return self

    def search(self, task: str, k: int) -> Sequence[str]:
        if self.breaks:
            raise RuntimeError("no such index")
        self.asked.append((task, k))
        return list(self.gives)[:k]


def figures(tmp_path: Path, *baselines: Fixed) -> dict[str, Any]:
    place = shop_place(tmp_path / "shop")
    return compared(baselines, [place], {place.name: run(place)}, depths=(1, 5, 10), seed=1)


def test_a_baseline_is_judged_by_the_same_figures(tmp_path: Path) -> None:
    one = Fixed("fixed", ["shop.issue_refund", "not.there", "shop.issue_refund", "sky.get_tides"])
    told = figures(tmp_path, one)["fixed"]
    assert told["metrics"]["recall@1"] == pytest.approx(1 / 3, abs=1e-6)
    assert told["metrics"]["recall@5"] == pytest.approx(2 / 3, abs=1e-6)
    assert told["metrics"]["mrr"] == pytest.approx((1 + 1 / 2) / 3, abs=1e-6)
    assert told["toolcrib_ahead"]["recall@5"]["mean"] == pytest.approx(1 / 3, abs=1e-6)
    assert told["n_cases"] == 3
    assert [len(tools) for tools in one.opened] == [6]
    assert {task for task, _k in one.asked} == {
        "return money to a customer",
        "high and low water for a harbour",
        "weather forecast for a city, and send an e-mail message",
    }


def test_all_tools_find_everything_at_the_price_of_all(tmp_path: Path) -> None:
    ids = sorted(["shop.issue_refund", "shop.get_order", "mail.send_message", "mail.list_folders",
                  "sky.get_forecast", "sky.get_tides"])  # fmt: skip
    place = shop_place(tmp_path / "shop")
    told = figures(tmp_path, Fixed("all", ids, default_k=0, overhead_tokens=10))["all"]
    assert told["by_default"]["recall"] == 1.0
    assert told["by_default"]["tokens"] == 10 + sum(place.cost_of(tool_id) for tool_id in ids)


def test_at_equal_tokens_only_whole_definitions_that_fit_count(tmp_path: Path) -> None:
    place = shop_place(tmp_path / "shop")
    results = run(place)
    searched = [r.searched for r in results if r.searched is not None and r.case.answerable]
    told = figures(tmp_path, Fixed("none", []), Fixed("right", ["shop.issue_refund"]))
    assert told["none"]["metrics"]["recall_at_equal_tokens"] == 0
    fits = place.cost_of("shop.issue_refund") <= searched[0].tokens_of_first
    assert told["right"]["metrics"]["recall_at_equal_tokens"] == pytest.approx(fits / 3, abs=1e-6)


def test_at_equal_tokens_completeness_is_of_whole_tasks_and_paired_with_toolcrib(tmp_path: Path) -> None:
    """Of three tasks one needs two tools; half of them is not half a task done."""
    half, whole = Fixed("half", ["sky.get_forecast"]), Fixed("whole", ["mail.send_message", "sky.get_forecast"])
    told = figures(tmp_path, half, whole)
    for name, covered, complete in (("half", 1 / 6, 0.0), ("whole", 1 / 3, 1 / 3)):
        row = next(row for row in told[name]["recall_by_tokens"] if row["tokens"] == 8_000)
        assert row["recall"] == pytest.approx(covered, abs=1e-6)
        assert row["completeness"] == pytest.approx(complete, abs=1e-6)
        assert row["several"] == (1.0 if complete else 0.0)
        assert row["toolcrib_ahead"]["recall"]["mean"] == pytest.approx(1 - covered, abs=1e-6)
        assert row["toolcrib_ahead"]["completeness"]["mean"] == pytest.approx(1 - complete, abs=1e-6)
        assert told[name]["metrics"]["completeness_at_equal_tokens"] == pytest.approx(complete, abs=1e-6)


def test_one_that_fails_takes_nobody_down(tmp_path: Path) -> None:
    told = figures(tmp_path, Fixed("broken", [], breaks=True), Fixed("fixed", ["sky.get_tides"]))
    assert told["broken"]["failed"] == "RuntimeError: no such index"
    assert "metrics" in told["fixed"]
