"""`make demo`: real MCP servers, one crib, two callers; a request's whole road, shown step by step.

Everything happens in `.demo/` beside the project: `servers/` and `node/` hold the installed servers (kept between runs;
delete the folder to install anew), `crib/` is made fresh each time. The network is needed for installing alone. Each
step prints the command that a user would type. Exits 1 when anything is not as it should be.

    install ─▶ configure ─▶ refresh ─▶ review ─▶ approve ─▶ three requests ─▶ one call runs, one is refused ─▶ traces
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

PROJECT = Path(__file__).resolve().parents[1]
FOLDER = PROJECT / ".demo"
# `mcp<2`: these servers are written for the 1.x SDK, and a release of theirs without that bound would break on 2.x.
PYTHON_SERVERS = ("mcp-server-time", "mcp-server-git", "mcp-server-fetch", "mcp<2")
NODE_SERVERS = ("@modelcontextprotocol/server-filesystem", "@modelcontextprotocol/server-memory")
COMMIT = "Describe the demo"
WIDTH = 112
"""Columns that the printed tables may use."""
Commands = Mapping[str, Sequence[str]]
"""Server id -> the command that starts it."""


class DemoError(Exception):
    """Something is not as the demo promises; its text says what."""


# --- saying -----------------------------------------------------------------------------------------------------------


def title(text: str) -> None:
    print(f"\n== {text}", flush=True)


def say(text: str) -> None:
    print(f"   {text}", flush=True)


def expect(holds: bool, promise: str) -> None:
    if not holds:
        raise DemoError(f"expected: {promise}")
    say(f"[ok] {promise}")


def show(text: str, *, max_lines: int = 14) -> None:
    """Output of a command, cut to a readable length."""
    lines = text.rstrip().splitlines()
    for line in lines[:max_lines]:
        say(f"| {line}")
    if len(lines) > max_lines:
        say(f"| … {len(lines) - max_lines} more lines")


def show_trace(table: str) -> None:
    """A trace's table with all its stages; of a long list of tools the first three."""
    n_listed = 0
    for line in table.rstrip().splitlines():
        cell = line[line.find("│", 1) + 1 :]
        if cell.startswith("   tool_id="):
            n_listed += 1
        elif not (n_listed and re.match(r"│ +│ (?!\w+: )", line)):  # neither a list nor an entry's next line
            n_listed = 0
        if n_listed <= 3:
            say(f"| {line}")
        elif n_listed == 4 and cell.startswith("   tool_id="):
            say("| │             │   and so on (--json has all)".ljust(line.rindex("│") + 2) + "│")


