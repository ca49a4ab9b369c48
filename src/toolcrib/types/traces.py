"""What happened, a record per stage."""

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
