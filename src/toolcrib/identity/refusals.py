"""The operator's log of refused requests: one line each, and never more than a few dozen a minute.

Below: nothing. Above: `callers.py` and the doors over HTTP, each with a log of its own.

Invariants
1. Whoever knocks cannot flood the log: within a minute a reason is written once and counted after that, and at most
   `MAX_REASONS` of them are written, however many a stranger makes up. Memory is bounded by the same number.
2. Nothing that was counted is lost while requests are refused: the next one after the minute says how many there were.
3. One line is one line: what a reason quotes can't begin another.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

MAX_REASONS: Final = 20
EVERY_S: Final = 60.0


class RefusalLog:
    """Writes to `log`, as warnings.

    Args:
        clock: seconds that only grow; for tests.
    """

    def __init__(self, log: logging.Logger, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._clock = clock
        self._lock = threading.Lock()
        self._since = float("-inf")
        self._more: dict[str, int] = {}
        """What was written in this minute, and how often it came again."""
        self._others = 0

    def say(self, reason: str, *, what: str) -> None:
        """Note one refusal.

        Args:
            reason: in words, without any part of a credential. what: "a request from 127.0.0.1 was refused (401)".
        """
        line = " ".join(reason.split())
        with self._lock:
            if self._clock() - self._since >= EVERY_S:
                self._sum_up()
            if line in self._more:
                self._more[line] += 1
            elif len(self._more) < MAX_REASONS:
                self._more[line] = 0
                self._log.warning("%s: %s", what, line)
            else:
                self._others += 1

    def _sum_up(self) -> None:
        """What was counted since the last time, and a new minute."""
        for line, n_more in self._more.items():
            if n_more:
                self._log.warning("refused %d times more within a minute: %s", n_more, line)
        if self._others:
            self._log.warning("refused %d times more within a minute, for other reasons", self._others)
        self._more, self._others, self._since = {}, 0, self._clock()


def request_refused(peer: str, *, status: int = 401) -> str:
    """The beginning of a line about a request over HTTP from this address."""
    return f"a request from {peer or 'an unknown address'} was refused ({status})"
