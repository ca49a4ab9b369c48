"""What one caller sees at the gateway: the listing, the names that can be called, the instructions.

Above: `mcp_gateway.py`. Below: `meta_tools.py`, `providers/names.py`. Pure: a function of the caller's view.

    search (default)   find_tools, describe_tools, call_tool, then the preloaded tools
    all                every permitted tool and nothing else: the client brings a search of its own, so the gateway's
                       three would only compete with it; they are neither listed nor callable there

Invariants
1. Only permitted tools go in, so all of this may be seen by the caller (I1).
2. Every permitted tool can be called by its public name, listed or not (I10).
3. A definition differs from the reviewed one in its `name` alone. One exception, for legacy clients (`for_legacy`).
4. The order is fixed: the meta-tools as written, then tools by tool id.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from toolcrib.providers.names import NameTarget, public_name
from toolcrib.server.meta_tools import CALL, FIND, META_NAMES, kinds_text, meta_tools
from toolcrib.server.needs import CallerView
from toolcrib.types import JsonObject, Tool


class SurfaceKind(StrEnum):
    SEARCH = "search"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """One caller's gateway.

    Args:
        listing: what `tools/list` answers. listed: the catalog's tools in it.
        meta_names: which of the gateway's own tools can be called.
        version: changes exactly when `listing` does.
    """

    kind: SurfaceKind
    listing: tuple[JsonObject, ...]
    listed: tuple[Tool, ...]
    meta_names: frozenset[str]
    instructions: str
    version: str
    _tools: Mapping[str, Tool]
    _former: Mapping[str, str]

    def tool(self, name: str) -> Tool | None:
        """The permitted tool of this public name or tool id, or of one that it had before."""
        return self._tools.get(name)

    def asked_id(self, name: str) -> str:
        """The tool id that is meant by this name, a former one where it is that; "" for a name that is not there."""
        tool, former = self._tools.get(name), self._former.get(name, "")
        if tool is None:
            return ""
        return former if former in tool.metadata.aliases else tool.tool_id


def surface_of(view: CallerView, kind: SurfaceKind) -> Surface:
    """What a caller with this view sees."""
    searching = kind is SurfaceKind.SEARCH
    listed = [tool for tool in view.tools if tool.metadata.preload] if searching else list(view.tools)
    taken = META_NAMES if searching else ()
    listed = [tool for tool in listed if mcp_name(tool.tool_id) not in taken]
    own = meta_tools(view.namespaces) if searching else ()
    return Surface(
        kind=kind,
        listing=(*own, *(public_definition(tool) for tool in listed)),
        listed=tuple(listed),
        meta_names=frozenset(taken),
        instructions=_instructions(kind, view.namespaces),
        version=_version(own, listed),
        _tools=_by_former_name(view)
        | {t.tool_id: t for t in view.tools}
        | {mcp_name(t.tool_id): t for t in view.tools},
        _former={name: alias for alias, _ in _aliases(view) for name in (alias, mcp_name(alias))},
    )


def _by_former_name(view: CallerView) -> dict[str, Tool]:
    return {name: tool for alias, tool in _aliases(view) for name in (alias, mcp_name(alias))}


def _aliases(view: CallerView) -> list[tuple[str, Tool]]:
    return [(alias, tool) for tool in view.tools for alias in tool.metadata.aliases]


def mcp_name(tool_id: str) -> str:
    """The name under which MCP clients know this tool."""
    return public_name(tool_id, target=NameTarget.MCP)


def public_definition(tool: Tool) -> JsonObject:
    """The reviewed definition under the tool's public name; key order and unknown fields stay."""
    return {**tool.definition, "name": mcp_name(tool.tool_id)}


def for_legacy(definition: JsonObject) -> JsonObject:
    """The definition without an `outputSchema` whose root is not an object.

    Revision 2026-07-28 allows any schema there; a 2025-11-25 client refuses the whole list over it.
    """
    schema = definition.get("outputSchema")
    if schema is None or (isinstance(schema, Mapping) and schema.get("type") == "object"):
        return definition
    return {key: value for key, value in definition.items() if key != "outputSchema"}


def _instructions(kind: SurfaceKind, namespaces: tuple[str, ...]) -> str:
    if kind is SurfaceKind.ALL:
        return f"Every tool available to you is listed. {kinds_text(namespaces)}"
    return (
        f"Most tools are not listed. Call {FIND} with the task, choose from the definitions it gives, then run your "
        f"choice with {CALL}. {kinds_text(namespaces)}"
    )


def _version(own: tuple[JsonObject, ...], listed: list[Tool]) -> str:
    parts = [list(own), [[tool.tool_id, tool.digest] for tool in listed]]
    return "sha256:" + hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
