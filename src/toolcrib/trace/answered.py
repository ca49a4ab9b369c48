"""Calls that ran and were answered, as their traces tell: what may count as the use of an offer.

Above: `learn.py`, `evals/past.py`, `evals/shadow.py`. Pure.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from toolcrib.types import Code, Stage, Trace

_WITHIN = timedelta(hours=1)


def answered_call(trace: Trace) -> tuple[str, str] | None:
    """(tool id, digest) of a call that was let through and answered; None for any other trace."""
    gate, done = trace.record(Stage.GATE), trace.record(Stage.EXECUTION)
    if gate is None or done is None:
        return None
    if gate.operator_view.get("code") != Code.OK or done.operator_view.get("code") != Code.OK:
        return None
    return str(gate.operator_view.get("tool_id", "")), str(gate.operator_view.get("digest", ""))


def soon_after(asked: str, called: str) -> bool:
    """Whether a call came within an hour of a request. Both: ISO 8601."""
    return datetime.fromisoformat(called) - datetime.fromisoformat(asked) <= _WITHIN
