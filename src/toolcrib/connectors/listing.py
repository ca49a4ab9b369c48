"""All servers listed at once, each under its own deadline, none at another's cost.

Above it `toolcrib refresh`; below it one connector per server, closed when its listing is in unless it is another's.

Invariants
1. The answers stand in the order of the ids that were asked for: a whole `ServerListing` or a `ListingFailure`.
2. Whatever one server does ends as its own failure. Cancellation and KeyboardInterrupt still end the whole.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from toolcrib.connectors.base import Connector
from toolcrib.errors import ConnectorError, ToolcribError
from toolcrib.types import ServerListing


@dataclass(frozen=True, slots=True)
class ListingFailure:
    """A server that gave no listing, and why."""

    server_id: str
    error: ToolcribError

    @property
    def is_partial(self) -> bool:
        """Whether the list began, and broke off after its first page."""
        return isinstance(self.error, ConnectorError) and self.error.pages_read > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingProgress:
    """One step of one server. `n_done` of `n_servers` have ended, this one included."""

    server_id: str
    state: Literal["started", "listed", "failed"]
    n_done: int
    n_servers: int
    n_tools: int = 0
    elapsed_s: float = 0.0
    error: str = ""


OnProgress = Callable[[ListingProgress], None]


async def list_all(
    server_ids: Sequence[str],
    open_one: Callable[[str], Connector],
    *,
    on_progress: OnProgress | None = None,
    max_parallel: int = 8,
    keep_open: Collection[str] = (),
) -> tuple[ServerListing | ListingFailure, ...]:
    """What each server answered, in the order asked.

    Args:
        open_one: server id -> its connector; what it raises is that server's failure.
        max_parallel: servers started at the same time; a deadline begins with the start.
        keep_open: servers whose connector is not closed here, because somebody else goes on using it.
    """
    progress = _Progress(len(server_ids), on_progress)
    slots = asyncio.Semaphore(max_parallel)

    async def one(server_id: str) -> ServerListing | ListingFailure:
        async with slots:
            progress.started(server_id)
            begun = time.monotonic()
            answer = await _list_one(server_id, open_one, close=server_id not in keep_open)
            progress.ended(answer, elapsed_s=time.monotonic() - begun)
            return answer

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(server_id)) for server_id in server_ids]
    return tuple(task.result() for task in tasks)


async def _list_one(
    server_id: str, open_one: Callable[[str], Connector], *, close: bool
) -> ServerListing | ListingFailure:
    try:
        connector = open_one(server_id)
        try:
            return await connector.list_tools()
        finally:
            if close:
                await connector.aclose()
    except ToolcribError as exc:
        return ListingFailure(server_id, exc)
    # Not only ours: a connector may let through what its library raises, also anyio's groups and stray cancellations.
    # One server's trouble must not cost the others their listing, so all of it is caught here and nowhere else.
    except (Exception, BaseExceptionGroup, asyncio.CancelledError) as exc:
        if _ends_everything(exc):
            raise
        what = f"failed in an unforeseen way: {type(exc).__name__}: {exc}"
        return ListingFailure(server_id, ConnectorError(what, where=f"server {server_id!r}"))


def _ends_everything(error: BaseException) -> bool:
    """Whether the program is stopping, or somebody cancelled this very task (and not the connector its own)."""
    task = asyncio.current_task()
    kinds: tuple[type[BaseException], ...] = (KeyboardInterrupt, SystemExit)
    if task is not None and task.cancelling():
        kinds = (*kinds, asyncio.CancelledError)
    return isinstance(error, kinds) or (isinstance(error, BaseExceptionGroup) and error.subgroup(kinds) is not None)


class _Progress:
    """Counts what ended and tells whoever listens."""

    def __init__(self, n_servers: int, tell: OnProgress | None) -> None:
        self._n_servers = n_servers
        self._n_done = 0
        self._tell = tell or (lambda _: None)

    def started(self, server_id: str) -> None:
        self._tell(
            ListingProgress(server_id=server_id, state="started", n_done=self._n_done, n_servers=self._n_servers)
        )

    def ended(self, answer: ServerListing | ListingFailure, *, elapsed_s: float) -> None:
        self._n_done += 1
        failed = isinstance(answer, ListingFailure)
        self._tell(
            ListingProgress(
                server_id=answer.server_id,
                state="failed" if failed else "listed",
                n_done=self._n_done,
                n_servers=self._n_servers,
                n_tools=0 if isinstance(answer, ListingFailure) else len(answer.tools),
                elapsed_s=elapsed_s,
                error=answer.error.what if isinstance(answer, ListingFailure) else "",
            )
        )
