"""Who is revoked: by subject within the tenant, for whom an agent acts, by session and by token; nobody else."""

from __future__ import annotations

import pytest

from toolcrib.identity.standing import revoked, subject_value
from toolcrib.types import Caller, Credential, Revocation, RevokedKind


def row(kind: RevokedKind, value: str) -> Revocation:
    return Revocation(kind=kind, value=value, at="2026-01-01T00:00:00+00:00", by="tests")


ANN = Caller(subject="ann", tenant="acme", credential=Credential(kind="jwt", session="s-1", token_id="t-1"))
BOT = Caller(subject="bot", tenant="acme", on_behalf_of="ann", acting_for=ANN, credential=ANN.credential)
LAST = Caller(subject="cleo", tenant="globex", credential=Credential(kind="key", session="s-3"))
MIDDLE = Caller(subject="mid", tenant="acme", on_behalf_of="cleo", acting_for=LAST)
FIRST = Caller(subject="first", tenant="acme", on_behalf_of="mid", acting_for=MIDDLE)
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
        (ANN, RevokedKind.SESSION, "t-1", True),
        (ANN, RevokedKind.SESSION, "t-2", False),
        (ANN, RevokedKind.SESSION, "", False),
        (BOT, RevokedKind.SUBJECT, "acme/bot", True),
        (BOT, RevokedKind.SUBJECT, "acme/ann", True),
        (BOT, RevokedKind.SESSION, "s-1", True),
        (OWN, RevokedKind.SUBJECT, "acme/ann", True),
        (BOT, RevokedKind.SESSION, "t-1", True),
        (OWN, RevokedKind.SESSION, "k-1", False),
        (OWN, RevokedKind.SESSION, "", False),
        (FIRST, RevokedKind.SUBJECT, "acme/first", True),
        (FIRST, RevokedKind.SUBJECT, "acme/mid", True),
        (FIRST, RevokedKind.SUBJECT, "globex/cleo", True),
        (FIRST, RevokedKind.SUBJECT, "globex/mid", False),
        (FIRST, RevokedKind.SESSION, "s-3", True),
        (LAST, RevokedKind.SUBJECT, "acme/first", False),
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


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("b/c", "a"), ("c", "a/b")),
        (("c", "a%2Fb"), ("c", "a/b")),
        (("/c", ""), ("c", "/")),
        (("c", "%"), ("c", "%25")),
    ],
    ids=["slash", "written-out", "empty", "percent"],
)
def test_no_two_subjects_are_written_alike(one: tuple[str, str], other: tuple[str, str]) -> None:
    (subject, tenant), (its_subject, its_tenant) = one, other
    value = subject_value(subject, tenant=tenant)
    assert value != subject_value(its_subject, tenant=its_tenant)
    assert revoked(Caller(subject=subject, tenant=tenant), [row(RevokedKind.SUBJECT, value)])
    assert not revoked(Caller(subject=its_subject, tenant=its_tenant), [row(RevokedKind.SUBJECT, value)])


def test_a_plain_tenant_and_any_subject_stay_readable() -> None:
    assert subject_value("spiffe://x/y%z", tenant="acme") == "acme/spiffe://x/y%z"
