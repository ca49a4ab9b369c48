"""What every server looks like from inside: list its tools, call one, close.

Above it: `opening.py` makes one from a `ServerSpec`, `pool.py` keeps them open, `listing.py` lists many at once.
Below it: `mcp.py`, `files.py`, `functions.py`.

Invariants
1. `list_tools` gives the whole listing or raises a `ConnectorError`; it never gives a part.
2. `call` always gives a `ToolResult`; what went wrong is in its code. It sends a request at most once.
3. A connector is opened by its first use and holds at most one session. Once `broken` it stays broken: get a new one.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

from toolcrib.types import JsonObject, ServerListing, ToolResult

TRACE_META: Final = ("traceparent", "tracestate", "baggage")
"""The `_meta` keys that go on to the server behind: W3C trace context and baggage."""


def trace_meta(meta: JsonObject) -> dict[str, Any]:
    """Of a caller's `_meta`, what may go on: trace keys with text under them.

    A server may act on anything else there, and no argument check, digest or approval covers `_meta`.
    """
    return {key: meta[key] for key in TRACE_META if isinstance(meta.get(key), str)}


class Connector(Protocol):
    """One server. Methods may run concurrently; all on one event loop."""

    @property
    def broken(self) -> bool:
        """Whether the session is lost for good, so that only a new connector can help."""
        ...

    async def list_tools(self) -> ServerListing:
        """All pages of the server's tools, in its order, as received.

        Raises:
            ConnectorTimeoutError: the server's `start_timeout_s` passed (it covers starting and listing).
            ConnectorProtocolError: a bad page, a looping cursor, too many pages or bytes.
            ConnectorError: the server could not be started or reached.
        """
        ...

    async def ready(self) -> None:
        """Opens the session if it is not open, so that a call that follows leaves at once.

        Raises:
            ConnectorError: the server could not be started or reached.
        """
        ...

    async def call(
        self,
        name: str,
        arguments: JsonObject,
        *,
        timeout_s: float,
        meta: JsonObject | None = None,
        input_schema: JsonObject | None = None,
    ) -> ToolResult:
        """What the tool answered, or why there is no answer.

        Args:
            name: the tool's name on its own server.
            timeout_s: seconds from the moment the session is open; opening has the server's `start_timeout_s`.
            meta: the caller's `_meta`; of it only what `trace_meta` keeps is sent.
            input_schema: the tool's schema as reviewed; servers that route on `x-mcp-header` need headers made from it.
        """
        ...

    async def aclose(self) -> None:
        """Ends the session. Safe to call twice, and on a broken connector."""
        ...
