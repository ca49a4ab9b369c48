"""Fit `retrieval/model/confidence.npz` on requests that no model was tuned on, and print what it is worth.

    PYTHONPATH=src python training/fit_confidence.py DATA [--kinds static,other,none]
    PYTHONPATH=src python training/fit_confidence.py DATA --kinds quality --encoder QUALITY_DIR

To be run whenever the table or the encoder changes: kinds that are not asked for keep their weights. About half a
minute of CPU; the encoder takes some 10 ms a tool more.

Requests with an answer: those written for the dev part, half of acebench. Each is put to a catalog that holds its tools
and to the same one without them and without their twins: its own server (near misses, a quarter of the weight: half of
their other tools would do in part), servers drawn at random, tools drawn at random, 1 to 800 in number. Requests
without one: acebench_irrelevant and `no_tool_requests.txt` (chat, reasoning, writing) over random catalogs. By their
text half of all requests are kept out of the fit; the floor and the report rest on these. No test set is read.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import numpy as np
from data import HELD_OUT, as_tool, folder_of, load, load_written, read_jsonl

from toolcrib.retrieval import confidence
from toolcrib.retrieval.decompose import wanted
from toolcrib.retrieval.dense import Embedder, bundled_embedder, embed_one
from toolcrib.retrieval.index import Index
from toolcrib.retrieval.search import View
from toolcrib.types import Tool

NO_TOOL = Path(__file__).parent / "no_tool_requests.txt"
STYLES = {"d": 0.25, "i": 0.35, "n": 0.25, "c": 0.15}
SIZES = (1, 2, 4, 10, 30, 100, 300)
MIXED_SIZES = (10, 40, 120, 300, 800)
N_HITS = 6
TWIN = 0.85
NEAR_WEIGHT, CHAT_WEIGHT = 0.25, 0.7
RIDGE = 1.0
_ASKS = confidence.FEATURES.index("asks")


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A request put to one catalog.

    Args:
        only: tool numbers of the catalog. right: those that answer it, perhaps none. unclear: those that may.
        group: source and kind of catalog, for the report.
    """

    text: str
    only: tuple[int, ...]
    right: frozenset[int] = frozenset()
    unclear: frozenset[int] = frozenset()
    group: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Seen:
    """What came of it: features of each hit (n_hits, n_features), whether it is right (2: unclear), the request."""

    example: Example
    x: np.ndarray
    y: np.ndarray
    asked: np.ndarray | None
    named: bool

    @property
    def answerable(self) -> bool:
        return bool(self.example.right)

    @property
    def weight(self) -> float:
        if self.answerable:
            return 1.0
        near = self.example.group.endswith((":own", ":mix"))
        return NEAR_WEIGHT if near else CHAT_WEIGHT if self.example.group == "chat" else 1.0


@dataclass(slots=True, kw_only=True)
class World:
    """Tools sorted by id with their index, and requests over them."""

    tools: list[Tool]
    number: list[int]
    index: Index
    by_server: dict[str, list[int]] = field(default_factory=dict)
    units: np.ndarray | None = None

    @classmethod
    def of(cls, rows: Sequence[dict], embedder: Embedder | None) -> World:
        tools = [as_tool(row) for row in rows]
        order = sorted(range(len(tools)), key=lambda i: tools[i].tool_id)
        number = [0] * len(tools)
        for place, i in enumerate(order):
            number[i] = place
        ordered = [tools[i] for i in order]
        made = cls(tools=ordered, number=number, index=Index.build(ordered, embedder=embedder))
        for i, tool in enumerate(ordered):
            made.by_server.setdefault(tool.server_id, []).append(i)
        return made

    def view(self, only: Sequence[int]) -> View:
        permitted = np.zeros(len(self.tools), dtype=np.bool_)
        permitted[list(only)] = True
        return self.index.view(permitted)

    def twins(self, right: frozenset[int]) -> frozenset[int]:
        """Tools whose definitions are nearly those of the right ones, by the bundled table."""
        if self.units is None:
            vectors = bundled_embedder().embed_documents([f"{t.name} {t.description}" for t in self.tools])
            self.units = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
        near = (self.units @ self.units[sorted(right)].T).max(axis=1) > TWIN
        return frozenset(np.flatnonzero(near).tolist()) | right


