"""`toolcrib revoke`: let somebody or something in no more, at once, whatever it shows.

Above: `main.py` registers the commands. Below: the store's list of revocations, read on every request.

A subject is revoked within its tenant, and another tenant's subject of that name is somebody else. A tenant that was
forgotten or mistyped would leave in whoever was meant, so the commands say where the crib knows the name from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated

import typer

from toolcrib.cli.shared import AsJson, app, open_crib, print_json, print_table, reviewer_name, say
from toolcrib.crib import Crib
from toolcrib.errors import ConfigError
from toolcrib.identity.standing import subject_value
from toolcrib.types import ApiKey, JsonObject, Revocation, RevokedKind

revoke_app = typer.Typer(
    help="Subjects and sessions that are let in no more.",
    epilog="Example: toolcrib revoke subject ann --tenant acme --reason 'left the company'",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(revoke_app, name="revoke")

_MAX_TRACES = 2_000
"""As far back as it is looked who was here: some tenths of a second."""

Tenant = Annotated[str, typer.Option("--tenant", metavar="NAME", help="The subject's tenant; none by default.")]
By = Annotated[str, typer.Option("--by", metavar="NAME", help="Who decides (default: the system's user).")]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="For those who read the list.")]


@revoke_app.command("subject", epilog="Example: toolcrib revoke subject ann --tenant acme")
def revoke_subject(
    subject: Annotated[str, typer.Argument(metavar="SUBJECT")], tenant: Tenant = "", by: By = "", reason: Reason = ""
) -> None:
    """A user, agent or workload: by any credential, and also where an agent acts for it."""
    with open_crib(quiet=True) as crib:
        crib.store.revoke(
            _row(RevokedKind.SUBJECT, subject_value(_named(subject), tenant=tenant), by=by, reason=reason)
        )
        known = _tenants_of(subject, crib)
        gone = {row.value for row in crib.store.revocations() if row.kind is RevokedKind.SUBJECT}
    if tenant:
        say(f"revoked {_whom(subject, tenant)}")
    else:
        say(f"revoked {subject}, without a tenant; callers of a tenant are revoked with --tenant NAME")
    elsewhere = [place for place in known if subject_value(subject, tenant=place) not in gone]
    if elsewhere and tenant not in known:
        say(f"WARNING: of this name only others are known here, and still let in: {_places(subject, elsewhere)}")


@revoke_app.command("session", epilog="Example: toolcrib revoke session 8c1f0e2a")
def revoke_session(
    session: Annotated[str, typer.Argument(metavar="SESSION")], by: By = "", reason: Reason = ""
) -> None:
    """A session of signed tokens by their `sid`, or one signed token alone by its `jti`."""
    with open_crib(quiet=True) as crib:
        crib.store.revoke(_row(RevokedKind.SESSION, _named(session), by=by, reason=reason))
    say(f"revoked the session {session}")


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
    cells = [
        (row["kind"], *_split(row["kind"], row["value"]), row["at"][:19], row["by"], row["reason"]) for row in rows
    ]
    print_table(("kind", "name", "tenant", "since (UTC)", "by", "reason"), cells, whole=1)


@revoke_app.command("restore", epilog="Example: toolcrib revoke restore subject ann --tenant acme")
def revoke_restore(
    kind: Annotated[RevokedKind, typer.Argument(metavar="subject|session")],
    value: Annotated[str, typer.Argument(metavar="NAME")],
    tenant: Tenant = "",
) -> None:
    """Let it in again. Exit 1 if it is not in the list."""
    of_subject = kind is RevokedKind.SUBJECT
    name = _whom(value, tenant) if of_subject else f"the session {value}"
    with open_crib(quiet=True) as crib:
        done = crib.store.restore(kind, subject_value(value, tenant=tenant) if of_subject else value)
        rows = [_split(row.kind, row.value) for row in crib.store.revocations() if of_subject and row.kind is kind]
    say(f"restored {name}" if done else f"{name} is not revoked: see `toolcrib revoke list`")
    revoked = sorted(place for subject, place in rows if subject == value)
    if revoked:
        say(f"{'still ' if done else ''}revoked: {_places(value, revoked)}; restored with --tenant NAME")
    raise typer.Exit(0 if done else 1)


def _of_key(record: ApiKey) -> dict[str, str]:
    """A key that was revoked, as a row of the list; nobody wrote down by whom and why."""
    return {"kind": "key", "value": record.key_id, "at": record.revoked_at, "by": "", "reason": ""}


def _row(kind: RevokedKind, value: str, *, by: str, reason: str) -> Revocation:
    return Revocation(kind=kind, value=value, at=datetime.now(UTC).isoformat(), by=reviewer_name(by), reason=reason)


def _split(kind: str, value: str) -> tuple[str, str]:
    """Name and tenant of what was revoked; see `subject_value`."""
    if kind != RevokedKind.SUBJECT:
        return value, ""
    tenant, _, subject = value.partition("/")
    return subject, tenant.replace("%2F", "/").replace("%25", "%")


def _whom(subject: str, tenant: str) -> str:
    return f"{subject} of the tenant {tenant}" if tenant else f"{subject} (without a tenant)"


def _places(subject: str, tenants: Sequence[str]) -> str:
    """The same name in each of these tenants, in words."""
    return " and ".join(_whom(subject, tenant) for tenant in tenants)


def _tenants_of(subject: str, crib: Crib) -> list[str]:
    """The tenants, "" for none, in which a subject of this name has come in lately or has something to come in with."""
    described = (dict(fields) for fields in _described(crib))
    pairs = {(f.get(name), f.get("tenant", "")) for f in described for name in ("subject", "on_behalf_of")}
    for trace in crib.store.each_trace(since="", limit=_MAX_TRACES):
        pairs |= {(trace.subject, trace.tenant), (trace.on_behalf_of, trace.tenant)}
    return sorted({tenant for name, tenant in pairs if name == subject})


def _described(crib: Crib) -> Iterator[JsonObject]:
    """The fields of all callers that the configuration or an API key in use describes."""
    identity = crib.settings.identity
    yield from (row.caller for row in identity.tokens)
    yield from identity.agents
    yield from (client.caller for row in identity.proxies for client in row.clients)
    yield from (record.caller for record in crib.store.api_keys() if not record.revoked_at)


def _named(text: str) -> str:
    if not text.strip():
        raise ConfigError("nobody is named", hint="toolcrib revoke subject NAME")
    return text
