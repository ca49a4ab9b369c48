"""Python functions as a server: for programs that embed Toolcrib, and for tests that need a server they can steer.

Invariants
1. A function that raises gives `tool_error`; one that returns None gives `ok` with no content. They never look alike.
2. A function gets a copy of the arguments; what it does to them stays with it.
3. The deadline ends the waiting. It stops an async function; a plain one goes on in its thread, unheard.
"""

# ruff: noqa: ARG002  (the signature of `call` is the protocol's)

from __future__ import annotations

import asyncio
import copy
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from toolcrib.connectors._results import result_from_wire, short
from toolcrib.errors import ConfigError
from toolcrib.types import Code, JsonObject, Provenance, ProvenanceKind, ServerListing, ToolResult

ToolFunction = Callable[..., Any]
"""Takes the arguments by keyword. Returns text, a JSON value, None, or a `ToolResult` to say exactly what it means."""


class FunctionServer:
    """Tools that run in this process.

    Args:
        tools: name -> (definition as in `tools/list`, function). A definition without a name gets the key as its name.
    Raises:
        ConfigError: a definition that carries another name than its key.
    """

    def __init__(self, server_id: str, tools: Mapping[str, tuple[JsonObject, ToolFunction]]) -> None:
        self._server_id = server_id
        self._functions = {name: function for name, (_, function) in tools.items()}
        self._definitions = tuple({"name": name, **definition} for name, (definition, _) in tools.items())
        for name, definition in zip(tools, self._definitions, strict=True):
            if definition["name"] != name:
                raise ConfigError(
                    f"the definition of {name!r} is named {definition['name']!r}", where=f"server {server_id!r}"
                )

    @property
    def broken(self) -> bool:
        return False

    async def list_tools(self) -> ServerListing:
        return ServerListing(
            server_id=self._server_id,
            tools=self._definitions,
            server_name=self._server_id,
            provenance=await self.observed(),
        )

    async def observed(self) -> Provenance:
        """The packages that the functions are from. Not their source: it is this program's own, and changes with it."""
        modules = {str(getattr(function, "__module__", None) or "?") for function in self._functions.values()}
        packages = sorted({module.partition(".")[0] for module in modules})
        return Provenance(kind=ProvenanceKind.CODE, package=", ".join(packages), note="functions of this program")

    async def ready(self) -> None:
        """Nothing to open."""

    async def call(
        self,
        name: str,
        arguments: JsonObject,
        *,
        timeout_s: float,
        meta: JsonObject | None = None,
        input_schema: JsonObject | None = None,
    ) -> ToolResult:
        function = self._functions.get(name)
        if function is None:
            return replace(self._failed(f"server {self._server_id!r} has no tool named {name!r}"), refused=True)
        try:
            async with asyncio.timeout(timeout_s) as deadline:
                return self._result(await _run(function, copy.deepcopy(dict(arguments))))
        # A function of the user's may raise anything; whatever it is, the tool failed and the caller must learn it.
        except Exception as exc:  # noqa: BLE001
            if deadline.expired():
                message = f"{name!r} did not answer within {timeout_s:g} s; it may still be running"
                return ToolResult(code=Code.TIMEOUT, message=message, reached_server=True)
            return self._failed(f"{type(exc).__name__}: {exc}")

    async def aclose(self) -> None:
        """Nothing is open."""

    def _result(self, value: Any) -> ToolResult:
        return value if isinstance(value, ToolResult) else result_from_wire(_wire(value), server_id=self._server_id)

    def _failed(self, message: str) -> ToolResult:
        wire = {"content": [{"type": "text", "text": short(message)}], "isError": True}
        return result_from_wire(wire, server_id=self._server_id)


async def _run(function: ToolFunction, arguments: dict[str, Any]) -> Any:
    if inspect.iscoroutinefunction(function):
        return await function(**arguments)
    value = await asyncio.to_thread(function, **arguments)
    return await value if inspect.isawaitable(value) else value


def _wire(value: Any) -> dict[str, Any]:
    """A returned value as a `tools/call` result. Structured content is an object: other values go under `result`."""
    if value is None:
        return {"content": []}
    if isinstance(value, str):
        return {"content": [{"type": "text", "text": value}]}
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    structured = value if isinstance(value, Mapping) else {"result": value}
    return {"content": [{"type": "text", "text": text}], "structuredContent": structured}
