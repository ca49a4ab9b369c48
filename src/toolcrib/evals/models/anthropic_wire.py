"""The wire of Anthropic's Messages API, as a conversation with tools needs it. Pure.

Source:
    Messages API with `tools`, `tool_use`, `tool_result`, `pause_turn`; tool search: `tool_search_tool_bm25_20251119`,
    `tool_search_tool_regex_20251119`, `defer_loading`, blocks `server_tool_use`, `tool_search_tool_result` (read in
    the SDK's types, 2.14). At most 10,000 deferred tools a request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from toolcrib.errors import ConfigError, ConnectorProtocolError
from toolcrib.evals.models.protocol import Answered, SearchKind, Turn, Wire, WireCall
from toolcrib.providers.anthropic import tool_definitions
from toolcrib.providers.names import NameTarget, public_name
from toolcrib.types import JsonObject, Tool

_MAX_DEFERRED = 10_000
_COUNTED = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class AnthropicWire:
    """Requests and answers of the Messages API."""

    name = "anthropic"

    def public_name(self, tool: Tool) -> str:
        return public_name(tool.tool_id, target=NameTarget.ANTHROPIC)

    def definitions(self, tools: Sequence[Tool]) -> list[Wire]:
        return [_with_type(definition) for definition in tool_definitions(tools)]

    def own_definitions(self, definitions: Sequence[JsonObject]) -> list[Wire]:
        return [
            {"name": one["name"], "description": one.get("description", ""), "input_schema": dict(one["inputSchema"])}
            for one in definitions
        ]

    def searched(self, tools: Sequence[Tool], *, kind: SearchKind) -> list[Wire]:
        if len(tools) > _MAX_DEFERRED:
            raise ConfigError(
                f"tool search takes at most {_MAX_DEFERRED:,} tools, and {len(tools):,} are permitted here",
                where="anthropic",
                hint="leave the way `search` out: --ways all,toolcrib",
            )
        search = {"type": f"tool_search_tool_{kind}_20251119", "name": f"tool_search_tool_{kind}"}
        return [search, *({**definition, "defer_loading": True} for definition in self.definitions(tools))]

    def opening(self, task: str, *, model: str, system: str, tools: Sequence[Wire], max_output: int) -> Wire:
        request: Wire = {
            "model": model,
            "max_tokens": max_output,
            "system": system,
            "messages": [{"role": "user", "content": task}],
        }
        return request | ({"tools": list(tools)} if tools else {})

    def following(self, request: Wire, answer: Wire, results: Sequence[Answered]) -> Wire:
        said = {"role": "assistant", "content": answer["content"]}
        given = [_result(one) for one in results]
        more = [said, {"role": "user", "content": given}] if given else [said]
        return {**request, "messages": [*request["messages"], *more]}

    def read(self, answer: Wire) -> Turn:
        try:
            blocks, usage = list(answer["content"]), answer["usage"]
            calls = tuple(
                WireCall(call_id=str(block["id"]), name=str(block["name"]), arguments=block.get("input"))
                for block in blocks
                if block["type"] == "tool_use"
            )
            return Turn(
                calls=calls,
                text="\n".join(str(block["text"]) for block in blocks if block["type"] == "text"),
                searches=sum(
                    block["type"] == "server_tool_use" and str(block.get("name")).startswith("tool_search")
                    for block in blocks
                ),
                loaded=tuple(_loaded(blocks)),
                input_tokens=sum(int(usage.get(key) or 0) for key in _COUNTED),
                output_tokens=int(usage["output_tokens"]),
                paused=answer.get("stop_reason") == "pause_turn",
                cut=answer.get("stop_reason") == "max_tokens",
            )
        except (KeyError, TypeError, ValueError, AttributeError) as fault:
            raise ConnectorProtocolError(
                "this is no answer of the Messages API", where="anthropic", hint="check --base-url"
            ) from fault


def _result(answered: Answered) -> Wire:
    block: Wire = {"type": "tool_result", "tool_use_id": answered.call_id, "content": answered.text}
    return block | ({"is_error": True} if answered.is_error else {})


def _with_type(definition: Wire) -> Wire:
    """The API takes no schema without a type; a tool without arguments may well have none."""
    schema = definition["input_schema"]
    return definition if "type" in schema else {**definition, "input_schema": {"type": "object", **schema}}


def _loaded(blocks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for block in blocks:
        if block["type"] != "tool_search_tool_result":
            continue
        content = block.get("content")
        found = content.get("tool_references") or () if isinstance(content, Mapping) else ()
        yield from (str(reference["tool_name"]) for reference in found)
