"""Ways of handing tools to a model: what is in the first request, and how more comes in.

    all        every permitted definition is in each request
    search     the vendor's own tool search over the permitted definitions
    toolcrib   the gateway's tools: find_tools, describe_tools, call_tool, and what is preloaded
    select     Toolcrib as a library: the selection for the task is in each request, and no way to look for more

Invariants
1. Each way starts from the same set: what policy permits to the case's caller. What differs is the way alone.
2. The gateway's tools, texts and answers are the gateway's own, handed in by whoever may import it (`Door`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from toolcrib.evals.models.protocol import SearchKind, Vendor, Wire
from toolcrib.evals.places import Asked, Place
from toolcrib.evals.run import request_of
from toolcrib.selection.tokens import estimate_text_tokens
from toolcrib.types import Caller, JsonObject, Tool, ToolCall

SYSTEM = (
    "You do tasks with the tools you have. Nobody is there to answer questions: where the task leaves a value open, "
    "use a plausible one. Call the tools that the task needs and no others. If no tool that you have or can find does "
    "what is asked, say so in one sentence and call none."
)


class Way(StrEnum):
    ALL = "all"
    SEARCH = "search"
    TOOLCRIB = "toolcrib"
    SELECT = "select"


@dataclass(frozen=True, slots=True, kw_only=True)
class LookedUp:
    """What looking for tools gave. `shown`: ids of the tools whose definitions are in the text."""

    text: str
    is_error: bool
    shown: tuple[str, ...]


class Door(Protocol):
    """The gateway, as one caller meets it."""

    @property
    def instructions(self) -> str: ...

    @property
    def listing(self) -> Sequence[JsonObject]:
        """Definitions as `tools/list` gives them."""
        ...

    @property
    def listed(self) -> Sequence[Tool]:
        """The catalog's tools among them."""
        ...

    def find(self, task: str) -> LookedUp:
        """What looking for tools gives, if a model asks in the words of the task."""
        ...

    def answer(self, name: str, arguments: Any) -> LookedUp | ToolCall:
        """What a call gives, or the call of a catalog's tool that it is; under an unknown name, of that name."""
        ...


Gateway = Callable[[Place, Asked], Door]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Start:
    """How a conversation begins.

    Args:
        by_name: what can be called directly, under the names that the model knows.
        shown: tools whose definitions the model has from the start.
        tool_tokens: estimated tokens of `tools`.
    """

    way: Way
    system: str
    tools: Sequence[Wire]
    by_name: Mapping[str, Tool]
    shown: frozenset[str]
    tool_tokens: int
    door: Door | None = None


class Ways:
    """The starts of one place, for one vendor. What depends on the caller alone is made once.

    Args:
        system: what stands above each task.
    """

    def __init__(
        self, place: Place, vendor: Vendor, *, gateway: Gateway, kind: SearchKind = "bm25", system: str = SYSTEM
    ) -> None:
        self._place, self._vendor, self._gateway = place, vendor, gateway
        self._kind: SearchKind = kind
        self._system = system
        self._known: dict[tuple[Way, str | Caller], Start] = {}

    def start(self, way: Way, asked: Asked) -> Start:
        """How this case begins in this way. Raises ConfigError where the vendor has no such way."""
        view = self._place.pipeline.view(asked.caller, self._place.channel)
        if way is Way.SELECT:
            return self._selected(asked)
        # Two callers with one reach may be answered differently by what was learned: a door is one caller's.
        key = (way, asked.caller if way is Way.TOOLCRIB else view.version)
        if key not in self._known:
            if way is Way.TOOLCRIB:
                self._known[key] = self._with_door(self._gateway(self._place, asked))
            else:
                self._known[key] = self._with_all(way, view.tools)
        return self._known[key]

    def _with_all(self, way: Way, tools: Sequence[Tool]) -> Start:
        vendor, searching = self._vendor, way is Way.SEARCH
        wire = vendor.searched(tools, kind=self._kind) if searching else vendor.definitions(tools)
        return self._start(way, wire, tools, shown=() if searching else tools)

    def _selected(self, asked: Asked) -> Start:
        place = self._place
        done = place.pipeline.select(request_of(asked, place), caller=asked.caller, channel=place.channel)
        tools = [chosen.tool for chosen in done.selection.tools]
        return self._start(Way.SELECT, self._vendor.definitions(tools), tools, shown=tools)

    def _with_door(self, door: Door) -> Start:
        wire = self._vendor.own_definitions(door.listing)
        return Start(
            way=Way.TOOLCRIB,
            system=f"{self._system}\n\n{door.instructions}",
            tools=wire,
            by_name={},
            shown=frozenset(tool.tool_id for tool in door.listed),
            tool_tokens=tokens_of(wire),
            door=door,
        )

    def _start(self, way: Way, wire: Sequence[Wire], tools: Sequence[Tool], *, shown: Sequence[Tool]) -> Start:
        return Start(
            way=way,
            system=self._system,
            tools=wire,
            by_name={self._vendor.public_name(tool): tool for tool in tools},
            shown=frozenset(tool.tool_id for tool in shown),
            tool_tokens=tokens_of(wire),
        )


def tokens_of(value: Any) -> int:
    """Estimated tokens of JSON."""
    return estimate_text_tokens(json.dumps(value, ensure_ascii=False, default=dict))
