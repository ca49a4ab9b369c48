"""`toolcrib serve` with a real server behind it that announces: its client hears of it, and its end is the server's."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ToolListChangedNotification

LATE_S = 60
SERVER = Path(__file__).parent / "growing_server.py"
TOOLCRIB = [sys.executable, "-m", "toolcrib.cli"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A crib with one server, whose list and process number lie in files beside it."""
    command = json.dumps([sys.executable, str(SERVER), str(tmp_path)])
    (tmp_path / "toolcrib.toml").write_text(
        f'[crib]\nname = "t"\n[[servers]]\nid = "s"\ntransport = "stdio"\ncommand = {command}\n'
        '[refresh]\ndebounce_s = 0\nmin_interval_s = 0\n[[tools]]\nmatch = "*"\nrisk = "read"\n',
        encoding="utf-8",
    )
    lists(tmp_path, "one", "two")
    for words in (["refresh"], ["approve", "--all"]):
        done = subprocess.run([*TOOLCRIB, *words], cwd=tmp_path, capture_output=True, text=True, timeout=LATE_S)
        assert done.returncode == 0, done.stderr
    (tmp_path / "pid").unlink()
    return tmp_path


def lists(folder: Path, *names: str) -> None:
    """What the server lists from now on, and announces."""
    (folder / "new").write_text(json.dumps(names), encoding="utf-8")
    (folder / "new").rename(folder / "names")


class Told:
    """Hears what a client is told."""

    def __init__(self) -> None:
        self.changed = asyncio.Event()

    async def hear(self, message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            self.changed.set()

    async def wait(self) -> None:
        async with asyncio.timeout(LATE_S):
            await self.changed.wait()
        self.changed.clear()


@asynccontextmanager
async def listening(client: Client) -> AsyncIterator[None]:
    if client.protocol_version == "2025-11-25":
        yield
        return
    async with client.listen(tools_list_changed=True):
        yield


async def names(client: Client) -> list[str]:
    return sorted(tool.name for tool in (await client.list_tools()).tools)


async def watched(folder: Path) -> int:
    """The number of the server's process, once the gateway has started it."""
    async with asyncio.timeout(LATE_S):
        while not (folder / "pid").exists() or not (folder / "pid").read_text():  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.02)
    return int((folder / "pid").read_text())


async def gone(pid: int) -> None:
    async with asyncio.timeout(LATE_S):
        while True:
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                return
            await asyncio.sleep(0.02)


async def follows(client: Client, folder: Path, told: Told) -> None:
    """What is removed is gone for this client, and comes back, and it hears of both."""
    assert await names(client) == ["s__one", "s__two"]
    for now, seen in (("one",), ["s__one"]), (("one", "two"), ["s__one", "s__two"]):
        lists(folder, *now)
        await told.wait()
        assert await names(client) == seen
    result: Any = await client.call_tool("s__two", {})
    assert not result.is_error


@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_a_client_over_stdio_follows_the_server_behind(folder: Path, era: str) -> None:
    told = Told()
    serve = StdioServerParameters(
        command=TOOLCRIB[0], args=[*TOOLCRIB[1:], "serve", "--surface", "all"], cwd=str(folder)
    )
    async with Client(stdio_client(serve), message_handler=told.hear, mode=era, cache=None) as client:
        pid = await watched(folder)
        async with listening(client):
            await follows(client, folder, told)
    await gone(pid)


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT], ids=["terminated", "interrupted"])
async def test_a_gateway_over_http_follows_and_takes_its_server_along_when_it_ends(folder: Path, end: int) -> None:
    words = [*TOOLCRIB, "serve", "--surface", "all", "--http", "127.0.0.1:0"]
    pipe = asyncio.subprocess.PIPE
    gateway = await asyncio.create_subprocess_exec(*words, cwd=folder, stderr=pipe)
    assert gateway.stderr is not None
    try:
        line = ""
        async with asyncio.timeout(LATE_S):
            while "serving" not in line:
                line = (await gateway.stderr.readline()).decode()
        told, url = Told(), line.split()[-1]
        async with Client(streamable_http_client(url), message_handler=told.hear, cache=None) as client:
            pid = await watched(folder)
            async with listening(client):
                await follows(client, folder, told)
        gateway.send_signal(end)
        async with asyncio.timeout(LATE_S):
            rest = (await gateway.communicate())[1].decode()
        assert (gateway.returncode, "Traceback" in rest) == (0, False)
        await gone(pid)
    finally:
        if gateway.returncode is None:
            gateway.kill()
            await gateway.wait()
