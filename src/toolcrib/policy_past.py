"""Who asked in the last days, and which calls ran, from the traces: the callers that a comparison of policies knows.

Floor 4. Above: `policy_desk.py`. Below: `policy/changes.py`, `identity/`, the store.

Invariants
1. Of each request only who asked and what ran is kept; callers that no policy at hand can tell apart are one.
2. A trace that does not say who asked is counted, not guessed at.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from toolcrib.errors import ConfigError
from toolcrib.identity.callers import caller_from_record
from toolcrib.policy.changes import Asker
from toolcrib.store.protocol import Store
from toolcrib.types import Caller, Channel, Code, Stage, Trace

MAX_TRACES = 50_000
"""Requests that a comparison reads at most, newest first."""


class Seen:
    """Callers of the traces that no policy at hand can tell apart."""

    def __init__(self, caller: Caller) -> None:
        self.calls: dict[str, int] = {}
        self._caller = caller
        self._channels: set[Channel] = set()
        self._subjects: set[tuple[str, str]] = set()

    def add(self, trace: Trace, caller: Caller) -> None:
        self._channels.add(trace.channel)
        self._subjects.add((caller.subject, caller.tenant))
        if tool_id := _called(trace):
            self.calls[tool_id] = self.calls.get(tool_id, 0) + 1

    def asker(self) -> Asker:
        first = min(self._subjects)[0]
        others = f" and {len(self._subjects) - 1} more" if len(self._subjects) > 1 else ""
        channels = tuple(channel for channel in Channel if channel in self._channels)
        name = f"{first}{others}" + (f" for {self._caller.on_behalf_of}" if self._caller.on_behalf_of else "")
        return Asker(name=name, source="traces", caller=self._caller, channels=channels, calls=self.calls)


@dataclass(slots=True, kw_only=True)
class Past:
    """What the traces of some days know.

    Args:
        seen: fingerprint -> callers. calls: tool id -> calls that ran, of anybody.
        n_requests: traces that were read. complete: whether those are all of the days asked for.
        n_unreadable: traces that do not say who asked.
    """

    seen: dict[str, Seen] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)
    n_requests: int = 0
    n_unreadable: int = 0
    complete: bool = True


def past_requests(store: Store, *, days: int, with_subject: bool) -> Past:
    """Who asked in these days and what ran.

    Args:
        with_subject: a policy names callers, so that the subject tells them apart.
    """
    since = (datetime.now(UTC) - timedelta(days=days)).isoformat(timespec="microseconds")
    past = Past()
    for trace in store.each_trace(since=since, limit=MAX_TRACES + 1):
        if past.n_requests == MAX_TRACES:
            past.complete = False
            break
        past.n_requests += 1
        if tool_id := _called(trace):
            past.calls[tool_id] = past.calls.get(tool_id, 0) + 1
        caller = _asking(trace)
        if caller is None:
            past.n_unreadable += 1
            continue
        past.seen.setdefault(caller.fingerprint(with_subject=with_subject), Seen(caller)).add(trace, caller)
    return past


def _asking(trace: Trace) -> Caller | None:
    """Who asked, from the record of eligibility; None where it names nobody, or in another form."""
    record = trace.record(Stage.ELIGIBILITY)
    described = record.operator_view.get("caller") if record else None
    try:
        return caller_from_record(described or {}, where="(a trace)")
    except ConfigError:
        return None


def _called(trace: Trace) -> str:
    """The tool of a call that the gate let through, or ""."""
    gate = trace.record(Stage.GATE) if trace.kind == "call" else None
    return str(gate.operator_view["tool_id"]) if gate and gate.operator_view.get("code") == Code.OK else ""
