"""Tune the distilled table contrastively on permissively licensed tool data: minutes on one CPU core.

    PYTHONPATH=src python training/tune.py DATA_DIR --model MODEL_DIR --minutes 7

Reads MODEL_DIR/float.npy (left by distil.py), writes MODEL_DIR/tuned.npy and table.npy, scale.npy when the held-out set
(acebench, never trained on) got better; otherwise the distilled table stays. InfoNCE over in-catalog candidates:
request against the document of a tool that answers it, first sentence of a description against the rest. No test set
is read except to take its tools out of the unlabelled catalogs.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from data import (
    CATALOGS,
    HELD_OUT,
    PERMISSIVE,
    TEST_SETS,
    DataSet,
    first_sentence,
    folder_of,
    load,
    names_in,
    read_jsonl,
    text_of,
)
from tables import save_model
from tokenizers import Tokenizer
from torch import nn

TEMPERATURE = 0.05
BATCH = 192
N_CANDIDATES = 384
RATE = 2e-3
MAX_PIECES = 96
WORD_DROPOUT = 0.15


class Table(nn.Module):
    """Sum of word-piece vectors, normalised."""

    def __init__(self, table: np.ndarray) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag.from_pretrained(torch.tensor(table), freeze=False, mode="sum", sparse=True)

    def forward(self, texts: Sequence[list[int]]) -> torch.Tensor:
        offsets = torch.tensor(np.cumsum([0] + [len(ids) for ids in texts[:-1]]))
        flat = torch.tensor([piece for ids in texts for piece in ids], dtype=torch.long)
        return nn.functional.normalize(self.bag(flat, offsets), dim=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One catalog. `pairs`: (query pieces, document number, all right document numbers). `views`: texts of each
    document.
    """

    name: str
    pairs: list[tuple[list[int], int, frozenset[int]]]
    views: list[list[list[int]]]


class Encoder:
    def __init__(self, path: Path) -> None:
        self.tokenizer = Tokenizer.from_file(str(path))

    def __call__(self, texts: Sequence[str]) -> list[list[int]]:
        encoded = self.tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [e.ids[:MAX_PIECES] or [1] for e in encoded]


def labelled_group(data: DataSet, encode: Encoder) -> Group:
    full = encode([text_of(t) for t in data.tools])
    short = encode([text_of(t, arguments=False) for t in data.tools])
    pairs = []
    for query, capabilities in zip(encode(data.queries), data.relevant, strict=True):
        right = frozenset(idx for capability in capabilities for idx in capability)
        pairs += [(query, idx, right) for capability in capabilities for idx in sorted(capability)[:2]]
    return Group(name=data.name, pairs=pairs, views=[full, short])


def catalog_group(root: Path, name: str, encode: Encoder) -> Group:
    held_pairs, held_names = names_in(root, TEST_SETS)
    seen, tools = set(), []
    for tool in read_jsonl(folder_of(root, name) / "tools.jsonl"):
        description = tool.get("description") or ""
        low = tool["name"].lower()
        key = (tool["name"], description[:80])
        known = (low, description[:60].lower()) in held_pairs or low in held_names
        if not known and key not in seen and len(description) >= 30:
            seen.add(key)
            tools.append(tool)
    sentences = [first_sentence(t["description"]) for t in tools]
    rest = [
        text_of(t, description=t["description"].strip()[len(s) :][:400]) for t, s in zip(tools, sentences, strict=True)
    ]
    pairs = [(query, idx, frozenset([idx])) for idx, query in enumerate(encode(sentences))]
    return Group(name=name, pairs=pairs, views=[encode(rest)])


