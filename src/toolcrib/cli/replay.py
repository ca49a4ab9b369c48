"""`toolcrib trace replay`: recorded requests once more, and what comes out otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

import typer

from toolcrib.cli.ids import long_enough
from toolcrib.cli.look import trace_app
from toolcrib.cli.shared import AsJson, counted, open_crib, print_json, print_table, say
from toolcrib.cli.since import since_when
from toolcrib.errors import ConfigError
from toolcrib.looking_back import Against, Replayed, ReplayedMany
from toolcrib.types import Stage

_SHOWN = 20
_WORDS = {
    Stage.REGISTRY: "catalog",
    Stage.ELIGIBILITY: "policy",
    Stage.ROUTING: "routing",
    Stage.RETRIEVAL: "ranking",
    Stage.SELECTION: "selection (confidence or budget)",
}


def _trace_id(text: str | None) -> str | None:
    return None if text is None else long_enough(text)


@trace_app.command("replay", epilog="Example: toolcrib trace replay --since 7d --present")
def trace_replay(
    trace_id: Annotated[
        str | None,
        typer.Argument(metavar="[TRACE]", callback=_trace_id, help="A trace id, or its first 6 characters or more."),
    ] = None,
    since: Annotated[
        str, typer.Option("--since", metavar="WHEN", help="All selects since a date, or in days (30d) or hours (12h).")
    ] = "",
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=100_000, help="With --since: so many, the newest.")
    ] = 1_000,
    present: Annotated[
        bool,
        typer.Option("--present/--recorded", help="Against what is in force now, or against what it rested on."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make selects again from their traces, and show what changed. Asks no server, writes nothing.

    Exit 0: the same answers. 1: others, or the recorded versions are not kept. 2: no trace of an answered select.
    """
    if (trace_id is None) == (not since):
        raise ConfigError("say which trace, or --since", hint="toolcrib trace replay 1f2e3d, or --since 7d")
    against: Against = "present" if present else "recorded"
    with open_crib(quiet=as_json) as crib:
        if trace_id is not None:
            found = crib.replay(trace_id, against=against)
            _tell(found, as_json=as_json)
            raise typer.Exit(0 if found.same else 1)
        many = crib.replay_since(since_when(since), limit=limit, against=against)
    if as_json:
        print_json(_many_json(many))
    else:
        _print_many(many)
    raise typer.Exit(1 if many.n_different or many.n_not_kept else 0)


def _tell(found: Replayed, *, as_json: bool) -> None:
    if as_json:
        print_json(_one_json(found))
        return
    if not found.compared:
        say(f"not kept any more, so not replayed: {', '.join(found.differs)}")
        return
    say("the same answer" if found.same else f"not the same: {', '.join(found.differs)}")
    if found.others:
        say(f"another by now: {', '.join(found.others)}")
    if found.outcome[0] != found.outcome[1]:
        say(f"outcome: {found.outcome[0]} -> {found.outcome[1]}")
    if found.tokens[0] != found.tokens[1]:
        say(f"tokens: {found.tokens[0]} -> {found.tokens[1]}")
    if found.stage:
        say(f"the difference begins at: {_WORDS[found.stage]}")
    if found.changes:
        rows = [(c.tool_id, c.change, c.then or "-", c.now or "-", _WORDS[c.stage], c.why) for c in found.changes]
        print_table(("tool", "what", "then", "now", "where", "why"), rows, whole=0)


def _one_json(found: Replayed) -> dict[str, Any]:
    body = asdict(found)
    for pair in ("outcome", "tokens"):
        then, now = body[pair]
        body[pair] = {"then": then, "now": now}
    return body


def _many_json(many: ReplayedMany) -> dict[str, Any]:
    body = asdict(many)
    body["tokens"] = {"then": many.tokens[0], "now": many.tokens[1]}
    body["outcomes"] = [{"then": then, "now": now, "n": n} for (then, now), n in many.outcomes.items()]
    body["different"] = [_one_json(one) for one in many.different]
    return body


def _print_many(many: ReplayedMany) -> None:
    versions = "what is in force now" if many.against == "present" else "what they rested on"
    say(f"against {versions}: {many.n_same} the same, {many.n_different} different, {many.n_not_kept} not kept")
    if many.n_unanswered:
        say(f"{counted(many.n_unanswered, 'select')} that nothing could answer then: nothing to replay")
    for name, n in many.not_kept.items():
        say(f"not kept: {name} ({n} times)")
    if many.tokens[0] != many.tokens[1]:
        say(f"tokens in all: {many.tokens[0]:,} -> {many.tokens[1]:,}")
    _counts("where differences begin", {_WORDS[Stage(name)]: n for name, n in many.stages.items()})
    _counts("outcomes", {f"{then} -> {now}": n for (then, now), n in many.outcomes.items()})
    _counts("tools gained", many.gained)
    _counts("tools lost", many.lost)
    if many.different:
        rows = [
            (one.trace_id[:12], _WORDS[one.stage] if one.stage else "", ", ".join(_short(one)))
            for one in many.different[:_SHOWN]
        ]
        title = f"different ({min(_SHOWN, len(rows))} of {many.n_different})"
        print_table(("trace", "where", "what"), rows, title=title, whole=0)


def _short(found: Replayed) -> list[str]:
    signs = {"gained": "+", "lost": "-", "moved": "~", "redefined": "!"}
    return [f"{signs[change.change]}{change.tool_id}" for change in found.changes] or list(found.differs)


def _counts(title: str, counts: Mapping[str, int]) -> None:
    if counts:
        print_table(("what", "selects"), list(counts.items())[:_SHOWN], title=title)
