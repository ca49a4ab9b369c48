"""The gateway as a model meets it in an evaluation: the gateway's own listing, texts and answers, without a connection.

Above: `eval_model.py` hands this to `evals/models`, which stands below the gateway and may not import it.

Invariants
1. What the model reads is written by `server/`: `surface_of`, `answers.found`, `answers.described`.
2. A call of a tool is handed back as a proposal. Nothing is called, offered or traced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolcrib.evals.models.ways import LookedUp
from toolcrib.evals.places import Asked, Place
from toolcrib.gate.arguments import check_arguments
from toolcrib.offer import Offer
from toolcrib.server import answers
from toolcrib.server.meta_tools import CALL_SCHEMA, DESCRIBE, DESCRIBE_SCHEMA, FIND, FIND_SCHEMA
from toolcrib.server.surface import SurfaceKind, surface_of
from toolcrib.types import Code, JsonObject, SelectRequest, Tool, ToolCall

_TRACE_ID = "0" * 32
"""As long as a real one, and the same each time, so that answers can be kept."""


class GatewayDoor:
    """The search surface for one caller of a place."""

    def __init__(self, place: Place, asked: Asked) -> None:
        self._place, self._caller = place, asked.caller
        self._surface = surface_of(place.pipeline.view(asked.caller, place.channel), SurfaceKind.SEARCH)

    @property
    def instructions(self) -> str:
        return self._surface.instructions

    @property
    def listing(self) -> Sequence[JsonObject]:
        return self._surface.listing

    @property
    def listed(self) -> Sequence[Tool]:
        return self._surface.listed

    def find(self, task: str) -> LookedUp:
        """As `find_tools` with this task."""
        return self._found({"task": task})

    def answer(self, name: str, arguments: Any) -> LookedUp | ToolCall:
        """As `tools/call` of the gateway."""
        if name not in self._surface.meta_names:
            return self._proposed(name, arguments)
        schema = {FIND: FIND_SCHEMA, DESCRIBE: DESCRIBE_SCHEMA}.get(name, CALL_SCHEMA)
        faults = check_arguments(schema, arguments)
        if faults:
            refused = answers.refusal(Code.INVALID_ARGUMENTS, answers.CHECK_ARGUMENTS, faults=faults)
            return LookedUp(text=_text(refused), is_error=True, shown=())
        if name == FIND:
            return self._found(arguments)
        if name == DESCRIBE:
            tools = [tool for one in arguments["names"] if (tool := self._surface.tool(one)) is not None]
            text = _text(answers.described(arguments["names"], self._surface))
            return LookedUp(text=text, is_error=False, shown=tuple(tool.tool_id for tool in tools))
        return self._proposed(arguments["name"], arguments.get("arguments", {}))

    def _found(self, arguments: Mapping[str, Any]) -> LookedUp:
        place = self._place
        request = SelectRequest(
            task=arguments["task"],
            queries=tuple(arguments.get("queries", ())),
            limit=arguments.get("limit") or place.limit,
            token_budget=arguments.get("token_budget") or place.token_budget,
        )
        done = place.pipeline.select(request, caller=self._caller, channel=place.channel)
        offer = Offer(
            selection=done.selection,
            catalog_version=done.view.version,
            policy_version=done.view.policy_version,
            index_version=done.view.index_version,
            trace_id=_TRACE_ID,
        )
        shown = tuple(chosen.tool.tool_id for chosen in offer.tools)
        return LookedUp(text=_text(answers.found(offer)), is_error=False, shown=shown)

    def _proposed(self, name: str, arguments: Any) -> ToolCall:
        tool = self._surface.tool(name)
        return ToolCall(tool_id=tool.tool_id if tool else name, arguments=arguments)


def _text(result: Mapping[str, Any]) -> str:
    """What clients hand to the model: the text of a result."""
    return "\n".join(str(block["text"]) for block in result["content"])