def catalogs(
    world: World, right: frozenset[int], rng: random.Random
) -> Iterator[tuple[str, list[int], frozenset[int]]]:
    """Two catalogs without the right tools and their twins: near ones, and far ones."""
    twins, names = world.twins(right), sorted(world.by_server)
    servers = {world.tools[i].server_id for i in right}
    near = [i for server in sorted(servers) for i in world.by_server[server] if i not in twins]
    if rng.random() < 0.5 and near:
        yield "own", near, twins
    else:
        size = rng.choice(MIXED_SIZES)
        for _ in range(len(names)):
            if len(near) >= size:
                break
            near += [i for i in world.by_server[rng.choice(names)] if i not in twins]
        yield "mix", near[: max(size, 1)], twins
    if rng.random() < 0.5 and len(names) > 20:
        drawn = [s for s in rng.sample(names, rng.choice((1, 2, 5, 15))) if s not in servers]
        yield "servers", [i for s in drawn for i in world.by_server[s] if i not in twins], twins
    else:
        size = min(len(world.tools), rng.choice(SIZES) + len(right))
        yield "tools", [i for i in rng.sample(range(len(world.tools)), size) if i not in twins], twins


def answered(world: World, text: str, right: frozenset[int], source: str, rng: random.Random) -> Iterator[Example]:
    for kind, without, twins in catalogs(world, right, rng):
        only = tuple(dict.fromkeys([*sorted(right), *without]))
        yield Example(text=text, only=only, right=right, unclear=twins - right, group=f"{source}:{kind}")
        if without:
            yield Example(text=text, only=tuple(dict.fromkeys(without)), group=f"{source}:{kind}")


def written(
    root: Path, name: str, embedder: Embedder | None, rng: random.Random, *, n: int, n_tools: int
) -> tuple[World, list[Example]]:
    """Written dev requests over whole servers: theirs, and others up to `n_tools` tools."""
    found = load_written(root, name)
    data, dev = found.data, [i for i, part in enumerate(found.parts) if part == "dev"]
    chosen = []
    for style, share in STYLES.items():
        mine = [i for i in dev if found.styles[i] == style]
        chosen += rng.sample(mine, min(len(mine), round(n * share)))
    needed = {str(data.tools[t].get("server")) for i in chosen for c in data.relevant[i] for t in c}
    others = sorted({str(tool.get("server")) for tool in data.tools} - needed)
    rng.shuffle(others)
    by_server: dict[str, list[int]] = {}
    for i, tool in enumerate(data.tools):
        by_server.setdefault(str(tool.get("server")), []).append(i)
    kept = [i for server in sorted(needed) for i in by_server[server]]
    while others and len(kept) < n_tools:
        kept += by_server[others.pop()]
    world = World.of([data.tools[i] for i in kept], embedder)
    place = {old: world.number[new] for new, old in enumerate(kept)}
    examples = []
    for i in chosen:
        right = frozenset(place[t] for c in data.relevant[i] for t in c)
        examples += answered(world, data.queries[i], right, f"written {found.styles[i]}", rng)
    return world, examples


def labelled(
    root: Path, embedder: Embedder | None, rng: random.Random, *, n: int, n_tools: int
) -> tuple[World, list[Example]]:
    """acebench over catalogs drawn from it, and its requests that none of their candidates answers."""
    data = load(root, HELD_OUT)
    chosen = sorted(rng.sample(range(len(data.queries)), min(n, len(data.queries))))
    irrelevant = read_jsonl(folder_of(root, f"{HELD_OUT}_irrelevant") / "queries.jsonl")
    needed = {t for i in chosen for c in data.relevant[i] for t in c}
    shown_ids = {tool_id for row in irrelevant for tool_id in row["candidate_tool_ids"]}
    needed |= {i for i, row in enumerate(data.tools) if row["tool_id"] in shown_ids}
    others = [i for i in range(len(data.tools)) if i not in needed]
    kept = [*sorted(needed), *rng.sample(others, min(len(others), max(0, n_tools - len(needed))))]
    world = World.of([data.tools[i] for i in kept], embedder)
    place = {old: world.number[new] for new, old in enumerate(kept)}
    examples: list[Example] = []
    for i in chosen:
        right = frozenset(place[t] for c in data.relevant[i] for t in c)
        examples += answered(world, data.queries[i], right, HELD_OUT, rng)
    number = {data.tools[old]["tool_id"]: new for old, new in place.items()}
    for row in irrelevant:
        shown = tuple(number[tool_id] for tool_id in row["candidate_tool_ids"] if tool_id in number)
        examples.append(Example(text=row["query"], only=shown, group=f"{HELD_OUT}:irrelevant"))
    return world, examples


