"""`tools/list` dumps on disk -> the entries and instructions of each server; its id is the file's name.

A dump is what any client saves: an array of tools, an object with `tools` (and `instructions`), the answer to a
`tools/list` request, or an array of such answers, one a page. A folder is all the JSON files in it.

Invariants
1. Entries are kept as they are, also malformed ones; a file without a list of tools is a fault, never an empty list.
2. What has a name is a tool, whatever else it holds: no tool can pass for a page of tools, and go unread.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolcrib.errors import CatalogError
from toolcrib.types import ListedTool

_ENDINGS = (".json", ".tools", ".list")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dump:
    """One server as a file has it."""

    server_id: str
    tools: tuple[ListedTool, ...]
    instructions: str = ""
    file: str = ""


def read_dumps(paths: Sequence[Path]) -> tuple[Dump, ...]:
    """Every dump under these files and folders, in order of their names inside a folder.

    Raises:
        CatalogError: a path cannot be read, or a file holds no list of tools.
    """
    return tuple(_read(file) for path in paths for file in _files(path))


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    found = sorted(path.glob("*.json"))
    if not found:
        raise CatalogError("this folder holds no .json file", where=str(path), hint="name the dumps themselves")
    yield from found


def _read(path: Path) -> Dump:
    try:
        body = json.loads(path.read_text(encoding="utf-8-sig"))  # some editors and shells begin a file with a mark
    except OSError as fault:
        raise CatalogError(f"cannot be read: {fault.strerror or fault}", where=str(path)) from fault
    except (ValueError, RecursionError) as fault:
        raise CatalogError(f"is not JSON: {fault}", where=str(path), hint="save what tools/list answered") from fault
    pages = _pages(body)
    if pages is None:
        hint = 'it should be an array of tools, {"tools": [...]}, or the answer of tools/list'
        raise CatalogError("holds no list of tools", where=str(path), hint=hint)
    server = server_id_of(path)
    told = [page.get("instructions") for page in pages]
    return Dump(
        server_id=server,
        tools=listed(server, [tool for page in pages for tool in page["tools"]]),
        instructions="\n".join(one for one in told if isinstance(one, str)),
        file=str(path),
    )


def server_id_of(path: Path) -> str:
    """The file's name without its endings."""
    name = path.name
    while ending := next((one for one in _ENDINGS if name.endswith(one) and name != one), ""):
        name = name.removesuffix(ending)
    return name


def _pages(body: Any) -> list[Mapping[str, Any]] | None:
    """One page or many, each with its `tools`; None where this is no list of tools."""
    if isinstance(body, Mapping):
        inner = body.get("result", body)
        return [{**body, **inner}] if isinstance(inner, Mapping) and isinstance(inner.get("tools"), list) else None
    if not isinstance(body, list):
        return None
    pages = [_pages(one) if isinstance(one, Mapping) and "name" not in one else None for one in body]
    if body and all(pages):
        return [one for page in pages for one in page or ()]
    return [{"tools": body}]


def listed(server_id: str, tools: Sequence[Any]) -> tuple[ListedTool, ...]:
    """These tools as entries of a catalog. They are told apart by their place: nothing is pinned here."""
    return tuple(_entry(server_id, number, tool) for number, tool in enumerate(tools))


def _entry(server: str, number: int, tool: Any) -> ListedTool:
    name = tool.get("name") if isinstance(tool, Mapping) else None
    return ListedTool(
        server_id=server,
        name=name if isinstance(name, str) and name else f"#{number}",
        definition=tool,
        digest=f"place:{number}",
    )
