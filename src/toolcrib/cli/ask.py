"""Commands that act for a caller: select, tools, call, tokens."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any

import typer

from toolcrib.catalog.lifecycle import deprecated_in_words, is_deprecated, renamed_in_words
from toolcrib.cli.shared import (
    AsFile,
    AsJson,
    app,
    caller_now,
    caller_of,
    open_crib,
    print_json,
    print_table,
    say,
    tell_what_waits,
)
from toolcrib.crib import Crib
from toolcrib.errors import ConfigError, ToolcribError
from toolcrib.history import Version, history_of
from toolcrib.offer import CallOutcome, Offer
from toolcrib.providers.names import NameTarget, public_name
from toolcrib.review.text import show
from toolcrib.types import Channel, Code, JsonObject, Outcome, RiskSource, ToolMetadata

_MAX_SHOWN = 80
_COULD_NOT_RUN = (Code.UNAVAILABLE, Code.TIMEOUT, Code.UNKNOWN_OUTCOME)


@app.command(epilog='Example: toolcrib select "create a pull request" --limit 3 --json')
def select(
    task: Annotated[str, typer.Argument(metavar="TASK", help="What is wanted, in any words and any script.")],
    as_file: AsFile = None,
    limit: Annotated[int | None, typer.Option("--limit", help="Tools at most, 1 to 50.")] = None,
    token_budget: Annotated[int | None, typer.Option("--token-budget", help="Tokens at most.")] = None,
    query: Annotated[
        list[str] | None, typer.Option("--query", metavar="Q", help="A focused part of the task; repeatable.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Select the few tools that could help and that this caller may use. Exit 0 also when nothing fits."""
    with open_crib(quiet=as_json) as crib:
        offer = crib.select(
            task,
            caller=caller_of(crib, as_file),
            queries=query or (),
            limit=limit,
            token_budget=token_budget,
            channel=Channel.CLI,
        )
        if as_json:
            print_json(offer.to_dict())
        else:
            _print_offer(offer)
        if offer.outcome is Outcome.UNAVAILABLE:
            crib.pipeline()  # raises what is missing, for the operator
            raise typer.Exit(3)
        if not offer.tools and not as_json:
            tell_what_waits(crib)


def _print_offer(offer: Offer) -> None:
    say(f"{offer.outcome}: {offer.message}")
    if offer.tools:
        rows = [
            (s.rank, s.tool.tool_id, s.tokens, f"{s.score:.3f}", _in_short(s.tool.description, s.note))
            for s in offer.tools
        ]
        print_table(("#", "tool", "tokens", "score", "what it does"), rows, whole=1)
    say(f"{offer.selection.tokens} of {offer.selection.token_budget} tokens; trace {offer.trace_id}")


