"""Whether a file is still what it was when it was last looked at.

Floor 4. Above: `in_force.py`, `callers.py` (and the key files of issuers), `sessions.py`: they keep what they made of a
file only as long as its mark stays the same.

    first look, or another stamp ─▶ young: read at each look ── 2 s ─▶ read once more ─▶ settled: stamp alone

Invariants
1. Two texts never share a mark, even where the times of files tick coarsely (one or two seconds on some systems), so
   that a second text of equal length, written within the tick of the first, leaves the stamp as it was.
2. A digest is kept only when it was read so late that nothing can be written under the same stamp any more. Our own
   clock says so, which never goes back: the file's times may come from another machine's.
"""

from __future__ import annotations

import hashlib
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from toolcrib.settings import Settings
from toolcrib.settings.references import parse_reference
from toolcrib.types import SecretRef

YOUNG_S: Final = 2.0
"""The longest tick of a file system in use (FAT)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """What was found under a stamp that was first seen at `since`; `settled`: no other text can follow under it."""

    stamp: tuple[int, ...]
    digest: bytes
    since: float
    settled: bool


_looks: dict[Path, _Look] = {}
"""The last look at each file. One for the whole process: what one reader learns holds for the others, too."""


def file_mark(path: Path) -> tuple[object, ...]:
    """Changes when the file does, or is replaced; empty when there is none or it cannot be read."""
    try:
        stamp, is_regular = _stamp(path)
        known, now = _looks.get(path), _now()
        if known is None or known.stamp != stamp:
            look = _Look(stamp=stamp, digest=_digest(path, is_regular), since=now, settled=False)
        elif not known.settled:
            settled = now - known.since > YOUNG_S
            look = _Look(stamp=stamp, digest=_digest(path, is_regular), since=known.since, settled=settled)
        else:
            look = known
    except OSError:
        return ()
    _looks[path] = look
    return (*stamp, look.digest)


def secret_mark(ref: SecretRef, settings: Settings) -> tuple[object, ...]:
    """Changes when the file changes that a secret lies in; the environment of a process does not change."""
    parts = parse_reference(ref.reference)
    return (ref, file_mark(settings.resolve(parts.target))) if parts and parts.kind == "file" else (ref,)


def _stamp(path: Path) -> tuple[tuple[int, ...], bool]:
    """What the file system says of this file, and whether it is a regular one."""
    found = path.stat()
    stamp = (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)
    return stamp, stat.S_ISREG(found.st_mode)


def _digest(path: Path, is_regular: bool) -> bytes:
    """SHA-256 of the content. A pipe is not read: that would wait, or take from whoever it is for."""
    if not is_regular:
        return b""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def _now() -> float:
    return time.monotonic()
