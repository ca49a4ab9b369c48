"""From results to figures: metrics, intervals, figures by tag and by stage. The shape of `toolcrib eval --json`.

Below: `metrics.py`, `statistics.py`, `results.py`. Above: `cli/evals.py`, `page.py`, `gates.py`.

Invariants
1. All shares are 0 to 1. A figure that is not defined is null, and `notes` says why.
2. Over several sets a figure is the mean of the sets' own figures, each counting once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from toolcrib.evals import metrics
from toolcrib.evals.results import BUDGETS, Result, Searched
from toolcrib.evals.statistics import auroc_interval, intervals

FloatArray = npt.NDArray[np.float64]
DEFAULT_DEPTHS = (1, 5, 10)
REFUSAL = ("false_refusal", "false_accept", "false_selection")
_MAX_WORST = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The results of a run. `corpora`: set name -> version of the catalog it was asked of."""

    results: tuple[Result, ...]
    corpora: Mapping[str, str]
    depths: tuple[int, ...] = DEFAULT_DEPTHS
    seed: int = 5
    notes: tuple[str, ...] = ()
    by_set: dict[str, tuple[Result, ...]] = field(init=False)

    def __post_init__(self) -> None:
        sets = {name: tuple(r for r in self.results if r.set_name == name) for name in self.corpora}
        object.__setattr__(self, "by_set", sets)


def columns(depths: Sequence[int]) -> tuple[str, ...]:
    """The names of the figures that each case has, in the order of `values`."""
    deep = [k for k in depths if k > 1] or list(depths)
    return (
        *(f"recall@{k}" for k in depths),
        "ndcg@10",
        *(f"completeness@{k}" for k in deep),
        "mrr",
        "selected_recall",
        "selected_completeness",
        *REFUSAL,
    )


def values(result: Result, depths: Sequence[int]) -> list[float]:
    """The figures of one case as `columns` names them; NaN where a figure does not concern it."""
    nan, one = float("nan"), result.searched
    deep = [k for k in depths if k > 1] or list(depths)
    if result.case.answerable and one is not None:
        found = [
            *(metrics.recall(one.ranks, k) for k in depths),
            metrics.ndcg(one.ranks, 10),
            *(metrics.completeness(one.ranks, k) for k in deep),
            metrics.reciprocal_rank(one.ranks),
            sum(one.offers) / len(one.offers),
            float(all(one.offers)),
        ]
    else:
        found = [nan] * (len(depths) + len(deep) + 4)
    return [
        *found,
        float(result.refused) if result.fits else nan,
        float(not result.refused) if result.fits is False else nan,
        float(bool(one.forbidden)) if one is not None and result.case.forbid else nan,
    ]


def table(results: Sequence[Result], depths: Sequence[int]) -> FloatArray:
    """float64, shape (n_results, n_columns)."""
    if not results:
        return np.empty((0, len(columns(depths))))
    return np.array([values(result, depths) for result in results], dtype=np.float64)


def summarised(measured: Measured) -> dict[str, Any]:
    """The whole summary, ready for JSON, without baselines and comparisons."""
    names = columns(measured.depths)
    tables = {name: table(results, measured.depths) for name, results in measured.by_set.items()}
    per_set = {name: dict(zip(names, _means(rows), strict=True)) for name, rows in tables.items()}
    macro = {name: _mean(one[name] for one in per_set.values()) for name in names}
    groups = refusal_groups(measured)
    aurocs = {group.name: group.auroc for group in groups}
    macro["refusal_auroc"] = _mean(aurocs.values())
    spread: dict[str, Any] = {
        name: [low, high] if np.isfinite(low) else None
        for name, (low, high) in zip(names, intervals(list(tables.values()), seed=measured.seed), strict=False)
    }
    auroc_spread = auroc_interval([(g.positive, g.negative) for g in groups], seed=measured.seed)
    spread["refusal_auroc"] = list(auroc_spread) if auroc_spread else None
    for name, results in measured.by_set.items():
        per_set[name] |= {"refusal_auroc": _own_auroc(results), "n_cases": len(results)}
    return rounded(
        {
            "n_cases": len(measured.results),
            "n_answerable": sum(r.case.answerable for r in measured.results),
            "n_nothing_fits": sum(not r.case.answerable for r in measured.results),
            "metrics": macro,
            "intervals": spread,
            "latency_ms": latency(measured.results),
            "by_tag": by_tag(measured),
            "stages": stages(measured.results),
            "refusal": [group.to_dict() for group in groups],
            "recall_by_tokens": by_tokens(measured),
            "confused": confused(measured.results),
            "worst": [told(result, measured.depths) for result in worst(measured)],
            "sets": per_set,
            "notes": [*measured.notes, *_why_undefined(macro, measured)],
        }
    )


