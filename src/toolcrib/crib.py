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
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from toolcrib import curation
from toolcrib.assembly import Assembly
from toolcrib.callers import Callers, file_mark, secret_mark
from toolcrib.catalog.lock import read_lock
from toolcrib.connectors.base import Connector
from toolcrib.connectors.listing import ListingProgress, list_all
from toolcrib.connectors.opening import open_connector
from toolcrib.connectors.pool import ConnectorPool
from toolcrib.curation import RefreshReport, ReviewItem
from toolcrib.dispatch import Dispatch, Dispatched, plain
from toolcrib.errors import ConfigError, PolicyError, StoreError, ToolcribError, TraceError
from toolcrib.offer import CallOutcome, Offer
from toolcrib.pipeline import CallerView, Pipeline
from toolcrib.selection.outcomes import unavailable
from toolcrib.settings import Settings, load_settings, reveal
from toolcrib.store.protocol import Store
from toolcrib.store.sqlite import SqliteStore
from toolcrib.trace.explain import Explanation, explain
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
    SecretRef,
    Selection,
    SelectRequest,
    Stage,
    StageRecord,
    Tool,
    ToolCall,
    Trace,
    Verdict,
    WithheldTool,
)

_MAX_REBUILDS = 3
_MIN_ID_CHARS = 6
_MAX_TASK_CHARS = 100_000
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _World:
    """What one pipeline was built from: changes in `mark` call for another one."""

    mark: tuple[object, ...]
    settings: Settings
    pipeline: Pipeline | None
    fault: ToolcribError | None


