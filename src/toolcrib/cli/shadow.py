"""Commands about shadow mode: shadow status, shadow report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from toolcrib import __version__, curation
from toolcrib.candidate import Candidate, tried_settings
from toolcrib.cli.shared import AsJson, app, counted, folder, open_crib, print_json, print_table, say
from toolcrib.cli.since import since_when
from toolcrib.crib import Crib
from toolcrib.errors import ConfigError, ToolcribError
from toolcrib.evals.shadow_thresholds import Bound, held, read_bounds
from toolcrib.settings import ShadowSettings

shadow_app = typer.Typer(
    help="What a candidate would have answered to real requests; nothing of it reaches a caller.",
    epilog="Example: toolcrib shadow report --since 7d",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(shadow_app, name="shadow")

Since = Annotated[str, typer.Option("--since", metavar="WHEN", help="A date, or days as in 30d, hours as in 12h.")]


@shadow_app.command(epilog="Example: toolcrib shadow status")
def status(since: Since = "7d", as_json: AsJson = False) -> None:
    """What is tried, whether it can be, and what is on record. Exit 1: shadow mode is on and the candidate is broken.

    Makes the candidate ready, too: the index that it needs is built and kept, and servers find it.
    """
    with open_crib(quiet=as_json) as crib:
        crib.pipeline()
        told = _status(crib, since_when(since))
    if as_json:
        print_json(told)
    else:
        _print_status(told)
    raise typer.Exit(1 if told["fault"] else 0)


def _status(crib: Crib, since: str) -> dict[str, Any]:
    from toolcrib.evals.shadow import MAX_RECORDS

    settings = crib.settings
    shadow = settings.shadow
    told: dict[str, Any] = {
        **_mode(shadow),
        "taken": [],
        "ignored": [],
        "candidate_id": "",
        "fault": "",
    }
    if shadow.candidate:
        try:
            tried = tried_settings(settings)
            told |= {"taken": list(tried.taken), "ignored": list(tried.ignored)}
            told["candidate_id"] = Candidate(crib.store, on_progress=lambda _text: None).ready(settings).candidate_id
        except ToolcribError as fault:
            told["fault"] = str(fault)
    records = list(crib.store.each_shadow(since=since, limit=MAX_RECORDS))
    states = Counter(record.state for record in records)
    last_fault = next((record for record in records if record.fault), None)
    return told | {
        "since": since,
        "n_compared": states["compared"],
        "n_failed": states["failed"],
        "n_dropped": sum(record.n_dropped for record in records),
        "last_at": records[0].at if records else "",
        "last_fault": {"at": last_fault.at, "trace_id": last_fault.trace_id, "what": last_fault.fault}
        if last_fault
        else None,
    }


def _print_status(told: dict[str, Any]) -> None:
    say(_tried(told))
    if told["on"]:
        if told["candidate"]:
            say(f"tried of it: {', '.join(told['taken']) or 'nothing'}")
        if told["ignored"]:
            say(f"without effect: {', '.join(told['ignored'])}")
        if told["fault"]:
            say(f"the candidate cannot answer: {told['fault']}")
    say(
        f"since {told['since'][:16]}: {told['n_compared']} compared, {told['n_failed']} failed, "
        f"{told['n_dropped']} dropped"
    )
    if told["last_fault"]:
        say(f"last fault ({told['last_fault']['at'][:19]}): {told['last_fault']['what']}")


@shadow_app.command(epilog="Example: toolcrib shadow report --since 7d --thresholds release.toml")
def report(
    since: Since = "7d",
    thresholds: Annotated[
        Path | None, typer.Option("--thresholds", metavar="FILE", help="Bounds that a release must hold (TOML).")
    ] = None,
    k: Annotated[int, typer.Option("--k", min=1, max=50, help="Tools of either offer that the overlap compares.")] = 5,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write one page. It names tools and callers.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare the newest candidate with what was answered. Exit 1: a threshold does not hold."""
    from toolcrib.evals.shadow import MAX_RECORDS, figures, material

    bounds = read_bounds(folder() / thresholds) if thresholds else {}
    with open_crib(quiet=as_json) as crib:
        moment = since_when(since)
        found = material(
            crib.store.each_shadow(since=moment, limit=MAX_RECORDS),
            crib.store.each_trace(since=moment, limit=10 * MAX_RECORDS),
        )
        mode = _mode(crib.settings.shadow)
    told = figures(found, k=k)
    verdicts = held(bounds, told)
    if html:
        _write_page(folder() / html, told, verdicts, state=_tried(mode))
    if as_json:
        holds = all(one.holds for one in verdicts) if verdicts else None
        print_json({"on": mode["on"], **told, "holds": holds, "thresholds": [asdict(one) for one in verdicts]})
    else:
        _print_report(told, state=_tried(mode))
        for one in verdicts:
            say(f"{'holds' if one.holds else 'FAILS'}: {one}")
        if html:
            say(f"the page is in {folder() / html}")
        if told["n_compared"] and not verdicts:
            say("no thresholds were given: --thresholds FILE says whether a release may go out")
    raise typer.Exit(0 if all(one.holds for one in verdicts) else 1)


