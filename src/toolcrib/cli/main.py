"""The `toolcrib` command: global options, and every fault turned into words and an exit code, once.

Exit codes: 0 done (an empty selection is done), 1 findings or refused, 2 usage or configuration, 3 could not run.
"""

from __future__ import annotations

import sys

from toolcrib.cli import (
    approvals,
    ask,
    calibrate,
    doctor,
    eval_model,
    evals,
    keep,
    key,
    learn,
    lint,
    lock,
    look,
    policy,
    refresh,
    replay,
    review,
    revoke,
    serve,
    setup,
    shadow,
    verify,
)
from toolcrib.cli.shared import app, exit_code_of, say
from toolcrib.errors import ToolcribError

_COMMANDS = (
    setup,
    refresh,
    review,
    keep,
    lock,
    ask,
    serve,
    doctor,
    look,
    replay,
    approvals,
    key,
    revoke,
    policy,
    verify,
    evals,
    eval_model,
    shadow,
    learn,
    lint,
    calibrate,
)
"""Importing them registers their commands."""


def main() -> None:
    """Run one command and exit."""
    try:
        app(args=directory_first(sys.argv[1:]), prog_name="toolcrib")
    except ToolcribError as fault:
        say(f"toolcrib: {fault}")
        sys.exit(exit_code_of(fault))
    except BrokenPipeError:
        sys.exit(0)


def directory_first(arguments: list[str]) -> list[str]:
    """`-C DIR` is accepted anywhere before `--`, also as `-CDIR` and `--directory=DIR`; the parser wants it first."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    head, tail = arguments[:end], arguments[end:]
    for place, word in enumerate(head):
        if word in ("-C", "--directory") and place + 1 < len(head):
            return [word, head[place + 1], *head[:place], *head[place + 2 :], *tail]
        if word.startswith("--directory=") or (word.startswith("-C") and len(word) > len("-C")):
            return [word, *head[:place], *head[place + 1 :], *tail]
    return arguments
