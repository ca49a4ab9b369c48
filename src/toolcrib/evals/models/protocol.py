"""What crosses between a conversation and a vendor: turns, calls, answers to calls, and the two protocols.

Above: `conversation.py`, `asking.py`. Implemented in `anthropic_wire.py`, `openai_wire.py` (pure: shapes out, answers
read) and in `anthropic_sdk.py`, `openai_sdk.py` (the network).

Invariants
1. A request and an answer are plain JSON of the vendor's wire, so that an answer can be kept and replayed.
2. What a vendor refuses for its content is a value (`Declined`): that attempt failed, the run goes on. What would fail
   for every request, a wrong key or an unknown model, is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from toolcrib.errors import ConnectorError
from toolcrib.types import JsonObject, Tool

Wire = dict[str, Any]
SearchKind = Literal["bm25", "regex"]


class NotTakenError(ConnectorError):
    """The vendor did not take the request now: nothing is paid for it, and another attempt may help.

    `wait_s`: seconds that the vendor asks to wait; 0 where it says nothing.
    """

    wait_s = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WireCall:
    """One call as the model made it. `arguments`: parsed where they are JSON, else the text."""

    call_id: str
    name: str
    arguments: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What one answer of the model holds.

    Args:
        searches: how often the vendor's own search ran in it.
        loaded: names of tools that this search put into the context.
        input_tokens: all of the request, what the vendor took from its cache, too.
        paused: the vendor wants the conversation sent again as it is, to go on.
        cut: it ran into the limit of output.
    """

    calls: tuple[WireCall, ...]
    text: str
    searches: int = 0
    loaded: tuple[str, ...] = ()
    input_tokens: int
    output_tokens: int
    paused: bool = False
    cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What a call is answered with."""

    call_id: str
    text: str
    is_error: bool = False


class Vendor(Protocol):
    """One vendor's wire: pure functions over its JSON."""

    @property
    def name(self) -> str: ...

    def public_name(self, tool: Tool) -> str:
        """The name under which the model knows the tool."""
        ...

    def definitions(self, tools: Sequence[Tool]) -> list[Wire]:
        """`tools` of a request, whole definitions."""
        ...

    def own_definitions(self, definitions: Sequence[JsonObject]) -> list[Wire]:
        """`tools` of a request, from definitions as MCP writes them, under the names they have."""
        ...

    def searched(self, tools: Sequence[Tool], *, kind: SearchKind) -> list[Wire]:
        """`tools` of a request in which the vendor's own search finds these.

        Raises:
            ConfigError: the vendor has no such search, or not for so many.
        """
        ...

    def opening(self, task: str, *, model: str, system: str, tools: Sequence[Wire], max_output: int) -> Wire:
        """The first request."""
        ...

    def following(self, request: Wire, answer: Wire, results: Sequence[Answered]) -> Wire:
        """The next request: all that was said, and what the calls gave."""
        ...

    def read(self, answer: Wire) -> Turn:
        """What an answer says.

        Raises:
            ConnectorProtocolError: it is no answer of this vendor.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Declined:
    """The vendor refused this very request. `status`: its HTTP status; 0 where nothing was sent."""

    status: int
    message: str


class Sender(Protocol):
    """Sends requests to a vendor."""

    def send(self, request: Wire) -> Wire | Declined:
        """The answer as it came.

        Raises:
            ConfigError: key or model are not accepted. ConnectorError: no answer, or told to wait too often.
        """
        ...
