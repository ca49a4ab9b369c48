"""Credentials for servers: a caller's own, or none."""

from __future__ import annotations

from typing import Any

import pytest

from toolcrib.identity.vault import entry
from toolcrib.settings import VaultEntry
from toolcrib.types import Caller, CallerKind, SecretRef


def row(secret: str, subject: str = "", tenant: str = "", *, name: str = "hub", **more: Any) -> VaultEntry:
    return VaultEntry(name=name, secret=SecretRef(secret), subject=subject, tenant=tenant, **more)


AGENT = CallerKind.AGENT


ROWS = (
    row("env:ANN", "ann", "acme"),
    row("env:ANN_GLOBEX", "ann", "globex"),
    row("env:BOT", "bot", "acme", kind=AGENT),
    row("env:OTHER", "ann", "acme", name="mail"),
    row("env:REFRESH", refresh=True),
)
ANN = Caller(subject="ann", tenant="acme")


@pytest.mark.parametrize(
    ("caller", "found"),
    [
        (ANN, "env:ANN"),
        (Caller(subject="ann", tenant="globex"), "env:ANN_GLOBEX"),
        (Caller(subject="ann"), None),
        (Caller(subject="ben", tenant="acme"), None),
        (Caller(subject="bot", kind=AGENT, tenant="acme", acting_for=ANN), "env:BOT"),
        (Caller(subject="bot", tenant="acme"), None),
        (Caller(subject="ann", kind=AGENT, tenant="acme"), None),
        (Caller(subject="new-bot", tenant="acme", acting_for=ANN), "env:ANN"),
        (Caller(subject="new-bot", tenant="acme", on_behalf_of="ann"), None),
        (Caller(subject="new-bot", acting_for=Caller(subject="ben", tenant="acme")), None),
        (Caller(subject="first", acting_for=Caller(subject="new-bot", acting_for=ANN)), "env:ANN"),
        (None, "env:REFRESH"),
    ],
    ids=[
        "own",
        "own-in-tenant",
        "no-tenant",
        "none",
        "agents-own",
        "user-of-agents-name",
        "agent-of-users-name",
        "users",
        "said-only",
        "others",
        "users-at-two-removes",
        "to-list",
    ],
)
def test_nobody_gets_a_credential_of_somebody_else(caller: Caller | None, found: str | None) -> None:
    ref = entry(ROWS, name="hub", caller=caller)
    assert (ref.reference if ref else None) == found


def test_an_entry_of_another_name_is_another_credential() -> None:
    assert entry(ROWS, name="calendar", caller=ANN) is None
    assert entry(ROWS, name="mail", caller=None) is None