def batch_loss(model: Table, group: Group, rng: random.Random) -> torch.Tensor:
    batch = [group.pairs[rng.randrange(len(group.pairs))] for _ in range(BATCH)]
    drop = rng.random() < 0.5
    queries = [[p for p in q if not drop or rng.random() > WORD_DROPOUT] or q for q, _, _ in batch]
    view = group.views[0 if rng.random() < 0.7 else -1]
    n_docs = len(view)
    drawn = (
        range(n_docs)
        if n_docs <= 512
        else [*(idx for _, idx, _ in batch), *(rng.randrange(n_docs) for _ in range(N_CANDIDATES))]
    )
    candidates = list(dict.fromkeys(drawn))
    column = {idx: c for c, idx in enumerate(candidates)}
    scores = model(queries) @ model([view[idx] for idx in candidates]).T / TEMPERATURE
    target = torch.tensor([column[idx] for _, idx, _ in batch])
    also_right = torch.zeros(scores.shape, dtype=torch.bool)
    for row, (_, _, right) in enumerate(batch):
        for idx in right & column.keys():
            also_right[row, column[idx]] = True
    also_right[torch.arange(len(batch)), target] = False
    return nn.functional.cross_entropy(scores.masked_fill(also_right, -1e4), target)


@torch.inference_mode()
def recall_at_5(model: Table, data: DataSet, encode: Encoder) -> float:
    """Share of capabilities with an acceptable tool among the first five by cosine, in percent."""
    scores = (model(encode(data.queries)) @ model(encode([text_of(t) for t in data.tools])).T).numpy()
    top = np.argsort(-scores, axis=1, kind="stable")[:, :5]
    found = [np.mean([bool(c & set(row)) for c in caps]) for row, caps in zip(top.tolist(), data.relevant, strict=True)]
    return 100 * float(np.mean(found))


def tune(model: Table, groups: Sequence[Group], *, minutes: float, n_steps: int, seed: int) -> int:
    """Sparse Adam with warm-up and linear decay; stops at `n_steps` or when the time is up. Returns the steps done."""
    rng = random.Random(seed)
    weights = [len(g.pairs) ** 0.35 for g in groups]
    optimiser = torch.optim.SparseAdam(list(model.parameters()), lr=RATE, betas=(0.9, 0.98))
    started = time.perf_counter()
    for step in range(n_steps):
        spent = (time.perf_counter() - started) / (60 * minutes)
        if spent >= 1:
            return step
        for options in optimiser.param_groups:
            options["lr"] = RATE * min(1, (step + 1) / 50) * max(0.05, 1 - max(step / n_steps, spent))
        group = rng.choices(groups, weights)[0]
        loss = batch_loss(model, group, rng)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if step % 100 == 0:
            print(f"step {step} {group.name} loss {float(loss):.3f} {time.perf_counter() - started:.0f} s", flush=True)
    return n_steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=7.0)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--without", default="", help="labelled sets to leave out, for cross-fitting confidence")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    torch.set_num_threads(1)
    encode = Encoder(options.model / "tokenizer.json")
    model = Table(np.load(options.model / "float.npy"))
    groups = [labelled_group(load(options.data, name), encode) for name in PERMISSIVE if name not in options.without]
    groups += [catalog_group(options.data, name, encode) for name in CATALOGS]
    held_out = load(options.data, HELD_OUT)
    before = recall_at_5(model, held_out, encode)
    print(f"{HELD_OUT} dense recall@5 before {before:.1f}", flush=True)
    done = tune(model, groups, minutes=options.minutes, n_steps=options.steps, seed=options.seed)
    after = recall_at_5(model, held_out, encode)
    print(f"{HELD_OUT} dense recall@5 after {done} steps {after:.1f}")
    np.save(options.model / "tuned.npy", model.bag.weight.detach().numpy())
    if after > before:
        save_model(options.model, model.bag.weight.detach().numpy(), tokenizer=options.model / "tokenizer.json")
    report = {
        "held_out": HELD_OUT,
        "dense_recall_at_5_before": round(before, 1),
        "after": round(after, 1),
        "steps": done,
    }
    (options.model / "tuning.json").write_text(json.dumps(report), encoding="utf-8")


if __name__ == "__main__":
    main()
