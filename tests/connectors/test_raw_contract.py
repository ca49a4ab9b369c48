"""The private parts of the `mcp` SDK that `connectors/_raw.py` stands on. When one of these fails after an upgrade:
read the SDK's `client/session.py` and `shared/jsonrpc_dispatcher.py`, then mend `_raw.py`; nothing else uses them."""

from __future__ import annotations

import importlib.metadata
import inspect

import pytest
from mcp import Client, ClientSession
from mcp.shared.dispatcher import Dispatcher
from mcp_types import CONNECTION_CLOSED

from toolcrib.connectors import _raw

from .servers.polite import TOOLS, make_server

MEND = "the mcp SDK changed: mend connectors/_raw.py and this test together"


def test_sdk_is_the_pinned_one():
    assert importlib.metadata.version("mcp").startswith("2.3."), MEND


def test_raw_sender_has_the_signature_it_had():
    parameters = list(inspect.signature(Dispatcher.send_raw_request).parameters)
    assert parameters[:4] == ["self", "method", "params", "opts"], MEND


@pytest.mark.parametrize(
    ("mode", "headers"),
    [
        ("legacy", {"mcp-protocol-version": "2025-11-25"}),
        (
            "2026-07-28",
            {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "echo"},
        ),
    ],
)
async def test_stamp_writes_the_headers_and_the_sender_returns_what_came(mode, headers):
    async with Client(make_server(), mode=mode) as client:
        session = client.session
        assert isinstance(session, ClientSession)
        assert hasattr(session, "_stamp"), MEND
        assert hasattr(session, "_dispatcher"), MEND
        options = {}
        session._stamp({"method": "tools/call", "params": {"name": "echo"}}, options)
        assert options["headers"] == headers, MEND
        assert (await _raw.request(session, "tools/list", {}))["tools"] == TOOLS, MEND
        assert _raw.is_modern(session) is (mode != "legacy")
        with pytest.raises(_raw.JsonRpcError):
            await _raw.request(session, "no/such/method", {})


async def test_words_of_a_lost_connection_are_the_ones_we_know():
    async with Client(make_server(), mode="legacy") as client:
        session = client.session
    with pytest.raises(_raw.JsonRpcError) as caught:
        await _raw.request(session, "tools/list", {})
    assert caught.value.closed, MEND


def test_error_of_a_server_with_the_same_code_is_not_a_lost_connection():
    assert not _raw.JsonRpcError(CONNECTION_CLOSED, "database is down").closed