def chat(world: World, rng: random.Random) -> Iterator[Example]:
    for text in no_tool_requests():
        if rng.random() < 0.5:
            only = rng.sample(range(len(world.tools)), min(len(world.tools), rng.choice(SIZES)))
        else:
            names = rng.sample(sorted(world.by_server), min(len(world.by_server), rng.choice((1, 3, 10))))
            only = [i for name in names for i in world.by_server[name]]
        yield Example(text=text, only=tuple(only), group="chat")


def no_tool_requests() -> list[str]:
    return [line for line in NO_TOOL.read_text(encoding="utf-8").splitlines() if line.strip()]


def kept_out(text: str) -> bool:
    """Half of all texts, by the text alone."""
    return sha256(text.encode()).digest()[0] % 2 == 1


def seen(world: World, examples: Sequence[Example]) -> Iterator[Seen]:
    """Every example asked; of each the features of its first hits and of the most likely one."""
    for example in examples:
        view = world.view(example.only)
        hits = view.search(example.text, top_k=50).hits
        best = sorted(range(len(hits)), key=lambda i: -hits[i].confidence)[: N_HITS // 2]
        chosen = [hits[i] for i in sorted({*range(min(len(hits), N_HITS)), *best})]
        text = wanted(example.text)
        asked = None if view.dense is None else view.dense.ask(text)
        evidence = confidence.Evidence(
            tools=np.array([hit.tool_idx for hit in chosen], dtype=np.int64),
            names=tuple(world.tools[hit.tool_idx].name for hit in chosen),
            cosines=None if asked is None else np.array([hit.dense for hit in chosen]),
        )
        x = confidence.features(text, evidence, view.lexical, asks=0.0)
        y = [2 if h.tool_idx in example.unclear else int(h.tool_idx in example.right) for h in chosen]
        yield Seen(
            example=example,
            x=x,
            y=np.array(y),
            asked=None if asked is None else asked.plain,
            named=any(hit.named for hit in hits),
        )


# --- fitting


def newton(z: np.ndarray, y: np.ndarray, w: np.ndarray, *, ridge: float) -> np.ndarray:
    """Weighted logistic regression; the last column is the constant and is not held back."""
    beta, hold = np.zeros(z.shape[1]), np.eye(z.shape[1]) * ridge
    hold[-1, -1] = 1e-6
    for _ in range(12):
        p = 1 / (1 + np.exp(-np.clip(z @ beta, -30, 30)))
        curve = (z * (w * p * (1 - p) + 1e-9)[:, None]).T @ z + hold
        beta = beta + np.linalg.solve(curve, z.T @ (w * (y - p)) - hold @ beta)
    return beta


def direction_of(asks: np.ndarray, chats: np.ndarray) -> tuple[np.ndarray, float]:
    """The direction of requests for a tool, from unit vectors of such requests and of chat."""
    z = np.c_[np.r_[asks, chats], np.ones(len(asks) + len(chats))]
    y = np.r_[np.ones(len(asks)), np.zeros(len(chats))]
    w = len(y) * np.r_[np.full(len(asks), 0.5 / len(asks)), np.full(len(chats), 0.5 / len(chats))]
    beta = newton(z, y, w, ridge=30.0)
    return beta[:-1], float(beta[-1])


def units(embedder: Embedder, texts: Sequence[str]) -> np.ndarray:
    rows = [embed_one(embedder, wanted(text)) for text in texts]
    made = np.array([row for row in rows if row is not None and row.any()], dtype=np.float64)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def with_asks(found: Sequence[Seen], mine: confidence.Weights) -> None:
    for one in found:
        one.x[:, _ASKS] = mine.asks(one.asked)


def fitted(found: Sequence[Seen], mine: confidence.Weights, *, chances: random.Random | None) -> confidence.Weights:
    """Weights over the fit half, sources alike; then bias and slope so that the floor is where it should be.

    Args:
        chances: distort cosines, as other models scale them otherwise; None: as they are.
    """
    learned = [one for one in found if not kept_out(one.example.text) and len(one.x) and not one.named]
    mass: dict[str, float] = {}
    for one in learned:
        mass[source_of(one)] = mass.get(source_of(one), 0.0) + one.weight
    x, y, w = [], [], []
    for one in learned:
        known = one.y != 2
        if known.any():
            x.append(distorted(one.x[known], chances))
            y.append(one.y[known])
            w.append(np.full(known.sum(), one.weight / mass[source_of(one)] / known.sum()))
    rows, right, weight = np.concatenate(x), np.concatenate(y), np.concatenate(w)
    scale = rows.std(axis=0) + 1e-9
    scale[rows.std(axis=0) < 1e-9] = np.inf  # a column that says nothing gets no weight
    z = np.c_[rows / scale, np.ones(len(rows))]
    beta = newton(z, right, weight / weight.mean(), ridge=RIDGE)
    raw = confidence.Weights(
        weights=beta[:-1] / scale, bias=float(beta[-1]), direction=mine.direction, offset=mine.offset
    )
    return anchored(raw, [one for one in found if kept_out(one.example.text)])


def source_of(one: Seen) -> str:
    return "chat" if one.example.group == "chat" else one.example.group.split()[0].split(":")[0]


def distorted(x: np.ndarray, chances: random.Random | None) -> np.ndarray:
    if chances is None:
        return x
    lift = chances.uniform(0.0, 0.5)
    x = x.copy()
    x[:, 0] = lift + (1 - lift) * x[:, 0]
    return x


def logit(one: Seen, mine: confidence.Weights) -> float:
    """The largest logit of a request's hits: what the ranking's confidence comes from."""
    if one.named:
        return 30.0
    return float((one.x @ mine.weights + mine.bias).max(initial=-30.0))


def anchored(raw: confidence.Weights, held: Sequence[Seen]) -> confidence.Weights:
    """The same order of requests; the quantile of answerable written ones at the floor, the slope by likelihood.

    Requests without any hit are refused whatever the floor, and left out: only words alone know such.
    """
    held = [one for one in held if len(one.x)]
    z = np.array([logit(one, raw) for one in held])
    yes = np.array([one.answerable for one in held])
    weight = np.array([one.weight for one in held])
    is_written = np.array([one.example.group.startswith("written") for one in held])
    low = float(np.quantile(z[yes & is_written], confidence.FALSE_REFUSALS))
    at = float(np.log(confidence.DEFAULT_FLOOR / (1 - confidence.DEFAULT_FLOOR)))
    best, slope = -np.inf, 1.0
    for tried in np.arange(0.3, 3.01, 0.05):
        p = 1 / (1 + np.exp(-np.clip(tried * (z - low) + at, -30, 30)))
        likely = float((weight * np.log(np.clip(np.where(yes, p, 1 - p), 1e-9, 1))).sum())
        best, slope = (likely, float(tried)) if likely > best else (best, slope)
    return confidence.Weights(
        weights=slope * raw.weights,
        bias=slope * (raw.bias - low) + at,
        direction=raw.direction,
        offset=raw.offset,
    )


# --- report


def auroc(right: np.ndarray, wrong: np.ndarray) -> float:
    wrong = np.sort(wrong)
    below, upto = np.searchsorted(wrong, right, side="left"), np.searchsorted(wrong, right, side="right")
    return float((below + upto).sum() / (2 * len(right) * len(wrong)))


def report(kind: str, found: Sequence[Seen], mine: confidence.Weights) -> None:
    """What the weights are worth on the half kept out."""
    held = [one for one in found if kept_out(one.example.text)]
    p = np.array([1 / (1 + np.exp(-np.clip(logit(one, mine), -30, 30))) for one in held])
    yes = np.array([one.answerable for one in held])
    groups = np.array([one.example.group for one in held])
    named = dict(zip(confidence.FEATURES, (round(float(w), 2) for w in mine.weights), strict=True))
    print(f"\n{kind}: {len(held)} requests kept out; {named} bias {mine.bias:.2f}")
    far = ~np.array([g.endswith((":own", ":mix")) for g in groups])
    print(f"  AUROC {auroc(p[yes], p[~yes & far]):.3f}; against near misses {auroc(p[yes], p[~yes & ~far]):.3f}")
    floor = confidence.DEFAULT_FLOOR
    for label, told in (("answerable", yes), ("unanswerable", ~yes)):
        cells = []
        for group in sorted(set(groups[told])):
            mask = told & (groups == group)
            cells.append(f"{group} {np.mean(p[mask] < floor):.0%} of {mask.sum()}")
        print(f"  refused at {floor}, {label}: {np.mean(p[told] < floor):.1%}; " + ", ".join(cells))
    for low in np.arange(0, 1, 0.2):
        inside = (p >= low) & (p < low + 0.2 + (low > 0.7))
        if inside.any():
            share = f"right {yes[inside].mean():.2f} of {inside.sum()}"
            print(f"  said {low:.1f}-{low + 0.2:.1f} (mean {p[inside].mean():.2f}): {share}")


# --- the command


def fit_kind(kind: str, root: Path, embedder: Embedder | None, options: argparse.Namespace) -> list[Seen]:
    rng = random.Random(options.seed)
    found: list[Seen] = []
    for name, n in (("written_mcp", options.requests), ("written_api", options.requests // 3)):
        world, examples = written(root, name, embedder, rng, n=n, n_tools=options.tools)
        found += seen(world, [*examples, *chat(world, rng)])
    world, examples = labelled(root, embedder, rng, n=options.requests // 2, n_tools=options.tools)
    found += seen(world, examples)
    print(f"{kind}: {len(found)} requests asked", flush=True)
    return found


def asking(embedder: Embedder, root: Path, *, n: int) -> confidence.Weights:
    """The direction of requests for a tool: written requests of the train part against half of the chat."""
    found = load_written(root, "written_mcp")
    texts = [t for t, part in zip(found.data.queries, found.parts, strict=True) if part == "train"]
    direction, offset = direction_of(
        units(embedder, random.Random(1).sample(texts, min(n, len(texts)))),
        units(embedder, [text for text in no_tool_requests() if not kept_out(text)]),
    )
    return confidence.Weights(weights=np.zeros(len(confidence.FEATURES)), bias=0.0, direction=direction, offset=offset)


NOTHING = confidence.Weights(weights=np.zeros(len(confidence.FEATURES)), bias=0.0, direction=np.zeros(0), offset=0.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--kinds", default="static,other,none")
    parser.add_argument("--encoder", type=Path, help="folder of the packaged encoder, for `quality`")
    parser.add_argument("--requests", type=int, default=600)
    parser.add_argument("--tools", type=int, default=2_500)
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--out", type=Path, default=confidence.MODEL_FILE)
    options = parser.parse_args()
    kinds = options.kinds.split(",")
    made = confidence.read_weights(options.out) if options.out.exists() else {}
    if {"static", "other"} & set(kinds):
        found = fit_kind("static", options.data, bundled_embedder(), options)
        mine = asking(bundled_embedder(), options.data, n=3_000)
        if "other" in kinds:
            made["other"] = fitted(found, NOTHING, chances=random.Random(options.seed))
            report("other", found, made["other"])
        with_asks(found, mine)
        made["static"] = fitted(found, mine, chances=None)
        report("static", found, made["static"])
    if "none" in kinds:
        found = fit_kind("none", options.data, None, options)
        made["none"] = fitted(found, NOTHING, chances=None)
        report("none", found, made["none"])
    if "quality" in kinds:
        from toolcrib.retrieval.embedders.packaged import QUALITY_DIR, quality_embedder

        folder = options.encoder or QUALITY_DIR
        embedder = quality_embedder(bundled_embedder(), folder=folder, kept_in=None)
        found = fit_kind("quality", options.data, embedder, options)
        mine = asking(embedder, options.data, n=800)
        with_asks(found, mine)
        made["quality"] = fitted(found, mine, chances=None)
        report("quality", found, made["quality"])
    write(options.out, made)


def write(path: Path, made: dict[str, confidence.Weights]) -> None:
    arrays: dict[str, np.ndarray] = {"features": np.array(confidence.FEATURES), "kinds": np.array(sorted(made))}
    for kind, one in made.items():
        arrays[f"{kind}_weights"], arrays[f"{kind}_bias"] = one.weights, np.array(one.bias)
        arrays[f"{kind}_direction"], arrays[f"{kind}_offset"] = one.direction, np.array(one.offset)
    with path.open("wb") as file:
        np.savez(file, **arrays)
    print(f"written to {path}")


if __name__ == "__main__":
    main()
