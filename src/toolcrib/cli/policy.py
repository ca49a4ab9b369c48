"""Commands about policy: check, test, diff, explain. All of them are for the operator; none changes anything."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from toolcrib.cli.shared import AsFile, AsJson, app, folder, print_json, print_table, say
from toolcrib.errors import ConfigError, PolicyError
from toolcrib.policy.cases import CaseResult
from toolcrib.policy.changes import Change, Unseen
from toolcrib.policy.why import Behind, NearMiss, Why
from toolcrib.policy_desk import Difference, PolicyDesk, ToolExplanation
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
_MAX_NOTES = 20

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


def _n(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


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
        notes = _n(len(found) - n_findings, "note")
        say(f"{policy.source}: {_n(len(policy.rules), 'rule')}, {_n(n_findings, 'finding')}, {notes}")
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
        say(f"{policy.source}: {_n(len(results), 'case')}, {_n(n_asked, 'decision')}, {len(failed)} failed")
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
    tried as an approver of its own requests and of others'.

    Exit 1 when anybody may do more than before: find a tool, call one, call without the approval that was asked for,
    approve a call. Exit 1, too, when somebody might and it could not be tried: a rule speaks of a role, subject, scope,
    ... that none of these callers has, a new permit or a forbid that went holds for none of them, or a rule reads a
    resource in a way that samples may miss. --allow-wider makes it exit 0. Exit 2 when there is nobody to compare for.

    Policy alone is asked: routing's constraints and the gate's other checks may still say no.
    """
    old_file, new_file = (None, first) if second is None else (first, second)
    with _desk() as desk:
        old, new = desk.policy(_path(old_file)), desk.policy(_path(new_file))
        difference = desk.difference(old, new, days=days)
    if as_json:
        print_json({"old": old.source, "new": new.source, "days": days, **_difference_json(difference)})
    else:
        _print_difference(difference, days=days)
    raise typer.Exit(1 if difference.widens and not allow_wider else 0)


def _difference_json(difference: Difference) -> dict[str, Any]:
    return {
        "widens": difference.widens,
        "n_profiles": difference.n_profiles,
        "n_callers_seen": difference.n_seen,
        "n_requests": difference.n_requests,
        "complete": difference.complete,
        "n_unreadable": difference.n_unreadable,
        "changes": [_change_json(change, difference) for change in difference.changes],
        "unseen": [asdict(unseen) for unseen in difference.unseen],
    }


def _change_json(change: Change, difference: Difference) -> dict[str, Any]:
    return {
        "caller": change.asker.name,
        "source": change.asker.source,
        "subject": change.asker.caller.subject,
        "tenant": change.asker.caller.tenant,
        "channels": [channel.value for channel in change.channels],
        "widens": change.widens,
        "circumstances": list(change.circumstances),
        "discover_gained": list(change.found_gained),
        "discover_lost": list(change.found_lost),
        "call": [
            {
                "tool_id": call.tool_id,
                "before": call.before.value,
                "after": call.after.value,
                "widens": call.widens,
                "calls_by_caller": call.n_calls,
                "calls_by_anybody": difference.calls.get(call.tool_id, 0),
            }
            for call in change.calls
        ],
        "approve_gained": list(change.approve_gained),
        "approve_lost": list(change.approve_lost),
        "errors": list(change.errors),
    }


def _print_difference(difference: Difference, *, days: int) -> None:
    rows = [row for change in difference.changes for row in _change_rows(change, difference)]
    if rows:
        columns = ("caller", "channels", "what", "tools", "which", f"calls in {days} days")
        print_table(columns, rows)
    else:
        say("nothing changes for these callers")
    for change in difference.changes:
        for error in change.errors:
            say(f"warning: for {change.asker.name} evaluation fails, which denies: {error}")
    _print_unseen(difference.unseen)
    if not difference.complete:
        say(f"only the latest {difference.n_requests} requests were read; there are more in these {days} days")
    if difference.n_unreadable:
        say(f"{difference.n_unreadable} requests do not say who asked and were left out")
    others = f"{_n(difference.n_seen, 'more caller')} in {_n(difference.n_requests, 'request')}"
    asked = f"{_n(difference.n_profiles, 'profile')}, {others}"
    say(f"{asked}: {_verdict(difference)}")


def _verdict(difference: Difference) -> str:
    if any(change.widens for change in difference.changes):
        return "somebody may do MORE than before"
    if difference.unseen:
        return "nobody of these may do more than before, but others MIGHT: see the notes"
    return "nobody may do more than before"


def _print_unseen(unseen: tuple[Unseen, ...]) -> None:
    for one in unseen[:_MAX_NOTES]:
        say(f"not seen: {one.where + ': ' if one.where else ''}{one.text}")
    if len(unseen) > _MAX_NOTES:
        say(f"not seen: and {len(unseen) - _MAX_NOTES} more (--json has all)")


