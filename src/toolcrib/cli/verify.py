"""Commands that prove promises on the operator's own catalog: verify isolation, verify parity.

Both work on a scratch copy and contact no server; see `verify/scratch.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from toolcrib.cli.shared import AsJson, app, folder, print_json, say
from toolcrib.review.text import show
from toolcrib.settings import Settings, load_settings
from toolcrib.verify.asking import Surface
from toolcrib.verify.differences import Counterexample
from toolcrib.verify.groups import profiles_in

verify_app = typer.Typer(
    help="Prove on this catalog, for these callers, what Toolcrib promises.",
    epilog="Example: toolcrib verify isolation",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(verify_app, name="verify")

ProfilesDir = Annotated[
    Path | None,
    typer.Option("--profiles", metavar="DIR", help="Caller files to try (default: [crib] profiles in toolcrib.toml)."),
]
MaxCallers = Annotated[
    int,
    typer.Option("--callers", metavar="N", min=0, help="Try so many kinds of callers, drawn by --seed; 0: all."),
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="The same seed draws the same sample.")]


@verify_app.command(epilog="Example: toolcrib verify isolation --profiles callers --thorough")
def isolation(
    profiles: ProfilesDir = None,
    callers: MaxCallers = 8,
    thorough: Annotated[bool, typer.Option("--thorough", help="More questions and changes; takes minutes.")] = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Change what a caller may not discover, and compare every byte that it sees. Exit 1: something differs.

    Adds, changes, removes, quarantines, approves and re-describes hidden tools in a scratch copy of this crib, and asks
    the same questions over library, MCP, HTTP and command line before and after. Exit 2 where policy hides nothing
    from any of these callers, so that nothing could be tried. Contacts no server.
    """
    from toolcrib.verify.isolation import verify_isolation

    settings = load_settings(folder())
    report = verify_isolation(
        settings,
        profiles=_profiles(settings, profiles),
        surfaces=every_surface(),
        max_callers=callers,
        thorough=thorough,
        seed=seed,
        on_progress=say,
    )
    tried = [name for name in report.callers if name not in report.untried]
    held = (
        f"Nothing that these callers see depends on what they may not discover: {', '.join(tried)} "
        f"({len(tried)} of {report.n_callers_in_all}).\n"
        f"{report.n_comparisons} answers, {report.n_bytes} bytes, were the same in {report.n_worlds} changed catalogs "
        f"({report.n_edits} changes to hidden tools; {report.n_unusable} left out: those callers may see them).\n"
        f"Surfaces: {', '.join(report.surfaces)}. Changes: {', '.join(report.variants)}."
    )
    _finish(report.to_dict(), report.counterexample, held=held, more=_nothing_hidden(report.untried), as_json=as_json)


@verify_app.command(epilog="Example: toolcrib verify parity --sample 200")
def parity(
    profiles: ProfilesDir = None,
    callers: MaxCallers = 8,
    sample: Annotated[
        int, typer.Option("--sample", metavar="N", min=0, help="Of each caller's tools at most so many; 0: all.")
    ] = 0,
    seed: Seed = 0,
    allow_by_id: Annotated[
        bool, typer.Option("--allow-by-id", help="Exit 0 although some tools are found by their own ids only.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Try whether listed, found and callable are one set for every caller. Exit 1: a tool is one and not another.

    Each listed tool must be found by its own name and description and be callable up to arguments and approval; each
    other one must be like a tool that does not exist. A tool that is found by its id only, such as one of more than 50
    twins with the same words, counts as not found, unless --allow-by-id is given. Contacts no server.
    """
    from toolcrib.verify.parity import SHOWN, verify_parity

    settings = load_settings(folder())
    report = verify_parity(
        settings,
        profiles=_profiles(settings, profiles),
        max_callers=callers,
        sample=sample,
        seed=seed,
        allow_by_id=allow_by_id,
        on_progress=say,
    )
    held = (
        f"Listed, found and callable are one set for {', '.join(report.callers)} "
        f"({len(report.callers)} of {report.n_callers_in_all}): {report.n_listed} listed and {report.n_hidden} hidden "
        f"tools tried with {report.n_searches} searches and {report.n_calls} calls."
    )
    by_id = _by_id_only(report.found_by_id_only, shown=SHOWN)
    _finish(report.to_dict(), report.counterexample, held=held, more=by_id, as_json=as_json)


def every_surface() -> list[Surface]:
    """All ways in which a caller can see a crib."""
    # The MCP package costs most of a second to import, which every other command would pay.
    from toolcrib.cli.own_surface import CommandLineSurface
    from toolcrib.server.surface import SurfaceKind
    from toolcrib.verify.http_wire import HttpSurface
    from toolcrib.verify.library import LibrarySurface
    from toolcrib.verify.mcp_wire import McpSurface
    from toolcrib.verify.messages import LEGACY, MODERN

    return [
        LibrarySurface(),
        McpSurface(MODERN),
        McpSurface(LEGACY),
        McpSurface(MODERN, kind=SurfaceKind.ALL, listing_only=True),
        HttpSurface(MODERN),
        HttpSurface(LEGACY),
        CommandLineSurface(),
    ]


def _profiles(settings: Settings, given: Path | None) -> dict[str, Path]:
    return profiles_in(folder() / given if given is not None else settings.profiles)


def _nothing_hidden(names: Sequence[str]) -> str:
    return f"Not tried, since policy would hide no tool from them: {', '.join(names)}." if names else ""


def _by_id_only(tool_ids: Sequence[str], *, shown: int) -> str:
    """The line on tools that their own words do not find; "" without any."""
    if not tool_ids:
        return ""
    more = f" and {len(tool_ids) - shown} more" if len(tool_ids) > shown else ""
    return f"Found by their own ids only, and by none of their words: {', '.join(tool_ids[:shown])}{more}."


def _finish(
    report: dict[str, object], found: Counterexample | None, *, held: str, as_json: bool, more: str = ""
) -> None:
    if as_json:
        print_json(report)
    else:
        lines = ["The smallest counterexample found:", *found.lines()] if found else [held]
        typer.echo(show("\n".join([*lines, *filter(None, [more])])))
    raise typer.Exit(1 if found else 0)
