"""What ran behind a server, or answered for it: a definition can stay the same while what it starts changes.

Floor 1. `connectors/provenance/` finds it out, the lock pins it, a reviewer approves it.

Invariants
1. It is the same on every machine that runs the same thing: no paths, no user names, no addresses of this machine.
2. It holds no secret: of the environment the names alone; arguments that hold one are masked.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum


class ProvenanceKind(StrEnum):
    """What was pinned. `unknown`: a program was started and could not be told."""

    NPM = "npm"
    PYTHON = "python"
    IMAGE = "image"
    EXECUTABLE = "executable"
    REMOTE = "remote"
    FILE = "file"
    CODE = "code"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """What a server is.

    Args:
        launcher: the program that fetched or started it (`npx`, `uvx`, `python`, `node`, `docker`), "" for itself.
        registry: where its package comes from, as far as that is known ("npm", "pypi", a host name).
        integrity: hash of the package ("sha512-..." as npm writes it, "sha256:<hex>" over a Python package's files), of
            the file or program, or the image's digest.
        publisher: who attested the package, where an attestation lies beside it.
        arguments: what it was started with, secrets masked. env: names of configured environment variables.
        origin: scheme, host, port and path of a remote server. tls_key: "sha256:<hex>" of its public key.
        pinned: whether starting it again cannot fetch another version. advice: the pinned line to use instead.
        note: why something is not known; advice and note are for people, and are not part of what is compared.
    """

    kind: ProvenanceKind = ProvenanceKind.UNKNOWN
    launcher: str = ""
    registry: str = ""
    package: str = ""
    version: str = ""
    integrity: str = ""
    publisher: str = ""
    arguments: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    origin: str = ""
    tls_key: str = ""
    pinned: bool = True
    advice: str = ""
    note: str = ""

    @property
    def is_unpinned_start(self) -> bool:
        """Whether the next start may fetch another version. Nobody starts a remote server."""
        return not self.pinned and self.kind is not ProvenanceKind.REMOTE

    @property
    def compared(self) -> dict[str, object]:
        """What the pin covers, by field: all but what is said to people. Empty fields are left out."""
        said = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in _SAID}
        return {name: list(v) if isinstance(v, tuple) else str(v) for name, v in said.items() if v}


_SAID = ("pinned", "advice", "note")
