"""Toolcrib beside other searches over tools: recall at equal k and at equal tokens, and what they cost.

    python benchmarks/peers.py DATA [--sets a,b] [--sample 60] [--baselines a,b] [--peers-python PATH] [--json FILE]

DATA holds one folder per set with `tools.jsonl`, `queries.jsonl`, `qrels.jsonl`. All are asked the same tasks over the
same definitions. Columns: recall@1, @5, @10 and completeness@10 in percent; recall within 1k, 2k, 4k, 8k tokens of
whole definitions, in the order of the ranking; recall and tokens as it comes, with its own number of tools and its own
search tool; CPU ms a query and CPU s to open a set. Toolcrib's query is the whole way from the request to the selection
with policy, packing and records, a peer's is its search alone. `all` has no order: nothing is said of its first ten.
Packages that are not installed are named, with the line that installs them.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean
from typing import Any

from toolcrib.evals.against import compared
from toolcrib.evals.baselines import available, unavailable
from toolcrib.evals.baselines.protocol import Baseline, Opened
from toolcrib.evals.folders import read_folder
from toolcrib.evals.places import place_of_folder
from toolcrib.evals.run import run, sampled
from toolcrib.evals.summary import Measured, summarised
from toolcrib.types import Tool

SETS = ("azure_mcp", "livemcpbench", "livemcpbench_needs", "bfcl", "restbench", "autotools", "metatool")
DEPTHS = (1, 5, 10)
BUDGETS = (1_000, 2_000, 4_000, 8_000)
METRICS = ("recall@1", "recall@5", "recall@10", "completeness@10")
Row = dict[str, float]


class Timed:
    """A baseline whose CPU time is taken: in this process, or as its own process tells."""

    def __init__(self, inner: Baseline) -> None:
        self.inner = inner
        self.name, self.default_k = inner.name, inner.default_k
        self.open_cpu_s, self.search_cpu_s, self.n = 0.0, 0.0, 0

    @property
    def about(self) -> str:
        return self.inner.about

    @property
    def overhead_tokens(self) -> int:
        return self.inner.overhead_tokens

    def open(self, tools: Sequence[Tool]) -> Opened:
        started = time.process_time()
        opened = self.inner.open(tools)
        self.open_cpu_s += getattr(opened, "open_cpu_s", time.process_time() - started)
        return TimedSearch(self, opened)


class TimedSearch:
    def __init__(self, timed: Timed, opened: Opened) -> None:
        self._timed, self._opened = timed, opened

    def search(self, task: str, k: int) -> Sequence[str]:
        before, started = getattr(self._opened, "search_cpu_s", 0.0), time.process_time()
        found = self._opened.search(task, k)
        here = time.process_time() - started
        self._timed.search_cpu_s += getattr(self._opened, "search_cpu_s", before + here) - before
        self._timed.n += 1
        return found


def measure(folder: Path, baselines: Sequence[Baseline], *, sample: int, seed: int) -> dict[str, Row | str]:
    """Name -> its row on this set, or what it failed with; Toolcrib first."""
    started = time.process_time()
    place = place_of_folder(read_folder(folder))
    open_cpu_s = time.process_time() - started
    place = sampled(place, sample=sample, seed=seed)
    run(sampled(place, sample=1, seed=seed))  # the peers are asked once, too, before anything is timed
    results = run(place)
    searched = [result.searched for result in results if result.searched and result.case.answerable]
    own = summarised(Measured(results=results, corpora={place.name: place.corpus}, depths=DEPTHS, seed=seed))
    rows: dict[str, Row | str] = {
        "toolcrib": _row(
            own,
            came=(own["metrics"]["selected_recall"], mean(one.tokens for one in searched)),
            cpu_ms=mean(one.cpu_ms for one in searched),
            open_cpu_s=open_cpu_s,
        )
    }
    for baseline in baselines:
        timed = Timed(baseline)
        told = compared([timed], [place], {place.name: results}, depths=DEPTHS, seed=seed)[baseline.name]
        rows[baseline.name] = told.get("failed") or _row(
            told,
            came=(told["by_default"]["recall"], told["by_default"]["tokens"]),
            ranked=baseline.default_k > 0,
            cpu_ms=1_000 * timed.search_cpu_s / max(1, timed.n),
            open_cpu_s=timed.open_cpu_s,
        )
    return rows


def _row(
    told: dict[str, Any], *, came: tuple[float, float], ranked: bool = True, cpu_ms: float, open_cpu_s: float
) -> Row:
    """`came`: share of recall and tokens, as it comes. Percent, except for tokens and times."""
    within = {int(one["tokens"]): one["recall"] for one in told["recall_by_tokens"]}
    order = {name: told["metrics"][name] for name in METRICS} | {f"within_{n}": within[n] for n in BUDGETS}
    return {
        **({key: 100 * value for key, value in order.items()} if ranked else {}),
        "recall": 100 * came[0],
        "tokens": came[1],
        "cpu_ms": cpu_ms,
        "open_cpu_s": open_cpu_s,
    }


def _line(name: str, row: Row | str) -> str:
    if isinstance(row, str):
        return f"  {name:18} failed: {row}"

    def shown(*keys: str) -> str:
        return "/".join(f"{row[key]:.1f}" if key in row else "-" for key in keys)

    order = f"{shown(*METRICS[:3]):>18}{shown(METRICS[3]):>9}{shown(*(f'within_{n}' for n in BUDGETS)):>24}"
    came = f"{row['recall']:.1f} in {row['tokens']:,.0f}"
    return f"  {name:18}{order}{came:>17}{row['cpu_ms']:>9.2f}{row['open_cpu_s']:>8.2f}"


def _means(tables: Sequence[dict[str, Row | str]]) -> dict[str, Row | str]:
    """Over sets; who failed on one has no mean."""
    means: dict[str, Row | str] = {}
    for name in tables[0]:
        rows = [row for table in tables if isinstance(row := table[name], dict)]
        whole = len(rows) == len(tables)
        means[name] = {key: mean(row[key] for row in rows) for key in rows[0]} if whole else "on some set, see above"
    return means


def main() -> None:
    """Print a table per set and their mean."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--sample", type=int, default=60, help="answerable cases a set; 0: all")
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--baselines", default="", help="names, comma between; all without")
    parser.add_argument("--peers-python", default="", help="the interpreter that has the peers' packages")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    given = parser.parse_args()
    names = [name for name in given.baselines.split(",") if name]
    baselines = available(names, python=given.peers_python)
    absent = unavailable(names, python=given.peers_python)
    print(
        f"date {datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}, {platform.machine()}, {given.sample=}"
    )
    for name, why in absent.items():
        print(f"NOT MEASURED: {name}: {why}")
    order = f"{'R@1/5/10':>18}{'compl@10':>9}{'R in 1k/2k/4k/8k tok':>24}"
    columns = f"  {'':18}{order}{'as it comes':>17}{'cpu ms':>9}{'open s':>8}"
    tables: dict[str, dict[str, Row | str]] = {}
    for set_name in given.sets.split(","):
        tables[set_name] = measure(given.data / set_name, baselines, sample=given.sample, seed=given.seed)
        print(f"\n{set_name}\n{columns}")
        print("\n".join(_line(name, row) for name, row in tables[set_name].items()), flush=True)
    means = _means(list(tables.values()))
    print(f"\nmean of {len(tables)} sets\n{columns}")
    print("\n".join(_line(name, row) for name, row in means.items()))
    print()
    for baseline in baselines:
        print(f"  {baseline.name}: {baseline.about}")
    if given.json:
        told = {"sets": tables, "mean": means, "absent": dict(absent), "about": {b.name: b.about for b in baselines}}
        given.json.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
