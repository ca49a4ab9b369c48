"""Baselines on the same cases: at equal k, at equal tokens, and as each comes by itself.

Above: `cli/evals.py`. Below: `baselines/`, which find; `run.py`, whose results they are paired with.

    equal k         recall@1, @5, @10 of its ranking
    equal tokens    whole definitions of its ranking, in order, into as many tokens as Toolcrib's own first `limit` cost
    by itself       as many tools as it gives by default (all of them, five, ...) and what that costs

Invariants
1. A baseline gets the tools that the case's caller may discover, and the task's words alone.
2. A baseline that fails is said to have failed; it takes nobody down with it (I12).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from toolcrib.evals import metrics
from toolcrib.evals.baselines.protocol import Baseline, Opened
from toolcrib.evals.places import Asked, Place
from toolcrib.evals.results import BUDGETS, Result, Searched
from toolcrib.evals.run import filled, share
from toolcrib.evals.statistics import intervals, paired
from toolcrib.evals.summary import rounded
from toolcrib.types import Tool

FloatArray = npt.NDArray[np.float64]
_DEEP = 20
Say = Callable[[str], None]


@dataclass(slots=True, kw_only=True)
class _Scores:
    """What one baseline reached on one place: a row per answerable case."""

    rows: list[list[float]] = field(default_factory=list)
    own: list[list[float]] = field(default_factory=list)
    open_s: float = 0.0
    search_s: float = 0.0


def compared(
    baselines: Sequence[Baseline],
    places: Sequence[Place],
    results: dict[str, tuple[Result, ...]],
    *,
    depths: Sequence[int],
    seed: int,
    say: Say = lambda _text: None,
) -> dict[str, Any]:
    """Name -> figures of each baseline, beside Toolcrib's on the same cases.

    Args:
        results: set name -> results of the same places, in the order of their cases.
    """
    told: dict[str, Any] = {}
    for baseline in baselines:
        scores: list[_Scores] = []
        try:
            for place in places:
                say(f"baseline {baseline.name} on {place.name}")
                scores.append(_asked(baseline, place, results[place.name], depths))
        except Exception as fault:  # noqa: BLE001 - foreign code: whatever it is, the other figures stand
            told[baseline.name] = {"about": baseline.about, "failed": f"{type(fault).__name__}: {fault}"}
            continue
        told[baseline.name] = {"about": baseline.about, **_figures(scores, depths, seed)}
    return told


def _names(depths: Sequence[int]) -> list[str]:
    return [
        *(f"recall@{k}" for k in depths),
        *(f"completeness@{k}" for k in depths if k > 1),
        "ndcg@10",
        "mrr",
        "recall_at_equal_tokens",
    ]


def _asked(baseline: Baseline, place: Place, results: Sequence[Result], depths: Sequence[int]) -> _Scores:
    opened: dict[str, tuple[Opened, frozenset[str]]] = {}
    scores = _Scores()
    for asked, result in zip(place.asked, results, strict=True):
        if not asked.case.answerable or result.searched is None:
            continue
        view = place.pipeline.view(asked.caller, place.channel)
        if view.version not in opened:
            started = time.perf_counter()
            opened[view.version] = baseline.open(view.tools), frozenset(tool.tool_id for tool in view.tools)
            scores.open_s += time.perf_counter() - started
        searcher, known = opened[view.version]
        k = max(_DEEP, *depths, baseline.default_k or len(view.tools))
        started = time.perf_counter()
        found = searcher.search(asked.case.task, k)
        scores.search_s += time.perf_counter() - started
        ranking = [tool_id for tool_id in dict.fromkeys(found) if tool_id in known]
        scores.rows.append(_row(baseline, place, asked, result.searched, ranking, depths, view.tools))
        scores.own.append(_own_row(result.searched, depths, place.limit))
    return scores


def _row(
    baseline: Baseline,
    place: Place,
    asked: Asked,
    searched: Searched,
    ranking: Sequence[str],
    depths: Sequence[int],
    tools: Sequence[Tool],
) -> list[float]:
    wanted = asked.case.expect or ()
    ranks = [next((r for r, tool_id in enumerate(ranking, start=1) if tool_id in tools), 0) for tools in wanted]
    first = ranking[:_DEEP]
    costs = {tool_id: place.cost_of(tool_id) for tool_id in first}
    given = ranking[: baseline.default_k] if baseline.default_k else ranking
    tokens = searched.all_tokens if len(given) == len(tools) else sum(map(place.cost_of, given))
    return [
        *_common(ranks, depths),
        share(wanted, filled(first, costs, searched.tokens_of_first)),
        *(share(wanted, filled(first, costs, budget)) for budget in BUDGETS),
        share(wanted, given),
        float(tokens + baseline.overhead_tokens),
        float(sum(costs[tool_id] for tool_id in ranking[: place.limit])),
    ]


def _own_row(searched: Searched, depths: Sequence[int], limit: int) -> list[float]:
    return [*_common(searched.ranks, depths), metrics.recall(searched.ranks, limit)]


def _common(ranks: Sequence[int], depths: Sequence[int]) -> list[float]:
    return [
        *(metrics.recall(ranks, k) for k in depths),
        *(metrics.completeness(ranks, k) for k in depths if k > 1),
        metrics.ndcg(ranks, 10),
        metrics.reciprocal_rank(ranks),
    ]


def _figures(scores: Sequence[_Scores], depths: Sequence[int], seed: int) -> dict[str, Any]:
    names = _names(depths)
    sets = [np.array(one.rows) for one in scores if one.rows]
    own = [np.array(one.own) for one in scores if one.rows]
    if not sets:
        return {"failed": "no case expects a tool"}
    means = np.mean([rows.mean(axis=0) for rows in sets], axis=0)
    spread = intervals([rows[:, : len(names)] for rows in sets], seed=seed)
    ahead = {
        name: paired([mine[:, n] - theirs[:, n] for mine, theirs in zip(own, sets, strict=True)], seed=seed)
        for n, name in enumerate(names)
    }
    n_cases = sum(map(len, sets))
    return rounded(
        {
            "metrics": dict(zip(names, means[: len(names)].tolist(), strict=True)),
            "intervals": {name: list(pair) for name, pair in zip(names, spread, strict=True)},
            "recall_by_tokens": [
                {"tokens": float(budget), "recall": value}
                for budget, value in zip(BUDGETS, means[len(names) : len(names) + len(BUDGETS)].tolist(), strict=True)
            ],
            "by_default": {"recall": float(means[-3]), "tokens": float(means[-2])},
            "tokens_at_limit": float(means[-1]),
            "toolcrib_ahead": {name: asdict(one) for name, one in ahead.items() if one},
            "ms_per_search": 1_000 * sum(one.search_s for one in scores) / n_cases,
            "open_s": sum(one.open_s for one in scores),
            "n_cases": n_cases,
        }
    )
