"""`toolcrib approvals`: let one exact call run, once."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from toolcrib.cli.shared import AsJson, app, open_crib, print_json, print_table, reviewer_name, say

approvals_app = typer.Typer(
    help="Calls that wait for an approver.",
    epilog="Example: toolcrib approvals list",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(approvals_app, name="approvals")

ApprovalId = Annotated[str, typer.Argument(metavar="APPROVAL_ID")]
By = Annotated[str, typer.Option("--by", metavar="NAME", help="Who decides (default: the system's user).")]


@approvals_app.command("list", epilog="Example: toolcrib approvals list --json")
def approvals_list(as_json: AsJson = False) -> None:
    """Requests, newest first."""
    with open_crib(quiet=as_json) as crib:
        requests = crib.approvals()
    if as_json:
        print_json({"approvals": [asdict(request) for request in requests]})
        return
    rows = [
        (r.approval_id[:12], r.state, r.subject, r.tool_id, r.arguments_preview, r.expires_at[:19]) for r in requests
    ]
    print_table(("approval", "state", "caller", "tool", "arguments", "expires (UTC)"), rows, whole=0)


@approvals_app.command("grant", epilog="Example: toolcrib approvals grant 1f2e3d...")
def approvals_grant(approval_id: ApprovalId, by: By = "") -> None:
    """Let exactly this call run once, by the same caller, before it expires. Exit 1 if nothing waits under this id."""
    _decide(approval_id, granted=True, by=by)


@approvals_app.command("deny", epilog="Example: toolcrib approvals deny 1f2e3d...")
def approvals_deny(approval_id: ApprovalId, by: By = "") -> None:
    """Refuse a request. Exit 1 if nothing waits under this id."""
    _decide(approval_id, granted=False, by=by)


def _decide(approval_id: str, *, granted: bool, by: str) -> None:
    with open_crib(quiet=True) as crib:
        done = crib.decide_approval(approval_id, granted=granted, by=reviewer_name(by))
    say(f"{'granted' if granted else 'denied'} {approval_id}" if done else f"nothing waits under {approval_id}")
    raise typer.Exit(0 if done else 1)
