"""Commands that keep the catalog: refresh, review, approve, reject."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from difflib import unified_diff
from fnmatch import fnmatchcase
from typing import Annotated, Any

import typer

from toolcrib.cli.shared import AsJson, app, counted, open_crib, print_json, print_table, reviewer_name, say
from toolcrib.connectors.listing import ListingProgress
from toolcrib.crib import Crib
from toolcrib.curation import RefreshReport, ReviewItem
from toolcrib.errors import ConfigError, PolicyError, ToolNotFoundError
from toolcrib.resource_advice import resource_warnings
from toolcrib.review.lint import Finding
from toolcrib.review.text import show
from toolcrib.settings import unmatched_rules
from toolcrib.types import WithheldTool

ByOption = Annotated[str, typer.Option("--by", metavar="NAME", help="Who decides (default: the system's user).")]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; kept in the review log.")]
_SHOWN = 20


@app.command(epilog="Example: toolcrib refresh --server github")
def refresh(
    server: Annotated[
        list[str] | None, typer.Option("--server", metavar="ID", help="Only this server; repeatable.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Ask the servers for all their tools and publish what they list. Approves nothing. Exit 1 if a server failed."""

    async def work() -> tuple[RefreshReport, tuple[str, ...]]:
        async with open_crib() as crib:
            report = await crib.refresh(servers=server or (), on_progress=None if as_json else _progress)
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
        say(f"failed: {server_id}: {error}")
    held = ", ".join(f"{number} {code}" for code, number in sorted(report.withheld.items())) or "none"
    say(f"in service: {report.n_in_service}; withheld: {held}")
    if not report.n_servers:
        say("no servers are configured: add a [[servers]] block to toolcrib.toml; `toolcrib init` writes examples")
    if report.withheld.get("unreviewed") or report.withheld.get("changed"):
        say("next: toolcrib review, then toolcrib approve TOOL_ID... (or --all)")


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    return ", ".join(listed[:5]) + (f", and {len(listed) - 5} more" if len(listed) > 5 else "")