class Crib:
    """One crib: a configuration file and what lies beside it. Use from one event loop; `select` from any thread."""

    def __init__(
        self,
        settings: Settings,
        *,
        store: Store,
        connectors: Mapping[str, Connector] | None = None,
        on_progress: Callable[[str], None] | None = None,
    ) -> None:
        self._path = settings.path
        self._store = store
        self._given = dict(connectors or {})
        self._assembly = Assembly(store, on_progress=on_progress or (lambda _text: None))
        self._callers = Callers(lambda: self.settings)
        self._lock = threading.RLock()
        self._world = _World(mark=(), settings=settings, pipeline=None, fault=None)
        self._pool = ConnectorPool(self._open_server)
        self._dispatch = Dispatch(
            self.pipeline,
            pool=self._pool,
            store=store,
            settings=lambda: self.settings,
            server_mark=self._server_mark,
        )

    @classmethod
    def open(
        cls,
        path: str | Path = "toolcrib.toml",
        *,
        connectors: Mapping[str, Connector] | None = None,
        on_progress: Callable[[str], None] | None = None,
    ) -> Crib:
        """A crib from its configuration file, or from the folder that holds `toolcrib.toml`.

        Args:
            connectors: server id -> connector to use instead of the configured way to reach it.
            on_progress: told in a line what long work is at.
        Raises:
            ConfigError: the configuration cannot be used.
            StoreError: the store cannot be opened.
        """
        settings = load_settings(Path(path))
        store = SqliteStore(settings.store / "store.db")
        store.prune(keep_days=settings.trace.keep_days)
        return cls(settings, store=store, connectors=connectors, on_progress=on_progress)

    async def aclose(self) -> None:
        """End all sessions with servers and close the store."""
        await self._pool.aclose()
        self._store.close()

    def __enter__(self) -> Self:
        """For those who call no server: `with` closes the store; `async with` ends sessions, too."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trail: TracebackType | None
    ) -> None:
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
        return self._world.settings

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

    def unreadable_tokens(self) -> tuple[ConfigError, ...]:
        """Why configured tokens cannot be read now; each costs its own caller only (I12)."""
        return self._callers.unreadable_tokens()

    def pipeline(self) -> Pipeline:
        """The pipeline in force, rebuilt when anything it rests on has changed.

        Raises:
            ToolcribError: no valid catalog or policy; nothing is permitted.
        """
        with self._lock:
            mark = self._mark()
            for _ in range(_MAX_REBUILDS):
                if mark == self._world.mark and self._world.fault is None:
                    break
                self._world = self._build(mark)
                mark, before = self._mark(), mark
                if mark == before:  # else a file was being written while it was read
                    break
            if self._world.fault is not None:
                raise self._world.fault
            assert self._world.pipeline is not None
            return self._world.pipeline

    def _mark(self) -> tuple[object, ...]:
        settings = self._world.settings
        files = [settings.path, settings.lock, *([settings.policy] if settings.policy else [])]
        return (self._store.current_mark(), *(file_mark(file) for file in files))

    def _build(self, mark: tuple[object, ...]) -> _World:
        settings = self._world.settings
        try:
            settings = load_settings(self._path)
            pipeline = self._assembly.pipeline(settings)
        except ToolcribError as fault:
            return _World(mark=mark, settings=settings, pipeline=None, fault=fault)
        return _World(mark=mark, settings=settings, pipeline=pipeline, fault=None)

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
        done = pipeline.select(request, caller=who, channel=channel)
        return Offer(
            selection=done.selection,
            catalog_version=done.view.version,
            policy_version=done.view.policy_version,
            index_version=done.view.index_version,
            trace_id=self._write("select", who, channel, done.records),
        )

    def preview(self, task: str, *, caller: Caller, channel: Channel = Channel.LIBRARY) -> Selection:
        """What `select` would give, without a trace: for measuring."""
        request = self._request(task, queries=(), limit=None, token_budget=None)
        return self.pipeline().select(request, caller=caller, channel=channel).selection

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
        meta: JsonObject | None = None,
    ) -> CallOutcome:
        """Judge one call afresh and, if it may run, run it once.

        Args:
            offered_digest: the digest the tool was offered under; if it is another now, the call is a conflict.
        Returns:
            The outcome; refusals are values, with a code and words the caller may see.
        """
        call = ToolCall(tool_id=tool_id, arguments=plain(arguments), offered_digest=offered_digest)
        trace_id = uuid.uuid4().hex
        try:
            self.pipeline()
            who = self._callers.established(caller)
            done = await self._dispatch.carry_out(
                call,
                caller=lambda: self._callers.established(caller),
                channel=channel,
                meta=meta,
                before_send=lambda records: self._put("call", who, channel, records, trace_id),
            )
        except ToolcribError as fault:
            message = "Nothing can be called at the moment. Try again later."
            verdict = Verdict(code=Code.UNAVAILABLE, message=message, check="pipeline")
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
        self, *, servers: Sequence[str] = (), on_progress: Callable[[ListingProgress], None] | None = None
    ) -> RefreshReport:
        """Ask the servers for all their tools and publish what they listed, whole. Approves nothing.

        Args:
            servers: only these; all enabled ones if empty.
        Raises:
            ConfigError: an unknown server id.
        """
        settings = self._reloaded()
        enabled = [s.server_id for s in settings.servers if s.enabled]
        unknown = [server_id for server_id in servers if server_id not in enabled]
        if unknown:
            raise ConfigError(f"no enabled server {unknown[0]!r}", where=str(self._path), hint=f"there are {enabled}")
        asked = [server_id for server_id in enabled if not servers or server_id in servers]
        listings = await list_all(asked, self._open_server, on_progress=on_progress, keep_open=self._given.keys())
        untouched = [s.server_id for s in settings.servers if s.server_id not in asked]
        publication, change = curation.take_in(self._store, listings, untouched=untouched, partial=bool(servers))
        snapshot = self._assembly.snapshot(settings)
        withheld: dict[str, int] = {}
        for tool in snapshot.withheld:
            withheld[tool.code] = withheld.get(tool.code, 0) + 1
        return RefreshReport(
            added=change.added,
            changed=change.changed,
            removed=change.removed,
            n_unchanged=change.n_unchanged,
            failed={s.server_id: s.error for s in publication.servers if s.error and s.server_id in asked},
            n_servers=len(asked),
            n_tools=len(publication.tools),
            n_in_service=len(snapshot.tools),
            withheld=withheld,
            catalog_version=snapshot.version,
        )

    def snapshot(self) -> CatalogSnapshot:
        """The operator's view of the catalog: in service and withheld. Needs no valid policy."""
        return self._assembly.snapshot(self._reloaded())

    def review(self) -> tuple[ReviewItem, ...]:
        """What waits for a reviewer, most findings first."""
        settings = self._reloaded()
        return curation.review_items(self._assembly.snapshot(settings), approved=read_lock(settings.lock))

    def approve(self, tool_ids: Sequence[str] | None, *, reviewer: str, reason: str = "") -> tuple[WithheldTool, ...]:
        """Put definitions into service: those named, or with None all that wait and were not rejected."""
        settings = self._reloaded()
        return curation.approve(
            self._store,
            lock=settings.lock,
            snapshot=self._assembly.snapshot(settings),
            wanted=tool_ids,
            reviewer=reviewer,
            reason=reason,
        )

    def reject(self, tool_ids: Sequence[str], *, reviewer: str, reason: str = "") -> tuple[str, ...]:
        """Refuse definitions, or take approved ones out of service."""
        settings = self._reloaded()
        return curation.reject(
            self._store,
            lock=settings.lock,
            snapshot=self._assembly.snapshot(settings),
            wanted=tool_ids,
            reviewer=reviewer,
            reason=reason,
        )

    def definition_of(self, digest: str) -> Any:
        """The definition with this digest, as it was received, or None."""
        return self._store.definition(digest)

    def approvals(self) -> tuple[ApprovalRequest, ...]:
        """Requests to let one exact call run, newest first."""
        return self._store.approvals()

    def decide_approval(self, approval_id: str, *, granted: bool, by: str) -> bool:
        """Grant or deny a pending request, by its id or a unique beginning of it; False when none such still waits."""
        known = [a.approval_id for a in self._store.approvals() if a.approval_id.startswith(approval_id)]
        if len(known) != 1 or len(approval_id) < _MIN_ID_CHARS:
            return False
        return self._store.decide_approval(known[0], granted=granted, by=by, now=curation.now())

    # --- looking back

    def trace(self, trace_id: str) -> Trace:
        """Raises TraceError when there is none."""
        trace = self._store.trace(trace_id)
        if trace is None:
            raise TraceError(f"no trace {trace_id!r}", hint="see `toolcrib trace list`")
        return trace

    def explain(self, trace_id: str, *, tool_id: str) -> Explanation:
        """Why the caller of that trace did or did not get this tool: the operator's view."""
        trace = self.trace(trace_id)
        registry = trace.record(Stage.REGISTRY)
        version = registry.operator_view.get("catalog_version", "") if registry else ""
        later = [t for t in self._store.traces(limit=500) if t.kind == "call" and t.at >= trace.at]
        mine = [t for t in reversed(later) if (t.subject, t.tenant) == (trace.subject, trace.tenant)]
        found = explain(trace, tool_id=tool_id, catalog=self._store.catalog(version), later_calls=mine)
        if found.lost_at is not Stage.ELIGIBILITY:
            return found
        rules = self._rules_against(trace, tool_id, version)
        return replace(found, reason=f"{found.reason} ({', '.join(rules)})") if rules else found

    def _rules_against(self, trace: Trace, tool_id: str, catalog_version: str) -> tuple[str, ...]:
        """Which policies denied this tool to the trace's caller, as far as catalog and policy are still the same."""
        record = trace.record(Stage.ELIGIBILITY)
        try:
            pipeline = self.pipeline()
        except ToolcribError:
            return ()
        view = record.operator_view if record else {}
        number = pipeline.classes.number_of(tool_id)
        same = (pipeline.snapshot.version, pipeline.policy.version) == (catalog_version, view.get("policy_version"))
        if number is None or not same:
            return ()
        caller = self._callers.described(view["caller"], where="(the trace's caller)")
        decisions = pipeline.view(caller, trace.channel).eligibility
        discover = decisions.discover[decisions.class_of[number]]
        call = decisions.call[decisions.class_of[number]]
        return discover.policies or call.policies or ("no rule permits it",)

    # --- helpers

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

    def _reloaded(self) -> Settings:
        """The settings as they are on disk now."""
        settings = load_settings(self._path)
        with self._lock:
            self._world = _World(mark=(), settings=settings, pipeline=None, fault=None)
        return settings

    def _server_mark(self, server_id: str) -> tuple[object, ...]:
        """What an open session with this server rests on: its configuration and the files its secrets lie in."""
        if server_id in self._given:
            return ()
        settings = self.settings
        spec = replace(settings.server(server_id), call_timeout_s=0.0)  # of each call, not of the session
        secrets = [v for v in (*spec.env.values(), *spec.headers.values()) if isinstance(v, SecretRef)]
        return (spec, *(secret_mark(ref, settings) for ref in secrets))

    def _open_server(self, server_id: str) -> Connector:
        if server_id in self._given:
            return self._given[server_id]
        spec, root = self.settings.server(server_id), self.settings.root
        return open_connector(spec, env=_revealed(spec.env, root), headers=_revealed(spec.headers, root), root=root)


def _revealed(values: Mapping[str, str | SecretRef], root: Path) -> dict[str, str]:
    return {k: reveal(v, root=root) if isinstance(v, SecretRef) else v for k, v in values.items()}


def _traced(caller: object) -> Caller:
    """Whom the trace of a request names that could not be answered."""
    return caller if isinstance(caller, Caller) else Caller(subject="local" if caller is LOCAL else "nobody")


def _fault_records(fault: ToolcribError, *, message: str) -> tuple[StageRecord, ...]:
    """Which stage could not work: the operator sees why, the caller sees that."""
    stage = Stage.ELIGIBILITY if isinstance(fault, PolicyError) else Stage.REGISTRY
    view = {"outcome": "unavailable", "message": message}
    return (
        StageRecord(stage=stage, operator_view={"fault": type(fault).__name__, "what": str(fault)}, caller_view=view),
    )
