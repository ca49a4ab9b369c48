"""What a command line starts, as a value; and how packages and images are named on one.

Above: `launchers.py` reads command lines, `observed.py` looks on disk and among processes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from toolcrib.types import ProvenanceKind

FETCHERS = frozenset(("npx", "pnpm", "yarn", "bunx", "uvx", "uv", "pipx"))
"""Launchers that start something else, which may come from a registry."""
_PYPI_NAME = re.compile(r"\s*([A-Za-z0-9][\w.-]*)\s*(\[[^\]]*\])?\s*(.*)")
_HEX_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What a command line starts.

    Args:
        launcher: under its usual name ("uvx" for `uv tool run`), "" for a program itself.
        package: the name as asked for, without version. wanted: the version as asked for, "" for any.
        specs: packages as they were given.
        module, script, code: what an interpreter was told to run. program: the interpreter or program, as written.
        directory: the directory it starts in, where the line says so.
        pinned: whether starting it again gives the same version. line: the words up to the package; place: the
            package's word among them, before: what stands before the package in that word (`--from=`).
        opaque: a shell line that is not plain, so that only the processes can tell.
    """

    kind: ProvenanceKind = ProvenanceKind.EXECUTABLE
    launcher: str = ""
    package: str = ""
    wanted: str = ""
    specs: tuple[str, ...] = ()
    module: str = ""
    script: str = ""
    code: str = ""
    program: str = ""
    directory: str = ""
    arguments: tuple[str, ...] = ()
    pinned: bool = True
    line: tuple[str, ...] = ()
    place: int = 0
    before: str = ""
    opaque: bool = False

    @property
    def fetches(self) -> bool:
        """Whether a launcher stands between this line and what runs."""
        return self.launcher in FETCHERS

    def pinned_line(self, spec: str) -> tuple[str, ...]:
        """The same words with this package in place of the one asked for."""
        return (*self.line[: self.place], self.before + spec, *self.line[self.place + 1 :])


def npm_spec(spec: str) -> tuple[str, str]:
    """Name and version as asked for: `@scope/name@1.2.3`; addresses and folders are a version of nothing known."""
    if re.match(r"[\w+.-]+:|[./~]|[\w.-]+/[\w.-]+(#|$)", spec) and not spec.startswith("@"):
        return "", spec
    at = spec.find("@", 1)
    return (spec, "") if at < 0 else (spec[:at], spec[at + 1 :])


def pypi_spec(spec: str) -> tuple[str, str]:
    """Name and version as asked for: `name[extra]==1.2`, uvx's `name@1.2`; of an address the whole is the version."""
    if re.match(r"[\w+.-]+://|git\+|[./~]", spec):
        return "", spec
    found = _PYPI_NAME.fullmatch(spec)
    if found is None:
        return "", spec
    name, wanted = found[1], found[3].partition(";")[0].strip()
    if wanted.startswith("@"):
        wanted = wanted[1:].strip()
        return name, f"=={wanted}" if wanted[:1].isdigit() else "" if wanted == "latest" else wanted
    return name, wanted


def image_spec(image: str) -> tuple[str, str, str]:
    """Name with its registry, tag ("" for none) and digest ("sha256:…" or "")."""
    name, _, digest = image.partition("@")
    head, slash, last = name.rpartition("/")
    last, _, tag = last.partition(":")
    return head + slash + last, tag, digest if _HEX_DIGEST.fullmatch(digest) else ""