@app.command(epilog="Example: toolcrib tools --history github.create_issue")
def tools(
    as_file: AsFile = None,
    history: Annotated[
        str, typer.Option("--history", metavar="TOOL_ID", help="Its versions, who approved each, and what changed.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """List the tools that this caller may discover, or show one tool's history. Exit 1: nothing is known of it."""
    if history:
        if as_file is not None:
            raise typer.BadParameter("--history is the operator's view; leave out --as")
        _show_history(history, as_json=as_json)
        return
    with open_crib(quiet=as_json) as crib:
        found = crib.tools(caller_of(crib, as_file), Channel.CLI)
        if as_json:
            print_json({"tools": [_listed(tool) for tool in found]})
            return
        if not found:
            say("this caller may discover no tool; why, of one of them: toolcrib policy explain TOOL_ID")
            tell_what_waits(crib)
            return
        print_table(
            ("tool", "namespace", "risk", "what it does"),
            [
                (
                    t.tool_id,
                    t.metadata.namespace,
                    _risk(t.metadata),
                    _in_short(t.description, deprecated_in_words("") if is_deprecated(t) else ""),
                )
                for t in found
            ],
            whole=0,
        )
        tell_what_waits(crib)


def _in_short(description: str, note: str) -> str:
    """The first line of a description, behind what its operator has to say of the tool."""
    line = description.strip().split("\n")[0]
    line = line if len(line) <= _MAX_SHOWN else line[:_MAX_SHOWN] + "…"
    return f"[{note}] {line}" if note else line


def _show_history(tool_id: str, *, as_json: bool) -> None:
    with open_crib(quiet=as_json) as crib:
        known = history_of(tool_id, store=crib.store, snapshot=crib.snapshot(), rules=crib.settings.tools)
    if as_json:
        print_json(known.to_dict())
    elif not known.versions:
        say(f"no tool was ever listed or reviewed under {show(tool_id)}")
    else:
        if known.tool_id != tool_id:
            say(renamed_in_words(show(tool_id), show(known.tool_id)))
        for version in known.versions:
            _print_version(version)
    if not known.versions:
        raise typer.Exit(1)


def _print_version(version: Version) -> None:
    standing = version.standing or "not listed any more"
    typer.echo(f"{show(version.tool_id)} {version.digest[:19]}  {standing}")
    typer.echo(f"  first seen {version.first_seen or 'at no time on record'}")
    if version.changed is not None:
        for change in version.changed:
            typer.echo(f"  changed {show(change.label or 'the whole')}: {show(change.summary)} [{change.grade}]")
    for event in version.decisions:
        signed = f", signed by {event.signer}" if event.signer else ""
        noted = f"; findings {', '.join(event.findings)}" if event.findings else ""
        reason = f": {event.reason}" if event.reason else ""
        typer.echo(show(f"  {event.action} {event.at} by {event.reviewer}{signed}{reason}{noted}"))


def _risk(of: ToolMetadata) -> str:
    """Who said it, too. What nobody has said is not shown as if somebody had called it destructive."""
    return "unknown" if of.risk_source is RiskSource.UNKNOWN else f"{of.risk} ({of.risk_source})"


def _listed(tool: Any) -> dict[str, Any]:
    return {
        "tool_id": tool.tool_id,
        "name": public_name(tool.tool_id, target=NameTarget.MCP),
        "namespace": tool.metadata.namespace,
        "state": tool.state.value,
        "risk": tool.metadata.risk.value,
        "risk_source": tool.metadata.risk_source.value,
        "digest": tool.digest,
        **({"version": tool.metadata.version} if tool.metadata.version else {}),
        **({"aliases": list(tool.metadata.aliases)} if tool.metadata.aliases else {}),
        "description": tool.description,
    }


@app.command(epilog="""Example: toolcrib call time.get_current_time --args '{"timezone": "Europe/Oslo"}'""")
def call(
    tool_id: Annotated[str, typer.Argument(metavar="TOOL_ID")],
    args: Annotated[str, typer.Option("--args", metavar="JSON", help="The arguments, a JSON object.")] = "{}",
    as_file: AsFile = None,
    digest: Annotated[str, typer.Option("--digest", help="The digest the tool was offered under.")] = "",
    idempotency_key: Annotated[
        str, typer.Option("--idempotency-key", metavar="KEY", help="The same write again, and meant: give a new key.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Judge one call and, if it may run, run it once. Exit 1: refused or the tool failed; 3: it could not run."""
    arguments = _arguments(args)

    async def work() -> tuple[CallOutcome, bool]:
        async with open_crib(quiet=as_json) as crib:
            who = caller_of(crib, as_file)
            outcome = await crib.call(
                tool_id,
                arguments,
                caller=who,
                channel=Channel.CLI,
                offered_digest=digest,
                idempotency_key=idempotency_key,
            )
            if outcome.verdict.check == "pipeline":
                _tell_fault(crib)
            asked = outcome.verdict.approval_id
            known = crib.approvals() if asked else ()
            return outcome, any(one.approval_id == asked and one.state == "pending" for one in known)

    done, waits = asyncio.run(work())
    if as_json:
        print_json(done.to_dict())
    else:
        _print_outcome(done, waits=waits)
    raise typer.Exit(0 if done.ok else 3 if done.code in _COULD_NOT_RUN else 1)


def _arguments(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as fault:
        raise ConfigError(
            f"--args is not JSON: {fault}", hint="""quote it whole: --args '{"key": "value"}'"""
        ) from fault


def _no_number(constant: str) -> Any:
    raise ValueError(f"JSON has no {constant}")


def _block_text(block: JsonObject) -> str:
    text = block.get("text")
    return text if block.get("type") == "text" and isinstance(text, str) else json.dumps(block, ensure_ascii=True)


def _tell_fault(crib: Crib) -> None:
    """Why nothing can be called, for the operator."""
    try:
        crib.pipeline()
    except ToolcribError as fault:
        say(f"toolcrib: {fault}")


def _print_outcome(done: CallOutcome, *, waits: bool = False) -> None:
    """`waits`: an approver may still decide."""
    texts = [_block_text(block) for block in done.result.content] if done.result else []
    # What a tool says of its own error is its first text, which is printed below.
    said = any(text.startswith(done.message.removesuffix(" …")) for text in texts)
    say(f"{done.code}: {done.message}" if done.message and not said else str(done.code))
    for fault in done.verdict.faults:
        say(f"  {fault.path or '(root)'}: expected {fault.expected}, got {fault.got}")
    if waits:
        grant = f"toolcrib approvals grant {done.verdict.approval_id}"
        say(f"  to let exactly this call run: {grant} (--as FILE, where policy says who may)")
    if done.verdict.earlier_trace:
        say(f"  the same write before: toolcrib trace show {done.verdict.earlier_trace[:12]}")
    for note in done.result.notes if done.result else ():
        say(f"  note: {note}")
    for text in texts:
        typer.echo(show(text))
    if done.result and not done.result.content and done.result.structured is not None:
        print_json(done.result.structured)
    say(f"trace {done.trace_id}")


@app.command(epilog="Example: toolcrib tokens --as caller.json")
def tokens(
    as_file: AsFile = None,
    per_tool: Annotated[bool, typer.Option("--tools", help="Also list every tool.")] = False,
    as_json: AsJson = False,
) -> None:
    """What each server and tool costs in a model's context, for this caller, beside what Toolcrib puts there."""
    from toolcrib.cli.costs import context_costs

    with open_crib(quiet=as_json) as crib:
        costs = context_costs(crib, caller_now(crib, as_file))
    if as_json:
        print_json(costs.to_dict())
        return
    print_table(("server", "tools", "tokens"), [(s.server_id, s.n_tools, s.tokens) for s in costs.servers])
    if per_tool:
        print_table(("tool", "tokens"), [(tool_id, n) for tool_id, n in costs.tools], whole=0)
    print_table(("what a model is given", "tokens"), costs.summary_rows())
    say(costs.error_note)
