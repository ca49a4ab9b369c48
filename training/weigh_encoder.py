"""How much the encoder counts beside the table in the quality model: dev figures over weights; nothing is written.

    python training/weigh_encoder.py DATA --encoder QUALITY_DIR

`cosine = (table + w² encoder) / (1 + w²)`, alone and with the lexical score beside it at several weights. Dev sets and
measure are those of `score.py`; what is chosen stands in `retrieval/embedders/packaged.py`. No test set is read.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from data import text_of
from score import DEPTHS, Dev, read_dev, recalls

from toolcrib.retrieval.decompose import wanted
from toolcrib.retrieval.dense import Embedder, bundled_embedder
from toolcrib.retrieval.embedders.multilingual import UniversalEmbedder
from toolcrib.retrieval.embedders.onnx import OnnxEmbedder
from toolcrib.retrieval.embedders.packaged import QUALITY_TOKENS
from toolcrib.retrieval.embedders.shaping import Shaping, unit

WEIGHTS = (0.0, 0.7, 1.0, 1.2, 1.5, 2.0, 3.0)
LEXICAL = (0.0, 0.1, 0.2, 0.3, 0.4)


def cosines(embedder: Embedder, tools: Sequence[str], queries: Sequence[str]) -> np.ndarray:
    shown = np.array([unit(row) for row in embedder.embed_documents(tools)])
    asked = np.array([unit(embedder.embed_query(query)) for query in queries])
    return asked @ shown.T


def lexical(dev: Dev) -> np.ndarray:
    """BM25F over its best score, shape (n_queries, n_tools)."""
    scores = np.zeros((len(dev.data.queries), len(dev.data.tools)), dtype=np.float32)
    for row, hits in enumerate(dev.bm25):
        peak = max((score for _, score in hits), default=0.0)
        for idx, score in hits if peak > 0 else ():
            scores[row, idx] = score / peak
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--encoder", type=Path, help="folder of the graph; left out: the multilingual encoder")
    options = parser.parse_args()
    encoder: Embedder = (
        OnnxEmbedder(options.encoder, shaping=Shaping(max_tokens=QUALITY_TOKENS))
        if options.encoder
        else UniversalEmbedder()
    )
    for dev in read_dev(options.data):
        tools = [text_of(tool) for tool in dev.data.tools]
        queries = [wanted(query) for query in dev.data.queries]
        table, added, words = (
            cosines(bundled_embedder(), tools, queries), cosines(encoder, tools, queries), lexical(dev)
        )  # fmt: skip
        print(f"{dev.data.name}: {len(tools)} tools, {len(queries)} requests; recall@{'/'.join(map(str, DEPTHS))}")
        for weight in WEIGHTS:
            both = (table + weight**2 * added) / (1 + weight**2)
            cells = []
            for share in LEXICAL:
                order = np.argsort(-(both + share * words), axis=1, kind="stable")[:, : max(DEPTHS)]
                cells.append(f"+{share} " + "/".join(f"{v:.1f}" for v in recalls(order, dev.data.relevant)))
            print(f"  w {weight:<4} {'   '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