def _means(rows: FloatArray) -> list[float | None]:
    return [_mean(column.tolist()) for column in rows.T]


def _mean(given: Iterable[float | None]) -> float | None:
    known = [value for value in given if value is not None and np.isfinite(value)]
    return float(np.mean(known)) if known else None


# --- refusal ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalGroup:
    """The sets over one corpus, together: where some tool fits against where none does."""

    name: str
    positive: FloatArray
    negative: FloatArray

    @property
    def auroc(self) -> float | None:
        return metrics.auroc(self.positive, self.negative)

    def to_dict(self) -> dict[str, Any]:
        return {
            "sets": self.name.split(" + "),
            "auroc": self.auroc,
            "n_fits": len(self.positive),
            "n_nothing_fits": len(self.negative),
        }


def refusal_groups(measured: Measured) -> list[RefusalGroup]:
    """A group per corpus that has cases of both kinds."""
    together: dict[str, list[str]] = {}
    for name, corpus in measured.corpora.items():
        together.setdefault(corpus, []).append(name)
    groups = []
    for names in together.values():
        results = [result for name in names for result in measured.by_set[name]]
        groups.append(RefusalGroup(name=" + ".join(names), positive=_of(results, True), negative=_of(results, False)))
    return [group for group in groups if group.auroc is not None]


def _of(results: Sequence[Result], fits: bool) -> FloatArray:
    return np.array([r.confidence for r in results if r.fits is fits], dtype=np.float64)


def _own_auroc(results: Sequence[Result]) -> float | None:
    return metrics.auroc(_of(results, True), _of(results, False))


def _why_undefined(macro: Mapping[str, float | None], measured: Measured) -> list[str]:
    missing = {name for name, value in macro.items() if value is None}
    told = []
    if "mrr" in missing:
        told.append("recall, nDCG, completeness and MRR are null: no case expects a tool")
    if "refusal_auroc" in missing:
        told.append("refusal_auroc is null: it takes cases that a tool fits and cases that none fits, over one catalog")
    if "false_accept" in missing:
        told.append('false_accept is null: no case has "expect": null')
    if "false_refusal" in missing:
        told.append("false_refusal is null: no case expects a tool that its caller may use")
    if "false_selection" in missing:
        told.append("false_selection is null: no case names tools in forbid")
    out_of_reach = sum(result.fits is None for result in measured.results)
    if out_of_reach:
        told.append(
            f"{out_of_reach} cases expect only tools that their caller cannot reach, or that are not among their "
            "candidates; refusal leaves them out"
        )
    misfits = sum(len(r.searched.misfits) for r in measured.results if r.searched is not None)
    if misfits:
        told.append(f"expected arguments do not fit today's schema {misfits} times: see stages.arguments.misfits")
    return told


# --- by tag, by stage, by tokens -------------------------------------------------------------------------


def by_tag(measured: Measured) -> dict[str, dict[str, Any]]:
    """Figures over all cases of a tag; with several sets a tag is `set/tag`."""
    several = len(measured.corpora) > 1
    tagged: dict[str, list[Result]] = {}
    for result in measured.results:
        for tag in result.case.tags:
            tagged.setdefault(f"{result.set_name}/{tag}" if several else tag, []).append(result)
    names = columns(measured.depths)
    told = {}
    for tag in sorted(tagged):
        means = dict(zip(names, _means(table(tagged[tag], measured.depths)), strict=True))
        told[tag] = {"n": len(tagged[tag]), **means}
    return told


