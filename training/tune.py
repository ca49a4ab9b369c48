"""Tune the distilled table: contrastively on tool data, and towards what the tuned encoder thinks of each candidate.

    PYTHONPATH=src python training/tune.py DATA_DIR --model MODEL_DIR --encoder ENCODER_DIR --steps 6000

Reads MODEL_DIR/float.npy (left by distil.py), writes tuned.npy, table.npy and scale.npy there. The loss of a batch is
the cross-entropy of the right tool plus the divergence from the encoder's softmax over the same candidates, both for
the whole vector and for its first 128 dimensions, so that a prefix of the table is a model, too. Prints dev figures
(`score.py`); no test set is read except to take its tools out of the training data.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np
import torch
from encoder import MAX_DOCUMENT, MAX_QUERY, Pieces, TextVectors, load_encoder
from pairs import SHARE, Group, all_groups, draw_near, may_be_wrong, view_of
from score import Embed, print_dev, read_dev
from tables import save_model
from torch import nn
from torch.nn import functional

TEMPERATURE = 0.05
TEACHER_TEMPERATURE = 0.05
TEACHER_WEIGHT = 2.0
BATCH = 160
N_HARD = 2
N_RANDOM = 160
WIDTHS = (128, 256)
RATE = 2e-3
MAX_PIECES = 128
WORD_DROPOUT = 0.1


class Table(nn.Module):
    """Sum of word-piece vectors, not normalised."""

    def __init__(self, table: np.ndarray) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag.from_pretrained(torch.tensor(table), freeze=False, mode="sum", sparse=True)

    def forward(self, texts: Sequence[Sequence[int]]) -> torch.Tensor:
        lengths = [len(ids) for ids in texts]
        offsets = torch.tensor(np.cumsum([0, *lengths[:-1]]))
        flat = torch.tensor(np.concatenate([np.asarray(ids, dtype=np.int64) for ids in texts]))
        rows: torch.Tensor = self.bag(flat, offsets)
        return rows


class Taught:
    """Draws of one group with the teacher's vectors of its queries and tools."""

    def __init__(self, group: Group, pieces: Pieces, teacher: TextVectors) -> None:
        self.group = group
        self.queries = bare(pieces, group.queries)
        self.views = {
            view: bare(pieces, [view_of(tool, view) for tool in group.tools]) for view in dict.fromkeys(group.views)
        }
        self.asked = torch.tensor(teacher(group.queries, most=MAX_QUERY))
        self.shown = torch.tensor(teacher([view_of(tool, "full") for tool in group.tools], most=MAX_DOCUMENT))

    def draw(self, rng: random.Random) -> tuple[list[int], list[int]]:
        """(pair numbers, tool numbers): targets, hard negatives and tools at random."""
        group = self.group
        pairs = [rng.randrange(len(group.target)) for _ in range(BATCH)]
        hard = [idx for pair in pairs for idx in draw_near(group, pair, rng, n=N_HARD)]
        others = [rng.randrange(len(group.tools)) for _ in range(N_RANDOM)]
        return pairs, list(dict.fromkeys([*(group.target[pair] for pair in pairs), *hard, *others]))


def bare(pieces: Pieces, texts: Sequence[str]) -> list[list[int]]:
    """Word pieces without `[CLS]` and `[SEP]`, as the package sums them."""
    return [ids[1:-1] or [1] for ids in pieces(texts, most=MAX_PIECES + 2)]


