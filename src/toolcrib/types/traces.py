"""What happened, a record per stage; and what a candidate would have done."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from toolcrib.types.callers import Channel
from toolcrib.types.shapes import JsonObject


class Stage(StrEnum):
    REGISTRY = "registry"
    ELIGIBILITY = "eligibility"
    RETRIEVAL = "retrieval"
    ROUTING = "routing"
    SELECTION = "selection"
    GATE = "gate"
    EXECUTION = "execution"


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRecord:
    """What one stage did. `caller_view` may be shown to the caller (I1 holds for it); `operator_view` never."""

    stage: Stage
    operator_view: JsonObject
    caller_view: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One request, a record per stage. `kind`: `select` or `call`. `at`: ISO 8601, UTC."""

    trace_id: str
    kind: Literal["select", "call"]
    at: str
    subject: str
    on_behalf_of: str
    tenant: str
    channel: Channel
    records: tuple[StageRecord, ...]

    def record(self, stage: Stage) -> StageRecord | None:
        return next((r for r in self.records if r.stage is stage), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowSide:
    """One of two answers to the same select, in figures: no arguments, no definitions, no words.

    Args:
        tool_ids: what was offered, best first. confidence: 0 to 1. latency_ms: from request to selection.
        catalog_version, policy_version, index_version, options: what it rested on, as in the operator's trace.
    """

    outcome: str
    tool_ids: tuple[str, ...]
    tokens: int
    confidence: float
    latency_ms: float
    catalog_version: str
    policy_version: str
    index_version: str
    options: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowRecord:
    """What a candidate would have answered to one select, beside what was answered. The operator's view only.

    Args:
        trace_id: of the select that was answered. at: when the candidate was tried (ISO 8601, UTC).
        state: `compared`; `failed`: the candidate could not answer, and `fault` says why; `dropped`: selects at the
            end of a process that nobody tried.
        candidate_id: digest of the candidate's policy, retrieval, routing, selection and tool rules.
        gained, lost: tools that the candidate's policy and routing would put into or take out of this caller's reach,
            the first of them by id; `n_gained` and `n_lost` count all.
        n_dropped: selects since the record before that were not tried, because too many waited.
    """

    trace_id: str
    at: str
    state: Literal["compared", "failed", "dropped"]
    present: ShadowSide | None = None
    candidate: ShadowSide | None = None
    candidate_id: str = ""
    gained: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    n_gained: int = 0
    n_lost: int = 0
    fault: str = ""
    n_dropped: int = 0
