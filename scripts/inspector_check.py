"""Puts the MCP Inspector, a client we did not write, before `toolcrib serve`: HTTP and stdio, both protocol eras.

    python scripts/inspector_check.py --toolcrib .venv/bin/toolcrib -C examples/freight [--task TEXT] [--scratch DIR]

Needs npm and a network to install from. The crib in DIR must be ready to serve (refreshed, approved) and let the local
operator in. Node 22 and the Inspector go into the scratch folder, a temporary one unless one is named; naming one saves
installing again. Exit 0 when every check passed, 1 when one failed, 2 when the check itself could not be set up.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
NODE = "node@22"
ERAS = ("modern", "legacy")
META_TOOLS = ["find_tools", "describe_tools", "call_tool"]
TOOL_NOT_FOUND = 5
"""The Inspector's exit code for a tool that the server does not list."""
ENVIRONMENT = {**os.environ, "MCP_INSPECTOR_SECRET_STORE": "memory"}
STEP_TIMEOUT_S = 180
START_TIMEOUT_S = 60


class CheckError(Exception):
    """A check that did not hold; its text says which and what came instead."""


def main() -> int:
    options = arguments()
    toolcrib = shutil.which(options.toolcrib)
    if toolcrib is None or shutil.which("npm") is None:
        print(f"not found: {options.toolcrib if toolcrib is None else 'npm'}", file=sys.stderr)
        return 2
    serve = [str(Path(toolcrib).absolute()), "-C", str(options.directory.absolute()), "serve"]
    with scratch_folder(options.scratch) as scratch:
        try:
            inspector = installed(scratch)
        except subprocess.CalledProcessError as fault:
            print(f"cannot install the Inspector: {fault}\n{fault.stderr}", file=sys.stderr)
            return 2
        failures = [*over_http(inspector, serve, options.task), *over_stdio(inspector, serve, options.task, scratch)]
    print(f"{len(failures)} failed" if failures else "all passed")
    return 1 if failures else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--toolcrib", default="toolcrib", help="the command to check")
    parser.add_argument("-C", "--directory", type=Path, default=Path(), help="the crib's folder")
    parser.add_argument("--task", default="what time is it", help="what find_tools is asked; something must fit")
    parser.add_argument("--scratch", type=Path, help="where Node and the Inspector go")
    return parser.parse_args()


# --- the checks


def over_http(inspector: Sequence[str], serve: Sequence[str], task: str) -> Iterator[str]:
    """Descriptions of what failed."""
    with serving(serve) as url:
        for era in ERAS:
            reach = [*inspector, url, "--transport", "http", "--protocol-era", era]
            yield from checks(f"http {era}", reach, task)


def over_stdio(inspector: Sequence[str], serve: Sequence[str], task: str, scratch: Path) -> Iterator[str]:
    """As over HTTP. The server comes from a configuration file: its own options would be taken for the Inspector's."""
    config = scratch / "stdio.json"
    config.write_text(json.dumps({"mcpServers": {"crib": {"command": serve[0], "args": list(serve[1:])}}}))
    for era in ERAS:
        reach = [*inspector, "--config", str(config), "--server", "crib", "--protocol-era", era]
        yield from checks(f"stdio {era}", reach, task)


def checks(label: str, reach: Sequence[str], task: str) -> Iterator[str]:
    """Run each check, print how it went, and give the failed ones."""
    for name, check in (("lists", lists), ("finds", finds), ("describes", describes), ("refuses", refuses)):
        try:
            print(f"ok    {label}: {name}: {check(reach, task)}")
        except CheckError as fault:
            print(f"FAIL  {label}: {name}: {fault}")
            yield f"{label}: {name}"


def lists(reach: Sequence[str], _task: str) -> str:
    names = [tool["name"] for tool in asked(reach, "tools/list")["tools"]]
    if names[:3] != META_TOOLS:
        raise CheckError(f"the list begins {names[:3]}")
    if asked(reach, "tools/list")["tools"] != asked(reach, "tools/list")["tools"]:
        raise CheckError("two lists differ")
    return f"{len(names)} tools"


def finds(reach: Sequence[str], task: str) -> str:
    answer = found(reach, task)
    if answer["outcome"] != "selected" or not answer["tools"]:
        raise CheckError(f"{answer['outcome']}: {answer['message']}; give a --task that some tool of this crib fits")
    return ", ".join(tool["name"] for tool in answer["tools"])