def latency(results: Sequence[Result]) -> dict[str, float | None]:
    """Milliseconds of a select, from the request to the selection with its records: by the clock, and of the CPU."""
    asked = [r.searched for r in results if r.searched is not None]
    wall, cpu = [one.wall_ms for one in asked], [one.cpu_ms for one in asked]
    return {
        "p50": metrics.quantile(wall, 0.5),
        "p95": metrics.quantile(wall, 0.95),
        "p99": metrics.quantile(wall, 0.99),
        "max": max(wall, default=None),
        "mean": float(np.mean(wall)) if wall else None,
        "cpu_p50": metrics.quantile(cpu, 0.5),
        "cpu_p95": metrics.quantile(cpu, 0.95),
    }


def stages(results: Sequence[Result]) -> dict[str, Any]:
    """What each stage did, each on its own: of what reached it, what it let through."""
    asked = [r.searched for r in results if r.searched is not None]
    wanted = [one for one in asked if one.ranks]
    n = sum(len(one.ranks) for one in wanted)
    n_there = sum(sum(one.in_service) for one in wanted)
    n_permitted = sum(sum(one.permitted) for one in wanted)
    found = [(one, rank) for one in wanted for rank, may in zip(one.ranks, one.permitted, strict=True) if may]
    n_found = sum(bool(rank) for _one, rank in found)
    offered = [one for one in asked if one.offered]
    rounds = [one.rounds for one in wanted if one.rounds]
    lost = [loss for one in wanted for loss in one.lost]
    return {
        "capabilities": n,
        "registry": {"in_service": _share(n_there, n)},
        "eligibility": {"permitted": _share(n_permitted, n_there)},
        "retrieval": {
            "among_candidates": _share(n_found, n_permitted),
            **{f"recall_of_permitted@{k}": _share(sum(0 < rank <= k for _one, rank in found), n_permitted)
               for k in (1, 5, 10)},
        },
        "routing": {
            "moved": sum(one.moved for one in asked),
            "lost": sum(loss.stage.value == "routing" for loss in lost),
        },
        "selection": {
            "offered_of_candidates": _share(sum(sum(one.offers) for one in wanted), n_found),
            "outcomes": dict(Counter(one.outcome for one in asked).most_common()),
            "tools_mean": _mean(len(one.offered) for one in offered),
            "lost_to_budget": sum(loss.code == "token_budget" for loss in lost),
        },
        "arguments": {
            "expected": sum(one.n_arguments for one in asked),
            "misfits": [line for one in asked for line in one.misfits][:_MAX_WORST],
        },
        "exposure": exposure(asked),
        "schema_tokens": {
            "offered_mean": _mean(one.tokens for one in offered),
            "offered_p95": metrics.quantile([one.tokens for one in offered], 0.95),
            "all_tools_mean": _mean(one.all_tokens for one in asked),
        },
        "discovery_rounds": {
            "mean": _mean(rounds),
            "in_one": _share(sum(r == 1 for r in rounds), len(wanted)),
            "never": _share(len(wanted) - len(rounds), len(wanted)),
        },
        "lost": dict(Counter(loss.stage.value for loss in lost).most_common()),
        "lost_codes": dict(Counter(f"{loss.stage.value}/{loss.code}" for loss in lost).most_common()),
    }  # fmt: skip


def exposure(asked: Sequence[Searched]) -> dict[str, int]:
    """How often something of a tool showed that its caller may not know of. All of them must be 0."""
    kinds = Counter(line.split(":")[0] for one in asked for line in one.exposed)
    counted = {kind: kinds.get(kind, 0) for kind in ("names", "descriptions", "counts", "traces")}
    return {**counted, "total": sum(counted.values())}


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def by_tokens(measured: Measured) -> list[dict[str, float | None]]:
    """What the ranking covers when it is filled into so many tokens of definitions."""
    asked = [
        [(r.searched.by_budget, len(r.searched.ranks) > 1) for r in results if r.searched and r.case.answerable]
        for results in measured.by_set.values()
    ]
    return covered_by_tokens([([row for row, _ in one], [several for _, several in one]) for one in asked])


