"""`toolcrib key`: API keys for callers over HTTP. A key is shown once, when it is made; its digest is kept.

Above: `main.py` registers the commands. Below: `identity/keys.py` makes keys, the store keeps their records.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from toolcrib.cli.shared import AsJson, app, folder, open_crib, print_json, print_table, reviewer_name, say
from toolcrib.errors import ConfigError
from toolcrib.identity.callers import caller_from_file
from toolcrib.identity.keys import key_fault, new_key
from toolcrib.types import ApiKey, CallerKind

key_app = typer.Typer(
    help="API keys of callers over HTTP.",
    epilog="Example: toolcrib key create --subject billing-bot --kind agent --scope invoices:read",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(key_app, name="key")

_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
_MAX_VALID = timedelta(days=3_650)


@key_app.command(
    "create", epilog="Example: toolcrib key create --subject ann --tenant acme --role support --expires 30d"
)
def key_create(
    subject: Annotated[str, typer.Option("--subject", metavar="NAME", help="Whom the key stands for.")] = "",
    from_file: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="FILE", help="Or: a caller's JSON file, relative to the crib's folder; options go on top."
        ),
    ] = None,
    kind: Annotated[CallerKind | None, typer.Option("--kind", help="What the subject is (default: user).")] = None,
    tenant: Annotated[str, typer.Option("--tenant", metavar="NAME")] = "",
    role: Annotated[list[str] | None, typer.Option("--role", metavar="NAME", help="Repeatable.")] = None,
    scope: Annotated[list[str] | None, typer.Option("--scope", metavar="NAME", help="Repeatable.")] = None,
    feature: Annotated[list[str] | None, typer.Option("--feature", metavar="NAME", help="Repeatable.")] = None,
    stage: Annotated[str, typer.Option("--stage", metavar="NAME")] = "",
    environment: Annotated[str, typer.Option("--environment", metavar="NAME", help="Default: the crib's.")] = "",
    region: Annotated[str, typer.Option("--region", metavar="NAME", help="Default: the crib's.")] = "",
    clearance: Annotated[str, typer.Option("--clearance", metavar="NAME")] = "",
    on_behalf_of: Annotated[str, typer.Option("--on-behalf-of", metavar="NAME", help="Whom an agent acts for.")] = "",
    expires: Annotated[str, typer.Option("--expires", metavar="TIME", help="90d, 12h, 30m, or never.")] = "90d",
    by: Annotated[str, typer.Option("--by", metavar="NAME", help="Who makes it (default: the system's user).")] = "",
    as_json: AsJson = False,
) -> None:
    """Make a key and print it, this once: nobody can show it again."""
    valid_for = _duration(expires)
    given = {
        "subject": subject, "kind": str(kind) if kind else "", "tenant": tenant, "roles": role, "scopes": scope,
        "features": feature, "stage": stage, "environment": environment, "region": region, "clearance": clearance,
        "on_behalf_of": on_behalf_of,
    }  # fmt: skip
    described = {**_described(from_file), **{field: value for field, value in given.items() if value}}
    if not described.get("subject"):
        raise ConfigError("a key stands for somebody: no --subject was given", hint="--subject NAME or --from FILE")
    key, record = new_key(described, created_by=reviewer_name(by), now=datetime.now(UTC), valid_for=valid_for)
    with open_crib(quiet=True) as crib:
        crib.store.put_key(record)
    if as_json:
        print_json({"key": key, **_shown(record)})
        return
    typer.echo(key)
    ends = f"until {record.expires_at[:16]} UTC" if record.expires_at else "and never expires"
    say(f"key {record.key_id} stands for {record.caller['subject']!r} {ends}; it is not shown again")


@key_app.command("list", epilog="Example: toolcrib key list --json")
def key_list(as_json: AsJson = False) -> None:
    """All keys, oldest first, without their secrets."""
    with open_crib(quiet=True) as crib:
        records = crib.store.api_keys()
    if as_json:
        print_json({"keys": [_shown(record) for record in records]})
        return
    rows = [
        (
            r.key_id,
            _state(r),
            r.caller.get("kind", CallerKind.USER),
            r.caller.get("subject"),
            r.caller.get("tenant", ""),
            " ".join(sorted(r.caller.get("scopes", ()))),
            r.expires_at[:16],
            r.created_by,
        )
        for r in records
    ]
    print_table(("key", "state", "kind", "caller", "tenant", "scopes", "expires (UTC)", "made by"), rows, whole=0)


@key_app.command("revoke", epilog="Example: toolcrib key revoke 3f1b0c9d2e4a5b6c")
def key_revoke(key_id: Annotated[str, typer.Argument(metavar="KEY_ID")]) -> None:
    """End a key for good, at once. Exit 1 if no key in use has this id."""
    with open_crib(quiet=True) as crib:
        record = crib.store.api_key(key_id)
        found = record is not None and not record.revoked_at
        if record is not None and found:
            crib.store.put_key(replace(record, revoked_at=datetime.now(UTC).isoformat()))
    say(f"revoked {key_id}" if found else "no key in use has this id: see `toolcrib key list`")
    raise typer.Exit(0 if found else 1)


def _described(file: Path | None) -> dict[str, Any]:
    """The fields that a caller's file sets, no more: what it leaves out stays the crib's own."""
    if file is None:
        return {}
    path = folder() / file
    caller_from_file(path, environment="", region="")  # says what is wrong with it
    described: dict[str, Any] = json.loads(path.read_bytes().decode("utf-8-sig"))
    return described


def _duration(text: str) -> timedelta | None:
    if text == "never":
        return None
    match = re.fullmatch(r"([1-9][0-9]{0,6})([mhd])", text)
    valid_for = int(match[1]) * _UNITS[match[2]] if match else None
    if valid_for is None or valid_for > _MAX_VALID:
        raise ConfigError(f"--expires cannot be {text!r}", hint="for example 90d, 12h, 30m or never; ten years at most")
    return valid_for


def _state(record: ApiKey) -> str:
    if record.revoked_at:
        return "revoked"
    return "expired" if key_fault(record, now=datetime.now(UTC)) else "in use"


def _shown(record: ApiKey) -> dict[str, Any]:
    """What may be seen of a key."""
    return {
        "key_id": record.key_id,
        "state": _state(record),
        "caller": dict(record.caller),
        "created_at": record.created_at,
        "created_by": record.created_by,
        "expires_at": record.expires_at,
        "revoked_at": record.revoked_at,
    }
