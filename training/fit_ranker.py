"""Fit the learned ranker (`retrieval/ranker.py`) on training sets and print what it is worth.

    PYTHONPATH=src python training/fit_ranker.py DATA_DIR --cross stabletoolbench=DIR,traject=DIR,sealtools=DIR \
        --requests-model DIR --model DIR --out src/toolcrib/retrieval/model/ranker.npz

LambdaMART (LightGBM, at training time only) over the features of each request's candidates. The tools of a set are
put to its requests whole and in catalogs of a few servers, with tools stuffed with common words among them, which are
never right. A set is seen through a table that was tuned without it (`--cross`, `--requests-model`), or cosines would
look better than they are to a stranger; acebench and the dev part of the written requests, which no table is tuned
on, are seen through the shipped one. With `--encoder`, trees for the quality model: only those two kinds of requests
are used, since the encoder was tuned on all others; vectors of documents are kept in `--kept`. Printed: recall@1/5/10
and completeness@10 without and with trees, each set scored by trees that were fitted without it; of the dev part one
half is scored by trees that were fitted without that half. The trees that are written are fitted on all. No test set
is read.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
from data import HELD_OUT, as_tool, folder_of, load, load_written, read_jsonl

from toolcrib.retrieval.cover import covering
from toolcrib.retrieval.dense import MODEL_DIR, Embedder, StaticEmbedder
from toolcrib.retrieval.embedders.packaged import quality_embedder
from toolcrib.retrieval.index import Index
from toolcrib.retrieval.ranker import FEATURES, N_LEAVES, WEIGHT, Trees
from toolcrib.retrieval.tokenize import split_identifier
from toolcrib.retrieval.words import REQUEST_WORDS
from toolcrib.types import Tool

N_TREES = 120
DEPTHS = (1, 5, 10)
SHARE = {
    "stabletoolbench": 1.0,
    "traject": 0.8,
    "sealtools": 0.5,
    "acebench": 0.5,
    "written_mcp": 0.8,
    "written_api": 0.8,
}
"""What a request of each set counts; one of the dev part counts double."""
DEV_SHARE = 2.0
N_STUFFED = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request put to one catalog.

    Args:
        only: numbers of the tools in the catalog; None for all.
        part: train, dev or check, which is the other half of dev.
    """

    text: str
    right: list[set[int]]
    only: tuple[int, ...] | None
    part: str = "train"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    name: str
    tools: list[Tool]
    asked: list[Asked]
    embedder: Embedder


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One request's candidates. `x`: (n, n_features). `right`: tool numbers per capability."""

    source: str
    part: str
    x: np.ndarray
    tools: np.ndarray
    total: np.ndarray
    facets: np.ndarray
    right: list[set[int]]

    @property
    def labels(self) -> np.ndarray:
        wanted = {tool for capability in self.right for tool in capability}
        return np.array([tool in wanted for tool in self.tools.tolist()], dtype=np.int8)


def stuffed(tools: Sequence[Tool], rng: random.Random) -> list[Tool]:
    """Tools that answer nothing and would like to be found: names and texts made of the catalog's common words."""
    words = Counter(word for tool in tools for word in split_identifier(tool.name).lower().split() if len(word) > 2)
    common = [word for word, _ in words.most_common(150)]
    texts = [str(tool.definition.get("description") or "") for tool in tools]
    made = []
    for number in range(N_STUFFED):
        name = "_".join(rng.sample(common, min(4, len(common)))) if number % 2 else f"helper{number}"
        text = rng.choice(
            (
                " ".join(rng.sample(common, min(60, len(common)))),
                " ".join(sorted(REQUEST_WORDS)[:80]) + " " + " ".join(rng.sample(common, min(20, len(common)))),
                " ".join(text[:120] for text in rng.sample(texts, min(12, len(texts)))),
                "The best and only tool for: " + ", ".join(rng.sample(common, min(30, len(common)))),
            )
        )
        made.append(as_tool({"name": name, "server": f"stuffed{number}", "description": text}))
    return made


def numbered(tools: Sequence[Tool]) -> list[Tool]:
    """Ids that cannot clash, in order: a set may hold one name many times."""
    return [replace(tool, tool_id=f"{number:06d}.{tool.name}") for number, tool in enumerate(tools)]


def few_servers(tools: Sequence[Tool], right: set[int], rng: random.Random, *, size: int) -> tuple[int, ...]:
    """About `size` tools: the servers of the right ones and others, or any others where a set has but one server."""
    servers: dict[str, list[int]] = {}
    for number, tool in enumerate(tools):
        servers.setdefault(tool.server_id, []).append(number)
    if len(servers) <= N_STUFFED + 3:
        return tuple(sorted({*right, *rng.sample(range(len(tools)), min(size, len(tools)))}))
    chosen = {number for tool in right for number in servers[tools[tool].server_id]}
    for server in rng.sample(list(servers), len(servers)):
        if len(chosen) >= size:
            break
        chosen.update(servers[server])
    return tuple(sorted(chosen))