def _mode(shadow: ShadowSettings) -> dict[str, Any]:
    return {"on": shadow.is_on, **asdict(shadow)}


def _tried(mode: Mapping[str, Any]) -> str:
    """In words, what answers now and what is tried. `mode`: see `_mode`."""
    own = "this crib's own selection"
    if not mode["on"]:
        return "shadow mode is off: name a candidate under [shadow] in toolcrib.toml"
    answer = "everything in reach" if mode["present"] == "all" else own
    return f"answered with {answer}; tried on {mode['share']:.0%} of selects: {mode['candidate'] or own}"


def _write_page(path: Path, told: dict[str, Any], bounds: Sequence[Bound], *, state: str) -> None:
    from toolcrib.evals.files import write_private
    from toolcrib.evals.shadow_page import shadow_page

    made = shadow_page(told, bounds=bounds, state=state, at=curation.now(), version=__version__)
    try:
        write_private(path, made)
    except OSError as fault:
        raise ConfigError(f"the page cannot be written: {fault.strerror}", where=str(path)) from fault


def _print_report(told: dict[str, Any], *, state: str) -> None:
    say(state)
    if told["n_compared"]:
        _print_figures(told)
    for fault, n in told["faults"].items():
        say(f"failed {n} times: {fault}")
    if told["n_dropped"]:
        say(f"{counted(told['n_dropped'], 'select')} dropped: more came than the candidate could answer")
    if told["n_other_candidates"]:
        say(f"{counted(told['n_other_candidates'], 'comparison')} of earlier candidates left out")
    for note in told["notes"]:
        say(f"note: {note}")


def _print_figures(told: dict[str, Any]) -> None:
    agreement, tokens, calls, latency = told["agreement"], told["tokens"], told["calls"], told["latency_ms"]
    rows = [
        ("selects compared", "", "", told["n_compared"]),
        ("same first tool", "", "", _percent(agreement["first"])),
        (f"overlap of the first {agreement['k']}", "", "", _percent(agreement["overlap"])),
        ("same tools", "", "", _percent(agreement["same_tools"])),
        ("outcome changed", "", "", _percent(told["outcomes"]["changed"])),
        ("tokens, mean", _number(tokens["present_mean"]), _number(tokens["candidate_mean"]), _interval(tokens)),
        ("latency p50, ms", _number(latency["present"]["p50"]), _number(latency["candidate"]["p50"]), ""),
        ("latency p95, ms", _number(latency["present"]["p95"]), _number(latency["candidate"]["p95"]), ""),
        (
            f"recall of called tools ({counted(told['n_labelled'], 'select')})",
            _percent(calls["recall_present"]),
            _percent(calls["recall_candidate"]),
            _interval(calls, scale=100),
        ),
        ("called tool lost / won", "", "", f"{_percent(calls['lost'])} / {_percent(calls['won'])}"),
    ]
    print_table(("figure", "present", "candidate", "both, or candidate - present"), rows)
    changed = [row for row in told["outcomes"]["pairs"] if row["present"] != row["candidate"]]
    if changed:
        cells = [(row["present"], row["candidate"], row["n"]) for row in changed]
        print_table(("present", "candidate", "selects"), cells, title="outcomes that change")
    for side in ("gained", "lost"):
        if told["reach"][side]:
            shown = told["reach"][side][:20]
            who = [(row["tool_id"], row["n_selects"], ", ".join(row["callers"][:5])) for row in shown]
            print_table(("tool", "selects", "callers"), who, title=f"reach {side}", whole=0)
    if told["disagreements"]:
        look = [
            (row["trace_id"][:12], row["present"], row["candidate"], ", ".join(row["called"]))
            for row in told["disagreements"]
        ]
        print_table(("trace", "present first", "candidate first", "called"), look, title="look at these", whole=0)


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"


def _interval(of: dict[str, Any], *, scale: float = 1) -> str:
    found = of["difference"]
    if found is None:
        return "-"
    mean, low, high = (scale * found[key] for key in ("mean", "low", "high"))
    return f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]"
