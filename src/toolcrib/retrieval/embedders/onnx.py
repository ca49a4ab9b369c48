"""A transformer on disk: an ONNX graph and its `tokenizer.json`, run by onnxruntime on the CPU.

    text ─▶ tokenizer ─▶ graph ─▶ vectors of tokens ─▶ pooled ─▶ cut ─▶ unit length

Needs `onnxruntime` (`toolcrib[quality]`). Read by `models.py` and `joint.py`.

Invariants
1. Each text runs alone, on one thread: the same bits whatever else is embedded, and however many cores there are.
   Several documents at a time run side by side, not as one batch.
2. The model id is made of the files' content: another graph, or another tokenizer, is another model.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import numpy as np
from tokenizers import Tokenizer

from toolcrib.errors import ConfigError, RetrievalError
from toolcrib.retrieval.embedders.shaping import Shaping, digest_of
from toolcrib.retrieval.vectors import Float32Array

GRAPHS = ("encoder.onnx", "model.onnx", "model_quantized.onnx", "model_int8.onnx")
"""Names of graphs, in the order in which they are looked for: in the folder, then in its `onnx/`."""
_INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids"})
_WHOLE = ("sentence_embedding", "text_embeds")
"""Outputs that are a text's vector already."""
_TYPES = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
_MAX_WORKERS = 4


class OnnxEmbedder:
    """The model of a folder.

    Args:
        folder: holds `tokenizer.json` and one of `GRAPHS`, or the only `.onnx` file.
        pooling: how the vectors of tokens become one; a graph that gives one vector a text is taken at its word.
    Raises:
        ConfigError: no onnxruntime, no such folder, or nothing in it that can be run.
    """

    def __init__(
        self, folder: Path, *, shaping: Shaping | None = None, pooling: Literal["mean", "cls"] = "mean"
    ) -> None:
        self._shaping = shaping or Shaping()
        self._pooling = pooling
        self._where = str(folder)
        graph, words = graph_of(folder), folder / "tokenizer.json"
        if not words.is_file():
            raise ConfigError("the folder has no tokenizer.json", where=self._where, hint="export the tokenizer, too")
        self._session = _session(graph)
        self._inputs = [(one.name, _input_type(one, where=self._where)) for one in self._session.get_inputs()]
        outputs = [one.name for one in self._session.get_outputs()]
        self._output = next((name for name in _WHOLE if name in outputs), outputs[0])
        try:
            self._tokenizer = Tokenizer.from_file(str(words))
            self._tokenizer.enable_truncation(max_length=self._shaping.max_tokens)
            self._tokenizer.no_padding()
            digest = digest_of([graph, *sorted(graph.parent.glob(f"{graph.name}*data")), words])
            given = len(self._run("a"))
        except Exception as fault:  # the tokenizers library raises bare Exception, onnxruntime its own
            raise ConfigError(f"the model cannot be run: {fault}", where=self._where, hint="export it again") from fault
        self._check_length()
        self._dim = self._shaping.dim(given, where=self._where)
        self._model_id = self._shaping.model_id("onnx", graph.stem, digest, pooling)
        self._n_workers = max(1, min(_MAX_WORKERS, os.cpu_count() or 1))

    @property
    def model_id(self) -> str:
        return self._model_id

    @property
    def dim(self) -> int:
        return self._dim

    def embed_documents(self, texts: Sequence[str]) -> Float32Array:
        prefixed = [self._shaping.document(text) for text in texts]
        if len(prefixed) < 2 or self._n_workers == 1:
            rows = [self._vector(text) for text in prefixed]
        else:
            with ThreadPoolExecutor(self._n_workers) as pool:  # the library lets go of the interpreter while it runs
                rows = list(pool.map(self._vector, prefixed))
        return np.array(rows, dtype=np.float32).reshape(-1, self._dim)

    def embed_query(self, text: str) -> Float32Array:
        return self._vector(self._shaping.query(text))

    def _check_length(self) -> None:
        """Raises ConfigError if the graph cannot take as many tokens as it will be given."""
        n_tokens = self._shaping.max_tokens
        try:
            self._run("a " * n_tokens)
        except Exception as fault:  # as above
            hint = "set max_tokens to what the model was made for"
            raise ConfigError(f"the graph does not take {n_tokens} tokens", where=self._where, hint=hint) from fault

    def _vector(self, text: str) -> Float32Array:
        return self._shaping.cut(self._run(text), dim=self._dim)

    def _run(self, text: str) -> Float32Array:
        """The pooled vector of one text as the graph gives it."""
        encoded = self._tokenizer.encode(text)
        if not encoded.ids:
            encoded = self._tokenizer.encode("a")
        given = {
            "input_ids": encoded.ids,
            "attention_mask": encoded.attention_mask,
            "token_type_ids": encoded.type_ids,
        }
        feed = {name: np.array([given[name]], dtype=dtype) for name, dtype in self._inputs}
        found: Float32Array = np.asarray(self._session.run([self._output], feed)[0], dtype=np.float32)
        if found.ndim == 1 or (found.ndim == 2 and len(found) == 1):
            return np.asarray(found.reshape(-1))
        if found.ndim != 3 or found.shape[:2] != (1, len(encoded.ids)):
            raise RetrievalError(
                f"its output has shape {found.shape}, not (texts, tokens, numbers) or (texts, numbers)"
            )
        # No mask: a text that runs alone has no padding.
        return np.asarray(found[0, 0] if self._pooling == "cls" else found[0].mean(axis=0, dtype=np.float64))


def graph_of(folder: Path) -> Path:
    """The graph in a folder. Raises ConfigError where there is none, or no telling which."""
    if not folder.is_dir():
        raise ConfigError("there is no such folder", where=str(folder), hint="path = a folder with an ONNX model")
    for name in GRAPHS:
        for place in (folder / name, folder / "onnx" / name):
            if place.is_file():
                return place
    graphs = sorted(folder.glob("*.onnx"))
    if len(graphs) != 1:
        names = ", ".join(graph.name for graph in graphs) or "no .onnx file"
        raise ConfigError(f"no telling which graph is meant: {names}", where=str(folder), hint=f"name it {GRAPHS[0]}")
    return graphs[0]


def _session(graph: Path) -> Any:
    try:
        import onnxruntime
    except ImportError as fault:
        hint = 'pip install "toolcrib[quality]"'
        raise ConfigError(
            "onnxruntime is not installed, so this model cannot be run", where=str(graph), hint=hint
        ) from fault
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
    except Exception as fault:  # its exceptions have no base of their own
        raise ConfigError(
            f"this is not an ONNX graph that can be run: {type(fault).__name__}",
            where=str(graph),
            hint="export it again",
        ) from fault


def _input_type(one: Any, *, where: str) -> Any:
    if one.name not in _INPUTS or one.type not in _TYPES:
        known = ", ".join(sorted(_INPUTS))
        raise ConfigError(f"the graph wants {one.name} ({one.type}); {known} can be given", where=where)
    return _TYPES[one.type]
