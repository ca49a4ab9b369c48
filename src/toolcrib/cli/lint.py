"""`toolcrib lint`: what a reviewer should look at first, in the crib's catalog, in dumps, or on a live server.

Above: `main.py` registers the commands. Below: `review/lint.py` finds, `review/suppress.py` hides what was decided,
`review/sarif.py` and this file print.

Exit codes: 0 nothing at or above --fail-on, 1 something, 2 usage, 3 an input could not be read.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from toolcrib import __version__
from toolcrib.cli.groups import GroupWithDefault
from toolcrib.cli.shared import AsJson, app, counted, folder, open_crib, print_json, print_table, say
from toolcrib.connectors.listing import ListingFailure, list_all
from toolcrib.errors import ConfigError, StoreError
from toolcrib.review.dumps import listed, read_dumps
from toolcrib.review.findings import Finding, Level, in_order, worst
from toolcrib.review.lint import ALONE, lint, lint_instructions, surroundings
from toolcrib.review.rules import RULES
from toolcrib.review.sarif import sarif
from toolcrib.review.scoring import judged, read_rows, scores
from toolcrib.review.suppress import DEFAULT_FILE, Suppressed, Suppression, read_suppressions, suppressed
from toolcrib.review.text import show
from toolcrib.sessions import Sessions
from toolcrib.types import ListedTool

_SHOWN = 200


class _OrCheck(GroupWithDefault):
    default = "check"


lint_app = typer.Typer(
    help="What to look at first in tool definitions, before a model reads them. "
    "Without a command it checks: `toolcrib lint PATH` is `toolcrib lint check PATH`.",
    epilog="Example: toolcrib lint tools.json --fail-on block",
    rich_markup_mode=None,
)
app.add_typer(lint_app, name="lint", cls=_OrCheck)


class Format(StrEnum):
    """How findings are printed."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """What is to be read, and what stands `around` it.

    Args:
        instructions: server id and what it tells clients; two files of one name are two lists of one server.
        files: tool id or server id -> the file that it came from, if one.
    """

    entries: tuple[ListedTool, ...]
    instructions: Sequence[tuple[str, str]]
    around: tuple[ListedTool, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)


@lint_app.command("check", epilog="Example: toolcrib lint dumps/ --format sarif > lint.sarif")
def lint_check(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[PATH]...", help="Dumps of tools/list, or folders of them; none: the crib's catalog."),
    ] = None,
    server: Annotated[
        list[str] | None, typer.Option("--server", metavar="ID", help="List this configured server now. Repeatable.")
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="How findings are printed.")] = Format.TEXT,
    as_json: AsJson = False,
    fail_on: Annotated[Level, typer.Option("--fail-on", help="Exit 1 from this level on.")] = Level.REVIEW,
    suppress: Annotated[
        Path | None,
        typer.Option("--suppress", metavar="FILE", help=f"Decisions to let findings stand (default: {DEFAULT_FILE})."),
    ] = None,
    score: Annotated[
        Path | None,
        typer.Option("--score", metavar="FILE", help="Labelled definitions, JSON lines: what lint is worth on them."),
    ] = None,
) -> None:
    """Look at every string of every definition. Exit 1 where something is at or above --fail-on."""
    if score is not None:
        if paths or server:
            raise ConfigError(
                "--score reads its own file: name neither paths nor --server", hint="toolcrib lint --help"
            )
        _score(folder() / score, as_json=as_json or form is Format.JSON)
        return
    if paths and server:
        raise ConfigError("name paths or --server, not both", hint="toolcrib lint --help")
    given = _of_paths(paths) if paths else _of_servers(server) if server else _of_crib()
    found = suppressed(_found(given), _decisions(suppress), today=datetime.now(UTC).date())
    form = Format.JSON if as_json else form
    if form is Format.JSON:
        print_json(_body(found, given))
    elif form is Format.SARIF:
        print_json(sarif(found.kept, version=__version__, files=given.files))
    else:
        _print(found)
    _tell(found, given)
    gravest = worst(finding for findings in found.kept.values() for finding in findings)
    raise typer.Exit(1 if gravest is not None and gravest.order >= fail_on.order else 0)


def _score(path: Path, *, as_json: bool) -> None:
    """Print detection and false alarms over labelled definitions. Exit 0, whatever they are."""
    told = scores(judged(read_rows(path)))
    if as_json:
        print_json(told)
        return
    parts = [
        ("all", told),
        *told["by_class"].items(),
        *((f"from {name}", at) for name, at in told["by_source"].items()),
    ]
    rows = [(name, *(_told(at[level]) for level in ("review", "block"))) for name, at in parts]
    print_table(
        ("", "review: found", "false alarms", "block: found", "false alarms"),
        [(name, *review, *block) for name, review, block in rows],
        title=f"{counted(told['n_poisoned'], 'poisoned definition')}, {told['n_published']} published",
    )


def _told(at: Mapping[str, Any]) -> tuple[str, str]:
    def share(value: float | None, part: int, whole: int) -> str:
        return "" if value is None else f"{value:.1%} ({part} of {whole})"

    return (
        share(at["detection"], at["n_found"], at["n_poisoned"]),
        share(at["false_alarms"], at["n_alarms"], at["n_published"]),
    )


def _of_paths(paths: Sequence[Path]) -> Input:
    dumps = read_dumps([folder() / path for path in paths])
    return Input(
        entries=tuple(tool for dump in dumps for tool in dump.tools),
        instructions=[(dump.server_id, dump.instructions) for dump in dumps],
        files={name: dump.file for dump in dumps for name in (dump.server_id, *map(_tool_id, dump.tools))},
    )


def _of_servers(server_ids: Sequence[str]) -> Input:
    """What these servers list now, among what the catalog holds of the others. Nothing is published."""
    with open_crib(quiet=True) as crib:
        settings, published = crib.settings, crib.store.current()
    configured = [spec.server_id for spec in settings.servers]
    for server_id in server_ids:
        if server_id not in configured:
            raise ConfigError(f"no server {server_id!r}", where=str(settings.path), hint=f"there are {configured}")
    asked = list(dict.fromkeys(server_ids))
    listings = asyncio.run(list_all(asked, Sessions(lambda: settings, given={}).for_listing))
    whole = [listing for listing in listings if not isinstance(listing, ListingFailure)]
    for listing in listings:
        if isinstance(listing, ListingFailure):
            raise listing.error
    return Input(
        entries=tuple(tool for listing in whole for tool in listed(listing.server_id, listing.tools)),
        instructions=[(listing.server_id, listing.instructions) for listing in whole],
        around=tuple(tool for tool in published.tools if tool.server_id not in asked) if published else (),
    )


def _of_crib() -> Input:
    """Every definition that the last refresh published, in service or not."""
    with open_crib(quiet=True) as crib:
        published = crib.store.current()
    if published is None:
        raise StoreError("there is no catalog yet", hint="toolcrib refresh, or name a file: toolcrib lint tools.json")
    return Input(entries=published.tools, instructions=[(s.server_id, s.instructions) for s in published.servers])


def _found(given: Input) -> dict[str, tuple[Finding, ...]]:
    """Findings by tool id; a server's instructions stand under its id."""
    places = surroundings([*given.entries, *given.around])
    found: dict[str, tuple[Finding, ...]] = {}
    for entry in given.entries:
        tool_id = _tool_id(entry)
        mine = lint(entry.definition, around=places[entry.server_id])
        found[tool_id] = in_order([*found.get(tool_id, ()), *mine])  # a server may list a name twice
    for server_id, text in given.instructions:
        if told := lint_instructions(server_id, text, around=places.get(server_id, ALONE)):
            found[server_id] = in_order([*found.get(server_id, ()), *told])  # a tool's id may read like a server's
    return found


