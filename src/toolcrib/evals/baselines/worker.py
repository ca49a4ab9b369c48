"""The other side of `peer.py`: runs one peer in its own interpreter and answers JSON lines. Standard library only.

    python worker.py ADAPTER.py                     a peer: one object per line on stdin, one answer per line on stdout
    python worker.py --versions NAME,NAME           {"NAME": "version" or null, ...}

    {"do": "open", "tools": [...], "options": {}}   {"left_out": [[id, why], ...], "overhead": [...], "cpu_s": 0.1}
    {"do": "search", "task": "...", "k": 5}         {"found": [id, ...], "cpu_s": 0.01}
    whatever fails                                  {"failed": "why"}

Invariants
1. Nobody but this file writes to the stream of answers: what a peer prints goes to stderr.
2. A tool that breaks the peer is left out and named; a peer that breaks without one has failed.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, TextIO

_WARM_UP = "look up something"
_MAX_TRIES = 300


def versions(names: list[str]) -> dict[str, str | None]:
    """The installed version of each distribution, None where it is absent."""
    found: dict[str, str | None] = {}
    for name in names:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    return found


def adapter(path: str) -> Any:
    """The module in this file."""
    spec = importlib.util.spec_from_file_location(f"peer_{Path(path).stem}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def opened(peer: Any, tools: list[dict[str, Any]], options: dict[str, Any]) -> tuple[Any, list[tuple[str, str]]]:
    """The peer over the tools that it can take, warm, and the others with what they broke."""
    try:
        return _warm(peer, tools, options), []
    except Exception as fault:
        left_out = _culprits(peer, tools, options, fault, [_MAX_TRIES])
        if len(left_out) == len(tools):
            raise
    broken = {tool_id for tool_id, _why in left_out}
    return _warm(peer, [tool for tool in tools if tool["id"] not in broken], options), left_out


def _warm(peer: Any, tools: list[dict[str, Any]], options: dict[str, Any]) -> Any:
    """Asked once, since some build their index with the first search."""
    search = peer.opened(tools, options)
    search.search(_WARM_UP, 1)
    return search


def _culprits(
    peer: Any, tools: list[dict[str, Any]], options: dict[str, Any], fault: Exception, tries: list[int]
) -> list[tuple[str, str]]:
    """Which of these tools, that broke the peer with `fault`, break it by themselves: by halves.

    Raises whatever broke it where no single tool does, or where `tries` are used up.
    """
    if len(tools) == 1:
        return [(str(tools[0]["id"]), _why(fault))]
    found: list[tuple[str, str]] = []
    for half in (tools[: len(tools) // 2], tools[len(tools) // 2 :]):
        tries[0] -= 1
        if tries[0] < 0:
            raise fault
        try:
            _warm(peer, half, options)
        except Exception as its_fault:  # noqa: BLE001 - foreign code
            found += _culprits(peer, half, options, its_fault, tries)
    if not found:
        raise fault
    return found


def _why(fault: Exception) -> str:
    lines = str(fault).splitlines() or [""]
    return f"{type(fault).__name__}: {lines[0][:200]}"


def serve(path: str, requests: TextIO, answers: TextIO) -> None:
    """Answer until the requests end."""
    peer, search = None, None
    for line in requests:
        request = json.loads(line)
        started = time.process_time()
        answer: dict[str, Any]
        try:
            if request["do"] == "open":
                peer = peer or adapter(path)
                search, left_out = opened(peer, request["tools"], request["options"])
                answer = {"left_out": left_out, "overhead": search.overhead()}
            elif search is None:
                answer = {"failed": "nothing is open"}
            else:
                answer = {"found": search.search(request["task"], request["k"])}
        except Exception as fault:  # noqa: BLE001 - foreign code
            answer = {"failed": _why(fault)}
        answer["cpu_s"] = time.process_time() - started
        answers.write(json.dumps(answer, default=str) + "\n")
        answers.flush()


def main(words: list[str]) -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    if words[0] == "--versions":
        answers.write(json.dumps(versions(words[1].split(","))) + "\n")
        answers.flush()
        return
    serve(words[0], sys.stdin, answers)


if __name__ == "__main__":
    main(sys.argv[1:])
