"""The table of retrieval figures: how often the right tool is found, and whether it is told when there is none.

    python benchmarks/retrieval.py DATA [--sample 300] [--embedders bundled,quality] [--peers-python PATH] [--json FILE]

DATA holds one folder per set with `tools.jsonl`, `queries.jsonl`, `qrels.jsonl`. All columns are asked the same cases
over the same definitions, by the code of `toolcrib eval`. A column whose package is not installed is left out and said
so. Figures are percent, with 95 % bootstrap intervals for the means; AUROC is 0 to 1.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean, median
from typing import Any

from toolcrib.errors import ConfigError
from toolcrib.evals.against import compared
from toolcrib.evals.baselines import available, unavailable
from toolcrib.evals.baselines.protocol import Baseline
from toolcrib.evals.folders import read_folder
from toolcrib.evals.places import Place, place_of_folder
from toolcrib.evals.results import EQUAL_TOKENS, Result
from toolcrib.evals.run import run, sampled
from toolcrib.evals.summary import Measured, summarised
from toolcrib.settings import RetrievalSettings, Settings

SIX = ("azure_mcp", "livemcpbench", "livemcpbench_needs", "bfcl", "restbench", "autotools")
OTHERS = ("metatool",)
REFUSAL = (("bfcl", "bfcl_irrelevance"), ("metatool", "metatool_removed"), ("when2call",))
"""Sets of one catalog: cases that a tool fits, and cases that none fits."""
METRICS = ("recall@1", "recall@5", "recall@10", "completeness@10", "ndcg@10")
EQUAL = ("livemcpbench", "bfcl")
"""Sets with tasks for several tools: told at equal tokens, too."""
PEERS = ("fastmcp",)
SEED = 5


@dataclass(slots=True, kw_only=True)
class Column:
    """What one way of searching reached. `sets`: name -> figures; `refusal`: names of sets -> figures."""

    name: str
    sets: dict[str, dict[str, float]] = field(default_factory=dict)
    means: dict[str, Any] = field(default_factory=dict)
    refusal: dict[str, dict[str, float]] = field(default_factory=dict)
    cpu_ms: list[float] = field(default_factory=list)


def settings_of(embedder: str) -> Settings:
    """The defaults, with this embedder; vectors that took long are kept beside the machine's other scratch files."""
    here = Path(tempfile.gettempdir()) / "toolcrib-bench"
    return Settings(root=here, path=here / "toolcrib.toml", retrieval=RetrievalSettings(embedder=embedder))  # type: ignore[arg-type]


def measured(data: Path, embedder: str, *, sample: int, peers: Sequence[Baseline]) -> Iterator[Column]:
    """Toolcrib's column with this embedder, then one per peer; sets in turn, so that one catalog at a time is held."""
    own = Column(name=f"toolcrib {embedder}")
    theirs = {peer.name: Column(name=peer.name) for peer in peers}
    kept: list[tuple[Place, tuple[Result, ...]]] = []
    for name in (*SIX, *OTHERS):
        place = sampled(_place(data / name, embedder), sample=sample, seed=SEED)
        results = run(place)
        print(f"  {own.name}: {name}, {len(results)} cases", file=sys.stderr, flush=True)
        told = summarised(_of([(place, results)]))
        own.sets[name] = _figures(told["metrics"]) | _within(told["recall_by_tokens"])
        own.cpu_ms += [result.searched.cpu_ms for result in results if result.searched]
        for peer, found in compared(peers, [place], {name: results}, depths=(1, 5, 10), seed=SEED).items():
            theirs[peer].sets[name] = _figures(found.get("metrics", {})) | _within(found.get("recall_by_tokens", ()))
        if name in SIX:
            kept.append((place, results))
    own.means = summarised(_of(kept))
    for names in REFUSAL:
        places = [sampled(_place(data / name, embedder), sample=sample, seed=SEED) for name in names]
        figures = summarised(_of([(place, run(place)) for place in places]))["metrics"]
        own.refusal["+".join(names)] = {
            key: figures[key] for key in ("refusal_auroc", "false_refusal", "false_accept") if figures[key] is not None
        }
    yield own
    yield from theirs.values()


def _place(folder: Path, embedder: str) -> Place:
    return place_of_folder(read_folder(folder), settings=settings_of(embedder))


def _of(asked: Sequence[tuple[Place, tuple[Result, ...]]]) -> Measured:
    return Measured(
        results=tuple(result for _, results in asked for result in results),
        corpora={place.name: place.corpus for place, _ in asked},
        seed=SEED,
    )


