"""One call's way: the last verdict, and then, if it may run, one request to its server.

Floor 4. Above: `crib.py`, which writes the trace. Below: `pipeline.py` judges, `connectors/pool.py` sends.

    judge ─▶ rate ─▶ ask the owners of the resources it names ─▶ open the session ─▶ judge again
          ─▶ write the trace ─▶ use an approval up ─▶ judge a last time ─▶ send, once

Invariants
1. Nothing is awaited between the last verdict and the request leaving: what was revoked before is refused (I3).
2. A request leaves once. Whatever comes of it is the result; nothing here sends it again (I9).
3. Owners are asked only for a call that would run otherwise, so a refused caller cannot make us ask.
4. A request leaves only after its trace is written: one that is cut off midway is on record as sent (I6).
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolcrib import curation
from toolcrib.connectors.base import trace_meta
from toolcrib.connectors.pool import ConnectorPool
from toolcrib.gate.approval import approval_request
from toolcrib.gate.rate import RateLimiter
from toolcrib.gate.resources import ABSENT, lookup_argument, names_one, resource_from_answer
from toolcrib.pipeline import Judged, Pipeline
from toolcrib.settings import Settings
from toolcrib.store.protocol import Store
from toolcrib.trace.records import execution_record, sent_record
from toolcrib.types import (
    ApprovalRequest,
    Caller,
    Channel,
    Code,
    JsonObject,
    Resource,
    ResourceRule,
    StageRecord,
    Tool,
    ToolCall,
    ToolResult,
    Verdict,
)

_NOT_OPEN = "The tool's server cannot be opened at the moment. Nothing was sent; try again later."
_MAX_ROUNDS = 3
"""How often owners are asked anew because the rules changed while they were asked; then the call is refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatched:
    """What became of a call. `result` is None when the gate refused it."""

    verdict: Verdict
    records: tuple[StageRecord, ...]
    result: ToolResult | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prepared:
    """A verdict after everything that had to be waited for. `approval_id`: what lets it run, still to be used up."""

    judged: Judged
    resources: tuple[Resource | None, ...] = ()
    session_is_open: bool = False
    approval_id: str = ""


