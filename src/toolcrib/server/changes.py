"""Who is told that their tools changed: only those whose own listing did.

Above: `mcp_gateway.py` adds a watcher per open stream or session and announces. The SDK's own handler tells everybody,
which would tell a caller of tools it may not know (I1).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import anyio

from toolcrib.errors import ToolcribError
from toolcrib.types import Caller

_TELL_WITHIN_S = 5.0

_log = logging.getLogger(__name__)


class Watcher:
    """One stream or session and the version of the listing it was last told of."""

    __slots__ = ("caller", "tell", "version")

    def __init__(self, caller: Caller, *, version: str, tell: Callable[[], Awaitable[None]]) -> None:
        self.caller = caller
        self.version = version
        self.tell = tell


class Watchers:
    """All open streams and sessions. Use on one event loop."""

    def __init__(self, *, max_watchers: int = 2_000, max_per_subject: int = 64) -> None:
        self._all: dict[int, Watcher] = {}
        self._max_watchers = max_watchers
        self._max_per_subject = max_per_subject

    def __len__(self) -> int:
        return len(self._all)

    def add(self, watcher: Watcher) -> bool:
        """Whether there was room for it; one subject cannot take all of it."""
        mine = sum(w.caller.subject == watcher.caller.subject for w in self._all.values())
        if len(self._all) >= self._max_watchers or mine >= self._max_per_subject:
            return False
        self._all[id(watcher)] = watcher
        return True

    def remove(self, watcher: Watcher) -> None:
        self._all.pop(id(watcher), None)

    async def announce(self, version_of: Callable[[Caller], str]) -> int:
        """Tell each whose version is another one now; how many were told. One that does not listen delays no other."""
        changed = [watcher for watcher in list(self._all.values()) if _changed(watcher, version_of)]
        async with anyio.create_task_group() as tasks:
            for watcher in changed:
                tasks.start_soon(_tell, watcher)
        return len(changed)


def _changed(watcher: Watcher, version_of: Callable[[Caller], str]) -> bool:
    try:
        version = version_of(watcher.caller)
    except ToolcribError as fault:
        _log.warning("cannot tell whether the tools of a subscriber changed: %s", fault)
        return False
    if version == watcher.version:
        return False
    watcher.version = version
    return True


async def _tell(watcher: Watcher) -> None:
    with anyio.move_on_after(_TELL_WITHIN_S):
        await watcher.tell()
