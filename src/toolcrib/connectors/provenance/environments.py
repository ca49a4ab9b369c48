"""Python environments that uvx and pipx keep, for where no process tells which one is running.

Below: `python_packages.py`. Above: `observed.py`.

Invariants
1. Where several versions of a package are kept and the command line names none, nothing is guessed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from importlib.metadata import Distribution
from pathlib import Path

from toolcrib.connectors.provenance.content import NotTold
from toolcrib.connectors.provenance.python_packages import named, site_directories


def kept(package: str, wanted: str, *, launcher: str, env: Mapping[str, str]) -> Distribution:
    """The package in the launcher's own environments.

    Args:
        wanted: `==` and a version, or "" for any.
    Raises:
        NotTold: it is in none of them, or in several versions.
    """
    home = Path(env.get("HOME") or Path.home())
    directories = _uv(package, env, home) if launcher in ("uvx", "uv") else _pipx(env, home)
    found: dict[str, Distribution] = {}
    for directory in directories:
        if (directory / "pyvenv.cfg").is_file():
            one = named(package, _sites(directory, env))
            if one is not None and wanted in ("", f"=={one.version}"):
                found.setdefault(one.version, one)
    if len(found) != 1:
        held = f"several versions of it ({', '.join(sorted(found))})" if found else "no such package"
        raise NotTold(f"{launcher} keeps {held}, and the running process does not tell")
    return next(iter(found.values()))


def _sites(directory: Path, env: Mapping[str, str]) -> tuple[Path, ...]:
    program = directory / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    return site_directories(program, env={**env, "PYTHONPATH": ""})


def _uv(package: str, env: Mapping[str, str], home: Path) -> Iterator[Path]:
    if os.name == "nt":
        local = Path(env.get("LOCALAPPDATA") or home / "AppData" / "Local")
        cache, data = local / "uv" / "cache", local / "uv"
    else:
        cache = Path(env.get("XDG_CACHE_HOME") or home / ".cache") / "uv"
        data = Path(env.get("XDG_DATA_HOME") or home / ".local" / "share") / "uv"
    yield Path(env.get("UV_TOOL_DIR") or data / "tools") / package
    yield from sorted(Path(env.get("UV_CACHE_DIR") or cache).glob("archive-v*/*"))


def _pipx(env: Mapping[str, str], home: Path) -> Iterator[Path]:
    homes = [Path(env[name]) for name in ("PIPX_HOME",) if env.get(name)]
    homes += [home / ".local" / "share" / "pipx", home / ".local" / "pipx"]
    for one in (*(each / ".cache" for each in homes), home / ".cache" / "pipx"):
        yield from sorted(one.glob("*"))
