"""A crib that is watched, misbehaving servers behind it over real HTTP, gateways before it, real clients at those."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client, MCPError
from mcp_types import ToolListChangedNotification

from toolcrib.crib import Crib
from toolcrib.server.callers import CurrentCaller
from toolcrib.server.mcp_gateway import Gateway
from toolcrib.server.surface import SurfaceKind
from toolcrib.types import Caller, Channel, ServerStatus

from ..connectors.conftest import serving
from .asking import ask, names
from .trickster import Trickster

LATE_S = 30
ANN = Caller(subject="ann", environment="")
QUICK = '[refresh]\ndebounce_s = 0\nmin_interval_s = 0\n[[tools]]\nmatch = "*"\nrisk = "read"\n'


def tool(name: str, words: str, **more: Any) -> dict[str, Any]:
    """A raw definition."""
    return {"name": name, "description": words, "inputSchema": {"type": "object", "properties": {}}, **more}


PAUSE = tool("pause_job", "Pause a nightly backup job.")
RESUME = tool("resume_job", "Resume a nightly backup job.")
REFUND = tool("issue_refund", "Refund an order of a customer.")


async def until(true: Callable[[], Any]) -> None:
    """Returns once it is so."""
    async with asyncio.timeout(LATE_S):
        while not true():  # noqa: ASYNC110 - no event tells what stands in the store, or what another process did
            await asyncio.sleep(0.005)


class Seat:
    """One caller's two clients: one is listed every tool, the other searches. `n_told`: changes the first heard of."""

    def __init__(self, known: list[dict[str, Any]]) -> None:
        self.everything: Client
        self.searching: Client
        self.n_told = 0
        self._words = {definition["name"]: definition["description"] for definition in known}

    async def hear(self, message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            self.n_told += 1

    async def listed(self) -> list[str]:
        return sorted(await names(self.everything))

    async def found(self, server_id: str = "jobs") -> list[str]:
        """Which of the known tools a search for their own words brings."""
        found = set()
        for name, words in self._words.items():
            answer = await ask(self.searching, "find_tools", {"task": words})
            hits = {hit["name"] for hit in answer["structuredContent"]["tools"]}
            found |= {f"{server_id}__{name}"} & hits
        return sorted(found)

    async def callable(self, server_id: str = "jobs") -> list[str]:
        """Which of the known tools run when they are called."""
        codes = {name: await self.code_of(f"{server_id}__{name}") for name in self._words}
        return sorted(f"{server_id}__{name}" for name, code in codes.items() if code == "ok")

    async def code_of(self, name: str) -> str:
        """`ok`, or the code of the refusal, the same by either way to call."""
        by_way = await ask(self.searching, "call_tool", {"name": name, "arguments": {}})
        code = str(by_way["structuredContent"]["code"]) if by_way.get("isError") else "ok"
        try:
            direct = await ask(self.everything, name)
            assert bool(direct.get("isError")) == (code != "ok")
        except MCPError as refused:
            assert (refused.error.code, code) == (-32602, "not_available")
        return code

    async def sees(self, *expected: str) -> None:
        """Listed, found and callable are the same tools, and these."""
        wanted = sorted(f"jobs__{name}" for name in expected)
        assert (await self.listed(), await self.found(), await self.callable()) == (wanted, wanted, wanted)


class Stage:
    """`crib` once it runs. `told`: lines for the operator."""

    def __init__(self, folder: Path, servers: Mapping[str, Trickster], *, toml: str = QUICK) -> None:
        self.folder = folder
        self.servers = dict(servers)
        self.told: list[str] = []
        self.crib: Crib
        self._toml = toml
        self._gateways: list[Gateway] = []

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Crib]:
        """Listed once, approved, and watched, each server listened to."""
        async with AsyncExitStack() as stack:
            rows = []
            for server_id, trickster in self.servers.items():
                url = await stack.enter_async_context(serving(trickster.app()))
                rows.append(f'[[servers]]\nid = "{server_id}"\ntransport = "http"\nurl = "{url}"\n')
            text = '[crib]\nname = "t"\n' + "".join(rows) + self._toml
            (self.folder / "toolcrib.toml").write_text(text, encoding="utf-8")
            self.crib = await stack.enter_async_context(Crib.open(self.folder, on_progress=self.told.append))
            await self.crib.refresh()
            self.crib.approve(None, reviewer="tests")
            self.crib.pipeline()
            whole = {server_id: 2 * len(one.cursors) for server_id, one in self.servers.items()}
            await stack.enter_async_context(self.crib.watch(on_published=self._published))
            for server_id, trickster in self.servers.items():
                await until(lambda: len(trickster.cursors) >= whole[server_id])  # noqa: B023 - waited for here
            yield self.crib

    async def _published(self) -> None:
        for gateway in self._gateways:
            await gateway.notify_catalog_changed()

    @asynccontextmanager
    async def seat(self, era: str = "auto", *, caller: Caller = ANN) -> AsyncIterator[Seat]:
        """A caller who listens for changes of what it is listed."""
        seat = Seat([PAUSE, RESUME, REFUND])
        async with AsyncExitStack() as stack:
            for kind in (SurfaceKind.ALL, SurfaceKind.SEARCH):
                callers = CurrentCaller(lambda: caller)
                gateway = Gateway(self.crib, channel=Channel.STDIO, callers=callers, surface=kind, poll_s=0)
                self._gateways.append(gateway)
                stack.callback(self._gateways.remove, gateway)
                hear = seat.hear if kind is SurfaceKind.ALL else None
                client = Client(gateway.server, mode=era, message_handler=hear, cache=None)
                client = await stack.enter_async_context(client)
                if kind is SurfaceKind.SEARCH:
                    seat.searching = client
                    continue
                seat.everything = client
                if era != "legacy":
                    await stack.enter_async_context(client.listen(tools_list_changed=True))
            yield seat

    async def announce(self, *tools: dict[str, Any], server_id: str = "jobs") -> None:
        """The server lists these and says so; returns once that is published."""
        publication = self.crib.store.current_mark()
        await self.announce_quietly(*tools, server_id=server_id)
        await until(lambda: self.crib.store.current_mark() != publication)

    async def announce_quietly(self, *tools: dict[str, Any], server_id: str = "jobs") -> None:
        self.servers[server_id].now.tools = list(tools)
        await self.servers[server_id].announce()

    async def relisted(self, server_id: str = "jobs") -> None:
        """Returns once a whole list, begun from now on, was taken: the next one has begun."""
        for _ in range(2):
            n_lists = self.servers[server_id].n_lists
            await self.servers[server_id].announce()
            await until(lambda: self.servers[server_id].n_lists > n_lists)  # noqa: B023 - waited for here

    def status(self, server_id: str = "jobs") -> ServerStatus:
        return next(one for one in self.crib.snapshot().servers if one.server_id == server_id)

    def withheld(self) -> dict[str, str]:
        return {held.tool_id: held.code for held in self.crib.snapshot().withheld}

    def is_private(self, text: str) -> bool:
        """Whether nothing that was told holds this."""
        return text not in json.dumps(self.told)
