"""Announcements of real servers, in both protocol eras, over stdio and HTTP."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import PlainTextResponse

from toolcrib.connectors import _session
from toolcrib.connectors.mcp import McpConnector
from toolcrib.connectors.watching import Announcing
from toolcrib.errors import ConnectorError
from toolcrib.types import ServerSpec, Transport

from .conftest import SERVERS, http_connector, serving
from .servers.announcer import Announcer

LATE_S = 20


class Ears:
    """Counts what it hears; `heard` and `lost` are set by it."""

    def __init__(self) -> None:
        self.heard = asyncio.Event()
        self.lost = asyncio.Event()
        self.n_heard = 0

    def changed(self) -> None:
        self.n_heard += 1
        self.heard.set()

    async def hear(self) -> None:
        async with asyncio.timeout(LATE_S):
            await self.heard.wait()
        self.heard.clear()

    async def watch(self, connector: McpConnector) -> bool:
        return await connector.watch(self.changed, self.lost.set)


def stdio(tmp_path: Path, *args: str, server: str = "announcer.py") -> McpConnector:
    spec = ServerSpec(server_id="s", transport=Transport.STDIO, command=(sys.executable, str(SERVERS / server), *args))
    return McpConnector(spec, env={}, headers={}, root=tmp_path)


def names(listing: Any) -> list[str]:
    return [tool["name"] for tool in listing.tools]


async def test_a_change_announced_over_stdio_is_heard_and_the_next_list_has_it(tmp_path: Path) -> None:
    connector, ears = stdio(tmp_path, "1"), Ears()
    assert isinstance(connector, Announcing)
    try:
        assert await ears.watch(connector)
        first = await connector.list_tools()
        await ears.hear()
        assert names(first) == ["one"]
        assert names(await connector.list_tools()) == ["one", "more_0"]
        assert first.protocol_version == "2026-07-28"
        assert not ears.lost.is_set()
    finally:
        await connector.aclose()


async def test_an_older_server_announces_over_stdio_unasked(tmp_path: Path) -> None:
    script = '{"announce": 1, "pages": [[null, "{\\"tools\\": []}"]]}'
    connector, ears = stdio(tmp_path, script, server="rude.py"), Ears()
    try:
        assert await ears.watch(connector)
        listing = await connector.list_tools()
        await ears.hear()
        assert (listing.protocol_version, ears.n_heard) == ("2025-11-25", 1)
    finally:
        await connector.aclose()


@pytest.mark.parametrize("legacy", [False, True], ids=["modern", "legacy"])
async def test_changes_announced_over_http_are_heard(legacy: bool) -> None:
    server, ears = Announcer(legacy=legacy), Ears()
    async with serving(server.server.streamable_http_app()) as url:
        connector = http_connector(url)
        try:
            assert await ears.watch(connector)
            await server.announce()
            await ears.hear()
            server.names.append("two")
            assert names(await connector.list_tools()) == ["one", "two"]
        finally:
            await connector.aclose()


@pytest.mark.parametrize("legacy", [False, True], ids=["modern", "legacy"])
async def test_a_server_that_is_gone_is_told_as_lost(legacy: bool) -> None:
    server, ears = Announcer(legacy=legacy), Ears()
    async with serving(server.server.streamable_http_app()) as url:
        connector = http_connector(url)
        await ears.watch(connector)
    try:
        async with asyncio.timeout(LATE_S):
            await ears.lost.wait()
    finally:
        await connector.aclose()


async def test_a_child_that_ends_is_told_as_lost(tmp_path: Path) -> None:
    connector, ears = stdio(tmp_path, '{"calls": {"end": "die"}}', server="rude.py"), Ears()
    try:
        assert await ears.watch(connector)
        await connector.call("end", {}, timeout_s=LATE_S)
        async with asyncio.timeout(LATE_S):
            await ears.lost.wait()
        assert connector.broken
    finally:
        await connector.aclose()


async def test_a_server_that_announces_nothing_says_so(tmp_path: Path) -> None:
    connector, ears = stdio(tmp_path, '{"capabilities": {"tools": {}}}', server="rude.py"), Ears()
    try:
        assert not await ears.watch(connector)
    finally:
        await connector.aclose()
    assert not ears.n_heard


async def test_a_server_that_takes_no_listener_announces_nothing(tmp_path: Path) -> None:
    async with serving(Announcer(deaf=True).server.streamable_http_app()) as url:
        connector, ears = http_connector(url), Ears()
        try:
            assert not await ears.watch(connector)
            assert names(await connector.list_tools()) == ["one"]
        finally:
            await connector.aclose()


@pytest.mark.parametrize("status", [405, 503], ids=["refused", "failed"])
async def test_without_a_standing_stream_an_older_server_announces_nothing_or_is_lost(status: int) -> None:
    app = Announcer(legacy=True).server.streamable_http_app()

    async def without(scope: Any, receive: Any, send: Any) -> None:
        if scope.get("method") == "GET":
            return await PlainTextResponse("no", status_code=status)(scope, receive, send)
        return await app(scope, receive, send)

    async with serving(without) as url:
        connector, ears = http_connector(url), Ears()
        try:
            assert await ears.watch(connector) is (status == 503)
            assert ears.lost.is_set() is (status == 503)
            assert names(await connector.list_tools()) == ["one"]
        finally:
            await connector.aclose()


async def test_a_server_that_cannot_be_reached_is_an_error() -> None:
    connector = http_connector("http://127.0.0.1:9/mcp")
    try:
        with pytest.raises(ConnectorError):
            await Ears().watch(connector)
    finally:
        await connector.aclose()


async def test_a_subscription_that_is_not_answered_is_an_error_in_time() -> None:
    app = Announcer().server.streamable_http_app()

    async def hanging(scope: Any, receive: Any, send: Any) -> None:
        if dict(scope.get("headers", ())).get(b"mcp-method") == b"subscriptions/listen":
            await asyncio.sleep(0.5)
            return await PlainTextResponse("busy", status_code=503)(scope, receive, send)
        return await app(scope, receive, send)

    async with serving(hanging) as url:
        slow, ears = http_connector(url, start_timeout_s=0.3), Ears()
        patient = http_connector(url)
        try:
            for connector in (slow, patient):
                with pytest.raises(ConnectorError):
                    await ears.watch(connector)
        finally:
            await asyncio.gather(slow.aclose(), patient.aclose())


@pytest.mark.parametrize("status", [405, 503], ids=["refused", "failed"])
async def test_a_standing_stream_that_is_refused_late_is_lost(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_session, "_STREAM_S", 0.05)
    app = Announcer(legacy=True).server.streamable_http_app()
    answer = asyncio.Event()

    async def late(scope: Any, receive: Any, send: Any) -> None:
        if scope.get("method") == "GET":
            await answer.wait()
            return await PlainTextResponse("no", status_code=status)(scope, receive, send)
        return await app(scope, receive, send)

    async with serving(late) as url:
        connector, ears = http_connector(url), Ears()
        try:
            assert await ears.watch(connector)
            assert not ears.lost.is_set()
            answer.set()
            async with asyncio.timeout(LATE_S):
                await ears.lost.wait()
        finally:
            answer.set()
            await connector.aclose()
