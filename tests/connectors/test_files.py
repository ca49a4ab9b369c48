"""Servers that are files."""

from __future__ import annotations

import json

import pytest

from toolcrib.connectors.files import FileConnector
from toolcrib.errors import ConnectorError, ConnectorProtocolError
from toolcrib.types import Code, ServerSpec, Transport


def connector(tmp_path, text, **spec):
    path = tmp_path / "tools.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return FileConnector(ServerSpec(server_id="f", transport=Transport.FILE, path="tools.json", **spec), path=path)


@pytest.mark.parametrize(
    ("document", "names", "n_pages"),
    [
        ({"tools": [{"name": "a"}]}, ["a"], 1),
        ([{"tools": [{"name": "a"}], "nextCursor": ""}, {"tools": [{"name": "b"}]}], ["a", "b"], 2),
        ({"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "a"}]}}, ["a"], 1),
        ([{"result": {"tools": [{"name": "a"}], "nextCursor": "2"}}, {"result": {"tools": []}}], ["a"], 2),
        ({"tools": [], "nextCursor": None}, [], 1),
        ([], [], 0),
        ([{"name": "a", "description": "A."}, {"name": "b"}], ["a", "b"], 1),
    ],
    ids=["one page", "pages", "response", "responses", "no tools", "no pages", "tools alone"],
)
async def test_every_shape_of_a_listing_is_read(tmp_path, document, names, n_pages):
    listing = await connector(tmp_path, json.dumps(document)).list_tools()
    assert ([tool["name"] for tool in listing.tools], listing.n_pages) == (names, n_pages)


async def test_recorded_listing_keeps_what_it_says_of_its_server(tmp_path):
    recorded = {
        "server": "acme",
        "package": "acme-mcp",
        "version": "1.2.0",
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {"listChanged": True}},
        "instructions": "Call acme.",
        "tools": [{"name": "a", "inputSchema": "not a schema"}, None],
    }
    listing = await connector(tmp_path, json.dumps(recorded)).list_tools()
    assert (listing.server_name, listing.server_version) == ("acme", "1.2.0")
    assert (listing.protocol_version, listing.instructions) == ("2025-11-25", "Call acme.")
    assert listing.capabilities == {"tools": {"listChanged": True}}
    assert listing.tools == ({"name": "a", "inputSchema": "not a schema"}, None)


async def test_values_are_kept_as_they_stand(tmp_path):
    text = '{"tools":[{"n":123456789012345678901234567890,"f":0.1,"one":1.0,"e":1e2,"z":null,"u":"\\u00e9"}]}'
    (tool,) = (await connector(tmp_path, b"\xef\xbb\xbf" + text.encode()).list_tools()).tools
    assert json.dumps(tool) == json.dumps(json.loads(text)["tools"][0])
    assert isinstance(tool["one"], float)


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ('{"tools": [\n  {"name": "a" 1}\n]}', "tools.json:2:16", "not JSON"),
        ('{"tools":\n [{"note": "NaN", "x": NaN}]}', "tools.json:2:24", "NaN"),
        ('{"tools": [{"x": -Infinity}]}', "tools.json:1:18", "Infinity"),
        ('{"tools": [{"x": 1e999}]}', "tools.json", "too large"),
        ('{"tools": [{"name": "a", "name": "b"}]}', "tools.json", "twice"),
        ('{"tools": %s}' % ("[" * 100_000), "tools.json", "deeply"),
        ('{"tools": [{"x": %s}]}' % ("1" * 5_000), "tools.json", "number"),
        (b'{"tools": [\n"\xff"]}', "tools.json:2", "UTF-8"),
        ("", "tools.json:1:1", "not JSON"),
        ('{"things": []}', "tools.json", "no list of tools"),
        ('{"tools": {}}', "tools.json", "no list of tools"),
        ('"tools"', "tools.json", "no list of tools"),
        ('{"error": {"code": 1, "message": "denied"}}', "tools.json", "denied"),
        ('{"tools": [], "nextCursor": "2"}', "tools.json", "missing"),
        ('[{"tools": []}, {"tools": [], "nextCursor": ""}]', "tools.json", "missing"),
    ],
    ids=[
        "comma",
        "nan",
        "infinity",
        "float overflow",
        "duplicate key",
        "depth",
        "digits",
        "not utf-8",
        "empty file",
        "other object",
        "tools is an object",
        "text",
        "error response",
        "page missing",
        "page missing after the empty cursor",
    ],
)
async def test_file_that_cannot_be_trusted_is_refused_with_its_place(tmp_path, text, place, words):
    with pytest.raises(ConnectorProtocolError, match=words) as caught:
        await connector(tmp_path, text).list_tools()
    assert caught.value.where.endswith(place)


async def test_limits_hold_for_files_too(tmp_path):
    with pytest.raises(ConnectorProtocolError):
        await connector(tmp_path, '{"tools": ["%s"]}' % ("x" * 100), max_list_bytes=50).list_tools()
    with pytest.raises(ConnectorProtocolError):
        await connector(tmp_path, '[{"tools": []}, {"tools": []}]', max_pages=1).list_tools()


async def test_missing_file_says_which(tmp_path):
    missing = FileConnector(ServerSpec(server_id="f", transport=Transport.FILE), path=tmp_path / "none.json")
    with pytest.raises(ConnectorError) as caught:
        await missing.list_tools()
    assert "none.json" in caught.value.where


async def test_tools_of_a_file_cannot_be_called(tmp_path):
    result = await connector(tmp_path, '{"tools": [{"name": "a"}]}').call("a", {}, timeout_s=1)
    assert (result.code, result.reached_server) == (Code.UNAVAILABLE, False)
    assert "definitions only" in result.message
