"""Sets in folders: `tools.jsonl`, `queries.jsonl`, `qrels.jsonl`. A world of their own, which needs no crib.

    tools.jsonl     {"tool_id", "name", "server", "description", "input_schema", ...}
    queries.jsonl   {"query_id", "query", "split", "expect_none", "candidate_tool_ids", ...}
    qrels.jsonl     {"query_id", "tool_id", "capability"}; may be left out where no tool fits any query

Above: `places.py`. Beside it: `cases.py`.

Invariants
1. A tool keeps the id that the set gave it, whatever it looks like; names may repeat.
2. Foreign files are read as far as they can be: unknown keys are ignored, what had to be left out is said in `notes`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolcrib.catalog.digest import digest_of
from toolcrib.errors import ConfigError
from toolcrib.evals.cases import Case, parsed, read_lines
from toolcrib.types import Tool, ToolMetadata, ToolState

FILES = ("tools.jsonl", "queries.jsonl", "qrels.jsonl")
_OPTIONAL = ("title", "annotations", "outputSchema")


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A labelled set. `tools` are sorted by id; `notes` say what was left out of it and why."""

    name: str
    tools: tuple[Tool, ...]
    cases: tuple[Case, ...]
    notes: tuple[str, ...] = ()


def is_set(path: Path) -> bool:
    """Whether this is a folder with tools and queries of its own."""
    return (path / "tools.jsonl").is_file()


def read_folder(path: Path) -> Folder:
    """The set in a folder.

    Raises:
        ConfigError: a file is missing, or a line of it cannot be used.
    """
    missing = [name for name in FILES[:2] if not (path / name).is_file()]
    if missing:
        raise ConfigError(
            f"there is no {' and no '.join(missing)} in it", where=str(path), hint=f"a set has {', '.join(FILES)}"
        )
    notes: list[str] = []
    tools = _tools(path / "tools.jsonl", notes)
    cases = _cases(path, known={tool.tool_id for tool in tools}, notes=notes)
    name = path.resolve().name
    return Folder(name=name, tools=tools, cases=cases, notes=tuple(f"{name}: {note}" for note in notes))


def _tools(path: Path, notes: list[str]) -> tuple[Tool, ...]:
    found: dict[str, Tool] = {}
    n_twins = 0
    for where, row in _rows(path):
        tool = _tool(row, where=where)
        n_twins += tool.tool_id in found
        found.setdefault(tool.tool_id, tool)
    if not found:
        raise ConfigError("there is no tool in it", where=str(path))
    if n_twins:
        notes.append(f"of tools with one id the first was taken ({n_twins} left out)")
    return tuple(sorted(found.values(), key=lambda tool: tool.tool_id))


def _tool(row: Mapping[str, Any], *, where: str) -> Tool:
    tool_id = _text(row, "tool_id", where=where)
    name = str(row.get("name") or tool_id)
    schema = row.get("input_schema")
    definition: dict[str, Any] = {"name": name, "description": row.get("description")}
    definition["inputSchema"] = schema if isinstance(schema, Mapping) else {"type": "object"}
    definition |= {key: row[key] for key in _OPTIONAL if row.get(key)}
    return Tool(
        tool_id=tool_id,
        server_id=str(row.get("server") or "server"),
        name=name,
        definition=definition,
        digest=f"sha256:{digest_of(definition)}",
        state=ToolState.APPROVED,
        metadata=ToolMetadata(),
    )


def _cases(path: Path, *, known: set[str], notes: list[str]) -> tuple[Case, ...]:
    labels = _labels(path / "qrels.jsonl")
    cases: dict[str, Case] = {}
    n_unlabelled = n_empty = n_unknown = 0
    for where, row in _rows(path / "queries.jsonl"):
        query_id, task = _text(row, "query_id", where=where), row.get("query")
        if not isinstance(task, str) or not task.strip():
            n_empty += 1
            continue
        nothing = bool(row.get("expect_none"))
        if not nothing and query_id not in labels:
            n_unlabelled += 1
            continue
        if query_id in cases:
            raise ConfigError(f'query_id "{query_id}" stands there twice', where=where)
        expect = None if nothing else tuple(frozenset(tools) for tools in labels[query_id].values())
        n_unknown += sum(not (tools & known) for tools in expect or ())
        candidates = row.get("candidate_tool_ids")
        split = row.get("split")
        cases[query_id] = Case(
            case_id=query_id,
            task=task,
            expect=expect,
            tags=(str(split),) if split else (),
            candidates=frozenset(map(str, candidates)) & known if isinstance(candidates, list) else None,
            where=where,
        )
    if n_empty:
        notes.append(f"{n_empty} queries without words were left out")
    if n_unlabelled:
        notes.append(f"{n_unlabelled} queries with neither labels nor expect_none were left out")
    if n_unknown:
        notes.append(f"{n_unknown} capabilities have no tool in tools.jsonl and count as lost at the registry")
    if not cases:
        raise ConfigError("no query of it can be used", where=str(path / "queries.jsonl"), hint="; ".join(notes))
    return tuple(cases.values())


def _labels(path: Path) -> dict[str, dict[str, set[str]]]:
    """Query id -> capability -> acceptable tools, capabilities in the file's order."""
    labels: dict[str, dict[str, set[str]]] = {}
    for where, row in _rows(path) if path.is_file() else ():
        query_id, tool_id = _text(row, "query_id", where=where), _text(row, "tool_id", where=where)
        if row.get("relevance", 1):
            labels.setdefault(query_id, {}).setdefault(str(row.get("capability", 0)), set()).add(tool_id)
    return labels


def _rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(file:line, object) of each line that holds something."""
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            row = parsed(line)
        except ConfigError as fault:
            raise ConfigError(fault.what, where=where) from fault
        if not isinstance(row, Mapping):
            raise ConfigError("a line is one JSON object", where=where)
        yield where, row


def _text(row: Mapping[str, Any], key: str, *, where: str) -> str:
    value = row.get(key)
    if isinstance(value, str | int) and str(value):
        return str(value)
    raise ConfigError(f'"{key}" is missing or no text', where=where)
