"""Fit the lint model (`review/model.py`) and print what it is worth on texts and servers that it has not seen.

    PYTHONPATH=src python training/fit_lint.py DATA_DIR --date DAY [--out src/toolcrib/review/weights] [--dry]

Attacks, and honest texts that sound like them, were written for this project (`training/lint/`, a file for each
writer); the other honest texts are published definitions, read where they lie. Logistic regression over what
`review/model_text.py` sees of one to three sentences in a row. Which sentences of an attack are the attack is not
marked: the first fit takes all places of it, the next ones the two that the fit before scored highest; of the published
places each fit takes those that the one before scored highest, and some by chance. A sentence that many published tools
have counts for each of them.

Printed: each writer's texts and a part of the servers scored by a model that saw neither; servers that share a
description count as one. The limit is the mean of the held-out limits at `--alarms` of all published definitions. The
weights that are written are fitted on everything. Nothing of `poisoned_open` is read.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

from toolcrib.review.model import FEW_TOKENS, MAX_WINDOW, Weights, own_names, write_weights
from toolcrib.review.model_text import N_FEATURES, FormOf, Sentence, seen, sentences
from toolcrib.review.reading import Role, Text, text_at, texts
from toolcrib.review.surroundings import ALONE, surroundings
from toolcrib.types import ListedTool

TEXTS = Path(__file__).parent / "lint"
CATALOGS = ("mcp_toucan", "mcp_mcpm", "mcp_docker", "mcp_github", "train/mcp_toolsdk")
LIVE = "real_servers"
WRITERS = len(list(TEXTS.glob("texts-*.jsonl")))
ROUNDS = 2
C = 3.0
ATTACK, HONEST = 20.0, 3.0
"""What an attack, and an honest text that was written, count beside a published place."""
MOST_TIMES = 20
N_HARD, N_CHANCE, N_FIRST = 5_000, 40_000, 60_000
MIN_SEEN = 3.0
"""What fewer places have is chance."""
AT = (0.0005, 0.001, 0.0015, 0.002, 0.005, 0.01)


@dataclass(slots=True, kw_only=True)
class Source:
    """One definition or one written text. `places`: numbers of its places. `part`: who is held out with it."""

    label: str
    family: str
    part: int
    places: np.ndarray
    live: bool = False


class Places:
    """All places that were read, each once: rows of sentences, and what each sentence has."""

    def __init__(self) -> None:
        self._sentences: dict[tuple[Any, ...], int] = {}
        self._places: dict[tuple[int, ...], int] = {}
        self.read: list[Sentence] = []

    def add(self, parts: Sequence[Sentence]) -> np.ndarray:
        """Numbers of the places in these sentences."""
        rows: list[int] = []
        for part in parts:
            key = tuple((token.form, token.spelled) for token in part.tokens)
            if key not in self._sentences:
                self._sentences[key] = len(self.read)
                self.read.append(part)
            rows.append(self._sentences[key])
        found = [
            tuple(rows[first : first + length])
            for length in range(1, MAX_WINDOW + 1)
            for first in range(len(rows) - length + 1)
            if parts[first].text_idx == parts[first + length - 1].text_idx
        ]
        return np.array(sorted({self._places.setdefault(place, len(self._places)) for place in found}), dtype=np.int64)

    def matrices(self) -> tuple[sp.csr_matrix, sp.csr_matrix, np.ndarray]:
        """Places by sentences; sentences by features; what each place's sum is multiplied by."""
        has = seen(self.read)
        x = sp.csr_matrix((has.shares.astype(np.float32), (has.rows, has.ids)), shape=(len(self.read), N_FEATURES))
        rows = np.repeat(np.arange(len(self._places)), [len(place) for place in self._places])
        within = np.concatenate([np.array(place) for place in self._places])
        a = sp.csr_matrix((np.ones(len(rows), np.float32), (rows, within)), shape=(len(self._places), len(self.read)))
        n_tokens = a @ np.array([len(sentence.tokens) for sentence in self.read], dtype=np.float32)
        return a, x, 1 / np.sqrt(np.maximum(n_tokens, FEW_TOKENS))


def published(root: Path) -> Iterator[ListedTool]:
    """Definitions as servers and registries publish them; the server id tells the set as well."""
    for file in sorted((root / LIVE).glob("*.json")):
        for tool in json.loads(file.read_text(encoding="utf-8"))["tools"]:
            yield ListedTool(server_id=f"{LIVE}:{file.name}", name=tool["name"], definition=tool, digest="")
    for name in CATALOGS:
        for line in (root / name / "tools.jsonl").read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            tool = {"name": row["name"], "description": row["description"], "inputSchema": row["input_schema"]}
            yield ListedTool(server_id=f"{name}:{row['server']}", name=row["name"], definition=tool, digest="")


