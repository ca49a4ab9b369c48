"""An exclusive advisory lock on an open file. The one place in this room that differs between operating systems.

Above: `lock.py`. Advisory: it holds off those who ask, and nobody else. It ends with the file, so a process that dies
leaves nothing locked.
"""

from __future__ import annotations

import sys
from typing import IO

if sys.platform == "win32":
    import msvcrt

    def try_lock(file: IO[bytes]) -> bool:
        """Whether the lock is now ours; waits for nobody."""
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True

else:
    import fcntl

    def try_lock(file: IO[bytes]) -> bool:
        """Whether the lock is now ours; waits for nobody."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
