"""One call's way: the last verdict, and then, if it may run, one request to its server.

Floor 4. Above: `crib.py`, which writes the trace. Below: `pipeline.py` judges, `connectors/pool.py` sends.

    judge ─▶ rate ─▶ ask the owners of the resources it names ─▶ open the session ─▶ judge again ─▶ use an approval up
          ─▶ write the trace ─▶ send, once

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
from dataclasses import dataclass
from functools import partial
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

_MAX_ROUNDS = 3
"""How often owners are asked anew because the rules changed while they were asked; then the call is refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatched:
    """What became of a call. `result` is None when the gate refused it."""

    verdict: Verdict
    records: tuple[StageRecord, ...]
    result: ToolResult | None = None


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
        caller: Caller,
        channel: Channel,
        before_send: Callable[[tuple[StageRecord, ...]], None],
        meta: JsonObject | None = None,
    ) -> Dispatched:
        """Judge the call and, if it may run, run it.

        Args:
            before_send: told the records so far just before the request leaves; if it raises, nothing leaves.
        """
        judged = await self._judge(call, caller, channel)
        if not judged.verdict.allowed or judged.tool is None:
            return Dispatched(verdict=judged.verdict, records=judged.records)
        before_send((*judged.records, sent_record(judged.tool.server_id)))
        started = time.perf_counter()
        result = await self._send(judged.tool, call.arguments, trace_meta(meta or {}))
        duration_ms = (time.perf_counter() - started) * 1e3
        record = execution_record(
            result,
            server_id=judged.tool.server_id,
            duration_ms=duration_ms,
            record_text=self._settings().trace.record_arguments,
        )
        return Dispatched(verdict=judged.verdict, records=(*judged.records, record), result=result)

    async def _judge(self, call: ToolCall, caller: Caller, channel: Channel) -> Judged:
        """The last verdict before the call leaves. Whatever is awaited comes before it."""
        judged = self._pipeline().judge(call, caller=caller, channel=channel)
        if not judged.sound or judged.tool is None:
            return judged
        if not self._allow_rate(caller, call):
            return self._pipeline().judge(call, caller=caller, channel=channel, allow_rate=lambda: False)
        resources: tuple[Resource | None, ...] = ()
        for _ in range(_MAX_ROUNDS):
            rules = judged.resource_rules
            resources = await self._named_resources(rules, call)
            await self._open_session(judged.tool.server_id)
            judged = self._pipeline().judge(call, caller=caller, channel=channel, resources=resources)
            if judged.tool is None or judged.resource_rules == rules:
                break
        else:
            return self._pipeline().judge(call, caller=caller, channel=channel, resources=(None,))
        if judged.verdict.code is Code.NEEDS_APPROVAL and judged.tool is not None:
            again = partial(self._pipeline().judge, call, caller=caller, channel=channel, resources=resources)
            return self._with_approval(judged, judged.tool, call, caller, again)
        return judged

    def _allow_rate(self, caller: Caller, call: ToolCall) -> bool:
        """Takes one call out of the caller's allowance for this tool, before owners are asked: asking costs, too."""
        key = (caller.tenant, caller.kind.value, caller.subject, caller.on_behalf_of, call.tool_id)
        return self._rate.allow(key, calls_per_minute=self._settings().gate.calls_per_minute)

    async def _open_session(self, server_id: str) -> None:
        """A session under today's configuration, open before the last verdict, since opening may take long."""
        mark = self._server_mark(server_id)
        if self._opened_under.get(server_id, mark) != mark:
            await self._pool.drop(server_id)
        self._opened_under[server_id] = mark
        await self._pool.ready(server_id)

    async def _named_resources(self, rules: Sequence[ResourceRule], call: ToolCall) -> tuple[Resource | None, ...]:
        """Each resource that the arguments name, as its owner's read tool describes it; None when it cannot say."""
        found: list[Resource | None] = []
        for rule in rules:
            named = lookup_argument(rule, call.arguments)
            if named is not ABSENT:
                found.append(await self._look_up(rule, named) if names_one(named) else None)
        return tuple(found)

    async def _look_up(self, rule: ResourceRule, named: object) -> Resource | None:
        pipeline = self._pipeline()
        number = pipeline.classes.number_of(rule.lookup_tool)
        if number is None:
            return None
        owner, question = pipeline.snapshot.tools[number], {rule.lookup_argument: named}
        if pipeline.checker.check(owner, question):
            return None
        await self._open_session(owner.server_id)
        return resource_from_answer(rule, named, await self._send(owner, question, None))

    def _with_approval(
        self, judged: Judged, tool: Tool, call: ToolCall, caller: Caller, again: Callable[..., Judged]
    ) -> Judged:
        """Use a granted approval for exactly this call up, or leave a request for one."""
        now = curation.now()
        ttl_s = self._settings().gate.approval_ttl_s
        wanted = approval_request(caller, tool, call.arguments, approval_id=uuid.uuid4().hex, now=now, ttl_s=ttl_s)
        known = [a for a in self._store.approvals(key=wanted.key) if a.expires_at > wanted.created_at]
        for granted in (a for a in known if a.state == "granted"):
            approved = again(approved=True)
            if not approved.verdict.allowed or self._store.consume_approval(granted.approval_id, now=now):
                return approved
        pending = next((a for a in known if a.state == "pending"), None)
        if pending is None:
            self._store.put_approval(wanted)
        return judged.awaiting((pending or wanted).approval_id)

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