def _told(circumstances: tuple[str, ...]) -> str:
    """Which calls or approvals a row is about; nothing where it is about all."""
    more = [f"and {len(circumstances) - _SHOWN} more (--json has all)"] if len(circumstances) > _SHOWN else []
    return "".join(f"; {each}" for each in (*circumstances[:_SHOWN], *more))


def _change_rows(change: Change, difference: Difference) -> Iterator[tuple[str, ...]]:
    """A row for each kind of change of one caller; the caller stands in the first."""
    channels = "all" if len(change.channels) == len(Channel) else ", ".join(change.channels)
    kinds: dict[str, list[str]] = {}
    if change.found_gained:
        kinds["+ discover"] = list(change.found_gained)
    if change.found_lost:
        kinds["- discover"] = list(change.found_lost)
    if change.approve_gained:
        kinds["+ approve"] = list(change.approve_gained)
    if change.approve_lost:
        kinds["- approve"] = list(change.approve_lost)
    calls: dict[str, int] = {}
    for call in change.calls:
        kind = f"{'+' if call.widens else '-'} call: {call.before} -> {call.after}"
        kinds.setdefault(kind, []).append(call.tool_id)
        if not call.widens and not change.circumstances:
            calls[kind] = calls.get(kind, 0) + call.n_calls
    name = f"{change.asker.name} ({change.asker.source})"
    for number, (kind, ids) in enumerate(kinds.items()):
        more = f", and {len(ids) - _SHOWN} more (--json has all)" if len(ids) > _SHOWN else ""
        anybody = sum(difference.calls.get(tool_id, 0) for tool_id in ids)
        counted = f"{calls[kind]} (anybody: {anybody})" if kind in calls else ""
        first = (name, channels) if number == 0 else ("", "")
        yield (*first, kind + _told(change.circumstances), str(len(ids)), ", ".join(ids[:_SHOWN]) + more, counted)


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
        print_json(_explanation_json(found))
    else:
        _print_explanation(found)


def _explanation_json(found: ToolExplanation) -> dict[str, Any]:
    body: dict[str, Any] = {"tool_id": found.tool_id, "withheld": found.withheld}
    body["routing"] = asdict(found.dropped) if found.dropped else None
    if found.why is None:
        return body
    return {
        **body,
        "action": found.why.action,
        "decided_on": found.why.decided_on,
        "effect": found.why.decision.effect.value,
        "policies": [_behind_json(behind) for behind in found.why.behind],
        "errors": list(found.why.decision.errors),
        "nearest": [
            {**_behind_json(miss.behind), "clause": miss.clause, "outcome": miss.outcome} for miss in found.why.nearest
        ],
    }


def _behind_json(behind: Behind) -> dict[str, Any]:
    rule = behind.rule
    looked = {looked.path: looked.value for looked in behind.looked_at}
    return {
        "policy": rule.label,
        "where": rule.where,
        "effect": rule.effect,
        "obliges": rule.obliges,
        "text": rule.text,
        "looked_at": looked,
    }


def _print_explanation(found: ToolExplanation) -> None:
    if found.why is None:
        typer.echo(show(f"{found.tool_id}: not in service ({found.withheld}); policy is not asked"))
        return
    typer.echo("\n".join(show(line) for line in _explanation_lines(found.tool_id, found.why)))
    if found.dropped:
        typer.echo(show(f"routing rules it out in any case ({found.dropped.code}): {found.dropped.reason}"))


def _explanation_lines(tool_id: str, why: Why) -> Iterator[str]:
    yield f"{why.action} {tool_id}: {why.decision.effect}"
    if why.action != why.decided_on:
        yield f"  it may not be discovered, and so not be called either: this is the decision on {why.decided_on}"
    for behind in why.behind:
        yield from _behind_lines(behind)
    for error in why.decision.errors:
        yield f"  evaluation fails, which denies: {error}"
    if not why.behind and not why.decision.errors:
        yield "  no rule permits it" + ("; the permits that come closest:" if why.nearest else "")
    for miss in why.nearest:
        yield from _near_lines(miss)


def _behind_lines(behind: Behind) -> Iterator[str]:
    yield f'  {behind.rule.effect} by "{behind.rule.label}" ({behind.rule.where})'
    yield from (f"    | {line}" for line in behind.rule.text.splitlines())
    yield from _looked_lines(behind)


def _near_lines(miss: NearMiss) -> Iterator[str]:
    yield f'  "{miss.behind.rule.label}" ({miss.behind.rule.where})'
    yield f"    in the way: {miss.clause} is {miss.outcome}"
    yield from _looked_lines(miss.behind)


def _looked_lines(behind: Behind) -> Iterator[str]:
    for looked in behind.looked_at:
        value = looked.value
        if isinstance(value, list | tuple):
            told = ", ".join(value) or "(none)"
        else:
            told = str(value).lower() if isinstance(value, bool) else value or "(empty)"
        yield f"    {looked.path} = {told}"
