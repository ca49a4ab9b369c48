"""What is asked and found: hits, rankings, routing rules, selections."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from toolcrib.types.callers import Caller
from toolcrib.types.registry import Risk, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One scored tool. `score` is comparable within one ranking only; `capability` says which part it answers.

    Args:
        tool_idx: the tool's number in the snapshot.
        lexical: BM25F score, 0 or more. dense: cosine, -1 to 1.
        named: the task names this tool.
        confidence: 0 to 1, that this tool does what its capability asks.
    """

    tool_idx: int
    tool_id: str
    score: float
    lexical: float = 0.0
    dense: float = 0.0
    named: bool = False
    capability: int = 0
    confidence: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Permitted tools, best first; ties by tool id.

    Args:
        capabilities: the parts of the task, in order; `Hit.capability` points here.
        confidence: 0 to 1, that some permitted tool fits the task.
        degraded: an arm of retrieval was down.
        empty_query: nothing in the task says what is wanted (blank, punctuation, request words alone).
    """

    hits: tuple[Hit, ...]
    capabilities: tuple[str, ...]
    confidence: float
    degraded: bool = False
    empty_query: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskCeiling:
    """In these stages of a workflow nothing riskier than `max_risk` is used; no stages means in all of them."""

    stages: tuple[str, ...] = ()
    max_risk: Risk

    def holds_for(self, caller: Caller) -> bool:
        return not self.stages or caller.stage in self.stages


@dataclass(frozen=True, slots=True, kw_only=True)
class ResidencyRule:
    """Data of these tenants stays within these places: a tool that keeps it elsewhere, or says nothing, is not used.

    Args:
        tenants: globs on the caller's tenant; empty: all callers. data_classes: of tools; empty: all tools.
        within: places, compared with the tool's `residency`, all of which must be among them.
    """

    tenants: tuple[str, ...] = ()
    data_classes: tuple[str, ...] = ()
    within: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingRules:
    """What operating rules say apart from policy: hard constraints, and which of several equal matches is preferred.

    Args:
        prefer: in this order, the first that tells two tools apart decides: `replacement`, `health`, `order`, `risk`,
            `cost`, `latency`.
        near_score: scores within this share of the better one count as equal, 0 to 1.
        near_meaning: cosine of two definitions from which on they count as the same capability, 0 to 1.
        equivalent: groups of tool ids that serve one capability, each in its owner's order.
    """

    risk_ceilings: tuple[RiskCeiling, ...] = ()
    residency: tuple[ResidencyRule, ...] = ()
    prefer: tuple[str, ...] = ("replacement", "health", "order", "risk", "cost", "latency")
    near_score: float = 0.1
    near_meaning: float = 0.9
    equivalent: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolHealth:
    """How a tool's recent calls went. `circuit_open`: its server is not asked at present."""

    n_calls: int
    n_failed: int
    n_late: int
    circuit_open: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteMove:
    """What routing did to one tool and why. `action`: `dropped`, `demoted`. `behind`: the tool preferred to it, if any.

    `code`: `region`, `environment`, `residency`, `risk_ceiling` for dropped ones; the preference for demoted ones.
    """

    tool_id: str
    action: Literal["dropped", "demoted"]
    code: str
    reason: str
    behind: str = ""


class Outcome(StrEnum):
    SELECTED = "selected"
    NEEDS_CLARIFICATION = "needs_clarification"
    NO_MATCH = "no_match"
    DENIED = "denied"
    UNAVAILABLE = "unavailable"


MAX_LIMIT = 50
"""Tools in one selection, at most, whoever asks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectRequest:
    """What is asked. `queries` are the caller's own focused parts of the task; the numbers are ceilings."""

    task: str
    queries: tuple[str, ...] = ()
    limit: int = 5
    token_budget: int = 6_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedTool:
    """One tool of a selection. `note`: what its operator has to say of it, as far as the caller may know, or ""."""

    tool: Tool
    rank: int
    score: float
    capability: str
    tokens: int
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedTool:
    """A permitted candidate that did not go in. `reason`: `token_budget`, `limit`, `confidence`."""

    tool_id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What goes into the context: whole definitions, what was dropped and why, and an outcome."""

    outcome: Outcome
    message: str
    tools: tuple[SelectedTool, ...]
    dropped: tuple[DroppedTool, ...]
    tokens: int
    token_budget: int
    limit: int
    confidence: float
    degraded: bool = False
