"""Servers that are not there: each call gets a fixed answer, made here and sent nowhere.

Above: `world.py` gives them to the crib in place of the operator's servers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolcrib.types import Caller, Code, JsonObject, ResourceRule, ServerListing, ToolResult


class Owner:
    """Who owns every resource at the moment: whoever asks, so that calls get as far as policy lets them."""

    def __init__(self) -> None:
        self.caller: Caller | None = None


class StandIn:
    """One server. A read tool that knows owners says that the resource is the asking caller's.

    Args:
        rules: which resources calls name; of interest are those whose lookup tool is on this server.
    """

    def __init__(self, server_id: str, *, rules: Sequence[ResourceRule], owner: Owner) -> None:
        self._server_id = server_id
        self._rules = tuple(rules)
        self._owner = owner

    @property
    def broken(self) -> bool:
        return False

    async def list_tools(self) -> ServerListing:
        """Nothing: the world's catalog is written, not asked for."""
        return ServerListing(server_id=self._server_id, tools=())

    async def ready(self) -> None:
        """Nothing to open."""

    async def call(self, name: str, arguments: JsonObject, **_more: Any) -> ToolResult:
        """The same answer for the same arguments."""
        structured = self._ownership(name)
        block = {"type": "text", "text": f"{name} was called with {len(arguments)} arguments"}
        raw: dict[str, Any] = {"content": [block]}
        if structured is not None:
            raw["structuredContent"] = structured
        return ToolResult(code=Code.OK, content=(block,), structured=structured, raw=raw, reached_server=True)

    async def aclose(self) -> None:
        """Nothing is open."""

    def _ownership(self, name: str) -> dict[str, Any] | None:
        found: dict[str, Any] = {}
        for rule in self._rules:
            if rule.lookup_tool == f"{self._server_id}.{name}":
                tenant = self._owner.caller.tenant if self._owner.caller else ""
                subject = self._owner.caller.subject if self._owner.caller else ""
                _put(found, rule.tenant, tenant)
                _put(found, getattr(rule, "owner", ""), subject)
        return found or None


def _put(body: dict[str, Any], pointer: str, value: str) -> None:
    """Sets what a JSON pointer points to; a pointer to the whole, or none, has no place to be set."""
    steps = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
    for step in steps[:-1]:
        body = body.setdefault(step, {})
    if steps:
        body[steps[-1]] = value
