"""Moments as people type them on the command line: `--since 2026-11-01`, `--since 30d`, `--since 12h`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from toolcrib.errors import ConfigError

_UNITS = {"d": "days", "h": "hours", "m": "minutes"}


def since_when(text: str) -> str:
    """ISO 8601, UTC. A date or time without a zone is UTC.

    Raises:
        ConfigError: it is no moment.
    """
    try:
        if unit := _UNITS.get(text[-1:]):
            moment = datetime.now(UTC) - timedelta(**{unit: float(text[:-1])})
        else:
            moment = datetime.fromisoformat(text)
            moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError) as fault:
        hint = "--since 2026-11-01, --since 30d, --since 12h"
        raise ConfigError(f"--since takes a date, days or hours, got {text!r}", hint=hint) from fault
    return moment.isoformat(timespec="microseconds")
