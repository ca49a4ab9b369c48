"""What is well with a crib and what is not, looked at from outside: nothing is opened, asked or changed.

    settings, policy, lock, log, servers, tools, index, calibration, learned, shadow ─▶ Health ─▶ page, JSON, metrics

Floor 4. Above: `cli/doctor.py`. Below: `crib.py` and what it is made of.

Invariants
1. One thing that cannot be looked at costs its own line, never the others (I12).
2. For operators alone: it counts what callers may not know of, so nothing here is served to them (I1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypeAlias, TypeVar

from toolcrib.catalog.lock import read_lock
from toolcrib.catalog.pins import Lock
from toolcrib.catalog.servers import provenance_changes, provenance_fault
from toolcrib.connectors.provenance.configured import is_pinned, reconfigured
from toolcrib.crib import Crib
from toolcrib.errors import ToolcribError
from toolcrib.retrieval.learning import NOTHING
from toolcrib.review.chain import Chain, checked
from toolcrib.settings import Settings, unmatched_rules
from toolcrib.types import CatalogSnapshot, Provenance, ServerSpec, ServerStatus, Transport

State: TypeAlias = Literal["well", "note", "wrong"]
ProvenanceState: TypeAlias = Literal["ok", "changed", "unpinned", "unknown"]
_Found = TypeVar("_Found")
_GRAVITY: tuple[State, ...] = ("well", "note", "wrong")


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at. `hint`: what to do about it."""

    name: str
    state: State
    told: str
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerHealth:
    """One enabled server.

    Args:
        state: of its list. age_s: since it was taken, None where there is none. credential: it was taken with, by name.
        provenance: `ok`: as approved; `changed`: not; `unpinned`: nobody has approved what it is; `unknown`: nothing is
            known of it, and nothing is pinned.
        reconfigured: what its configuration says otherwise since its list was taken (`launcher`, `package`,
            `arguments`, `env`, `address`): its next start will not be what was approved.
        launcher_pinned: whether its next start cannot fetch another version; None where that is not known.
        n_in_service: of its tools. withheld: how many are not, by code.
    """

    server_id: str
    state: Literal["fresh", "partial", "stale", "missing"]
    age_s: float | None
    error: str
    credential: str
    provenance: ProvenanceState
    changes: tuple[tuple[str, str, str], ...]
    reconfigured: tuple[str, ...]
    launcher_pinned: bool | None
    advice: str
    n_in_service: int
    withheld: Mapping[str, int]
    is_wrong: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Everything, as of `at` (ISO 8601, UTC). `withheld`: tools by code. `chain`: None where it cannot be read."""

    at: str
    checks: tuple[Check, ...]
    servers: tuple[ServerHealth, ...]
    n_in_service: int
    withheld: Mapping[str, int]
    chain: Chain | None

    @property
    def is_well(self) -> bool:
        return not any(c.state == "wrong" for c in self.checks) and not any(s.is_wrong for s in self.servers)


def examined(crib: Crib, *, now: datetime | None = None) -> Health:
    """The health of a crib.

    Raises:
        ConfigError: its settings cannot be read now. StoreError: the store is lost.
    """
    now = now or datetime.now(UTC)
    crib.store.current_mark()  # a lost store is no line among others: there is nothing to look at
    checks: list[Check] = []
    snapshot = _tried(checks, "catalog", crib.snapshot)
    settings = crib.settings
    lock = _tried(checks, "lock", lambda: read_lock(settings.lock))
    chain = _tried(checks, "review log", lambda: checked(crib.store.reviews()))
    checks += [*_settings(settings, snapshot), *_lock(lock, settings), *_chain(chain), *_pipeline(crib, settings)]
    servers = tuple(_servers(settings, snapshot, lock, now=now))
    checks += _tools(snapshot)
    checks.sort(key=lambda check: -_GRAVITY.index(check.state))
    return Health(
        at=now.isoformat(timespec="seconds"),
        checks=tuple(checks),
        servers=servers,
        n_in_service=len(snapshot.tools) if snapshot else 0,
        withheld=dict(Counter(tool.code for tool in snapshot.withheld)) if snapshot else {},
        chain=chain,
    )


def _tried(checks: list[Check], name: str, look: Callable[[], _Found]) -> _Found | None:
    """What it gives, or a line that says why it gives nothing."""
    try:
        return look()
    except ToolcribError as fault:
        checks.append(Check(name=name, state="wrong", told=_told(fault), hint=fault.hint))
        return None


def _told(fault: ToolcribError) -> str:
    return f"{fault.where}: {fault.what}" if fault.where else fault.what


def _settings(settings: Settings, snapshot: CatalogSnapshot | None) -> Iterator[Check]:
    ids = [t.tool_id for t in snapshot.tools] + [t.tool_id for t in snapshot.withheld] if snapshot else []
    warnings = [*settings.warnings, *(unmatched_rules(settings, ids) if snapshot else ())]
    for warning in warnings:
        yield Check(name="settings", state="note", told=warning)
    if not settings.servers:
        yield Check(name="settings", state="wrong", told="no servers are configured", hint="add a [[servers]] block")
    elif not warnings:
        yield Check(name="settings", state="well", told=f"{settings.path.name} is read without warnings")


def _lock(lock: Lock | None, settings: Settings) -> Iterator[Check]:
    if lock is None:
        return
    needed = settings.review.require_signers
    signers = f"; {needed} signers are required" if needed else ""
    told = f"approved definitions: {len(lock.tools)}, pinned servers: {len(lock.servers)}{signers}"
    yield Check(name="lock", state="well", told=told)


def _chain(chain: Chain | None) -> Iterator[Check]:
    if chain is None:
        return
    if chain.is_sound:
        yield Check(name="review log", state="well", told=f"{chain.n_events} decisions, in a sound chain")
    else:
        told = f"not what was written, from event {chain.broken_at} on: {chain.why}"
        yield Check(name="review log", state="wrong", told=told, hint="see `toolcrib review log`; restore the store")


def _pipeline(crib: Crib, settings: Settings) -> Iterator[Check]:
    """Policy and what searches, as they would serve the next request."""
    try:
        pipeline = crib.pipeline()
    except ToolcribError as fault:
        yield Check(name="serving", state="wrong", told=f"nothing is permitted: {_told(fault)}", hint=fault.hint)
        return
    if pipeline.policy_fault:
        told = f"the last good one is in force: {pipeline.policy_fault}"
        yield Check(name="policy", state="wrong", told=told, hint="toolcrib policy check")
    else:
        yield Check(name="policy", state="well", told=str(settings.policy.name if settings.policy else "built-in"))
    index = pipeline.index
    if index is None:
        yield Check(name="index", state="wrong", told="there is none: only the configured safe set can be offered")
    elif index.degraded:
        yield Check(name="index", state="wrong", told="words alone: the model gave no vectors")
    else:
        yield Check(name="index", state="well", told=f"model {index.model_id}")
    if settings.retrieval.calibration and pipeline.options.calibration is None:
        hint = "run `toolcrib calibrate` again"
        yield Check(name="calibration", state="wrong", told="it cannot be used: the built-in floor counts", hint=hint)
    if settings.retrieval.learned and pipeline.learned is NOTHING:
        hint = "run `toolcrib learn` again"
        yield Check(name="learned", state="wrong", told="what was learned from use cannot be used", hint=hint)
    if settings.shadow.is_on:
        tried = settings.shadow.candidate or "this crib, while callers get all that is in reach"
        yield Check(name="shadow", state="note", told=f"tries {tried} on {settings.shadow.share:.0%} of selects")


def _tools(snapshot: CatalogSnapshot | None) -> Iterator[Check]:
    if snapshot is None:
        return
    if not snapshot.tools:
        yield Check(name="tools", state="wrong", told="none is in service", hint="toolcrib review")
    waiting = sum(tool.code in ("unreviewed", "changed") for tool in snapshot.withheld)
    unsigned = sum(tool.code == "unsigned" for tool in snapshot.withheld)
    broken = sum(tool.code in ("invalid_definition", "duplicate_name") for tool in snapshot.withheld)
    if broken:
        told = f"not fit to be served until their servers change them: {broken}"
        yield Check(name="tools", state="note", told=told, hint="toolcrib review --list")
    if waiting:
        yield Check(name="tools", state="note", told=f"waiting for a reviewer: {waiting}", hint="toolcrib review")
    if unsigned:
        hint = "toolcrib approve --all --signer KEYFILE, by another signer"
        yield Check(name="tools", state="note", told=f"lacking signatures: {unsigned}", hint=hint)


def _servers(
    settings: Settings, snapshot: CatalogSnapshot | None, lock: Lock | None, *, now: datetime
) -> Iterator[ServerHealth]:
    statuses = {status.server_id: status for status in snapshot.servers} if snapshot else {}
    served = Counter(tool.server_id for tool in snapshot.tools) if snapshot else Counter[str]()
    withheld: dict[str, Counter[str]] = {}
    for tool in snapshot.withheld if snapshot else ():
        withheld.setdefault(tool.server_id, Counter())[tool.code] += 1
    for spec in settings.servers:
        if spec.enabled:
            status = statuses.get(spec.server_id) or ServerStatus(server_id=spec.server_id, state="missing", n_tools=0)
            held = withheld.get(spec.server_id, Counter())
            other = reconfigured(spec, status.provenance, root=settings.root) if status.provenance else ()
            yield _server(spec, status, lock, other=other, n_in_service=served[spec.server_id], withheld=held, now=now)


def _server(
    spec: ServerSpec,
    status: ServerStatus,
    lock: Lock | None,
    *,
    other: tuple[str, ...],
    n_in_service: int,
    withheld: Mapping[str, int],
    now: datetime,
) -> ServerHealth:
    pin = lock.servers.get(spec.server_id) if lock else None
    provenance = status.provenance
    state: ProvenanceState = "ok" if pin and pin.provenance else "unpinned"
    if provenance_fault(status, pin):
        state = "changed"
    elif not (pin and pin.provenance) and (provenance is None or not provenance.compared):
        state = "unknown"
    return ServerHealth(
        server_id=spec.server_id,
        state=status.state,
        age_s=_age_s(status.listed_at, now),
        error=status.error,
        credential=status.credential,
        provenance=state,
        changes=provenance_changes(status, pin),
        reconfigured=other,
        launcher_pinned=_launcher_pinned(spec, provenance if not other else None),
        advice=provenance.advice if provenance and not other else "",
        n_in_service=n_in_service,
        withheld=dict(withheld),
        is_wrong=status.state != "fresh" or bool(other or withheld.get("credential") or withheld.get("provenance")),
    )


def _launcher_pinned(spec: ServerSpec, found: Provenance | None) -> bool | None:
    if found is None or spec.transport is Transport.HTTP:
        return is_pinned(spec)
    return not found.is_unpinned_start


def _age_s(listed_at: str, now: datetime) -> float | None:
    try:
        return max(0.0, (now - datetime.fromisoformat(listed_at)).total_seconds())
    except (ValueError, TypeError):  # never listed, or a time without its zone
        return None
