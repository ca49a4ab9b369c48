"""`toolcrib refresh`: ask the servers for all their tools, and publish what they list."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Annotated

import typer

from toolcrib.cli.shared import AsJson, app, counted, open_crib, print_json, print_table, say
from toolcrib.connectors.listing import ListingProgress
from toolcrib.errors import ConfigError, PolicyError
from toolcrib.refreshing import RefreshReport
from toolcrib.resource_advice import resource_warnings
from toolcrib.settings import unmatched_rules


@app.command(epilog="Example: toolcrib refresh --server github")
def refresh(
    server: Annotated[
        list[str] | None, typer.Option("--server", metavar="ID", help="Only this server; repeatable.")
    ] = None,
    accept_empty: Annotated[
        bool,
        typer.Option("--accept-empty", help="With --server: one that lists nothing has no tools any more."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Ask the servers for all their tools and publish what they list. Approves nothing. Exit 1 if a server failed.

    A server that fails keeps its last whole list; so does one that lists nothing where it had tools.
    """
    if accept_empty and not server:
        raise ConfigError("--accept-empty wants to know of which servers", hint="toolcrib refresh --server ID ...")

    async def work() -> tuple[RefreshReport, tuple[str, ...]]:
        async with open_crib() as crib:
            report = await crib.refresh(
                servers=server or (), accept_empty=accept_empty, on_progress=None if as_json else _progress
            )
            broken: tuple[str, ...] = ()
            try:
                snapshot = crib.pipeline().snapshot
            except PolicyError as fault:
                snapshot, broken = crib.snapshot(), (f"nothing is permitted: {fault}",)
            ids = [t.tool_id for t in snapshot.tools] + [t.tool_id for t in snapshot.withheld]
            told = (*unmatched_rules(crib.settings, ids), *resource_warnings(crib.settings, snapshot))
            return report, (*crib.settings.warnings, *told, *broken)

    report, warnings = asyncio.run(work())
    for warning in warnings:
        say(f"warning: {warning}")
    if as_json:
        print_json({**report.to_dict(), "warnings": list(warnings)})
    else:
        _print_report(report)
    raise typer.Exit(1 if report.failed else 0)


def _progress(progress: ListingProgress) -> None:
    if progress.state == "started":
        return
    told = counted(progress.n_tools, "tool") if progress.state == "listed" else f"failed: {progress.error}"
    say(f"[{progress.n_done}/{progress.n_servers}] {progress.server_id}: {told} ({progress.elapsed_s:.1f} s)")


def _print_report(report: RefreshReport) -> None:
    rows = [
        ("added", len(report.added), _some(report.added)),
        ("changed", len(report.changed), _some(report.changed)),
        ("removed", len(report.removed), _some(report.removed)),
        ("unchanged", report.n_unchanged, ""),
        ("failed servers", len(report.failed), _some(report.failed)),
    ]
    print_table(
        ("", "number", "which"),
        rows,
        title=f"{counted(report.n_servers, 'server')}, {counted(report.n_tools, 'tool')} listed",
    )
    for server_id, error in report.failed.items():
        kept = "partial, its last list is kept" if server_id in report.partial else "failed"
        say(f"{kept}: {server_id}: {error}")
    _say_credentials(report)
    held = ", ".join(f"{number} {code}" for code, number in sorted(report.withheld.items())) or "none"
    say(f"in service: {report.n_in_service}; withheld: {held}")
    if not report.n_servers:
        say("no servers are configured: add a [[servers]] block to toolcrib.toml; `toolcrib init` writes examples")
    if report.withheld.get("unreviewed") or report.withheld.get("changed"):
        say("next: toolcrib review, then toolcrib approve TOOL_ID... (or --all)")


def _say_credentials(report: RefreshReport) -> None:
    """With which credential each list was taken, by name."""
    by_name: dict[str, list[str]] = {}
    for server_id, credential in report.credentials.items():
        by_name.setdefault(credential, []).append(server_id)
    for credential, server_ids in sorted(by_name.items()):
        say(f"listed {f'with {credential}' if credential else 'without a credential'}: {_some(server_ids)}")


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    return ", ".join(listed[:5]) + (f", and {len(listed) - 5} more" if len(listed) > 5 else "")
