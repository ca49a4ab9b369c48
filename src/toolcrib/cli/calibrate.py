"""`toolcrib calibrate`: a map of confidence and a floor from the crib's own cases or traces."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from toolcrib import curation
from toolcrib.calibrate import Calibrated, CalibrationReport, calibrate, floor_in_force, known_of
from toolcrib.cli.shared import AsJson, app, counted, folder, open_crib, print_json, print_table, say
from toolcrib.cli.since import since_when
from toolcrib.crib import Crib
from toolcrib.errors import ConfigError
from toolcrib.evals.cases import Case, read_cases
from toolcrib.evals.past import MAX_TRACES, from_traces

_FILE = Path("toolcrib.calibration.json")


@app.command("calibrate", epilog="Example: toolcrib calibrate cases.jsonl --false-refusal 0.02")
def calibrate_command(
    cases: Annotated[
        Path | None, typer.Argument(metavar="[CASES]", help="A case file, as `toolcrib eval` reads it.")
    ] = None,
    from_log: Annotated[
        bool, typer.Option("--from-traces", help="Take requests from the crib's traces, beside CASES if given.")
    ] = False,
    since: Annotated[
        str, typer.Option("--since", metavar="WHEN", help="With --from-traces: a date, or days as in 30d.")
    ] = "90d",
    false_refusal: Annotated[
        float,
        typer.Option("--false-refusal", metavar="SHARE", help="Share of answerable requests that may be refused."),
    ] = 0.02,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The file to write.")] = _FILE,
    as_json: AsJson = False,
) -> None:
    """Fit how confidence is told, and the floor below which nothing is offered, to this crib. Writes one file.

    Cases whose `expect` is null are those that no tool fits; 8 of them are needed, 8 of the others, 30 in all.
    From traces a request counts as answerable when an offered tool was called, and as unanswerable when nothing was
    offered; the latter is weak evidence. Exit 2 where there are too few requests.
    """
    if cases is None and not from_log:
        raise ConfigError("say which cases, or --from-traces, or both", hint="toolcrib calibrate cases.jsonl")
    path = folder() / out
    with open_crib(quiet=as_json) as crib:
        asked = () if cases is None else _corrected(folder() / cases)
        asked += _from_log(crib, since, needed=cases is None) if from_log else ()
        pipeline = crib.pipeline()
        known, n_left_out = known_of(crib, asked, name="calibration")
        found = calibrate(
            known,
            model_id=pipeline.index.model_id if pipeline.index else "none",
            floor_now=floor_in_force(pipeline),
            false_refusal=false_refusal,
            n_left_out=n_left_out,
            from_log=from_log,
            made=curation.now(),
        )
        settings = crib.settings
    found.calibration.write(path)
    if as_json:
        print_json({"file": str(out), "calibration": asdict(found.calibration), "report": asdict(found.report)})
        return
    _show(found)
    named = settings.retrieval.calibration
    if named and settings.resolve(named).resolve() == path.resolve():
        say(f"written to {out}; in force from the next request on")
    else:
        say(f'written to {out}; to put it in force: calibration = "{out}" under [retrieval]')
    if settings.retrieval.confidence_floor is not None:
        say("[retrieval] confidence_floor is set and counts before the fitted floor; take it out to use the latter")


def _corrected(path: Path) -> tuple[Case, ...]:
    """The cases of a file. Raises ConfigError where most that a tool fits are drafts in the definitions' own words."""
    cases = read_cases(path)
    fitting = [case for case in cases if case.expect is not None]
    n_drafts = sum("draft" in case.tags and "trace" not in case.tags for case in fitting)
    if 2 * n_drafts > len(fitting):
        raise ConfigError(
            f"{n_drafts} of {len(fitting)} cases that a tool fits are drafts, in the words of the definitions: a floor "
            "fitted to them refuses what people ask",
            where=str(path),
            hint="put them into your users' words, and take the tag `draft` off those you have corrected",
        )
    return cases


def _from_log(crib: Crib, since: str, *, needed: bool) -> tuple[Case, ...]:
    taken = from_traces(crib.store.each_trace(since=since_when(since), limit=MAX_TRACES), n=MAX_TRACES)
    say(f"{counted(taken.n_selects, 'request')} in the traces, {taken.n_uncalled} of them with nothing known")
    if needed and not taken.cases:
        raise ConfigError("the traces hold no request whose outcome is known", hint="give a case file instead")
    return taken.cases


def _show(found: Calibrated) -> None:
    report, made = found.report, found.calibration
    say(
        f"{report.n_answerable} requests that a tool fits, {report.n_unanswerable} that none fits"
        + (f"; {report.n_left_out} left out: their caller cannot reach the tool" if report.n_left_out else "")
    )
    print_table(
        ("told", "requests", "mean told", "a tool fits"),
        [(f"{b.low:.1f} to {b.high:.1f}", b.n, f"{b.mean:.2f}", f"{b.share:.2f}") for b in report.bands],
        title="Calibrated confidence, on requests left out of the fit",
    )
    print_table(
        ("floor", "answerable refused", "unanswerable let through"),
        [_row("before", report), _row("held out", report)],
        title=f"AUROC {report.auroc:.3f}",
    )
    say(f"floor {made.floor:.4f}, slope {made.slope:.3f}, offset {made.offset:.3f}")
    if report.from_log:
        say("a log does not show what was wrongly refused: without cases for that beside it the floor can only rise")


def _row(which: str, report: CalibrationReport) -> tuple[str, str, str]:
    at = report.before if which == "before" else report.held_out
    name = which if at.floor is None else f"{which} ({at.floor:.2f})"
    return name, f"{at.false_refusal:.1%}", f"{at.false_accept:.1%}"
