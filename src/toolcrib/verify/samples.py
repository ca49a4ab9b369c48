"""Arguments made from a schema: enough for most tools to be judged past the argument check. Pure and deterministic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcrib.types import JsonObject

_MAX_DEPTH = 6
_BY_TYPE: Mapping[str, Any] = {"string": "sample", "integer": 1, "number": 1.0, "boolean": True, "null": None}


def sample_arguments(schema: JsonObject) -> dict[str, Any]:
    """The required properties with a value each. They may still not fit: the answer then says so, which is fine."""
    made = _sample(schema, schema, 0)
    return made if isinstance(made, dict) else {}


def _sample(node: Any, root: JsonObject, depth: int) -> Any:
    if not isinstance(node, Mapping) or depth > _MAX_DEPTH:
        return "sample"
    for key in ("const", "default"):
        if key in node:
            return node[key]
    for key in ("enum", "examples"):
        if isinstance(node.get(key), list) and node[key]:
            return node[key][0]
    if isinstance(target := node.get("$ref"), str):
        return _sample(_local(root, target), root, depth + 1)
    for key in ("anyOf", "oneOf", "allOf"):
        if isinstance(node.get(key), list) and node[key] and "properties" not in node:
            return _sample(node[key][0], root, depth + 1)
    kind = node.get("type")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if kind == "object" or "properties" in node:
        return _object(node, root, depth)
    if kind == "array":
        n_items = node.get("minItems")
        return [_sample(node.get("items", {}), root, depth + 1)] * (n_items if isinstance(n_items, int) else 0)
    if kind == "string" and isinstance(node.get("minLength"), int):
        return "sample".ljust(min(node["minLength"], 1_000), "x")
    if kind in ("integer", "number") and isinstance(node.get("minimum"), int | float):
        return node["minimum"]
    return _BY_TYPE.get(kind if isinstance(kind, str) else "string", "sample")


def _object(node: Mapping[str, Any], root: JsonObject, depth: int) -> dict[str, Any]:
    properties, required = node.get("properties"), node.get("required")
    if not isinstance(properties, Mapping) or not isinstance(required, list):
        return {}
    return {name: _sample(properties.get(name), root, depth + 1) for name in required if isinstance(name, str)}


def _local(root: JsonObject, reference: str) -> Any:
    node: Any = root
    for step in reference.removeprefix("#").split("/")[1:]:
        node = node.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(node, Mapping) else None
    return node
