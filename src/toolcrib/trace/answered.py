"""Calls that ran and were answered, and the request that each belongs to, as their traces tell: the use of an offer.

Above: `learn.py`, `evals/past.py`, `evals/shadow.py`. Pure.

    request: offered a, b ─▶ request: offered b, c ─▶ call of a: belongs to the first
                                                   └▶ call of b: belongs to the second
                                                   └▶ call of d: belongs to none; `newest` is the second

Invariants
1. A call belongs to one request at most: the newest of the same caller, not long before it, that offered the tool under
   the definition that was called.
2. A caller is its tenant, subject and whom it acts for, as in the gate's own check of offers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

from toolcrib.types import Code, Stage, Trace

WITHIN = timedelta(hours=1)
"""How long after a request a call may still belong to it, unless something else is asked for."""
_KEPT = 32
"""Requests of one caller that are followed; whoever asks more often than that before a call is trying."""
Holder = tuple[str, str, str]
Offered = tuple[str, str]
"""A tool's id and its digest."""
T = TypeVar("T")


def answered_call(trace: Trace) -> Offered | None:
    """(tool id, digest) of a call that was let through and answered; None for any other trace."""
    gate, done = trace.record(Stage.GATE), trace.record(Stage.EXECUTION)
    if gate is None or done is None:
        return None
    if gate.operator_view.get("code") != Code.OK or done.operator_view.get("code") != Code.OK:
        return None
    return str(gate.operator_view.get("tool_id", "")), str(gate.operator_view.get("digest", ""))


def holder_of(trace: Trace) -> Holder:
    """To whom an offer was made, and who calls."""
    return trace.tenant, trace.subject, trace.on_behalf_of


def offered_in(selection: Mapping[str, Any]) -> frozenset[Offered]:
    """What a selection's record says was offered."""
    return frozenset((str(row["tool_id"]), str(row.get("digest", ""))) for row in selection.get("tools", ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Open(Generic[T]):
    at: datetime
    offered: frozenset[Offered]
    request: T


class Following(Generic[T]):
    """Follows each caller through its requests and calls, oldest first.

    Args:
        within: how long after a request a call may still belong to it.
    """

    def __init__(self, *, within: timedelta = WITHIN) -> None:
        self._within = within
        self._open: dict[Holder, list[_Open[T]]] = {}

    def asked(self, holder: Holder, *, at: str, offered: frozenset[Offered], request: T) -> None:
        """A request. `at`: ISO 8601. `request`: what `called` and `newest` give back."""
        mine = self._open.setdefault(holder, [])
        mine.append(_Open(at=datetime.fromisoformat(at), offered=offered, request=request))
        del mine[:-_KEPT]

    def called(self, holder: Holder, *, at: str, tool: Offered) -> T | None:
        """The request that a call belongs to."""
        return next((one.request for one in reversed(self._recent(holder, at)) if tool in one.offered), None)

    def newest(self, holder: Holder, *, at: str) -> T | None:
        """The caller's newest request, whatever it offered."""
        recent = self._recent(holder, at)
        return recent[-1].request if recent else None

    def _recent(self, holder: Holder, at: str) -> list[_Open[T]]:
        oldest = datetime.fromisoformat(at) - self._within
        return [one for one in self._open.get(holder, ()) if one.at >= oldest]
