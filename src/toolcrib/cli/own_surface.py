"""This command line as a surface that proofs ask: the commands that act for a caller, run in this process.

Below: `verify/asking.py` says what a surface is; it stands here since only this floor knows the commands.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from click.exceptions import ClickException

from toolcrib.cli.shared import app, exit_code_of, folder, work_in
from toolcrib.errors import ToolcribError
from toolcrib.verify.asking import Request, Seat, request
from toolcrib.verify.questions import NONSENSE, Questions

_AS = "FILE"
"""Stands for the caller's file until it is known."""


class CommandLineSurface:
    """`tools`, `tokens`, `select` and `call` with `--json` and `--as`: what is printed, and the exit code."""

    name = "cli"

    def requests(self, questions: Questions) -> Sequence[Request]:
        task = questions.tasks[min(len(NONSENSE), len(questions.tasks) - 1)]
        lines = [
            ["select", "--json", "--limit", "20", "--as", _AS, "--", task],
            ["tokens", "--json", "--as", _AS],
            ["tools", "--json", "--as", _AS],
            ["call", "--json", "--as", _AS, "--", questions.names[len(questions.names) // 2]],
        ]
        lines = lines[:2] if questions.brief else lines
        return [request(self.name, f"toolcrib {' '.join(line)}", line) for line in lines]

    def answers(self, seat: Seat, requests: Sequence[Request]) -> list[bytes]:
        return [_run(seat.folder, [seat.profile if w == _AS else w for w in json.loads(r.body)]) for r in requests]


def _run(place: Path, line: Sequence[str]) -> bytes:
    """Exit code and standard output of one command in that folder; standard error is the operator's."""
    before, out = folder(), io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    try:
        with redirect_stdout(out), redirect_stderr(io.StringIO()):
            code = app(args=["-C", str(place), *line], prog_name="toolcrib", standalone_mode=False)
    except ToolcribError as fault:
        code = exit_code_of(fault)
    except ClickException as fault:
        code = fault.exit_code
    finally:
        work_in(before)
    printed = out.buffer.getvalue() if isinstance(out.buffer, io.BytesIO) else b""
    return f"exit {code or 0}\n".encode() + printed
