"""The one file that touches private parts of the `mcp` SDK: raw JSON-RPC in, the received object out.

The SDK's typed path is lossy (it drops unknown fields) and all-or-nothing (one malformed tool fails the page), so lists
and results are read as they came. `tests/connectors/test_raw_contract.py` fails when the SDK changes under this file.

Private: `ClientSession._stamp` (era `_meta` and headers), `ClientSession._dispatcher.send_raw_request`, and the wording
of errors that the SDK makes up itself when no server answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp import ClientSession, MCPError
from mcp.shared.inbound import find_invalid_x_mcp_header, mcp_param_headers, x_mcp_header_map
from mcp_types import CONNECTION_CLOSED, INVALID_PARAMS, METHOD_NOT_FOUND, PARSE_ERROR
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolcrib.errors import ConnectorError

_CLOSED_WORDS = ("Connection closed", "SSE stream")
"""How the SDK words a lost connection; servers use the same code (-32000) for errors of their own."""
_HTTP_STAND_INS = ("Server returned an error response", "Not Found", "Session terminated")
"""How the SDK words an HTTP error status that came without a JSON-RPC error."""


class JsonRpcError(Exception):
    """A request got an error instead of a result.

    Args:
        closed: the connection ended; nobody answered.
        made_up: the SDK worded it after an HTTP status; the server sent no JSON-RPC error.
        unreadable: something came that is not JSON-RPC.
        did_nothing: the server's own word that it ran nothing: it knows no such tool, or not with these parameters.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.closed = code == CONNECTION_CLOSED and message.startswith(_CLOSED_WORDS)
        self.made_up = message in _HTTP_STAND_INS
        self.unreadable = code == PARSE_ERROR
        self.unknown_method = code == METHOD_NOT_FOUND
        self.did_nothing = code in (METHOD_NOT_FOUND, INVALID_PARAMS) and not self.made_up


async def request(
    session: ClientSession, method: str, params: Mapping[str, Any], *, headers: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The result object as received.

    Args:
        headers: HTTP headers besides those the era asks for (`Mcp-Name` and the like come from the SDK's stamp).
    Raises:
        JsonRpcError: an error was answered, or the connection ended.
        ConnectorError: the installed SDK is not the one this was written for.
    """
    data: dict[str, Any] = {"method": method, "params": dict(params)}
    options: dict[str, Any] = {}
    try:
        stamp, send = session._stamp, session._dispatcher.send_raw_request
    except AttributeError as exc:
        raise ConnectorError(
            f"the installed mcp package works differently inside ({exc})", hint="install mcp==2.3.*"
        ) from exc
    stamp(data, options)  # type: ignore[arg-type]  # a TypedDict of the SDK, filled by the SDK
    if headers:
        options.setdefault("headers", {}).update(headers)
    try:
        return await send(method, data["params"], options)  # type: ignore[arg-type]
    except MCPError as exc:
        raise JsonRpcError(exc.error.code, exc.error.message) from exc


def is_modern(session: ClientSession) -> bool:
    """Whether the connection speaks a stateless revision (2026-07-28 or later)."""
    return session.protocol_version in MODERN_PROTOCOL_VERSIONS


def param_headers(input_schema: Any, arguments: Mapping[str, Any]) -> dict[str, str]:
    """`Mcp-Param-*` headers for arguments whose schema asks for them; none where its annotations are invalid."""
    if not isinstance(input_schema, Mapping) or find_invalid_x_mcp_header(input_schema) is not None:
        return {}
    return mcp_param_headers(x_mcp_header_map(input_schema), arguments)
