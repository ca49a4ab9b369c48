"""From results to figures: means, sets, tags, stages, refusal, and how sure they are."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.evals.making import measured, shop_place, write_set
from toolcrib.evals.cases import case_of
from toolcrib.evals.folders import read_folder
from toolcrib.evals.places import place_of_folder
from toolcrib.evals.results import Result
from toolcrib.evals.run import run
from toolcrib.evals.statistics import intervals, paired
from toolcrib.evals.summary import Measured, columns, summarised, values


def only(result: Result, **more: Any) -> Result:
    """The result with other measured values."""
    assert result.searched is not None
    return replace(result, searched=replace(result.searched, **more))


def test_the_summary_has_the_promised_shape_and_is_json(tmp_path: Path) -> None:
    told = summarised(measured(shop_place(tmp_path / "shop")))
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert {"recall@1", "recall@5", "recall@10", "ndcg@10", "completeness@5", "completeness@10", "mrr",
            "refusal_auroc", "false_refusal", "false_accept"} <= set(told["metrics"])  # fmt: skip
    assert {"p50", "p95"} <= set(told["latency_ms"])
    assert set(told["intervals"]) == set(told["metrics"])
    assert {"single", "multi", "none"} == set(told["by_tag"])
    assert (told["n_cases"], told["n_answerable"], told["n_nothing_fits"]) == (5, 3, 2)
    assert 0 <= told["metrics"]["recall@5"] <= 1


def test_recall_counts_capabilities_and_the_mean_is_over_cases(tmp_path: Path) -> None:
    results = [r for r in run(shop_place(tmp_path / "shop")) if r.case.answerable]
    by_id = {r.case.case_id: r for r in results}
    made = (
        only(by_id["refund"], ranks=(1,), first_rank=1, offers=(True,)),
        only(by_id["tides"], ranks=(0,), first_rank=0, offers=(False,)),
        only(by_id["both"], ranks=(2, 7), first_rank=2, offers=(True, False)),
    )
    told = summarised(Measured(results=made, corpora={"shop": "v"}))["metrics"]
    assert told["recall@1"] == pytest.approx(1 / 3)
    assert told["recall@5"] == pytest.approx((1 + 0 + 0.5) / 3)
    assert told["recall@10"] == pytest.approx((1 + 0 + 1) / 3)
    assert told["completeness@10"] == pytest.approx(2 / 3)
    assert told["mrr"] == pytest.approx((1 + 0 + 0.5) / 3)
    assert told["selected_completeness"] == pytest.approx(1 / 3)


def test_over_several_sets_each_counts_once(tmp_path: Path) -> None:
    results = [r for r in run(shop_place(tmp_path / "shop")) if r.case.case_id == "refund"]
    good, bad = only(results[0], ranks=(1,)), only(results[0], ranks=(0,))
    big = tuple(replace(good, set_name="big", case=replace(good.case, case_id=str(n))) for n in range(9))
    small = (replace(bad, set_name="small"),)
    told = summarised(Measured(results=big + small, corpora={"big": "v", "small": "w"}))
    assert told["metrics"]["recall@5"] == 0.5
    assert (told["sets"]["big"]["recall@5"], told["sets"]["small"]["recall@5"]) == (1.0, 0.0)
    assert set(told["by_tag"]) == {"big/single", "small/single"}


def test_refusal_is_pooled_over_the_sets_of_one_catalog(tmp_path: Path) -> None:
    asked = write_set(
        tmp_path / "asked",
        queries=[{"query_id": "q", "query": "return money to a customer"}],
        labels=[("q", "shop.issue_refund", 0)],
    )
    none = write_set(
        tmp_path / "none", queries=[{"query_id": "n", "query": "knit a scarf", "expect_none": True}], labels=[]
    )
    places = [place_of_folder(read_folder(path)) for path in (asked, none)]
    results = tuple(result for place in places for result in run(place))
    told = summarised(Measured(results=results, corpora={place.name: place.corpus for place in places}))
    assert told["refusal"] == [{"sets": ["asked", "none"], "auroc": 1.0, "n_fits": 1, "n_nothing_fits": 1}]
    assert told["metrics"]["refusal_auroc"] == 1.0
    assert told["sets"]["asked"]["refusal_auroc"] is None
    apart = summarised(Measured(results=results, corpora={"asked": "v1", "none": "v2"}))
    assert apart["metrics"]["refusal_auroc"] is None
    assert any("refusal_auroc is null" in note for note in apart["notes"])


def test_what_is_not_defined_is_null_and_the_notes_say_why(tmp_path: Path) -> None:
    results = [r for r in run(shop_place(tmp_path / "shop")) if r.case.expect is None]
    told = summarised(Measured(results=tuple(results), corpora={"shop": "v"}))
    assert told["metrics"]["recall@5"] is None
    assert told["metrics"]["false_refusal"] is None
    assert any(note.startswith("recall, nDCG") for note in told["notes"])
    assert summarised(Measured(results=(), corpora={}))["metrics"]["mrr"] is None


def test_each_case_has_only_the_figures_that_concern_it(tmp_path: Path) -> None:
    by_id = {r.case.case_id: r for r in run(shop_place(tmp_path / "shop"))}
    names = columns((1, 5, 10))
    fits = dict(zip(names, values(by_id["refund"], (1, 5, 10)), strict=True))
    none = dict(zip(names, values(by_id["none"], (1, 5, 10)), strict=True))
    assert np.isnan([fits["false_accept"], fits["false_selection"], none["recall@5"], none["false_refusal"]]).all()
    assert fits["false_refusal"] == 0
    assert none["false_accept"] in (0, 1)


def test_confused_tools_and_worst_cases_are_named(tmp_path: Path) -> None:
    results = {r.case.case_id: r for r in run(shop_place(tmp_path / "shop"))}
    lost = only(results["refund"], ranks=(2,), first_rank=2, ranking=("shop.get_order", "shop.issue_refund"))
    forbidden = replace(
        only(results["tides"], forbidden=("mail.send_message",)),
        case=case_of(
            {"id": "tides", "task": "t", "expect": ["sky.get_tides"], "forbid": ["mail.send_message"]}, where=""
        ),
    )
    told = summarised(Measured(results=(lost, lost, forbidden), corpora={"shop": "v"}))
    assert told["confused"] == [{"expected": "shop.issue_refund", "got_first": "shop.get_order", "n": 2}]
    assert told["worst"][0]["forbidden"] == ["mail.send_message"]
    assert told["metrics"]["false_selection"] == 1.0


def test_tokens_and_rounds_are_told(tmp_path: Path) -> None:
    told = summarised(measured(shop_place(tmp_path / "shop")))
    rows = told["recall_by_tokens"]
    assert [row["tokens"] for row in rows] == sorted(row["tokens"] for row in rows)
    assert [row["recall"] for row in rows] == sorted(row["recall"] for row in rows)
    stages = told["stages"]
    assert 0 < stages["schema_tokens"]["offered_mean"] <= stages["schema_tokens"]["all_tools_mean"]
    assert stages["discovery_rounds"]["in_one"] == 1.0
    assert stages["exposure"] == {"names": 0, "descriptions": 0, "counts": 0, "traces": 0, "total": 0}


def test_at_equal_tokens_a_task_for_several_tools_is_complete_only_with_all_of_them(tmp_path: Path) -> None:
    by_id = {r.case.case_id: r for r in run(shop_place(tmp_path / "shop"))}
    late = (0.0, 0.5, 0.5, 1.0, 1.0, 1.0, 1.0)  # the second tool fits in from 2,000 tokens on
    early = (1.0,) * 7
    made = (only(by_id["both"], by_budget=late), only(by_id["refund"], by_budget=early))
    rows = {row["tokens"]: row for row in summarised(Measured(results=made, corpora={"shop": "v"}))["recall_by_tokens"]}
    assert (rows[1_000]["recall"], rows[1_000]["completeness"], rows[1_000]["several"]) == (0.75, 0.5, 0.0)
    assert (rows[2_000]["recall"], rows[2_000]["completeness"], rows[2_000]["several"]) == (1.0, 1.0, 1.0)
    alone = summarised(Measured(results=made[1:], corpora={"shop": "v"}))["recall_by_tokens"]
    assert {row["several"] for row in alone} == {None}


# --- how sure


def test_the_interval_of_a_mean_is_that_of_its_standard_error() -> None:
    rows = np.random.default_rng(1).normal(0.5, 0.2, (400, 1))
    ((low, high),) = intervals([rows], seed=7)
    error = 1.96 * rows.std() / np.sqrt(len(rows))
    assert (low, high) == pytest.approx((rows.mean() - error, rows.mean() + error), abs=0.004)
    assert intervals([rows], seed=7) == [(low, high)]
    assert intervals([rows], seed=8) != [(low, high)]


def test_a_figure_that_few_cases_have_still_has_an_interval_and_one_that_none_has_has_none() -> None:
    rows = np.full((40, 2), np.nan)
    rows[:3, 0] = (0, 1, 1)
    (few, none) = intervals([rows], seed=1)
    assert 0 <= few[0] < few[1] <= 1
    assert np.isnan(none).all()


def test_pairs_tell_a_small_steady_difference_that_intervals_of_both_would_not() -> None:
    base = np.random.default_rng(2).uniform(0, 1, 200)
    better = base + 0.02
    found = paired([better - base], seed=1)
    assert found is not None
    assert found.is_clear
    assert found.mean == pytest.approx(0.02)
    ((low_base, high_base), (low_better, high_better)) = intervals([np.stack([base, better], axis=1)], seed=1)
    assert high_base > low_better
    assert (low_base, high_better) != (high_base, low_better)
    noise = paired([np.random.default_rng(3).normal(0, 1, 200)], seed=1)
    assert noise is not None and not noise.is_clear
    assert paired([np.array([np.nan])], seed=1) is None
