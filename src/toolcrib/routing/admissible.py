"""Hard constraints: what operating rules rule out for a caller, whatever the task.

Above: `pipeline.py`, before retrieval, so that a tool ruled out here is neither listed, found nor callable (I10).
A function of the caller and of one tool at a time: no other tool matters (I1).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from toolcrib.types import BoolArray, Caller, Risk, RiskCeiling, RouteMove, Tool


def admissible(
    tools: Sequence[Tool], *, caller: Caller, permitted: BoolArray, ceilings: Sequence[RiskCeiling] = ()
) -> tuple[BoolArray, tuple[RouteMove, ...]]:
    """What is left of `permitted`, and a move for every tool that was taken out.

    Args:
        tools: of one snapshot, in its order.
        permitted: bool, shape (n_tools,): what policy permits this caller; not changed.
        ceilings: all that hold for the caller apply; the lowest decides.
    """
    left = np.array(permitted, dtype=np.bool_)
    ceiling = min((c.max_risk for c in ceilings if c.holds_for(caller)), key=lambda risk: risk.level, default=None)
    moves = []
    for number in map(int, np.flatnonzero(permitted)):
        move = _ruled_out(tools[number], caller=caller, ceiling=ceiling)
        if move is not None:
            left[number] = False
            moves.append(move)
    return left, tuple(moves)


def _ruled_out(tool: Tool, *, caller: Caller, ceiling: Risk | None) -> RouteMove | None:
    regions = tool.metadata.regions
    if regions and caller.region not in regions:
        where = f"the caller is in {caller.region!r}" if caller.region else "the caller has no region"
        reason = f"is kept to {', '.join(regions)}; {where}"
        return RouteMove(tool_id=tool.tool_id, action="dropped", code="region", reason=reason)
    if ceiling is not None and tool.metadata.risk.level > ceiling.level:
        stage = f"in stage {caller.stage!r}" if caller.stage else "for this caller"
        reason = f"its risk is {tool.metadata.risk.value}; {stage} the most is {ceiling.value}"
        return RouteMove(tool_id=tool.tool_id, action="dropped", code="risk_ceiling", reason=reason)
    return None
