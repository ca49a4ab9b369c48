"""Which options of launchers take a value, and the reading of a command line with that knowledge.

Below `launchers.py`. An option that is not listed here is taken for one without a value.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Given:
    """One option with its value. `place`: the word that holds the value, `before`: what precedes it in that word."""

    name: str
    value: str
    place: int
    before: str


@dataclass(frozen=True, slots=True)
class Scanned:
    """Options with a value, and the words from the first that is no option on."""

    given: tuple[Given, ...]
    rest: tuple[str, ...]


TakesValue = Collection[str] | Callable[[str], bool]


def scan(words: Sequence[str], with_value: TakesValue) -> Scanned:
    """Reads options up to the first other word, or past `--`."""
    takes = with_value if callable(with_value) else with_value.__contains__
    given: list[Given] = []
    place = 0
    while place < len(words) and words[place].startswith("-") and words[place] != "-":
        word = words[place]
        place += 1
        if word == "--":
            break
        name, equals, value = word.partition("=")
        if word.startswith("--") and equals:
            given.append(Given(name, value, place - 1, name + "="))
        elif takes(word) and place < len(words):
            given.append(Given(word, words[place], place, ""))
            place += 1
        elif not word.startswith("--") and len(word) > 2 and takes(word[:2]):
            given.append(Given(word[:2], word[2:].removeprefix("="), place - 1, word[:2]))
    return Scanned(tuple(given), tuple(words[place:]))


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A program that runs another. `n_before`: its own arguments before that one's name."""

    with_value: frozenset[str] = frozenset()
    n_before: int = 0


WRAPPERS = {
    "env": Wrapper(frozenset(("-u", "--unset", "-C", "--chdir"))),
    "sudo": Wrapper(frozenset(("-u", "--user", "-g", "--group", "-C", "-D", "-h", "-p", "-r", "-t", "-T"))),
    "doas": Wrapper(frozenset(("-u", "-C"))),
    "nice": Wrapper(frozenset(("-n", "--adjustment"))),
    "ionice": Wrapper(frozenset(("-c", "-n"))),
    "timeout": Wrapper(frozenset(("-k", "--kill-after", "-s", "--signal")), n_before=1),
    "stdbuf": Wrapper(frozenset(("-i", "-o", "-e"))),
    "xvfb-run": Wrapper(frozenset(("-e", "-f", "-n", "-p", "-s", "-w"))),
    **dict.fromkeys(("nohup", "setsid", "exec", "time", "tini", "dumb-init", "catchsegv"), Wrapper()),
}

NPX = frozenset(
    ("-p", "--package", "-c", "--call", "--cache", "--registry", "--userconfig", "--prefix", "-w", "--workspace")
)
UV = frozenset(
    (
        "--from",
        "--with",
        "-w",
        "--with-editable",
        "--with-requirements",
        "--python",
        "-p",
        "--index",
        "--default-index",
        "--index-url",
        "-i",
        "--extra-index-url",
        "--find-links",
        "-f",
        "--index-strategy",
        "--keyring-provider",
        "--allow-insecure-host",
        "--cache-dir",
        "--directory",
        "--project",
        "--config-file",
        "--env-file",
        "--constraints",
        "-c",
        "--build-constraints",
        "-b",
        "--overrides",
        "--exclude-newer",
        "--prerelease",
        "--resolution",
        "--link-mode",
        "--refresh-package",
        "--upgrade-package",
        "-P",
        "--reinstall-package",
        "--color",
    )
)
UV_RUN = UV | {"-m", "--module", "--extra", "--group", "--only-group", "--no-group", "--package"}
PIPX = frozenset(("--spec", "--python", "--pip-args", "--index-url", "-i", "--with"))
DOCKER = frozenset(("--context", "-c", "--config", "-H", "--host", "-l", "--log-level", "--connection", "--url"))
FRAMEWORK_RUN = frozenset(("-t", "--transport", "--host", "--port", "-p", "--log-level", "-l", "--with"))
SCRIPT_RUNNERS = frozenset(("tsx", "ts-node"))
_NODE = frozenset(
    ("-r", "--require", "--import", "--loader", "--experimental-loader", "-C", "--conditions", "-e", "--eval")
)
INTERPRETERS = {
    "node": _NODE,
    "tsx": _NODE | {"--tsconfig"},
    "ts-node": _NODE | {"-P", "--project", "-O"},
    "deno": frozenset(("-c", "--config", "--import-map", "--lock")),
    "bun": frozenset(("-r", "--preload", "-e", "--eval", "--cwd", "--env-file")),
    "ruby": frozenset(("-r", "-I", "-e")),
    "perl": frozenset(("-I", "-M", "-e")),
    "php": frozenset(("-c", "-d")),
    "java": frozenset(("-cp", "-classpath", "--class-path", "--module-path")),
}

_DOCKER_FLAGS = frozenset(
    (
        "--detach",
        "--disable-content-trust",
        "--env-host",
        "--help",
        "--http-proxy",
        "--init",
        "--interactive",
        "--no-healthcheck",
        "--no-hosts",
        "--oom-kill-disable",
        "--privileged",
        "--publish-all",
        "--quiet",
        "--read-only",
        "--replace",
        "--rm",
        "--rmi",
        "--sig-proxy",
        "--tls-verify",
        "--tty",
        "--use-api-socket",
    )
)


def docker_takes_value(word: str) -> bool:
    """Of `docker run` most options take one, so that here the others are listed. `-it` is two without."""
    if word.startswith("--"):
        return word not in _DOCKER_FLAGS
    return len(word) == 2 and word[1] not in "ditPq"
