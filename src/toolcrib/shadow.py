"""Shadow mode: what a candidate would have answered to live requests, recorded and told to no caller.

Floor 4. Above: `crib.py`, which hands over what it has answered. Below: `candidate.py`; the store keeps the records.

    select ─▶ answer ─▶ caller
                └─▶ waiting (at most 64) ─▶ one thread ─▶ candidate ─▶ ShadowRecord in the store

Invariants
1. Nothing comes back: no value, no fault and no waiting reaches whoever asked (I1). What is handed over is immutable.
2. The request waits for nothing here: it puts one entry into a list, and where too many wait, drops it and counts it.
   One thread works, and rests in between, since it shares the interpreter with those who answer.
3. A candidate that cannot answer is a record that says so, whatever the fault.
4. Records hold ids, figures and versions: no arguments, no definitions, no words of a task.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from toolcrib import curation
from toolcrib.candidate import Candidate, Ready, candidate_id
from toolcrib.errors import StoreError, ToolcribError
from toolcrib.pipeline import CallerView, Pipeline, Selected
from toolcrib.settings import Settings
from toolcrib.store.protocol import Store
from toolcrib.types import (
    Caller,
    Channel,
    Selection,
    SelectRequest,
    ShadowRecord,
    ShadowSide,
    Tool,
    ToolHealth,
)

MAX_WAITING = 64
"""Answered selects that wait for the candidate; further ones are dropped."""
_AFTER_S = 0.05
"""The candidate begins so long after an answer, so that the answer is on its way before it takes the processor."""
_REST = 3.0
"""The candidate rests this many times as long as it worked: it works a quarter of the time at most."""
_MAX_REST_S = 5.0
_CLOSE_WITHIN_S = 2.0
_MAX_LISTED = 100
"""Tools of a difference in reach that a record lists."""
_MAX_DIFFERENCES = 256
_log = logging.getLogger(__name__)

HealthOf = Callable[[Sequence[Tool]], Mapping[str, ToolHealth]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One select as it was answered, and what another answer to it needs.

    Args:
        pipeline, settings: those that answered. limit, token_budget: as the caller gave them; None where it gave none.
        latency_ms: of the answer, from request to selection.
    """

    trace_id: str
    request: SelectRequest
    limit: int | None
    token_budget: int | None
    caller: Caller
    channel: Channel
    done: Selected
    pipeline: Pipeline
    settings: Settings
    latency_ms: float


def is_drawn(trace_id: str, share: float) -> bool:
    """Whether this select is among the share that is tried: the same for the same trace, whoever asks."""
    number = int.from_bytes(hashlib.sha256(trace_id.encode()).digest()[:8])
    return number < share * 2**64


