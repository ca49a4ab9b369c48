"""`toolcrib approve` and `toolcrib reject`: decisions about definitions and servers, named on the command line.

Above: `main.py` registers the commands. Below: `review_desk.py` decides; `review.py` shows what waits.

Invariants
1. Naming a definition is a decision about it. What is approved with many others must have nothing that asks for that
   (`left_out`), unless somebody says `--with-findings`.
2. What is approved is what was there when the command began, by its digest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer

from toolcrib.cli.review import ByOption, SignerOption, decider, signer_of
from toolcrib.cli.review_pages import provenance_lines
from toolcrib.cli.shared import AsJson, app, counted, open_crib, print_json, reviewer_name, say
from toolcrib.crib import Crib
from toolcrib.errors import ConfigError
from toolcrib.review.compared import in_a_line
from toolcrib.review.signers import Signing
from toolcrib.review_queue import ReviewItem, ReviewQueue, left_out
from toolcrib.types import WithheldTool

Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; kept in the review log.")]
_SHOWN = 20


@dataclass(slots=True, kw_only=True)
class _Done:
    """What a command did, and did not.

    Args:
        left_out: tool id -> rules. unsigned: approved now, and tool id -> what is lacking. n_to_sign: were approved
            before and lack a signature, which nobody gave.
    """

    tools: tuple[WithheldTool, ...] = ()
    servers: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, tuple[str, ...]] = field(default_factory=dict)
    signed_already: tuple[str, ...] = ()
    unsigned: dict[str, str] = field(default_factory=dict)
    other_servers: tuple[str, ...] = ()
    n_to_sign: int = 0


@app.command(epilog="Example: toolcrib approve github.create_issue@sha256:1f2e3d4c --reason 'read it'")
def approve(
    tool_id: Annotated[
        list[str] | None, typer.Argument(metavar="[TOOL_ID]...", help="TOOL_ID, a glob, or TOOL_ID@sha256:BEGINNING.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All that wait and were not rejected.")] = False,
    server: Annotated[
        list[str] | None,
        typer.Option("--server", metavar="ID", help="What this server is now, and its tools that wait; repeatable."),
    ] = None,
    with_findings: Annotated[
        bool, typer.Option("--with-findings", help="With --all and --server: those that must be named else, too.")
    ] = False,
    signer: SignerOption = None,
    by: ByOption = "",
    reason: Reason = "",
    as_json: AsJson = False,
) -> None:
    """Put definitions into service, as they are now. A later change takes them out again. Exit 1 if some were left
    out for what was found in them, or lack a signature that was not given.
    """
    if sum(map(bool, (tool_id, everything, server))) != 1:
        raise ConfigError("say which tools, or --server, or --all", hint="toolcrib approve TOOL_ID...")
    with open_crib(quiet=as_json) as crib:
        signs = signer_of(crib, signer)
        reviewer = decider(by, signs)
        if tool_id:
            done = _approve_named(crib, tool_id, reviewer=reviewer, reason=reason, signs=signs)
        else:
            done = _approve_many(
                crib, server or (), reviewer=reviewer, reason=reason, signs=signs, with_findings=with_findings
            )
        done.unsigned = _unsigned(crib, done.tools)
    if as_json:
        print_json(_json(done))
    else:
        _tell(done, signs)
    raise typer.Exit(1 if done.left_out or done.n_to_sign else 0)


def _approve_named(crib: Crib, wanted: Sequence[str], *, reviewer: str, reason: str, signs: Signing | None) -> _Done:
    shown = crib.review_desk.queue(wanted, probe=False)
    done = crib.approve(wanted, reviewer=reviewer, reason=reason, signer=signs)
    return _Done(tools=done, signed_already=_signed_already(shown.items, signs))


def _approve_many(
    crib: Crib, servers: Sequence[str], *, reviewer: str, reason: str, signs: Signing | None, with_findings: bool
) -> _Done:
    """Everything that waits, or what these servers are and their tools that wait."""
    known = {server_id: crib.settings.server(server_id).server_id for server_id in servers}
    queue = crib.review_desk.queue(probe=False)
    waiting = [item for item in queue.items if item.waits and (not servers or item.tool.server_id in known)]
    signed = _signed_already(waiting, signs)
    n_to_sign = 0 if signs else sum(item.tool.code == "unsigned" for item in waiting)
    waiting = [i for i in waiting if i.tool.code != "unsigned" or (signs is not None and i.tool.tool_id not in signed)]
    done = _Done(left_out={} if with_findings else left_out(waiting), signed_already=signed, n_to_sign=n_to_sign)
    done.servers = _approve_servers(crib, queue, known, reviewer=reviewer, reason=reason, signs=signs)
    done.other_servers = tuple(
        s.server_id for s in queue.servers if s.kind == "provenance" and s.server_id not in known
    )
    chosen = [f"{i.tool.tool_id}@{i.tool.digest}" for i in waiting if i.tool.tool_id not in done.left_out]
    if chosen:
        done.tools = crib.approve(chosen, reviewer=reviewer, reason=reason, signer=signs)
    return done


def _approve_servers(
    crib: Crib, queue: ReviewQueue, known: Mapping[str, str], *, reviewer: str, reason: str, signs: Signing | None
) -> dict[str, str]:
    """Server id -> what it is in words, of those whose approval is a new one."""
    done: dict[str, str] = {}
    for server in queue.servers:
        if server.server_id in known and crib.approve_server(
            server.server_id, digest=server.digest, reviewer=reviewer, reason=reason, signer=signs
        ):
            done[server.server_id] = provenance_lines(server.status.provenance)[0]
    return done


def _signed_already(items: Sequence[ReviewItem], signs: Signing | None) -> tuple[str, ...]:
    return tuple(item.tool.tool_id for item in items if signs is not None and signs.name in item.signed_by)


def _unsigned(crib: Crib, done: Sequence[WithheldTool]) -> dict[str, str]:
    """Those of these tools that an approval did not bring into service yet, for lack of signatures."""
    if not crib.settings.review.require_signers or not done:
        return {}
    ids = {tool.tool_id for tool in done}
    held = crib.snapshot().withheld
    return {tool.tool_id: tool.reason for tool in held if tool.code == "unsigned" and tool.tool_id in ids}


def _json(done: _Done) -> dict[str, Any]:
    return {
        "approved": [{"tool_id": t.tool_id, "digest": t.digest} for t in done.tools],
        "servers": [{"server_id": server_id, "is": what} for server_id, what in done.servers.items()],
        "left_out": [{"tool_id": tool_id, "rules": list(rules)} for tool_id, rules in done.left_out.items()],
        "signed_already": list(done.signed_already),
        "unsigned": [{"tool_id": tool_id, "reason": reason} for tool_id, reason in done.unsigned.items()],
        "n_to_sign": done.n_to_sign,
    }


def _tell(done: _Done, signs: Signing | None) -> None:
    for server_id, what in done.servers.items():
        say(f"approved server {server_id}: {what}")
    _tell_some("approved", [f"{in_a_line(tool.tool_id)} {tool.digest[:19]}" for tool in done.tools])
    _tell_some("left out", [f"{in_a_line(t)}: {', '.join(rules)}" for t, rules in done.left_out.items()])
    if done.left_out:
        say("look at them (toolcrib review TOOL_ID), and approve them by name, or with --with-findings")
    if done.signed_already and signs:
        _tell_some(f"{signs.name} has signed already", [in_a_line(tool_id) for tool_id in done.signed_already])
    _tell_some("not in service yet", [f"{in_a_line(tool_id)}: {why}" for tool_id, why in done.unsigned.items()])
    for server_id in done.other_servers:
        say(f"server {server_id} is not what was approved: toolcrib review, then toolcrib approve --server {server_id}")
    if done.n_to_sign:
        say(f"{counted(done.n_to_sign, 'approved definition')} still to be signed: say who signs, with --signer FILE")
    if done.tools:
        say(f"{counted(len(done.tools), 'definition')} approved; the lock is written")
    elif not (done.servers or done.left_out or done.signed_already or done.n_to_sign):
        say("nothing to approve: nothing of it waits for review")


def _tell_some(what: str, lines: Sequence[str]) -> None:
    for line in lines[:_SHOWN]:
        say(f"{what} {line}")
    if len(lines) > _SHOWN:
        say(f"{what}: and {len(lines) - _SHOWN} more")


@app.command(epilog="Example: toolcrib reject github.create_issue --reason 'names another server'")
def reject(
    tool_id: Annotated[list[str], typer.Argument(metavar="TOOL_ID...", help="TOOL_ID or TOOL_ID@sha256:BEGINNING.")],
    by: ByOption = "",
    reason: Reason = "",
    as_json: AsJson = False,
) -> None:
    """Refuse definitions, or take approved ones out of service at once."""
    with open_crib() as crib:
        done = crib.reject(tool_id, reviewer=reviewer_name(by), reason=reason)
    if as_json:
        print_json({"rejected": list(done)})
        return
    for one in done:
        say(f"rejected {in_a_line(one)}")
