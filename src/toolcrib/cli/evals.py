"""Commands that measure: eval (run), eval init. `toolcrib eval PATH` is short for `toolcrib eval run PATH`."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, cast, get_args, get_type_hints

import typer

from toolcrib import __version__, curation
from toolcrib.cli.groups import GroupWithDefault
from toolcrib.cli.shared import AsJson, app, counted, folder, open_crib, print_json, say
from toolcrib.cli.since import since_when
from toolcrib.crib import Crib
from toolcrib.errors import ConfigError
from toolcrib.evals.baselines.protocol import Baseline
from toolcrib.evals.cases import Case, read_cases
from toolcrib.evals.files import write_private
from toolcrib.evals.folders import is_set, read_folder
from toolcrib.evals.places import Place, place_of_crib, place_of_folder
from toolcrib.evals.results import Result
from toolcrib.settings import FILE_NAME, Settings, load_settings
from toolcrib.settings.model import RetrievalSettings

_ALL = "*"
_SAY_EVERY_S = 5.0


class _OrRun(GroupWithDefault):
    """`--baselines` without names means all of them."""

    default, alone = "run", False

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [f"--baselines={_ALL}" if word == "--baselines" else word for word in args])


eval_app = typer.Typer(
    cls=_OrRun,
    help="Measure how well tools are found: `toolcrib eval PATH...` runs cases, `init` drafts some.",
    epilog="Example: toolcrib eval cases.jsonl --html page.html",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(eval_app, name="eval")


@eval_app.command("run", epilog="Example: toolcrib eval cases.jsonl --gate thresholds.toml --html page.html")
def eval_run(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="Case files (JSON lines, asked of the crib), and folders with tools.jsonl, queries.jsonl, qrels.jsonl "
            "(a world of their own, which needs no crib).",
        ),
    ],
    sample: Annotated[
        int, typer.Option("--sample", min=0, help="At most N cases that a tool fits, and N that none fits; 0: all.")
    ] = 0,
    baselines: Annotated[
        str,
        typer.Option(
            "--baselines",
            metavar="[=NAMES]",
            help="Other ways of finding tools, too: all, or =name,name.",
        ),
    ] = "",
    depths: Annotated[
        str, typer.Option("--k", metavar="K,K", help="The depths of recall and completeness.")
    ] = "1,5,10",
    gate: Annotated[
        Path | None, typer.Option("--gate", metavar="FILE", help="Thresholds in TOML; exit 1 where one does not hold.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option("--save", metavar="FILE", help="Keep the run, for a later --compare.")
    ] = None,
    compare: Annotated[
        Path | None, typer.Option("--compare", metavar="FILE", help="Compare with a kept run, case by case.")
    ] = None,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write one page with plots.")] = None,
    embedder: Annotated[
        str, typer.Option("--embedder", metavar="NAME", help="For folders: instead of the one in [retrieval].")
    ] = "",
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the sample and of the intervals.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Run cases and print figures: recall, nDCG, completeness, refusal, tokens, latency, and which stage lost a tool.

    Shares are 0 to 1. Nothing is called and no trace is written. Files are named relative to the crib's folder. Exit 1
    when a threshold does not hold, or anything of a tool showed that its caller may not know of.
    """
    from toolcrib.evals.compare import difference, read_run, saved, write_run
    from toolcrib.evals.gates import fallen_short, read_gate
    from toolcrib.evals.run import sampled
    from toolcrib.evals.summary import Measured, summarised

    wanted = _depths(depths)
    thresholds = read_gate(_given(gate)) if gate else ()
    before = read_run(_given(compare)) if compare else None
    chosen, absent = _baselines(baselines)
    with ExitStack() as stack:
        places = places_of(paths, embedder=embedder, quiet=as_json, stack=stack)
        places = [sampled(place, sample=sample, seed=seed) for place in places]
        results = {place.name: _run(place) for place in places}
        measured = Measured(
            results=tuple(result for found in results.values() for result in found),
            corpora={place.name: place.corpus for place in places},
            depths=wanted,
            seed=seed,
            notes=tuple(note for place in places for note in place.notes),
        )
        summary = {"paths": [str(path) for path in paths], "seed": seed, "sample": sample, **summarised(measured)}
        summary["baselines"] = _against(chosen, absent, places, results, depths=wanted, seed=seed)
    run = saved(summary, measured, at=curation.now(), version=__version__)
    if before is not None:
        summary["compare"] = run["summary"]["compare"] = difference(before, run, seed=seed)
    short = fallen_short(thresholds, summary)
    if gate:
        summary["gate"] = run["summary"]["gate"] = {"held": not short, "fell_short": [str(one) for one in short]}
    if save:
        write_run(folder() / save, run)
    if html:
        _write_page(folder() / html, run)
    if as_json:
        print_json(summary)
    else:
        from toolcrib.cli.evals_report import print_summary

        print_summary(summary)
        for file, what in ((save, "the run"), (html, "the page")):
            if file:
                say(f"{what} is in {folder() / file}")
    for one in short:
        say(f"fell short: {one}")
    shown = summary["stages"]["exposure"]["total"]
    if shown:
        say(f"{counted(shown, 'thing')} showed of tools that the caller may not know of; see the worst cases")
    raise typer.Exit(1 if short or shown else 0)