class Dispatch:
    """Carries calls out.

    Args:
        pipeline: gives the pipeline in force, at every step anew; raises ToolcribError when there is none.
        server_mark: server id -> what its open session rests on; a session opened under another mark is dropped.
    """

    def __init__(
        self,
        pipeline: Callable[[], Pipeline],
        *,
        pool: ConnectorPool,
        store: Store,
        settings: Callable[[], Settings],
        server_mark: Callable[[str], object],
    ) -> None:
        self._pipeline = pipeline
        self._pool = pool
        self._store = store
        self._settings = settings
        self._server_mark = server_mark
        self._opened_under: dict[str, object] = {}
        self._rate = RateLimiter()

    async def carry_out(
        self,
        call: ToolCall,
        *,
        caller: Callable[[], Caller],
        channel: Channel,
        before_send: Callable[[tuple[StageRecord, ...]], None],
        meta: JsonObject | None = None,
    ) -> Dispatched:
        """Judge the call and, if it may run, run it.

        Args:
            caller: who asks, established anew at every verdict; raises ToolcribError when it is nobody any more.
            before_send: told the records so far just before the request leaves; if it raises, nothing leaves.
        """

        def judge(**more: Any) -> Judged:
            return self._pipeline().judge(call, caller=caller(), channel=channel, **more)

        ready = await self._prepared(call, caller, judge)
        judged, tool = ready.judged, ready.judged.tool
        if not judged.verdict.allowed or tool is None:
            return Dispatched(verdict=judged.verdict, records=judged.records)
        if not ready.session_is_open:
            return self._done(judged, tool, ToolResult(code=Code.UNAVAILABLE, message=_NOT_OPEN), duration_ms=0.0)
        before_send((*judged.records, sent_record(tool.server_id)))
        if ready.approval_id and not self._store.consume_approval(ready.approval_id, now=curation.now()):
            judged = self._asking(judge(resources=ready.resources), call, caller())
            return Dispatched(verdict=judged.verdict, records=judged.records)
        # The store may have kept us waiting; from here to the request nothing does.
        judged = judge(resources=ready.resources, approved=bool(ready.approval_id))
        if not judged.verdict.allowed:
            return Dispatched(verdict=judged.verdict, records=judged.records)
        started = time.perf_counter()
        result = await self._send(tool, call.arguments, trace_meta(meta or {}))
        return self._done(judged, tool, result, duration_ms=(time.perf_counter() - started) * 1e3)

    def _done(self, judged: Judged, tool: Tool, result: ToolResult, *, duration_ms: float) -> Dispatched:
        record = execution_record(
            result,
            server_id=tool.server_id,
            duration_ms=duration_ms,
            record_text=self._settings().trace.record_arguments,
        )
        return Dispatched(verdict=judged.verdict, records=(*judged.records, record), result=result)

    async def _prepared(self, call: ToolCall, caller: Callable[[], Caller], judge: Callable[..., Judged]) -> _Prepared:
        """All that has to be waited for, and the verdict after it."""
        judged = judge()
        if not judged.sound or judged.tool is None:
            return _Prepared(judged=judged)
        if not self._allow_rate(caller(), call):
            return _Prepared(judged=judge(allow_rate=lambda: False))
        server_id = judged.tool.server_id
        for _ in range(_MAX_ROUNDS):
            rules = judged.resource_rules
            resources = await self._named_resources(rules, call)
            session_is_open = await self._open_session(server_id)
            judged = judge(resources=resources)
            if not judged.sound:
                return _Prepared(judged=judged)
            if judged.resource_rules == rules and self._opened_under.get(server_id) == self._server_mark(server_id):
                break
        else:
            return _Prepared(judged=judge(resources=(None,)))
        ready = _Prepared(judged=judged, resources=resources, session_is_open=session_is_open)
        return self._approved(ready, call, caller(), judge) if not judged.verdict.allowed else ready

    def _allow_rate(self, caller: Caller, call: ToolCall) -> bool:
        """Takes one call out of the caller's allowance for this tool, before owners are asked: asking costs, too."""
        key = (caller.tenant, caller.kind.value, caller.subject, caller.on_behalf_of, call.tool_id)
        return self._rate.allow(key, calls_per_minute=self._settings().gate.calls_per_minute)

    async def _open_session(self, server_id: str) -> bool:
        """A session under today's configuration, open before the last verdict, since opening may take long."""
        mark = self._server_mark(server_id)
        if self._opened_under.get(server_id, mark) != mark:
            self._pool.retire(server_id)
        self._opened_under[server_id] = mark
        return await self._pool.ready(server_id)

    async def _named_resources(self, rules: Sequence[ResourceRule], call: ToolCall) -> tuple[Resource | None, ...]:
        """Each resource that the arguments name, as its owner's read tool describes it; None when it cannot say."""
        found: list[Resource | None] = []
        for rule in rules:
            named = lookup_argument(rule, call.arguments)
            if named is not ABSENT:
                found.append(await self._look_up(rule, named) if names_one(named) else None)
        return tuple(found)

    async def _look_up(self, rule: ResourceRule, named: object) -> Resource | None:
        if not (owner := self._in_service(rule.lookup_tool)) or not await self._open_session(owner.server_id):
            return None
        owner, question = self._in_service(rule.lookup_tool), {rule.lookup_argument: named}
        if owner is None or self._pipeline().checker.check(owner, question):
            return None
        return resource_from_answer(rule, named, await self._send(owner, question, None))

    def _in_service(self, tool_id: str) -> Tool | None:
        pipeline = self._pipeline()
        number = pipeline.classes.number_of(tool_id)
        return None if number is None else pipeline.snapshot.tools[number]

    def _approved(self, ready: _Prepared, call: ToolCall, caller: Caller, judge: Callable[..., Judged]) -> _Prepared:
        """With a granted approval for exactly this call, to be used up as the request leaves; else with a request."""
        wanted = self._approval(ready.judged, call, caller)
        if granted := self._standing(wanted, "granted"):
            return replace(ready, judged=judge(resources=ready.resources, approved=True), approval_id=granted)
        return replace(ready, judged=self._requested(ready.judged, wanted))

    def _asking(self, judged: Judged, call: ToolCall, caller: Caller) -> Judged:
        """The verdict, with a request to approve the call where that is what it lacks."""
        if judged.verdict.code is not Code.NEEDS_APPROVAL:
            return judged
        return self._requested(judged, self._approval(judged, call, caller))

    def _requested(self, judged: Judged, wanted: ApprovalRequest) -> Judged:
        """The verdict with the request that an approver may grant: the one that waits already, or this new one."""
        waiting = self._standing(wanted, "pending")
        if not waiting:
            self._store.put_approval(wanted)
        return judged.awaiting(waiting or wanted.approval_id)

    def _standing(self, wanted: ApprovalRequest, state: str) -> str:
        """The id of an unexpired approval of the same call in this state, or ""."""
        known = self._store.approvals(key=wanted.key)
        return next((a.approval_id for a in known if a.state == state and a.expires_at > wanted.created_at), "")

    def _approval(self, judged: Judged, call: ToolCall, caller: Caller) -> ApprovalRequest:
        assert judged.tool is not None
        return approval_request(
            caller,
            judged.tool,
            call.arguments,
            approval_id=uuid.uuid4().hex,
            now=curation.now(),
            ttl_s=self._settings().gate.approval_ttl_s,
        )

    async def _send(self, tool: Tool, arguments: JsonObject, meta: JsonObject | None) -> ToolResult:
        settings = self._settings()
        result = await self._pool.call(
            tool.server_id,
            tool.name,
            arguments,
            timeout_s=settings.server(tool.server_id).call_timeout_s,
            meta=meta,
            input_schema=tool.input_schema,
        )
        return _bounded(result, max_bytes=settings.gate.max_result_bytes)


def plain(value: Any) -> Any:
    """A copy as plain JSON containers, so that nothing can change the arguments between verdict and request.

    What cannot be copied (nested without end) comes back as it is, for the gate to refuse.
    """
    try:
        return _copied(value)
    except RecursionError:
        return value


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copied(inner) for key, inner in value.items()}
    return [_copied(inner) for inner in value] if isinstance(value, list | tuple) else value


def _bounded(result: ToolResult, *, max_bytes: int) -> ToolResult:
    """The result, or an error in its place when it is larger than the operator lets through."""
    if result.raw is None:
        return result
    n_bytes = len(json.dumps(result.raw, ensure_ascii=True))
    if n_bytes <= max_bytes:
        return result
    message = f"The tool answered with {n_bytes} bytes, more than the {max_bytes} that may be passed on. Ask for less."
    return ToolResult(code=Code.TOOL_ERROR, message=message, reached_server=True)
