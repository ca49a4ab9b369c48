"""Makes `tiny/`: an ONNX graph of five kilobytes and its tokenizer, for the tests of this folder.

    python tests/retrieval/embedders/make_tiny.py       (needs the package `onnx`; the files are kept in the repository)

The graph looks a vector up for each token, whole numbers (texts, tokens) to (texts, tokens, 4), and adds one for each
of the first 256 places, so that it takes no longer text.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "query", ":", "open", "issue", "refund", "order", "weather", "city")
OUT = Path(__file__).parent / "tiny"


def main() -> None:
    places = (np.arange(256, dtype=np.float32)[:, None] / 1024).repeat(4, axis=1)
    table = np.random.default_rng(7).standard_normal((len(WORDS), 4)).astype(np.float32)
    ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["texts", "tokens"])
    mask = helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["texts", "tokens"])
    vectors = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["texts", "tokens", 4])
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["looked_up"]),
        helper.make_node("Cast", ["attention_mask"], ["wide"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["wide", "last"], ["column"]),
        helper.make_node("Shape", ["input_ids"], ["length"], start=1),
        helper.make_node("Slice", ["places", "first", "length"], ["placed"]),
        helper.make_node("Add", ["looked_up", "placed"], ["added"]),
        helper.make_node("Mul", ["added", "column"], ["last_hidden_state"]),
    ]
    named = {"table": table, "places": places, "last": np.array([2]), "first": np.array([0])}
    constants = [numpy_helper.from_array(value, name) for name, value in named.items()]
    graph = helper.make_graph(nodes, "tiny", [ids, mask], [vectors], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    OUT.mkdir(exist_ok=True)
    (OUT / "model.onnx").write_bytes(model.SerializeToString())
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]}},
        },
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": {w: i for i, w in enumerate(WORDS)}, "unk_token": "[UNK]"},
    }
    (OUT / "tokenizer.json").write_text(json.dumps(tokenizer, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
