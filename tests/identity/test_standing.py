"""Who is revoked: by subject within the tenant, for whom an agent acts, by session and by key; nobody else."""

from __future__ import annotations

import pytest

from toolcrib.identity.standing import revoked
from toolcrib.types import Caller, Credential, Revocation, RevokedKind


def row(kind: RevokedKind, value: str) -> Revocation:
    return Revocation(kind=kind, value=value, at="2026-01-01T00:00:00+00:00", by="tests")


ANN = Caller(subject="ann", tenant="acme", credential=Credential(kind="jwt", session="s-1"))
BOT = Caller(subject="bot", tenant="acme", on_behalf_of="ann", acting_for=ANN, credential=ANN.credential)
OWN = Caller(subject="bot", tenant="acme", on_behalf_of="ann", credential=Credential(kind="key", key_id="k-1"))


@pytest.mark.parametrize(
    ("caller", "kind", "value", "ends"),
    [
        (ANN, RevokedKind.SUBJECT, "acme/ann", True),
        (ANN, RevokedKind.SUBJECT, "globex/ann", False),
        (ANN, RevokedKind.SUBJECT, "/ann", False),
        (ANN, RevokedKind.SUBJECT, "acme/bot", False),
        (ANN, RevokedKind.SUBJECT, "acme/", False),
        (ANN, RevokedKind.SESSION, "s-1", True),
        (ANN, RevokedKind.SESSION, "s-2", False),
        (ANN, RevokedKind.KEY, "s-1", False),
        (ANN, RevokedKind.KEY, "", False),
        (BOT, RevokedKind.SUBJECT, "acme/bot", True),
        (BOT, RevokedKind.SUBJECT, "acme/ann", True),
        (BOT, RevokedKind.SESSION, "s-1", True),
        (OWN, RevokedKind.SUBJECT, "acme/ann", True),
        (OWN, RevokedKind.KEY, "k-1", True),
        (OWN, RevokedKind.SESSION, "", False),
        (Caller(subject="ann"), RevokedKind.SUBJECT, "/ann", True),
        (Caller(subject="ann"), RevokedKind.SESSION, "", False),
    ],
)
def test_a_revocation_ends_whom_it_names_and_nobody_else(
    caller: Caller, kind: RevokedKind, value: str, ends: bool
) -> None:
    others = [row(RevokedKind.SUBJECT, "acme/zoe"), row(RevokedKind.SESSION, "s-9")]
    assert bool(revoked(caller, [*others, row(kind, value)])) == ends
    assert revoked(caller, others) == ""
