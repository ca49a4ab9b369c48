"""Whether somebody was revoked: the caller, anybody it acts for, or the session of its token.

Below: `types/`. Above: `callers.py` on floor 4, which reads the list from the store on every request.
"""

from __future__ import annotations

from collections.abc import Iterable

from toolcrib.types import Caller, Revocation, RevokedKind


def subject_value(subject: str, *, tenant: str) -> str:
    """How a list of revocations names a subject: `<tenant>/<subject>`, since tenants may use the same names.

    The first slash ends the tenant, so one within it is written %2F (and % is %25): no two subjects read the same.
    """
    return f"{tenant.replace('%', '%25').replace('/', '%2F')}/{subject}"


def revoked(caller: Caller, revocations: Iterable[Revocation]) -> str:
    """What of this caller is revoked, in words; "" for nothing."""
    words = _marks(caller)
    return next((words[mark] for r in revocations if (mark := (r.kind, r.value)) in words), "")


def _marks(caller: Caller) -> dict[tuple[RevokedKind, str], str]:
    """All that may stand in the list and would count against this caller."""
    marks: dict[tuple[RevokedKind, str], str] = {}
    for who in caller.chain:
        for subject in filter(None, (who.subject, who.on_behalf_of)):
            value = subject_value(subject, tenant=who.tenant)
            marks[RevokedKind.SUBJECT, value] = f"{subject!r} is revoked"
        for name in (who.credential.session, who.credential.token_id) if who.credential is not None else ():
            if name:
                marks[RevokedKind.SESSION, name] = f"a session of {who.subject!r} is revoked"
    return marks
