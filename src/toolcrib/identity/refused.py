"""Why somebody was not let in: a value for the operator's log, never for whoever knocked.

Below: nothing. Above: everything in this room that looks at a credential.
"""

from __future__ import annotations

from dataclasses import dataclass

_SHOWN_CHARS = 80


@dataclass(frozen=True, slots=True)
class Refused:
    """`reason`: in words, without the credential or any part of it that is secret."""

    reason: str


def shown(text: str) -> str:
    """What a stranger wrote, fit for a line of a log: quoted, escaped and cut."""
    return repr(text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…")
