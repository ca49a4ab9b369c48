"""A Python package as it is installed for the interpreter that really runs: name, version, and what its files are now.

    interpreter ─▶ its site-packages ─▶ the distribution with this module or console script ─▶ a hash over its files

Invariants
1. The files themselves are read, not the hashes in RECORD, which whoever edits a file may leave or edit, too.
2. The hash is over importable files and data of the package and its entry points: no caches, no scripts with the
   interpreter's path in them, no note of how it was installed. The same wheel gives the same hash everywhere.
3. A file that was put beside them and could be imported is part of it, although RECORD does not know it.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import Distribution, distributions
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from toolcrib.connectors.provenance.content import NotTold, TooLarge, files_below, files_digest
from toolcrib.types import Provenance, ProvenanceKind

IMPORTABLE = (".py", ".pyc", ".so", ".pyd", ".dylib", ".dll")
_SEPARATORS = re.compile(r"[-_.]+")
_MAX_ATTESTATION_BYTES = 1024 * 1024


def site_directories(interpreter: Path, *, env: Mapping[str, str]) -> tuple[Path, ...]:
    """Where this interpreter looks for installed packages, first what wins. Only directories that exist."""
    prefix = interpreter.absolute().parent.parent
    venv = prefix / "pyvenv.cfg"
    found = [Path(path) for path in env.get("PYTHONPATH", "").split(os.pathsep) if path]
    if venv.is_file():
        found += _sites(prefix, "python3.*")
        for site in list(found):
            found += _overlaid(site)
        if not re.search(r"(?mi)^include-system-site-packages\s*=\s*true", venv.read_text("utf-8", "replace")):
            return _existing(found)
    real = interpreter.resolve()
    version = re.search(r"\d+\.\d+", real.name)
    name = f"python{version[0]}" if version else "python3.*"
    found += _sites(Path(env.get("HOME") or Path.home()) / ".local", name)
    if real.parent.parent == Path("/usr"):
        found += _sites(Path("/usr/local"), name)
    return _existing([*found, *_sites(real.parent.parent, name)])


def _sites(prefix: Path, name: str) -> list[Path]:
    """Debian keeps packages of every 3.x in `python3/dist-packages`; Windows has `Lib/site-packages`."""
    found = [site for kind in ("site-packages", "dist-packages") for site in sorted(prefix.glob(f"lib/{name}/{kind}"))]
    return [*found, prefix / "lib/python3/dist-packages", prefix / "Lib/site-packages"]


def _overlaid(site: Path) -> list[Path]:
    """The environment below one that `uv run --with` laid over it."""
    try:
        text = (site / "_uv_ephemeral_overlay.pth").read_text("utf-8", "replace")
    except OSError:
        return []
    return [Path(path) for path in re.findall(r"addsitedir\([^;]*?b?[\"'](/[^\"']+|[A-Z]:[^\"']+)[\"']", text)]


def _existing(paths: Sequence[Path]) -> tuple[Path, ...]:
    return tuple(path for path in dict.fromkeys(paths) if path.is_dir())


# --- which distribution ---


def with_module(module: str, sites: Sequence[Path]) -> Distribution | None:
    """The distribution that holds a module."""
    top = module.partition(".")[0]
    return next((one for one in _distributions(sites, likely=top) if _holds(one, module, top)), None)


def with_script(name: str, sites: Sequence[Path]) -> Distribution | None:
    """The distribution that has a console script of this name."""
    known = _distributions(sites, likely=name)
    return next((one for one in known if any(entry.name == name for entry in _scripts(one))), None)


def named(name: str, sites: Sequence[Path]) -> Distribution | None:
    """The distribution of this name."""
    return next((one for one in _distributions(sites, likely=name) if plain(one.name) == plain(name)), None)


def _distributions(sites: Sequence[Path], *, likely: str) -> Iterator[Distribution]:
    """The ones of this name, which most are that hold a module or script of it; then all."""
    path = [str(site) for site in sites]
    for one in itertools.chain(distributions(name=likely, path=path), distributions(path=path)):
        if one.metadata is not None and one.metadata["Name"]:  # a broken directory has none
            yield one


def _scripts(one: Distribution) -> Iterator[Any]:
    return (entry for entry in one.entry_points if entry.group in ("console_scripts", "gui_scripts"))


def _holds(one: Distribution, module: str, top: str) -> bool:
    if tree := _editable(one):
        return any((tree / base / name).exists() for base in ("", "src") for name in (top, f"{top}.py"))
    record = one.read_text("RECORD") or ""
    path = module.replace(".", "/")
    starts = (f"{path}/__init__.py,", f"{path}/__main__.py,", f"{path}.py,", f"{top}/__init__.py,", f"{top}.py,")
    return any(record.startswith(start) or f"\n{start}" in record for start in starts)


def plain(name: str) -> str:
    """A distribution's name as indexes write it. Source: PEP 503."""
    return _SEPARATORS.sub("-", name).lower()


