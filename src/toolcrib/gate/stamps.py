"""Moments as text that sorts as they do: ISO 8601, UTC, of one width; stores compare them so.

Above: `approval.py`, `duplicates.py`, `offers.py`.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


def stamp(now: str, *, plus_s: float = 0.0) -> str:
    """That moment and some seconds more. `now`: ISO 8601 with an offset. `plus_s`: may be negative."""
    at = datetime.fromisoformat(now).astimezone(UTC) + timedelta(seconds=plus_s)
    return at.isoformat(timespec="microseconds")
