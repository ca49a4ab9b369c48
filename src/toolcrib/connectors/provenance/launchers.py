"""From a command line to what it starts: which package of which registry, which script, image or program.

Pure: nothing is looked up here. Below: `launch.py`, `options.py`. Above: `observed.py`, which looks on disk.

    env, sudo, sh -c …  ─▶ looked through      npx, uvx, docker run …  ─▶ a package or image, perhaps fetched
    python, node, …     ─▶ a module or script  anything else           ─▶ a program

Invariants
1. What is not understood is a program, or a shell line (`opaque`); it is never guessed to be a package.
2. `pinned` is said only where the line itself, or an installation beside it, names one version.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace

from toolcrib.connectors.provenance import options
from toolcrib.connectors.provenance.launch import FETCHERS, Launch, image_spec, npm_spec, pypi_spec
from toolcrib.connectors.provenance.options import scan
from toolcrib.types import ProvenanceKind

_MAX_DEPTH = 8
_NOT_PLAIN = re.compile(r"[;|&<>()$`\\\n*?{}]")
_PYTHON = re.compile(r"python\d*(\.\d+)?t?w?|pypy\d*(\.\d+)?|py")
_EXACT_NPM = re.compile(r"[=v]?\d+\.\d+\.\d+(-[\w.-]+)?(\+[\w.-]+)?")
_EXACT_PYPI = re.compile(r"===?\s*[^,*\s]+")
_COMMIT = re.compile(r"[0-9a-f]{40}")


def parse(words: Sequence[str]) -> Launch:
    """What this command line starts."""
    return _parse(tuple(words), wrapped=(), depth=0)


def is_between(words: Sequence[str]) -> bool:
    """Whether a process with this command line is a shell or launcher, and no server itself."""
    if not words or not words[0]:
        return True
    first, name = words[0].split(" ")[0], _name(words[0])
    if first in ("npm", "pnpm", "yarn"):  # they overwrite their command line with a title: "npm exec x"
        return True
    if name in ("node", "nodejs") and len(words) > 1:
        return re.sub(r"\.[cm]?js$", "", _name(words[1])) in _LAUNCHER_SCRIPTS
    return name in _SHELLS or name in options.WRAPPERS or name in ("uv", "uvx", "npx", "pipx", "bunx", "cmd")


def _parse(words: tuple[str, ...], *, wrapped: tuple[str, ...], depth: int) -> Launch:
    if not words or depth > _MAX_DEPTH:
        return Launch(kind=ProvenanceKind.UNKNOWN)
    name = _name(words[0])
    if inner := _unwrapped(name, words):
        skipped = words[: len(words) - len(inner)]
        return _parse(inner, wrapped=(*wrapped, *skipped), depth=depth + 1)
    if name in _SHELLS:
        return _shell(words, depth)
    known = _reader(name)
    found = known(words, depth) if known else None
    if found is None:
        kind = ProvenanceKind.UNKNOWN if name in FETCHERS or name == "npm" else ProvenanceKind.EXECUTABLE
        return Launch(kind=kind, program=words[0], arguments=words[1:])
    if not found.line or found.opaque:
        return found
    return replace(found, line=(*wrapped, *found.line), place=found.place + len(wrapped))


def _name(word: str) -> str:
    """A program's name without its directory and Windows' endings."""
    name = re.split(r"[/\\]", word)[-1]
    return re.sub(r"\.(exe|cmd|bat)$", "", name, flags=re.IGNORECASE)


# --- wrappers and shells ---


def _unwrapped(name: str, words: tuple[str, ...]) -> tuple[str, ...]:
    """The command inside `env A=b …`, `sudo …`, `timeout 30 …`; () where the first word is none of these."""
    if name == "cmd" and len(words) > 2 and words[1].lower() == "/c":
        return words[2:]
    wrapper = options.WRAPPERS.get(name)
    if wrapper is None:
        return ()
    rest = scan(words[1:], wrapper.with_value).rest
    if name == "env":
        while rest and re.match(r"[A-Za-z_]\w*=", rest[0]):
            rest = rest[1:]
    return rest[wrapper.n_before :]


def _shell(words: tuple[str, ...], depth: int) -> Launch:
    """A shell line is looked through when it is one plain command; a shell script is a program."""
    for place, word in enumerate(words[1:], start=1):
        if not word.startswith("-"):
            return Launch(kind=ProvenanceKind.FILE, launcher="sh", script=word, arguments=words[place + 1 :])
        if not word.startswith("--") and "c" in word and place + 1 < len(words):
            return _shell_line(words[place + 1], depth)
    return Launch(program=words[0], arguments=words[1:])


def _shell_line(line: str, depth: int) -> Launch:
    opaque = Launch(kind=ProvenanceKind.CODE, launcher="sh", code=line, arguments=(line,), opaque=True)
    if _NOT_PLAIN.search(line):
        return opaque
    try:
        inner = shlex.split(line)
    except ValueError:
        return opaque
    while inner and (inner[0] == "exec" or re.match(r"[A-Za-z_]\w*=", inner[0])):
        inner = inner[1:]
    return _parse(tuple(inner), wrapped=(), depth=depth + 1) if inner else opaque


# --- npm ---


def _npx(words: tuple[str, ...], _depth: int) -> Launch | None:
    name = _name(words[0])
    return _npm_line(words, {"pnpx": "pnpm"}.get(name, name), 1)


def _npm(words: tuple[str, ...], _depth: int) -> Launch | None:
    """`npm exec`, `pnpm dlx`, `yarn dlx`, `bun x`; other commands of these are programs."""
    name = _name(words[0])
    verbs = {"npm": ("exec", "x"), "pnpm": ("dlx",), "yarn": ("dlx",), "bun": ("x",)}[name]
    place = next((i for i, word in enumerate(words) if i and not word.startswith("-")), 0)
    if not place or words[place] not in verbs:
        return _bun(words, place) if name == "bun" else None
    return _npm_line(words, {"npm": "npx", "bun": "bunx"}.get(name, name), place + 1)


def _bun(words: tuple[str, ...], place: int) -> Launch | None:
    inner = words[place + 1 :] if place and words[place] == "run" else words[1:]
    return _script((words[0], *inner), "bun", options.INTERPRETERS["bun"])


def _npm_line(words: tuple[str, ...], launcher: str, start: int) -> Launch | None:
    seen = scan(words[start:], options.NPX)
    named = [given for given in seen.given if given.name in ("-p", "--package")]
    rest = seen.rest
    if named:
        spec, place, before = named[0].value, start + named[0].place, named[0].before
    elif rest:
        spec, place, before = rest[0], len(words) - len(rest), ""
    else:
        return None
    arguments = rest[1:]
    if arguments[:1] == ("--",):
        arguments = arguments[1:]
    package, wanted = npm_spec(spec)
    if package in options.SCRIPT_RUNNERS and not named:
        return _script((package, *arguments), package, frozenset())
    return Launch(
        kind=ProvenanceKind.NPM,
        launcher=launcher,
        package=package,
        wanted=wanted,
        specs=tuple(given.value for given in named) or (spec,),
        arguments=arguments,
        pinned=bool(_EXACT_NPM.fullmatch(wanted) or _COMMIT.search(wanted)),
        line=words[: max(place + 1, len(words) - len(rest) + bool(named and rest))],
        place=place,
        before=before,
    )


# --- Python ---


def _uvx(words: tuple[str, ...], _depth: int) -> Launch | None:
    return _uv_tool(words, 1)


def _uv(words: tuple[str, ...], depth: int) -> Launch | None:
    seen = scan(words[1:], options.UV)
    directory = _last(seen.given, "--directory") or _last(seen.given, "--project")
    start = len(words) - len(seen.rest)
    if seen.rest[:2] == ("tool", "run"):
        return _uv_tool(words, start + 2)
    if seen.rest[:1] != ("run",):
        return None
    return _uv_run(words, start + 1, directory, depth)


def _uv_tool(words: tuple[str, ...], start: int) -> Launch | None:
    seen = scan(words[start:], options.UV)
    if not seen.rest:
        return None
    source = next((given for given in seen.given if given.name == "--from"), None)
    place = start + source.place if source else len(words) - len(seen.rest)
    spec = source.value if source else seen.rest[0]
    return _pypi_line(words, "uvx", spec, place, source.before if source else "", seen.rest)


def _pipx(words: tuple[str, ...], _depth: int) -> Launch | None:
    if words[1:2] != ("run",):
        return None
    seen = scan(words[2:], options.PIPX)
    if not seen.rest:
        return None
    source = next((given for given in seen.given if given.name == "--spec"), None)
    place = 2 + source.place if source else len(words) - len(seen.rest)
    spec = source.value if source else seen.rest[0]
    return _pypi_line(words, "pipx", spec, place, source.before if source else "", seen.rest)


def _pypi_line(
    words: tuple[str, ...], launcher: str, spec: str, place: int, before: str, rest: tuple[str, ...]
) -> Launch:
    package, wanted = pypi_spec(spec)
    return Launch(
        kind=ProvenanceKind.PYTHON,
        launcher=launcher,
        package=package,
        wanted=wanted,
        arguments=rest[1:],
        pinned=bool(_EXACT_PYPI.fullmatch(wanted) or _COMMIT.search(wanted)),
        line=words[: len(words) - len(rest) + 1],
        place=place,
        before=before,
    )


def _uv_run(words: tuple[str, ...], start: int, directory: str, depth: int) -> Launch | None:
    """The command inside, run by the project's Python; packages added with `--with` may be fetched anew."""
    seen = scan(words[start:], options.UV_RUN)
    directory = _last(seen.given, "--directory") or _last(seen.given, "--project") or directory
    module = _last(seen.given, "-m") or _last(seen.given, "--module")
    if module:
        found = Launch(kind=ProvenanceKind.PYTHON, module=module, arguments=seen.rest)
    elif not seen.rest:
        return None
    elif seen.rest[0].endswith(".py"):
        found = Launch(kind=ProvenanceKind.FILE, script=seen.rest[0], arguments=seen.rest[1:])
    else:
        found = _parse(seen.rest, wrapped=(), depth=depth + 1)
    added = next((given for given in seen.given if given.name in ("--with", "-w")), None)
    found = replace(found, launcher="uv", directory=directory or found.directory, line=())
    if added is None:
        return found
    package, wanted = pypi_spec(added.value)
    return replace(
        found,
        package=package,
        wanted=wanted,
        pinned=bool(_EXACT_PYPI.fullmatch(wanted)),
        line=words[: len(words) - len(seen.rest) + 1],
        place=start + added.place,
        before=added.before,
    )