def kin(tools: Sequence[ListedTool]) -> dict[str, str]:
    """Server id -> one id for all servers that share a description with it: forks must be held out together."""
    parent: dict[str, str] = {}

    def root_of(server: str) -> str:
        while parent.setdefault(server, server) != server:
            parent[server] = server = parent[parent[server]]
        return server

    first: dict[str, str] = {}
    for tool in tools:
        text = (tool.definition.get("description") or "").strip()
        if len(text) >= 60:
            parent[root_of(tool.server_id)] = root_of(first.setdefault(text, tool.server_id))
    return {tool.server_id: root_of(tool.server_id) for tool in tools}


def published_sources(root: Path, places: Places) -> list[Source]:
    tools = list(published(root))
    around, family = surroundings(tools), kin(tools)
    found = []
    for tool in tools:
        read = texts(tool.definition)
        parts = sentences(read, form_of=own_names(read, around[tool.server_id]))
        part = zlib.crc32(family[tool.server_id].encode()) % WRITERS
        live = tool.server_id.startswith(LIVE)
        found.append(Source(label="published", family="", part=part, places=places.add(parts), live=live))
    return found


def written_sources(places: Places) -> list[Source]:
    found = []
    for writer in range(WRITERS):
        for line in (TEXTS / f"texts-{writer + 1}.jsonl").read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            read = (text_at("/description", row["text"]),)
            parts = sentences(read, form_of=_names_in(row, read))
            source = Source(label=row["label"], family=row["family"], part=writer, places=places.add(parts))
            if len(source.places) and row["where"] != "parameter_name":
                found.append(source)
    return found


def _names_in(row: dict[str, Any], read: tuple[Text, ...]) -> FormOf:
    siblings = {str(name).casefold() for name in row.get("siblings") or ()}
    own = text_at("/name", str(row.get("tool") or "")), text_at("/properties/x~key", str(row.get("parameter") or ""))
    assert (own[0].role, own[1].role) == (Role.NAME, Role.PARAMETER_NAME)
    known = own_names((*read, *own), ALONE)
    return lambda word: known(word) or ("SIBLING" if word in siblings else "")


class Fitter:
    """Fits on some sources; scores any."""

    def __init__(self, places: Places) -> None:
        self._a, self._x, self._scale = places.matrices()

    def fit(self, chosen: Sequence[Source], *, seed: int = 0) -> tuple[np.ndarray, float]:
        """Weights and bias."""
        rng = np.random.default_rng(seed)
        attacks = [source.places for source in chosen if source.label == "attack"]
        honest = np.unique(np.concatenate([s.places for s in chosen if s.label == "honest"]))
        published = [s.places for s in chosen if s.label == "published"]
        common = np.unique(np.concatenate(published))
        times = np.minimum(np.bincount(np.concatenate(published), minlength=self._a.shape[0]), MOST_TIMES)
        negative, positive = rng.choice(common, min(N_FIRST, len(common)), replace=False), attacks
        kept: np.ndarray | None = None
        values, bias = np.zeros(N_FEATURES), 0.0
        for _ in range(ROUNDS):
            rows = np.concatenate((*positive, negative, honest))
            n = sum(map(len, positive))
            share = np.concatenate([np.full(len(places), ATTACK / len(places)) for places in positive])
            weights = np.concatenate((share, times[negative], np.full(len(honest), HONEST)))
            x = sp.diags(self._scale[rows].astype(np.float32)) @ (self._a[rows] @ self._x)
            if kept is None:
                kept = self._common_enough(x, np.concatenate((share / ATTACK, np.ones(len(rows) - n))))
            model = LogisticRegression(C=C, max_iter=200, tol=1e-3)
            model.fit(x @ sp.diags(kept), np.arange(len(rows)) < n, sample_weight=weights)
            values, bias = model.coef_[0] * kept, float(model.intercept_[0])
            scored = self.scores(values, bias)
            positive = [places[np.argsort(-scored[places], kind="stable")[:2]] for places in attacks]
            hard = common[np.argsort(-scored[common], kind="stable")[:N_HARD]]
            negative = np.unique(np.concatenate((hard, rng.choice(common, min(N_CHANCE, len(common))))))
        return values, bias

    @staticmethod
    def _common_enough(x: sp.csr_matrix, weights: np.ndarray) -> np.ndarray:
        has = x.copy()
        has.data = np.ones_like(has.data)
        return (has.T @ weights >= MIN_SEEN).astype(np.float32)

    def scores(self, values: np.ndarray, bias: float) -> np.ndarray:
        return (self._a @ (self._x @ values)) * self._scale + bias