# --- what it is ---


def described(one: Distribution) -> Provenance:
    """What an installed distribution is; `advice` is the requirement that installs just this.

    Raises:
        NotTold: its files cannot be read.
    """
    source = _direct_url(one)
    found = Provenance(
        kind=ProvenanceKind.PYTHON,
        registry=_registry(source),
        package=plain(one.name),
        version=one.version,
        publisher=_publisher(one),
        advice=_commit(source) or f"{plain(one.name)}=={one.version}",
    )
    note = "its attestation was read, not verified" if found.publisher else "no attestation lies beside it"
    if tree := _editable(one):
        files = files_below(tree, suffixes=(*IMPORTABLE, "pyproject.toml"))
        if not files:
            raise NotTold("it is installed in place, and its sources cannot be found")
        return replace(found, integrity=files_digest(files), note="installed in place: its sources are compared")
    try:
        return replace(found, integrity=_integrity(one), note=note)
    except TooLarge:
        note = f"it is too large to be read; what its RECORD says of the files is compared; {note}"
        return replace(found, integrity=_recorded(one), note=note)


def _integrity(one: Distribution) -> str:
    files = {name: Path(str(one.locate_file(name))) for name in _own_names(one)}
    for top in sorted({PurePosixPath(name).parts[0] for name in files if name.endswith("/__init__.py")}):
        if f"{top}/__init__.py" in files:  # not one directory that many distributions share
            tree = Path(str(one.locate_file(top)))
            files |= {f"{top}/{name}": path for name, path in files_below(tree, suffixes=IMPORTABLE).items()}
    if not files:
        raise NotTold("it has no list of its files (RECORD)")
    return files_digest(files)


def _recorded(one: Distribution) -> str:
    """The same over the hashes in RECORD."""
    own = set(_own_names(one))
    rows = sorted(f"{file.hash.value if file.hash else ''} {file}" for file in one.files or () if str(file) in own)
    return "sha256:" + hashlib.sha256("\n".join(rows).encode("utf-8", "surrogatepass")).hexdigest()


def _own_names(one: Distribution) -> Iterator[str]:
    """Names in RECORD, without what differs between two installations of one wheel."""
    for file in one.files or ():
        name = file.as_posix()
        meta = re.match(r"[^/]+\.(dist|egg)-info/(.+)", name)
        if name.startswith(("..", "/")) or "__pycache__" in file.parts or (meta and meta[2] != "entry_points.txt"):
            continue
        yield name


def _direct_url(one: Distribution) -> Mapping[str, Any]:
    try:
        source = json.loads(one.read_text("direct_url.json") or "{}")
    except ValueError:
        return {}
    return source if isinstance(source, dict) else {}


def _commit(source: Mapping[str, Any]) -> str:
    """The address and commit that it was built from, as a requirement; "" where it came from an index."""
    vcs = source.get("vcs_info")
    return f"{vcs.get('vcs')}+{source.get('url')}@{vcs.get('commit_id')}" if isinstance(vcs, dict) else ""


def _registry(source: Mapping[str, Any]) -> str:
    """An installation from an address says so (PEP 610); one from an index leaves no word of which."""
    if not source:
        return "pypi"
    return urlsplit(str(source.get("url"))).hostname or ""


def _editable(one: Distribution) -> Path | None:
    source = _direct_url(one)
    told = source.get("dir_info")
    if not isinstance(told, dict) or not told.get("editable"):
        return None
    return Path(unquote(urlsplit(str(source.get("url"))).path))


def _publisher(one: Distribution) -> str:
    """Who published it, from a PEP 740 provenance object beside its metadata; installers seldom leave one."""
    for file in one.files or ():
        if file.match("*.dist-info/*.provenance") or file.match("*.dist-info/provenance.json"):
            try:
                text = Path(str(one.locate_file(file))).read_bytes()[:_MAX_ATTESTATION_BYTES]
                bundles = json.loads(text)["attestation_bundles"]
                told = bundles[0]["publisher"]
                return " ".join(str(told[key]) for key in ("kind", "repository", "workflow") if told.get(key))
            except (OSError, ValueError, LookupError, TypeError, AttributeError):
                return ""
    return ""