def run(command: Sequence[str], *, what: str, cwd: Path | None = None) -> str:
    """Standard output of a command that has to succeed."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise DemoError(f"{what} failed ({shlex.join(command)}):\n{(done.stderr or done.stdout)[-2000:]}")
    return done.stdout


# --- installing -------------------------------------------------------------------------------------------------------


def install_python_servers(folder: Path) -> Commands:
    """The servers from the Python registry, in an environment of their own, so that their SDK is not ours."""
    folder = folder / "servers"
    scripts = folder / ("Scripts" if os.name == "nt" else "bin")
    if _installed(folder, PYTHON_SERVERS):
        say(f"already there: {', '.join(PYTHON_SERVERS[:3])}")
    else:
        say(f"$ pip install {shlex.join(PYTHON_SERVERS)}    (into .demo/servers; takes a minute)")
        venv.create(folder, with_pip=True, clear=True)
        pip = [str(scripts / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        run([*pip, *PYTHON_SERVERS], what="installing the Python servers")
        _mark_installed(folder, PYTHON_SERVERS)
    names = [name for name in PYTHON_SERVERS if name.startswith("mcp-server-")]
    return {name.removeprefix("mcp-server-"): [str(scripts / name)] for name in names}


def install_node_servers(folder: Path) -> Commands:
    """The servers from npm, or none, loudly, where there is no Node."""
    folder = folder / "node"
    if not (shutil.which("node") and shutil.which("npm")):
        say("!! NODE IS NOT INSTALLED: the filesystem and memory servers are left out.")
        say("!! The demo goes on with the Python servers. With Node 18 or later it shows five servers.")
        return {}
    if _installed(folder, NODE_SERVERS):
        say(f"already there: {', '.join(NODE_SERVERS)}")
    else:
        say(f"$ npm install --ignore-scripts {shlex.join(NODE_SERVERS)}    (into .demo/node)")
        folder.mkdir(parents=True, exist_ok=True)
        npm = ["npm", "install", "--prefix", str(folder), "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
        run([*npm, *NODE_SERVERS], what="installing the npm servers")
        _mark_installed(folder, NODE_SERVERS)
    packages = folder / "node_modules"
    return {name.rsplit("-", 1)[1]: ["node", str(packages / name / "dist" / "index.js")] for name in NODE_SERVERS}


def _installed(folder: Path, wanted: Sequence[str]) -> bool:
    mark = folder / "installed.json"
    return mark.exists() and json.loads(mark.read_text("utf-8")) == _what(wanted)


def _mark_installed(folder: Path, wanted: Sequence[str]) -> None:
    (folder / "installed.json").write_text(json.dumps(_what(wanted)), "utf-8")


def _what(wanted: Sequence[str]) -> list[str]:
    """An environment moves neither to another folder nor to another Python."""
    return [*wanted, str(PROJECT), sys.version.split()[0]]


# --- the crib ---------------------------------------------------------------------------------------------------------

CALLERS: dict[str, dict[str, Any]] = {
    "developer": {
        "subject": "dana",
        "roles": ["developer"],
        "scopes": ["clock", "git.read", "git.write", "web.read", "files.read", "files.write", "memory"],
    },
    "intern": {"subject": "ira", "roles": ["intern"], "scopes": ["clock", "git.read", "files.read"]},
}

ROWS = """
# Which scope each tool needs, and what it may do: words that the servers cannot be trusted with. Later rows win.
[[tools]]
match = "time.*"
required_scopes = ["clock"]
risk = "read"

[[tools]]
match = "git.*"
required_scopes = ["git.write"]
risk = "write"

[[tools]]
match = "git.git_[sdlb]*"      # status, show, diff, log, branch
required_scopes = ["git.read"]
risk = "read"

[[tools]]
match = "git.git_commit"
examples = ["Commit the staged changes"]

[[tools]]
match = "fetch.*"
required_scopes = ["web.read"]
risk = "read"
"""

NODE_ROWS = """
[[tools]]
match = "filesystem.*"
required_scopes = ["files.write"]
risk = "write"                 # write_file says itself that it destroys; a server's word can raise a risk

[[tools]]
match = "filesystem.[rlsgd]*"  # read, list, search, get info, directory tree
required_scopes = ["files.read"]
risk = "read"

