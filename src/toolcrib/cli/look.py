"""Commands that look back: trace list, trace show, explain. `replay.py` has trace replay."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Any

import typer

from toolcrib.cli.ids import long_enough
from toolcrib.cli.shared import AsJson, app, open_crib, print_json, print_table, say
from toolcrib.review.text import show
from toolcrib.types import Stage, Trace

trace_app = typer.Typer(
    help="What happened, a record per stage.",
    epilog="Example: toolcrib trace list",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(trace_app, name="trace")

TraceId = Annotated[
    str,
    typer.Argument(metavar="TRACE", callback=long_enough, help="A trace id, or its first 6 characters or more."),
]


@trace_app.command("list", epilog="Example: toolcrib trace list --limit 50")
def trace_list(limit: Annotated[int, typer.Option("--limit", min=1, max=10_000)] = 20, as_json: AsJson = False) -> None:
    """The latest requests, newest first."""
    with open_crib(quiet=as_json) as crib:
        traces = crib.store.traces(limit=limit)
    if as_json:
        print_json({"traces": [_summary(trace) for trace in traces]})
        return
    rows = [(trace.trace_id[:12], *list(_summary(trace).values())[1:]) for trace in traces]
    print_table(("trace", "at", "kind", "caller", "tenant", "channel", "what", "outcome"), rows, whole=0)


def _summary(trace: Trace) -> dict[str, str]:
    what, outcome = "", ""
    for record in trace.records:
        view = record.operator_view
        if record.stage is Stage.RETRIEVAL:
            what = view["task"][:60]
        elif record.stage is Stage.GATE:
            what, outcome = view["tool_id"], view["code"]
        elif record.stage is Stage.SELECTION:
            outcome = f"{view['outcome']} ({len(view['tools'])})"
        elif record.stage is Stage.EXECUTION:
            outcome = view["code"]
        elif "fault" in view:
            outcome = f"unavailable: {view['fault']}"
    return {
        "trace_id": trace.trace_id,
        "at": trace.at[:19],
        "kind": trace.kind,
        "subject": trace.subject + (f" for {trace.on_behalf_of}" if trace.on_behalf_of else ""),
        "tenant": trace.tenant,
        "channel": trace.channel.value,
        "what": what,
        "outcome": outcome,
    }


@trace_app.command("show", epilog="Example: toolcrib trace show 1f2e3d --caller-view")
def trace_show(
    trace_id: TraceId,
    caller_view: Annotated[bool, typer.Option("--caller-view", help="Only what the caller may see.")] = False,
    as_json: AsJson = False,
) -> None:
    """One request, stage by stage."""
    with open_crib(quiet=as_json) as crib:
        trace = crib.trace(trace_id)
    if as_json:
        print_json(_whole(trace, caller_view=caller_view))
        return
    say(f"trace {trace.trace_id}  {trace.kind}  {trace.at}  {trace.subject}  {trace.channel}")
    rows = [
        (record.stage.value, line)
        for record in trace.records
        for line in _lines(record.caller_view if caller_view else record.operator_view) or ["nothing to do"]
    ]
    print_table(("stage", "record"), _without_repeats(rows))


def _whole(trace: Trace, *, caller_view: bool) -> dict[str, Any]:
    body = asdict(trace)
    if caller_view:
        body["records"] = [{"stage": r.stage, "caller_view": r.caller_view} for r in trace.records]
    return body


def _lines(view: Any) -> list[str]:
    """A line per field; a line per row of a list of objects."""
    lines: list[str] = []
    for key, value in view.items():
        if key in ("permitted", "disclosed", "reach", "rules"):
            continue
        if isinstance(value, list | tuple) and value and isinstance(value[0], dict):
            lines.append(f"{key}: {len(value)}")
            lines += [
                "  " + "  ".join(f"{k}={_short(v)}" for k, v in row.items() if v not in ("", None) and k != "tools")
                for row in value[:10]
            ]
            if len(value) > 10:
                lines.append(f"  and {len(value) - 10} more (--json has all)")
        elif value not in ("", None, [], {}):
            lines.append(f"{key}: {_short(value)}")
    return lines


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    if text.startswith("sha256:") or (len(text) == 64 and text.isalnum()):
        return text[:19] + "…"
    return text if len(text) <= 200 else text[:200] + "…"


def _without_repeats(rows: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(stage if n == 0 or rows[n - 1][0] != stage else "", line) for n, (stage, line) in enumerate(rows)]


@app.command(epilog="Example: toolcrib explain 1f2e3d --tool github.create_issue")
def explain(
    trace_id: TraceId,
    tool: Annotated[str, typer.Option("--tool", metavar="TOOL_ID", help="Any tool id at all.")],
    as_json: AsJson = False,
) -> None:
    """Why that caller did or did not get this tool: names the stage that lost it. The operator's view."""
    with open_crib(quiet=as_json) as crib:
        found = crib.explain(trace_id, tool_id=tool)
    if as_json:
        print_json(asdict(found))
        return
    where = f"lost at {found.lost_at}" if found.lost_at else "not lost"
    typer.echo(show(f"{found.tool_id}: {where}: {found.code}: {found.reason}"))
