"""`toolcrib lock`: the lock checked against what servers list now, for CI, and made whole from what was published.

Above: `main.py` registers the commands. Below: `locking.py` checks, `lock_completion.py` writes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from toolcrib.catalog.comparison import Row, RowKind
from toolcrib.cli.shared import AsJson, app, counted, folder, open_crib, print_json, reviewer_name, say
from toolcrib.connectors.listing import ListingProgress
from toolcrib.lock_completion import LockWritten, complete_lock
from toolcrib.locking import LockCheck, check_live, check_published
from toolcrib.review.compared import in_a_line
from toolcrib.settings import load_settings

lock_app = typer.Typer(
    help="The lock: what is approved, held against what servers list.",
    epilog="Example: toolcrib lock check",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(lock_app, name="lock")

_SHOWN = 20


@lock_app.command("check", epilog="Example: toolcrib lock check --server github --json")
def lock_check(
    server: Annotated[
        list[str] | None, typer.Option("--server", metavar="ID", help="Only this server; repeatable.")
    ] = None,
    catalog: Annotated[
        bool, typer.Option("--catalog", help="Compare what was published last; no server is asked.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List the servers' tools and print what differs from the lock, a line each: NEW, CHANGED, REMOVED, RENAMED or
    PROVENANCE. Publishes nothing, and needs only toolcrib.toml and the lock. Exit 1 if something differs, 3 if a server
    could not be read.
    """
    settings = load_settings(folder())
    if catalog:
        found = check_published(settings, server_ids=server or ())
    else:
        found = asyncio.run(
            check_live(settings, server_ids=server or (), on_progress=None if as_json else _tell_failure)
        )
    if as_json:
        print_json(_check_json(found))
    else:
        for row in found.rows:
            typer.echo(_line(row))
    _tell_check(found)
    raise typer.Exit(found.exit_code)


def _tell_failure(progress: ListingProgress) -> None:
    if progress.state == "failed":
        say(f"[{progress.n_done}/{progress.n_servers}] {progress.server_id} failed ({progress.elapsed_s:.1f} s)")


def _line(row: Row) -> str:
    """A row as one line: kind, subject, then the fields that changed and what else is known."""
    fields = ", ".join(change.label or change.summary for change in row.changes)
    told = "; ".join(part for part in (fields, *row.details) if part)
    return in_a_line(f"{row.kind} {row.subject}") + (f"  {in_a_line(told)}" if told else "")


def _check_json(found: LockCheck) -> dict[str, Any]:
    return {
        "rows": [_row_json(row) for row in found.rows],
        "failed": dict(found.failed),
        "unpinned": dict(found.unpinned),
        "left_out": dict(found.left_out),
        "notes": list(found.notes),
        "n_servers": found.n_servers,
        "n_tools": found.n_tools,
    }


def _row_json(row: Row) -> dict[str, Any]:
    is_tool = bool(row.name) and row.name != "*" and row.kind is not RowKind.PROVENANCE
    return {
        "kind": row.kind.value,
        "subject": row.subject,
        "server_id": row.server_id,
        "tool_id": f"{row.server_id}.{row.name}" if is_tool else "",
        "was": f"{row.server_id}.{row.was}" if row.was else "",
        "grade": row.grade.value,
        "fields": [
            {
                "field": change.field,
                "grade": change.grade.value,
                "summary": change.summary,
                "notes": list(change.schema.notes) if change.schema else [],
            }
            for change in row.changes
        ],
        "details": list(row.details),
    }


def _tell_check(found: LockCheck) -> None:
    for server_id, advice in found.unpinned.items():
        use = f"; use: {in_a_line(advice)}" if advice else ""
        say(f"warning: server {server_id} is not pinned, its next start may fetch another version{use}")
    for note in found.notes:
        say(f"warning: {note}")
    _tell_some("not compared, since it cannot be served:", [f"{t}: {why}" for t, why in found.left_out.items()])
    for server_id, why in found.failed.items():
        say(f"failed: {server_id}: {why}")
    told = f"{counted(found.n_tools, 'tool')} of {counted(found.n_servers, 'server')}"
    same = "nothing of what could be read differs" if found.failed else "nothing differs"
    say(f"{told}: {counted(len(found.rows), 'difference') if found.rows else same} from the lock")


@lock_app.command("write", epilog="Example: toolcrib lock write --prune")
def lock_write(
    approve_all: Annotated[
        bool, typer.Option("--approve-all", help="Approve what waits, as approve --all does.")
    ] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="Drop what is gone: tools of fresh servers, servers no more configured.")
    ] = False,
    by: Annotated[str, typer.Option("--by", metavar="NAME", help="Who decides (default: the system's user).")] = "",
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; kept in the review log.")] = "",
    as_json: AsJson = False,
) -> None:
    """Make the lock whole from what was published last: digests by field, and what servers are. Approves nothing
    unless --approve-all is given, and says what it left out.
    """
    with open_crib(quiet=as_json) as crib:
        done = complete_lock(crib, reviewer=reviewer_name(by), reason=reason, approve_all=approve_all, prune=prune)
    if as_json:
        print_json(_write_json(done))
    else:
        _tell_written(done)


def _write_json(done: LockWritten) -> dict[str, Any]:
    return {
        "approved": list(done.approved),
        "completed": list(done.completed),
        "pinned": list(done.pinned),
        "dropped": list(done.dropped),
        "dropped_servers": list(done.dropped_servers),
        "left_out": dict(done.left_out),
        "held": dict(done.held),
    }


def _tell_written(done: LockWritten) -> None:
    _tell_some("approved", done.approved)
    _tell_some("pinned server", done.pinned)
    _tell_some("digests by field added:", done.completed)
    _tell_some("dropped", done.dropped)
    _tell_some("dropped server", done.dropped_servers)
    say("the lock is written" if done.changed_anything else "nothing to write: the lock says all there is")
    for server_id, how in done.held.items():
        say(f"left out: server {server_id} is not what was approved ({how}): toolcrib approve --server {server_id}")
    _tell_some("left out:", [f"{tool_id}: {why}" for tool_id, why in done.left_out.items()])
    if done.left_out:
        say("next: toolcrib review")


def _tell_some(what: str, lines: Sequence[str]) -> None:
    for line in lines[:_SHOWN]:
        say(f"{what} {in_a_line(line)}")
    if len(lines) > _SHOWN:
        say(f"{what} and {len(lines) - _SHOWN} more")
