"""One call's way: the last verdict, and then, if it may run, one request to its server.

Floor 4. Above: `crib.py`, which writes the trace. Below: `pipeline.py` judges, `owners.py` asks, `sending.py` sends.

    judge ─▶ limits ─▶ ask the owners of the resources it names ─▶ open the session ─▶ judge again
          ─▶ the same write before? ─▶ look for an approval, or ask for one
          ─▶ reserve the write ─▶ write the trace ─▶ use the approval up ─▶ judge a last time ─▶ send, once

Invariants
1. Nothing is awaited between the last verdict and the request leaving: what was revoked before is refused (I3).
2. A request that may change something leaves once, whatever comes of it (I9). A read that failed on its way may leave a
   second time, after another verdict and within the deadline of the first.
3. Owners are asked only for a call that would run otherwise, so a refused caller cannot make us ask.
4. A request leaves only after its trace is written: one that is cut off midway is on record as sent (I6).
5. What a call holds (its place in the limits, its line to the server, its reserved write) is given back whatever
   becomes of it; a write that may have left stays reserved.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from toolcrib import curation
from toolcrib.connectors.base import trace_meta
from toolcrib.connectors.pool import ConnectorPool
from toolcrib.errors import ToolcribError
from toolcrib.gate.approval import approval_request
from toolcrib.gate.checks import Named
from toolcrib.gate.circuit import Circuits
from toolcrib.gate.duplicates import Guarded, Reservation, earlier_write, guarded, may_write, reserve
from toolcrib.gate.limits import Limited, Limiter
from toolcrib.gate.offers import holder_key, offered_since
from toolcrib.owners import Owners, Resolver
from toolcrib.pipeline import Judged, Pipeline
from toolcrib.sending import Line, Sender, failed_on_the_way
from toolcrib.settings import Settings
from toolcrib.store.protocol import Store
from toolcrib.trace.records import execution_record, sent_record
from toolcrib.types import (
    ApprovalRequest,
    Caller,
    Channel,
    Code,
    JsonObject,
    ResourceRule,
    StageRecord,
    Tool,
    ToolCall,
    ToolResult,
    Verdict,
)

__all__ = ["Dispatch", "Dispatched", "Resolver", "plain"]

_UNKNOWN_OUTCOME = (
    "The request left, and no answer came: the tool may have done what was asked, or may still do it. Do not send it "
    "again. Look at its effect first."
)
_DENIED = "An approver refused this call. It can be asked for again when the refusal has expired. Nothing was done."
_MAX_ROUNDS = 3
"""How often owners are asked anew because the rules changed while they were asked; then the call is refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatched:
    """What became of a call. `result` is None when the gate refused it."""

    verdict: Verdict
    records: tuple[StageRecord, ...]
    result: ToolResult | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ready:
    """A verdict after everything that had to be waited for.

    Args:
        rules: the resource rules that the owners were asked under. resources: as they answered.
        line: to the server; None for a call that was refused before.
        approval_id: what lets the call run, still to be used up.
    """

    judged: Judged
    rules: tuple[ResourceRule, ...] = ()
    resources: tuple[Named, ...] = ()
    line: Line | None = None
    approval_id: str = ""

    def still_holds(self, judged: Judged, line: Line) -> bool:
        """Whether what was waited for rests on what is in force now: tool, resource rules, configuration."""
        return _same(judged.tool, self.judged.tool) and judged.resource_rules == self.rules and line.is_current


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """One call on its way. `judge` gives today's verdict; `held` gives back what the call holds when it is over."""

    call: ToolCall
    caller: Callable[[], Caller]
    channel: Channel
    judge: Callable[..., Judged]
    held: ExitStack


async def _nobody_is_told(_request: ApprovalRequest, _tool: Tool) -> None:
    """No hook."""


