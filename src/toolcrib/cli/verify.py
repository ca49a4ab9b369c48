"""Commands that prove promises on the operator's own catalog: verify isolation, verify parity.

Both work on a scratch copy and contact no server; see `verify/scratch.py`.
"""

from __future__ import annotations

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
    the same questions over library, MCP, HTTP and command line before and after. Contacts no server.
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
    held = (
        f"Nothing that these callers see depends on what they may not discover: {', '.join(report.callers)} "
        f"({len(report.callers)} of {report.n_callers_in_all}).\n"
        f"{report.n_comparisons} answers, {report.n_bytes} bytes, were the same in {report.n_worlds} changed catalogs "
        f"({report.n_edits} changes to hidden tools; {report.n_unusable} more would have shown something).\n"
        f"Surfaces: {', '.join(report.surfaces)}. Changes: {', '.join(report.variants)}."
    )
    _finish(report.to_dict(), report.counterexample, held=held, as_json=as_json)


@verify_app.command(epilog="Example: toolcrib verify parity --sample 200")
def parity(
    profiles: ProfilesDir = None,
    callers: MaxCallers = 8,
    sample: Annotated[
        int, typer.Option("--sample", metavar="N", min=0, help="Of each caller's tools at most so many; 0: all.")
    ] = 0,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Try whether listed, found and callable are one set for every caller. Exit 1: a tool is one and not another.

    Each listed tool must be found by its own name and description and be callable up to arguments and approval; each
    other one must be like a tool that does not exist. Contacts no server.
    """
    from toolcrib.verify.parity import verify_parity

    settings = load_settings(folder())
    report = verify_parity(
        settings,
        profiles=_profiles(settings, profiles),
        max_callers=callers,
        sample=sample,
        seed=seed,
        on_progress=say,
    )
    held = (
        f"Listed, found and callable are one set for {', '.join(report.callers)} "
        f"({len(report.callers)} of {report.n_callers_in_all}): {report.n_listed} listed and {report.n_hidden} hidden "
        f"tools tried with {report.n_searches} searches and {report.n_calls} calls."
    )
    _finish(report.to_dict(), report.counterexample, held=held, as_json=as_json)


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


def _finish(report: dict[str, object], found: Counterexample | None, *, held: str, as_json: bool) -> None:
    if as_json:
        print_json(report)
    else:
        typer.echo(show("\n".join(["The smallest counterexample found:", *found.lines()]) if found else held))
    raise typer.Exit(1 if found else 0)