def batch_loss(model: Table, taught: Taught, rng: random.Random) -> torch.Tensor:
    pairs, tools = taught.draw(rng)
    group = taught.group
    drop = WORD_DROPOUT if rng.random() < 0.5 else 0.0
    queries = [[p for p in taught.queries[pair] if rng.random() >= drop] or [1] for pair in pairs]
    view = taught.views[rng.choice(group.views)]
    vectors = model([*queries, *(view[idx] for idx in tools)])
    column = {idx: c for c, idx in enumerate(tools)}
    target = torch.tensor([column[group.target[pair]] for pair in pairs])
    counted = torch.tensor(may_be_wrong(group, pairs, tools))
    counted[torch.arange(len(pairs)), target] = True
    opinion = functional.softmax(taught.asked[pairs] @ taught.shown[tools].T / TEACHER_TEMPERATURE, dim=-1)
    total = torch.zeros(())
    for width in WIDTHS:
        rows = functional.normalize(vectors[:, :width], dim=-1)
        scores = rows[: len(pairs)] @ rows[len(pairs) :].T / TEMPERATURE
        labelled = functional.cross_entropy(scores.masked_fill(~counted, -1e4), target)
        taught_loss = functional.kl_div(functional.log_softmax(scores, dim=-1), opinion, reduction="batchmean")
        total = total + labelled + TEACHER_WEIGHT * taught_loss
    return total / len(WIDTHS)


def tune(model: Table, groups: Sequence[Taught], *, n_steps: int, rate: float, seed: int) -> None:
    """Sparse Adam with warm-up and linear decay."""
    rng = random.Random(seed)
    weights = [SHARE[taught.group.name] for taught in groups]
    optimiser = torch.optim.SparseAdam(list(model.parameters()), lr=rate, betas=(0.9, 0.98))
    started = time.perf_counter()
    losses: list[float] = []
    for step in range(n_steps):
        for settings in optimiser.param_groups:
            settings["lr"] = rate * min(1, (step + 1) / 50) * max(0.02, 1 - step / n_steps)
        loss = batch_loss(model, rng.choices(groups, weights)[0], rng)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
        if step % 200 == 199:
            print(
                f"step {step + 1} loss {np.mean(losses[-200:]):.3f} {time.perf_counter() - started:.0f} s", flush=True
            )


def embed_with(table: np.ndarray, pieces: Pieces, *, width: int) -> Embed:
    """A function for `score.figures`: sums of the table's rows, cut to `width`, normalised."""

    def embed(texts: Sequence[str], _most: int) -> np.ndarray:
        rows = np.stack([table[ids].sum(axis=0) for ids in bare(pieces, texts)])[:, :width]
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)

    return embed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--encoder", type=Path, required=True, help="folder of the tuned encoder: the teacher")
    parser.add_argument("--steps", type=int, default=6_000)
    parser.add_argument("--rate", type=float, default=RATE)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--without", default="", help="labelled sets to leave out, for cross-fitting confidence")
    parser.add_argument("--cache", type=Path, default=Path("training-cache"))
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    torch.set_num_threads(1)
    pieces = Pieces()
    original = TextVectors(load_encoder(), pieces, options.cache / "original.npz")
    encoder = options.encoder / "encoder.safetensors"
    digest = sha256(encoder.read_bytes()).hexdigest()[:8]
    teacher = TextVectors(load_encoder(encoder), pieces, options.cache / f"teacher-{digest}.npz")
    without = [name for name in options.without.split(",") if name]
    groups = [
        Taught(group, pieces, teacher)
        for group in all_groups(options.data, original, without=without, cache=options.cache)
    ]
    sets = read_dev(options.data)
    model = Table(np.load(options.model / "float.npy"))
    print_dev("distilled", sets, embed_with(model.bag.weight.detach().numpy(), pieces, width=256))
    tune(model, groups, n_steps=options.steps, rate=options.rate, seed=options.seed)
    table = model.bag.weight.detach().numpy()
    found = {
        f"{width} dims": print_dev(f"{width} dims", sets, embed_with(table, pieces, width=width)) for width in WIDTHS
    }
    np.save(options.model / "tuned.npy", table)
    save_model(options.model, table, tokenizer=options.model / "tokenizer.json")
    report = {"steps": options.steps, "rate": options.rate, "seed": options.seed, "dev": found}
    (options.model / "tuning.json").write_text(json.dumps(report), encoding="utf-8")


if __name__ == "__main__":
    main()