def _tool_id(entry: ListedTool) -> str:
    return f"{entry.server_id}.{entry.name}"


def _decisions(file: Path | None) -> tuple[Suppression, ...]:
    """The decisions to let findings stand: of the named file, or of the default one if it is there."""
    if file is not None:
        return read_suppressions(folder() / file)
    default = folder() / DEFAULT_FILE
    return read_suppressions(default) if default.is_file() else ()


def _body(found: Suppressed, given: Input) -> dict[str, Any]:
    rows = [{"tool_id": tool_id, **asdict(f)} for tool_id, findings in found.kept.items() for f in findings]
    return {
        "n_tools": len(given.entries),
        "findings": rows,
        "by_level": _by_level(found),
        "n_suppressed": found.n_hidden,
        "expired_suppressions": [asdict(one) for one in found.expired],
        "unused_suppressions": [asdict(one) for one in found.unused],
    }


def _by_level(found: Suppressed) -> dict[str, int]:
    levels = Counter(finding.level for findings in found.kept.values() for finding in findings)
    return {level.value: levels[level] for level in reversed(Level)}


def _print(found: Suppressed) -> None:
    """The gravest first; what is only good to know is counted, and shown where there is nothing else."""
    rows = [(tool_id, finding) for tool_id, findings in found.kept.items() for finding in findings]
    rows.sort(key=lambda row: -row[1].level.order)
    grave = [row for row in rows if row[1].level is not Level.INFO]
    shown = (grave or rows)[:_SHOWN]
    if shown:
        print_table(("level", "tool", "rule", "finding"), [_row(*row) for row in shown], whole=1)
    if len(rows) > len(shown):
        say(f"and {counted(len(rows) - len(shown), 'finding')} not shown: --json has all")


