"""Fit the constants of `retrieval/confidence.py` on training data and print what they are worth.

    PYTHONPATH=src python training/fit_confidence.py DATA_DIR --cross CROSS_MODEL_DIR

Examples: requests put to catalogs that hold their tool and to catalogs that do not, of 1 to 300 tools and whole, with
and without the dense arm. Sources: acebench and acebench_irrelevant (which tuning never saw); stabletoolbench and
traject, seen through a table tuned without them (`tune.py --without stabletoolbench,traject`, or cosines would look
better than they are); for short requests, first sentences of descriptions in mcp_toucan against tools whose
description lacks that sentence. Half of the requests are kept out of the fit; the floor is the value under which 2 %
of those with an answer fall. No test set is read.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from data import HELD_OUT, as_tool, first_sentence, folder_of, load, read_jsonl

from toolcrib.retrieval import confidence
from toolcrib.retrieval.decompose import wanted
from toolcrib.retrieval.dense import StaticEmbedder, bundled_embedder
from toolcrib.retrieval.index import Index
from toolcrib.types import Tool

SIZES = (1, 4, 10, 30, 100, 300)
N_HITS = 2
FALSE_REFUSALS = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A request put to one catalog. `right`: tool numbers that answer it, perhaps none. `only`: the catalog's tools."""

    text: str
    only: tuple[int, ...]
    right: frozenset[int]
    source: str


def labelled(root: Path, name: str, rng: random.Random, *, n: int) -> tuple[list[Tool], list[Example]]:
    data = load(root, name)
    tools = [as_tool(row) for row in data.tools]
    number = {row["tool_id"]: idx for idx, row in enumerate(data.tools)}
    examples = []
    chosen = sorted(rng.sample(range(len(data.queries)), min(n, len(data.queries))))
    for text, capabilities in ((data.queries[i], data.relevant[i]) for i in chosen):
        right = frozenset(idx for c in capabilities for idx in c)
        others = [idx for idx in range(len(tools)) if idx not in right]
        for size in rng.sample(SIZES, 2):
            drawn = rng.sample(others, size)
            examples.append(Example(text=text, only=(*right, *drawn[1:]), right=right, source=name))
            examples.append(Example(text=text, only=tuple(drawn), right=frozenset(), source=name))
        examples.append(Example(text=text, only=tuple(range(len(tools))), right=right, source=name))
    for row in read_jsonl(folder_of(root, f"{name}_irrelevant") / "queries.jsonl"):
        shown = tuple(number[tool_id] for tool_id in row["candidate_tool_ids"] if tool_id in number)
        examples.append(Example(text=row["query"], only=shown, right=frozenset(), source=name))
    return tools, examples


def short_requests(root: Path, rng: random.Random, *, n: int) -> tuple[list[Tool], list[Example]]:
    rows = [
        r for r in read_jsonl(folder_of(root, "mcp_toucan") / "tools.jsonl") if len(r.get("description") or "") > 80
    ]
    chosen = rng.sample(rows, n)
    sentences = [first_sentence(row["description"]) for row in chosen]
    tools = [
        as_tool(row | {"description": row["description"].strip()[len(s) :]})
        for row, s in zip(chosen, sentences, strict=True)
    ]
    examples = []
    for idx, sentence in enumerate(sentences):
        others = [i for i in range(n) if tools[i].name != tools[idx].name]
        text = " ".join(sentence.lower().rstrip(".").split()[:12])
        drawn = rng.sample(others, rng.choice(SIZES))
        examples.append(Example(text=text, only=(idx, *drawn[1:]), right=frozenset([idx]), source="short"))
        examples.append(Example(text=text, only=tuple(drawn), right=frozenset(), source="short"))
    return tools, examples


def rows_of(index: Index, order: Sequence[int], example: Example) -> Iterator[tuple[np.ndarray, bool]]:
    """Features and truth of the first hits. `order[i]`: the index's number of tool i."""
    permitted = np.zeros(len(index.tools), dtype=np.bool_)
    permitted[[order[i] for i in example.only]] = True
    view = index.view(permitted)
    hits = [hit for hit in view.search(example.text, top_k=N_HITS).hits if not hit.named]
    if not hits:
        return
    evidence = confidence.Evidence(
        tools=np.array([h.tool_idx for h in hits]),
        names=tuple(index.tools[h.tool_idx].name for h in hits),
        cosines=None if index.model_id == "none" else np.array([h.dense for h in hits]),
    )
    # The lexical view has no public face of its own; fitting reads what search reads.
    x = confidence.features(wanted(example.text), evidence, view._lexical)
    right = {order[i] for i in example.right}
    yield from ((row, hit.tool_idx in right) for row, hit in zip(x, hits, strict=True))


