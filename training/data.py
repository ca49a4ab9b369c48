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
from toolcrib.retrieval.tokenize import split_identifier
from toolcrib.types import Risk, Tool, ToolMetadata, ToolState

PERMISSIVE = ("sealtools", "stabletoolbench", "traject", "apibench_gorilla")
"""Labelled sets under Apache-2.0 or MIT that tuning may read. acebench (MIT) is kept aside as the held-out check."""
CATALOGS = ("mcp_toucan", "mcp_toolsdk")
"""Unlabelled catalogs (MIT): the first sentence of a description against the rest of it."""
WRITTEN_OVER = {
    "written_mcp": ("mcp_toucan", "mcp_docker"),
    "written_api": ("stabletoolbench", "traject"),
}
"""The tools for which the requests of `requests.jsonl` were written: per name, the sets that make one catalog."""
REQUESTS = Path(__file__).parent / "requests.jsonl"
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


def normal_name(name: str) -> str:
    """`getPullRequest`, `get-pull-request` and `Get Pull Request` as `get_pull_request`."""
    return "_".join(re.findall(r"\w+", split_identifier(name).lower().replace("_", " ")))


def names_in(root: Path, sets: tuple[str, ...]) -> tuple[set[tuple[str, str]], set[str]]:
    """(normal name, start of description) pairs, and the normal names of several words, of the tools in some sets."""
    pairs: set[tuple[str, str]] = set()
    for name in sets:
        for tool in read_jsonl(folder_of(root, name) / "tools.jsonl"):
            pairs.add((normal_name(tool["name"]), (tool.get("description") or "")[:60].lower()))
    return pairs, {name for name, _ in pairs if "_" in name}


def known_to_tests(tool: dict[str, Any], held: tuple[set[tuple[str, str]], set[str]]) -> bool:
    """Whether a test set has this tool: its name of several words, or its name and the start of its description."""
    pairs, names = held
    name = normal_name(tool["name"])
    return name in names or (name, (tool.get("description") or "")[:60].lower()) in pairs


def catalog(root: Path, name: str) -> list[dict[str, Any]]:
    """The tools of an unlabelled catalog without those of the test sets, without repeats, ids as in the catalog."""
    held = names_in(root, TEST_SETS)
    seen: set[tuple[str, str, str]] = set()
    tools = []
    for tool in read_jsonl(folder_of(root, name) / "tools.jsonl"):
        key = (str(tool.get("server")), tool["name"], (tool.get("description") or "")[:80])
        if key not in seen and not known_to_tests(tool, held):
            seen.add(key)
            tools.append(tool)
    return tools


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Requests written for this project over one or more catalogs: `relevant` as in `DataSet`, `parts` train or dev."""

    data: DataSet
    parts: list[str]
    styles: list[str]


def load_written(root: Path, name: str, path: Path = REQUESTS) -> Written:
    """The written requests over the catalog of that name; a request for a tool of a test set is left out."""
    tools: list[dict[str, Any]] = []
    number: dict[tuple[str, str], int] = {}
    for source in WRITTEN_OVER[name]:
        for tool in catalog(root, source):
            number.setdefault((source, tool["tool_id"]), len(tools))
            tools.append(tool)
    rows = [row for row in read_jsonl(path) if all((row["source"], tool) in number for tool in row["tools"])]
    return Written(
        data=DataSet(
            name=name,
            tools=tools,
            queries=[row["request"] for row in rows],
            relevant=[[{number[(row["source"], tool)]} for tool in row["tools"]] for row in rows],
        ),
        parts=[row["part"] for row in rows],
        styles=[row["style"] for row in rows],
    )
