"""What every command shares: the application, the crib of the chosen folder, the caller, and how things are printed."""

from __future__ import annotations

import getpass
import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from toolcrib import __version__
from toolcrib.crib import Crib
from toolcrib.curation import WAITING
from toolcrib.errors import ConfigError, ToolcribError, ToolNotFoundError, TraceError
from toolcrib.identity.callers import caller_from_file
from toolcrib.review.text import show
from toolcrib.types import LOCAL, Caller, LocalOperator

app = typer.Typer(
    name="toolcrib",
    help="The tool crib for AI agents: finds the few tools that help and that a caller may use.",
    epilog="Start with: toolcrib init, toolcrib refresh, toolcrib review, toolcrib approve --all, "
    'toolcrib select "what is wanted". Exit codes: 0 done, 1 findings or refused, 2 usage or configuration, '
    "3 could not run. With --json, too, what went wrong stands on standard error, and standard output may be empty.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

_err = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)
_directory: list[Path] = [Path()]
_PIPED_WIDTH = 160

AsFile = Annotated[
    Path | None,
    typer.Option("--as", metavar="FILE", help="Act as the caller in this JSON file, relative to the crib's folder."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object for programs.")]


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"toolcrib {__version__}")
        raise typer.Exit


@app.callback()
def _chosen(
    _asked: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    directory: Annotated[
        Path, typer.Option("-C", "--directory", metavar="DIR", help="The crib's folder (default: this one).")
    ] = Path(),
) -> None:
    work_in(directory)


def folder() -> Path:
    """The crib's folder."""
    return _directory[0]


def work_in(chosen: Path) -> None:
    """Make this the crib's folder for the commands that follow."""
    _directory[0] = chosen


def exit_code_of(fault: ToolcribError) -> int:
    """What a command that ended with this fault tells the shell."""
    return 2 if isinstance(fault, ConfigError | ToolNotFoundError | TraceError) else 3


def open_crib(*, quiet: bool = False) -> Crib:
    """The crib in the chosen folder. What it logs stands on standard error, too, once where it is also told."""
    logging.getLogger("toolcrib").addHandler(_logged)
    return Crib.open(folder(), on_progress=None if quiet else _told)


def _told(text: str) -> None:
    if text != _logged.last:
        say(f"toolcrib: {text}")
    _logged.last = ""


class _Logged(logging.Handler):
    """The log on standard error. A fault is logged for whoever keeps a log, and told to whoever watches: here both."""

    last = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.last = self.format(record)
        say(f"toolcrib: {self.last}")


_logged = _Logged(level=logging.WARNING)


def caller_of(crib: Crib, file: Path | None) -> Caller | LocalOperator:
    """The caller from `--as`, or the local operator, whoever that is when the request is answered."""
    return LOCAL if file is None else caller_now(crib, file)


def caller_now(crib: Crib, file: Path | None) -> Caller:
    """The caller from `--as`, or the local operator as configured now."""
    if file is None:
        return crib.local_caller
    return caller_from_file(
        folder() / file, environment=crib.settings.crib.environment, region=crib.settings.crib.region
    )


def reviewer_name(given: str) -> str:
    """Who decides: `--by`, or the operating system's user."""
    if given:
        return given
    try:
        return getpass.getuser()
    except (KeyError, OSError) as fault:  # a user without a name, as in containers
        raise ConfigError("the system has no name for this user", hint="say who decides: --by NAME") from fault


def counted(number: int, thing: str) -> str:
    """`1 server`, `2 servers`."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def say(text: str) -> None:
    """A line for the person, on standard error."""
    _err.print(escape(show(text)))


def print_json(value: Any) -> None:
    """One JSON object on standard output; ASCII, so that any terminal and any text inside survive."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=True, default=str))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, title: str = "", whole: int = -1) -> None:
    """A table on standard output; hidden characters in any cell are shown.

    Args:
        whole: the column whose cells are never broken, since people copy them: ids.
    """
    table = Table(title=title or None, title_justify="left", highlight=False)
    for number, column in enumerate(columns):
        table.add_column(column, overflow="fold", no_wrap=number == whole)
    for row in rows:
        table.add_row(*(escape(show(str(cell))) for cell in row))
    console = Console(highlight=False, emoji=False)
    if not console.is_terminal:
        console = Console(highlight=False, emoji=False, width=_PIPED_WIDTH)
    console.print(table)


def tell_what_waits(crib: Crib) -> None:
    """Why there may be less than the operator expects: no servers, nothing taken in, definitions that wait."""
    if not crib.settings.servers:
        say(f"no servers are configured: add a [[servers]] block to {crib.settings.path}")
        return
    waiting = sum(tool.code in WAITING for tool in crib.pipeline().snapshot.withheld)
    if waiting:
        say(f"{counted(waiting, 'definition')} {'waits' if waiting == 1 else 'wait'} for review: toolcrib review")
