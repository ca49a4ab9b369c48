"""Open sessions, one per server, for as long as the program runs.

Above it the crib; below it whatever `open_one` gives. A call that meets a broken session fails and says so; the next
one gets a new session. A call is never sent twice: the pool cannot know what the first one did.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from toolcrib.connectors.base import Connector
from toolcrib.errors import ConnectorError, ToolcribError
from toolcrib.types import Code, JsonObject, ToolResult

_log = logging.getLogger(__name__)


class ConnectorPool:
    """Calls through persistent sessions. Opening is lazy inside the connectors, so no lock is needed here.

    Args:
        open_one: server id -> a new, unopened connector. May raise a `ToolcribError` (a secret that cannot be read).
    """

    def __init__(self, open_one: Callable[[str], Connector]) -> None:
        self._open_one = open_one
        self._connectors: dict[str, Connector] = {}
        self._n_calls: dict[Connector, int] = {}
        self._retired: set[Connector] = set()
        self._closing: set[asyncio.Task[None]] = set()
        self._closed = False

    def connector(self, server_id: str) -> Connector:
        """The server's connector, a new one if there is none or it broke.

        Raises:
            ConnectorError: the pool is closed.
            ToolcribError: what `open_one` raises.
        """
        if self._closed:
            raise ConnectorError("the pool is closed", where=f"server {server_id!r}")
        known = self._connectors.get(server_id)
        if known is not None and not known.broken:
            return known
        if known is not None:
            self._discard(server_id, known)
        return self._connectors.setdefault(server_id, self._open_one(server_id))

    async def ready(self, server_id: str) -> bool:
        """Opens the server's session if need be; whether it is open now."""
        try:
            await self.connector(server_id).ready()
        except ToolcribError as exc:
            _log.warning("server %r cannot be opened: %s", server_id, exc)
            return False
        return True

    async def call(
        self,
        server_id: str,
        name: str,
        arguments: JsonObject,
        *,
        timeout_s: float,
        meta: JsonObject | None = None,
        input_schema: JsonObject | None = None,
    ) -> ToolResult:
        """As `Connector.call`. A connector that cannot be made is `unavailable`."""
        try:
            connector = self.connector(server_id)
        except ToolcribError as exc:
            _log.warning("server %r cannot be opened: %s", server_id, exc)
            return ToolResult(code=Code.UNAVAILABLE, message="The tool's server cannot be opened. Try again later.")
        self._n_calls[connector] = self._n_calls.get(connector, 0) + 1
        try:
            result = await connector.call(name, arguments, timeout_s=timeout_s, meta=meta, input_schema=input_schema)
        finally:
            self._n_calls[connector] -= 1
            self._close_if_idle(connector)
        if connector.broken and self._connectors.get(server_id) is connector:
            self._discard(server_id, connector)
        return result

    def retire(self, server_id: str) -> None:
        """The next call opens a new session; the old one closes when its last call is done. For a changed server."""
        connector = self._connectors.pop(server_id, None)
        if connector is not None:
            self._retired.add(connector)
            self._close_if_idle(connector)

    def _close_if_idle(self, connector: Connector) -> None:
        if self._n_calls.get(connector):
            return
        self._n_calls.pop(connector, None)
        if connector in self._retired:
            self._retired.discard(connector)
            self._close(connector)

    async def aclose(self) -> None:
        """Closes everything. Calls after this are `unavailable`."""
        self._closed = True
        connectors = [*self._connectors.values(), *self._retired]
        self._connectors, self._retired = {}, set()
        await asyncio.gather(*(connector.aclose() for connector in connectors), *self._closing, return_exceptions=True)

    def _discard(self, server_id: str, connector: Connector) -> None:
        """Closing a dead process may take a moment; nobody waits for it but `aclose`."""
        del self._connectors[server_id]
        self._close(connector)

    def _close(self, connector: Connector) -> None:
        task = asyncio.create_task(connector.aclose())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