@app.command(epilog="Example: toolcrib review github.create_issue")
def review(
    tool_id: Annotated[list[str] | None, typer.Argument(metavar="[TOOL_ID]...", help="Show these whole.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show what waits for a reviewer: findings first, hidden characters visible. Exit 1 while something waits."""
    with open_crib() as crib:
        items = crib.review()
        if tool_id:
            items = _chosen(crib, items, tool_id)
        if as_json:
            print_json({"tools": [_item_json(item) for item in items]})
        elif tool_id:
            for item in items:
                _print_item(crib, item)
        else:
            _print_queue(items)
        raise typer.Exit(1 if any(item.waits for item in items) else 0)


def _chosen(crib: Crib, items: tuple[ReviewItem, ...], wanted: list[str]) -> tuple[ReviewItem, ...]:
    """The items under these ids or globs; an id that has none is told why."""
    for one in wanted:
        if not any(fnmatchcase(item.tool.tool_id, one) for item in items):
            served = any(fnmatchcase(tool.tool_id, one) for tool in crib.snapshot().tools)
            why = "it is approved and in service" if served else "see `toolcrib review`"
            raise ToolNotFoundError(f"nothing to review under {one!r}", hint=why)
    return tuple(item for item in items if any(fnmatchcase(item.tool.tool_id, one) for one in wanted))


def _item_json(item: ReviewItem) -> dict[str, Any]:
    return {
        "tool_id": item.tool.tool_id,
        "server_id": item.tool.server_id,
        "state": item.tool.state.value,
        "code": item.tool.code,
        "reason": item.tool.reason,
        "digest": item.tool.digest,
        "approved_digest": item.approved_digest,
        "can_be_approved": item.can_be_approved,
        "findings": [
            {"rule": f.rule, "pointer": f.pointer, "evidence": f.evidence, "why": f.why} for f in item.findings
        ],
        "definition": item.tool.definition,
    }


def _print_queue(items: tuple[ReviewItem, ...]) -> None:
    if not items:
        say("nothing waits for review")
        return
    by_code: dict[tuple[str, str], int] = {}
    for item in items:
        by_code[item.tool.server_id, item.tool.code] = by_code.get((item.tool.server_id, item.tool.code), 0) + 1
    print_table(("server", "why", "tools"), [(s, c, n) for (s, c), n in sorted(by_code.items())], title="withheld")
    rejected = [item for item in items if item.tool.code == "rejected"]
    told = [item for item in items if item not in rejected and (item.findings or item.tool.code != "unreviewed")]
    rows = [(item.tool.tool_id, item.tool.code, _findings(item), item.tool.reason) for item in told[:_SHOWN]]
    if rows:
        print_table(
            ("tool", "why", "findings", "reason"), rows, title=f"look at these first ({len(told)} in all)", whole=0
        )
    _say_ids("without findings", [item for item in items if item not in told and item not in rejected])
    _say_ids("rejected before, and not waiting", rejected)
    say(
        "findings are about hidden and disguised characters, length, and texts that are found for everything; "
        "what the words ask for is yours to read"
    )
    say("show whole: toolcrib review TOOL_ID (or 'time.*')    put into service: toolcrib approve TOOL_ID... (or --all)")


def _say_ids(what: str, items: Sequence[ReviewItem]) -> None:
    if items:
        more = f", and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
        say(f"{what}: {', '.join(item.tool.tool_id for item in items[:_SHOWN])}{more}")


def _findings(item: ReviewItem) -> str:
    return "; ".join(f"{_placed(f)}: {f.evidence}" for f in item.findings[:3])


def _placed(finding: Finding) -> str:
    """The rule, and where it struck if that is not the whole definition."""
    return f"{finding.rule} at {finding.pointer}" if finding.pointer else finding.rule


def _print_item(crib: Crib, item: ReviewItem) -> None:
    typer.echo(f"{show(item.tool.tool_id)}  {item.tool.code}: {show(item.tool.reason)}\n{show(item.tool.digest)}")
    for finding in item.findings:
        typer.echo(show(f"  finding {_placed(finding)}: {finding.why}: {finding.evidence}"))
    now = _lines(item.tool.definition)
    before = crib.definition_of(item.approved_digest) if item.tool.code == "changed" else None
    if before is None:
        typer.echo("\n".join(now))
    else:
        typer.echo("\n".join(unified_diff(_lines(before), now, "approved", "now", lineterm="", n=2)))
    typer.echo("")


def _lines(definition: Any) -> list[str]:
    return [show(line) for line in json.dumps(definition, indent=2, ensure_ascii=False, sort_keys=True).splitlines()]


@app.command(epilog="Example: toolcrib approve github.create_issue@sha256:1f2e --reason 'read it'")
def approve(
    tool_id: Annotated[
        list[str] | None, typer.Argument(metavar="[TOOL_ID]...", help="TOOL_ID, a glob, or TOOL_ID@sha256:BEGINNING.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All that wait and were not rejected.")] = False,
    by: ByOption = "",
    reason: Reason = "",
    as_json: AsJson = False,
) -> None:
    """Put definitions into service, as they are now. A later change takes them out again."""
    if bool(tool_id) == everything:
        raise ConfigError("say which tools, or --all", hint="toolcrib approve TOOL_ID...")
    with open_crib() as crib:
        done = crib.approve(None if everything else tool_id, reviewer=reviewer_name(by), reason=reason)
    if not done and not as_json:
        say("nothing to approve: what was named is in service already, or nothing waits")
        return
    if as_json:
        print_json({"approved": [{"tool_id": t.tool_id, "digest": t.digest} for t in done]})
        return
    _tell_approved(done)


def _tell_approved(done: tuple[WithheldTool, ...]) -> None:
    for tool in done[:_SHOWN]:
        say(f"approved {tool.tool_id} {tool.digest[:19]}")
    if len(done) > _SHOWN:
        say(f"and {len(done) - _SHOWN} more")
    say(f"{counted(len(done), 'definition')} approved; the lock is written")


@app.command(epilog="Example: toolcrib reject github.create_issue --reason 'names another server'")
def reject(
    tool_id: Annotated[list[str], typer.Argument(metavar="TOOL_ID...")],
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
        say(f"rejected {one}")
