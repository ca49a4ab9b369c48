"""What tools cost in a model's context, for one caller: all of them, the surface alone, a typical selection."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from toolcrib.crib import Crib
from toolcrib.selection.tokens import TOKEN_ESTIMATE_ERROR, estimate_tokens
from toolcrib.server.surface import SurfaceKind, public_definition, surface_of
from toolcrib.types import Caller, Channel, Stage, Tool

_MAX_SAMPLES = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCost:
    server_id: str
    n_tools: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextCosts:
    """Tokens, estimated, of whole definitions as `tools/list` sends them.

    `typical_from` says what the typical selection was measured on.
    """

    servers: tuple[ServerCost, ...]
    tools: tuple[tuple[str, int], ...]
    all_tokens: int
    surface_tokens: int
    typical_selection_tokens: int
    typical_from: str
    error_note: str

    def summary_rows(self) -> list[tuple[str, str]]:
        share = 100 * (self.surface_tokens + self.typical_selection_tokens) / self.all_tokens if self.all_tokens else 0
        return [
            ("every permitted tool, listed", f"{self.all_tokens:,}"),
            ("the gateway's surface", f"{self.surface_tokens:,}"),
            (f"a typical selection ({self.typical_from})", f"{self.typical_selection_tokens:,}"),
            ("surface and one selection, of listing all", f"{share:.1f} %"),
        ]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def context_costs(crib: Crib, caller: Caller) -> ContextCosts:
    """Measure for this caller; the figures are a function of what it may discover, and of its own past requests."""
    view = crib.view(caller, Channel.CLI)
    costs = {tool.tool_id: estimate_tokens(public_definition(tool)) for tool in view.tools}
    typical, source = _typical(crib, caller, view.tools)
    return ContextCosts(
        servers=_by_server(view.tools, costs),
        tools=tuple(sorted(costs.items(), key=lambda item: (-item[1], item[0]))),
        all_tokens=sum(costs.values()),
        surface_tokens=sum(estimate_tokens(d) for d in surface_of(view, SurfaceKind.SEARCH).listing),
        typical_selection_tokens=typical,
        typical_from=source,
        error_note=(
            "Tokens are estimated (o200k): median error {median_abs_percent} %, 95th percentile {p95_abs_percent} %, "
            "{total_percent:+} % over all, on servers it was not calibrated on."
        ).format(**TOKEN_ESTIMATE_ERROR),
    )


def _by_server(tools: tuple[Tool, ...], costs: dict[str, int]) -> tuple[ServerCost, ...]:
    grouped: dict[str, list[int]] = defaultdict(list)
    for tool in tools:
        grouped[tool.server_id].append(costs[tool.tool_id])
    found = [ServerCost(server_id=s, n_tools=len(c), tokens=sum(c)) for s, c in grouped.items()]
    return tuple(sorted(found, key=lambda cost: (-cost.tokens, cost.server_id)))


def _typical(crib: Crib, caller: Caller, tools: tuple[Tool, ...]) -> tuple[int, str]:
    """The median over this caller's recorded selections, or over selections for its tools' own first sentences."""
    recorded = [
        record.operator_view["tokens"]
        for trace in crib.store.traces(limit=500)
        if trace.kind == "select" and (trace.subject, trace.tenant) == (caller.subject, caller.tenant)
        if (record := trace.record(Stage.SELECTION)) and record.operator_view["tools"]
    ]
    if len(recorded) >= 5:
        return int(median(recorded)), f"median of {len(recorded)} recorded"
    step = max(1, len(tools) // _MAX_SAMPLES)
    tasks = [tool.description.split(".")[0] for tool in tools[::step] if tool.description]
    sampled = [crib.preview(task, caller=caller, channel=Channel.CLI).tokens for task in tasks]
    chosen = [n for n in sampled if n]
    return (int(median(chosen)), f"median of {len(chosen)} sample tasks") if chosen else (0, "none")
