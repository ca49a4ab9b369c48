"""The assembled object: settings, store, catalog, policy, index and servers, behind a handful of verbs.

Floor 4. Above: `server/` and `cli/`. Below: `pipeline.py` decides; this file keeps the world it decides about.

    crib = Crib.open("toolcrib.toml")
    offer = crib.select("pause the nightly backup")
    outcome = await crib.call(offer.tools[0].tool.tool_id, {"schedule": "nightly"})

Invariants
1. What is decided on is what is written down now: settings, policy, lock and publication are looked at on every
   request, and a changed one makes a new pipeline. If it can't be made, nothing is permitted (I2), and the outcome says
   so.
2. Every select and call leaves a trace before its answer is returned (I6).
3. A call leaves for a server once, after the last verdict, and never again (I9).
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from toolcrib import curation
from toolcrib.approval_desk import ApprovalDesk
from toolcrib.approvals import Decided
from toolcrib.assembly import Assembly
from toolcrib.callers import Callers
from toolcrib.connectors.base import Connector
from toolcrib.connectors.listing import ListingProgress
from toolcrib.connectors.pool import ConnectorPool
from toolcrib.dispatch import Dispatch, Dispatched, Resolver, plain
from toolcrib.errors import ConfigError, PolicyError, StoreError, ToolcribError, TraceError, UnknownCallerError
from toolcrib.everything import select_everything
from toolcrib.gate.offers import holder_key
from toolcrib.in_force import InForce
from toolcrib.live import Live
from toolcrib.looking_back import Against, Replayed, ReplayedMany, Replays, explained, is_answered_select, summed
from toolcrib.offer import CallOutcome, Offer
from toolcrib.pipeline import CallerView, Pipeline, Selected
from toolcrib.providers.names import NameTarget, public_name
from toolcrib.refreshing import Refreshing, RefreshReport
from toolcrib.review.signers import Signing
from toolcrib.review_desk import ReviewDesk
from toolcrib.review_queue import ReviewItem
from toolcrib.routing.health import HealthTracker
from toolcrib.selection.outcomes import unavailable
from toolcrib.sessions import Sessions
from toolcrib.settings import Settings, load_settings
from toolcrib.shadow import Answered, Shadow
from toolcrib.store.protocol import Store
from toolcrib.store.sqlite import SqliteStore
from toolcrib.trace.explain import Explanation
from toolcrib.trace.records import cancelled_record
from toolcrib.types import (
    LOCAL,
    MAX_LIMIT,
    ApprovalRequest,
    Caller,
    CatalogSnapshot,
    Channel,
    Code,
    JsonObject,
    LocalOperator,
    Presented,
    Provenance,
    Selection,
    SelectRequest,
    Stage,
    StageRecord,
    Tool,
    ToolCall,
    ToolHealth,
    ToolResult,
    Trace,
    Verdict,
    WithheldTool,
)

_MAX_TASK_CHARS = 100_000
_MAX_TRACES = 1_000_000
"""Traces that are looked through for selects to replay."""
_log = logging.getLogger(__name__)


class Crib:
    """One crib: a configuration file and what lies beside it. Use from one event loop; `select` from any thread."""

    def __init__(
        self,
        settings: Settings,
        *,
        store: Store,
        connectors: Mapping[str, Connector] | None = None,
        resolvers: Mapping[str, Resolver] | None = None,
        on_progress: Callable[[str], None] | None = None,
    ) -> None:
        self._store = store
        self._given = dict(connectors or {})
        self._on_progress = on_progress or (lambda _text: None)
        self._assembly = Assembly(store, on_progress=self._on_progress)
        self._force = InForce(settings, assembly=self._assembly, store=store)
        self._callers = Callers(lambda: self.settings, store)
        self._reviews = ReviewDesk(
            store,
            assembly=self._assembly,
            settings=self._force.reloaded,
            on_progress=on_progress or (lambda _text: None),
        )
        self._desk = ApprovalDesk(store, pipeline=self.pipeline, settings=lambda: self.settings, callers=self._callers)
        self._sessions = Sessions(lambda: self.settings, given=self._given)
        self._refreshing = Refreshing(store, force=self._force, assembly=self._assembly, given=self._given)
        self._pool = ConnectorPool(self._sessions.opened, owner_of=self._sessions.owner, fault_of=self._session_fault)
        self._health = HealthTracker()
        self._shadow = Shadow(store, health=self._health_of, on_progress=on_progress or (lambda _text: None))
        self._dispatch = Dispatch(
            self.pipeline,
            pool=self._pool,
            store=store,
            settings=lambda: self.settings,
            server_mark=self._sessions.mark,
            resolvers=resolvers or {},
            on_result=self._note_result,
            on_approval_requested=self._desk.ask_webhook,
        )

    @classmethod
    def open(
        cls,
        path: str | Path = "toolcrib.toml",
        *,
        connectors: Mapping[str, Connector] | None = None,
        resolvers: Mapping[str, Resolver] | None = None,
        on_progress: Callable[[str], None] | None = None,
    ) -> Crib:
        """A crib from its configuration file, or from the folder that holds `toolcrib.toml`.

        Args:
            connectors: server id -> connector to use instead of the configured way to reach it.
            resolvers: resource type -> who knows such a resource's tenant and owner, for [[resources]] rows that name
                no lookup; given its id and the caller, it answers with the resource, or None when there is none.
            on_progress: told in a line what long work is at.
        Raises:
            ConfigError: the configuration cannot be used.
            StoreError: the store cannot be opened.
        """
        settings = load_settings(Path(path))
        store = SqliteStore(settings.store / "store.db")
        store.prune(keep_days=settings.trace.keep_days)
        return cls(settings, store=store, connectors=connectors, resolvers=resolvers, on_progress=on_progress)

    async def aclose(self) -> None:
        """End all sessions with servers and close the store."""
        await self._pool.aclose()
        await asyncio.to_thread(self._shadow.close)
        self._store.close()

    def __enter__(self) -> Self:
        """For those who call no server: `with` closes the store; `async with` ends sessions, too."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trail: TracebackType | None
    ) -> None:
        self._shadow.close()
        self._store.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trail: TracebackType | None
    ) -> None:
        await self.aclose()

    # --- what is in force

    @property
    def settings(self) -> Settings:
        """The settings of the pipeline in force, or the last that could be read."""
        return self._force.settings

    @property
    def store(self) -> Store:
        return self._store

    @property
    def name(self) -> str:
        return self.settings.crib.name

    @property
    def local_caller(self) -> Caller:
        """The local operator, as the configuration describes it now.

        Raises:
            ToolcribError: nothing valid is in force.
        """
        self.pipeline()
        return self._callers.local()

    def bearer_caller(self, token: str) -> Caller | None:
        """The caller that a bearer token stands for now, or None.

        Raises:
            ToolcribError: nothing valid is in force, or a configured token cannot be read or used.
        """
        self.pipeline()
        return self._callers.bearer(token)

    async def identify(self, presented: Presented) -> Caller | None:
        """Who a request over HTTP is: the holder of a token, an API key or a JWT, or whoever a trusted proxy reports.

        Returns:
            The caller, or None for nobody known.
        Raises:
            ToolcribError: nothing valid is in force, or it cannot be told.
        """
        self.pipeline()
        return await self._callers.identify(presented)

    def unreadable_tokens(self) -> tuple[ConfigError, ...]:
        """Why configured tokens cannot be read now; each costs its own caller only (I12)."""
        return self._callers.unreadable_tokens()

    def pipeline(self) -> Pipeline:
        """The pipeline in force, rebuilt when anything it rests on has changed.

        Raises:
            ToolcribError: no valid catalog or policy; nothing is permitted.
        """
        return self._force.pipeline()

    @property
    def shadow(self) -> Shadow:
        """What tries the candidate of `[shadow]`; nothing of it reaches a caller."""
        return self._shadow

    # --- asking

    def view(self, caller: Caller | LocalOperator = LOCAL, channel: Channel = Channel.LIBRARY) -> CallerView:
        """What this caller can reach. Raises ToolcribError when nothing valid is in force."""
        pipeline = self.pipeline()
        return pipeline.view(self._callers.established(caller), channel)

    def tools(self, caller: Caller | LocalOperator = LOCAL, channel: Channel = Channel.LIBRARY) -> tuple[Tool, ...]:
        """The tools that this caller may discover, sorted by id."""
        return self.view(caller, channel).tools

    def select(
        self,
        task: str,
        *,
        caller: Caller | LocalOperator = LOCAL,
        queries: Sequence[str] = (),
        limit: int | None = None,
        token_budget: int | None = None,
        channel: Channel = Channel.LIBRARY,
    ) -> Offer:
        """The few tools that could help with `task` and that this caller may use.

        Args:
            task: what is wanted, in any words and any script.
            queries: focused parts of the task, if the caller knows them; each is covered before one is covered twice.
            limit: tools at most, 1 to 50. token_budget: tokens at most, 1 or more.
        Returns:
            An offer; when nothing fits or nothing valid is in force its outcome says so and its tools are empty.
        Raises:
            ConfigError: `limit` or `token_budget` is out of range.
        """
        request = self._request(task, queries=queries, limit=limit, token_budget=token_budget)
        try:
            pipeline = self.pipeline()
            who = self._callers.established(caller)
        except ToolcribError as fault:
            return self._unavailable(request, caller, channel, fault)
        settings, began = self.settings, time.perf_counter()
        if settings.shadow.present == "all":
            done = _everything(pipeline, request, limit=limit, token_budget=token_budget, caller=who, channel=channel)
        else:
            done = pipeline.select(request, caller=who, channel=channel, health=self._health_of)
        latency_ms = 1_000 * (time.perf_counter() - began)
        self.note_offered([chosen.tool for chosen in done.selection.tools], caller=who)
        trace_id = self._write("select", who, channel, done.records)
        self._shadow.note(
            Answered(
                trace_id=trace_id,
                request=request,
                limit=limit,
                token_budget=token_budget,
                caller=who,
                channel=channel,
                done=done,
                pipeline=pipeline,
                settings=settings,
                latency_ms=latency_ms,
            )
        )
        return Offer(
            selection=done.selection,
            catalog_version=done.view.version,
            policy_version=done.view.policy_version,
            index_version=done.view.index_version,
            trace_id=trace_id,
        )

    def preview(self, task: str, *, caller: Caller, channel: Channel = Channel.LIBRARY) -> Selection:
        """What `select` would give, without a trace: for measuring."""
        request = self._request(task, queries=(), limit=None, token_budget=None)
        pipeline = self.pipeline()
        if self.settings.shadow.present == "all":
            return _everything(
                pipeline, request, limit=None, token_budget=None, caller=caller, channel=channel
            ).selection
        return pipeline.select(request, caller=caller, channel=channel).selection

    def note_offered(self, tools: Sequence[Tool], *, caller: Caller) -> None:
        """Remember that this caller was shown these definitions, where a call needs that (`[gate] require_offer`).

        `select` does it by itself; whoever lists or describes tools to a model says so here.
        """
        if self.settings.gate.require_offer and tools:
            offers = [(tool.tool_id, tool.digest) for tool in tools]
            self._store.put_offers(holder_key(caller), offers, at=curation.now())

    def missing_scopes(self, name: str, *, caller: Caller, channel: Channel) -> tuple[str, ...]:
        """The scopes with which this caller could call a tool that it may know of, and cannot call without them.

        Args:
            name: the tool's id, or the name that MCP clients know it by.
        Returns:
            All scopes the tool requires, sorted; none for a tool that the caller may not know of, or that more than
            scopes stands before.
        """
        pipeline = self.pipeline()
        view = pipeline.view(self._callers.established(caller), channel)
        for number in np.flatnonzero(view.disclosed):
            tool = pipeline.snapshot.tools[number]
            if name in (tool.tool_id, public_name(tool.tool_id, target=NameTarget.MCP)):
                return pipeline.would_suffice(tool, caller=caller, channel=channel)
        return ()

    def _request(
        self, task: str, *, queries: Sequence[str], limit: int | None, token_budget: int | None
    ) -> SelectRequest:
        chosen = self.settings.selection
        limit = chosen.limit if limit is None else limit
        token_budget = chosen.token_budget if token_budget is None else token_budget
        if not 1 <= limit <= MAX_LIMIT:
            raise ConfigError(f"limit must be 1 to {MAX_LIMIT}, got {limit}")
        if token_budget < 1:
            raise ConfigError(f"token_budget must be 1 or more, got {token_budget}")
        return SelectRequest(
            task=task[:_MAX_TASK_CHARS], queries=tuple(queries), limit=limit, token_budget=token_budget
        )

    def _unavailable(
        self, request: SelectRequest, caller: Caller | LocalOperator, channel: Channel, fault: ToolcribError
    ) -> Offer:
        selection = unavailable(request)
        selection = replace(selection, message=_said_of(fault, selection.message))
        return Offer(
            selection=selection,
            catalog_version="",
            policy_version="",
            index_version="",
            trace_id=self._write("select", _traced(caller), channel, _fault_records(fault, message=selection.message)),
        )

    async def call(
        self,
        tool_id: str,
        arguments: JsonObject,
        *,
        caller: Caller | LocalOperator = LOCAL,
        channel: Channel = Channel.LIBRARY,
        offered_digest: str = "",
        idempotency_key: str = "",
        meta: JsonObject | None = None,
    ) -> CallOutcome:
        """Judge one call afresh and, if it may run, run it once.

        Args:
            offered_digest: the digest the tool was offered under; if it is another now, the call is a conflict.
            idempotency_key: two writes with one key are one, with two keys two, whatever their arguments; without a
                key, equal ones within `[gate] duplicate_window_s` are one.
        Returns:
            The outcome; refusals are values, with a code and words the caller may see.
        """
        call = ToolCall(
            tool_id=tool_id,
            arguments=plain(arguments),
            offered_digest=offered_digest,
            idempotency_key=idempotency_key,
        )
        trace_id = uuid.uuid4().hex
        await self._refreshing.settled(tool_id)
        try:
            self.pipeline()
            who = self._callers.established(caller)
            done = await self._dispatch.carry_out(
                call,
                caller=lambda: self._callers.established(caller),
                channel=channel,
                meta=meta,
                trace_id=trace_id,
                before_send=lambda records: self._put("call", who, channel, records, trace_id),
            )
        except ToolcribError as fault:
            message = _said_of(fault, "Nothing can be called at the moment. Try again later.")
            verdict = Verdict(code=Code.UNAVAILABLE, message=message, check="pipeline")
            # Nothing left: once a request leaves, whatever happens is a result.
            self._put("call", _traced(caller), channel, _fault_records(fault, message=message), trace_id)
            return CallOutcome(code=verdict.code, message=message, verdict=verdict, result=None, trace_id=trace_id)
        except asyncio.CancelledError:
            if self._store.trace(trace_id) is None:
                self._put("call", who, channel, (cancelled_record(call),), trace_id)
            raise
        self._put_after_call(who, channel, done, trace_id)
        answer = done.result or done.verdict
        return CallOutcome(
            code=answer.code, message=answer.message, verdict=done.verdict, result=done.result, trace_id=trace_id
        )

    def _put_after_call(self, caller: Caller, channel: Channel, done: Dispatched, trace_id: str) -> None:
        """Complete the trace. What a tool did cannot be taken back, so its answer must not be lost with the trace."""
        try:
            self._put("call", caller, channel, done.records, trace_id)
        except StoreError as fault:
            if done.result is None:
                raise
            _log.error("the answer of a call could not be written to its trace %s: %s", trace_id, fault)

    # --- keeping

    async def refresh(
        self,
        *,
        servers: Sequence[str] = (),
        accept_empty: bool = False,
        on_progress: Callable[[ListingProgress], None] | None = None,
    ) -> RefreshReport:
        """Ask the servers for all their tools and publish what they listed, whole. Approves nothing.

        Args:
            servers: only these; all enabled ones if empty.
            accept_empty: a server that lists nothing where it had tools has none any more; else it keeps what it had.
        Raises:
            ConfigError: an unknown server id.
        """
        return await self._refreshing.refresh(servers=servers, accept_empty=accept_empty, on_progress=on_progress)

    @asynccontextmanager
    async def watch(self, on_published: Callable[[], Awaitable[object]] | None = None) -> AsyncIterator[None]:
        """Keeps the servers' lists fresh, inside: as `[refresh]` says, and when a server says that its list changed.

        Args:
            on_published: awaited after each list that is another one.
        """
        live = Live(
            self._refreshing,
            settings=self._force.settings_on_disk,
            sessions=lambda settings: Sessions(lambda: settings, given=self._given),
            given=self._given.keys(),
            tell=self._on_progress,
            on_published=on_published,
        )
        watching = asyncio.create_task(live.run(), name="toolcrib watches servers")
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.wait([watching])
            if not watching.cancelled() and (fault := watching.exception()) is not None:
                _log.error("watching the servers ended early: %s", fault)

    def snapshot(self) -> CatalogSnapshot:
        """The operator's view of the catalog: in service and withheld. Needs no valid policy."""
        return self._assembly.snapshot(self._force.reloaded())

    def review(self) -> tuple[ReviewItem, ...]:
        """The definitions that wait for a reviewer or could not be taken in, the gravest findings first."""
        return self._reviews.queue().items

    @property
    def review_desk(self) -> ReviewDesk:
        """What waits, servers too, and every way to decide about it."""
        return self._reviews

    def approve(
        self, tool_ids: Sequence[str] | None, *, reviewer: str, reason: str = "", signer: Signing | None = None
    ) -> tuple[WithheldTool, ...]:
        """Put definitions into service: those named, or with None all that wait and were not rejected.

        Args:
            signer: who signs, from `crib.review_desk.signer(key_file)`.
        """
        return self._reviews.approve(tool_ids, reviewer=reviewer, reason=reason, signer=signer)

    def approve_server(
        self, server_id: str, *, digest: str, reviewer: str, reason: str = "", signer: Signing | None = None
    ) -> bool:
        """Pin what a server is now.

        Args:
            digest: of the provenance that the reviewer was shown (`ServerReview.digest`).
        Returns:
            False where it is pinned already, and signed by this signer.
        """
        return self._reviews.approve_server(server_id, digest=digest, reviewer=reviewer, reason=reason, signer=signer)

    def reject(self, tool_ids: Sequence[str], *, reviewer: str, reason: str = "") -> tuple[str, ...]:
        """Refuse definitions, or take approved ones out of service."""
        return self._reviews.reject(tool_ids, reviewer=reviewer, reason=reason)

    def definition_of(self, digest: str) -> Any:
        """The definition with this digest, as it was received, or None."""
        return self._store.definition(digest)

    def approvals(self) -> tuple[ApprovalRequest, ...]:
        """Requests to let one exact call run, newest first."""
        return self._store.approvals()

    def decide_approval(
        self, approval_id: str, *, granted: bool, approver: Caller, channel: Channel = Channel.CLI
    ) -> Decided:
        """Grant or deny a pending request, by its id or a unique beginning of it. Denying needs no valid policy.

        Args:
            approver: who decides; never whoever asks, unless policy says so.
        """
        return self._desk.decide(approval_id, granted=granted, approver=approver, channel=channel)

    def own_approval(self, approval_id: str, *, caller: Caller, channel: Channel) -> ApprovalRequest | None:
        """The caller's own waiting request, where configuration and policy let the caller decide it itself."""
        return self._desk.own(approval_id, caller=caller, channel=channel)

    async def answer_approval(self, approval_id: str, *, granted: bool, caller: Caller, channel: Channel) -> bool:
        """A caller's decision about its own waiting request; False, and nothing is decided, where it may not."""
        return self._desk.answer(approval_id, granted=granted, caller=caller, channel=channel)

    # --- looking back

    def trace(self, trace_id: str) -> Trace:
        """Raises TraceError when there is none."""
        trace = self._store.trace(trace_id)
        if trace is None:
            raise TraceError(f"no trace {trace_id!r}", hint="see `toolcrib trace list`")
        return trace

    def replay(self, trace_id: str, *, against: Against = "recorded") -> Replayed:
        """The select of that trace once more, and what came out otherwise.

        Args:
            against: `recorded`: the versions it rested on, as far as they are kept; `present`: what is in force now.
        Raises:
            TraceError: there is no such trace, or it holds no answered select.
        """
        return self._replays().replay(self.trace(trace_id), against=against)

    def replay_since(self, since: str, *, limit: int = 1_000, against: Against = "recorded") -> ReplayedMany:
        """The selects of this time (ISO 8601, UTC) and later once more, the newest `limit` of them, summed up."""
        replays = self._replays()
        replayed: list[Replayed] = []
        n_unanswered = 0
        for trace in self._store.each_trace(since=since, limit=_MAX_TRACES):
            if len(replayed) == limit:
                break
            if is_answered_select(trace):
                replayed.append(replays.replay(trace, against=against))
            elif trace.kind == "select":
                n_unanswered += 1
        return summed(replayed, against=against, n_unanswered=n_unanswered)

    def _replays(self) -> Replays:
        pipeline = self.pipeline()
        return Replays(self._store, assembly=self._assembly, settings=self.settings, in_force=pipeline)

    def explain(self, trace_id: str, *, tool_id: str) -> Explanation:
        """Why the caller of that trace did or did not get this tool: the operator's view."""
        return explained(self.trace(trace_id), tool_id=tool_id, store=self._store, pipeline=self.pipeline)

    # --- helpers

    def _health_of(self, tools: Sequence[Tool]) -> Mapping[str, ToolHealth]:
        """Those of these tools that something speaks against: their recent calls, or a server that is left alone."""
        limits = self.settings.routing
        self._health.configure(
            window_s=limits.health_window_s,
            min_calls=limits.health_min_calls,
            max_failed=limits.health_max_failed,
            max_late=limits.health_max_late,
        )
        is_open = self._dispatch.circuit_is_open
        resting = {server_id for server_id in {tool.server_id for tool in tools} if is_open(server_id)}
        return self._health.report((tool.tool_id for tool in tools), open_servers=resting)

    def _session_fault(self, server_id: str, found: Provenance) -> str:
        """How what runs behind a session differs from what ran when the server's tools were listed, or ""."""
        if server_id in self._given or self.settings.server(server_id).on_provenance == "warn":
            return ""
        status = next((one for one in self.pipeline().snapshot.servers if one.server_id == server_id), None)
        if status is None or status.provenance is None or status.provenance.compared == found.compared:
            return ""
        return "it is not what ran when its tools were listed; run `toolcrib refresh`"

    def _note_result(self, tool: Tool, result: ToolResult) -> None:
        """What the tool's health is told of a call. What a caller got wrong is no failure of the tool."""
        failed = result.code in (Code.UNAVAILABLE, Code.TIMEOUT)
        self._health.record(tool.tool_id, failed=failed, late=result.code is Code.TIMEOUT)

    def _write(self, kind: Any, caller: Caller, channel: Channel, records: Sequence[StageRecord]) -> str:
        trace_id = uuid.uuid4().hex
        self._put(kind, caller, channel, records, trace_id)
        return trace_id

    def _put(self, kind: Any, caller: Caller, channel: Channel, records: Sequence[StageRecord], trace_id: str) -> None:
        self._store.put_trace(
            Trace(
                trace_id=trace_id,
                kind=kind,
                at=curation.now(),
                subject=caller.subject,
                on_behalf_of=caller.on_behalf_of,
                tenant=caller.tenant,
                channel=channel,
                records=tuple(records),
            )
        )


