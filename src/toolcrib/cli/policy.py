"""Commands about policy: check, test, diff, explain. All of them are for the operator; none changes anything."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from toolcrib.cli.policy_difference import counted, difference_json, print_difference
from toolcrib.cli.policy_explanation import explanation_json, print_explanation
from toolcrib.cli.shared import AsFile, AsJson, app, folder, print_json, print_table, say
from toolcrib.errors import ConfigError, PolicyError
from toolcrib.policy.cases import CaseResult
from toolcrib.policy_desk import PolicyDesk
from toolcrib.review.text import show
from toolcrib.types import Channel

policy_app = typer.Typer(
    help="Who may: check, test, compare and explain policy.",
    epilog="Example: toolcrib policy check",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(policy_app, name="policy")

DEFAULT_TESTS = "policy_tests.toml"
_SHOWN = 5

PolicyFile = Annotated[
    Path | None,
    typer.Option("--policy", metavar="FILE", help="Ask this policy instead of the one in force."),
]


class Action(StrEnum):
    """What can be explained; an approval's reasons are in its trace."""

    DISCOVER = "discover"
    CALL = "call"


@contextmanager
def _desk() -> Iterator[PolicyDesk]:
    """The desk of the chosen folder. A policy that cannot be used is a matter of configuration here (exit 2)."""
    try:
        with PolicyDesk.open(folder()) as desk:
            yield desk
    except PolicyError as fault:
        raise ConfigError(fault.what, where=fault.where, hint=fault.hint) from fault


def _path(file: Path | None) -> Path | None:
    """Files are named relative to the crib's folder, as with --as."""
    return None if file is None else folder() / file


# --- check -----------------------------------------------------------------------------------------------


