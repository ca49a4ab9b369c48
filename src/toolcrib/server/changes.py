"""Who is told that their tools changed: only those whose own listing did.

Above: `mcp_gateway.py` hands over streams and sessions. The SDK's own handler tells everybody at every change, which
would tell a caller of changes to tools it may not know (I1).

    2026-07-28     `subscriptions/listen`: one watcher per open stream, for as long as the request lasts
    2025-11-25     one watcher per session, told on its standing stream, until the session ends

Invariant: before a word is said, it is asked anew who it is that listens. For one who would not come in any more
(revoked, expired, another one now, without a scope that everybody needs by now) the stream ends; where that cannot be
told, nothing is said.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import mcp_types as wire
from anyio.abc import ObjectSendStream
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY, ToolsListChanged, event_to_notification

from toolcrib.errors import ToolcribError
from toolcrib.server.callers import Renew
from toolcrib.types import Caller

_TELL_WITHIN_S = 5.0

_log = logging.getLogger(__name__)

Ctx = ServerRequestContext[Any, Any]


class Watcher:
    """One stream or session and the version of the listing it was last told of.

    Args:
        renew: who listens, as far as they would still be let in. end: called when they would not.
    """

    __slots__ = ("caller", "end", "renew", "tell", "version")

    def __init__(
        self,
        caller: Caller,
        *,
        version: str,
        renew: Renew,
        tell: Callable[[], Awaitable[None]],
        end: Callable[[], None] = lambda: None,
    ) -> None:
        self.caller = caller
        self.version = version
        self.renew = renew
        self.tell = tell
        self.end = end


class Changes:
    """All who watch. Use on one event loop.

    Args:
        version_of: the version of a caller's listing now.
        max_per_caller: so that one caller (`Caller.identity`) cannot take all the room.
    """

    def __init__(
        self, version_of: Callable[[Caller], str], *, max_watchers: int = 2_000, max_per_caller: int = 64
    ) -> None:
        self._version_of = version_of
        self._max_watchers = max_watchers
        self._max_per_caller = max_per_caller
        self._watchers: dict[int, Watcher] = {}
        self._sessions: dict[int, Watcher] = {}  # by the identity of the SDK's connection
        self._streams: set[anyio.Event] = set()

    @property
    def n_watchers(self) -> int:
        return len(self._watchers)

    def add(self, watcher: Watcher) -> bool:
        """Whether there was room for it."""
        mine = sum(other.caller.identity == watcher.caller.identity for other in self._watchers.values())
        if self.n_watchers >= self._max_watchers or mine >= self._max_per_caller:
            return False
        self._watchers[id(watcher)] = watcher
        return True

    def remove(self, watcher: Watcher) -> None:
        self._watchers.pop(id(watcher), None)

    async def announce(self) -> int:
        """Tell each whose version is another one now; how many were told. One that does not listen delays no other."""
        told: list[Watcher] = []
        async with anyio.create_task_group() as tasks:
            for watcher in list(self._watchers.values()):
                tasks.start_soon(self._look, watcher, told)
        return len(told)

    async def poll(self, every_s: float) -> None:
        """Look for changes made elsewhere, for ever: another process refreshes, approves, revokes."""
        while True:
            await anyio.sleep(every_s)
            if not self._watchers:
                continue
            try:
                await self.announce()
            except Exception:  # noqa: BLE001 - a look that failed must not end the server
                _log.exception("looking for changes failed")

    def watch_session(self, ctx: Ctx, caller: Caller, renew: Renew) -> None:
        """Tell this legacy session from now on. One for which there is no room is served, and told nothing."""
        connection = ctx.session._connection
        if id(connection) in self._sessions:
            return
        version = self._version_of(caller)
        watcher = Watcher(caller, version=version, renew=renew, tell=ctx.session.send_tool_list_changed)
        if self.add(watcher):
            # The SDK shows the end of a session nowhere else than at this private connection.
            self._sessions[id(connection)] = watcher
            connection.exit_stack.callback(self._forget_session, id(connection), watcher)

    def renew_session(self, ctx: Ctx, renew: Renew) -> None:
        """A request of this legacy session was let in: from now on, ask with what it came in with.

        A session outlives tokens. One that was told nothing for want of a caller is told again.
        """
        watcher = self._sessions.get(id(ctx.session._connection))
        if watcher is not None:
            watcher.renew = renew
            if id(watcher) not in self._watchers:
                self.add(watcher)

    async def listen(
        self, ctx: Ctx, caller: Caller, params: wire.SubscriptionsListenRequestParams, *, renew: Renew
    ) -> wire.SubscriptionsListenResult:
        """Serve one `subscriptions/listen` request: acknowledge, then a word per change, until either side ends it."""
        stream_id = ctx.request_id
        if stream_id is None:
            raise MCPError(code=wire.INVALID_REQUEST, message="subscriptions/listen needs a request id")
        meta: dict[str, Any] = {SUBSCRIPTION_ID_META_KEY: stream_id}
        wanted = True if params.notifications.tools_list_changed else None
        send, receive = anyio.create_memory_object_stream[None](1)

        async def tell() -> None:
            if wanted and send.statistics().current_buffer_used == 0:  # one waiting word says it all
                send.send_nowait(None)

        # Watched before the acknowledgement leaves, so that a change in between is told and not lost.
        ended = anyio.Event()
        watcher = Watcher(caller, version=self._version_of(caller), renew=renew, tell=tell, end=ended.set)
        if not self.add(watcher):
            raise MCPError(code=wire.INTERNAL_ERROR, message="Too many open subscriptions")
        self._streams.add(ended)
        try:
            acknowledged = wire.SubscriptionsAcknowledgedNotificationParams(
                notifications=wire.SubscriptionFilter(tools_list_changed=wanted), _meta=meta
            )
            await ctx.session.send_notification(
                wire.SubscriptionsAcknowledgedNotification(params=acknowledged), related_request_id=stream_id
            )
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_close_when, ended, send)
                async for _ in receive:
                    changed = event_to_notification(ToolsListChanged(), meta)
                    await ctx.session.send_notification(changed, related_request_id=stream_id)
        finally:
            self.remove(watcher)
            self._streams.discard(ended)
            send.close()
            receive.close()
        return wire.SubscriptionsListenResult(_meta=meta)

    def close_streams(self) -> None:
        """End every open stream in good order: its client gets a result and knows that it was meant."""
        for ended in list(self._streams):
            ended.set()

    async def _look(self, watcher: Watcher, told: list[Watcher]) -> None:
        with anyio.move_on_after(_TELL_WITHIN_S):
            if await self._takes_note(watcher):
                told.append(watcher)
                await watcher.tell()

    async def _takes_note(self, watcher: Watcher) -> bool:
        try:
            caller = await watcher.renew()
            if caller is None or caller.identity != watcher.caller.identity:
                self.remove(watcher)
                watcher.end()
                return False
            version = self._version_of(caller)
        except ToolcribError as fault:
            _log.warning("cannot tell whether the tools of a subscriber changed: %s", fault)
            return False
        except Exception:  # noqa: BLE001 - of one subscriber; the others must hear of their changes
            _log.exception("cannot tell whether the tools of a subscriber changed")
            return False
        changed = version != watcher.version
        watcher.version = version
        return changed

    def _forget_session(self, key: int, watcher: Watcher) -> None:
        self._sessions.pop(key, None)
        self.remove(watcher)


async def _close_when(ended: anyio.Event, stream: ObjectSendStream[None]) -> None:
    await ended.wait()
    await stream.aclose()
