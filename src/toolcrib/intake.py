"""The probe at intake, in the catalog that new definitions would join: which of them turn up for everything?

Floor 4. Above: `assembly.py`, for `crib.review`. Below: `review/probe.py` asks and counts, `retrieval/` searches.

Invariants
1. What nobody has reviewed is sent nowhere: the probe searches with the packaged model, whatever the settings say.
2. It reads definitions only, and puts none into service; what it finds is for reviewers, never for callers (I1, I4).
3. Damaged packaged files cost the probe, never the review (I12).
4. Tools of a catalog that has not changed are not probed again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import numpy as np

from toolcrib.curation import WAITING
from toolcrib.errors import RetrievalError
from toolcrib.retrieval.dense import Embedder
from toolcrib.retrieval.index import Index, index_key
from toolcrib.review.lint import Finding
from toolcrib.review.probe import MIN_TOOLS, PROBE_VERSION, probe
from toolcrib.types import CatalogSnapshot, Tool, ToolMetadata, WithheldTool

_HITS = 50


def probed(
    snapshot: CatalogSnapshot, *, folder: Path, embedder: Embedder | None, on_progress: Callable[[str], None]
) -> Mapping[str, Finding]:
    """What the probe found in the definitions that wait, by tool id; nothing in catalogs too small to tell.

    Args:
        folder: where the index and the findings are kept between runs.
        embedder: one that asks no service; None for words alone.
    """
    held = [tool for tool in snapshot.withheld if tool.code in WAITING and isinstance(tool.definition, Mapping)]
    waiting = [_as_tool(tool) for tool in held]
    if not waiting or len(snapshot.tools) + len(waiting) < MIN_TOOLS:
        return {}
    tools = sorted([*snapshot.tools, *waiting], key=lambda tool: tool.tool_id)
    standing = sorted(tool.tool_id for tool in waiting)
    key = json.dumps([PROBE_VERSION, index_key(tools, embedder), standing])
    known = _read(folder / "found.json", key)
    if known is not None:
        return known
    on_progress(f"trying how easily what waits is found (definitions: {len(waiting)})")
    try:
        view = _index(folder / "probe.idx", tools, embedder).view(np.ones(len(tools), dtype=np.bool_), rerank=False)
        found = probe(
            lambda task: [hit.tool_id for hit in view.search(task, top_k=_HITS).hits],
            waiting=standing,
            in_service={tool.tool_id for tool in snapshot.tools},
        )
    except RetrievalError as fault:
        on_progress(f"how easily what waits is found could not be tried: {fault}")
        return {}
    _keep(folder / "found.json", key, found)
    return found


def _as_tool(tool: WithheldTool) -> Tool:
    """As it would stand in the index, before its operator describes it."""
    return Tool(
        tool_id=tool.tool_id,
        server_id=tool.server_id,
        name=tool.name,
        definition=tool.definition,
        digest=tool.digest,
        state=tool.state,
        metadata=ToolMetadata(),
    )


def _index(path: Path, tools: list[Tool], embedder: Embedder | None) -> Index:
    """The index of these tools, with what the last probe's index holds of them."""
    try:
        index = Index.update_file(path, tools=tools, embedder=embedder)
    except RetrievalError:
        index = Index.build(tools, embedder=embedder)
    with suppress(OSError, RetrievalError):  # an index that cannot be kept costs the next probe some time
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # definitions are for the owner's eyes
        index.save(path)
    return index


def _read(path: Path, key: str) -> dict[str, Finding] | None:
    """Findings kept under this key; None where there are none, or what is there cannot be used."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        return {tool_id: Finding(**found) for tool_id, found in kept["found"].items()} if kept["key"] == key else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _keep(path: Path, key: str, found: Mapping[str, Finding]) -> None:
    rows = {tool_id: asdict(finding) for tool_id, finding in found.items()}
    part = path.with_suffix(f".{os.getpid()}.part")
    with suppress(OSError):  # findings that cannot be kept cost the next review some time
        part.write_text(json.dumps({"key": key, "found": rows}), encoding="utf-8")
        part.replace(path)
