"""Drafts for one crib: its tools in service, its profiles as callers, its own search to say what nothing fits.

Above: `cli/evals.py`. Below: `drafts.py`, `crib.py`.
"""

from __future__ import annotations

import numpy as np

from toolcrib.crib import Crib
from toolcrib.evals.cases import Case
from toolcrib.evals.drafts import drafted, reachable_of
from toolcrib.identity.callers import caller_from_file
from toolcrib.types import Caller, Channel, SelectRequest, Tool

_NEAR = 0.75
_MAX_COMPARED = 3_000


def drafts_of_crib(crib: Crib, *, n: int, seed: int) -> tuple[Case, ...]:
    """About `n` drafts that the crib's callers can be offered the tools of. Raises as `Crib.pipeline`."""
    pipeline = crib.pipeline()
    callers: dict[str | None, Caller] = {None: crib.local_caller}
    place = crib.settings.crib
    for path in sorted(crib.settings.profiles.glob("*.json")):
        callers[path.stem] = caller_from_file(path, environment=place.environment, region=place.region)
    reach = {
        name: frozenset(tool.tool_id for tool in pipeline.view(caller, Channel.LIBRARY).tools)
        for name, caller in callers.items()
    }
    if any(ids for name, ids in reach.items() if name is not None):
        del reach[None]  # whoever sits at this machine is not whom the tools are for, where profiles say who is
    tools, index = pipeline.snapshot.tools, pipeline.index
    everything = pipeline.search_view(np.ones(len(tools), dtype=np.bool_))
    numbers = {tool.tool_id: number for number, tool in enumerate(tools)}

    def confidence(task: str) -> float:
        if everything is None:
            return 0.0
        return pipeline.ranked(everything, SelectRequest(task=task), top_k=pipeline.options.top_k).confidence

    def nearest(tool: Tool) -> str:
        if index is None or len(tools) > _MAX_COMPARED:
            return ""
        here = numbers[tool.tool_id]
        close = [(index.similarity(here, other) or 0.0, other) for other in range(len(tools)) if other != here]
        best = max(close, default=(0.0, -1))
        return tools[best[1]].tool_id if best[0] >= _NEAR else ""

    return drafted(reachable_of(tools, reach), n=n, seed=seed, confidence=confidence, nearest=nearest)
