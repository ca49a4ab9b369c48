"""The wire of OpenAI's Responses API, as a conversation with tools needs it. Pure.

Nothing is stored at the vendor (`store` is false): each request carries the conversation, reasoning encrypted in it.

Source:
    Responses API with `function_call`, `function_call_output`; tool search: `{"type": "tool_search"}`, namespaces of
    functions with `defer_loading`, items `tool_search_call`, `tool_search_output` (read in the SDK's types, 3.57).
    The guide to tool search says that namespaces with a clear description are what models were trained to search.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from toolcrib.errors import ConnectorProtocolError
from toolcrib.evals.models.protocol import Answered, SearchKind, Turn, Wire, WireCall
from toolcrib.providers.names import NameTarget, public_name
from toolcrib.providers.openai import tool_definitions
from toolcrib.types import JsonObject, Tool

_UNSAFE = re.compile(r"[^a-zA-Z0-9_-]+")
_MAX_NAME_CHARS = 64
_MAX_NAMES_TOLD = 12
ENCRYPTED = "reasoning.encrypted_content"


class OpenAIWire:
    """Requests and answers of the Responses API."""

    name = "openai"

    def public_name(self, tool: Tool) -> str:
        return public_name(tool.tool_id, target=NameTarget.OPENAI)

    def definitions(self, tools: Sequence[Tool]) -> list[Wire]:
        return [_with_type(definition) for definition in tool_definitions(tools)]

    def own_definitions(self, definitions: Sequence[JsonObject]) -> list[Wire]:
        return [
            {
                "type": "function",
                "name": one["name"],
                "description": one.get("description", ""),
                "parameters": dict(one["inputSchema"]),
                "strict": False,
            }
            for one in definitions
        ]

    def searched(self, tools: Sequence[Tool], *, kind: SearchKind) -> list[Wire]:  # noqa: ARG002  # one kind here
        """A namespace for each server, described by the names of its tools; the vendor knows no other description."""
        servers: dict[str, list[Tool]] = {}
        for tool in tools:
            servers.setdefault(tool.server_id, []).append(tool)
        spaces = [
            {
                "type": "namespace",
                "name": _namespace(server_id),
                "description": _about(server_id, own),
                "tools": [{**definition, "defer_loading": True} for definition in self.definitions(own)],
            }
            for server_id, own in servers.items()
        ]
        return [{"type": "tool_search"}, *spaces]

    def opening(self, task: str, *, model: str, system: str, tools: Sequence[Wire], max_output: int) -> Wire:
        request: Wire = {
            "model": model,
            "max_output_tokens": max_output,
            "instructions": system,
            "input": [{"role": "user", "content": task}],
            "store": False,
            "include": [ENCRYPTED],
        }
        return request | ({"tools": list(tools)} if tools else {})

    def following(self, request: Wire, answer: Wire, results: Sequence[Answered]) -> Wire:
        said = [_unstored(item) for item in answer["output"]]
        given = [{"type": "function_call_output", "call_id": one.call_id, "output": one.text} for one in results]
        return {**request, "input": [*request["input"], *said, *given]}

    def read(self, answer: Wire) -> Turn:
        try:
            items, usage = list(answer["output"]), answer["usage"]
            return Turn(
                calls=tuple(_call(item) for item in items if item["type"] == "function_call"),
                text="\n".join(_texts(items)),
                searches=sum(item["type"] == "tool_search_call" for item in items),
                loaded=tuple(_loaded(items)),
                input_tokens=int(usage["input_tokens"]),
                output_tokens=int(usage["output_tokens"]),
                cut=answer.get("status") == "incomplete",
            )
        except (KeyError, TypeError, ValueError, AttributeError) as fault:
            raise ConnectorProtocolError(
                "this is no answer of the Responses API", where="openai", hint="check --base-url"
            ) from fault


def _call(item: Mapping[str, Any]) -> WireCall:
    arguments = item.get("arguments")
    with suppress(ValueError, RecursionError):  # text that is no JSON stays, and counts as arguments that do not fit
        arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
    return WireCall(call_id=str(item["call_id"]), name=str(item["name"]), arguments=arguments)


def _unstored(item: Mapping[str, Any]) -> Wire:
    """A call's own id names something the vendor has stored, and it stores nothing here."""
    return {key: value for key, value in item.items() if key != "id" or item["type"] != "function_call"}


def _texts(items: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for item in items:
        if item["type"] == "message":
            yield from (str(part["text"]) for part in item["content"] if part["type"] == "output_text")


def _loaded(items: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for item in items:
        if item["type"] == "tool_search_output":
            for tool in item["tools"]:
                within = tool.get("tools") if tool["type"] == "namespace" else (tool,)
                yield from (str(one["name"]) for one in within or () if "name" in one)


def _namespace(server_id: str) -> str:
    """A legal name for the server's namespace, its own wherever that is legal."""
    safe = _UNSAFE.sub("_", server_id)
    if safe == server_id and 0 < len(safe) <= _MAX_NAME_CHARS:
        return safe
    return f"{safe[:48]}_{hashlib.sha256(server_id.encode('utf-8', 'surrogatepass')).hexdigest()[:10]}"


def _about(server_id: str, tools: Sequence[Tool]) -> str:
    names = ", ".join(tool.name for tool in tools[:_MAX_NAMES_TOLD])
    more = len(tools) - _MAX_NAMES_TOLD
    return f"Tools of {server_id}: {names}{f' and {more} more' if more > 0 else ''}."


def _with_type(definition: Wire) -> Wire:
    """The API takes no schema without a type; a tool without arguments may well have none."""
    schema = definition["parameters"]
    return definition if "type" in schema else {**definition, "parameters": {"type": "object", **schema}}
