"""A client's questions, with the answers as they came over the wire, before any type of the SDK touches them."""

from __future__ import annotations

from typing import Any

from mcp import Client


async def raw(client: Client, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
    """The result object as received.

    Through two private parts of the SDK, since its typed path drops what it does not know.
    """
    data: dict[str, Any] = {"method": method, "params": dict(params or {})}
    options: dict[str, Any] = {}
    client.session._stamp(data, options)
    return dict(await client.session._dispatcher.send_raw_request(method, data["params"], options))


async def tools(client: Client) -> list[dict[str, Any]]:
    return list((await raw(client, "tools/list"))["tools"])


async def names(client: Client) -> list[str]:
    return [tool["name"] for tool in await tools(client)]


async def ask(client: Client, name: str, arguments: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """The result of a `tools/call`."""
    return await raw(client, "tools/call", {"name": name, "arguments": arguments or {}, **more})
