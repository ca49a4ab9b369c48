"""Average the weights of several encoders, or of several tables that were tuned from one start.

    python training/average.py --out ENCODER_DIR original=0.25 ENC1=0.3 ENC2=0.45
    python training/average.py --out TABLE_DIR TABLE1=0.5 TABLE2=0.5

Tuning in minutes ends far from flat ground; the mean of its stages and of the original lies better, on the requests it
was tuned for and on sets it never saw (README.md has the figures).

Source:
    Wortsman et al., "Robust fine-tuning of zero-shot models", 2022; "Model soups", 2022.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from encoder import MiniLM, Pieces, embed_texts, load_encoder, save_encoder
from score import print_dev, read_dev
from tables import save_model
from tune import embed_with

ORIGINAL = "original"


def averaged(parts: Sequence[tuple[str, float]]) -> MiniLM:
    """The encoder whose every weight is the weighted mean of the parts' weights.

    Args:
        parts: (folder with encoder.safetensors, or `original`; weight), the weights adding up to 1.
    """
    if abs(sum(weight for _, weight in parts) - 1.0) > 1e-6:
        raise SystemExit(f"the weights add up to {sum(weight for _, weight in parts)}; they must add up to 1")
    total: dict[str, torch.Tensor] = {}
    model = load_encoder()
    for name, weight in parts:
        source = load_encoder(None if name == ORIGINAL else Path(name) / "encoder.safetensors")
        for key, value in source.state_dict().items():
            total[key] = total[key] + weight * value if key in total else weight * value
    model.load_state_dict(total)
    return model


def embed_encoded(model: MiniLM, pieces: Pieces, texts: Sequence[str], most: int) -> np.ndarray:
    return embed_texts(model, pieces(texts, most=most))


def averaged_table(parts: Sequence[tuple[str, float]], out: Path) -> np.ndarray:
    """The mean of tuned tables, written to `out` as the package reads it."""
    table: np.ndarray = sum(weight * np.load(Path(name) / "tuned.npy") for name, weight in parts)  # type: ignore[assignment]
    np.save(out / "tuned.npy", table)
    save_model(out, table, tokenizer=Path(parts[0][0]) / "tokenizer.json")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="+", metavar="ENCODER_DIR=WEIGHT")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data", type=Path, help="print dev figures")
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    parts = [(name, float(weight)) for name, _, weight in (part.rpartition("=") for part in options.parts)]
    pieces = Pieces()
    if (Path(parts[0][0]) / "tuned.npy").exists():
        embed = embed_with(averaged_table(parts, options.out), pieces, width=256)
    else:
        model = averaged(parts)
        save_encoder(model, options.out / "encoder.safetensors")
        embed = partial(embed_encoded, model, pieces)
    report: dict[str, object] = {"average_of": list(options.parts)}
    if options.data:
        report["dev"] = print_dev("averaged", read_dev(options.data), embed)
    (options.out / "tuning.json").write_text(json.dumps(report), encoding="utf-8")


if __name__ == "__main__":
    main()
