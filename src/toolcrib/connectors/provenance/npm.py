"""A package of npm as it lies in `node_modules`: name, version, npm's integrity and what the files are now.

npm keeps no attestation beside an installed package, so there is never a publisher here.

    _npx/<key>/package-lock.json, node_modules/.package-lock.json      npx and npm say version, address and sha512
    node_modules/<package>/…                                           the files that node really reads

Invariants
1. A package is where a running process found it; the cache is looked at only where no process tells.
2. `integrity` holds npm's own hash of the package as published and, behind it, a hash of the files as they lie here: a
   file that was edited after the installation is seen. A package that builds itself (install scripts) has the first one
   alone, because what it builds differs between machines.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from toolcrib.connectors.provenance.content import NotTold, TooLarge, files_below, files_digest
from toolcrib.types import Provenance, ProvenanceKind

_MAX_JSON_BYTES = 32 * 1024 * 1024
_PUBLIC = "registry.npmjs.org"
_INSTALL_SCRIPTS = ("preinstall", "install", "postinstall")
_NO_PUBLISHER = "npm keeps no attestation beside an installed package, so its publisher is not known"


def package_of(path: Path) -> Path | None:
    """The directory of the package that a file in some `node_modules` belongs to."""
    parts = path.parts
    places = [place for place, part in enumerate(parts) if part == "node_modules"]
    for place in reversed(places):
        n_names = 2 if parts[place + 1 : place + 2] and parts[place + 1].startswith("@") else 1
        found = Path(*parts[: place + 1 + n_names])
        if len(parts) > place + 1 + n_names and (found / "package.json").is_file():
            return found
    return None


def described(package: Path) -> Provenance:
    """What an installed package is; `advice` is the spec that installs just this.

    Raises:
        NotTold: its files or its manifest cannot be read.
    """
    manifest = _json(package / "package.json")
    name, version = _text(manifest.get("name")), _text(manifest.get("version"))
    entry = _lock_entry(package)
    notes = [_NO_PUBLISHER]
    if entry and _text(entry.get("version")) not in ("", version):
        notes.append(f"the lock says version {entry['version']}, its files say {version}")
        entry = {}
    published = _text(entry.get("integrity"))
    here = ""
    if not published or not _builds_itself(package, manifest, entry):
        try:
            here = files_digest(files_below(package))
        except TooLarge as exc:
            notes.append(f"its files are not compared: {exc}")
    return Provenance(
        kind=ProvenanceKind.NPM,
        registry=_registry(_text(entry.get("resolved"))),
        package=name,
        version=version,
        integrity=" ".join(filter(None, (published, here))),
        advice=f"{name}@{version}",
        note="; ".join(notes),
    )


def npx_package(specs: Sequence[str], name: str, *, env: Mapping[str, str], cwd: Path) -> Path:
    """Where npx would take a package from: the project around `cwd`, or the cache under the key of these specs.

    Raises:
        NotTold: it is in neither.
    """
    for here in (cwd, *cwd.parents):
        if name and list(specs) == [name] and (here / "node_modules" / name / "package.json").is_file():
            return here / "node_modules" / name
    place = npx_directory(specs, env=env)
    if not name:  # an address or a folder was asked for: the one package that npx was told to install
        wanted = _json(place / "package.json").get("dependencies")
        name = next(iter(wanted), "") if isinstance(wanted, dict) else ""
    found = place / "node_modules" / name
    if not name or not (found / "package.json").is_file():
        raise NotTold("npx has no such package in its cache, and the running process does not tell")
    return found


def npx_directory(specs: Sequence[str], *, env: Mapping[str, str]) -> Path:
    """Where npx keeps the packages asked for by these specs. Source: libnpmexec, lib/index.js."""
    ordered = "\n".join(sorted(specs, key=lambda spec: (spec.lower(), spec)))  # as localeCompare does, nearly
    key = hashlib.sha512(ordered.encode()).hexdigest()[:16]
    return npm_cache(env) / "_npx" / key


def npm_cache(env: Mapping[str, str]) -> Path:
    """npm's cache directory: from the environment, npm's own configuration of the user, or the usual place."""
    for name in ("npm_config_cache", "NPM_CONFIG_CACHE"):
        if env.get(name):
            return Path(env[name])
    home = Path(env.get("HOME") or Path.home())
    try:
        lines = (home / ".npmrc").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        if told := re.fullmatch(r"\s*cache\s*=\s*(.+?)\s*", line):
            return Path(told[1].strip("\"'")).expanduser()
    if os.name == "nt":
        return Path(env.get("LOCALAPPDATA") or home / "AppData" / "Local") / "npm-cache"
    return home / ".npm"


def _lock_entry(package: Path) -> Mapping[str, Any]:
    """The lock's entry for this directory: of npm's hidden lock inside `node_modules`, or of the project's."""
    modules = package.parent.parent if package.parent.name.startswith("@") else package.parent
    while modules.parent != modules and "node_modules" in modules.parent.parts:
        modules = modules.parent
    project = modules.parent
    key = package.relative_to(project).as_posix()
    for lock in (modules / ".package-lock.json", project / "package-lock.json"):
        if lock.is_file():
            packages = _json(lock).get("packages")
            entry = packages.get(key) if isinstance(packages, dict) else None
            if isinstance(entry, dict):
                return entry
    return {}


def _builds_itself(package: Path, manifest: Mapping[str, Any], entry: Mapping[str, Any]) -> bool:
    scripts = manifest.get("scripts")
    named = isinstance(scripts, dict) and any(name in scripts for name in _INSTALL_SCRIPTS)
    return named or bool(entry.get("hasInstallScript")) or (package / "binding.gyp").exists()


def _registry(resolved: str) -> str:
    host = urlsplit(resolved).hostname or ""
    return "npm" if host in ("", _PUBLIC) else host


def _json(path: Path) -> Mapping[str, Any]:
    try:
        if path.stat().st_size > _MAX_JSON_BYTES:
            raise NotTold(f"{path.name} is larger than {_MAX_JSON_BYTES} bytes")
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        raise NotTold(f"{path.name} of the package cannot be read") from None
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
