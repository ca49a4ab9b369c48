"""Dev figures: what every choice in this folder is judged by. No test set is read.

Three dev sets, none trained on: the written requests of the dev part over 1,500 tools of their catalog (whole servers)
and to the whole catalog, and acebench. Recall@k is the share of a request's capabilities with an acceptable tool among
the first k, by cosine alone and by `cosine + 0.4 * bm25 / max`, in percent.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from data import HELD_OUT, REQUESTS, DataSet, load, load_written, text_of
from encoder import MAX_DOCUMENT, MAX_QUERY
from pairs import lexical_hits, part_of

from toolcrib.retrieval.decompose import wanted
from toolcrib.retrieval.document import argument_names
from toolcrib.retrieval.fusion import LEXICAL_WEIGHT

Embed = Callable[[Sequence[str], int], np.ndarray]
"""Texts and the most word pieces to read, to float32 rows of length 1."""
DEPTHS = (1, 5, 10)
_N_LEXICAL = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Dev:
    """A dev set with the BM25F scores of its requests: `bm25[i]` holds (tool number, score) of the best 200."""

    data: DataSet
    bm25: list[list[tuple[int, float]]]


def same_tools(tools: Sequence[dict[str, object]]) -> list[set[int]]:
    """For each tool those of the same name and description (forks of one server): all are right where one is."""
    by_key: dict[tuple[str, str, str], set[int]] = {}
    keys = []
    for i, tool in enumerate(tools):
        names = " ".join(argument_names(tool.get("input_schema")))
        description = str(tool.get("description") or "")[:80].lower()
        keys.append((str(tool["name"]).lower(), description, "" if description else names))
        by_key.setdefault(keys[-1], set()).add(i)
    return [by_key[key] for key in keys]


def narrowed(data: DataSet, *, n_tools: int, seed: int = 7) -> DataSet:
    """The same requests over whole servers, drawn at random, that hold their tools and some `n_tools` in all."""
    needed = {str(data.tools[idx].get("server")) for caps in data.relevant for c in caps for idx in c}
    others = sorted({str(tool.get("server")) for tool in data.tools} - needed)
    random.Random(seed).shuffle(others)
    kept = [i for i, tool in enumerate(data.tools) if str(tool.get("server")) in needed]
    for server in others:
        if len(kept) >= n_tools:
            break
        kept += [i for i, tool in enumerate(data.tools) if str(tool.get("server")) == server]
    number = {old: new for new, old in enumerate(kept)}
    relevant = [[{number[i] for i in c if i in number} for c in caps] for caps in data.relevant]
    return DataSet(
        name=f"{data.name}:{len(kept)}", tools=[data.tools[i] for i in kept], queries=data.queries, relevant=relevant
    )


def read_dev(root: Path, *, whole: bool = False, requests: Path = REQUESTS) -> list[Dev]:
    """The dev sets; `whole` adds the written requests over their whole catalog of some 17,000 tools."""
    sets = [load(root, HELD_OUT)]
    if requests.exists():
        written = part_of(load_written(root, "written_mcp", requests), "dev")
        same = same_tools(written.tools)
        relevant = [[set().union(*(same[i] for i in c)) for c in caps] for caps in written.relevant]
        widened = DataSet(name="written", tools=written.tools, queries=written.queries, relevant=relevant)
        sets.append(narrowed(widened, n_tools=1_500))
        sets += [widened] if whole else []
    return [Dev(data=d, bm25=lexical_hits(d.tools, d.queries, top_k=_N_LEXICAL)) for d in sets]


def recalls(order: np.ndarray, relevant: Sequence[Sequence[set[int]]]) -> list[float]:
    rows = order.tolist()
    return [
        100
        * float(
            np.mean([np.mean([bool(c & set(row[:k])) for c in caps]) for row, caps in zip(rows, relevant, strict=True)])
        )
        for k in DEPTHS
    ]


def figures(dev: Dev, embed: Embed) -> dict[str, list[float]]:
    """Recall at each depth, by cosine and by the hybrid."""
    data = dev.data
    shown = embed([text_of(tool) for tool in data.tools], MAX_DOCUMENT)
    asked = embed([wanted(query) for query in data.queries], MAX_QUERY)
    cosines = asked @ shown.T
    hybrid = cosines.copy()
    for row, hits in enumerate(dev.bm25):
        peak = max((score for _, score in hits), default=0.0)
        for idx, score in hits if peak > 0 else ():
            hybrid[row, idx] += LEXICAL_WEIGHT * score / peak
    first = {
        name: np.argsort(-scores, axis=1, kind="stable")[:, : max(DEPTHS)]
        for name, scores in (("dense", cosines), ("hybrid", hybrid))
    }
    return {name: recalls(order, data.relevant) for name, order in first.items()}


def print_dev(label: str, sets: Sequence[Dev], embed: Embed) -> dict[str, dict[str, list[float]]]:
    found = {dev.data.name: figures(dev, embed) for dev in sets}
    for name, by_arm in found.items():
        cells = "  ".join(f"{arm} " + " / ".join(f"{v:.1f}" for v in row) for arm, row in by_arm.items())
        print(f"{label:12} {name:18} {cells}", flush=True)
    return found