[[tools]]
match = "memory.*"
required_scopes = ["memory"]
risk = "write"
"""


def write_crib(crib: Path, commands: Commands) -> Path:
    """A fresh crib: configuration, two callers, a small repository with one change staged. Returns the repository."""
    shutil.rmtree(crib, ignore_errors=True)
    (crib / "callers").mkdir(parents=True)
    (crib / "files").mkdir()
    repository = _repository(crib / "repository")
    arguments: dict[str, tuple[dict[str, str], list[str]]] = {
        "time": ({}, ["--local-timezone", "UTC"]),
        "git": ({}, ["--repository", str(repository)]),
        "filesystem": ({}, [str(crib / "files")]),
        "memory": ({"MEMORY_FILE_PATH": str(crib / "memory.jsonl")}, []),
    }
    text = ['[crib]\nname = "demo"\n\n[identity.local]\n' + _toml(CALLERS["developer"])]
    for server_id, command in commands.items():
        env, more = arguments.get(server_id, ({}, []))
        server = {"id": server_id, "transport": "stdio", "command": [*command, *more]} | ({"env": env} if env else {})
        text.append("[[servers]]\n" + _toml(server))
    text.append(ROWS + (NODE_ROWS if "memory" in commands else ""))
    (crib / "toolcrib.toml").write_text("\n".join(text), "utf-8")
    for name, caller in CALLERS.items():
        (crib / "callers" / f"{name}.json").write_text(json.dumps(caller, indent=2), "utf-8")
    return repository


def _toml(values: Mapping[str, Any]) -> str:
    """Key and value lines. A JSON string or list of strings is valid TOML as it stands."""
    lines = []
    for name, value in values.items():
        if isinstance(value, dict):
            lines.append(f"{name} = {{ {', '.join(f'{k} = {json.dumps(v)}' for k, v in value.items())} }}")
        else:
            lines.append(f"{name} = {json.dumps(value)}")
    return "\n".join(lines) + "\n"


def _repository(folder: Path) -> Path:
    git = ["git", "-C", str(folder)]
    own = {"user.name": "demo", "user.email": "demo@toolcrib.example", "commit.gpgsign": "false", "core.hooksPath": ""}
    folder.mkdir()
    (folder / "README.md").write_text("# A small repository\n", "utf-8")
    if shutil.which("git") is None:
        raise DemoError("git is not installed; the demo makes a small repository with it")
    run([*git, "init", "--quiet"], what="git init")
    for name, value in own.items():
        run([*git, "config", name, value], what="git config")
    run([*git, "add", "."], what="git add")
    run([*git, "commit", "--quiet", "-m", "Begin"], what="git commit")
    (folder / "README.md").write_text("# A small repository\n\nThe demo commits this line.\n", "utf-8")
    run([*git, "add", "."], what="git add")
    return folder


# --- the story --------------------------------------------------------------------------------------------------------


class Console:
    """The `toolcrib` command line in one crib's folder."""

    def __init__(self, crib: Path) -> None:
        self.crib = crib
        script = Path(sys.executable).with_name("toolcrib")
        self.start = [str(script)] if script.exists() else [sys.executable, "-m", "toolcrib.cli"]

    def run(self, *arguments: str, exits: int = 0) -> str:
        """What the command says to people, which goes to both standard output and standard error."""
        done = self._done(arguments, stderr=subprocess.STDOUT)
        if done.returncode != exits:
            self._failed(arguments, done, exits)
        return done.stdout

    def json(self, *arguments: str, exits: int = 0) -> Any:
        """What the command says to programs."""
        done = self._done((*arguments, "--json"), stderr=subprocess.PIPE)
        if done.returncode != exits:
            self._failed(arguments, done, exits)
        return json.loads(done.stdout)

    def _done(self, arguments: Sequence[str], *, stderr: int) -> subprocess.CompletedProcess[str]:
        say(f"$ toolcrib {shlex.join(arguments)}")
        command = [*self.start, *arguments]
        env = os.environ | {"COLUMNS": str(WIDTH)}
        return subprocess.run(command, cwd=self.crib, env=env, stdout=subprocess.PIPE, stderr=stderr, text=True)

    def _failed(self, arguments: Sequence[str], done: subprocess.CompletedProcess[str], exits: int) -> NoReturn:
        told = f"{done.stdout}\n{done.stderr or ''}"[-2000:]
        raise DemoError(f"`toolcrib {shlex.join(arguments)}` exited {done.returncode}, expected {exits}:\n{told}")


def story(crib: Path, repository: Path, n_servers: int) -> None:
    """Refresh, review, approve; three requests; a call that runs and one that does not; the traces of all."""
    console = Console(crib)
    title("Take in what the servers offer. Nothing of it is in service yet.")
    show(console.run("refresh"))
    expect(console.json("tools")["tools"] == [], "unreviewed tools do not exist for anybody")

    title("Review the definitions, then approve them.")
    show(console.run("review", exits=1), max_lines=24)  # 1: something waits for a reviewer
    show(console.run("approve", "--all"), max_lines=4)
    known = {who: _ids(console.json("tools", *_as(who))) for who in CALLERS}
    servers = {tool_id.split(".")[0] for tool_id in known["developer"]}
    expect(len(servers) == n_servers, f"the developer reaches {len(known['developer'])} tools of {n_servers} servers")
    expect(known["intern"] < known["developer"], f"the intern reaches {len(known['intern'])} of them")

    title("Three requests, two callers: each is offered a few whole definitions, from what it may use.")
    first = _select(console, "developer", "Commit the staged changes in my repository")
    expect("git.git_commit" in _ids(first), "the developer is offered git_commit")
    second = _select(console, "intern", "Commit the staged changes in my repository")
    expect("git.git_commit" not in _ids(second), "the intern, with the same words, is not")
    third = _select(console, "intern", "Convert 16:30 in New York to the time in Tokyo")
    expect("time.convert_time" in _ids(third), "for the time of day the intern is offered convert_time")

    title("One call runs; the same call by somebody else is refused.")
    arguments = json.dumps({"repo_path": str(repository), "message": COMMIT})
    done = _call(console, "developer", arguments, exits=0)
    expect((done["code"], _log(repository)) == ("ok", [COMMIT, "Begin"]), "the developer's commit is in the repository")
    refused = _call(console, "intern", arguments, exits=1)
    expect((refused["code"], len(_log(repository))) == ("not_available", 2), "the intern is told not_available")
    expect(
        _without_trace(refused)
        == _without_trace(_call(console, "intern", arguments, tool="git.git_frobnicate", exits=1)),
        "just as for a tool that does not exist",
    )

    title("What happened, at which stage: the operator's view.")
    for answer in (first, second, third, done, refused):
        show_trace(console.run("trace", "show", answer["trace_id"]))
    show(console.run("explain", second["trace_id"], "--tool", "git.git_commit"))


