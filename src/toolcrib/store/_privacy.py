"""Nobody but the owner reads a store. The one place in this room that differs between operating systems.

Permission bits mean this on POSIX alone; elsewhere a folder's own access rules hold and nothing is done here.

Above: `sqlite.py`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_OTHERS = 0o077


def make_private(path: Path) -> None:
    """The store's folder and file made if they are missing, and both closed to everybody else.

    The file is made here, empty, because SQLite would make it readable for all; the files that SQLite puts beside it
    take over its permissions. An older folder is closed only when nothing but the store lies in it: with the project's
    own folder as the store's, closing it would shut out whoever else works there.

    Raises:
        OSError: folder or file cannot be made.
    """
    path.parent.parent.mkdir(parents=True, exist_ok=True)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.touch(mode=0o600)
    if os.name != "posix":
        return
    ours = {path.name, *(file.name for file in _beside(path)), "index"}
    if all(one.name in ours for one in path.parent.iterdir()):
        _close(path.parent)
    for file in (path, *_beside(path)):
        _close(file)


def _beside(path: Path) -> Iterator[Path]:
    for ending in ("-wal", "-shm", "-journal"):
        yield path.with_name(path.name + ending)


def _close(path: Path) -> None:
    # Somebody else's file, or gone by now: the one is not ours to change, the other needs no change.
    with suppress(PermissionError, FileNotFoundError):
        mode = path.stat().st_mode & 0o777
        if mode & _OTHERS:
            path.chmod(mode & ~_OTHERS)
