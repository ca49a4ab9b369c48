"""The two joint models that come ready made: `quality` and `multilingual`, each with the bundled table in it.

    quality        bundled table (256)  +  tuned encoder (384)         needs toolcrib[quality]
    multilingual   bundled table (256)  +  sentence encoder (512)      needs toolcrib[multilingual]

Stands on `joint`, `onnx`, `multilingual`, `kept`; made by `models.py`. Their figures and where the weights lie:
docs/decisions/014-quality-model.md. The weights below were chosen on requests written for training sets, never on a
test set.

Invariants
1. The bundled table is the first part, so its leading numbers tell the likely tools from the rest: with 18,000 tools a
   first look at 128 of them costs nothing at R@1, 0.2 at R@5 and 0.7 points at R@10 of written requests.
2. Only the costly part's vectors of documents are kept: a table tuned anew does not cost them.
"""

from __future__ import annotations

from pathlib import Path

from toolcrib.errors import ConfigError
from toolcrib.retrieval.dense import MODEL_DIR, StaticEmbedder
from toolcrib.retrieval.embedders.joint import JointEmbedder, Part
from toolcrib.retrieval.embedders.kept import KeptEmbedder
from toolcrib.retrieval.embedders.multilingual import UniversalEmbedder
from toolcrib.retrieval.embedders.onnx import OnnxEmbedder
from toolcrib.retrieval.embedders.shaping import Shaping
from toolcrib.retrieval.tokenize import is_mostly_latin

QUALITY_DIR = MODEL_DIR.parent / "model_quality"
QUALITY_WEIGHT = 1.2
"""Of the encoder, where the bundled table has 1."""
MULTILINGUAL_WEIGHT = 1.2
"""Of the sentence encoder, where the bundled table has 1."""
QUALITY_TOKENS = 128
_QUALITY_SCAN = 128


def quality_embedder(table: StaticEmbedder, *, folder: Path = QUALITY_DIR, kept_in: Path | None) -> JointEmbedder:
    """The table and the packaged encoder as one vector of 640 numbers.

    Args:
        kept_in: folder for vectors of documents, which take about 10 ms each to make; None: not kept.
    Raises:
        ConfigError: onnxruntime is not installed, or the model is not in this installation.
    """
    if not folder.is_dir():
        hint = "install a release of toolcrib that has it, or describe a model of your own in [retrieval.model]"
        raise ConfigError("this installation has no quality model", where=str(folder), hint=hint)
    encoder = KeptEmbedder(OnnxEmbedder(folder, shaping=Shaping(max_tokens=QUALITY_TOKENS)), folder=kept_in)
    parts = (Part(embedder=table, weight=1.0), Part(embedder=encoder, weight=QUALITY_WEIGHT))
    return JointEmbedder(parts, name="toolcrib-quality", scan_dim=_QUALITY_SCAN)


def multilingual_embedder(table: StaticEmbedder, *, kept_in: Path | None) -> JointEmbedder:
    """The table, on texts in Latin script, and the multilingual sentence encoder, on all: 768 numbers.

    Raises:
        ConfigError: the extra is not installed.
    """
    encoder = KeptEmbedder(UniversalEmbedder(), folder=kept_in)
    parts = (
        Part(embedder=table, weight=1.0, reads=is_mostly_latin),
        Part(embedder=encoder, weight=MULTILINGUAL_WEIGHT),
    )
    return JointEmbedder(parts, name="toolcrib-multilingual", multilingual=True)