def covered_by_tokens(sets: Sequence[tuple[Sequence[Sequence[float]], Sequence[bool]]]) -> list[dict[str, Any]]:
    """A row for each of `BUDGETS`; means over cases, then over sets.

    `recall` is the share of capabilities covered, `completeness` that of tasks for which all are, `several` the same
    among tasks that need more than one capability (None where there is none).

    Args:
        sets: for each set the shares covered of each case, and whether the case needs several capabilities.
    """
    told = []
    for n, budget in enumerate(BUDGETS):
        whole = [[(float(row[n] == 1), many) for row, many in zip(*one, strict=True)] for one in sets]
        told.append(
            {
                "tokens": float(budget),
                "recall": _mean(_mean(row[n] for row in rows) for rows, _ in sets),
                "completeness": _mean(_mean(value for value, _ in rows) for rows in whole),
                "several": _mean(_mean(value for value, many in rows if many) for rows in whole),
            }
        )
    return told


# --- what went wrong -------------------------------------------------------------------------------------


def confused(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Which tool came first where another was expected, most frequent first: one expected tool per case."""
    pairs: Counter[tuple[str, str]] = Counter()
    for result in results:
        one = result.searched
        if result.case.expect and one is not None and one.ranking and one.first_rank != 1:
            pairs[min(result.case.expect[0]), one.ranking[0]] += 1
    ordered = sorted(pairs.items(), key=lambda item: (-item[1], item[0]))
    return [{"expected": want, "got_first": got, "n": n} for (want, got), n in ordered[:_MAX_WORST]]


def worst(measured: Measured) -> list[Result]:
    """The cases that went wrong most: exposures and forbidden tools, then by capabilities lost and how deep."""

    def badness(result: Result) -> tuple[float, ...]:
        one = result.searched
        accepted = result.fits is False and not result.refused
        if one is None:
            return (0, 0, float(accepted), 0, result.confidence)
        lost = len(one.lost) / max(1, len(one.ranks)) if result.case.answerable else float(accepted)
        depth = 1 - metrics.reciprocal_rank(one.ranks) if one.ranks else 0.0
        return (len(one.exposed), len(one.forbidden), lost, depth, result.confidence)

    bad = [result for result in measured.results if any(badness(result)[:3])]
    return sorted(bad, key=lambda r: (tuple(-b for b in badness(r)), r.key))[:_MAX_WORST]


def told(result: Result, depths: Sequence[int]) -> dict[str, Any]:
    """A case and what came of it, as it is saved and shown."""
    one, case = result.searched, result.case
    figures = {
        name: value for name, value in zip(columns(depths), values(result, depths), strict=True) if np.isfinite(value)
    }
    return {
        "set": result.set_name,
        "id": case.case_id,
        "task": case.task,
        "tags": list(case.tags),
        "expect": None if case.expect is None else [sorted(tools) for tools in case.expect],
        "values": figures,
        "confidence": result.confidence,
        "refused": result.refused,
        "fits": result.fits,
        "outcome": one.outcome if one else "",
        "ranking": list(one.ranking) if one else [],
        "ranks": list(one.ranks) if one else [],
        "offered": list(one.offered) if one else [],
        "tokens": one.tokens if one else 0,
        "wall_ms": one.wall_ms if one else None,
        "forbidden": list(one.forbidden) if one else [],
        "exposed": list(one.exposed) if one else [],
        "lost": [
            {"capability": loss.capability, "stage": loss.stage.value, "code": loss.code, "reason": loss.reason}
            for loss in (one.lost if one else ())
        ],
    }


def rounded(value: dict[str, Any]) -> dict[str, Any]:
    """The same with six digits, which are plenty, and null for NaN, which is no JSON."""
    return {key: _plain(inner) for key, inner in value.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 6) if np.isfinite(value) else None
    if isinstance(value, dict):
        return rounded(value)
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value
