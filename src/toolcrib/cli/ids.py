"""Ids on the command line: whole, or a beginning that is long enough to be nobody else's by accident."""

from __future__ import annotations

import typer

from toolcrib.approvals import MIN_ID_CHARS


def long_enough(text: str) -> str:
    """The id as it was given.

    Raises:
        typer.BadParameter: it is too short to be looked for.
    """
    if len(text) < MIN_ID_CHARS:
        raise typer.BadParameter(f"give at least {MIN_ID_CHARS} characters of the id, not {text!r}")
    return text
