"""Files that may hold callers' words: for their owner alone, whole or not at all.

Floor 4, within `evals/`. Above: its other files, and `cli/evals.py`.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path


def write_private(path: Path, text: str) -> None:
    """Write UTF-8 text, readable by its owner alone (0600), in place of what was there. Raises OSError."""
    handle, young = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")  # 0600 from the start
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(young, path)  # noqa: PTH105  # over one that is there, on Windows too
    except BaseException:
        with suppress(OSError):
            os.unlink(young)  # noqa: PTH108
        raise


def private_folder(path: Path) -> None:
    """Make a folder for its owner alone (0700); one that is there stays as it is. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