def describes(reach: Sequence[str], task: str) -> str:
    names = [tool["name"] for tool in found(reach, task)["tools"]]
    entries = called(reach, "describe_tools", {"names": [*names, "nowhere"]})["structuredContent"]["tools"]
    codes = [entry["code"] for entry in entries]
    if codes != ["ok"] * len(names) + ["not_available"]:
        raise CheckError(f"codes {codes}")
    return f"{len(names)} whole definitions"


def refuses(reach: Sequence[str], _task: str) -> str:
    refused = called(reach, "call_tool", {"name": "nowhere"})
    if not refused.get("isError") or refused["structuredContent"]["code"] != "not_available":
        raise CheckError(f"call_tool of a tool that is not there gave {refused}")
    done = run([*reach, *call_options("nowhere", {})])
    if done.returncode != TOOL_NOT_FOUND:
        raise CheckError(f"a direct call of a tool that is not there ended with {done.returncode}: {done.stderr}")
    return "what is not there"


# --- the Inspector


def found(reach: Sequence[str], task: str) -> dict[str, Any]:
    answer = called(reach, "find_tools", {"task": task})
    body: dict[str, Any] = answer["structuredContent"]
    if answer.get("isError"):
        raise CheckError(f"find_tools was refused: {body}")
    if json.loads(answer["content"][0]["text"]) != body:
        raise CheckError("text and structure differ")
    return body


def called(reach: Sequence[str], tool: str, given: dict[str, Any]) -> dict[str, Any]:
    return result_of([*reach, *call_options(tool, given)])


def asked(reach: Sequence[str], method: str) -> dict[str, Any]:
    return result_of([*reach, "--method", method, "--format", "json", "-q"])


def call_options(tool: str, given: dict[str, Any]) -> list[str]:
    options = ["--method", "tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(given)]
    return [*options, "--format", "json", "-q"]


def result_of(command: Sequence[str]) -> dict[str, Any]:
    done = run(command)
    try:
        result: dict[str, Any] = json.loads(done.stdout)["result"]
    except (ValueError, KeyError):
        raise CheckError(f"exit {done.returncode}: {done.stdout}{done.stderr}") from None
    return result


def run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=STEP_TIMEOUT_S, env=ENVIRONMENT)
    except subprocess.TimeoutExpired:
        raise CheckError(f"no answer within {STEP_TIMEOUT_S} s") from None


def installed(scratch: Path) -> list[str]:
    """The command that starts the Inspector under Node 22; installs both where they are missing."""
    node = scratch / "node_modules" / "node" / "bin" / "node"
    launcher = scratch / "node_modules" / ".bin" / "mcp-inspector"
    quiet = ["--no-audit", "--no-fund", "--loglevel=error"]
    if not launcher.exists():
        npm(["install", "--ignore-scripts", *quiet, INSPECTOR], scratch)
    if not node.exists():
        npm(["install", *quiet, NODE], scratch)  # its script fetches the binary
    return [str(node), str(launcher), "--cli"]


def npm(words: Sequence[str], scratch: Path) -> None:
    (scratch / "package.json").touch()
    if not (scratch / "package.json").read_text():
        (scratch / "package.json").write_text('{"private": true}')
    subprocess.run(["npm", *words], cwd=scratch, check=True, capture_output=True, text=True)


# --- the server


@contextmanager
def serving(serve: Sequence[str]) -> Iterator[str]:
    """`toolcrib serve --http` on a free port; its URL."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    process = subprocess.Popen([*serve, "--http", f"127.0.0.1:{port}"], stdin=subprocess.DEVNULL)
    try:
        wait_until_healthy(f"http://127.0.0.1:{port}/healthz", process)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait(timeout=30)


def wait_until_healthy(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise SystemExit(f"the server did not start (exit {process.poll()})")


@contextmanager
def scratch_folder(named: Path | None) -> Iterator[Path]:
    if named is None:
        with tempfile.TemporaryDirectory(prefix="inspector-") as made:
            yield Path(made)
        return
    named.mkdir(parents=True, exist_ok=True)
    yield named.absolute()


if __name__ == "__main__":
    sys.exit(main())
