"""`toolcrib review`: what waits for a reviewer, the approval log, and keys to sign with.

    toolcrib review            in a terminal: one after the other, a key for each decision; else the queue
    toolcrib review TOOL_ID    these whole
    toolcrib review log        who decided what
    toolcrib review key NAME   a key to sign approvals with

Above: `main.py` registers the commands. Below: `review_session.py` for a terminal, `review_pages.py` for what is shown.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any

import typer

from toolcrib.cli.groups import GroupWithDefault
from toolcrib.cli.review_pages import (
    finding_lines,
    head,
    in_short,
    item_json,
    placed,
    server_json,
    server_page,
    whole,
    whole_beside,
)
from toolcrib.cli.review_session import ReviewSession, real_terminal
from toolcrib.cli.shared import AsJson, app, counted, folder, open_crib, print_json, print_table, reviewer_name, say
from toolcrib.crib import Crib
from toolcrib.errors import ConfigError, ToolNotFoundError
from toolcrib.review.chain import Chain, checked
from toolcrib.review.compared import in_a_line
from toolcrib.review.lint import Level
from toolcrib.review.signatures import is_signed, new_key, private_pem, public_text
from toolcrib.review.signers import Signing, server_subject
from toolcrib.review_queue import ReviewItem, ReviewQueue
from toolcrib.settings import Settings
from toolcrib.types import ReviewEvent

ByOption = Annotated[str, typer.Option("--by", metavar="NAME", help="Who decides (default: the system's user).")]
SignerOption = Annotated[
    Path | None,
    typer.Option("--signer", metavar="FILE", help="Sign with the key in this file, relative to the crib's folder."),
]
_SHOWN = 20
_MIN_HASH = 8
_SIGNER_NAME = re.compile(r"[A-Za-z0-9_.@-]{1,64}")


class _OrShow(GroupWithDefault):
    default = "show"


review_app = typer.Typer(
    help="What waits for a reviewer, findings first. Without a command it shows: `toolcrib review TOOL_ID` is "
    "`toolcrib review show TOOL_ID`.",
    epilog="Example: toolcrib review",
    rich_markup_mode=None,
)
app.add_typer(review_app, name="review", cls=_OrShow)


@review_app.command("show", epilog="Example: toolcrib review github.create_issue")
def review_show(
    tool_id: Annotated[
        list[str] | None, typer.Argument(metavar="[TOOL_ID]...", help="Show these whole; ids or globs.")
    ] = None,
    as_list: Annotated[bool, typer.Option("--list", help="Print the queue, also in a terminal.")] = False,
    by: ByOption = "",
    signer: SignerOption = None,
    as_json: AsJson = False,
) -> None:
    """What waits for a reviewer, hidden characters visible. In a terminal: one after the other, with a key for each
    decision. Exit 1 while something waits.
    """
    asking = not (tool_id or as_list or as_json) and sys.stdin.isatty() and sys.stdout.isatty()
    with open_crib(quiet=as_json) as crib:
        signs = signer_of(crib, signer)
        queue = crib.review_desk.queue(tool_id or ())
        if tool_id:
            _check_named(crib, queue, tool_id)
        if as_json:
            print_json(_queue_json(queue))
        elif tool_id:
            for item in queue.items:
                _print_item(item)
        elif asking and queue.waits:
            session = ReviewSession(
                desk=crib.review_desk, terminal=real_terminal(), reviewer=decider(by, signs), signer=signs
            )
            session.run(queue)
            queue = crib.review_desk.queue(probe=False)
        else:
            _print_queue(queue)
        for note in queue.notes:
            say(note)
        raise typer.Exit(1 if queue.waits else 0)


def signer_of(crib: Crib, key_file: Path | None) -> Signing | None:
    """Whoever signs, where a key file was given."""
    return crib.review_desk.signer(folder() / key_file.expanduser()) if key_file else None


def decider(by: str, signs: Signing | None) -> str:
    """Who decides: the signer, `--by`, or the system's user."""
    if by and signs and by != signs.name:
        raise ConfigError(f"--by {by!r} and a key of {signs.name!r}", hint="leave --by out: the signer decides")
    return signs.name if signs else reviewer_name(by)