def fit(x: np.ndarray, y: np.ndarray, *, l2: float = 1.0, n_steps: int = 30) -> tuple[np.ndarray, float]:
    """Logistic regression by Newton steps on raw features, classes weighted alike."""
    z = np.c_[x, np.ones(len(x))]
    sample = np.where(y, 0.5 / y.mean(), 0.5 / (1 - y.mean()))
    beta, ridge = np.zeros(z.shape[1]), np.eye(z.shape[1]) * l2
    ridge[-1, -1] = 1e-6
    for _ in range(n_steps):
        p = 1 / (1 + np.exp(-z @ beta))
        curve = (sample * p * (1 - p))[:, None] * z
        beta += np.linalg.solve(z.T @ curve + ridge, z.T @ (sample * (y - p)) - ridge @ beta)
    return beta[:-1], float(beta[-1])


def auroc(right: np.ndarray, wrong: np.ndarray) -> float:
    ranks = np.argsort(np.argsort(np.r_[right, wrong], kind="stable"), kind="stable") + 1.0
    return float((ranks[: len(right)].sum() - len(right) * (len(right) + 1) / 2) / (len(right) * len(wrong)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--cross", type=Path, required=True)
    parser.add_argument("--short", type=int, default=600)
    parser.add_argument("--seed", type=int, default=3)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    groups: list[tuple[Example, bool, np.ndarray, np.ndarray]] = []
    cross = StaticEmbedder(options.cross)
    sources = [(bundled_embedder(), labelled(options.data, HELD_OUT, rng, n=800))]
    sources += [(cross, labelled(options.data, name, rng, n=400)) for name in ("stabletoolbench", "traject")]
    sources += [(bundled_embedder(), short_requests(options.data, rng, n=options.short))]
    for model, (tools, examples) in sources:
        sorting = sorted(range(len(tools)), key=lambda i: tools[i].tool_id)
        order = {i: at for at, i in enumerate(sorting)}
        for embedder in (model, None):
            index = Index.build([tools[i] for i in sorting], embedder=embedder)
            for example in examples if embedder else examples[::5]:
                found = list(rows_of(index, order, example))
                if found:
                    groups.append(
                        (
                            example,
                            embedder is not None,
                            np.array([r for r, _ in found]),
                            np.array([y for _, y in found]),
                        )
                    )
    texts = sorted({e.text for e, *_ in groups if e.source != "short"})
    kept_out = set(rng.sample(texts, len(texts) // 2))
    learned = [g for g in groups if g[0].text not in kept_out]
    weights, bias = fit(np.concatenate([g[2] for g in learned]), np.concatenate([g[3] for g in learned]))
    print(
        "WEIGHTS =",
        tuple(round(float(w), 3) for w in weights),
        "BIAS =",
        round(bias, 3),
        "rows",
        sum(len(g[2]) for g in learned),
    )
    report([g for g in groups if g[0].text in kept_out], weights, bias)


def report(groups: Sequence[tuple[Example, bool, np.ndarray, np.ndarray]], weights: np.ndarray, bias: float) -> None:
    """AUROC, floor, refusals and calibration on what the fit did not see."""
    for dense in (True, False):
        best = [((1 / (1 + np.exp(-(x @ weights + bias)))).max(), e) for e, d, x, _ in groups if d is dense]
        right = np.array([p for p, e in best if e.right])
        wrong = np.array([p for p, e in best if not e.right])
        print(f"dense={dense}: AUROC {auroc(right, wrong):.3f}")
        for source in sorted({e.source for _, e in best}):
            answerable = [p for p, e in best if e.right and e.source == source]
            floor = float(np.quantile(answerable, FALSE_REFUSALS))
            caught = np.mean([p < floor for p, e in best if not e.right and e.source == source])
            print(f"  {source}: floor {floor:.3f} refuses {caught:.0%} of the unanswerable")
        if dense:
            p = np.concatenate([1 / (1 + np.exp(-(x @ weights + bias))) for _, d, x, _ in groups if d])
            y = np.concatenate([y for _, d, _, y in groups if d])
            for low in np.arange(0, 1, 0.2):
                inside = (p >= low) & (p < low + 0.2)
                print(f"  said {low:.1f}-{low + 0.2:.1f}: right {y[inside].mean():.2f} of {inside.sum()}")


if __name__ == "__main__":
    main()