def _figures(metrics: dict[str, Any]) -> dict[str, float]:
    return {key: metrics[key] for key in METRICS if metrics.get(key) is not None}


def _within(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Share of the tasks for several tools for which all of them fit into so many tokens of definitions."""
    return {f"several within {row['tokens']:.0f}": row["several"] for row in rows if row["several"] is not None}


def shown(columns: Sequence[Column]) -> Iterator[str]:
    """The table, a line each."""
    yield f"{'':44}" + "".join(f"{column.name:>24}" for column in columns)
    yield _row("mean of the six, R@1/R@5/R@10", columns, lambda c: _cells(_mean(c), METRICS[:3]))
    yield _row("  95 % interval of R@5", columns, _interval)
    yield _row("azure_mcp R@1", columns, lambda c: _cells(c.sets.get("azure_mcp", {}), METRICS[:1]))
    yield _row(
        "livemcpbench R@5/completeness@10",
        columns,
        lambda c: _cells(c.sets.get("livemcpbench", {}), ("recall@5", "completeness@10")),
    )
    yield _row("livemcpbench_needs R@5", columns, lambda c: _cells(c.sets.get("livemcpbench_needs", {}), ("recall@5",)))
    yield _row("metatool R@5", columns, lambda c: _cells(c.sets.get("metatool", {}), ("recall@5",)))
    for names in REFUSAL:
        key = "+".join(names)
        yield _row(f"no tool fits, AUROC: {key}", columns, lambda c, key=key: _auroc(c.refusal.get(key)))  # type: ignore[misc]
        yield _row(
            "  false refusal/false accept",
            columns,
            lambda c, key=key: _cells(c.refusal.get(key, {}), ("false_refusal", "false_accept")),  # type: ignore[misc]
        )
    yield _row(
        "CPU ms a select, median over these sets", columns, lambda c: f"{median(c.cpu_ms):.2f}" if c.cpu_ms else ""
    )
    keys = [f"several within {tokens}" for tokens in EQUAL_TOKENS]
    for name in EQUAL:
        label = f"{name}, all of several in 1k/2k/4k/8k tokens"
        yield _row(label, columns, lambda c, name=name: _cells(c.sets.get(name, {}), keys))  # type: ignore[misc]
    yield ""
    for name in (*SIX, *OTHERS):
        yield _row(f"{name} R@1/R@5/R@10", columns, lambda c, name=name: _cells(c.sets.get(name, {}), METRICS[:3]))  # type: ignore[misc]


def _row(name: str, columns: Sequence[Column], cell: Any) -> str:
    return f"{name:44}" + "".join(f"{cell(column):>24}" for column in columns)


def _mean(column: Column) -> dict[str, float]:
    rows = [column.sets[name] for name in SIX if column.sets.get(name)]
    return {key: mean(row[key] for row in rows) for key in METRICS} if len(rows) == len(SIX) else {}


def _cells(figures: dict[str, float], keys: Sequence[str]) -> str:
    return "/".join(f"{100 * figures[key]:.1f}" if key in figures else "-" for key in keys)


def _interval(column: Column) -> str:
    given = column.means.get("intervals", {}).get("recall@5")
    return f"{100 * given[0]:.1f} to {100 * given[1]:.1f}" if given else ""


def _auroc(figures: dict[str, float] | None) -> str:
    return f"{figures['refusal_auroc']:.3f}" if figures and "refusal_auroc" in figures else "-"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument(
        "--sample", type=int, default=300, help="cases a set that a tool fits, and that none fits; 0: all"
    )
    parser.add_argument("--embedders", default="bundled,quality")
    parser.add_argument("--peers-python", default="", help="the interpreter that has the peers' packages")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    given = parser.parse_args()
    print(
        f"date {datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}, {platform.machine()}, {given.sample=}"
    )
    peers = available(PEERS, python=given.peers_python)
    for name, why in unavailable(PEERS, python=given.peers_python).items():
        print(f"NOT MEASURED: {name}: {why}")
    columns: list[Column] = []
    for embedder in given.embedders.split(","):
        try:
            columns += measured(given.data, embedder, sample=given.sample, peers=() if columns else peers)
        except ConfigError as fault:
            print(f"NOT MEASURED: embedder {embedder}: {fault}")
    columns.sort(key=lambda column: column.name.startswith("toolcrib"))
    print("\n".join(shown(columns)))
    if given.json:
        told = {c.name: {"sets": c.sets, "refusal": c.refusal, "means": c.means.get("metrics", {})} for c in columns}
        given.json.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