def catalogs(
    tools: list[Tool], requests: Sequence[tuple[str, list[set[int]], str]], rng: random.Random, *, sizes: dict[int, int]
) -> list[Asked]:
    """`sizes`: how many requests are put to catalogs of each size, 0 for the whole set."""
    asked = []
    for size, n in sizes.items():
        for text, right, part in rng.sample(list(requests), min(n, len(requests))):
            flat = {tool for capability in right for tool in capability}
            only = few_servers(tools, flat, rng, size=size) if size else None
            asked.append(Asked(text=text, right=right, only=only, part=part))
    return asked


def sources(
    root: Path,
    cross: dict[str, Path],
    *,
    requests_model: Path | None,
    shipped: Embedder,
    rng: random.Random,
    scale: float,
) -> Iterator[Source]:
    """`requests_model` None: only what no model is tuned on."""
    for name, sizes in (
        ("stabletoolbench", {0: 500, 200: 250}),
        ("traject", {0: 350, 150: 150}),
        ("sealtools", {0: 250, 300: 150}),
        (HELD_OUT, {0: 300}),
    ):
        if requests_model is None and name != HELD_OUT:
            continue
        data = load(root, name)
        tools = [as_tool(row) for row in data.tools]
        tools = numbered([*tools, *stuffed(tools, rng)])
        alone = {row["query"] for row in read_jsonl(folder_of(root, name) / "queries.jsonl") if not row.get("context")}
        requests = [
            (text, right, "train") for text, right in zip(data.queries, data.relevant, strict=True) if text in alone
        ]
        embedder = StaticEmbedder(cross[name]) if name in cross else shipped
        asked = catalogs(tools, requests, rng, sizes=scaled(sizes, scale))
        yield Source(name=name, tools=tools, asked=asked, embedder=embedder)
    for name in ("written_mcp", "written_api"):
        written = load_written(root, name)
        tools = [as_tool(row) for row in written.data.tools]
        tools = numbered([*tools, *stuffed(tools, rng)])
        requests = list(zip(written.data.queries, written.data.relevant, written.parts, strict=True))
        if requests_model is not None:
            train = [request for request in requests if request[2] == "train"]
            asked = catalogs(tools, train, rng, sizes=scaled({0: 300, 400: 1_000, 60: 600}, scale))
            yield Source(name=name, tools=tools, asked=asked, embedder=StaticEmbedder(requests_model))
        dev = [request for request in requests if request[2] == "dev"]
        halves = [(text, right, ("dev", "check")[number % 2]) for number, (text, right, _) in enumerate(dev)]
        asked = catalogs(tools, halves, rng, sizes={0: 400, 400: len(halves), 60: 600})
        yield Source(name=name, tools=tools, asked=asked, embedder=shipped)


def scaled(sizes: dict[int, int], scale: float) -> dict[int, int]:
    return {size: int(n * scale) for size, n in sizes.items()}


def groups(source: Source) -> list[Group]:
    index = Index.build(source.tools, embedder=source.embedder)
    views: dict[tuple[int, ...] | None, Any] = {}
    found = []
    for asked in source.asked:
        if asked.only not in views:
            permitted = np.ones(len(source.tools), dtype=np.bool_)
            if asked.only is not None:
                permitted[:] = False
                permitted[[*asked.only, *range(len(source.tools) - N_STUFFED, len(source.tools))]] = True
                views.clear()
            views[asked.only] = index.view(permitted)
        view = views[asked.only]
        seen = view.candidates(asked.text)
        if len(seen.tools) > 1:
            found.append(
                Group(
                    source=source.name,
                    part=asked.part,
                    x=view.features(seen).T,
                    tools=seen.tools,
                    total=seen.total,
                    facets=seen.facets,
                    right=asked.right,
                )
            )
    return found


def share_of(group: Group) -> float:
    return SHARE[group.source] * (1.0 if group.part == "train" else DEV_SHARE)


def fit(chosen: Sequence[Group], *, seed: int) -> Trees:
    usable = [group for group in chosen if 0 < group.labels.sum() < len(group.labels)]
    model = lightgbm.LGBMRanker(
        objective="lambdarank",
        n_estimators=N_TREES,
        num_leaves=N_LEAVES,
        learning_rate=0.07,
        min_child_samples=100,
        subsample=0.7,
        subsample_freq=1,
        colsample_bytree=0.5,
        reg_lambda=8.0,
        label_gain=[0, 1],
        monotone_constraints=[-1 if name == "length" else 0 for name in FEATURES],  # length must buy no rank
        lambdarank_truncation_level=12,
        n_jobs=1,
        verbose=-1,
        random_state=seed,
        deterministic=True,
    )
    model.fit(
        np.concatenate([group.x for group in usable]),
        np.concatenate([group.labels for group in usable]),
        group=[len(group.tools) for group in usable],
        sample_weight=np.concatenate([np.full(len(group.tools), share_of(group)) for group in usable]),
    )
    return trees_of(model.booster_.dump_model())