def highest(scored: np.ndarray, sources: Sequence[Source]) -> np.ndarray:
    return np.array([scored[s.places].max() if len(s.places) else -np.inf for s in sources])


def held_out(fitter: Fitter, sources: Sequence[Source]) -> np.ndarray:
    """Each source's highest score by a model that saw neither its writer nor its server's kin."""
    part = np.array([source.part for source in sources])
    found = np.zeros(len(sources))
    for left_out in range(WRITERS):
        values, bias = fitter.fit([source for source in sources if source.part != left_out])
        tested = np.flatnonzero(part == left_out)
        found[tested] = highest(fitter.scores(values, bias), [sources[n] for n in tested])
    return found


def report(sources: Sequence[Source], scored: np.ndarray) -> list[dict[str, float]]:
    """Held-out figures at each share of alarms; a limit for each part, since each has its own model."""
    part = np.array([source.part for source in sources])
    masks = {label: np.array([s.label == label for s in sources]) for label in ("published", "attack", "honest")}
    live = np.array([source.live for source in sources])
    rows = []
    for share in AT:
        limits = [np.quantile(scored[masks["published"] & (part == p)], 1 - share) for p in range(WRITERS)]
        raised = scored >= np.array(limits)[part]
        row = {"alarms": share, "live": float(raised[live].mean()), "limit": float(np.mean(limits))}
        row |= {label: float(raised[masks[label]].mean()) for label in ("attack", "honest")}
        row |= {f"writer {p + 1}": float(raised[masks["attack"] & (part == p)].mean()) for p in range(WRITERS)}
        rows.append({name: round(value, 4) for name, value in row.items()})
        print("  ".join(f"{name} {value:.4f}" for name, value in row.items()), flush=True)
        if share == AT[3]:
            print_families(sources, raised)
    return rows


def print_families(sources: Sequence[Source], raised: np.ndarray) -> None:
    found = defaultdict(list)
    for source, up in zip(sources, raised, strict=True):
        if source.label == "attack":
            found[source.family].append(bool(up))
    print("   ", ", ".join(f"{name} {np.mean(ups):.2f} of {len(ups)}" for name, ups in sorted(found.items())))


def packed(values: np.ndarray, bias: float, *, limit: float) -> Weights:
    scale = float(np.abs(values).max()) / 127
    rounded = np.round(values / scale).astype(np.int8)
    return Weights(values=rounded, scale=scale, bias=bias, limit=limit)


def manifest(root: Path, out: Path, figures: list[dict[str, float]], *, date: str) -> dict[str, Any]:
    def digest(path: Path) -> str:
        return hashlib.sha256(path.read_bytes()).hexdigest()

    live = hashlib.sha256(b"".join(file.read_bytes() for file in sorted((root / LIVE).glob("*.json")))).hexdigest()
    return {
        "format": 1,
        "made": date,
        "licence": "Apache-2.0",
        "command": "training/fit_lint.py DATA",
        "written": {f"training/lint/{file.name}": digest(file) for file in sorted(TEXTS.glob("*.jsonl"))},
        "read": {name: digest(root / name / "tools.jsonl") for name in CATALOGS} | {LIVE: live},
        "files": {"lint.npz": digest(out / "lint.npz")},
        "held_out": figures,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--date", required=True)
    parser.add_argument("--alarms", type=float, default=0.0015, help="share of published definitions it may raise")
    parser.add_argument("--out", type=Path, default=Path("src/toolcrib/review/weights"))
    parser.add_argument("--dry", action="store_true", help="print held-out figures only")
    options = parser.parse_args()
    places = Places()
    sources = [*published_sources(options.data, places), *written_sources(places)]
    print(f"{len(sources)} texts and definitions, {len(places.read)} sentences", flush=True)
    fitter = Fitter(places)
    figures = report(sources, held_out(fitter, sources))
    if options.dry:
        return
    limit = float(np.interp(options.alarms, AT, [row["limit"] for row in figures]))
    values, bias = fitter.fit(sources)
    options.out.mkdir(parents=True, exist_ok=True)
    write_weights(options.out / "lint.npz", packed(values, bias, limit=limit))
    made = manifest(options.data, options.out, figures, date=options.date)
    (options.out / "manifest.json").write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
