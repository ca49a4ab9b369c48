"""Which credential for a server is a caller's own.

Below: `types/`. Above: whoever opens a server for somebody.

Invariants
1. A caller gets its own entry or none: kind, subject and tenant are equal, all of them.
2. An agent that acts for a user uses its own entry, or else the user's; nobody else's. Of a chain, the first that has
   one.
3. The entry to list tools with belongs to nobody, and no caller gets it because it has none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from toolcrib.types import Caller, CallerKind, SecretRef


class VaultRow(Protocol):
    """A row of `[[vault]]`, as the settings have it."""

    @property
    def name(self) -> str: ...
    @property
    def secret(self) -> SecretRef: ...
    @property
    def subject(self) -> str: ...
    @property
    def kind(self) -> CallerKind: ...
    @property
    def tenant(self) -> str: ...
    @property
    def refresh(self) -> bool: ...


def entry(entries: Iterable[VaultRow], *, name: str, caller: Caller | None) -> SecretRef | None:
    """Where the credential lies, or None: there is none for this caller.

    Args:
        name: what a server's headers or environment ask for, `caller:<name>`.
        caller: None to list the server's tools.
    """
    rows = [row for row in entries if row.name == name]
    if caller is None:
        return next((row.secret for row in rows if row.refresh), None)
    for who in caller.chain:
        own = (row.secret for row in rows if _belongs(row, who))
        if (found := next(own, None)) is not None:
            return found
    return None


def _belongs(row: VaultRow, who: Caller) -> bool:
    return bool(row.subject) and (row.kind, row.subject, row.tenant) == (who.kind, who.subject, who.tenant)
