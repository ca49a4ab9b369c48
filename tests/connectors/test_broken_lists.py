"""Lists that break off: how far they came is told, and nothing of them is given."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from toolcrib.connectors.listing import ListingFailure
from toolcrib.connectors.mcp import McpConnector
from toolcrib.errors import ConnectorError, ConnectorProtocolError, ConnectorTimeoutError

from .conftest import http_connector, serving
from .servers.announcer import Announcer

ONE = {"name": "one", "inputSchema": {"type": "object"}}
FIRST = [None, json.dumps({"tools": [ONE], "nextCursor": "2"})]


@pytest.mark.parametrize(
    ("pages", "pages_read"),
    [
        ([], 0),
        ([[None, '{"tools": 7}']], 0),
        ([FIRST], 1),
        ([FIRST, ["2", '{"tools": null}']], 1),
        ([FIRST, ["2", json.dumps({"tools": [ONE], "nextCursor": 7})]], 2),
        ([FIRST, ["2", json.dumps({"tools": [ONE], "nextCursor": "2"})]], 2),
    ],
    ids=["no list", "malformed", "expired cursor", "malformed second page", "odd cursor", "loop"],
)
async def test_a_list_that_breaks_off_says_how_many_pages_came(
    rude: Callable[..., McpConnector], pages: list[Any], pages_read: int
) -> None:
    with pytest.raises(ConnectorError) as told:
        await rude(pages=pages).list_tools()
    assert told.value.pages_read == pages_read
    assert ListingFailure("rude", told.value).is_partial is (pages_read > 0)


async def test_a_list_that_is_too_long_counts_the_pages_that_came(rude: Callable[..., McpConnector]) -> None:
    with pytest.raises(ConnectorProtocolError) as told:
        await rude(endless=True, spec={"max_pages": 3}).list_tools()
    assert told.value.pages_read == 3


async def test_a_second_page_that_never_comes_is_late_after_one(rude: Callable[..., McpConnector]) -> None:
    connector = rude(pages=[FIRST], hangs_on="2", spec={"start_timeout_s": 3.0})
    with pytest.raises(ConnectorTimeoutError) as told:
        await connector.list_tools()
    assert told.value.pages_read == 1


async def test_a_session_that_the_server_forgot_is_broken_and_another_one_lists() -> None:
    first = Announcer(legacy=True)
    apps = [first.server.streamable_http_app()]

    async def current(scope: Any, receive: Any, send: Any) -> None:
        await apps[0](scope, receive, send)

    async with serving(current) as url:
        connector, again = http_connector(url), http_connector(url)
        await connector.list_tools()
        sessions = first.server.session_manager
        for transport in list(sessions._server_instances.values()):
            await transport.terminate()
        with pytest.raises(ConnectorError):
            await connector.list_tools()
        assert connector.broken
        assert len((await again.list_tools()).tools) == 1
        await connector.aclose()
        await again.aclose()