def _check_named(crib: Crib, queue: ReviewQueue, wanted: Sequence[str]) -> None:
    """Each id or glob names something on the desk; one that does not is told why."""
    for one in (asked.partition("@sha256:")[0] for asked in wanted):
        if any(one == item.tool.tool_id or fnmatchcase(item.tool.tool_id, one) for item in queue.items):
            continue
        snapshot = crib.snapshot()
        served = any(fnmatchcase(tool.tool_id, one) for tool in snapshot.tools)
        held = [tool for tool in snapshot.withheld if fnmatchcase(tool.tool_id, one)]
        why = f"{held[0].code}: {held[0].reason}" if held else "see `toolcrib review`"
        raise ToolNotFoundError(
            f"nothing to review under {one!r}", hint="it is approved and in service" if served else why
        )


def _queue_json(queue: ReviewQueue) -> dict[str, Any]:
    return {
        "tools": [item_json(item) for item in queue.items],
        "servers": [server_json(server) for server in queue.servers],
        "notes": list(queue.notes),
    }


def _print_queue(queue: ReviewQueue) -> None:
    for server in queue.servers:
        typer.echo("\n".join([*server_page(server), ""]))
    items = queue.items
    if not items:
        say("nothing waits for review" if not queue.waits else "no definition waits for review")
        return
    by_code: dict[tuple[str, str], int] = {}
    for item in items:
        by_code[item.tool.server_id, item.tool.code] = by_code.get((item.tool.server_id, item.tool.code), 0) + 1
    print_table(("server", "why", "tools"), [(s, c, n) for (s, c), n in sorted(by_code.items())], title="withheld")
    rejected = [item for item in items if item.tool.code == "rejected"]
    quiet = [item for item in items if item.is_plain]
    told = [i for i in items if i.can_be_approved and i.tool.code != "rejected" and not i.is_plain]
    rows = [
        (in_a_line(i.tool.tool_id), i.tool.code, i.level.value if i.level else "", _findings(i), in_short(i))
        for i in told[:_SHOWN]
    ]
    if rows:
        columns = ("tool", "why", "level", "findings", "reason")
        print_table(columns, rows, title=f"look at these first ({len(told)} in all)", whole=0)
    _say_ids("without findings", [item for item in quiet if item.tool.code == "unreviewed"])
    _say_ids("lacking signatures (toolcrib approve --signer FILE)", [i for i in quiet if i.tool.code == "unsigned"])
    _say_ids("rejected before, and not waiting", rejected)
    for item in [item for item in items if not item.can_be_approved][:_SHOWN]:
        say(f"not fit to be served until its server changes it: {in_a_line(item.tool.tool_id)}: {in_short(item)}")
    say("a finding says where to look first; what the words ask for is yours to read")
    say("show whole: toolcrib review TOOL_ID (or 'time.*')    put into service: toolcrib approve TOOL_ID... (or --all)")


def _say_ids(what: str, items: Sequence[ReviewItem]) -> None:
    if items:
        more = f", and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
        say(f"{what}: {', '.join(in_a_line(item.tool.tool_id) for item in items[:_SHOWN])}{more}")


def _findings(item: ReviewItem) -> str:
    worth = [finding for finding in item.findings if finding.level is not Level.INFO]
    return "; ".join(f"{placed(f)}: {f.evidence}" for f in (worth or item.findings)[:3])


def _print_item(item: ReviewItem) -> None:
    now = item.tool.definition
    lines = whole(now) if item.was is None else whole_beside(item.was, now)
    typer.echo("\n".join([*head(item), *finding_lines(item.findings), *lines, ""]))


