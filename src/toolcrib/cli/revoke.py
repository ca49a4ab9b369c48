"""`toolcrib revoke`: let somebody or something in no more, at once, whatever it shows.

Above: `main.py` registers the commands. Below: the store's list of revocations, read on every request.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated

import typer

from toolcrib.cli.shared import AsJson, app, open_crib, print_json, print_table, reviewer_name, say
from toolcrib.errors import ConfigError
from toolcrib.identity.standing import subject_value
from toolcrib.types import ApiKey, Revocation, RevokedKind

revoke_app = typer.Typer(
    help="Subjects and sessions that are let in no more.",
    epilog="Example: toolcrib revoke subject ann --tenant acme --reason 'left the company'",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(revoke_app, name="revoke")

Tenant = Annotated[str, typer.Option("--tenant", metavar="NAME", help="The subject's tenant; none by default.")]
By = Annotated[str, typer.Option("--by", metavar="NAME", help="Who decides (default: the system's user).")]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="For those who read the list.")]


@revoke_app.command("subject", epilog="Example: toolcrib revoke subject ann --tenant acme")
def revoke_subject(
    subject: Annotated[str, typer.Argument(metavar="SUBJECT")], tenant: Tenant = "", by: By = "", reason: Reason = ""
) -> None:
    """A user, agent or workload: by any credential, and also where an agent acts for it."""
    _revoke(RevokedKind.SUBJECT, _named(subject), tenant=tenant, by=by, reason=reason)


@revoke_app.command("session", epilog="Example: toolcrib revoke session 8c1f0e2a")
def revoke_session(
    session: Annotated[str, typer.Argument(metavar="SESSION")], by: By = "", reason: Reason = ""
) -> None:
    """A session of signed tokens by their `sid`, or one signed token alone by its `jti`."""
    _revoke(RevokedKind.SESSION, _named(session), tenant="", by=by, reason=reason)


@revoke_app.command("list", epilog="Example: toolcrib revoke list --json")
def revoke_list(as_json: AsJson = False) -> None:
    """All that is revoked, oldest first; API keys too, which are revoked with toolcrib key revoke and for good."""
    with open_crib(quiet=True) as crib:
        rows = [asdict(row) for row in crib.store.revocations()]
        rows += [_of_key(record) for record in crib.store.api_keys() if record.revoked_at]
    rows.sort(key=lambda row: row["at"])
    if as_json:
        print_json({"revocations": rows})
        return
    print_table(
        ("kind", "value", "since (UTC)", "by", "reason"),
        [(row["kind"], row["value"], row["at"][:19], row["by"], row["reason"]) for row in rows],
        whole=1,
    )


@revoke_app.command("restore", epilog="Example: toolcrib revoke restore subject ann --tenant acme")
def revoke_restore(
    kind: Annotated[RevokedKind, typer.Argument(metavar="subject|session")],
    value: Annotated[str, typer.Argument(metavar="NAME")],
    tenant: Tenant = "",
) -> None:
    """Let it in again. Exit 1 if it is not in the list."""
    with open_crib(quiet=True) as crib:
        done = crib.store.restore(kind, _value(kind, value, tenant=tenant))
    say(f"restored {value}" if done else "nothing like this is revoked: see `toolcrib revoke list`")
    raise typer.Exit(0 if done else 1)


def _of_key(record: ApiKey) -> dict[str, str]:
    """A key that was revoked, as a row of the list; nobody wrote down by whom and why."""
    return {"kind": "key", "value": record.key_id, "at": record.revoked_at, "by": "", "reason": ""}


def _revoke(kind: RevokedKind, name: str, *, tenant: str, by: str, reason: str) -> None:
    row = Revocation(
        kind=kind,
        value=_value(kind, name, tenant=tenant),
        at=datetime.now(UTC).isoformat(),
        by=reviewer_name(by),
        reason=reason,
    )
    with open_crib(quiet=True) as crib:
        crib.store.revoke(row)
    say(f"revoked {kind} {row.value}")


def _value(kind: RevokedKind, name: str, *, tenant: str) -> str:
    return subject_value(name, tenant=tenant) if kind is RevokedKind.SUBJECT else name


def _named(text: str) -> str:
    if not text.strip():
        raise ConfigError("nobody is named", hint="toolcrib revoke subject NAME")
    return text
