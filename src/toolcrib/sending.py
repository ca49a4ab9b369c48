"""Requests to servers: a session under today's configuration, one request, and what may be passed on of its answer.

Floor 4. Above: `dispatch.py` sends calls, `owners.py` asks owners. Below: `connectors/pool.py` keeps the sessions,
`gate/circuit.py` says whether a server is asked at all, `gate/output.py` looks at what came back.

    line (circuit) ─▶ open ─▶ send ─▶ size bound ─▶ output check ─▶ close

Invariants
1. A request leaves once: nothing here sends anything again (I9).
2. A server whose circuit is open is neither opened nor asked.
3. A session that rests on another configuration than today's is dropped before anything is sent.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from toolcrib.connectors.pool import ConnectorPool
from toolcrib.gate.circuit import Circuits, Passage
from toolcrib.gate.output import OutputChecker, checked
from toolcrib.settings import Settings
from toolcrib.types import Caller, Code, JsonObject, Tool, ToolResult

_FAILED_ON_THE_WAY = (Code.UNAVAILABLE, Code.TIMEOUT)
_NOT_OPEN = "The tool's server cannot be opened at the moment. Nothing was sent; try again later."
_NOT_ASKED = "The tool's server has failed several times in a row and is left alone for a while. Nothing was sent."
_NO_JSON = "The tool ran, and answered with what cannot be passed on: no JSON, or nested too deeply."
_NO_CREDENTIAL = "There is no credential for you that the tool's server takes. Nothing was sent; ask its operator."


def failed_on_the_way(result: ToolResult) -> bool:
    """Whether the server could not be reached or did not answer in time; an error of the tool is an answer."""
    return result.code in _FAILED_ON_THE_WAY


class Line:
    """One call's way to one server. Made by `Sender.line`; close it whatever becomes of the call.

    Args:
        passage: through the server's circuit; None while that is open.
        caller: whose session is used where the server wants the caller's own credential; None for the crib's.
    """

    def __init__(
        self, sender: Sender, server_id: str, *, caller: Caller | None, passage: Passage | None, circuits: Circuits
    ) -> None:
        self._sender = sender
        self._server_id = server_id
        self._caller = caller
        self._passage = passage
        self._circuits = circuits
        self._code = Code.UNAVAILABLE
        self._failed: bool | None = None

    async def open(self) -> bool:
        """A session under today's configuration, open before the last verdict, since opening may take long."""
        if self._passage is None:
            return False
        self._code = await self._sender.opened(self._server_id, self._caller)
        self._failed = True if self._code is Code.UNAVAILABLE else None
        return self._code is Code.OK

    @property
    def is_current(self) -> bool:
        """Whether the session still rests on today's configuration."""
        return self._passage is None or self._sender.is_current(self._server_id)

    @property
    def refusal(self) -> ToolResult | None:
        """Why nothing can be sent; None when it can."""
        if self._passage is None:
            return ToolResult(code=Code.UNAVAILABLE, message=_NOT_ASKED)
        if self._code is Code.OK:
            return None
        message = _NO_CREDENTIAL if self._code is Code.NO_CREDENTIAL else _NOT_OPEN
        return ToolResult(code=self._code, message=message)

    @property
    def check(self) -> str:
        """The name of what `refusal` says, for the operator: `circuit`, `credential`, `session`, or ""."""
        if self._passage is None:
            return "circuit"
        return {Code.OK: "", Code.NO_CREDENTIAL: "credential"}.get(self._code, "session")

    async def send(
        self,
        tool: Tool,
        arguments: JsonObject,
        *,
        timeout_s: float,
        meta: JsonObject | None = None,
        again: bool = False,
    ) -> ToolResult:
        """What the tool answered, or why there is no answer. The first thing that is awaited is the request itself.

        Args:
            again: the second request of one call: if it fails, too, that is still one failure.
        """
        self._failed = None
        result = await self._sender.sent(tool, arguments, caller=self._caller, timeout_s=timeout_s, meta=meta)
        failed = failed_on_the_way(result)
        if failed and again:
            return result
        self._failed = None if result.refused else failed
        if not result.refused:
            self._sender.on_result(tool, result)
        return result

    def close(self) -> None:
        """The circuit learns what became of the call."""
        passage, self._passage = self._passage, None
        if passage is not None:
            self._circuits.leave(passage, failed=self._failed)


class Sender:
    """Opens sessions and sends requests.

    Args:
        server_mark: server id -> what its open sessions rest on; those opened under another mark are dropped.
        on_result: told of every call that left, or should have, and its result, unless the server refused it: then
            it is whoever called that is at fault. Servers that cannot be opened are the circuit's to know.
    """

    def __init__(
        self,
        *,
        pool: ConnectorPool,
        settings: Callable[[], Settings],
        server_mark: Callable[[str], object],
        circuits: Circuits,
        on_result: Callable[[Tool, ToolResult], None],
    ) -> None:
        self._pool = pool
        self._settings = settings
        self._server_mark = server_mark
        self._circuits = circuits
        self.on_result = on_result
        self._opened_under: dict[str, object] = {}
        self._checker = OutputChecker()

    def line(self, server_id: str, *, caller: Caller | None) -> Line:
        """A way to this server, which must be closed."""
        gate = self._settings().gate
        self._circuits.configure(failures=gate.circuit_failures, reset_s=gate.circuit_reset_s)
        # A credential of the caller's own that fails must close the server for nobody else.
        passage = self._circuits.enter("/".join(filter(None, self._pool.key(server_id, caller))))
        return Line(self, server_id, caller=caller, passage=passage, circuits=self._circuits)

    async def opened(self, server_id: str, caller: Caller | None) -> Code:
        """`ok` once the session is open; `unavailable`, or `no_credential` where the caller has none of its own."""
        mark = self._server_mark(server_id)
        if self._opened_under.get(server_id, mark) != mark:
            self._pool.retire(server_id)
        self._opened_under[server_id] = mark
        return await self._pool.ready(server_id, caller)

    def is_current(self, server_id: str) -> bool:
        """Whether the sessions with this server rest on its configuration of today."""
        return self._opened_under.get(server_id) == self._server_mark(server_id)

    async def sent(
        self, tool: Tool, arguments: JsonObject, *, caller: Caller | None, timeout_s: float, meta: JsonObject | None
    ) -> ToolResult:
        """One request, and its answer as far as it may be passed on."""
        result = await self._pool.call(
            tool.server_id,
            tool.name,
            arguments,
            timeout_s=timeout_s,
            caller=caller,
            meta=meta,
            input_schema=tool.input_schema,
        )
        gate = self._settings().gate
        if result.raw is None and not result.content:
            return result
        bounded = _bounded(result, max_bytes=gate.max_result_bytes)
        if bounded is not result:
            return bounded
        types, scan = gate.content_types, gate.scan_results
        return checked(result, tool, content_types=types, scan=scan, checker=self._checker)


def _bounded(result: ToolResult, *, max_bytes: int) -> ToolResult:
    """The result, or an error in its place when it is larger than the operator lets through."""
    if result.raw is None:
        return result
    try:
        n_bytes = len(json.dumps(result.raw, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    except (TypeError, ValueError, RecursionError):
        return ToolResult(code=Code.TOOL_ERROR, message=_NO_JSON, reached_server=result.reached_server)
    if n_bytes <= max_bytes:
        return result
    message = f"The tool answered with {n_bytes} bytes, more than the {max_bytes} that may be passed on. Ask for less."
    return ToolResult(code=Code.TOOL_ERROR, message=message, reached_server=result.reached_server)
