"""Tune the sentence encoder contrastively on tool data: the teacher of the static table, and the quality extra.

    PYTHONPATH=src python training/tune_encoder.py DATA_DIR --out ENCODER_DIR --minutes 30 [--from ENCODER]

InfoNCE at temperature 0.05 over the other requests' tools of the batch, hard negatives of the same catalog, and the
tools of earlier batches of that catalog; right tools and twins are masked. All layers learn, word and position
vectors stay. Prints dev figures (`score.py`) before and after; no test set is read except to take its tools out.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from encoder import MAX_QUERY, MiniLM, Pieces, TextVectors, embed_texts, load_encoder, save_encoder
from pairs import SHARE, Group, all_groups, draw_near, may_be_wrong, view_of
from score import print_dev, read_dev
from torch.nn import functional

TEMPERATURE = 0.05
BATCH = 48
N_HARD = 1
QUEUE = 1_024
CUT_DOCUMENT = 64
SAVE_EVERY_S = 300


class Batches:
    """Draws of one group: token ids of queries and documents, and what must not count as wrong."""

    def __init__(self, group: Group, pieces: Pieces) -> None:
        self.group = group
        self.queries = pieces(group.queries, most=MAX_QUERY)
        self.views = {
            view: pieces([view_of(tool, view) for tool in group.tools], most=CUT_DOCUMENT)
            for view in dict.fromkeys(group.views)
        }
        self.queue: deque[tuple[int, torch.Tensor]] = deque(maxlen=QUEUE)
        self._order: list[int] = []

    def draw(self, rng: random.Random) -> tuple[list[int], list[int]]:
        """(pair numbers, tool numbers: the pairs' targets first, then hard negatives)."""
        if len(self._order) < BATCH:
            self._order = list(range(len(self.group.target)))
            rng.shuffle(self._order)
        chosen, self._order = self._order[:BATCH], self._order[BATCH:]
        targets = [self.group.target[pair] for pair in chosen]
        hard = [idx for pair in chosen for idx in draw_near(self.group, pair, rng, n=N_HARD)]
        return chosen, list(dict.fromkeys([*targets, *hard]))


def batch_loss(model: MiniLM, batches: Batches, rng: random.Random) -> torch.Tensor:
    pairs, tools = batches.draw(rng)
    view = batches.views[rng.choice(batches.group.views)]
    vectors = model.embed([batches.queries[p] for p in pairs] + [view[idx] for idx in tools])
    asked, shown = vectors[: len(pairs)], vectors[len(pairs) :]
    old = list(batches.queue)
    everything = torch.cat([shown, *(vector[None] for _, vector in old)]) if old else shown
    scores = asked @ everything.T / TEMPERATURE
    column = {idx: c for c, idx in enumerate(tools)}
    target = torch.tensor([column[batches.group.target[pair]] for pair in pairs])
    counted = torch.tensor(may_be_wrong(batches.group, pairs, [*tools, *(idx for idx, _ in old)]))
    counted[torch.arange(len(pairs)), target] = True
    batches.queue.extend(zip(tools, shown.detach(), strict=True))
    return functional.cross_entropy(scores.masked_fill(~counted, -1e4), target)


def tune(model: MiniLM, groups: Sequence[Batches], *, minutes: float, rate: float, seed: int, out: Path) -> int:
    """AdamW with warm-up and linear decay over the time given. Returns the steps done."""
    rng = random.Random(seed)
    weights = [SHARE[b.group.name] for b in groups]
    for frozen in (model.words, model.positions):
        frozen.requires_grad_(False)
    learning = [p for p in model.parameters() if p.requires_grad]
    optimiser = torch.optim.AdamW(learning, lr=rate, weight_decay=0.01, betas=(0.9, 0.98), fused=True)
    started = saved = time.perf_counter()
    step, losses = 0, dict[str, list[float]]()
    while (spent := (time.perf_counter() - started) / (60 * minutes)) < 1:
        for settings in optimiser.param_groups:
            settings["lr"] = rate * min(1, (step + 1) / 40) * max(0.03, 1 - spent)
        batches = rng.choices(groups, weights)[0]
        loss = batch_loss(model, batches, rng)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learning, 1.0)
        optimiser.step()
        step += 1
        losses.setdefault(batches.group.name, []).append(float(loss.detach()))
        if step % 50 == 0:
            shown = " ".join(f"{name} {np.mean(values[-20:]):.2f}" for name, values in sorted(losses.items()))
            print(f"step {step} {time.perf_counter() - started:.0f} s: {shown}", flush=True)
        if time.perf_counter() - saved > SAVE_EVERY_S:
            saved = time.perf_counter()
            save_encoder(model, out / "encoder.safetensors")
    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--from", dest="start", type=Path, help="encoder.safetensors to go on from")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--without", default="", help="labelled sets to leave out, for cross-fitting confidence")
    parser.add_argument("--cache", type=Path, default=Path("training-cache"))
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    torch.set_num_threads(options.threads)
    options.out.mkdir(parents=True, exist_ok=True)
    pieces = Pieces()
    original = TextVectors(load_encoder(), pieces, options.cache / "original.npz")
    without = [name for name in options.without.split(",") if name]
    groups = [Batches(g, pieces) for g in all_groups(options.data, original, without=without, cache=options.cache)]
    print(" ".join(f"{b.group.name} {len(b.group.target)}" for b in groups), flush=True)
    model = load_encoder(options.start)
    n_steps = tune(model, groups, minutes=options.minutes, rate=options.rate, seed=options.seed, out=options.out)
    save_encoder(model, options.out / "encoder.safetensors")
    print(f"{n_steps} steps", flush=True)
    found = print_dev("tuned", read_dev(options.data), lambda texts, most: embed_texts(model, pieces(texts, most=most)))
    report = {"steps": n_steps, "minutes": options.minutes, "rate": options.rate, "seed": options.seed, "dev": found}
    (options.out / "tuning.json").write_text(json.dumps(report), encoding="utf-8")


if __name__ == "__main__":
    main()
