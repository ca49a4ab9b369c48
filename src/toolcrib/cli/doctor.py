"""`toolcrib doctor`: one page of what is well and what is not; and the same as numbers for a collector.

Above: `main.py` registers the command. Below: `doctoring.py` looks, `exposition.py` writes numbers.

Exit codes: 0 well, 1 something is wrong, 2 the settings cannot be used, 3 it could not be looked.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from toolcrib.cli.exposition import exposition, gauges
from toolcrib.cli.shared import AsJson, app, folder, open_crib, print_json, print_table, say
from toolcrib.doctoring import Health, ServerHealth, examined
from toolcrib.errors import ConfigError
from toolcrib.review.compared import in_a_line
from toolcrib.review.text import show


@app.command(epilog="Example: toolcrib doctor --prometheus /var/lib/node_exporter/toolcrib.prom")
def doctor(
    prometheus: Annotated[
        str,
        typer.Option(
            "--prometheus", metavar="FILE", help="Write numbers for Prometheus, too; - prints them instead of the page."
        ),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """What is well and what is not: settings, policy, lock, approval log, servers, tools, index. Asks no server.
    Exit 1 if something is wrong.
    """
    if prometheus == "-" and as_json:
        raise ConfigError("--json and --prometheus - would both go to standard output", hint="name a file")
    with open_crib(quiet=as_json or prometheus == "-") as crib:
        health = examined(crib)
    if prometheus == "-":
        typer.echo(exposition(gauges(health)), nl=False)
    elif prometheus:
        _replace(folder() / Path(prometheus).expanduser(), exposition(gauges(health)))
    if as_json:
        print_json(_json(health))
    elif prometheus != "-":
        _print(health)
    raise typer.Exit(0 if health.is_well else 1)


def _replace(path: Path, text: str) -> None:
    """In one step: a collector never reads half a file. Raises ConfigError."""
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        written = Path(name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            written.chmod(0o644)
            written.replace(path)
        except BaseException:
            written.unlink(missing_ok=True)
            raise
    except OSError as fault:
        raise ConfigError(f"the numbers cannot be written: {fault.strerror}", where=str(path)) from fault


def _json(health: Health) -> dict[str, Any]:
    return {"well": health.is_well, **asdict(health)}


def _print(health: Health) -> None:
    rows = [(check.state, check.name, _with_hint(check.told, check.hint)) for check in health.checks]
    print_table(("state", "what", "told"), rows)
    if health.servers:
        columns = ("server", "list", "age", "in service", "withheld", "provenance", "credential")
        print_table(columns, [_row(server) for server in health.servers], whole=0)
    for server in health.servers:
        for line in _told(server):
            typer.echo(f"{server.server_id}: {line}")
    say("well" if health.is_well else "something is wrong")


def _with_hint(told: str, hint: str) -> str:
    return f"{told}\n-> {hint}" if hint else told


def _row(server: ServerHealth) -> tuple[object, ...]:
    held = ", ".join(f"{number} {code}" for code, number in sorted(server.withheld.items()))
    return (
        server.server_id,
        server.state,
        _age(server.age_s),
        server.n_in_service,
        held,
        server.provenance,
        server.credential or "none",
    )


def _told(server: ServerHealth) -> list[str]:
    """What the table has no place for."""
    lines = [show(server.error)] if server.error else []
    lines += [
        f"{name} was {in_a_line(was) or 'nothing'}, is {in_a_line(now) or 'nothing'}"
        for name, was, now in server.changes
    ]
    if server.changes:
        lines.append(f"look at it: toolcrib review, then toolcrib approve --server {server.server_id}")
    if server.reconfigured:
        lines.append(f"configured otherwise since it was listed ({', '.join(server.reconfigured)}): toolcrib refresh")
    if server.launcher_pinned is False:
        advice = f"; use {in_a_line(server.advice)}" if server.advice else ""
        lines.append(f"its next start may fetch another version{advice}")
    return lines


def _age(age_s: float | None) -> str:
    if age_s is None:
        return ""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if age_s >= 2 * size:
            return f"{age_s / size:.0f} {unit}"
    return f"{age_s:.0f} s"
