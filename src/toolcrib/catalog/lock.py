"""`toolcrib.lock`: what reviewers approved. Sorted JSON, meant for version control and code review.

It is the one record of what is approved: a definition is in service only when its digest stands here under its tool id
(I4). A lock that cannot be read approves nothing, and says so. `pins.py` has what stands in it.

    {"version": 2,
     "servers": {"<server id>": {"provenance": {...}, "instructions": "sha256:...", ...}, ...},
     "tools": {"<tool id>": {"digest": "sha256:...", "fields": {"description": "<16 hex>", ...}, ...}, ...}}

Version 1 had digests alone; it is read, and written as version 2 by the next change.

Invariants
1. A change is read, made and written while no other `update_lock` runs, so that none undoes another.
2. A reader sees the old lock or the new one, never a part.
3. Whoever writes it leaves it where and as it was: through symbolic links, with the permissions it had.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

from toolcrib.catalog._advisory import try_lock
from toolcrib.catalog.pins import Lock, ServerPin, ToolPin
from toolcrib.errors import CatalogError

_VERSION = 2
_READABLE = (1, 2)
_NEW_FILE_MODE = 0o644
_WAIT_S = 10.0
_RETRY_S = 0.01


def read_lock(path: Path) -> Lock:
    """What is approved; nothing when there is no lock yet.

    Raises:
        CatalogError: the lock is there and cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Lock()
    except (OSError, UnicodeDecodeError) as fault:
        raise CatalogError(f"the lock cannot be read: {fault}", where=str(path)) from fault
    try:
        return _parse(json.loads(text, object_pairs_hook=_each_key_once))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as fault:
        hint = "restore it from version control, or remove it and approve again"
        raise CatalogError(f"the lock is damaged: {fault}", where=str(path), hint=hint) from fault


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A key that stands twice has no one meaning: a reviewer may have read the other line."""
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"{next(key for key in keys if keys.count(key) > 1)!r} stands in it twice")
    return found


def _parse(body: Any) -> Lock:
    if body["version"] not in _READABLE:
        raise ValueError(f"version {body['version']!r}, this Toolcrib reads {_VERSION}")
    tools = {str(tool_id): _tool(entry) for tool_id, entry in body["tools"].items()}
    servers = {str(server_id): _server(entry) for server_id, entry in body.get("servers", {}).items()}
    return Lock(tools=tools, servers=servers)


def _tool(entry: Any) -> ToolPin:
    digest = entry["digest"]
    if not isinstance(digest, str) or not digest.startswith("sha256:"):
        raise ValueError("a digest is not of the form sha256:<hex>")
    return ToolPin(
        digest=digest, fields=_texts(entry.get("fields", {})), signatures=_texts(entry.get("signatures", {}))
    )


def _server(entry: Any) -> ServerPin:
    provenance, capabilities = entry.get("provenance", {}), entry.get("capabilities", {})
    if not isinstance(provenance, dict) or not isinstance(capabilities, dict):
        raise TypeError("what a server is must be an object")
    return ServerPin(
        provenance=provenance,
        instructions=str(entry.get("instructions", "")),
        protocol_version=str(entry.get("protocol_version", "")),
        capabilities=capabilities,
        signatures=_texts(entry.get("signatures", {})),
    )


def _texts(value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise TypeError("an object of texts was expected")
    return value


def update_lock(path: Path, change: Callable[[Lock], Lock]) -> Lock:
    """Read the lock, change it, write it, while nobody else does; the lock as it is then.

    Args:
        change: the lock as it is now -> as it shall be. Must not call `update_lock`.
    Raises:
        CatalogError: the lock is damaged, cannot be written, or another process keeps it for too long.
    """
    with locked(path):
        before = read_lock(path)
        after = change(before)
        if after != before:
            write_lock(path, after)
    return after


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the right to change this lock, against threads and processes. Not reentrant.

    The right hangs on a file beside the lock (`.<name>.guard`), since the lock itself is replaced by every change. It
    stays there: whoever removed it would take it from under somebody who waits for it.

    Raises:
        CatalogError: another process keeps it for more than 10 seconds.
    """
    target = _target(path)
    guard = target.with_name(f".{target.name}.guard")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        file = os.fdopen(os.open(guard, os.O_RDONLY | os.O_CREAT, 0o666), "rb")
    except OSError as fault:
        raise CatalogError(f"the lock cannot be written: {fault}", where=str(path)) from fault
    with file:
        deadline = time.monotonic() + _WAIT_S
        while not _taken(file, path):
            if time.monotonic() > deadline:
                hint = "try again when the other command is done"
                raise CatalogError("another process is changing the lock", where=str(path), hint=hint)
            time.sleep(_RETRY_S)
        yield


def _taken(file: Any, path: Path) -> bool:
    try:
        return try_lock(file)
    except OSError as fault:
        hint = "keep it on a file system that can lock files"
        raise CatalogError(f"the lock cannot be kept for oneself: {fault}", where=str(path), hint=hint) from fault


def write_lock(path: Path, lock: Lock) -> None:
    """Replace the lock in one step, sorted by id. What depends on the lock as it was goes through `update_lock`.

    Raises:
        CatalogError: it cannot be written; the one that was there still is.
    """
    body = {
        "version": _VERSION,
        "servers": {server_id: _written(lock.servers[server_id]) for server_id in sorted(lock.servers)},
        "tools": {tool_id: _written(lock.tools[tool_id]) for tool_id in sorted(lock.tools)},
    }
    text = json.dumps(body, indent=1, ensure_ascii=True) + "\n"
    target = _target(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = target.stat().st_mode & 0o777 if target.exists() else _NEW_FILE_MODE
        _replace(target, text, mode=mode)
    except OSError as fault:
        raise CatalogError(f"the lock cannot be written: {fault}", where=str(path)) from fault


def _written(pin: ToolPin | ServerPin) -> dict[str, Any]:
    """A pin as it stands in the file: empty values are left out, objects are sorted by key."""
    values = {field.name: getattr(pin, field.name) for field in fields(pin)}
    return {
        name: dict(sorted(value.items())) if isinstance(value, Mapping) else value
        for name, value in values.items()
        if value
    }


def _target(path: Path) -> Path:
    """The file itself, at the end of all symbolic links."""
    try:
        target = path.resolve()
    except (OSError, RuntimeError) as fault:  # a circle of links is a RuntimeError until Python 3.13
        raise CatalogError(f"the lock cannot be found: {fault}", where=str(path)) from fault
    if target.is_symlink():  # and since then it comes back unresolved
        raise CatalogError("the lock cannot be found: a circle of symbolic links", where=str(path))
    return target


def _replace(target: Path, text: str, *, mode: int) -> None:
    handle, name = tempfile.mkstemp(prefix=target.name + ".", dir=target.parent)
    written = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        written.chmod(mode)
        written.replace(target)
    except BaseException:
        written.unlink(missing_ok=True)
        raise
