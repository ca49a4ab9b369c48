"""A pseudo-terminal for commands that ask: what they print is waited for, and answered."""

from __future__ import annotations

import os
import pty
import select
import termios
import time
from collections.abc import Sequence

_WITHIN_S = 30.0


def drive(words: Sequence[str], answers: Sequence[tuple[str, str]]) -> tuple[str, int]:
    """Everything a command printed in a terminal, and its exit code.

    Args:
        answers: what must have been printed, and what is typed then. One character is a key, more are a line.
    """
    process, terminal = pty.fork()
    if process == 0:
        os.execve(words[0], list(words), {**os.environ, "COLUMNS": "200", "TERM": "dumb"})
    printed, seen = b"", 0
    for expected, typed in answers:
        while expected.encode() not in printed[seen:]:
            more = _read(terminal)
            if not more:
                raise AssertionError(f"{expected!r} was never printed: {printed.decode()}")
            printed += more
        seen = len(printed)
        _until(terminal, reads_lines=len(typed) > 1)
        os.write(terminal, typed.encode())
    while more := _read(terminal):
        printed += more
    os.close(terminal)
    return printed.decode(), os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def _read(terminal: int) -> bytes:
    ready, _, _ = select.select([terminal], [], [], _WITHIN_S)
    try:
        return os.read(terminal, 65_536) if ready else b""
    except OSError:  # the other end is closed
        return b""


def _until(terminal: int, *, reads_lines: bool) -> None:
    """Keys that come before they are asked for are thrown away, so that nobody decides about a page unseen."""
    end = time.monotonic() + _WITHIN_S
    while bool(termios.tcgetattr(terminal)[3] & termios.ICANON) != reads_lines and time.monotonic() < end:
        time.sleep(0.005)
