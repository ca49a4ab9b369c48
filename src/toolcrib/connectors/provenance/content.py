"""Digests of what lies on disk: of one file, and of many under names that are the same on every machine.

Invariants
1. A digest over many files depends on their names and contents alone: not on their order, dates, owners or place.
2. No more than `MAX_BYTES` in `MAX_FILES` files are read for one package; beyond that `TooLarge` is raised.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

MAX_FILES = 20_000
MAX_BYTES = 64 * 1024 * 1024
MAX_PROGRAM_BYTES = 1024 * 1024 * 1024
_PASSED_BY = frozenset(("__pycache__", "node_modules", "site-packages"))


class NotTold(Exception):  # noqa: N818  (a reason that ends up in a note, not an error that anybody meets)
    """Something of a server cannot be known. The text says why, for people, without paths of this machine."""


class TooLarge(NotTold):
    """There is more of it than is read for one package."""


def file_digest(path: Path, *, max_bytes: int = MAX_PROGRAM_BYTES) -> str:
    """ "sha256:<hex>" of the file's bytes.

    Raises:
        TooLarge: it has more than `max_bytes`. NotTold: it cannot be read.
    """
    try:
        if path.stat().st_size > max_bytes:
            raise TooLarge(f"{path.name} is too large to be read")
        with path.open("rb") as file:
            return "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as exc:
        raise NotTold(f"{path.name} could not be read: {exc.strerror}") from None


def files_digest(files: Mapping[str, Path]) -> str:
    """ "sha256:<hex>" over names and contents; of a single file that file's own.

    Raises:
        TooLarge: they are too many, or too large. NotTold: a file cannot be read.
    """
    if len(files) == 1:
        return file_digest(next(iter(files.values())), max_bytes=MAX_BYTES)
    if len(files) > MAX_FILES:
        raise TooLarge(f"{len(files)} files are too many to read; at most {MAX_FILES}")
    whole = hashlib.sha256()
    left = MAX_BYTES
    for name in sorted(files):
        digest = file_digest(files[name], max_bytes=left)
        left -= files[name].stat().st_size
        whole.update(f"{digest} {name}\n".encode("utf-8", "surrogatepass"))
    return "sha256:" + whole.hexdigest()


def files_below(root: Path, *, suffixes: tuple[str, ...] = ()) -> dict[str, Path]:
    """Files under a directory by their name in it, without caches and installed packages.

    Args:
        suffixes: of source files; then hidden directories and virtual environments are passed by, too.
    """
    found = _walk(root, sources=bool(suffixes))
    return {path.relative_to(root).as_posix(): path for path in found if path.name.endswith(suffixes or "")}


def _walk(root: Path, *, sources: bool) -> Iterator[Path]:
    """Directories are not followed through links; a link to a file counts with what it points to."""
    n_files = 0
    for place, directories, names in os.walk(root):
        here = Path(place)
        directories[:] = [
            name
            for name in directories
            if name not in _PASSED_BY and not (sources and (name[0] == "." or (here / name / "pyvenv.cfg").exists()))
        ]
        for name in names:
            n_files += 1
            if n_files > MAX_FILES:
                raise TooLarge(f"more than {MAX_FILES} files lie there")
            if (here / name).is_file():
                yield here / name
