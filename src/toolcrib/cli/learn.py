"""`toolcrib learn`: what the crib's own traces teach, in the file that `[retrieval] learned` puts in force."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from toolcrib import curation
from toolcrib.cli.shared import AsJson, app, folder, open_crib, print_json, print_table, say
from toolcrib.cli.since import since_when
from toolcrib.learn import DEPTHS, LearnOptions, Measured, Report, learn
from toolcrib.retrieval.learning import ANY_TENANT

_FILE = Path("toolcrib.learned")


@app.command("learn", epilog="Example: toolcrib learn --since 2026-11-01 --out toolcrib.learned")
def learn_command(
    since: Annotated[
        str,
        typer.Option("--since", metavar="WHEN", help="Traces since a date (UTC), or as 30d, 12h (default: 90d)."),
    ] = "",
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The file to write.")] = _FILE,
    holdout: Annotated[
        float, typer.Option("--holdout", metavar="SHARE", help="Share of the newest requests that are kept aside.")
    ] = 0.2,
    min_requests: Annotated[
        int, typer.Option("--min-requests", min=1, help="Different requests that a part must rest on.")
    ] = 20,
    min_subjects: Annotated[int, typer.Option("--min-subjects", min=1, help="People that it must rest on.")] = 2,
    across_tenants: Annotated[bool, typer.Option("--across-tenants", help="Pool the requests of all tenants.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Write parts that do not clearly find more, too.")] = False,
    seed: Annotated[int, typer.Option("--seed", help="Of the order of steps and of the intervals.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Learn from what was asked and called. Writes a file and changes nothing else.

    A call counts when it was carried out after its tool had been offered to the same caller. Recall is measured on
    requests that nothing was learned from. Exit 1 when nothing clearly finds more; then no file is written.
    """
    options = LearnOptions(
        holdout=holdout,
        min_requests=min_requests,
        min_subjects=min_subjects,
        across_tenants=across_tenants,
        force=force,
        seed=seed,
    )
    path = folder() / out
    with open_crib(quiet=as_json) as crib:
        learned, report = learn(
            crib.store,
            crib.pipeline(),
            since=since_when(since or "90d"),
            offer_ttl_s=crib.settings.gate.offer_ttl_s,
            made=curation.now(),
            options=options,
            on_progress=(lambda _text: None) if as_json else lambda text: say(f"toolcrib: {text}"),
        )
        named = crib.settings.retrieval.learned
        in_force = bool(named) and crib.settings.resolve(named).resolve() == path.resolve()
    if learned.parts:
        learned.write(path)
    if as_json:
        print_json({"file": str(out) if learned.parts else "", "digest": learned.digest, **asdict(report)})
    else:
        _show(report)
        for line in report.lacking:
            say(line)
        if not learned.parts:
            say("nothing was written")
        elif in_force:
            say(f"written to {out}; in force from the next request on")
        else:
            say(f'written to {out}; to put it in force: learned = "{out}" under [retrieval]')
    raise typer.Exit(0 if learned.parts else 1)


def _show(report: Report) -> None:
    say(
        f"requests: {report.n_requests}{'' if report.complete else ' (the newest; there are more)'}, "
        f"with a call that counts: {report.n_uses}, without: {report.n_unused}, not readable: {report.n_unreadable}, "
        f"made while other tools were in reach than anybody has now: {report.n_left_out}"
    )
    if not report.audiences:
        return
    first = ("tenant", "tools", "learned from", "people", "held out", "asked before")
    columns = (*first, *(f"recall@{depth}" for depth in DEPTHS), "gain (95 %)", "part")
    print_table(columns, [_row(found) for found in report.audiences])


def _row(found: Measured) -> tuple[Any, ...]:
    recalls = [f"{100 * a:.1f} -> {100 * b:.1f}" for a, b in zip(found.before, found.after, strict=True)]
    gain = found.gain
    interval = f"{100 * gain.mean:+.1f} ({100 * gain.low:+.1f} to {100 * gain.high:+.1f})" if gain else ""
    return (
        "all" if found.tenant == ANY_TENANT else found.tenant or "(none)",
        found.n_tools,
        found.n_learned,
        found.n_subjects,
        found.n_held_out,
        found.n_repeated,
        *(recalls or [""] * len(DEPTHS)),
        interval,
        "written" if found.kept else f"left out: {found.why}",
    )
