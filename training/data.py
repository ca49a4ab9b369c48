"""Training data as it lies on disk: folders with `tools.jsonl` and, where labelled, `queries.jsonl` and
`qrels.jsonl`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolcrib.retrieval.document import argument_names, dense_text
from toolcrib.types import Risk, Tool, ToolMetadata, ToolState

PERMISSIVE = ("sealtools", "stabletoolbench", "traject", "apibench_gorilla")
"""Labelled sets under Apache-2.0 or MIT that tuning may read. acebench (MIT) is kept aside as the held-out check."""
CATALOGS = ("mcp_toucan", "mcp_toolsdk")
"""Unlabelled catalogs (MIT): the first sentence of a description against the rest of it."""
HELD_OUT = "acebench"
TEST_SETS = (
    "azure_mcp",
    "livemcpbench",
    "livemcpbench_needs",
    "bfcl",
    "restbench",
    "autotools",
    "metatool",
    "when2call",
    "bfcl_irrelevance",
)
"""Never trained on; tools that occur in them are taken out of the unlabelled catalogs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """`relevant[i]`: for query i, one set of acceptable tool numbers per capability."""

    name: str
    tools: list[dict[str, Any]]
    queries: list[str]
    relevant: list[list[set[int]]]


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def folder_of(root: Path, name: str) -> Path:
    return root / name if (root / name).exists() else root / "train" / name


def load(root: Path, name: str) -> DataSet:
    """A labelled set; a fragment of a conversation is joined with what was said before it."""
    folder = folder_of(root, name)
    tools = read_jsonl(folder / "tools.jsonl")
    number = {tool["tool_id"]: idx for idx, tool in enumerate(tools)}
    wanted: dict[str, dict[int, set[int]]] = {}
    for row in read_jsonl(folder / "qrels.jsonl"):
        if row["tool_id"] in number:
            wanted.setdefault(row["query_id"], {}).setdefault(row["capability"], set()).add(number[row["tool_id"]])
    rows = [q for q in read_jsonl(folder / "queries.jsonl") if q["query_id"] in wanted and not q.get("expect_none")]
    return DataSet(
        name=name,
        tools=tools,
        queries=[" ".join([*(q.get("context") or []), q["query"]]) for q in rows],
        relevant=[list(wanted[q["query_id"]].values()) for q in rows],
    )


def text_of(tool: dict[str, Any], *, description: str | None = None, arguments: bool = True) -> str:
    """The text the dense model reads of a tool, as the package makes it."""
    shown = str(tool.get("description") or "") if description is None else description
    names = argument_names(tool.get("input_schema")) if arguments else []
    return dense_text(server=str(tool.get("server") or ""), name=str(tool["name"]), description=shown, arguments=names)


def as_tool(row: dict[str, Any]) -> Tool:
    """A row of `tools.jsonl` as a tool in service. The id is made of a server without dots, as in a crib."""
    server = re.sub(r"[^\w-]+", "_", str(row.get("server") or "server"))
    definition = {
        "name": row["name"],
        "description": row.get("description") or "",
        "inputSchema": row.get("input_schema") or {},
    }
    return Tool(
        tool_id=f"{server}.{row['name']}",
        server_id=server,
        name=str(row["name"]),
        definition=definition,
        digest="",
        state=ToolState.APPROVED,
        metadata=ToolMetadata(risk=Risk.READ),
    )


def first_sentence(text: str) -> str:
    return re.split(r"(?<=[.!?])\s|\n", text.strip())[0][:200]


def names_in(root: Path, sets: tuple[str, ...]) -> tuple[set[tuple[str, str]], set[str]]:
    """(name, start of description) pairs and snake_case names of the tools in some sets."""
    pairs: set[tuple[str, str]] = set()
    for name in sets:
        for tool in read_jsonl(folder_of(root, name) / "tools.jsonl"):
            pairs.add((tool["name"].lower(), (tool.get("description") or "")[:60].lower()))
    return pairs, {name for name, _ in pairs if "_" in name}
