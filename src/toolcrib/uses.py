"""Uses: requests of the past with the tools that were called for them, read from the operator's own traces.

Floor 4. Above: `learn.py`. Below: the store's traces; `trace/answered.py`, which says what a call belongs to.

Invariant: a use holds what its caller could reach when it asked, so that what is learned can be kept to those who can
reach all of it now (I1).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta

from toolcrib.errors import ConfigError
from toolcrib.identity.callers import caller_from_record
from toolcrib.store.protocol import Store
from toolcrib.trace.answered import Following, Holder, Offered, answered_call, holder_of, offered_in
from toolcrib.trace.records import set_bits
from toolcrib.types import Caller, Channel, Stage, Trace

MAX_TRACES = 200_000
"""Read at most, newest first."""
MAX_CALLS = 4
"""Of one request: whoever calls more is trying."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One request and the tools that were called for it.

    Args:
        called: (tool id, digest) in order. reach: ids of all that its caller could reach then.
        subject: the person who asked, with the tenant: whoever asks through several agents is one.
        audience: who asked, as the trace says it, and over which channel.
    """

    at: str
    text: str
    called: tuple[Offered, ...]
    reach: frozenset[str]
    subject: str
    tenant: str
    caller: Caller
    channel: Channel


@dataclass(slots=True, kw_only=True)
class Log:
    """What the traces hold.

    Args:
        n_unused: requests after which nothing that was offered was called.
        n_unreadable: that could not be answered, or whose records are of another form.
        complete: whether all traces of the time asked for were read.
    """

    uses: list[Use] = field(default_factory=list)
    n_requests: int = 0
    n_unused: int = 0
    n_unreadable: int = 0
    complete: bool = True


def read_log(store: Store, *, since: str, offer_ttl_s: float) -> Log:
    """Requests with the calls that followed them: by the same caller, of a tool that was offered, carried out."""
    log, reader = Log(), _Reader(store, ttl=timedelta(seconds=offer_ttl_s))
    events: list[_Asked | _Called] = []
    for number, trace in enumerate(store.each_trace(since=since, limit=MAX_TRACES + 1)):
        if number == MAX_TRACES:
            log.complete = False
            break
        event = reader.asked(trace) if trace.kind == "select" else _called(trace)
        log.n_requests += trace.kind == "select"
        log.n_unreadable += trace.kind == "select" and event is None
        if event is not None:
            events.append(event)
    for event in reversed(events):  # the store gives the newest first
        reader.follow(event)
    log.uses = sorted(reader.uses(), key=lambda use: use.at)
    log.n_unused = log.n_requests - log.n_unreadable - len(log.uses)
    return log


@dataclass(frozen=True, slots=True, kw_only=True)
class _Called:
    """A call that was carried out."""

    holder: Holder
    at: str
    tool: Offered


@dataclass(slots=True, kw_only=True, eq=False)
class _Asked:
    """A request that calls may follow. `called`: of what it offered, in order.

    `holder`: to whom the offer was made, which calls must match. `person`: who stands behind it.
    """

    holder: Holder
    person: tuple[str, ...]
    at: str
    text: str
    offered: frozenset[Offered]
    reach: frozenset[str]
    caller: Caller
    channel: Channel
    called: list[Offered] = field(default_factory=list)


def _called(trace: Trace) -> _Called | None:
    tool = answered_call(trace)
    return None if tool is None else _Called(holder=holder_of(trace), at=trace.at, tool=tool)


class _Reader:
    """Follows each caller through its requests and calls, oldest first."""

    def __init__(self, store: Store, *, ttl: timedelta) -> None:
        self._store = store
        self._following: Following[_Asked] = Following(within=ttl)
        self._all: list[_Asked] = []
        self._catalogs: dict[str, tuple[str, ...]] = {}
        self._reaches: dict[tuple[str, str], frozenset[str]] = {}

    def asked(self, trace: Trace) -> _Asked | None:
        """A request, or None where its records are missing, of another form, or of a forgotten catalog."""
        views = {record.stage: record.operator_view for record in trace.records}
        try:
            retrieval, eligibility = views[Stage.RETRIEVAL], views[Stage.ELIGIBILITY]
            reach = self._reach(str(views[Stage.REGISTRY]["catalog_version"]), str(eligibility["reach"]))
            caller = caller_from_record(eligibility["caller"], where="(a trace)")
            text = str(retrieval["task"]).strip() or " ".join(map(str, retrieval["queries"]))
            offered = offered_in(views[Stage.SELECTION])
        except (KeyError, TypeError, ConfigError):
            return None
        if not text or not reach:
            return None
        return _Asked(
            holder=holder_of(trace),
            person=(trace.on_behalf_of or trace.subject, trace.tenant),
            at=trace.at,
            text=text,
            offered=offered,
            reach=reach,
            caller=caller,
            channel=trace.channel,
        )

    def follow(self, event: _Asked | _Called) -> None:
        """Credit a call to the latest request of the same caller that offered its tool, while the offer lasts."""
        if isinstance(event, _Asked):
            self._all.append(event)
            self._following.asked(event.holder, at=event.at, offered=event.offered, request=event)
            return
        asked = self._following.called(event.holder, at=event.at, tool=event.tool)
        if asked is not None and event.tool not in asked.called and len(asked.called) < MAX_CALLS:
            asked.called.append(event.tool)

    def uses(self) -> Iterable[Use]:
        for asked in self._all:
            if asked.called:
                yield Use(
                    at=asked.at,
                    text=asked.text,
                    called=tuple(asked.called),
                    reach=asked.reach,
                    subject="\0".join(asked.person),
                    tenant=asked.holder[0],
                    caller=asked.caller,
                    channel=asked.channel,
                )

    def _reach(self, version: str, bits: str) -> frozenset[str]:
        """Ids of the tools in reach then; none where that catalog version is not remembered."""
        if (version, bits) not in self._reaches:
            if version not in self._catalogs:
                summary = self._store.catalog(version) or {"tools": ()}
                self._catalogs[version] = tuple(str(row[0]) for row in summary["tools"])
            ids = self._catalogs[version]
            self._reaches[version, bits] = frozenset(ids[n] for n in set_bits(bits) if n < len(ids))
        return self._reaches[version, bits]
