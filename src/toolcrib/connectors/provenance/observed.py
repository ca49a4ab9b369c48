"""What a server is, found out while it runs.

    command line ─▶ launchers ─▶ which process is it really ─▶ its package, script, image or program ─▶ Provenance
    address      ─▶ remote

Above: `_session.py`, which asks once a session is open. Below: one file for each kind of thing.

Invariants
1. `observe` never raises: what cannot be told is `unknown`, with a note that says why (I12).
2. Reading disk and processes is done in a thread; nothing of the server's is run.
3. What was found differs between two machines only where something else runs.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import Distribution
from pathlib import Path

from toolcrib.connectors.provenance import _linux_processes, environments, npm, python_packages
from toolcrib.connectors.provenance._linux_processes import Process
from toolcrib.connectors.provenance.arguments import hidden, shown
from toolcrib.connectors.provenance.content import NotTold, file_digest, files_below, files_digest
from toolcrib.connectors.provenance.images import image
from toolcrib.connectors.provenance.launch import Launch
from toolcrib.connectors.provenance.launchers import is_between, parse
from toolcrib.connectors.provenance.remote import remote
from toolcrib.connectors.provenance.scripts import with_imports
from toolcrib.types import Provenance, ProvenanceKind, ServerSpec, Transport

_log = logging.getLogger(__name__)
_MAX_SHEBANG_BYTES = 512
_WHOLE_S = 20.0


async def observe(
    spec: ServerSpec,
    *,
    env: Mapping[str, str],
    root: Path,
    mask: Callable[[str], str] = str,
    pid: int | None = None,
    certificate: bytes = b"",
) -> Provenance:
    """What runs behind this server, or answers for it.

    Args:
        env: the environment that the server was started with, whole.
        root: the crib's directory.
        mask: hides the configured secrets.
        pid: of the process that was started; None where none was.
        certificate: the TLS certificate of the connection, DER; b"" where there is none.
    """
    try:
        if spec.transport is Transport.HTTP:
            return await asyncio.to_thread(
                remote, spec.url, certificate=certificate, mask=lambda part: hidden(mask(part))
            )
        async with asyncio.timeout(_WHOLE_S):
            return await _started(spec, env=env, root=root, pid=pid, mask=mask)
    except TimeoutError:
        return Provenance(note=f"could not be told within {_WHOLE_S:g} s")
    # Whatever a foreign installation holds, a server that lists its tools must not be lost for it.
    except Exception as exc:  # noqa: BLE001
        _log.warning("what runs behind server %r cannot be told", spec.server_id, exc_info=True)
        return Provenance(note=f"could not be told: {type(exc).__name__}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Here:
    """Where a server was started. `process`: the one that serves, where the system tells."""

    env: Mapping[str, str]
    root: Path
    cwd: Path
    process: Process | None = None


async def _started(
    spec: ServerSpec, *, env: Mapping[str, str], root: Path, pid: int | None, mask: Callable[[str], str]
) -> Provenance:
    launch = parse(spec.command)
    root = _placed(Path(), root)
    here = _Here(env=env, root=root, cwd=_placed(root, spec.cwd, launch.directory))
    try:
        if launch.kind is ProvenanceKind.IMAGE:
            found = await image(launch, env=env)
        else:
            found = await asyncio.to_thread(_found, launch, here, pid)
    except NotTold as exc:
        found = Provenance(package=launch.package, note=str(exc))
    pinned = launch.pinned or (found.kind is ProvenanceKind.NPM and not found.advice)
    return replace(
        found,
        launcher=launch.launcher,
        arguments=await asyncio.to_thread(shown, launch.arguments, mask=mask, root=root),
        env=tuple(sorted(spec.env)),
        pinned=pinned,
        advice="" if pinned else _advice(launch, found, mask),
    )


def _placed(base: Path, *names: str | Path) -> Path:
    """An absolute path without `..` in it. Links stay: through them an environment is known."""
    for name in names:
        base = base / Path(name).expanduser()
    return Path(os.path.normpath(base.absolute()))


def _advice(launch: Launch, found: Provenance, mask: Callable[[str], str]) -> str:
    """The words of the command line up to the package, with this very version of it."""
    pinned = found.advice
    if found.kind is ProvenanceKind.IMAGE and found.integrity:
        pinned = f"{launch.package}@{found.integrity}"
    elif launch.package and found.package not in (launch.package, python_packages.plain(launch.package)):
        pinned = ""  # another package's program was started; a version of that one would not fit here
    if not pinned or not launch.line:
        return ""
    if found.kind is ProvenanceKind.PYTHON and (extra := re.search(r"\[[^\]]*\]", launch.line[launch.place])):
        pinned = pinned.replace("==", extra[0] + "==")
    return json.dumps([hidden(mask(word)) for word in launch.pinned_line(pinned)], ensure_ascii=False)


# --- which process, which thing ---


def _found(launch: Launch, here: _Here, pid: int | None) -> Provenance:
    """Without launcher, arguments and environment; `advice` is the spec of just this version."""
    processes = _linux_processes.family(pid) if pid is not None else ()
    known = {process.pid for process in processes if not is_between(process.argv)}
    serving = [process for process in processes if process.pid in known and process.parent not in known]
    here = replace(here, process=serving[0] if serving else None)
    if launch.fetches:
        return _fetched(launch, here)
    if launch.opaque:
        if len(serving) != 1:
            raise NotTold("a shell line with several commands; which of them is the server cannot be told")
        return _run(parse(serving[0].argv), replace(here, cwd=Path(serving[0].cwd or here.cwd)))
    return _run(launch, here)


def _fetched(launch: Launch, here: _Here) -> Provenance:
    """What a launcher fetched or found, and started."""
    inner = parse(here.process.argv) if here.process else None
    if launch.kind is ProvenanceKind.NPM:
        return _npm(launch, here, inner)
    if launch.script:
        return _of_script(_script(launch, here), launch, here, "")
    if inner is not None and (inner.module or inner.script):
        return _run(inner, here, package=launch.package)
    if launch.launcher in ("uvx", "pipx") and launch.package:
        exact = launch.wanted if launch.wanted.startswith("==") else ""
        return python_packages.described(
            environments.kept(launch.package, exact, launcher=launch.launcher, env=here.env)
        )
    if launch.launcher == "uv":
        program = here.cwd / ".venv" / "bin" / (launch.program or "python")
        return _run(replace(launch, program=str(program)), here, package=launch.package)
    raise NotTold(f"what {launch.launcher} started cannot be told")


def _npm(launch: Launch, here: _Here, inner: Launch | None) -> Provenance:
    script = _script(inner, here) if inner is not None and inner.script else None
    place = npm.package_of(script.resolve()) if script is not None else None
    if place is None:
        if launch.launcher != "npx":
            raise NotTold(f"what {launch.launcher} started cannot be told")
        place = npm.npx_package(launch.specs, launch.package, env=here.env, cwd=here.cwd)
    found = npm.described(place)
    own = any(parent / "node_modules" in place.parents for parent in (here.cwd, *here.cwd.parents))
    return replace(found, advice="") if own else found  # installed in the project: nothing is fetched


def _run(launch: Launch, here: _Here, *, package: str = "") -> Provenance:
    """What an interpreter or a program runs.

    Args:
        package: of a launcher, where the script alone does not tell.
    """
    if launch.code:
        return Provenance(
            kind=ProvenanceKind.CODE, integrity="sha256:" + hashlib.sha256(launch.code.encode()).hexdigest()
        )
    if launch.module:
        return _module(launch, here)
    if launch.script:
        script = _script(launch, here)
        return _of_script(script, launch, here, package)
    if not launch.program:
        raise NotTold("its command line is not understood")
    return _program(launch, here, package)


def _script(launch: Launch, here: _Here) -> Path:
    """Where it was started comes first: a program may go elsewhere once it runs."""
    bases = [here.cwd, *([Path(here.process.cwd)] if here.process and here.process.cwd else [])]
    paths = [_placed(base, launch.script) for base in bases]
    return next((path for path in paths if path.is_file()), paths[0])


def _module(launch: Launch, here: _Here) -> Provenance:
    """A module in the directory it starts in comes before any that is installed, as in Python."""
    path = launch.module.replace(".", "/")
    for base in (here.cwd, *(Path(one) for one in here.env.get("PYTHONPATH", "").split(os.pathsep) if one)):
        if (base / f"{path}.py").is_file():
            return _file(base / f"{path}.py", launch.launcher, here)
        if (base / path / "__main__.py").is_file():
            files = files_below(base / path.partition("/")[0], suffixes=python_packages.IMPORTABLE)
            return Provenance(kind=ProvenanceKind.FILE, package=launch.module, integrity=files_digest(files))
    sites = python_packages.site_directories(_interpreter(launch, here), env=here.env)
    one = python_packages.with_module(launch.module, sites)
    if one is None:
        raise NotTold(f"the module {launch.module} belongs to no installed package")
    return python_packages.described(one)


def _interpreter(launch: Launch, here: _Here) -> Path:
    """The interpreter as it was called, which tells its environment; the file behind it where a shim called it."""
    process = here.process
    exe = Path(process.exe) if process and process.exe else None
    found = [path for word in (launch.program, *(process.argv[:1] if process else ())) if (path := _which(word, here))]
    for path in found:
        if exe is None or path.resolve() == exe.resolve():
            return path
    if exe is None:
        raise NotTold("its interpreter cannot be told")
    return exe


def _which(word: str, here: _Here) -> Path | None:
    if not word:
        return None
    if "/" in word or os.sep in word:
        path = _placed(here.cwd, word)
        return path if path.exists() else None
    found = shutil.which(word, path=here.env.get("PATH"))
    return Path(found).absolute() if found else None


def _of_script(script: Path, launch: Launch, here: _Here, package: str) -> Provenance:
    """A script is a file of its own, unless an installed package put it there."""
    if not script.is_file():
        raise NotTold(f"the script {script.name} is not there")
    if place := npm.package_of(script.resolve()):
        return replace(npm.described(place), advice="")
    one = _installed(script, launch, here, package)
    return python_packages.described(one) if one is not None else _file(script, launch.launcher, here)


def _installed(script: Path, launch: Launch, here: _Here, package: str) -> Distribution | None:
    """The distribution whose console script this is."""
    if launch.launcher != "python" and not package:
        return None
    try:
        interpreter = _interpreter(launch, here)
    except NotTold:
        return None
    beside = script.parent == interpreter.parent or script.parent.resolve() == interpreter.resolve().parent
    if not beside:
        return None
    sites = python_packages.site_directories(interpreter, env=here.env)
    found = python_packages.with_script(script.stem if script.suffix == ".exe" else script.name, sites)
    found = found or (python_packages.named(package, sites) if package else None)
    if found is None:
        raise NotTold(f"the script {script.name} belongs to no installed package")
    return found


def _file(script: Path, launcher: str, here: _Here) -> Provenance:
    inside = here.root in script.parents
    return Provenance(
        kind=ProvenanceKind.FILE,
        package=script.relative_to(here.root).as_posix() if inside else script.name,
        integrity=files_digest(with_imports(script, launcher=launcher)),
    )


def _program(launch: Launch, here: _Here, package: str) -> Provenance:
    """A program: a link into a package, a script with an interpreter in its first line, or an executable."""
    path = _which(launch.program, here)
    if path is None or not path.is_file():
        raise NotTold(f"the program {Path(launch.program).name} is not there")
    if interpreter := _shebang(path):
        inner = parse((*interpreter, str(path)))
        if inner.script and inner.launcher != "sh":
            # The process, where there is one, was called as the first line says; its interpreter is the surer one.
            return _of_script(path, inner, here, package)
    if (path.parent.parent / "pyvenv.cfg").is_file():
        sites = python_packages.site_directories(path.parent / "python", env=here.env)
        if one := python_packages.with_script(path.stem if path.suffix == ".exe" else path.name, sites):
            return python_packages.described(one)
    note = "a shell script; what it starts is not compared" if _shebang(path) else ""
    return Provenance(
        kind=ProvenanceKind.EXECUTABLE, package=path.name, integrity=file_digest(path.resolve()), note=note
    )


def _shebang(path: Path) -> tuple[str, ...]:
    """The words of its first line; of pip's and uv's shell line for long paths the interpreter in it."""
    try:
        with path.open("rb") as file:
            head = file.read(_MAX_SHEBANG_BYTES)
    except OSError:
        return ()
    if not head.startswith(b"#!"):
        return ()
    first, _, rest = head[2:].decode("utf-8", "replace").partition("\n")
    if told := re.match(r"'''exec' [\"']?(.+?)[\"']? \"\$0\"", rest):
        return (told[1],)
    return tuple(first.split())
