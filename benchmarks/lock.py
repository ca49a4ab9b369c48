"""`toolcrib lock check` over thousands of tools, against the floor: reading and parsing the same lists.

    python benchmarks/lock.py [DATA/real_servers] [--tools 4000] [--json]

With a folder of `*.tools.json` files its real definitions are listed, over and over under other names until there are
enough; otherwise made-up ones. Servers are static files, so that no process is waited for. `unchanged` has a lock that
fits; in `changed` one definition of a hundred has another description, and all that differs is graded.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

from toolcrib.catalog.digest import definition_digest
from toolcrib.catalog.lock import read_lock, write_lock
from toolcrib.catalog.pins import Lock, server_pin, tool_pin
from toolcrib.catalog.publication import publish
from toolcrib.connectors.listing import list_all
from toolcrib.errors import InvalidDefinitionError
from toolcrib.gate.arguments import schema_fault
from toolcrib.locking import check_live
from toolcrib.sessions import Sessions
from toolcrib.settings import Settings, load_settings
from toolcrib.types import ServerListing

_PER_SERVER = 40
_ROUNDS = 5


def measure(n_tools: int, folder: Path | None = None) -> dict[str, Any]:
    """Seconds, and how many times the floor each takes; medians of five rounds, one after the other."""
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        definitions = list(_real(folder, n_tools) if folder else _made(n_tools))
        settings = _written(root, definitions)
        _lock(settings)
        unchanged = _timed({"read": lambda: _read(settings), "check": lambda: asyncio.run(check_live(settings))})
        command = _command_s(root)
        _written(root, [_edited(one, n) for n, one in enumerate(definitions)])
        changed = _timed({"read": lambda: _read(settings), "check": lambda: asyncio.run(check_live(settings))})
        found = asyncio.run(check_live(settings))
        size_bytes = sum(file.stat().st_size for file in root.glob("*.json"))
        lock_bytes = settings.lock.stat().st_size
    return {
        "definitions": "real" if folder else "made up",
        "tools": len(definitions),
        "servers": len(settings.servers),
        "list_bytes": size_bytes,
        "lock_bytes": lock_bytes,
        "read_and_parse_s": round(unchanged["read"], 3),
        "unchanged_check_s": round(unchanged["check"], 3),
        "unchanged_times_the_floor": round(unchanged["check"] / unchanged["read"], 2),
        "changed_rows": len(found.rows),
        "changed_check_s": round(changed["check"], 3),
        "changed_times_the_floor": round(changed["check"] / changed["read"], 2),
        "whole_command_s": round(command, 3),
    }


def _read(settings: Settings) -> int:
    """The floor: every list read and parsed as `toolcrib lock check` does it, and the lock with them."""
    sessions = Sessions(lambda: settings, given={})
    listings = asyncio.run(list_all([s.server_id for s in settings.servers], sessions.for_listing))
    read_lock(settings.lock)
    return sum(len(one.tools) for one in listings if isinstance(one, ServerListing))


def _timed(work: dict[str, Callable[[], object]]) -> dict[str, float]:
    spent: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(_ROUNDS):
        for name, one in work.items():
            begun = time.perf_counter()
            one()
            spent[name].append(time.perf_counter() - begun)
    return {name: statistics.median(times) for name, times in spent.items()}


def _command_s(root: Path) -> float:
    """The command in a process of its own, with Python's start."""
    run = "from toolcrib.cli import main; main()"
    words = [sys.executable, "-c", run, "-C", str(root), "lock", "check"]
    begun = time.perf_counter()
    subprocess.run(words, check=True, capture_output=True)
    return time.perf_counter() - begun


def _written(root: Path, definitions: list[dict[str, Any]]) -> Settings:
    rows = ['[crib]\nname = "bench"\n']
    for number, start in enumerate(range(0, len(definitions), _PER_SERVER)):
        body = {"tools": definitions[start : start + _PER_SERVER]}
        (root / f"s{number}.json").write_text(json.dumps(body, ensure_ascii=False), encoding="utf-8")
        rows.append(f'[[servers]]\nid = "s{number}"\ntransport = "file"\npath = "s{number}.json"\n')
    (root / "toolcrib.toml").write_text("\n".join(rows), encoding="utf-8")
    return load_settings(root)


def _lock(settings: Settings) -> None:
    """All that is listed approved, and every server pinned as it is."""
    sessions = Sessions(lambda: settings, given={})
    listings = asyncio.run(list_all([s.server_id for s in settings.servers], sessions.for_listing))
    whole = [one for one in listings if isinstance(one, ServerListing)]
    found = publish(None, listings=whole, failures={}, at="", schema_fault=schema_fault)
    tools = {f"{t.server_id}.{t.name}": tool_pin(t.definition, digest=t.digest) for t in found.tools}
    write_lock(settings.lock, Lock(tools=tools, servers={s.server_id: server_pin(s) for s in found.servers}))


def _edited(definition: dict[str, Any], number: int) -> dict[str, Any]:
    return {**definition, "description": "Changed."} if number % 100 == 0 else definition


def _real(folder: Path, n_tools: int) -> Iterator[dict[str, Any]]:
    """Sound definitions of real servers, each under a name of its own."""
    sound = []
    for file in sorted(folder.resolve().glob("*.tools.json")):
        for one in json.loads(file.read_text(encoding="utf-8"))["tools"]:
            if isinstance(one, dict) and isinstance(one.get("name"), str) and _has_digest(one):
                sound.append(one)
    for number in range(n_tools):
        yield {**sound[number % len(sound)], "name": f"tool_{number}"}


def _has_digest(definition: dict[str, Any]) -> bool:
    schema = definition.get("inputSchema")
    if not isinstance(schema, dict) or schema.get("type") != "object" or schema_fault(schema):
        return False
    try:
        return bool(definition_digest(definition))
    except InvalidDefinitionError:
        return False


def _made(n_tools: int) -> Iterator[dict[str, Any]]:
    words = "account order ticket folder report message meeting invoice backup region queue metric".split()
    for number, _ in zip(count(), range(n_tools), strict=False):
        names = [words[(number + step) % len(words)] for step in range(5)]
        properties = {
            f"{name}_id": {"type": "string", "description": f"Which {name} is meant, by its number.", "maxLength": 64}
            for name in names
        }
        yield {
            "name": f"tool_{number}",
            "title": f"Look up the {names[0]} {number}",
            "description": f"Looks up a {names[0]} with its {names[1]} and {names[2]}. " * 4,
            "inputSchema": {"type": "object", "properties": properties, "required": [f"{names[0]}_id"]},
            "annotations": {"readOnlyHint": True, "title": names[0]},
        }


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--tools", type=int, default=4_000)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    figures = measure(given.tools, given.folder)
    if given.json:
        print(json.dumps(figures, indent=2))
        return
    for name, value in figures.items():
        print(f"{name:28} {value}")


if __name__ == "__main__":
    main()
