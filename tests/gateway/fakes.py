"""A crib in memory: enough of one to test the gateway alone. Who may know a tool is a set of subjects per tool."""

from __future__ import annotations

import itertools
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from toolcrib.errors import PolicyError
from toolcrib.server.surface import mcp_name
from toolcrib.types import (
    ApprovalRequest,
    ArgumentFault,
    Caller,
    Channel,
    Code,
    JsonObject,
    Tool,
    ToolMetadata,
    ToolResult,
    ToolState,
    Verdict,
)

Answer = Callable[[JsonObject], JsonObject]

EVERYBODY = frozenset({"ada", "bob"})


def tool(tool_id: str, definition: JsonObject | None = None, **metadata: Any) -> Tool:
    server_id, _, name = tool_id.partition(".")
    whole = {"name": name, "description": f"Does {name}.", "inputSchema": {"type": "object"}, **(definition or {})}
    metadata.setdefault("namespace", server_id)
    return Tool(
        tool_id=tool_id,
        server_id=server_id,
        name=name,
        definition=whole,
        digest=f"sha256:{abs(hash(repr(whole))):x}",
        state=ToolState.APPROVED,
        metadata=ToolMetadata(**metadata),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeView:
    tools: tuple[Tool, ...]
    version: str
    namespaces: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeOffer:
    tools: tuple[Tool, ...]
    trace_id: str

    def to_dict(self) -> dict[str, Any]:
        entries = [
            {
                "tool_id": t.tool_id,
                "name": t.name,
                "rank": rank,
                "score": 1.5,
                "capability": "",
                "tokens": 10,
                "digest": t.digest,
                "definition": t.definition,
            }
            for rank, t in enumerate(self.tools, 1)
        ]
        return {
            "outcome": "selected" if entries else "no_match",
            "message": "found" if entries else "Nothing here does that.",
            "degraded": False,
            "tools": entries,
            "dropped": [],
            "tokens": 10 * len(entries),
            "token_budget": 6000,
            "limit": 5,
            "confidence": 0.9,
            "catalog_version": "c",
            "policy_version": "p",
            "index_version": "i",
            "trace_id": self.trace_id,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeOutcome:
    code: Code
    message: str
    verdict: Verdict
    result: ToolResult | None = None
    trace_id: str = ""


@dataclass
class FakeCrib:
    """Args:
    tools: tool id -> the tool and who may know it.
    answers: tool id -> the result object its server would send.
    fault: raised by everything, as when policy cannot be read.
    disclosed: tool id -> the scopes it requires; ada may know that it exists, and not call it.
    waiting: tools whose calls need an approval. deciders: who may approve calls of their own.
    notes: what the output check says of every result.
    """

    tools: dict[str, tuple[Tool, frozenset[str]]] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)
    waits: dict[str, Callable[[], Awaitable[None]]] = field(default_factory=dict)
    fault: Exception | None = None
    name: str = "test"
    calls: list[tuple[str, Channel, str]] = field(default_factory=list)
    metas: list[JsonObject | None] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    offered: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    disclosed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    waiting: set[str] = field(default_factory=set)
    deciders: set[str] = field(default_factory=set)
    approvals: dict[str, ApprovalRequest] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    _traces: Any = field(default_factory=lambda: itertools.count(1))
    _views: dict[str, tuple[tuple[Tool, ...], FakeView]] = field(default_factory=dict)

    def put(self, made: Tool, *, known_to: frozenset[str] = EVERYBODY, answer: Answer | None = None) -> None:
        self.tools[made.tool_id] = (made, known_to)
        self.answers[made.tool_id] = answer or (lambda arguments: {"content": [], "structuredContent": {**arguments}})

    def drop(self, tool_id: str) -> None:
        del self.tools[tool_id]

    def change(self, tool_id: str, **definition: Any) -> None:
        made, known_to = self.tools[tool_id]
        self.tools[tool_id] = (tool(tool_id, {**made.definition, **definition}), known_to)

    def prefer(self, tool_id: str, **metadata: Any) -> None:
        made, known_to = self.tools[tool_id]
        self.tools[tool_id] = (replace(made, metadata=replace(made.metadata, **metadata)), known_to)

    def view(self, caller: Caller, channel: Channel) -> FakeView:
        if self.fault is not None:
            raise self.fault
        barred = "retired" in caller.roles
        mine = tuple(t for _, (t, known_to) in sorted(self.tools.items()) if caller.subject in known_to and not barred)
        kept = self._views.get(caller.subject)
        if kept is not None and kept[0] == mine:
            return kept[1]
        view = FakeView(
            tools=mine,
            version=str(hash(tuple(t.digest for t in mine))),
            namespaces=tuple(sorted({t.metadata.namespace for t in mine})),
        )
        self._views[caller.subject] = (mine, view)
        return view

    def select(
        self,
        task: str,
        *,
        caller: Caller,
        channel: Channel,
        queries: Sequence[str] = (),
        limit: int | None = None,
        token_budget: int | None = None,
    ) -> FakeOffer:
        words = set(" ".join((task, *queries)).lower().split())
        hits = [t for t in self.view(caller, channel).tools if words & set(t.name.lower().split("_"))]
        return FakeOffer(tools=tuple(hits[: limit or 5]), trace_id=f"t{next(self._traces)}")

    async def call(
        self,
        tool_id: str,
        arguments: Mapping[str, Any],
        *,
        caller: Caller,
        channel: Channel,
        offered_digest: str = "",
        meta: JsonObject | None = None,
        idempotency_key: str = "",
    ) -> FakeOutcome:
        trace_id = f"t{next(self._traces)}"
        self.calls.append((tool_id, channel, caller.subject))
        self.metas.append(meta)
        self.keys.append(idempotency_key)
        made, known_to = self.tools.get(tool_id, (None, frozenset[str]()))
        if self.fault is not None:
            raise self.fault
        if made is None or caller.subject not in known_to:
            why = "no such tool" if made is None else "policy forbids it"
            return _refused(Code.NOT_AVAILABLE, why, trace_id)
        if offered_digest and offered_digest != made.digest:
            return _refused(Code.CONFLICT, "The definition has changed.", trace_id)
        if "bad" in arguments:
            fault = ArgumentFault(path="/bad", expected="nothing", got="something")
            verdict = Verdict(code=Code.INVALID_ARGUMENTS, message="no", check="arguments", faults=(fault,))
            return FakeOutcome(code=verdict.code, message="no", verdict=verdict, trace_id=trace_id)
        if "foreign" in arguments:
            said = "What the arguments name is not available."
            verdict = Verdict(code=Code.NOT_AVAILABLE, message=said, check="resource", policies=("secret-policy",))
            return FakeOutcome(code=verdict.code, message=said, verdict=verdict, trace_id=trace_id)
        if tool_id in self.waiting and not self._use_up(tool_id, arguments, caller):
            asked = self._request(made, arguments, caller)
            said = "This call needs the approval of a person. Nothing was done."
            verdict = Verdict(code=Code.NEEDS_APPROVAL, message=said, approval_id=asked.approval_id)
            return FakeOutcome(code=verdict.code, message=said, verdict=verdict, trace_id=trace_id)
        if tool_id in self.waits:
            await self.waits[tool_id]()
        return _ran(self.answers[tool_id](arguments), trace_id, notes=self.notes)

    def note_offered(self, tools: Sequence[Tool], *, caller: Caller) -> None:
        self.offered.append((caller.subject, tuple(t.tool_id for t in tools)))

    def missing_scopes(self, name: str, *, caller: Caller, channel: Channel) -> tuple[str, ...]:
        for tool_id, scopes in self.disclosed.items():
            if caller.subject == "ada" and name in (tool_id, mcp_name(tool_id)) and not caller.scopes >= set(scopes):
                return scopes
        return ()

    def own_approval(self, approval_id: str, *, caller: Caller, channel: Channel) -> ApprovalRequest | None:
        found = self.approvals.get(approval_id)
        mine = found is not None and found.subject == caller.subject and found.state == "pending"
        return found if mine and caller.subject in self.deciders else None

    async def answer_approval(self, approval_id: str, *, granted: bool, caller: Caller, channel: Channel) -> bool:
        if self.own_approval(approval_id, caller=caller, channel=channel) is None:
            return False
        state = "granted" if granted else "denied"
        self.approvals[approval_id] = replace(self.approvals[approval_id], state=state, decided_by=caller.subject)
        return True

    def _request(self, made: Tool, arguments: Mapping[str, Any], caller: Caller) -> ApprovalRequest:
        key = _key(made.tool_id, arguments, caller)
        for known in self.approvals.values():
            if known.key == key and known.state == "pending":
                return known
        asked = ApprovalRequest(
            approval_id=f"a{len(self.approvals) + 1}",
            key=key,
            subject=caller.subject,
            tenant=caller.tenant,
            tool_id=made.tool_id,
            digest=made.digest,
            arguments_preview=json.dumps(arguments, ensure_ascii=False),
            state="pending",
            created_at="2026-01-01",
            expires_at="2027-01-01",
        )
        self.approvals[asked.approval_id] = asked
        return asked

    def _use_up(self, tool_id: str, arguments: Mapping[str, Any], caller: Caller) -> bool:
        for known in self.approvals.values():
            if known.key == _key(tool_id, arguments, caller) and known.state == "granted":
                self.approvals[known.approval_id] = replace(known, state="used")
                return True
        return False


def _key(tool_id: str, arguments: Mapping[str, Any], caller: Caller) -> str:
    return json.dumps([tool_id, arguments, caller.subject, caller.tenant], sort_keys=True)


def _refused(code: Code, message: str, trace_id: str) -> FakeOutcome:
    return FakeOutcome(
        code=code,
        message=message,
        verdict=Verdict(code=code, message=message, check="secret-check", policies=("secret-policy",)),
        trace_id=trace_id,
    )


def _ran(raw: JsonObject, trace_id: str, *, notes: tuple[str, ...] = ()) -> FakeOutcome:
    code = Code.TOOL_ERROR if raw.get("isError") else Code.OK
    result = ToolResult(code=code, content=tuple(raw["content"]), raw=raw, reached_server=True, notes=notes)
    return FakeOutcome(
        code=code, message="", verdict=Verdict(code=Code.OK, message=""), result=result, trace_id=trace_id
    )


def lost_policy() -> PolicyError:
    return PolicyError("secret: cannot read /etc/secret/policy.cedar")
