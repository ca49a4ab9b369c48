"""Metrics: by hand, against an independent library, and where there is nothing to measure."""

from __future__ import annotations

import importlib.util
import math
import random

import numpy as np
import pytest

from toolcrib.evals import metrics

HAS_IR_MEASURES = importlib.util.find_spec("ir_measures") is not None
# Ranks of four relevant tools (0: not ranked), and nDCG@10, RR and R@5 as ir-measures 0.4.3 has them.
GOLDEN = (
    ((1, 2, 3, 4), 1.0, 1.0, 1.0),
    ((2, 5, 0, 0), 0.397322, 0.5, 0.5),
    ((0, 0, 0, 0), 0.0, 0.0, 0.0),
    ((3, 7, 9, 12), 0.442833, 0.333333, 0.25),
)


def test_a_task_worked_out_by_hand() -> None:
    ranks = (2, 0, 4)  # three capabilities: found second, not at all, fourth
    assert metrics.recall(ranks, 1) == 0
    assert metrics.recall(ranks, 3) == pytest.approx(1 / 3)
    assert metrics.recall(ranks, 5) == pytest.approx(2 / 3)
    assert metrics.completeness(ranks, 5) == 0
    assert metrics.completeness((2, 4), 5) == 1
    assert metrics.completeness((2, 4), 3) == 0
    assert metrics.reciprocal_rank(ranks) == 0.5
    best = 1 + 1 / math.log2(3) + 1 / math.log2(4)
    assert metrics.ndcg(ranks, 10) == pytest.approx((1 / math.log2(3) + 1 / math.log2(5)) / best)


def test_a_second_tool_for_a_capability_gains_nothing_and_one_for_two_gains_twice() -> None:
    assert metrics.recall((1,), 10) == 1
    assert metrics.ndcg((1, 1), 10) == 1.0  # at most 1, though the ideal has a place for each
    assert metrics.ndcg((2, 2), 10) == pytest.approx((2 / math.log2(3)) / (1 + 1 / math.log2(3)))


@pytest.mark.parametrize(("ranks", "ndcg", "rr", "recall"), GOLDEN, ids=[str(row[0]) for row in GOLDEN])
def test_figures_are_those_of_ir_measures(ranks: tuple[int, ...], ndcg: float, rr: float, recall: float) -> None:
    assert metrics.ndcg(ranks, 10) == pytest.approx(ndcg, abs=1e-6)
    assert metrics.reciprocal_rank(ranks) == pytest.approx(rr, abs=1e-6)
    assert metrics.recall(ranks, 5) == pytest.approx(recall, abs=1e-6)


@pytest.mark.skipif(not HAS_IR_MEASURES, reason="ir-measures is not installed; its numbers for four rankings are held")
def test_random_rankings_agree_with_ir_measures() -> None:
    import ir_measures
    from ir_measures import RR, R, Success, nDCG

    chance = random.Random(3)
    qrels, rows, mine = [], [], {}
    for number in range(60):
        query, tools = f"q{number}", [f"t{n:02}" for n in range(30)]
        wanted = chance.sample(tools, chance.randint(1, 6))
        ranking = chance.sample(tools, chance.randint(0, 25))
        qrels += [ir_measures.Qrel(query, tool, 1) for tool in wanted]
        rows += [ir_measures.ScoredDoc(query, tool, float(100 - place)) for place, tool in enumerate(ranking)]
        ranks = [ranking.index(tool) + 1 if tool in ranking else 0 for tool in wanted]
        mine[query] = {
            "nDCG@10": metrics.ndcg(ranks, 10),
            "RR": metrics.reciprocal_rank(ranks),
            "R@5": metrics.recall(ranks, 5),
            "R@10": metrics.recall(ranks, 10),
            "Success@5": float(metrics.recall(ranks, 5) > 0),
        }
    compared = 0
    for found in ir_measures.iter_calc([nDCG @ 10, RR, R @ 5, R @ 10, Success @ 5], qrels, rows):
        assert mine[found.query_id][str(found.measure)] == pytest.approx(found.value, abs=1e-9), found
        compared += 1
    assert compared == 300


def test_auroc_is_the_share_of_pairs_in_the_right_order() -> None:
    chance = np.random.default_rng(4)
    high, low = chance.integers(0, 9, 40) / 8, chance.integers(0, 7, 30) / 8
    pairs = [1.0 if a > b else 0.5 if a == b else 0.0 for a in high for b in low]
    assert metrics.auroc(high, low) == pytest.approx(sum(pairs) / len(pairs))
    assert metrics.auroc([0.9], [0.1]) == 1.0
    assert metrics.auroc([0.5], [0.5]) == 0.5


def test_nothing_to_measure_is_none() -> None:
    assert metrics.auroc([], [0.1]) is None
    assert metrics.auroc([0.1], []) is None
    assert metrics.quantile([], 0.5) is None
    assert metrics.reciprocal_rank(()) == 0.0
