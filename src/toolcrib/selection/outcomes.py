"""What a caller is told when a selection is made or cannot be. Stable texts, the same for everybody in the same place.

Invariants
1. Every word is a function of the request and of what this caller may discover (I1); "nothing fits" and "not for you"
   read the same unless policy allows telling them apart.
"""

from __future__ import annotations

from collections.abc import Sequence

from toolcrib.types import DroppedTool, Outcome, Selection, SelectRequest

_MAX_NAMESPACES = 8
_MAX_PART_CHARS = 80

NO_MATCH = "Nothing here does that. Ask in other words, or go on without a tool."
NO_MATCH_DEGRADED = "Search is limited at the moment and found nothing. Try again later."
DENIED = "There is a tool for this, and you may not use it. Whoever runs this crib can change that."
UNAVAILABLE = "No tools can be offered at the moment. Try again later."
NO_ROOM = "A limit below 1 leaves no room for a tool."


def selected(n_tools: int, *, uncovered: Sequence[str]) -> str:
    """How many tools, and which parts of the task none of them answers."""
    told = f"{n_tools} tool{'s' if n_tools != 1 else ''} selected."
    parts = ", ".join(f'"{_short(part)}"' for part in uncovered)
    return f"{told} No room, or nothing here, for: {parts}." if parts else told


def say_what(namespaces: Sequence[str]) -> str:
    """The request says nothing to search for."""
    areas = _listed(namespaces)
    return f"Say what is wanted. There are tools for: {areas}." if areas else "Say what is wanted."


def say_which(namespaces: Sequence[str]) -> str:
    """More tools fit equally well than the limit lets through."""
    return f"Many tools fit equally well. Say which area is meant: {_listed(namespaces)}."


def too_large(token_budget: int, *, needed: int) -> str:
    """Whatever fits the task exceeds the budget."""
    return f"What fits the task exceeds the token budget of {token_budget}. A budget of {needed} would do."


def unanswered(
    outcome: Outcome,
    message: str,
    *,
    request: SelectRequest,
    confidence: float = 0.0,
    degraded: bool = False,
    dropped: tuple[DroppedTool, ...] = (),
) -> Selection:
    """A selection without tools, and why."""
    return Selection(
        outcome=outcome,
        message=message,
        tools=(),
        dropped=dropped,
        tokens=0,
        token_budget=request.token_budget,
        limit=request.limit,
        confidence=confidence,
        degraded=degraded,
    )


def unavailable(request: SelectRequest) -> Selection:
    """No valid catalog or policy is in force, so nothing can be offered (I2)."""
    return unanswered(Outcome.UNAVAILABLE, UNAVAILABLE, request=request)


def _listed(namespaces: Sequence[str]) -> str:
    named = sorted({namespace for namespace in namespaces if namespace})
    return ", ".join(named[:_MAX_NAMESPACES]) + (", …" if len(named) > _MAX_NAMESPACES else "")


def _short(part: str) -> str:
    text = " ".join(part.split())
    return text if len(text) <= _MAX_PART_CHARS else text[: _MAX_PART_CHARS - 1] + "…"