def _given(path: Path) -> Path:
    """A file or folder to read: relative to the crib's folder, or to where one stands."""
    beside = folder() / path
    return beside if beside.exists() or not path.exists() else path


def _depths(text: str) -> tuple[int, ...]:
    try:
        found = sorted({int(part) for part in text.split(",")})
    except ValueError:
        found = []
    if not found or not 1 <= found[0] <= found[-1] <= 50:
        raise ConfigError(f"--k takes numbers from 1 to 50, got {text!r}", hint="for example --k 1,5,10")
    return tuple(found)


def places_of(paths: Sequence[Path], *, embedder: str, quiet: bool, stack: ExitStack) -> list[Place]:
    """A place for each path, in order, each with a name of its own."""
    crib, settings = None, None
    places: dict[str, Place] = {}
    for path in paths:
        where = _given(path)
        if where.is_dir() and not is_set(where):
            raise ConfigError(
                "there is no tools.jsonl in this folder", where=str(where), hint="name a folder that has one, or a file"
            )
        if where.is_dir():
            settings = settings or _folder_settings(embedder, stack)
            place = place_of_folder(read_folder(where), settings=settings)
        elif embedder:
            raise ConfigError(
                "cases of a crib are searched with its own [retrieval]",
                where="--embedder",
                hint="it is for folders; for a crib change `embedder` in toolcrib.toml, or try it in [shadow]",
            )
        else:
            cases = read_cases(where)
            crib = crib or stack.enter_context(open_crib(quiet=quiet))
            place = place_of_crib(crib, cases, name=where.stem)
        name, twin = place.name, 1
        while name in places:
            twin += 1
            name = f"{place.name} ({twin})"
        places[name] = replace(place, name=name)
    return list(places.values())


def _folder_settings(embedder: str, stack: ExitStack) -> Settings:
    """Whose `[retrieval]` folders are searched with: the crib's in the chosen folder, or the defaults without one."""
    if (folder() / FILE_NAME).is_file():
        settings = load_settings(folder())
    else:
        root = Path(stack.enter_context(TemporaryDirectory(prefix="toolcrib-eval-")))
        settings = Settings(root=root, path=root / FILE_NAME)
    if not embedder:
        return settings
    known = get_args(get_type_hints(RetrievalSettings)["embedder"])
    if embedder not in known:
        raise ConfigError(f"there is no embedder {embedder!r}", where="--embedder", hint=f"one of {', '.join(known)}")
    return replace(settings, retrieval=replace(settings.retrieval, embedder=cast("Any", embedder)))


def _run(place: Place) -> tuple[Result, ...]:
    from toolcrib.evals.run import run

    last = [time.monotonic()]

    def told(done: int, total: int) -> None:
        if time.monotonic() - last[0] >= _SAY_EVERY_S:
            last[0] = time.monotonic()
            say(f"{place.name}: {done} of {total} cases")

    return run(place, on_progress=told)


