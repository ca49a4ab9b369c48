"""Two runs, case by case."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.evals.making import measured, shop_place
from toolcrib.errors import ConfigError
from toolcrib.evals.compare import difference, read_run, saved, write_run
from toolcrib.evals.summary import summarised


@pytest.fixture
def kept(tmp_path: Path) -> dict[str, Any]:
    found = measured(shop_place(tmp_path / "shop"))
    return saved(summarised(found), found, at="2026-11-30T10:00:00+00:00", version="0.1.0")


def changed(kept: dict[str, Any], case_id: str, **more: Any) -> dict[str, Any]:
    run: dict[str, Any] = json.loads(json.dumps(kept))
    (case,) = [case for case in run["cases"] if case["id"] == case_id]
    case["values"] |= more.pop("values", {})
    case |= more
    return run


def test_a_run_is_kept_and_read_as_it_was(tmp_path: Path, kept: dict[str, Any]) -> None:
    write_run(tmp_path / "run.json", kept)
    assert read_run(tmp_path / "run.json") == json.loads(json.dumps(kept))
    assert [(file.name, file.stat().st_mode & 0o777) for file in tmp_path.glob("*run.json*")] == [("run.json", 0o600)]
    assert {case["id"] for case in kept["cases"]} == {"refund", "tides", "both", "none", "narrow"}


def test_the_same_run_twice_differs_in_nothing(kept: dict[str, Any]) -> None:
    found = difference(kept, kept, seed=1)
    assert (found["n_paired"], found["worse"], found["better"]) == (5, [], [])
    assert all(one["mean"] == 0 and not one["clear"] for one in found["metrics"].values())


def test_a_case_that_lost_its_tool_is_named(kept: dict[str, Any]) -> None:
    worse = changed(kept, "refund", values={"recall@5": 0.0, "selected_recall": 0.0, "ndcg@10": 0.0}, offered=[])
    found = difference(kept, worse, seed=1)
    assert [case["id"] for case in found["worse"]] == ["refund"]
    assert found["metrics"]["recall@5"]["mean"] == pytest.approx(-1 / 3, abs=1e-6)
    assert [case["id"] for case in difference(worse, kept, seed=1)["better"]] == ["refund"]


def test_rewritten_and_unpaired_cases_are_counted_and_left_out(kept: dict[str, Any]) -> None:
    other = changed(kept, "refund", task="in other words")
    other["cases"] = [case for case in other["cases"] if case["id"] != "none"]
    found = difference(kept, other, seed=1)
    assert (found["n_paired"], found["n_rewritten"], found["n_only_before"], found["n_only_now"]) == (3, 1, 1, 0)


def test_a_set_may_have_been_renamed(kept: dict[str, Any]) -> None:
    other: dict[str, Any] = json.loads(json.dumps(kept))
    for case in other["cases"]:
        case["set"] = "renamed"
    assert difference(kept, other, seed=1)["n_paired"] == 5


@pytest.mark.parametrize("text", ["{", '{"format": "another/1"}', "[]"], ids=["json", "format", "list"])
def test_another_file_is_no_run(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as fault:
        read_run(tmp_path / "run.json")
    assert "--save" in fault.value.hint