def _everything(
    pipeline: Pipeline,
    request: SelectRequest,
    *,
    limit: int | None,
    token_budget: int | None,
    caller: Caller,
    channel: Channel,
) -> Selected:
    """All that is in reach, under the caller's own ceilings alone (`[shadow] present = "all"`)."""
    return select_everything(
        pipeline,
        task=request.task,
        queries=request.queries,
        limit=limit,
        token_budget=token_budget,
        caller=caller,
        channel=channel,
    )


def _traced(caller: object) -> Caller:
    """Whom the trace of a request names that could not be answered."""
    return caller if isinstance(caller, Caller) else Caller(subject="local" if caller is LOCAL else "nobody")


def _said_of(fault: ToolcribError, otherwise: str) -> str:
    """What a caller is told of a fault: that it is itself not let in, or only that nothing can be answered."""
    return "You are not known here, or not let in any more." if isinstance(fault, UnknownCallerError) else otherwise


def _fault_records(fault: ToolcribError, *, message: str) -> tuple[StageRecord, ...]:
    """Which stage could not work: the operator sees why, the caller sees that."""
    stage = Stage.ELIGIBILITY if isinstance(fault, PolicyError) else Stage.REGISTRY
    view = {"outcome": "unavailable", "message": message}
    return (
        StageRecord(stage=stage, operator_view={"fault": type(fault).__name__, "what": str(fault)}, caller_view=view),
    )
