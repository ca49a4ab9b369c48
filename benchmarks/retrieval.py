"""Recall of the bundled retrieval on labelled tool sets.

    python benchmarks/retrieval.py DATA_DIR [--sets a,b] [--sample 300]

DATA_DIR holds one folder per set with `tools.jsonl`, `queries.jsonl`, `qrels.jsonl`. Recall@k is the share of a query's
capabilities with an acceptable tool among the first k. One table per arm (lexical, dense, hybrid) and the time of a
query.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np

from toolcrib.retrieval.decompose import wanted
from toolcrib.retrieval.dense import DenseView, Embedder, bundled_embedder, embed_all, embed_one
from toolcrib.retrieval.document import search_document
from toolcrib.retrieval.fusion import best_first
from toolcrib.retrieval.index import Index
from toolcrib.types import Tool, ToolMetadata, ToolState

SETS = ("azure_mcp", "livemcpbench", "livemcpbench_needs", "bfcl", "restbench", "autotools", "metatool")
DEPTHS = (1, 5, 10)
Cases = list[tuple[str, list[set[str]]]]


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def load_tools(folder: Path) -> tuple[Tool, ...]:
    """The tools of a set, sorted by id. Ids are the set's own, since some sets hold one name many times."""
    return tuple(sorted(map(_tool, read_jsonl(folder / "tools.jsonl")), key=lambda tool: tool.tool_id))


def _tool(row: dict[str, Any]) -> Tool:
    definition = {"name": row["name"], "description": row.get("description"), "inputSchema": row.get("input_schema")}
    return Tool(
        tool_id=row["tool_id"],
        server_id=str(row.get("server") or "server"),
        name=row["name"],
        definition=definition,
        digest="",
        state=ToolState.APPROVED,
        metadata=ToolMetadata(),
    )


def load_cases(folder: Path, *, sample: int) -> Cases:
    """(task, acceptable tool ids per capability), a fixed random sample of the answerable queries."""
    wanted_tools: dict[str, dict[int, set[str]]] = {}
    for row in read_jsonl(folder / "qrels.jsonl"):
        wanted_tools.setdefault(row["query_id"], {}).setdefault(row["capability"], set()).add(row["tool_id"])
    rows = [
        q for q in read_jsonl(folder / "queries.jsonl") if q["query_id"] in wanted_tools and not q.get("expect_none")
    ]
    chosen = (
        rows if len(rows) <= sample else [rows[i] for i in sorted(random.Random(5).sample(range(len(rows)), sample))]
    )
    return [(q["query"], list(wanted_tools[q["query_id"]].values())) for q in chosen]


def recalls(found: Sequence[str], capabilities: Sequence[set[str]]) -> list[float]:
    return [mean(bool(c & set(found[:k])) for c in capabilities) for k in DEPTHS]


def measure(folder: Path, *, embedder: Embedder, sample: int) -> dict[str, Any]:
    tools = load_tools(folder)
    cases = load_cases(folder, sample=sample)
    started = time.perf_counter()
    index = Index.build(tools, embedder=embedder)
    build_s = time.perf_counter() - started
    everyone = np.ones(len(tools), dtype=np.bool_)
    hybrid, lexical = index.view(everyone), Index.build(tools, embedder=None).view(everyone)
    vectors = embed_all(embedder, [search_document(tool).dense for tool in tools])
    assert vectors is not None
    dense = DenseView(vectors, np.arange(len(tools)))
    scores: dict[str, list[list[float]]] = {"lexical": [], "dense": [], "hybrid": []}
    times = []
    for task, capabilities in cases:
        started = time.perf_counter()
        hits = hybrid.search(task).hits
        times.append(1_000 * (time.perf_counter() - started))
        vector = embed_one(embedder, wanted(task))
        by_cosine = [] if vector is None else best_first(dense.cosines(vector), top_k=10)
        scores["hybrid"].append(recalls([h.tool_id for h in hits], capabilities))
        scores["lexical"].append(recalls([h.tool_id for h in lexical.search(task).hits], capabilities))
        scores["dense"].append(recalls([tools[i].tool_id for i in by_cosine], capabilities))
    table = {arm: [100 * mean(row[k] for row in rows) for k in range(len(DEPTHS))] for arm, rows in scores.items()}
    return {"recall": table, "n_tools": len(tools), "n_queries": len(cases), "ms": median(times), "build_s": build_s}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--sample", type=int, default=300)
    options = parser.parse_args()
    embedder = bundled_embedder()
    print(f"{embedder.model_id}; recall@{'/'.join(map(str, DEPTHS))} in percent; median ms a query, build in s")
    print(f"{'set':22}{'tools':>7}{'queries':>9}{'lexical':>20}{'dense':>20}{'hybrid':>20}{'ms':>7}{'build':>7}")
    totals = []
    for name in options.sets.split(","):
        result = measure(options.data / name, embedder=embedder, sample=options.sample)
        cells = {arm: "/".join(f"{value:.1f}" for value in row) for arm, row in result["recall"].items()}
        totals.append(result["recall"])
        print(
            f"{name:22}{result['n_tools']:>7}{result['n_queries']:>9}{cells['lexical']:>20}{cells['dense']:>20}"
            f"{cells['hybrid']:>20}{result['ms']:>7.1f}{result['build_s']:>7.1f}"
        )
    cells = {arm: "/".join(f"{mean(t[arm][k] for t in totals):.1f}" for k in range(len(DEPTHS))) for arm in totals[0]}
    print(f"{'mean':38}{cells['lexical']:>20}{cells['dense']:>20}{cells['hybrid']:>20}")


if __name__ == "__main__":
    main()
