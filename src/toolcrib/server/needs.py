"""What the gateway needs of a crib, and nothing more: `crib.Crib` is one, the in-memory crib of the tests another.

Invariant: whatever comes through here is already the caller's view (I1): permitted tools only, caller-safe messages.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from toolcrib.types import ApprovalRequest, Caller, Channel, Code, JsonObject, Tool, ToolResult, Verdict


class CallerView(Protocol):
    """What one caller may discover, under one snapshot and policy."""

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Permitted tools, sorted by tool id."""
        ...

    @property
    def version(self) -> str:
        """A digest of exactly these tools."""
        ...

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The namespaces of the permitted tools, sorted, each once."""
        ...


class Offer(Protocol):
    """The answer to a task."""

    @property
    def trace_id(self) -> str: ...

    def to_dict(self) -> JsonObject:
        """The object that `toolcrib select --json` prints; the caller may see all of it."""
        ...


class CallOutcome(Protocol):
    """The answer to a proposed call."""

    @property
    def code(self) -> Code: ...

    @property
    def message(self) -> str:
        """In words a caller may see."""
        ...

    @property
    def result(self) -> ToolResult | None:
        """None where the call was refused before it left."""
        ...

    @property
    def verdict(self) -> Verdict: ...

    @property
    def trace_id(self) -> str: ...


Watching = Callable[[Callable[[], Awaitable[object]]], AbstractAsyncContextManager[None]]
"""`Crib.watch`: what keeps the servers' lists fresh while it is entered, and calls back after each other one."""


@asynccontextmanager
async def not_watching(_on_published: Callable[[], Awaitable[object]]) -> AsyncIterator[None]:
    """For a gateway whose crib changes by other hands alone."""
    yield


class GatewayCrib(Protocol):
    """The assembled object behind the gateway."""

    @property
    def name(self) -> str: ...

    def view(self, caller: Caller, channel: Channel) -> CallerView:
        """What the caller may discover now. Cheap, since it is asked on every request."""
        ...

    def select(
        self,
        task: str,
        *,
        caller: Caller,
        channel: Channel,
        queries: Sequence[str] = (),
        limit: int | None = None,
        token_budget: int | None = None,
    ) -> Offer: ...

    async def call(
        self,
        tool_id: str,
        arguments: JsonObject,
        *,
        caller: Caller,
        channel: Channel,
        offered_digest: str = "",
        meta: JsonObject | None = None,
        idempotency_key: str = "",
    ) -> CallOutcome: ...

    def note_offered(self, tools: Sequence[Tool], *, caller: Caller) -> None:
        """That these tools were listed for or described to the caller; `select` notes by itself what it offers."""
        ...

    def missing_scopes(self, name: str, *, caller: Caller, channel: Channel) -> tuple[str, ...]:
        """All scopes that a tool requires, where the caller may know of it, may not call it, and lacks one of them.

        Nothing of a tool that the caller may not know of, like of one that does not exist.

        Args:
            name: the tool's public MCP name or its id.
        """
        ...

    def own_approval(self, approval_id: str, *, caller: Caller, channel: Channel) -> ApprovalRequest | None:
        """The request of the caller's own that waits under this id, where the caller may be asked to decide it.

        None unless configuration turns elicitation on and policy lets this caller approve what it asked for itself.
        """
        ...

    async def answer_approval(self, approval_id: str, *, granted: bool, caller: Caller, channel: Channel) -> bool:
        """The caller decides its own waiting request. False, and nothing is decided, where it may not or none waits."""
        ...
