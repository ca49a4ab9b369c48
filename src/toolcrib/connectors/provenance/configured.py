"""What the configuration alone says of a server, beside what was found when it last ran: nothing is looked at.

Above: `doctoring.py`. Below: `launchers.py` reads command lines.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from toolcrib.connectors.provenance.arguments import hidden, shown
from toolcrib.connectors.provenance.launchers import parse
from toolcrib.connectors.provenance.python_packages import plain
from toolcrib.connectors.provenance.remote import origin
from toolcrib.types import Provenance, ProvenanceKind, ServerSpec, Transport


def reconfigured(spec: ServerSpec, found: Provenance, *, root: Path) -> tuple[str, ...]:
    """The fields under which the configuration says something else now than what was `found`.

    Args:
        root: the crib's directory.
    """
    return tuple(_differing(spec, found, Path(os.path.normpath(root.absolute()))))


def _differing(spec: ServerSpec, found: Provenance, root: Path) -> Iterator[str]:
    if spec.transport is Transport.HTTP:
        if found.origin != origin(spec.url, mask=hidden):
            yield "address"
        return
    if spec.transport is not Transport.STDIO:
        return
    launch = parse(spec.command)
    if found.kind is ProvenanceKind.REMOTE or found.launcher != launch.launcher:
        yield "launcher"
    elif launch.fetches and not launch.before and _is_another(launch.package, found.package):
        yield "package"
    if found.arguments != shown(launch.arguments, mask=str, root=root):
        yield "arguments"
    if found.env != tuple(sorted(spec.env)):
        yield "env"


def _is_another(asked: str, found: str) -> bool:
    return bool(asked and found) and plain(asked) != plain(found)


def is_pinned(spec: ServerSpec) -> bool | None:
    """Whether the command line names one version of what it starts; None where no command line does."""
    return parse(spec.command).pinned if spec.transport is Transport.STDIO else None