def _python(words: tuple[str, ...], _depth: int) -> Launch | None:
    base = Launch(launcher="python", program=words[0])
    place = 1
    while place < len(words):
        word, rest = words[place], words[place + 1 :]
        if not word.startswith("-") or word == "-":
            return replace(base, kind=ProvenanceKind.FILE, script=word, arguments=rest)
        if word in ("--check-hash-based-pycs", "-W", "-X"):
            place += 2
            continue
        told = re.fullmatch(r"-[A-Za-ln-z]*?([mc])(.*)", word) if word[1:2] not in ("W", "X", "-") else None
        if told:
            value, arguments = (told[2], rest) if told[2] else (rest[0] if rest else "", rest[1:])
            if told[1] == "m":
                return _python_module(base, value, arguments)
            return replace(base, kind=ProvenanceKind.CODE, code=value, arguments=arguments)
        place += 1
    return None


def _python_module(base: Launch, module: str, arguments: tuple[str, ...]) -> Launch:
    return replace(base, kind=ProvenanceKind.PYTHON, module=module, arguments=arguments)


# --- scripts, images ---


def _script(words: tuple[str, ...], launcher: str, with_value: frozenset[str]) -> Launch | None:
    """`node server.js`: the first word that is no option is the script."""
    seen = scan(words[1:], with_value)
    code = next((given for given in seen.given if given.name in ("-e", "--eval")), None)
    if code is not None:
        return Launch(
            kind=ProvenanceKind.CODE, launcher=launcher, program=words[0], code=code.value, arguments=seen.rest
        )
    if not seen.rest:
        return None
    return Launch(
        kind=ProvenanceKind.FILE,
        launcher=launcher,
        program=words[0],
        script=seen.rest[0],
        arguments=seen.rest[1:],
    )


