"""Training pairs and their hard negatives, shared by `tune_encoder.py`, `tune.py` and `measure_cross_encoder.py`.

A `Group` is one catalog with requests: labelled, written for this project, or made from the catalog itself (the first
sentence of a description against the rest). For each request it holds tools that are
near by BM25 and near by the original encoder; tools that the original encoder takes for the same as a right one are
twins (forks and copies of a server) and never count as wrong.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from data import (
    CATALOGS,
    PERMISSIVE,
    WRITTEN_OVER,
    DataSet,
    Written,
    as_tool,
    catalog,
    first_sentence,
    load,
    load_written,
    text_of,
)
from encoder import MAX_DOCUMENT, MAX_QUERY, TextVectors

from toolcrib.retrieval.decompose import wanted
from toolcrib.retrieval.document import search_document
from toolcrib.retrieval.fusion import best_first
from toolcrib.retrieval.lexical import LexicalView, build_postings
from toolcrib.retrieval.tokenize import query_terms

N_NEAR = 24
TWIN = 0.93
SHARE = {
    "written_mcp": 6.0,
    "written_api": 1.5,
    "stabletoolbench": 1.2,
    "traject": 1.2,
    "sealtools": 1.0,
    "apibench_gorilla": 0.25,
    "mcp_toucan": 1.2,
    "mcp_toolsdk": 0.5,
}
"""How often a group is drawn. The written requests are the most like what people ask of real MCP tools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One catalog with requests.

    Args:
        tools: rows of `tools.jsonl`.
        queries: one text per pair.
        right: acceptable tool numbers of each pair's request.
        target: the tool number of each pair.
        near: int32, shape (n_pairs, 2 * N_NEAR): hard negatives, -1 where there are fewer; BM25 first.
        anchors: float32, shape (n_tools, 384): the original encoder's vectors, for telling twins.
        views: the texts of a tool that this group's documents are drawn from.
    """

    name: str
    tools: list[dict[str, Any]]
    queries: list[str]
    right: list[frozenset[int]]
    target: list[int]
    near: np.ndarray
    anchors: np.ndarray
    views: tuple[str, ...]


def view_of(tool: dict[str, Any], view: str) -> str:
    """The text of a tool with a part left out, so that no part is leant on alone."""
    row = dict(tool)
    description = str(row.get("description") or "")
    if view == "no_arguments":
        return text_of(row, arguments=False)
    if view == "no_server":
        return text_of(row | {"server": ""})
    if view == "rest":
        return text_of(row, description=description.strip()[len(first_sentence(description)) :][:500])
    return text_of(row)


def lexical_hits(
    tools: Sequence[dict[str, Any]], queries: Sequence[str], *, top_k: int
) -> list[list[tuple[int, float]]]:
    """(tool number, BM25F score) of the best tools for each query, by the package's own lexical arm."""
    documents = (search_document(as_tool(row)).terms for row in tools)
    view = LexicalView(build_postings(documents), np.ones(len(tools), dtype=np.bool_))
    found = []
    for query in queries:
        scores = view.scores(query_terms(wanted(query)))
        found.append([(idx, float(scores[idx])) for idx in best_first(scores, top_k=top_k).tolist()])
    return found


def all_groups(root: Path, original: TextVectors, *, without: Sequence[str] = (), cache: Path) -> list[Group]:
    """Every group that tuning reads. `original`: the untuned encoder. `cache`: a folder for what is slow to find.

    `without` leaves out sets and the requests written over their tools, or one group by its own name.
    """
    groups = [_labelled(load(root, name), original, cache) for name in PERMISSIVE if name not in without]
    groups += [_self_made(name, catalog(root, name), original, cache) for name in CATALOGS if name not in without]
    for name, sources in WRITTEN_OVER.items():
        if not {name, *sources} & set(without):
            groups.append(_labelled(part_of(load_written(root, name), "train"), original, cache))
    return [group for group in groups if group.queries]


def part_of(written: Written, part: str) -> DataSet:
    """The requests of one part, over the whole catalog."""
    chosen = [i for i, own in enumerate(written.parts) if own == part]
    data = written.data
    return DataSet(
        name=data.name,
        tools=data.tools,
        queries=[data.queries[i] for i in chosen],
        relevant=[data.relevant[i] for i in chosen],
    )