def _as(who: str) -> tuple[str, str]:
    return ("--as", f"callers/{who}.json")


def _select(console: Console, who: str, task: str) -> Any:
    offer = console.json("select", task, *_as(who))
    say(f"| {offer['outcome']}: {len(offer['tools'])} tools, {offer['tokens']} tokens. {offer['message']}".rstrip())
    for tool in offer["tools"]:
        say(f"|   {tool['rank']}. {tool['tool_id']:<32} {tool['tokens']:>5} tokens")
    return offer


def _call(console: Console, who: str, arguments: str, *, exits: int, tool: str = "git.git_commit") -> Any:
    answer = console.json("call", tool, "--args", arguments, *_as(who), exits=exits)
    words = " ".join(str(block.get("text", "")) for block in answer["content"] or [])
    say(f"| {answer['code']} {words or answer.get('message', '')}".rstrip())
    return answer


def _ids(answer: Any) -> set[str]:
    return {tool["tool_id"] for tool in answer["tools"]}


def _without_trace(answer: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name != "trace_id"}


def _log(repository: Path) -> list[str]:
    """Subjects of the commits, newest first."""
    return run(["git", "-C", str(repository), "log", "--format=%s"], what="git log").split("\n")[:-1]


def how_to_connect(crib: Path) -> None:
    start = [*Console(crib).start, "-C", str(crib)]
    serve = [*start, "serve"]
    title("Point your own MCP client at this crib.")
    say("Claude Code:")
    say(f"  claude mcp add demo-crib -- {shlex.join(serve)}")
    say("Any client that reads mcpServers (Claude Desktop, Cursor, .mcp.json):")
    entry = {"mcpServers": {"demo-crib": {"command": serve[0], "args": serve[1:]}}}
    for line in json.dumps(entry, indent=2).splitlines():
        say(f"  {line}")
    say("Over HTTP, where each request shows whose it is; the key is printed once, and the developer's is made so:")
    say(f"  KEY=$({shlex.join([*start, 'key', 'create', '--from', 'callers/developer.json', '--expires', '1d'])})")
    say(f"  {shlex.join([*serve, '--http', '127.0.0.1:8765'])}    (in another terminal)")
    url = "http://127.0.0.1:8765/mcp"
    say(f'  claude mcp add --transport http demo-crib {url} --header "Authorization: Bearer $KEY"')


def main(folder: Path = FOLDER, *, installers: Sequence[Callable[[Path], Commands]] = ()) -> int:
    """0 when everything was as promised. `installers` stand in for the real ones in tests."""
    try:
        title("Install MCP servers that need no account.")
        commands: dict[str, Sequence[str]] = {}
        for install in installers or (install_python_servers, install_node_servers):
            commands |= install(folder)
        title("Write a crib: servers, who needs which scope, two callers, a small git repository.")
        repository = write_crib(folder / "crib", commands)
        say(f"{folder / 'crib' / 'toolcrib.toml'}")
        story(folder / "crib", repository, len(commands))
        how_to_connect(folder / "crib")
    except DemoError as fault:
        print(f"\nThe demo failed.\n{fault}", file=sys.stderr)
        return 1
    print("\nThe demo is done: everything was as promised.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
