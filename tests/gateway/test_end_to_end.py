"""The whole way as a user goes it: `toolcrib refresh`, `approve`, `serve`, and a real MCP client of either era.

A real MCP server stands behind the gateway; the gateway is the `toolcrib` command in a process of its own.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from .asking import ask, names

SERVER = Path(__file__).with_name("clock_server.py")
TOOLCRIB = [sys.executable, "-m", "toolcrib.cli"]
ERAS = ("auto", "legacy")
TOKEN = "a-token-of-some-length-1"


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*TOOLCRIB, "-C", str(folder), *words], capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crib with one real stdio server, refreshed and approved by the command line."""
    place = tmp_path_factory.mktemp("crib")
    (place / "toolcrib.toml").write_text(
        f"""
        [crib]
        name = "e2e"
        [[servers]]
        id = "clock"
        transport = "stdio"
        command = [{json.dumps(sys.executable)}, {json.dumps(str(SERVER))}]
        [[tools]]
        match = "clock.*"
        risk = "read"
        [[tools]]
        match = "clock.wipe_disk"
        required_scopes = ["root"]
        """,
        encoding="utf-8",
    )
    refreshed = run(place, "refresh", "--json")
    assert refreshed.returncode == 0, refreshed.stderr
    assert json.loads(refreshed.stdout)["added"] == ["clock.add_numbers", "clock.get_time", "clock.wipe_disk"]
    assert run(place, "approve", "--all").returncode == 0
    return place


async def travel(client: Client) -> None:
    """List, search, describe and call, and be refused."""
    assert await names(client) == ["find_tools", "describe_tools", "call_tool"]
    found = await ask(client, "find_tools", {"task": "what time is it in Oslo"})
    first = found["structuredContent"]["tools"][0]
    assert (first["tool_id"], first["name"]) == ("clock.get_time", "clock__get_time")
    described = await ask(client, "describe_tools", {"names": ["clock__add_numbers"]})
    assert "Add two numbers." in json.dumps(described["structuredContent"])
    called = await ask(client, "call_tool", {"name": first["name"], "arguments": {"zone": "Oslo"}})
    assert called["content"][0]["text"] == "noon in Oslo"
    direct = await ask(client, "clock__add_numbers", {"a": 2, "b": 3})
    assert direct["content"][0]["text"] == "5"
    wrong = await ask(client, "call_tool", {"name": "clock__get_time", "arguments": {}})
    assert wrong["isError"] and wrong["structuredContent"]["code"] == "invalid_arguments"
    answers = []
    for name in ("clock__wipe_disk", "clock__no_such_tool"):
        refused = await ask(client, "call_tool", {"name": name, "arguments": {}})
        answers.append({**refused["structuredContent"], "trace_id": ""})
        with pytest.raises(MCPError) as unknown:
            await ask(client, name)
        answers.append((unknown.value.code, unknown.value.message))
    assert answers[:2] == answers[2:], "hidden and missing answer alike"


@pytest.mark.parametrize("mode", ERAS)
async def test_a_client_of_either_era_travels_the_road_over_stdio(folder: Path, mode: str) -> None:
    command = StdioServerParameters(
        command=TOOLCRIB[0], args=[*TOOLCRIB[1:], "-C", str(folder), "serve"], env=dict(os.environ)
    )
    async with Client(stdio_client(command), mode=mode, read_timeout_seconds=60) as client:
        await travel(client)


@asynccontextmanager
async def serving(folder: Path, *more: str) -> AsyncIterator[str]:
    """`toolcrib serve --http` on a free port; its address."""
    process = subprocess.Popen(  # noqa: ASYNC220 - starting takes no time worth awaiting
        [*TOOLCRIB, "-C", str(folder), "serve", "--http", "127.0.0.1:0", *more],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "E2E_TOKEN": TOKEN},
    )
    try:
        assert process.stderr is not None
        seen = ""
        while not (found := re.search(r"http://127\.0\.0\.1:\d+/mcp", seen)):
            line = process.stderr.readline()
            assert line, f"the gateway ended: {seen}"
            seen += line
        yield found.group(0)
    finally:
        process.terminate()
        process.communicate(timeout=30)


@pytest.mark.parametrize("mode", ERAS)
async def test_a_client_of_either_era_travels_the_road_over_http(folder: Path, mode: str) -> None:
    async with serving(folder) as url, Client(streamable_http_client(url), mode=mode) as client:
        await travel(client)


async def test_with_tokens_only_their_callers_come_in_and_each_sees_its_own(folder: Path, tmp_path: Path) -> None:
    config = (folder / "toolcrib.toml").read_text(encoding="utf-8")
    place = tmp_path / "tokens"
    place.mkdir()
    rows = '[[identity.tokens]]\ntoken = "env:E2E_TOKEN"\ncaller = {subject = "root", scopes = ["root"]}\n'
    (place / "toolcrib.toml").write_text(config + rows, encoding="utf-8")
    (place / "toolcrib.lock").write_text((folder / "toolcrib.lock").read_text(encoding="utf-8"), encoding="utf-8")
    assert run(place, "refresh").returncode == 0, "the lock from version control is all a fresh clone needs"
    async with serving(place, "--surface", "all") as url:
        async with httpx2.AsyncClient() as http:
            for headers in ({}, {"Authorization": "Bearer wrong-token-of-some-length"}):
                answer = await http.post(url, json={}, headers=headers)
                assert answer.status_code == 401
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=30) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            assert await names(client) == ["clock__add_numbers", "clock__get_time", "clock__wipe_disk"]


async def test_a_running_gateway_takes_up_a_rejection_at_once(folder: Path, tmp_path: Path) -> None:
    place = tmp_path / "reject"
    place.mkdir()
    for name in ("toolcrib.toml", "toolcrib.lock"):
        (place / name).write_text((folder / name).read_text(encoding="utf-8"), encoding="utf-8")
    run(place, "refresh")
    async with serving(place) as url, Client(streamable_http_client(url)) as client:
        assert (await ask(client, "clock__add_numbers", {"a": 1, "b": 1}))["content"][0]["text"] == "2"
        assert run(place, "reject", "clock.add_numbers").returncode == 0
        with pytest.raises(MCPError):
            await ask(client, "clock__add_numbers", {"a": 1, "b": 1})


def test_beyond_loopback_without_tokens_nothing_is_served(folder: Path) -> None:
    refused = run(folder, "serve", "--http", "0.0.0.0:0")
    assert refused.returncode == 2
    assert "token" in refused.stderr