def _labelled(data: DataSet, original: TextVectors, cache: Path) -> Group:
    found = [frozenset(idx for capability in caps for idx in capability) for caps in data.relevant]
    pairs = [(i, idx) for i, caps in enumerate(data.relevant) for c in caps for idx in sorted(c)[:2]]
    anchors = original([view_of(tool, "full") for tool in data.tools], most=MAX_DOCUMENT)
    near = _near(data, found, anchors, original, cache, bm25=True)
    rows = np.array([i for i, _ in pairs], dtype=np.int64)
    return Group(
        name=data.name,
        tools=data.tools,
        queries=[data.queries[i] for i, _ in pairs],
        right=[found[i] for i, _ in pairs],
        target=[idx for _, idx in pairs],
        near=near[rows],
        anchors=anchors,
        views=("full", "full", "full", "no_arguments", "no_server"),
    )


def _self_made(name: str, tools: list[dict[str, Any]], original: TextVectors, cache: Path) -> Group:
    """First sentences of descriptions against the rest of their tools."""
    described = [tool for tool in tools if len(str(tool.get("description") or "")) >= 30]
    sentences = [first_sentence(str(tool["description"])) for tool in described]
    right = [frozenset([i]) for i in range(len(described))]
    data = DataSet(name=name, tools=described, queries=sentences, relevant=[])
    anchors = original([view_of(tool, "full") for tool in described], most=MAX_DOCUMENT)
    return Group(
        name=name,
        tools=described,
        queries=sentences,
        right=right,
        target=list(range(len(described))),
        near=_near(data, right, anchors, original, cache, bm25=False),
        anchors=anchors,
        views=("rest",),
    )


def _near(
    data: DataSet,
    right: Sequence[frozenset[int]],
    anchors: np.ndarray,
    original: TextVectors,
    cache: Path,
    *,
    bm25: bool,
) -> np.ndarray:
    """Hard negatives of each query, from the cache where it has them."""
    tools = [view_of(tool, "full") for tool in data.tools]
    key = sha256("\n".join([str(bm25), *tools, *data.queries]).encode("utf-8", "replace")).hexdigest()[:16]
    path = cache / f"near-{data.name}-{key}.npy"
    if path.exists():
        saved: np.ndarray = np.load(path)
        return saved
    asked = original(data.queries, most=MAX_QUERY)
    found = lexical_hits(data.tools, data.queries, top_k=2 * N_NEAR) if bm25 else [[]] * len(asked)
    near = np.full((len(asked), 2 * N_NEAR), -1, dtype=np.int32)
    n_dense = min(len(tools), 3 * N_NEAR)
    for start in range(0, len(asked), 256):
        nearest = np.argpartition(-(asked[start : start + 256] @ anchors.T), n_dense - 1, axis=1)[:, :n_dense]
        for row, dense in enumerate(nearest.tolist(), start):
            for column, candidates in ((0, [idx for idx, _ in found[row]]), (N_NEAR, dense)):
                twin = (anchors[candidates] @ anchors[sorted(right[row])].T).max(axis=1) > TWIN
                kept = [c for c, same in zip(candidates, twin, strict=True) if not same and c not in right[row]]
                near[row, column : column + len(kept[:N_NEAR])] = kept[:N_NEAR]
    np.save(path, near)
    return near


def may_be_wrong(group: Group, pairs: Sequence[int], tools: Sequence[int]) -> np.ndarray:
    """bool, shape (n_pairs, n_tools): whether a tool counts as wrong for a pair: not right, and no twin."""
    targets = [group.target[pair] for pair in pairs]
    counted: np.ndarray = group.anchors[targets] @ group.anchors[list(tools)].T <= TWIN
    columns: dict[int, list[int]] = {}
    for column, idx in enumerate(tools):
        columns.setdefault(idx, []).append(column)
    for row, pair in enumerate(pairs):
        for idx in group.right[pair] & columns.keys():
            counted[row, columns[idx]] = False
    return counted


def draw_near(group: Group, pair: int, rng: random.Random, *, n: int) -> list[int]:
    """Some hard negatives of one pair."""
    choices = [int(idx) for idx in group.near[pair] if idx >= 0]
    return rng.sample(choices, min(n, len(choices)))
