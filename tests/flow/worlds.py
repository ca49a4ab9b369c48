"""Small cribs for tests: file servers with a function behind each tool, all approved unless a test says otherwise."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from toolcrib.crib import Crib
from toolcrib.types import LOCAL, Caller, Code, JsonObject, LocalOperator, ServerListing, ToolResult

Handler = Callable[[str, JsonObject], Awaitable[ToolResult]]


def tool(
    name: str, description: str = "", *, properties: Mapping[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    """A raw definition."""
    schema = {"type": "object", "properties": dict(properties or {})}
    return {"name": name, "description": description, "inputSchema": schema, **more}


def caller(**fields: Any) -> Caller:
    """A caller of the test environment."""
    sets = {key: frozenset(fields.pop(key, ())) for key in ("roles", "scopes", "features")}
    return Caller(**{"subject": "ann", "environment": "test", **sets, **fields})


class ServedFile:
    """The tools of a file, and a handler that answers calls: a server without a process."""

    def __init__(self, path: Path, handler: Handler) -> None:
        self._path = path
        self._handler = handler
        self.calls: list[tuple[str, JsonObject]] = []
        self.broken = False

    async def list_tools(self) -> ServerListing:
        body = json.loads(self._path.read_text(encoding="utf-8"))
        return ServerListing(server_id=self._path.name.split(".")[0], tools=tuple(body["tools"]))

    async def ready(self) -> None:
        return None

    async def call(self, name: str, arguments: JsonObject, **_more: Any) -> ToolResult:
        self.calls.append((name, arguments))
        return await self._handler(name, arguments)

    async def aclose(self) -> None:
        return None


async def says_done(name: str, arguments: JsonObject) -> ToolResult:
    """Every tool answers with its name and arguments."""
    text = f"{name} {json.dumps(arguments, sort_keys=True)}"
    block = {"type": "text", "text": text}
    return ToolResult(code=Code.OK, content=(block,), structured=None, raw={"content": [block]}, reached_server=True)


class World:
    """One crib folder, its crib, and the servers behind it."""

    def __init__(
        self,
        folder: Path,
        servers: Mapping[str, Sequence[Any]],
        *,
        toml: str = "",
        policy: str = "",
        handler: Handler = says_done,
        approve: bool = True,
    ) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.servers = {server_id: ServedFile(folder / f"{server_id}.tools.json", handler) for server_id in servers}
        for server_id, tools in servers.items():
            self.write(server_id, tools)
        crib = ["[crib]", 'name = "test"', 'environment = "test"']
        if policy:
            (folder / "policy.cedar").write_text(policy, encoding="utf-8")
            crib.append('policy = "policy.cedar"')
        for server_id in servers:
            crib += ["[[servers]]", f'id = "{server_id}"', 'transport = "file"', f'path = "{server_id}.tools.json"']
        (folder / "toolcrib.toml").write_text("\n".join(crib) + "\n" + toml, encoding="utf-8")
        self.crib = Crib.open(folder, connectors=self.servers)
        self.refresh()
        if approve:
            self.crib.approve(None, reviewer="tests")

    def write(self, server_id: str, tools: Sequence[Any]) -> None:
        """What the server lists from now on."""
        path = self.folder / f"{server_id}.tools.json"
        path.write_text(json.dumps({"tools": list(tools)}, ensure_ascii=False), encoding="utf-8")

    def refresh(self) -> Any:
        return asyncio.run(self.crib.refresh())

    def call(self, tool_id: str, arguments: JsonObject | None = None, **more: Any) -> Any:
        return asyncio.run(self.crib.call(tool_id, arguments or {}, **more))

    def ids(self, who: Caller | LocalOperator = LOCAL) -> list[str]:
        return [t.tool_id for t in self.crib.tools(who)]

    def close(self) -> None:
        asyncio.run(self.crib.aclose())


Worlds = Callable[..., World]


def with_default(make: Worlds, servers: Mapping[str, Sequence[Any]]) -> Worlds:
    """The same maker with servers to use where a test names none."""
    return lambda given=None, **more: make(servers if given is None else given, **more)