class Dispatch:
    """Carries calls out.

    Args:
        pipeline: gives the pipeline in force, at every step anew; raises ToolcribError when there is none.
        server_mark: server id -> what its open sessions rest on; those opened under another mark are dropped.
        resolvers: resource type -> who knows the owners of such resources.
        on_result: told of every request to a server and its result, for the tool's health.
        on_approval_requested: told of each new request for an approval; awaited, since it may bring a decision.
    """

    def __init__(
        self,
        pipeline: Callable[[], Pipeline],
        *,
        pool: ConnectorPool,
        store: Store,
        settings: Callable[[], Settings],
        server_mark: Callable[[str], object],
        resolvers: Mapping[str, Resolver] | None = None,
        on_result: Callable[[Tool, ToolResult], None] = lambda _tool, _result: None,
        on_approval_requested: Callable[[ApprovalRequest, Tool], Awaitable[None]] = _nobody_is_told,
    ) -> None:
        self._pipeline = pipeline
        self._store = store
        self._settings = settings
        self._on_approval_requested = on_approval_requested
        self._limiter = Limiter()
        self._circuits = Circuits()
        self._sender = Sender(
            pool=pool, settings=settings, server_mark=server_mark, circuits=self._circuits, on_result=on_result
        )
        self._owners = Owners(sender=self._sender, pipeline=pipeline, settings=settings, resolvers=resolvers or {})

    def circuit_is_open(self, server_id: str) -> bool:
        """Whether this server is not asked at present."""
        return self._circuits.is_open(server_id)

    async def carry_out(
        self,
        call: ToolCall,
        *,
        caller: Callable[[], Caller],
        channel: Channel,
        before_send: Callable[[tuple[StageRecord, ...]], None],
        trace_id: str = "",
        meta: JsonObject | None = None,
    ) -> Dispatched:
        """Judge the call and, if it may run, run it.

        Args:
            caller: who asks, established anew at every verdict; raises ToolcribError when it is nobody any more.
            before_send: told the records so far just before the request leaves; if it raises, nothing leaves.
            trace_id: of this call; a later duplicate of it is told so.
        """

        def judge(**more: Any) -> Judged:
            who = caller()
            return self._pipeline().judge(call, caller=who, channel=channel, offered=self._offered(who), **more)

        with ExitStack() as held:
            way = _Way(call=call, caller=caller, channel=channel, judge=judge, held=held)
            ready = await self._prepared(way)
            judged, tool, line = ready.judged, ready.judged.tool, ready.line
            if not judged.verdict.allowed or tool is None or line is None:
                return Dispatched(verdict=judged.verdict, records=judged.records)
            if refusal := line.refusal:
                return self._done(judged, tool, refusal, duration_ms=0.0, attempts=0, check=line.check)
            reservation = self._reserved(way, tool, trace_id=trace_id or uuid.uuid4().hex)
            if isinstance(reservation, str):
                judged = way.judge(resources=ready.resources, earlier_trace=reservation)
                return Dispatched(verdict=judged.verdict, records=judged.records)
            before_send((*judged.records, sent_record(tool.server_id)))
            if ready.approval_id and not self._store.consume_approval(ready.approval_id, now=curation.now()):
                asking, _ = await self._asking(way, judge(resources=ready.resources))
                if asking.verdict.allowed:
                    asking = judge(overtaken=True)  # used by another call, and not needed any more
                return Dispatched(verdict=asking.verdict, records=asking.records)
            # The store may have kept us waiting; from here to the request nothing does.
            judged = judge(resources=ready.resources, approved=bool(ready.approval_id))
            if judged.verdict.allowed and not ready.still_holds(judged, line):
                judged = judge(overtaken=True)
            if not judged.verdict.allowed or judged.tool is None:
                return Dispatched(verdict=judged.verdict, records=judged.records)
            ready = replace(ready, judged=judged)
            return await self._run(way, ready, line, reservation=reservation, meta=trace_meta(meta or {}))

    # --- before the request

    def _offered(self, caller: Caller) -> Callable[[Tool], bool] | None:
        """Asks the store whether a tool was offered to this caller lately; None where that does not matter."""
        gate = self._settings().gate
        if not gate.require_offer:
            return None
        since = offered_since(curation.now(), ttl_s=gate.offer_ttl_s)
        holder = holder_key(caller)
        return lambda tool: self._store.was_offered(holder, tool.tool_id, tool.digest, since=since)

    async def _prepared(self, way: _Way) -> _Ready:
        """All that has to be waited for, and the verdict after it."""
        judged = way.judge()
        if not judged.sound or judged.tool is None:
            return _Ready(judged=judged)
        if limited := self._limited(way, judged.tool):
            return _Ready(judged=way.judge(limited=limited))
        line = self._sender.line(judged.tool.server_id, caller=way.caller())
        way.held.callback(line.close)
        ready = await self._asked_and_open(way, judged, line)
        if not ready.judged.sound or ready.judged.tool is None:
            return ready
        if earlier := earlier_write(self._store, self._guarded(way, ready.judged.tool), now=curation.now()):
            return replace(ready, judged=way.judge(resources=ready.resources, earlier_trace=earlier))
        return ready if ready.judged.verdict.allowed else await self._approved(way, ready, line)

    def _limited(self, way: _Way, tool: Tool) -> Limited | None:
        """Takes the call out of all allowances, before owners are asked: asking costs, too."""
        gate = self._settings().gate
        entered = self._limiter.enter(way.caller(), tool, calls_per_minute=gate.calls_per_minute, limits=gate.limits)
        if isinstance(entered, Limited):
            return entered
        way.held.callback(entered.leave)
        return None

    async def _asked_and_open(self, way: _Way, judged: Judged, line: Line) -> _Ready:
        """The verdict with what the owners said, and the line open: both under the rules and settings of the end."""
        for _ in range(_MAX_ROUNDS):
            rules = judged.resource_rules
            resources = await self._owners.named(rules, way.call, way.caller())
            await line.open()
            judged = way.judge(resources=resources)
            if not judged.sound:
                return _Ready(judged=judged)
            ready = _Ready(judged=judged, rules=rules, resources=resources, line=line)
            if ready.still_holds(judged, line):
                return ready
        return _Ready(judged=way.judge(overtaken=True))

    def _guarded(self, way: _Way, tool: Tool) -> tuple[Guarded, ...]:
        """The keys under which this write is held, so that it runs once."""
        gate = self._settings().gate
        return guarded(
            way.caller(),
            tool,
            way.call.arguments,
            idempotency_key=way.call.idempotency_key,
            window_s=gate.duplicate_window_s,
            key_window_s=gate.idempotency_window_s,
        )

    def _reserved(self, way: _Way, tool: Tool, *, trace_id: str) -> Reservation | str | None:
        """The write held for this call; the trace of the call that made it already; None where there is no guard."""
        keys = self._guarded(way, tool)
        if not keys:
            return None
        may_take_s = self._settings().server(tool.server_id).call_timeout_s
        reservation = reserve(self._store, keys, now=curation.now(), may_take_s=may_take_s, trace_id=trace_id)
        if isinstance(reservation, Reservation):
            way.held.callback(lambda: reservation.close(now=curation.now()))
        return reservation

    # --- approvals

    async def _approved(self, way: _Way, ready: _Ready, line: Line) -> _Ready:
        """With a granted approval for exactly this call, to be used up as the request leaves; else with a request."""
        if granted := self._standing(self._approval(way, ready.judged), "granted"):
            return self._with(granted, way, ready)
        asking, granted = await self._asking(way, ready.judged)
        if not granted:
            return replace(ready, judged=asking)
        # Somebody decided while we waited, and meanwhile anything may have changed.
        judged = way.judge()
        again = await self._asked_and_open(way, judged, line) if judged.sound else _Ready(judged=judged)
        if not again.judged.sound:
            return again
        if not _same(again.judged.tool, ready.judged.tool):
            return _Ready(judged=way.judge(overtaken=True))  # what was granted is another definition
        return self._with(granted, way, again)

    def _with(self, approval_id: str, way: _Way, ready: _Ready) -> _Ready:
        judged = way.judge(resources=ready.resources, approved=True)
        return replace(ready, judged=judged, approval_id=approval_id)

    async def _asking(self, way: _Way, judged: Judged) -> tuple[Judged, str]:
        """The verdict, with a request to approve the call where that is what it lacks: the one that waits already, or a
        new one. The second value is the approval, where asking brought one at once."""
        if judged.verdict.code is not Code.NEEDS_APPROVAL or judged.tool is None:
            return judged, ""
        wanted = self._approval(way, judged)
        if denied := self._standing(wanted, "denied"):
            return judged.awaiting(denied, message=_DENIED), ""
        if waiting := self._standing(wanted, "pending"):
            return judged.awaiting(waiting), ""
        self._store.put_approval(wanted)
        await self._on_approval_requested(wanted, judged.tool)
        return judged.awaiting(wanted.approval_id), self._standing(wanted, "granted")

    def _standing(self, wanted: ApprovalRequest, state: str) -> str:
        """The id of an unexpired approval of the same call in this state, or ""."""
        known = self._store.approvals(key=wanted.key)
        return next((a.approval_id for a in known if a.state == state and a.expires_at > wanted.created_at), "")

    def _approval(self, way: _Way, judged: Judged) -> ApprovalRequest:
        assert judged.tool is not None
        return approval_request(
            way.caller(),
            judged.tool,
            way.call.arguments,
            approval_id=uuid.uuid4().hex,
            now=curation.now(),
            ttl_s=self._settings().gate.approval_ttl_s,
            channel=way.channel,
            policies=judged.verdict.policies,
        )

    # --- the request

    async def _run(
        self, way: _Way, ready: _Ready, line: Line, *, reservation: Reservation | None, meta: JsonObject
    ) -> Dispatched:
        """Send the call that was just allowed, and a read that failed on its way once more."""
        judged, tool = ready.judged, ready.judged.tool
        assert tool is not None
        timeout_s = self._settings().server(tool.server_id).call_timeout_s
        started, attempts = time.perf_counter(), 1
        if reservation is not None:
            reservation.sent()
        result = await line.send(tool, way.call.arguments, timeout_s=timeout_s, meta=meta)
        if reservation is not None and (result.refused or not result.reached_server):
            reservation.turned_away()
        line.close()
        left_s = timeout_s - (time.perf_counter() - started)
        if failed_on_the_way(result) and not may_write(tool) and self._settings().gate.retry_reads and left_s > 0:
            again = await self._second_attempt(way, ready, timeout_s=left_s, meta=meta)
            if again is not None:
                judged, result, attempts = *again, 2
        if failed_on_the_way(result) and result.reached_server and not result.refused and may_write(tool):
            result = ToolResult(code=Code.UNKNOWN_OUTCOME, message=_UNKNOWN_OUTCOME, reached_server=True)
        duration_ms = (time.perf_counter() - started) * 1e3
        return self._done(judged, tool, result, duration_ms=duration_ms, attempts=attempts)

    async def _second_attempt(
        self, way: _Way, ready: _Ready, *, timeout_s: float, meta: JsonObject
    ) -> tuple[Judged, ToolResult] | None:
        """A read once more, judged again; None where nothing more was sent and the first failure is the answer."""
        first = ready.judged.tool
        assert first is not None
        until = time.perf_counter() + timeout_s
        try:
            line = self._sender.line(first.server_id, caller=way.caller())
        except ToolcribError:
            return None  # nobody's call any more
        try:
            if not await _within(line.open(), timeout_s=timeout_s) or not line.is_current:
                return None
            judged = way.judge(resources=ready.resources)
            tool, left_s = judged.tool, until - time.perf_counter()
            if not judged.verdict.allowed or not ready.still_holds(judged, line) or left_s <= 0:
                return None
            if tool is None or tool.digest != first.digest or may_write(tool):
                return None
            return judged, await line.send(tool, way.call.arguments, timeout_s=left_s, meta=meta, again=True)
        except ToolcribError:
            return None  # or nothing is in force any more: the first request stays on record
        finally:
            line.close()

    def _done(
        self,
        judged: Judged,
        tool: Tool,
        result: ToolResult,
        *,
        duration_ms: float,
        attempts: int,
        check: str = "",
    ) -> Dispatched:
        if judged.renamed:
            result = replace(result, notes=(*result.notes, judged.renamed))
        record = execution_record(
            result,
            server_id=tool.server_id,
            duration_ms=duration_ms,
            record_text=self._settings().trace.record_arguments,
            attempts=attempts,
            check=check,
        )
        return Dispatched(verdict=judged.verdict, records=(*judged.records, record), result=result)


def _same(tool: Tool | None, other: Tool | None) -> bool:
    """The same definition under the same words of the operator."""
    return tool is not None and other is not None and (tool.digest, tool.metadata) == (other.digest, other.metadata)


async def _within(opening: Awaitable[bool], *, timeout_s: float) -> bool:
    try:
        async with asyncio.timeout(timeout_s):
            return await opening
    except TimeoutError:
        return False


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
