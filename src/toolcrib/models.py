"""Which embedder the settings ask for, made: from `[retrieval] embedder` and `[retrieval.model]` to an `Embedder`.

Floor 4. Above: `assembly.py`, which builds the index with it. Below: `retrieval/embedders`, which know no settings.

Invariants
1. What is asked for is what is made, or a ConfigError that says what to do: never silently another model.
2. A service that does not answer is no fault of the configuration: search goes by words alone and says `degraded`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from toolcrib.errors import ConfigError, RetrievalError
from toolcrib.retrieval.dense import Embedder, Float32Array, bundled_embedder
from toolcrib.retrieval.embedders.hosted import HostedEmbedder
from toolcrib.retrieval.embedders.kept import KeptEmbedder
from toolcrib.retrieval.embedders.onnx import OnnxEmbedder
from toolcrib.retrieval.embedders.packaged import multilingual_embedder, quality_embedder
from toolcrib.retrieval.embedders.sentence_transformers import SentenceTransformerEmbedder
from toolcrib.retrieval.embedders.shaping import Shaping
from toolcrib.settings import ModelSettings, Settings
from toolcrib.settings.references import reveal

_log = logging.getLogger(__name__)


def embedder_for(settings: Settings) -> Embedder | None:
    """The embedder of these settings; None where search goes by words alone.

    Raises:
        ConfigError: an extra is not installed, a folder holds no model, a key cannot be read.
    """
    kept_in = settings.store / "embeddings"
    match settings.retrieval.embedder:
        case "none":
            return None
        case "bundled":
            return bundled_embedder()
        case "quality":
            return quality_embedder(bundled_embedder(), kept_in=kept_in)
        case "multilingual":
            return multilingual_embedder(bundled_embedder(), kept_in=kept_in)
        case "model":
            return _own(settings, kept_in=kept_in)


def _own(settings: Settings, *, kept_in: Path) -> Embedder:
    model = settings.retrieval.model
    if model is None:
        hint = "describe it in [retrieval.model]"
        raise ConfigError('`embedder = "model"` needs [retrieval.model]', where=str(settings.path), hint=hint)
    shaping = Shaping(
        dimensions=model.dimensions,
        query_prefix=model.query_prefix,
        document_prefix=model.document_prefix,
        max_tokens=model.max_tokens,
    )
    if model.kind == "openai":
        return _hosted(settings, model, shaping, kept_in=kept_in)
    folder = settings.resolve(model.path)
    if model.kind == "onnx":
        return KeptEmbedder(OnnxEmbedder(folder, shaping=shaping, pooling=model.pooling), folder=kept_in)
    return KeptEmbedder(SentenceTransformerEmbedder(folder, shaping=shaping), folder=kept_in)


def _hosted(settings: Settings, model: ModelSettings, shaping: Shaping, *, kept_in: Path) -> Embedder:
    key = model.api_key
    if key is not None:
        reveal(key, root=settings.root)  # a key that cannot be read is told now, not at the first search
    service = HostedEmbedder(
        url=model.url,
        name=model.name,
        api_key=None if key is None else lambda: reveal(key, root=settings.root),
        shaping=shaping,
        timeout_s=model.timeout_s,
    )
    try:
        return KeptEmbedder(service, folder=kept_in)
    except RetrievalError as fault:
        _log.warning("the model %s cannot be asked how long its vectors are: %s", model.name, fault)
        return Absent(model_id=service.model_id)


def leaves_machine(settings: Settings) -> bool:
    """Whether texts are sent to a service to be embedded."""
    chosen = settings.retrieval
    return chosen.embedder == "model" and chosen.model is not None and chosen.model.kind == "openai"


class Absent:
    """Stands for a model that did not answer or could not be read when it was looked for: always found down."""

    def __init__(self, *, model_id: str) -> None:
        self._model_id = model_id

    @property
    def model_id(self) -> str:
        return self._model_id

    @property
    def dim(self) -> int:
        return 1

    def embed_documents(self, texts: Sequence[str]) -> Float32Array:
        raise RetrievalError(f"no model to embed {len(texts)} texts with", where=self._model_id)

    def embed_query(self, text: str) -> Float32Array:
        raise RetrievalError(f"no model to embed a text of {len(text)} characters with", where=self._model_id)