def _interpreter(words: tuple[str, ...], _depth: int) -> Launch | None:
    name = "node" if _name(words[0]) == "nodejs" else _name(words[0])
    inner = words
    if name == "deno" and words[1:2] == ("run",):
        inner = (words[0], *words[2:])
    return _script(inner, name, options.INTERPRETERS[name])


def _framework(words: tuple[str, ...], _depth: int) -> Launch | None:
    """`mcp run server.py`, `fastmcp run server.py:app`: what counts is the script."""
    if words[1:2] != ("run",):
        return None
    seen = scan(words[2:], options.FRAMEWORK_RUN)
    script = seen.rest[0].partition(":")[0] if seen.rest else ""
    if not script.endswith(".py"):
        return None
    return Launch(
        kind=ProvenanceKind.FILE,
        launcher=_name(words[0]),
        program=words[0],
        script=script,
        arguments=seen.rest,
    )


def _docker(words: tuple[str, ...], _depth: int) -> Launch | None:
    seen = scan(words[1:], options.DOCKER)
    verb = seen.rest[1:] if seen.rest[:1] == ("container",) else seen.rest
    if verb[:1] != ("run",):
        return None
    inside = scan(verb[1:], options.docker_takes_value).rest
    if not inside:
        return None
    package, tag, digest = image_spec(inside[0])
    place = len(words) - len(inside)
    return Launch(
        kind=ProvenanceKind.IMAGE,
        launcher=_name(words[0]),
        program=words[0],
        package=package,
        wanted=digest or tag,
        specs=(inside[0],),
        arguments=inside[1:],
        pinned=bool(digest),
        line=words[: place + 1],
        place=place,
    )


def _last(given: Sequence[options.Given], name: str) -> str:
    return next((one.value for one in reversed(given) if one.name == name), "")


_Reader = Callable[[tuple[str, ...], int], "Launch | None"]
_LAUNCHER_SCRIPTS = frozenset(("npx", "npx-cli", "npm", "npm-cli", "pnpm", "pnpx", "yarn", "yarnpkg", "corepack"))
_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ash", "ksh"))
_READERS: dict[str, _Reader] = {
    **dict.fromkeys(("npx", "pnpx", "bunx"), _npx),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), _npm),
    "uvx": _uvx,
    "uv": _uv,
    "pipx": _pipx,
    **dict.fromkeys(("docker", "podman", "nerdctl"), _docker),
    **dict.fromkeys((*options.INTERPRETERS, "nodejs"), _interpreter),
    **dict.fromkeys(("mcp", "fastmcp"), _framework),
}


def _reader(name: str) -> _Reader | None:
    if name == "bun":
        return _npm
    return _READERS.get(name) or (_python if _PYTHON.fullmatch(name) else None)
