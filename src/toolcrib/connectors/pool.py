"""Open sessions, one per server, for as long as the program runs; one per server and caller where it is the caller's.

Above it the crib; below it whatever `open_one` gives. A call that meets a broken session fails and says so; the next
one gets a new session. A call is never sent twice: the pool cannot know what the first one did.

Invariants
1. A session that was opened with a caller's own credential serves that caller alone: `owner_of` says whose it is.
2. Sessions of callers are bounded; the one idle longest closes first.
3. Nothing is sent through a session whose server is not what was approved, where `fault_of` says so: it is asked of the
   very session, at each call, because an approval may come or go while it is open.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable

from toolcrib.connectors.base import Connector
from toolcrib.connectors.observing import Observing
from toolcrib.errors import ConnectorError, NoCredentialError, ToolcribError
from toolcrib.types import Caller, Code, JsonObject, Provenance, ToolResult

_log = logging.getLogger(__name__)


SessionKey = tuple[str, str]
"""Server id, and whose session it is: "" for the crib's own."""
_MAX_OWNED = 256


class ConnectorPool:
    """Calls through persistent sessions. Opening is lazy inside the connectors, so no lock is needed here.

    Args:
        open_one: server id, caller -> a new, unopened connector. May raise a `ToolcribError` (a secret that cannot be
            read; NoCredentialError: the caller has none for this server).
        owner_of: server id, caller -> whose session a call needs: "" for the crib's own.
        fault_of: server id, what runs behind its session -> why it may not serve, or "".
    """

    def __init__(
        self,
        open_one: Callable[[str, Caller | None], Connector],
        *,
        owner_of: Callable[[str, Caller | None], str] = lambda _server_id, _caller: "",
        fault_of: Callable[[str, Provenance], str] | None = None,
    ) -> None:
        self._open_one = open_one
        self._owner_of = owner_of
        self._fault_of = fault_of
        self._connectors: OrderedDict[SessionKey, Connector] = OrderedDict()
        self._n_calls: dict[Connector, int] = {}
        self._retired: set[Connector] = set()
        self._closing: set[asyncio.Task[None]] = set()
        self._closed = False

    def key(self, server_id: str, caller: Caller | None = None) -> SessionKey:
        """Which session a call of this caller to this server goes through."""
        return server_id, self._owner_of(server_id, caller)

    def connector(self, server_id: str, caller: Caller | None = None) -> Connector:
        """The connector for this server and caller, a new one if there is none or it broke.

        Raises:
            ConnectorError: the pool is closed.
            ToolcribError: what `open_one` raises.
        """
        if self._closed:
            raise ConnectorError("the pool is closed", where=f"server {server_id!r}")
        key = self.key(server_id, caller)
        known = self._connectors.get(key)
        if known is not None and not known.broken:
            self._connectors.move_to_end(key)
            return known
        if known is not None:
            self._discard(key, known)
        opened = self._connectors[key] = self._open_one(server_id, caller)
        self._forget_idle()
        return opened

    async def ready(self, server_id: str, caller: Caller | None = None) -> Code:
        """Opens the session if need be: `ok`, `unavailable`, or `no_credential` where the caller has none.

        One that was opened before something else was approved is replaced.
        """
        try:
            was_open = self.key(server_id, caller) in self._connectors
            if await self._is_another(server_id, await self._opened(server_id, caller)) and (
                not was_open or await self._is_another(server_id, await self._opened(server_id, caller))
            ):
                return Code.UNAVAILABLE
        except NoCredentialError:
            return Code.NO_CREDENTIAL
        except ToolcribError as exc:
            _log.warning("server %r cannot be opened: %s", server_id, exc)
            return Code.UNAVAILABLE
        return Code.OK

    async def _opened(self, server_id: str, caller: Caller | None) -> Connector:
        connector = self.connector(server_id, caller)
        await connector.ready()
        return connector

    async def call(
        self,
        server_id: str,
        name: str,
        arguments: JsonObject,
        *,
        timeout_s: float,
        caller: Caller | None = None,
        meta: JsonObject | None = None,
        input_schema: JsonObject | None = None,
    ) -> ToolResult:
        """As `Connector.call`. A connector that cannot be made is `unavailable`, or `no_credential`."""
        try:
            key, connector = self.key(server_id, caller), self.connector(server_id, caller)
        except NoCredentialError:
            message = "There is no credential for you that the tool's server takes. Ask its operator."
            return ToolResult(code=Code.NO_CREDENTIAL, message=message)
        except ToolcribError as exc:
            _log.warning("server %r cannot be opened: %s", server_id, exc)
            return ToolResult(code=Code.UNAVAILABLE, message="The tool's server cannot be opened. Try again later.")
        self._n_calls[connector] = self._n_calls.get(connector, 0) + 1
        try:
            if await self._is_another(server_id, connector):
                message = "The tool's server is not the one that was approved; nothing was sent. Ask its operator."
                return ToolResult(code=Code.UNAVAILABLE, message=message)
            result = await connector.call(name, arguments, timeout_s=timeout_s, meta=meta, input_schema=input_schema)
        finally:
            self._n_calls[connector] -= 1
            self._close_if_idle(connector)
        if connector.broken and self._connectors.get(key) is connector:
            self._discard(key, connector)
        return result

    async def _is_another(self, server_id: str, connector: Connector) -> bool:
        """Whether another thing than was approved runs behind the session. Opens it; where it cannot be, calls say so.

        Such a session is closed: the next call asks anew, of what runs then.
        """
        if self._fault_of is None or not isinstance(connector, Observing):
            return False
        try:
            found = await connector.observed()
        except ConnectorError:
            return False  # it has no session, so nothing can be sent through it either
        try:
            fault = self._fault_of(server_id, found)
        except ToolcribError as exc:
            _log.warning("whether server %r is the one that was approved cannot be told: %s", server_id, exc)
            return True
        if fault:
            _log.warning("server %r is not the one that was approved: %s", server_id, fault)
            for key in [key for key, one in self._connectors.items() if one is connector]:
                self._retire(key)
        return bool(fault)

    def retire(self, server_id: str) -> None:
        """The next call opens a new session; old ones close when their last call is done. For a changed server."""
        for key in [key for key in self._connectors if key[0] == server_id]:
            self._retire(key)

    def _retire(self, key: SessionKey) -> None:
        connector = self._connectors.pop(key)
        self._retired.add(connector)
        self._close_if_idle(connector)

    def _forget_idle(self) -> None:
        owned = [key for key in self._connectors if key[1]]
        for key in owned[: max(0, len(owned) - _MAX_OWNED)]:
            self._retire(key)

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
        self._connectors, self._retired = OrderedDict(), set()
        await asyncio.gather(*(connector.aclose() for connector in connectors), *self._closing, return_exceptions=True)

    def _discard(self, key: SessionKey, connector: Connector) -> None:
        """Closing a dead process may take a moment; nobody waits for it but `aclose`."""
        del self._connectors[key]
        self._close(connector)

    def _close(self, connector: Connector) -> None:
        task = asyncio.create_task(connector.aclose())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
