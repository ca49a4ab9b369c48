"""The name a model sees for a tool: compiled from the tool id alone, per target.

Above: the payload files beside this one, the gateway, and whoever reads a model's call back.

    github.create_issue      ─▶  github__create_issue                    lossless: both parts are safe and it fits
    a.admin.tools.list       ─▶  a__admin_tools_list__f3k1q9zt0c         hashed: something was lost

Invariants
1. A pure function of the tool id and the target. A suffix added only on a clash would tell of a hidden tool (I1).
2. A lossless name has exactly one `__`, a hashed one exactly two, so the two kinds never meet; within a kind, parts or
   hashes tell names apart.
3. Every name has a `__`, so the gateway's own tools (`find_tools` and its siblings) cannot be imitated.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Collection
from enum import StrEnum

_SAFE = re.compile(r"[a-zA-Z0-9_-]+")
_UNSAFE = re.compile(r"[^a-zA-Z0-9_-]+")
_JOINT = "__"
_HASH_CHARS = 10
"""Base32 characters, 5 bits each: of 100,000 tools that share both stems, two meet with probability 1 in 200,000."""


class NameTarget(StrEnum):
    """Who reads the name. Limits differ; MCP clients put a prefix of their own before it, so it is kept short there."""

    MCP = "mcp"
    ANTHROPIC = "anthropic"
    OPENAI = "openai"
    GEMINI = "gemini"

    @property
    def max_chars(self) -> int:
        return 40 if self is NameTarget.MCP else 64


def public_name(tool_id: str, *, target: NameTarget) -> str:
    """The tool's name for this target: `[a-zA-Z0-9_-]`, at most `target.max_chars` long."""
    server_id, _, name = tool_id.partition(".")
    whole = f"{server_id}{_JOINT}{name}"
    return whole if _is_lossless(server_id, name, whole, target) else _hashed(tool_id, target)


def tool_id_from_name(name: str, tool_ids: Collection[str], *, target: NameTarget) -> str | None:
    """The tool id behind a public name, or None. Only `tool_ids` are looked at; a set answers fastest."""
    if name.count(_JOINT) == 1:
        tool_id = name.replace(_JOINT, ".")
        return tool_id if tool_id in tool_ids and public_name(tool_id, target=target) == name else None
    return next((tool_id for tool_id in tool_ids if public_name(tool_id, target=target) == name), None)


def _is_lossless(server_id: str, name: str, whole: str, target: NameTarget) -> bool:
    """Whether `whole` can be split again in one way only and is legal as it stands."""
    return (
        len(whole) <= target.max_chars
        and all(_SAFE.fullmatch(part) and _JOINT not in part for part in (server_id, name))
        and not server_id.endswith("_")
        and not name.startswith("_")
        and _may_begin(whole, target)
    )


def _may_begin(name: str, target: NameTarget) -> bool:
    return target is not NameTarget.GEMINI or name[0].isalpha() or name[0] == "_"


def _hashed(tool_id: str, target: NameTarget) -> str:
    """Two readable stems and a hash of the whole id. The server's stem gives way first: it says the least."""
    server_id, _, name = tool_id.partition(".")
    room = target.max_chars - _HASH_CHARS - 2 * len(_JOINT)
    server_stem, name_stem = _stem(server_id) or "s", _stem(name) or "t"
    if not _may_begin(server_stem, target):
        server_stem = f"s{server_stem}"
    server_stem = server_stem[: max(room // 3, room - len(name_stem))].rstrip("_")
    name_stem = name_stem[: room - len(server_stem)].rstrip("_")
    return _JOINT.join((server_stem, name_stem, _hash(tool_id)))


def _stem(part: str) -> str:
    """The part with everything unsafe turned into single underscores, none at either end."""
    return re.sub("_+", "_", _UNSAFE.sub("_", part)).strip("_")


def _hash(tool_id: str) -> str:
    digest = hashlib.sha256(tool_id.encode("utf-8", "surrogatepass")).digest()
    return base64.b32encode(digest).decode().lower()[:_HASH_CHARS]
