"""Write the tuned encoder as one ONNX file with int8 weights, about 23 MB: the quality extra's model.

    python training/export_encoder.py --encoder ENCODER_DIR --out QUALITY_DIR

The graph is built here node by node: token ids of one text, int64 (1, length), to its L2-normalised vector, float32
(384,). One text a run: what a text's neighbours in a batch are can then never change its vector, and nothing needs a
mask. Word vectors are int8 rows with a scale each, gathered before they are widened; `--int8` products quantise the
activations of one text at run time (`MatMulInteger`), without it weights are widened when the session opens.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from encoder import DIM, N_HEADS, N_LAYERS, load_encoder, source_dir
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
MAX_LENGTH = 128


class Graph:
    """Nodes and constants of an ONNX graph in the order in which they are added."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self._n_names = 0

    def constant(self, value: np.ndarray) -> str:
        name = self._new("c")
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def add(self, op: str, inputs: Sequence[str], *, output: str | None = None, **attributes: object) -> str:
        """The name of the one output of a new node."""
        name = output or self._new(op.lower())
        self.nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def _new(self, stem: str) -> str:
        self._n_names += 1
        return f"{stem}{self._n_names}"


def rows_of(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """int8 rows and float32 scales, shape (n, 1)."""
    scale = np.abs(matrix).max(axis=1, keepdims=True) / 127.0
    scale[scale == 0] = 1.0
    return np.rint(matrix / scale).astype(np.int8), scale.astype(np.float32)


def linear(graph: Graph, x: str, weight: np.ndarray, bias: np.ndarray, *, int8: bool) -> str:
    """`x @ weight.T + bias` with int8 weights, one scale per output."""
    values, scale = rows_of(weight)
    held = graph.constant(values.T)
    if int8:
        quantised, x_scale, zero = (graph._new("q") for _ in range(3))
        graph.nodes.append(helper.make_node("DynamicQuantizeLinear", [x], [quantised, x_scale, zero]))
        product = graph.add("Cast", [graph.add("MatMulInteger", [quantised, held, zero])], to=TensorProto.FLOAT)
        product = graph.add("Mul", [product, graph.add("Mul", [x_scale, graph.constant(scale[:, 0])])])
    else:
        zeros = graph.constant(np.zeros(len(scale), dtype=np.int8))
        wide = graph.add("DequantizeLinear", [held, graph.constant(scale[:, 0]), zeros], axis=1)
        product = graph.add("MatMul", [x, wide])
    return graph.add("Add", [product, graph.constant(bias)])


def norm(graph: Graph, x: str, weight: np.ndarray, bias: np.ndarray) -> str:
    return graph.add("LayerNormalization", [x, graph.constant(weight), graph.constant(bias)], axis=-1, epsilon=1e-12)


def gelu(graph: Graph, x: str) -> str:
    half, one = graph.constant(np.float32(0.5)), graph.constant(np.float32(1.0))
    bent = graph.add("Erf", [graph.add("Div", [x, graph.constant(np.float32(np.sqrt(2.0)))])])
    return graph.add("Mul", [graph.add("Mul", [x, graph.add("Add", [bent, one])]), half])


def heads(graph: Graph, x: str, order: Sequence[int]) -> str:
    shape = graph.constant(np.array([-1, N_HEADS, DIM // N_HEADS], dtype=np.int64))
    return graph.add("Transpose", [graph.add("Reshape", [x, shape])], perm=list(order))


def layer(graph: Graph, x: str, state: dict[str, np.ndarray], prefix: str, *, int8: bool) -> str:
    w = {name: state[f"{prefix}{name}"] for name in ("qkv.weight", "qkv.bias")}
    qkv = linear(graph, x, w["qkv.weight"], w["qkv.bias"], int8=int8)
    parts = [graph._new("part") for _ in range(3)]
    graph.nodes.append(
        helper.make_node("Split", [qkv, graph.constant(np.array([DIM] * 3, dtype=np.int64))], parts, axis=-1)
    )
    q, k, v = heads(graph, parts[0], (1, 0, 2)), heads(graph, parts[1], (1, 2, 0)), heads(graph, parts[2], (1, 0, 2))
    scale = graph.constant(np.float32((DIM // N_HEADS) ** -0.5))
    weights = graph.add("Softmax", [graph.add("Mul", [graph.add("MatMul", [q, k]), scale])], axis=-1)
    seen = graph.add("Transpose", [graph.add("MatMul", [weights, v])], perm=[1, 0, 2])
    flat = graph.add("Reshape", [seen, graph.constant(np.array([-1, DIM], dtype=np.int64))])
    out = linear(graph, flat, state[f"{prefix}out.weight"], state[f"{prefix}out.bias"], int8=int8)
    x = norm(graph, graph.add("Add", [x, out]), state[f"{prefix}norm.weight"], state[f"{prefix}norm.bias"])
    up = gelu(graph, linear(graph, x, state[f"{prefix}up.weight"], state[f"{prefix}up.bias"], int8=int8))
    down = linear(graph, up, state[f"{prefix}down.weight"], state[f"{prefix}down.bias"], int8=int8)
    total = graph.add("Add", [x, down])
    return norm(graph, total, state[f"{prefix}last_norm.weight"], state[f"{prefix}last_norm.bias"])


def build(state: dict[str, np.ndarray], *, int8: bool) -> onnx.ModelProto:
    graph = Graph()
    ids = graph.add("Reshape", ["input_ids", graph.constant(np.array([-1], dtype=np.int64))])
    values, scales = rows_of(state["words.weight"])
    words = graph.add("Cast", [graph.add("Gather", [graph.constant(values), ids])], to=TensorProto.FLOAT)
    words = graph.add("Mul", [words, graph.add("Gather", [graph.constant(scales), ids])])
    places = graph.constant((state["positions.weight"][:MAX_LENGTH] + state["kind"]).astype(np.float32))
    zero, axis = graph.constant(np.array([0], dtype=np.int64)), graph.constant(np.array([0], dtype=np.int64))
    places = graph.add("Slice", [places, zero, graph.add("Shape", [ids]), axis])
    x = norm(graph, graph.add("Add", [words, places]), state["norm.weight"], state["norm.bias"])
    for number in range(N_LAYERS):
        x = layer(graph, x, state, f"layers.{number}.", int8=int8)
    mean = graph.add("ReduceMean", [x], axes=[0], keepdims=0)
    length = graph.add("ReduceL2", [mean], axes=[0], keepdims=1)
    graph.add("Div", [mean, length], output="vector")
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "toolcrib-encoder",
            [helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, "length"])],
            [helper.make_tensor_value_info("vector", TensorProto.FLOAT, [DIM])],
            graph.constants,
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        producer_name="toolcrib",
    )
    model.ir_version = 9
    onnx.checker.check_model(model)
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--int8", action="store_true", help="int8 products, too")
    options = parser.parse_args()
    state = {
        k: v.float().numpy() for k, v in load_encoder(options.encoder / "encoder.safetensors").state_dict().items()
    }
    options.out.mkdir(parents=True, exist_ok=True)
    onnx.save(build(state, int8=options.int8), str(options.out / "encoder.onnx"))
    settings = json.loads((source_dir() / "tokenizer.json").read_text(encoding="utf-8"))
    settings["padding"] = settings["truncation"] = None
    (options.out / "tokenizer.json").write_text(
        json.dumps(settings, ensure_ascii=False, separators=(",", ":")), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