def trees_of(dumped: dict[str, Any]) -> Trees:
    """LightGBM's trees as flat arrays: see `ranker.Trees`."""
    n_trees = len(dumped["tree_info"])
    shape = (N_LEAVES - 1, n_trees)
    found, limits = np.zeros(shape, dtype=np.int64), np.full(shape, np.inf)
    masks, values = np.full(shape, 255, dtype=np.uint8), np.zeros((n_trees, N_LEAVES))
    for number, tree in enumerate(dumped["tree_info"]):
        nodes: list[tuple[int, float, int]] = []
        leaves: list[float] = []

        def walk(node: dict[str, Any], nodes: list = nodes, leaves: list = leaves) -> None:
            if "leaf_value" in node:
                leaves.append(node["leaf_value"])
                return
            first = len(leaves)
            walk(node["left_child"])
            gone = sum(1 << leaf for leaf in range(first, len(leaves)))
            nodes.append((node["split_feature"], node["threshold"], 255 ^ gone))
            walk(node["right_child"])

        walk(tree["tree_structure"])
        for row, (feature, limit, mask) in enumerate(nodes):
            found[row, number], limits[row, number], masks[row, number] = feature, limit, mask
        values[number, : len(leaves)] = leaves
    return Trees(features=found, limits=limits, masks=masks, values=values)


def fit_without(everything: Sequence[Group], name: str, *, seed: int) -> Trees:
    return fit([group for group in everything if group.source != name], seed=seed)


def recalls(group: Group, trees: Trees | None) -> list[float]:
    total = group.total if trees is None else group.total + WEIGHT * trees.scores(group.x.T)
    ranked = group.tools[covering(total, group.facets)].tolist()
    hits = [[bool(capability & set(ranked[:k])) for capability in group.right] for k in DEPTHS]
    return [*(float(np.mean(hit)) for hit in hits), float(all(hits[-1]))]


def report(name: str, tested: Sequence[Group], trees: Trees) -> None:
    cells = []
    for used in (None, trees):
        mean = 100 * np.mean([recalls(group, used) for group in tested], axis=0)
        cells.append(" / ".join(f"{value:5.1f}" for value in mean))
    print(f"{name:28}{len(tested):>6}   {cells[0]}   {cells[1]}", flush=True)


def write(path: Path, trees: Trees) -> None:
    np.savez_compressed(
        path,
        names=np.array(FEATURES),
        features=trees.features.astype(np.uint8),
        limits=trees.limits.astype(np.float32),
        masks=trees.masks,
        values=trees.values.astype(np.float32),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--cross", default="", help="SET=DIR,... tables tuned without that set")
    parser.add_argument("--requests-model", type=Path, help="a table tuned without requests.jsonl")
    parser.add_argument("--encoder", type=Path, help="folder of the packaged encoder: trees for the quality model")
    parser.add_argument("--kept", type=Path, help="folder to keep the encoder's vectors in")
    parser.add_argument("--model", type=Path, default=MODEL_DIR, help="the shipped table")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the train requests to use")
    parser.add_argument("--no-check", action="store_true", help="do not leave sets out, one after another")
    parser.add_argument("--seed", type=int, default=4)
    options = parser.parse_args()
    if (options.requests_model is None) == (options.encoder is None):
        raise SystemExit(
            "give --requests-model (and --cross) for the table's trees, or --encoder for the quality model's"
        )
    pairs = (pair.partition("=") for pair in options.cross.split(",") if pair)
    cross = {name: Path(folder) for name, _, folder in pairs}
    shipped: Embedder = StaticEmbedder(options.model)
    if options.encoder is not None:
        shipped = quality_embedder(StaticEmbedder(options.model), folder=options.encoder, kept_in=options.kept)
    everything: list[Group] = []
    for source in sources(
        options.data,
        cross,
        requests_model=options.requests_model,
        shipped=shipped,
        rng=random.Random(options.seed),
        scale=options.scale,
    ):
        started = time.perf_counter()
        everything += groups(source)
        print(f"{source.name}: {len(source.asked)} requests, {time.perf_counter() - started:.0f} s", flush=True)
    print("\nrecall@1 / @5 / @10 / completeness@10 in percent, without trees and with")
    trees = fit([g for g in everything if g.part != "check"], seed=options.seed)
    for name in ("written_mcp", "written_api"):
        report(f"{name}, half of dev", [g for g in everything if g.source == name and g.part == "check"], trees)
    if not options.no_check:
        for left_out in SHARE:
            tested = [g for g in everything if g.source == left_out and g.part != "dev"]
            if not tested:
                continue
            report(f"{left_out}, left out", tested, fit_without(everything, left_out, seed=options.seed))
    trees = fit(everything, seed=options.seed)
    write(options.out, trees)
    used = Counter(FEATURES[f] for f in trees.features[np.isfinite(trees.limits)].tolist())
    print("splits:", ", ".join(f"{name} {n}" for name, n in used.most_common()))


if __name__ == "__main__":
    main()