def _baselines(text: str) -> tuple[list[Baseline], dict[str, str]]:
    """The chosen baselines that can run here, and why the others cannot. Raises ConfigError for an unknown name."""
    from toolcrib.evals.baselines import available, unavailable

    if not text:
        return [], {}
    names = () if text == _ALL else tuple(part.strip() for part in text.split(",") if part.strip())
    return list(available(names)), dict(unavailable(names))


def _against(
    chosen: Sequence[Baseline],
    absent: Mapping[str, str],
    places: Sequence[Place],
    results: dict[str, tuple[Result, ...]],
    *,
    depths: tuple[int, ...],
    seed: int,
) -> dict[str, Any]:
    """Figures of each baseline; of one that is not here, why."""
    from toolcrib.evals.against import compared

    told = compared(chosen, places, results, depths=depths, seed=seed, say=say) if chosen else {}
    return {**told, **{name: {"about": "", "failed": why} for name, why in absent.items()}}


def _write_page(path: Path, run: dict[str, Any]) -> None:
    from toolcrib.evals.page import page

    try:
        write_private(path, page(run))
    except OSError as fault:
        raise ConfigError(f"the page cannot be written: {fault.strerror}", where=str(path)) from fault


# --- init ------------------------------------------------------------------------------------------------


@eval_app.command("init", epilog="Example: toolcrib eval init --from-traces --since 30d --out real.jsonl")
def eval_init(
    n: Annotated[int, typer.Option("--n", min=1, max=1_000, help="Cases, about.")] = 40,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The case file to write.")] = Path("cases.jsonl"),
    from_traces: Annotated[
        bool, typer.Option("--from-traces", help="Real requests instead, and what was called after them.")
    ] = False,
    since: Annotated[
        str,
        typer.Option("--since", metavar="WHEN", help="With --from-traces: a date, or as 30d, 12h."),
    ] = "30d",
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the choice of tools.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Draft cases from the catalog, or take them from traces, for a person to correct. Overwrites nothing.

    Drafts use the catalog's own words, and every search finds those: put them into the words of those who ask before
    you trust a figure. Tasks from traces stand as they were asked; look through them before you share the file.
    """
    target = folder() / out
    if target.exists():
        raise ConfigError("there is such a file already", where=str(target), hint="name another one with --out")
    with open_crib(quiet=as_json) as crib:
        cases, told = _past_cases(crib, n=n, since=since) if from_traces else _drafts(crib, n=n, seed=seed)
    if not cases:
        raise ConfigError(told, where=str(folder()), hint="see `toolcrib tools`, `toolcrib trace list`")
    lines = "".join(json.dumps(case.to_row(), ensure_ascii=False) + "\n" for case in cases)
    try:
        write_private(target, lines)
    except OSError as fault:
        raise ConfigError(f"the cases cannot be written: {fault.strerror}", where=str(target)) from fault
    if as_json:
        print_json({"file": str(target), "cases": len(cases), "about": told})
    else:
        say(f"{counted(len(cases), 'case')} in {target}: {told}")
        say(f"correct them, then: toolcrib eval {out}")


def _drafts(crib: Crib, *, n: int, seed: int) -> tuple[tuple[Case, ...], str]:
    from toolcrib.evals.catalog_drafts import drafts_of_crib

    cases = drafts_of_crib(crib, n=n, seed=seed)
    none = sum(case.expect is None for case in cases)
    return (
        cases,
        f"drafted from the catalog, {none} of them with no tool that fits" if cases else "nobody reaches a tool",
    )


def _past_cases(crib: Crib, *, n: int, since: str) -> tuple[tuple[Case, ...], str]:
    from toolcrib.evals.past import MAX_TRACES, from_traces

    taken = from_traces(crib.store.each_trace(since=since_when(since), limit=MAX_TRACES), n=n)
    told = f"of {counted(taken.n_selects, 'request')} since {since}"
    return taken.cases, f"{told}; after {taken.n_uncalled} nothing was called, so nothing is known of them"
