"""How a float table becomes the shipped files, shared by distil.py and tune.py."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

N_PIECES = 30_522


def quantise(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """int8 rows and one float32 scale per row: `row * scale` is the float row within half a step."""
    scale = np.abs(table).max(axis=1) / 127.0
    scale[scale == 0] = 1.0
    return np.rint(table / scale[:, None]).astype(np.int8), scale.astype(np.float32)


def save_model(folder: Path, table: np.ndarray, *, tokenizer: Path) -> None:
    """table.npy, scale.npy and a tokenizer.json without padding and truncation."""
    rows, scale = quantise(table)
    np.save(folder / "table.npy", rows)
    np.save(folder / "scale.npy", scale)
    settings = json.loads(tokenizer.read_text(encoding="utf-8"))
    settings["padding"] = settings["truncation"] = None
    (folder / "tokenizer.json").write_text(
        json.dumps(settings, ensure_ascii=False, separators=(",", ":")), encoding="utf-8"
    )
