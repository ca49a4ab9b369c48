"""`toolcrib.lock`: the digests that a reviewer approved. Sorted JSON, meant for version control and code review.

It is the one record of what is approved: a definition is in service only when its digest stands here under its tool id
(I4). A lock that cannot be read approves nothing, and says so.

    {"version": 1, "tools": {"<tool id>": {"digest": "sha256:…"}, …}}
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toolcrib.errors import CatalogError

_VERSION = 1


def read_lock(path: Path) -> dict[str, str]:
    """Approved digests by tool id; empty when there is no lock yet.

    Raises:
        CatalogError: the lock is there and cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as fault:
        raise CatalogError(f"the lock cannot be read: {fault}", where=str(path)) from fault
    try:
        return _parse(json.loads(text))
    except (ValueError, TypeError, KeyError, AttributeError) as fault:
        hint = "restore it from version control, or remove it and approve again"
        raise CatalogError(f"the lock is damaged: {fault}", where=str(path), hint=hint) from fault


def _parse(body: Any) -> dict[str, str]:
    if body["version"] != _VERSION:
        raise ValueError(f"version {body['version']!r}, this Toolcrib reads {_VERSION}")
    approved = {str(tool_id): entry["digest"] for tool_id, entry in body["tools"].items()}
    if not all(isinstance(digest, str) and digest.startswith("sha256:") for digest in approved.values()):
        raise ValueError("a digest is not of the form sha256:<hex>")
    return approved


def write_lock(path: Path, approved: Mapping[str, str]) -> None:
    """Replace the lock in one step, sorted by tool id."""
    body = {"version": _VERSION, "tools": {tool_id: {"digest": approved[tool_id]} for tool_id in sorted(approved)}}
    text = json.dumps(body, indent=1, ensure_ascii=True) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=path.name + ".", dir=path.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except OSError as fault:
        raise CatalogError(f"the lock cannot be written: {fault}", where=str(path)) from fault
