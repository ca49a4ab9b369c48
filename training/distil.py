"""Distil the tuned encoder into a static table: one vector per word piece, int8, ordered by principal axes.

    python training/distil.py --encoder ENCODER_DIR --out MODEL_DIR

Training time only (torch); nothing here is imported by the package. Steps: one forward pass per word piece
(`[CLS] piece [SEP]`, mean over the three), centring, PCA to 256 dimensions (the first dimensions carry most, so a
prefix of the vector is a smaller model), a Zipf weight per piece (the vocabulary is ordered by frequency), pieces that
carry no text set to zero. `tune.py` goes on from the float table that is left beside the int8 one.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from encoder import CLS, SEP, MiniLM, load_encoder, source_dir
from tables import N_PIECES, save_model

DIM = 256
N_SPECIAL = 999  # [PAD], [unused..], [UNK], [CLS], [SEP], [MASK]: no text of their own


@torch.inference_mode()
def piece_vectors(model: MiniLM, *, batch: int = 512) -> np.ndarray:
    """Mean token output of `[CLS] piece [SEP]` for each word piece: float32, shape (n_pieces, 384)."""
    rows = []
    for start in range(0, N_PIECES, batch):
        pieces = torch.arange(start, min(N_PIECES, start + batch))
        ids = torch.stack([torch.full_like(pieces, CLS), pieces, torch.full_like(pieces, SEP)], dim=1)
        rows.append(model(ids, torch.ones(ids.shape)).mean(dim=1).float().numpy())
    return np.concatenate(rows)


def reduce(vectors: np.ndarray) -> np.ndarray:
    """Centre, project on the first 256 principal axes, weigh by frequency rank, blank the special pieces."""
    centred = vectors - vectors.mean(axis=0)
    _, _, axes = np.linalg.svd(centred[N_SPECIAL:], full_matrices=False)
    table = centred @ axes[:DIM].T
    weight = np.log(2.0 + np.arange(N_PIECES))
    table *= (weight / weight.max())[:, None]
    table[:N_SPECIAL] = 0.0
    return (table / np.linalg.norm(table[2000:], axis=1).mean()).astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", type=Path, help="folder that tune_encoder.py wrote; the original without it")
    parser.add_argument(
        "--out", type=Path, required=True, help="folder for table.npy, scale.npy, tokenizer.json, float.npy"
    )
    options = parser.parse_args()
    torch.set_num_threads(1)
    started = time.perf_counter()
    model = load_encoder(options.encoder / "encoder.safetensors" if options.encoder else None)
    table = reduce(piece_vectors(model))
    options.out.mkdir(parents=True, exist_ok=True)
    np.save(options.out / "float.npy", table)
    save_model(options.out, table, tokenizer=source_dir() / "tokenizer.json")
    print(f"distilled {table.shape} in {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