@review_app.command("log", epilog="Example: toolcrib review log --tool 'github.*'")
def review_log(
    tool: Annotated[
        str, typer.Option("--tool", metavar="ID", help="Only what is about this tool or server; an id or a glob.")
    ] = "",
    verify: Annotated[bool, typer.Option("--verify", help="Check signatures, too, and print no events.")] = False,
    holds: Annotated[
        str, typer.Option("--holds", metavar="HASH", help="A hash that was written down before must be in the log.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Who decided what, newest last, and whether the log is as it was written. Exit 1 if it is not."""
    if holds and len(holds) < _MIN_HASH:
        raise ConfigError(f"--holds needs at least {_MIN_HASH} characters of a hash", hint="as the log prints it")
    with open_crib(quiet=as_json) as crib:
        events, settings = crib.store.reviews(), crib.settings
    chain = checked(events, holds=holds)
    signed = _signed(events, settings) if verify else {}
    unsound = {
        number: f"this is no signature of {events[number - 1].signer}" for number, ok in signed.items() if not ok
    }
    wanted = [event for event in events if not tool or fnmatchcase(event.tool_id, tool)]
    if as_json:
        told = {"chain": {**asdict(chain), "is_sound": chain.is_sound}, "bad_signatures": unsound}
        told |= {"n_signatures_checked": len(signed)} if verify else {}
        print_json({**told, "events": [] if verify else [asdict(event) for event in wanted]})
    else:
        if not verify:
            _print_events(wanted)
        _tell_chain(chain, unsound)
        if verify:
            n_gone = sum(bool(event.signer) for event in events) - len(signed)
            gone = f"; {n_gone} of signers who are not configured any more" if n_gone else ""
            say(f"{counted(len(signed), 'signature')} checked, {len(unsound)} bad{gone}")
    raise typer.Exit(0 if chain.is_sound and not unsound else 1)


def _print_events(events: Sequence[ReviewEvent]) -> None:
    rows = [
        (
            in_a_line(event.tool_id),
            event.at[:19],
            event.action,
            in_a_line(event.reviewer),
            event.digest[:19],
            " ".join(event.findings),
            event.signer,
            in_a_line(event.reason),
        )
        for event in events
    ]
    columns = ("tool or server", "at (UTC)", "decision", "by", "digest", "findings shown", "signed by", "reason")
    print_table(columns, rows, whole=0)


def _tell_chain(chain: Chain, unsound: dict[int, str]) -> None:
    before = f", {chain.n_unsealed} of them from before there was a chain" if chain.n_unsealed else ""
    say(f"{counted(chain.n_events, 'event')}{before}")
    for number, why in unsound.items():
        say(f"event {number}: {why}")
    if not chain.is_sound:
        say(f"THE LOG IS NOT WHAT WAS WRITTEN, from event {chain.broken_at} on: {chain.why}")
    elif chain.head:
        say(f"the chain is sound; its head is {chain.head}")
        say("a log cut off at its end looks sound: keep the head elsewhere, and ask for it with --holds")


def _signed(events: Sequence[ReviewEvent], settings: Settings) -> dict[int, bool]:
    """Number of each signed event, from 1 -> whether its signature is good. Signers who are gone are not judged."""
    keys = {signer.name: signer.public_key for signer in settings.review.signers}
    found: dict[int, bool] = {}
    for number, event in enumerate(events, start=1):
        if key := keys.get(event.signer):
            subject = server_subject(event.tool_id) if event.action == "pin" else event.tool_id
            found[number] = is_signed(key, event.signature, subject=subject, digest=event.digest)
    return found


@review_app.command("key", epilog="Example: toolcrib review key ann --out ~/.config/toolcrib/ann.pem")
def review_key(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Who signs with it.")],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Where to put it (default: NAME.pem, in this folder).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a key to sign approvals with, readable by you alone, and print its row for toolcrib.toml."""
    if not _SIGNER_NAME.fullmatch(name):
        raise ConfigError(f"a signer cannot be named {name!r}", hint="use 1 to 64 of A-Z, a-z, 0-9, _, ., @ and -")
    path = folder() / (out or Path(f"{name}.pem")).expanduser()
    key = new_key()
    _write_once(path, private_pem(key))
    public = public_text(key)
    if as_json:
        print_json({"name": name, "public_key": public, "file": str(path)})
        return
    typer.echo(f'[[review.signers]]\nname = "{name}"\npublic_key = "{public}"')
    say(f"the key is in {path}: keep it for yourself, and out of version control; the row above goes to toolcrib.toml")


def _write_once(path: Path, text: bytes) -> None:
    """A new file that nobody else can read. Raises ConfigError where there is one already."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(text)
    except FileExistsError:
        raise ConfigError("there is a file already, and keys are never written over", where=str(path)) from None
    except OSError as fault:
        raise ConfigError(f"the key cannot be written: {fault.strerror}", where=str(path)) from fault
