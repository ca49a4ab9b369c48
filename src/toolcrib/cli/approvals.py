"""`toolcrib approvals`: let one exact call run, once.

The approver is the person at the terminal: the operating system's user under the local operator's rights, or the caller
of `--as FILE`. What may be approved by whom is policy's word (`approvals.py`); this file shows and asks.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from toolcrib.approvals import at_terminal, find_in, pretty_preview
from toolcrib.cli.ids import long_enough
from toolcrib.cli.shared import (
    AsJson,
    app,
    caller_now,
    open_crib,
    print_json,
    print_table,
    reviewer_name,
    say,
)
from toolcrib.crib import Crib
from toolcrib.review.text import show
from toolcrib.types import ApprovalRequest, Caller, Tool

approvals_app = typer.Typer(
    help="Calls that wait for an approver.",
    epilog="Example: toolcrib approvals list",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(approvals_app, name="approvals")

ApprovalId = Annotated[
    str,
    typer.Argument(metavar="APPROVAL_ID", callback=long_enough, help="The id, or the first 6 or more of it."),
]
By = Annotated[str, typer.Option("--by", metavar="NAME", help="Who decides (default: the system's user).")]
AsApprover = Annotated[
    Path | None,
    typer.Option("--as", metavar="FILE", help="Who decides: the caller in this JSON file, in place of --by."),
]


@approvals_app.command("list", epilog="Example: toolcrib approvals list --json")
def approvals_list(as_json: AsJson = False) -> None:
    """Requests, newest first."""
    with open_crib(quiet=as_json) as crib:
        requests = crib.approvals()
    if as_json:
        print_json({"approvals": [asdict(request) for request in requests]})
        return
    rows = [
        (r.approval_id[:12], r.state, r.subject, r.tool_id, r.arguments_preview, r.created_at[:19], r.expires_at[:19])
        for r in requests
    ]
    print_table(("approval", "state", "caller", "tool", "arguments", "asked (UTC)", "expires (UTC)"), rows, whole=0)


@approvals_app.command("show", epilog="Example: toolcrib approvals show 1f2e3d4c")
def approvals_show(approval_id: ApprovalId, as_json: AsJson = False) -> None:
    """Everything an approver decides by. Exit 1 if there is no such request."""
    with open_crib(quiet=True) as crib:
        request = find_in(crib.approvals(), approval_id)
        tool = _in_service(crib, request.tool_id) if request else None
        definition = crib.definition_of(request.digest) if request else None
    if request is None:
        say(f"nothing is known under {approval_id}")
        raise typer.Exit(1)
    if as_json:
        print_json({**asdict(request), "tool": _tool_facts(request, tool, definition)})
        return
    typer.echo("\n".join(_page(request, _tool_facts(request, tool, definition))))


@approvals_app.command("grant", epilog="Example: toolcrib approvals grant 1f2e3d4c --by ann")
def approvals_grant(approval_id: ApprovalId, by: By = "", as_: AsApprover = None, as_json: AsJson = False) -> None:
    """Let exactly this call run once, by the same caller, before it expires. Exit 1 when that is refused.

    Nobody approves their own call unless a policy says so. Calls from the command line and over stdio are the local
    operator's; the person who approves them at the terminal is another subject, the system's user.
    """
    _decide(approval_id, granted=True, by=by, as_=as_, as_json=as_json)


@approvals_app.command("deny", epilog="Example: toolcrib approvals deny 1f2e3d4c --json")
def approvals_deny(approval_id: ApprovalId, by: By = "", as_: AsApprover = None, as_json: AsJson = False) -> None:
    """Refuse a request. It needs no right of its own. Exit 1 if nothing waits under this id."""
    _decide(approval_id, granted=False, by=by, as_=as_, as_json=as_json)


def _decide(approval_id: str, *, granted: bool, by: str, as_: Path | None, as_json: bool) -> None:
    if by and as_ is not None:
        raise typer.BadParameter("give --by or --as, not both: the file names who decides")
    with open_crib(quiet=True) as crib:
        decided = crib.decide_approval(approval_id, granted=granted, approver=_approver(crib, by=by, as_=as_))
    if as_json:
        print_json(decided.to_dict())
    else:
        say(decided.message)
    raise typer.Exit(0 if decided.done else 1)


def _approver(crib: Crib, *, by: str, as_: Path | None) -> Caller:
    return caller_now(crib, as_) if as_ is not None else at_terminal(crib.local_caller, name=reviewer_name(by))


def _in_service(crib: Crib, tool_id: str) -> Tool | None:
    return next((tool for tool in crib.snapshot().tools if tool.tool_id == tool_id), None)


def _tool_facts(request: ApprovalRequest, tool: Tool | None, definition: Any) -> dict[str, Any]:
    """The tool as it was asked for, and whether that is what is in service now."""
    described = definition if isinstance(definition, dict) else {}
    now = "not in service" if tool is None else "in service" if tool.digest == request.digest else "changed since"
    return {
        "tool_id": request.tool_id,
        "digest": request.digest,
        "now": now,
        "risk": tool.metadata.risk.value if tool else "",
        "risk_source": tool.metadata.risk_source.value if tool else "",
        "owner": tool.metadata.owner if tool else "",
        "title": described.get("title") if isinstance(described.get("title"), str) else "",
        "description": described.get("description") if isinstance(described.get("description"), str) else "",
    }


def _page(request: ApprovalRequest, tool: dict[str, Any]) -> list[str]:
    """Lines for a person. What a server or a caller wrote is shown with its hidden characters, and behind a bar."""
    facts = [
        ("approval", request.approval_id),
        ("state", request.state + (f" by {request.decided_by}" if request.decided_by else "")),
        ("caller", request.subject + (f" of {request.tenant}" if request.tenant else "")),
        ("acts for", request.on_behalf_of),
        ("came in by", request.channel),
        ("tool", f"{tool['tool_id']} ({tool['now']})"),
        ("digest", tool["digest"]),
        ("risk", f"{tool['risk']} (said by: {tool['risk_source']})" if tool["risk"] else ""),
        ("owner", tool["owner"]),
        ("asked for by", ", ".join(request.policies)),
        ("asked at", request.created_at),
        ("expires at", request.expires_at),
    ]
    lines = [f"{name + ':':14}{show(str(value)).replace(chr(10), ' ')}" for name, value in facts if value]
    lines += ["description:", *_barred(tool["description"] or "(none)")]
    return [*lines, "arguments:", *_barred(pretty_preview(request))]


def _barred(text: str) -> list[str]:
    return [f"  | {show(line)}" for line in text.split("\n")]
