"""A started program and its descendants, from /proc. Linux only; elsewhere `family` says nothing, and says so.

A launcher stays the parent of what it launched (`npx` ─▶ `sh` ─▶ `node`, `uvx` ─▶ `python`), so the command lines of
the descendants tell what really runs, where a cache could only say what was fetched last.

Invariants
1. Nothing is started and nothing is signalled; a process that ends while it is looked at is left out.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

SUPPORTED = sys.platform == "linux"
_PROC = Path("/proc")
_MAX_FAMILY = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One running program. `parent`: who started it, 0 for the first. `exe`, `cwd`: "" where they may not be seen."""

    pid: int
    parent: int
    exe: str
    argv: tuple[str, ...]
    cwd: str = ""


def family(pid: int) -> tuple[Process, ...]:
    """The process, then its children, their children, and so on; () where this system does not tell."""
    if not SUPPORTED:
        return ()
    children = _children()
    order = [(pid, 0)]
    for parent, _ in order:  # grows while it is read: breadth first
        order += [(child, parent) for child in children.get(parent, ())][: max(0, _MAX_FAMILY - len(order))]
    return tuple(process for one, parent in order if (process := _process(one, parent)) is not None)


def _children() -> dict[int, list[int]]:
    """Parent -> children, oldest first. Read from every process's `stat`: `children` files are not on every kernel."""
    found: dict[int, list[int]] = {}
    try:
        pids = sorted(int(one.name) for one in _PROC.iterdir() if one.name.isdigit())
    except OSError:
        return {}
    for pid in pids:
        try:
            stat = (_PROC / str(pid) / "stat").read_bytes()
        except OSError:
            continue
        fields = stat.rpartition(b")")[2].split()  # a program's name may hold spaces and brackets
        if len(fields) > 1:
            found.setdefault(int(fields[1]), []).append(pid)
    return found


def _process(pid: int, parent: int) -> Process | None:
    here = _PROC / str(pid)
    try:
        argv = (here / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    except OSError:
        return None
    return Process(
        pid=pid,
        parent=parent,
        exe=_link(here / "exe"),
        argv=tuple(os.fsdecode(word) for word in argv),
        cwd=_link(here / "cwd"),
    )


def _link(path: Path) -> str:
    try:
        return str(path.readlink()).removesuffix(" (deleted)")
    except OSError:
        return ""