def _row(tool_id: str, finding: Finding) -> tuple[str, str, str, str]:
    place = f"{finding.pointer}: " if finding.pointer else ""
    return finding.level.value, tool_id, finding.rule, f"{place}{finding.why}: {finding.evidence}"


def _tell(found: Suppressed, given: Input) -> None:
    levels = ", ".join(f"{number} {level}" for level, number in _by_level(found).items())
    say(f"{counted(len(given.entries), 'definition')} read; findings: {levels}")
    if found.n_hidden:
        say(f"{counted(found.n_hidden, 'finding')} suppressed")
    for one in found.expired:
        say(f"expired on {one.expires}: the suppression of {one.rule} for {one.tool} ({one.reason})")
    for one in found.unused:
        say(f"hides nothing: the suppression of {one.rule} for {one.tool} ({one.reason})")


@lint_app.command("rules", epilog="Example: toolcrib lint rules")
def lint_rules(as_json: AsJson = False) -> None:
    """Every rule: its stable id, its family, and the gravest level it gives."""
    if as_json:
        print_json({"rules": [asdict(rule) for rule in RULES.values()]})
        return
    rows = [(rule.id, rule.family, rule.level.value, rule.title) for rule in RULES.values()]
    print_table(("rule", "family", "level", "what it found"), rows, whole=0)


@lint_app.command("explain", epilog="Example: toolcrib lint explain secrecy")
def lint_explain(
    rule: Annotated[str, typer.Argument(metavar="RULE", help="An id, as `toolcrib lint rules` lists it.")],
    as_json: AsJson = False,
) -> None:
    """What a rule found, why that matters, an example, and how a finding is resolved."""
    if rule not in RULES:
        near = get_close_matches(rule, RULES, n=1)
        hint = f"did you mean {near[0]}?" if near else "see `toolcrib lint rules`"
        raise ConfigError(f"no rule {rule!r}", hint=hint)
    told = RULES[rule]
    if as_json:
        print_json(asdict(told))
        return
    typer.echo(f"{told.id} ({told.family}; at most {told.level})")
    for head, text in (("found", told.title), ("why", told.why), ("example", told.example), ("resolve", told.resolve)):
        typer.echo(show(f"  {head + ':':9} {text}"))
