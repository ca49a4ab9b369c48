from __future__ import annotations

import pytest

from toolcrib.gate.offers import holder_key, offered_since
from toolcrib.types import Caller, CallerKind, Credential

ANN = Caller(subject="ann", tenant="acme")


@pytest.mark.parametrize(
    "other",
    [
        Caller(subject="bo", tenant="acme"),
        Caller(subject="ann", tenant="globex"),
        Caller(subject="ann", tenant="acme", kind=CallerKind.AGENT),
        Caller(subject="ann", tenant="acme", on_behalf_of="bo"),
        Caller(subject="ann", tenant="acme", acting_for=Caller(subject="bo")),
        Caller(subject="annacme"),
    ],
    ids=["subject", "tenant", "kind", "on behalf of", "acting for", "run together"],
)
def test_another_identity_is_another_holder(other):
    assert holder_key(other) != holder_key(ANN)


def test_rights_and_credentials_make_nobody_another_holder():
    more = Caller(
        subject="ann",
        tenant="acme",
        roles=frozenset({"admin"}),
        stage="billing",
        credential=Credential(kind="key", key_id="k1"),
    )
    assert holder_key(more) == holder_key(ANN)


def test_whom_an_agent_acts_for_counts_with_its_tenant():
    keys = {
        holder_key(Caller(subject="bot", kind=CallerKind.AGENT, on_behalf_of="bo", acting_for=user))
        for user in (None, Caller(subject="bo"), Caller(subject="bo", tenant="acme"))
    }
    assert len(keys) == 3


@pytest.mark.parametrize("now", ["2026-03-01T12:00:00+00:00", "2026-03-01T13:00:00.000000+01:00"])
def test_the_beginning_of_the_window_compares_as_text(now):
    assert offered_since(now, ttl_s=1_800) == "2026-03-01T11:30:00.000000+00:00"