@policy_app.command("check", epilog="Example: toolcrib policy check new.cedar --strict")
def policy_check(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="A policy file (default: the policy in force).")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Take notes for findings.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check a policy: syntax, schema, and what it does to this catalog and the caller profiles.

    Finds words that nothing has, rules that match nothing or are always overridden, tools that no profile or that every
    profile can reach, approvals that nobody may grant. Exit 1 with findings, 2 when the policy cannot be used.
    """
    with _desk() as desk:
        policy = desk.policy(_path(file))
        found = desk.check(policy)
    n_findings = sum(strict or not finding.note for finding in found)
    if as_json:
        rows = [{**asdict(finding), "tools": list(finding.tools)} for finding in found]
        print_json({"policy": policy.source, "version": policy.engine.version, "findings": rows})
    else:
        if found:
            print_table(
                ("", "code", "where", "what"),
                [("note" if f.note else "finding", f.code, f.where or "(catalog)", f.text) for f in found],
            )
        notes = counted(len(found) - n_findings, "note")
        say(f"{policy.source}: {counted(len(policy.rules), 'rule')}, {counted(n_findings, 'finding')}, {notes}")
    raise typer.Exit(1 if n_findings else 0)


# --- test ------------------------------------------------------------------------------------------------


@policy_app.command("test", epilog="Example: toolcrib policy test policy_tests.toml --policy new.cedar")
def policy_test(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILE]...", help=f"Tables of cases (default: {DEFAULT_TESTS}).")
    ] = None,
    policy_file: PolicyFile = None,
    as_json: AsJson = False,
) -> None:
    """Run policy tests: tables of who may do what to which tool. For CI: exit 1 when a case fails.

    A case is a [[cases]] table in TOML: name, caller (a profile, a glob on profiles, or fields), action (discover,
    call or approve), tool (id or glob), expect (permit, forbid, needs_approval); optional: except, context, rule.
    Policy alone is asked: routing's constraints and the gate's other checks may still say no.
    """
    with _desk() as desk:
        policy = desk.policy(_path(policy_file))
        results = [
            result for file in files or [Path(DEFAULT_TESTS)] for result in desk.run_tests(folder() / file, policy)
        ]
    failed = [result for result in results if not result.passed]
    if as_json:
        told = {"passed": len(results) - len(failed), "failed": len(failed), "cases": [_case_json(r) for r in results]}
        print_json({"policy": policy.source, **told})
    else:
        for result in failed:
            _print_failed(result)
        n_asked = sum(result.n_asked for result in results)
        say(f"{policy.source}: {counted(len(results), 'case')}, {counted(n_asked, 'decision')}, {len(failed)} failed")
    raise typer.Exit(1 if failed else 0)


def _case_json(result: CaseResult) -> dict[str, Any]:
    case = result.case
    return {
        "name": case.name,
        "where": case.where,
        "action": case.action,
        "tool": case.tool,
        "expect": case.expect.value,
        "passed": result.passed,
        "n_asked": result.n_asked,
        "misses": [asdict(miss) for miss in result.misses],
    }


def _print_failed(result: CaseResult) -> None:
    case = result.case
    typer.echo(show(f"FAILED {case.where}: {case.name} ({case.action} {case.tool})"))
    for miss in result.misses[:_SHOWN]:
        who = f"{miss.caller}, {miss.tool_id}: " if miss.caller else ""
        by = f"; decided by {', '.join(miss.policies)}" if miss.policies else "; no rule decided" if miss.caller else ""
        typer.echo(show(f"  {who}{miss.why}{by}"))
        for error in miss.errors:
            typer.echo(show(f"    {error}"))
    if len(result.misses) > _SHOWN:
        typer.echo(f"  and {len(result.misses) - _SHOWN} more of {result.n_asked} (--json has all)")


# --- diff ------------------------------------------------------------------------------------------------


@policy_app.command("diff", epilog="Example: toolcrib policy diff new.cedar --days 30")
def policy_diff(
    first: Annotated[Path, typer.Argument(metavar="[OLD]", help="The policy before (default: the one in force).")],
    second: Annotated[Path | None, typer.Argument(metavar="NEW", help="The policy after.")] = None,
    days: Annotated[int, typer.Option("--days", min=1, max=3_650, help="How far back traces count.")] = 30,
    allow_wider: Annotated[
        bool, typer.Option("--allow-wider", help="Exit 0 although somebody may do more than before.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compare two policies: which tools each caller gains and loses, and how often the lost ones were called.

    Callers are the profiles and those in the traces, over their channels, on the tools in service. Where a rule reads
    the resource that a call names, calls are tried on sample resources; where rules on approvals differ, each caller is
    tried as an approver of its own requests and of others'. Where the change can widen at all, strangers are tried,
    too: callers of every kind with and without each role, scope, tenant, ... that the rules speak of.

    Exit 1 when anybody may do more than before: find a tool, call one, call without the approval that was asked for,
    approve a call. Exit 1, too, when somebody might and it could not be tried: a rule speaks of a role, subject, scope,
    ... that none of these callers has, a new permit or a forbid that went holds for none of them, a rule reads a
    resource in a way that samples may miss, or there are too many kinds of strangers. --allow-wider makes it exit 0.
    Exit 2 when there is nobody to compare for.

    Policy alone is asked: routing's constraints and the gate's other checks may still say no.
    """
    old_file, new_file = (None, first) if second is None else (first, second)
    with _desk() as desk:
        old, new = desk.policy(_path(old_file)), desk.policy(_path(new_file))
        difference = desk.difference(old, new, days=days)
    if as_json:
        print_json({"old": old.source, "new": new.source, "days": days, **difference_json(difference)})
    else:
        print_difference(difference, days=days)
    raise typer.Exit(1 if difference.widens and not allow_wider else 0)


# --- explain ---------------------------------------------------------------------------------------------


@policy_app.command("explain", epilog="Example: toolcrib policy explain --as callers/mara.json freight.hold_clear")
def policy_explain(
    tool_id: Annotated[str, typer.Argument(metavar="TOOL_ID", help="Any tool in the catalog.")],
    as_file: AsFile = None,
    action: Annotated[Action, typer.Option("--action", help="What the caller wants to do.")] = Action.CALL,
    channel: Annotated[Channel, typer.Option("--channel", help="Where the request comes in.")] = Channel.CLI,
    approved: Annotated[bool, typer.Option("--approved", help="As if somebody approved this very call.")] = False,
    policy_file: PolicyFile = None,
    as_json: AsJson = False,
) -> None:
    """Explain why a caller may or may not use a tool: the rules that decide and what they looked at.

    The operator's view: do not show it to the caller. The gate checks more than policy: arguments, resources, limits.
    """
    wanted: Literal["discover", "call"] = "call" if action is Action.CALL else "discover"
    with _desk() as desk:
        found = desk.explanation(
            tool_id,
            policy=desk.policy(_path(policy_file)),
            caller=desk.caller(_path(as_file)),
            action=wanted,
            channel=channel,
            approved=approved,
        )
    if as_json:
        print_json(explanation_json(found))
    else:
        print_explanation(found)
