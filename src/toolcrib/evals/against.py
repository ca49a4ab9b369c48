"""Baselines on the same cases: at equal k, at equal tokens, and as each comes by itself.

Above: `cli/evals.py`. Below: `baselines/`, which find; `run.py`, whose results they are paired with.

    equal k         recall@1, @5, @10 of its ranking
    equal tokens    whole definitions of its ranking, in order, into as many tokens as Toolcrib's first `limit` cost,
                    and into 250 to 16,000 tokens, with the paired difference to Toolcrib at each
    by itself       as many tools as it gives by default (all of them, five, ...) and what that costs

Invariants
1. A baseline gets the tools that the case's caller may discover, and the task's words alone.
2. A baseline that fails is said to have failed; it takes nobody down with it (I12).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from toolcrib.evals import metrics
from toolcrib.evals.baselines.protocol import Baseline, Opened
from toolcrib.evals.cases import Capabilities
from toolcrib.evals.places import Place
from toolcrib.evals.results import BUDGETS, MAX_FILLED, Result, Searched
from toolcrib.evals.run import filled, share
from toolcrib.evals.statistics import intervals, paired
from toolcrib.evals.summary import covered_by_tokens, rounded

Say = Callable[[str], None]


@dataclass(slots=True, kw_only=True)
class _Scores:
    """What one baseline reached on one place: a row per answerable case.

    Args:
        rows, own: its figures and Toolcrib's, as `_names` names them. given: by itself, see `_given`.
        filled, own_filled: shares covered within each of `BUDGETS`. several: whether the case needs several tools.
    """

    rows: list[list[float]] = field(default_factory=list)
    own: list[list[float]] = field(default_factory=list)
    given: list[list[float]] = field(default_factory=list)
    filled: list[list[float]] = field(default_factory=list)
    own_filled: list[list[float]] = field(default_factory=list)
    several: list[bool] = field(default_factory=list)
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
        "completeness_at_equal_tokens",
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
        k = max(MAX_FILLED, *depths, baseline.default_k or len(view.tools))
        started = time.perf_counter()
        found = searcher.search(asked.case.task, k)
        scores.search_s += time.perf_counter() - started
        ranking = [tool_id for tool_id in dict.fromkeys(found) if tool_id in known]
        wanted = asked.case.expect or ()
        costs = {tool_id: place.cost_of(tool_id) for tool_id in ranking[:MAX_FILLED]}
        scores.rows.append(_row(wanted, ranking, costs, result.searched, depths))
        scores.own.append(_own_row(result.searched, depths, place.limit))
        scores.given.append(_given(baseline, place, wanted, ranking, result.searched, n_tools=len(view.tools)))
        scores.filled.append([share(wanted, filled(list(costs), costs, budget)) for budget in BUDGETS])
        scores.own_filled.append(list(result.searched.by_budget))
        scores.several.append(len(wanted) > 1)
    return scores


def _row(
    wanted: Capabilities, ranking: Sequence[str], costs: Mapping[str, int], searched: Searched, depths: Sequence[int]
) -> list[float]:
    ranks = [next((r for r, tool_id in enumerate(ranking, start=1) if tool_id in tools), 0) for tools in wanted]
    covered = share(wanted, filled(list(costs), costs, searched.tokens_of_first))
    return [*_common(ranks, depths), covered, float(covered == 1)]


def _own_row(searched: Searched, depths: Sequence[int], limit: int) -> list[float]:
    own = metrics.recall(searched.ranks, limit), metrics.completeness(searched.ranks, limit)
    return [*_common(searched.ranks, depths), *own]


def _given(
    baseline: Baseline,
    place: Place,
    wanted: Capabilities,
    ranking: Sequence[str],
    searched: Searched,
    *,
    n_tools: int,
) -> list[float]:
    """By itself: the share covered, and its tokens; and the tokens of its first `limit`."""
    given = ranking[: baseline.default_k] if baseline.default_k else ranking
    tokens = searched.all_tokens if len(given) == n_tools else sum(map(place.cost_of, given))
    return [
        share(wanted, given),
        float(tokens + baseline.overhead_tokens),
        float(sum(map(place.cost_of, ranking[: place.limit]))),
    ]


def _common(ranks: Sequence[int], depths: Sequence[int]) -> list[float]:
    return [
        *(metrics.recall(ranks, k) for k in depths),
        *(metrics.completeness(ranks, k) for k in depths if k > 1),
        metrics.ndcg(ranks, 10),
        metrics.reciprocal_rank(ranks),
    ]


def _figures(scores: Sequence[_Scores], depths: Sequence[int], seed: int) -> dict[str, Any]:
    names = _names(depths)
    asked = [one for one in scores if one.rows]
    if not asked:
        return {"failed": "no case expects a tool"}
    sets, own = [np.array(one.rows) for one in asked], [np.array(one.own) for one in asked]
    means = np.mean([rows.mean(axis=0) for rows in sets], axis=0)
    spread = intervals(sets, seed=seed)
    ahead = {
        name: paired([mine[:, n] - theirs[:, n] for mine, theirs in zip(own, sets, strict=True)], seed=seed)
        for n, name in enumerate(names)
    }
    given = np.mean([np.array(one.given).mean(axis=0) for one in asked], axis=0)
    n_cases = sum(map(len, sets))
    return rounded(
        {
            "metrics": dict(zip(names, means.tolist(), strict=True)),
            "intervals": {name: list(pair) for name, pair in zip(names, spread, strict=True)},
            "recall_by_tokens": _by_tokens(asked, seed),
            "by_default": {"recall": float(given[0]), "tokens": float(given[1])},
            "tokens_at_limit": float(given[2]),
            "toolcrib_ahead": {name: asdict(one) for name, one in ahead.items() if one},
            "ms_per_search": 1_000 * sum(one.search_s for one in scores) / n_cases,
            "open_s": sum(one.open_s for one in scores),
            "n_cases": n_cases,
        }
    )


def _by_tokens(scores: Sequence[_Scores], seed: int) -> list[dict[str, Any]]:
    """As `summary.by_tokens` tells it of Toolcrib, and how far Toolcrib is ahead, case by case."""
    told = []
    for n, row in enumerate(covered_by_tokens([(one.filled, one.several) for one in scores])):
        differences = []
        for one in scores:
            mine, theirs = np.array(one.own_filled)[:, n], np.array(one.filled)[:, n]
            differences.append((mine - theirs, (mine == 1).astype(np.float64) - (theirs == 1)))
        recall = paired([found for found, _whole in differences], seed=seed)
        whole = paired([whole for _found, whole in differences], seed=seed)
        ahead = {"recall": recall, "completeness": whole}
        told.append({**row, "toolcrib_ahead": {name: asdict(one) for name, one in ahead.items() if one}})
    return told