class Shadow:
    """Tries the candidate of a crib on what was answered. Safe to share between threads.

    Args:
        health: of tools, as the crib sees it.
        max_waiting: selects that may wait.
    """

    def __init__(
        self, store: Store, *, health: HealthOf, on_progress: Callable[[str], None], max_waiting: int = MAX_WAITING
    ) -> None:
        self._store = store
        self._health = health
        self._candidate = Candidate(store, on_progress=on_progress)
        self._max_waiting = max_waiting
        self._on_progress = on_progress
        self._last_fault = ""
        self._waiting: deque[tuple[float, Answered | Settings]] = deque()
        self._n_dropped = 0
        self._last_dropped = ""
        self._changed = threading.Condition()
        self._writing = threading.Lock()
        self._thread: threading.Thread | None = None
        self._rest_until = 0.0
        self._is_busy = False
        self._trying = ""  # the trace whose record is not written yet
        self._in_a_hurry = False
        self._closing = False
        self._closed = False
        self._differences: OrderedDict[tuple[str, str], tuple[tuple[str, ...], tuple[str, ...]]] = OrderedDict()

    # --- the side of the request: never raises, never waits

    def warm(self, settings: Settings) -> None:
        """Have the candidate made ready, later: its index is built, and whatever is wrong with it is told."""
        if settings.shadow.candidate and settings.shadow.share > 0:
            try:
                self._put(settings, delay_s=0.0)
            except RuntimeError as fault:
                _log.error("shadow: there is no thread for the candidate: %s", fault)

    def note(self, answered: Answered) -> None:
        """Have the candidate tried on this select, later, if it is drawn."""
        try:
            shadow = answered.settings.shadow
            if shadow.is_on and is_drawn(answered.trace_id, shadow.share):
                self._put(answered, delay_s=_AFTER_S)
        except Exception as fault:  # noqa: BLE001 - whatever it is, the answer goes out
            _log.error("shadow: a select could not be handed over: %s", type(fault).__name__)

    def _put(self, job: Answered | Settings, *, delay_s: float) -> None:
        with self._changed:
            if self._closing:
                return
            if len(self._waiting) >= self._max_waiting:
                if isinstance(job, Answered):
                    self._n_dropped += 1
                    self._last_dropped = job.trace_id
                return
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="toolcrib-shadow", daemon=True)
                self._thread.start()
            self._waiting.append((time.monotonic() + delay_s, job))
            self._changed.notify_all()

    # --- the side of whoever stops or looks

    def drain(self, *, timeout_s: float) -> bool:
        """Wait until nothing waits any more; False when it took longer."""
        with self._changed:
            self._in_a_hurry = True
            self._changed.notify_all()
            done = self._changed.wait_for(lambda: not self._waiting and not self._is_busy, timeout_s)
            self._in_a_hurry = False
            return done

    def close(self, *, within_s: float = _CLOSE_WITHIN_S) -> None:
        """Let what waits be tried for a moment; what is left counts as dropped. Nothing is written afterwards."""
        with self._changed:
            self._closing = True
            thread = self._thread
            self._changed.notify_all()
        if thread is not None:
            thread.join(within_s)
        with self._writing:
            if self._closed:
                return
            with self._changed:
                left = [self._trying] if self._trying else []
                left += [job.trace_id for _, job in self._waiting if isinstance(job, Answered)]
                self._waiting.clear()
                self._n_dropped += len(left)
                self._last_dropped = left[-1] if left else self._last_dropped
                self._changed.notify_all()
            self._put_dropped()
            self._closed = True

    # --- the thread

    def _work(self) -> None:
        while (job := self._next()) is not None:
            began = time.monotonic()
            try:
                self._do(job)
            except Exception as fault:  # noqa: BLE001 - the next one is tried all the same
                _log.error("shadow: a select could not be tried: %s", type(fault).__name__)
            with self._changed:
                now = time.monotonic()
                self._rest_until = now + min(_MAX_REST_S, _REST * (now - began))
                self._is_busy = False
                self._changed.notify_all()
        with self._writing:
            if not self._closed:
                self._put_dropped()

    def _put_dropped(self) -> None:
        """What was dropped since the last record, in one of its own. Whoever calls holds `_writing`."""
        if n_dropped := self._dropped_since():
            at = curation.now()
            self._put_record(ShadowRecord(trace_id=self._last_dropped, at=at, state="dropped", n_dropped=n_dropped))

    def _do(self, job: Answered | Settings) -> None:
        if isinstance(job, Answered):
            record = self._record(job)
            self._write(replace(record, n_dropped=self._dropped_since()))
            self._tell(record.fault)
        else:
            self._tell(self._warmed(job))

    def _warmed(self, settings: Settings) -> str:
        """What is wrong with the candidate, or ""."""
        try:
            self._candidate.ready(settings)
        except ToolcribError as fault:
            return f"{type(fault).__name__}: {fault}"
        except Exception as fault:  # noqa: BLE001 - a finding about the candidate; its words may quote anything
            return type(fault).__name__
        return ""

    def _tell(self, fault: str) -> None:
        """The operator hears of a fault when it begins, not at every select."""
        if fault and fault != self._last_fault:
            self._on_progress(f"shadow: the candidate cannot answer: {fault}")
        self._last_fault = fault

    def _next(self) -> Answered | Settings | None:
        """The next select whose answer has had time to leave; None at the end."""
        with self._changed:
            while True:
                if self._closing and not self._waiting:
                    return None
                if not self._waiting:
                    self._changed.wait()
                    continue
                left_s = max(self._waiting[0][0], self._rest_until) - time.monotonic()
                if left_s > 0 and not self._in_a_hurry and not self._closing:
                    self._changed.wait(left_s)
                    continue
                self._is_busy = True
                job = self._waiting.popleft()[1]
                self._trying = job.trace_id if isinstance(job, Answered) else ""
                return job

    def _dropped_since(self) -> int:
        with self._changed:
            n_dropped, self._n_dropped = self._n_dropped, 0
            return n_dropped

    def _write(self, record: ShadowRecord) -> None:
        with self._writing:
            if self._closed:
                return
            self._trying = ""
            self._put_record(record)

    def _put_record(self, record: ShadowRecord) -> None:
        try:
            self._store.put_shadow(record)
        except StoreError as fault:
            _log.error("shadow: a record could not be written: %s", fault)

    def _record(self, answered: Answered) -> ShadowRecord:
        present = _side(answered.done, answered.pipeline, latency_ms=answered.latency_ms)
        made = ShadowRecord(trace_id=answered.trace_id, at=curation.now(), state="failed", present=present)
        try:
            ready = self._ready(answered)
            began = time.perf_counter()
            done = ready.pipeline.select(
                _request(answered, ready), caller=answered.caller, channel=answered.channel, health=self._health
            )
            candidate = _side(done, ready.pipeline, latency_ms=1_000 * (time.perf_counter() - began))
            gained, lost = self._difference(answered.done.view, done.view)
        except ToolcribError as fault:
            return replace(made, fault=f"{type(fault).__name__}: {fault}")
        except Exception as fault:  # noqa: BLE001 - a finding about the candidate; its words may quote anything
            return replace(made, fault=type(fault).__name__)
        return replace(
            made,
            state="compared",
            candidate=candidate,
            candidate_id=ready.candidate_id,
            gained=gained[:_MAX_LISTED],
            lost=lost[:_MAX_LISTED],
            n_gained=len(gained),
            n_lost=len(lost),
        )

    def _ready(self, answered: Answered) -> Ready:
        settings = answered.settings
        if settings.shadow.candidate:
            return self._candidate.ready(settings)
        return Ready(
            pipeline=answered.pipeline,
            selection=settings.selection,
            candidate_id=candidate_id(settings, answered.pipeline),
        )

    def _difference(self, present: CallerView, candidate: CallerView) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Tool ids that the candidate adds to and takes from this caller's reach, sorted."""
        key = (present.version, candidate.version)  # digests of exactly what is in reach
        if present.version == candidate.version:
            return (), ()
        if key not in self._differences:
            if len(self._differences) >= _MAX_DIFFERENCES:
                self._differences.popitem(last=False)
            then, now = ({tool.tool_id for tool in view.tools} for view in (present, candidate))
            self._differences[key] = (tuple(sorted(now - then)), tuple(sorted(then - now)))
        return self._differences[key]


def _request(answered: Answered, ready: Ready) -> SelectRequest:
    """The same request under the candidate's ceilings, where the caller gave none."""
    chosen = ready.selection
    return SelectRequest(
        task=answered.request.task,
        queries=answered.request.queries,
        limit=chosen.limit if answered.limit is None else answered.limit,
        token_budget=chosen.token_budget if answered.token_budget is None else answered.token_budget,
    )


def _side(done: Selected, pipeline: Pipeline, *, latency_ms: float) -> ShadowSide:
    selection: Selection = done.selection
    return ShadowSide(
        outcome=selection.outcome.value,
        tool_ids=tuple(chosen.tool.tool_id for chosen in selection.tools),
        tokens=selection.tokens,
        confidence=selection.confidence,
        latency_ms=round(latency_ms, 3),
        catalog_version=pipeline.snapshot.version,
        policy_version=pipeline.policy.version,
        index_version=pipeline.index.key if pipeline.index else "",
        options=pipeline.options.digest,
    )
