"""What learning from use gives on a labelled set: half of its requests are the log, the other half is asked afterwards.

    python benchmarks/learning.py DATA/stabletoolbench --requests 2000

The log holds what a log can hold: with `--offered` only tools that a search had among its first ten count as called.
Seven people ask in turn. Prints recall at 1, 5 and 10 over capabilities, as a search finds them, before and after.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from toolcrib.evals.folders import read_folder
from toolcrib.retrieval.dense import StaticEmbedder, bundled_embedder
from toolcrib.retrieval.index import Index
from toolcrib.retrieval.search import View
from toolcrib.retrieval.tuning import Example, fit

DEPTHS = (1, 5, 10)
N_PEOPLE = 7


def recalls(view: View, tasks: list[str], wanted: list[list[set[int]]]) -> list[float]:
    found = []
    for task, capabilities in zip(tasks, wanted, strict=True):
        hits = [hit.tool_idx for hit in view.search(task, top_k=max(DEPTHS)).hits]
        found.append([np.mean([bool(tools.intersection(hits[:k])) for tools in capabilities]) for k in DEPTHS])
    return [round(100 * float(value), 1) for value in np.mean(found, axis=0)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="a folder with tools.jsonl, queries.jsonl and qrels.jsonl")
    parser.add_argument("--model", type=Path, help="folder of another static model")
    parser.add_argument("--requests", type=int, default=0, help="so many at most, drawn by the seed; 0: all")
    parser.add_argument("--offered", action="store_true", help="only what a search had offered counts as called")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()

    folder = read_folder(given.data)
    number = {tool.tool_id: idx for idx, tool in enumerate(folder.tools)}
    pairs = [
        (case.task, [{number[tool] for tool in tools if tool in number} for tools in case.expect])
        for case in folder.cases
        if case.expect and all(any(tool in number for tool in tools) for tools in case.expect)
    ]
    order = np.random.default_rng(given.seed).permutation(len(pairs))[: given.requests or None]
    tasks, wanted = [pairs[n][0] for n in order], [pairs[n][1] for n in order]
    half = len(tasks) // 2

    embedder = StaticEmbedder(given.model) if given.model else bundled_embedder()
    index = Index.build(folder.tools, embedder=embedder)
    everyone = np.ones(len(folder.tools), dtype=np.bool_)
    plain = index.view(everyone)
    log = []
    for n in range(half):
        called = list(dict.fromkeys(min(tools) for tools in wanted[n]))
        if given.offered:
            offered = {hit.tool_idx for hit in plain.search(tasks[n], top_k=max(DEPTHS)).hits}
            called = [tool for tool in called if tool in offered]
        if called:
            log.append(Example(text=tasks[n], called=tuple(called), subjects=frozenset([str(n % N_PEOPLE)])))
    began = time.perf_counter()
    part = fit(
        plain,
        log,
        tools=[(tool.tool_id, tool.digest) for tool in folder.tools],
        tenant="",
        model_id=index.model_id,
        seed=given.seed,
    )
    took_s = time.perf_counter() - began
    print(f"{folder.name}: {len(folder.tools)} tools, {len(log)} requests in the log, {len(tasks) - half} asked after")
    print(f"before: {recalls(plain, tasks[half:], wanted[half:])}")
    if part is None:
        print("nothing was learned")
        return
    print(f"after:  {recalls(index.view(everyone, learned=part), tasks[half:], wanted[half:])}")
    print(f"{len(part.pieces)} pieces, {len(part.called)} precedents x {part.weight}, learned in {took_s:.0f} s")


if __name__ == "__main__":
    main()
