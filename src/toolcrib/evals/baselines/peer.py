"""Baselines from other people's packages, each in an interpreter of its own, so that none of them runs in this process.

    peer.py  <- JSON lines ->  worker.py (the other interpreter)  ─▶ peers/NAME_search.py ─▶ the package

The interpreter is the one in `TOOLCRIB_PEERS_PYTHON`, else this one. A peer's process gets the paths it needs and no
other variable: keys in the environment are none of its business.

Invariants
1. A peer sees definitions and tasks. Tool ids stay here: it gets names, told apart where they repeat.
2. What it could not take is said in `about`; what breaks it is an error that names the package, never a silent zero.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import weakref
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from toolcrib.errors import ConfigError, RetrievalError
from toolcrib.selection.tokens import estimate_tokens
from toolcrib.types import Tool

VARIABLE = "TOOLCRIB_PEERS_PYTHON"
_HERE = Path(__file__).parent
_WORKER = _HERE / "worker.py"
_OPEN_TIMEOUT_S = 3_600.0
_SEARCH_TIMEOUT_S = 120.0
_PROBE_TIMEOUT_S = 120.0
_KEPT = ("PATH", "HOME", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "LANG", "LC_ALL", "OMP_NUM_THREADS")
_OFFLINE = {
    "PYTHONUTF8": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "LANGSMITH_TRACING": "false",
    "FASTMCP_CHECK_FOR_UPDATES": "off",
}


def peers_python() -> str:
    """The interpreter that peers run in."""
    return os.environ.get(VARIABLE) or sys.executable


def _environment() -> dict[str, str]:
    return {name: os.environ[name] for name in _KEPT if name in os.environ} | _OFFLINE


def installed(distributions: Sequence[str], *, python: str) -> Mapping[str, str | None]:
    """The version of each distribution in that interpreter, None where it is absent.

    Raises:
        ConfigError: the interpreter cannot be run.
    """
    command = [python, "-P", str(_WORKER), "--versions", ",".join(distributions)]
    try:
        done = subprocess.run(
            command, env=_environment(), capture_output=True, check=True, timeout=_PROBE_TIMEOUT_S, text=True
        )
        found = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as fault:
        raise ConfigError(
            f"this interpreter cannot be run: {fault}", where=python, hint=f"{VARIABLE} names a Python of 3.11 or later"
        ) from fault
    return {name: found.get(name) for name in distributions}


@dataclass(slots=True, kw_only=True)
class Peer:
    """A package as a baseline.

    Args:
        said: what is measured of it, for people.
        distributions: that must be installed, the first one being the peer itself.
        adapter: the file in `peers/`, or any other path.
        default_k: how many tools it gives by itself.
        options: handed to the adapter.
    """

    name: str
    said: str
    distributions: Sequence[str]
    adapter: Path
    default_k: int
    options: Mapping[str, str] = field(default_factory=dict)
    python: str = ""
    versions: Mapping[str, str | None] = field(default_factory=dict)
    overhead_tokens: int = 0
    _left_out: dict[str, str] = field(default_factory=dict)

    @property
    def about(self) -> str:
        """What it is, in which version, and what it had to leave out so far."""
        parts = [f"{name} {version}" for name, version in self.versions.items() if version]
        told = f"{self.said} ({', '.join(parts)})" if parts else self.said
        if self._left_out:
            tool_id, why = next(iter(self._left_out.items()))
            told += f"; {len(self._left_out)} tools break it and were left out, {tool_id} for one: {why}"
        return told

    @property
    def to_install(self) -> str:
        """The line that brings it."""
        return f"{self.python or peers_python()} -m pip install {' '.join(self.distributions)}"

    def open(self, tools: Sequence[Tool]) -> OpenedPeer:
        """The peer over these tools, asked once already, so that no index is left to be built.

        Raises:
            RetrievalError: the peer failed; it says with what.
        """
        told = {name: tool.tool_id for name, tool in zip(_distinct(tools), tools, strict=True)}
        worker = _Worker([self.python or peers_python(), "-P", str(_WORKER), str(self.adapter)], name=self.name)
        answer = worker.ask(
            {"do": "open", "tools": list(map(_row, told, tools)), "options": dict(self.options)},
            timeout_s=_OPEN_TIMEOUT_S,
        )
        self._left_out |= {told[name]: why for name, why in answer["left_out"]}
        self.overhead_tokens = sum(map(estimate_tokens, answer["overhead"]))
        return OpenedPeer(worker, told, open_cpu_s=answer["cpu_s"])


def _distinct(tools: Sequence[Tool]) -> list[str]:
    """Names, the second and later ones of a name with a mark behind that no task contains."""
    taken = {tool.name for tool in tools}
    seen: Counter[str] = Counter()
    names = []
    for tool in tools:
        seen[tool.name] += 1
        name = tool.name
        while seen[tool.name] > 1 and name in taken:
            name = f"{tool.name}_dup{seen[tool.name]}"
            seen[tool.name] += name in taken
        taken.add(name)
        names.append(name)
    return names


def _row(name: str, tool: Tool) -> dict[str, Any]:
    return {"id": name, "name": tool.name, "description": tool.description, "input_schema": dict(tool.input_schema)}


class OpenedPeer:
    """A peer's process, ready to be asked; it ends with this object, or by `close`.

    `open_cpu_s`, `search_cpu_s`: CPU seconds that it spent in its process, on opening and on all searches so far.
    """

    def __init__(self, worker: _Worker, told: Mapping[str, str], *, open_cpu_s: float) -> None:
        self._worker = worker
        self._told = told
        self.open_cpu_s = open_cpu_s
        self.search_cpu_s = 0.0

    def search(self, task: str, k: int) -> Sequence[str]:
        answer = self._worker.ask({"do": "search", "task": task, "k": k}, timeout_s=_SEARCH_TIMEOUT_S)
        self.search_cpu_s += answer["cpu_s"]
        return [self._told[name] for name in answer["found"] if name in self._told]

    def close(self) -> None:
        """End the process; may be called twice."""
        self._worker.close()


class _Worker:
    """A process that answers a line with a line."""

    def __init__(self, command: Sequence[str], *, name: str) -> None:
        self._name = name
        self._command = command
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `_end`
        try:
            self._process = subprocess.Popen(
                command,
                env=_environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._said,
                encoding="utf-8",
            )
        except OSError as fault:
            self._said.close()
            raise RetrievalError(f"the interpreter cannot be run: {fault}", where=command[0]) from fault
        assert self._process.stdout is not None
        self._answers: queue.Queue[str] = queue.Queue()
        reader = threading.Thread(target=_read, args=(self._process.stdout, self._answers), daemon=True)
        reader.start()
        self._end = weakref.finalize(self, _end, self._process, reader, self._said)

    def ask(self, request: Mapping[str, Any], *, timeout_s: float) -> dict[str, Any]:
        """The answer.

        Raises:
            RetrievalError: it failed, ended, or did not answer in time. The process is gone then, or useless.
        """
        if not self._end.alive:
            raise self._fault("it was closed")
        stdin = self._process.stdin
        assert stdin is not None
        with contextlib.suppress(BrokenPipeError):
            stdin.write(json.dumps(request) + "\n")
            stdin.flush()
        try:
            line = self._answers.get(timeout=timeout_s)
        except queue.Empty:
            self.close()
            raise self._fault(f"no answer within {timeout_s:g} s") from None
        if not line:
            said = self._last_words()
            self.close()
            raise self._fault(f"its process ended: {said}" if said else "its process ended")
        answer: dict[str, Any] = json.loads(line)
        if "failed" in answer:
            raise self._fault(str(answer["failed"]))
        return answer

    def close(self) -> None:
        self._end()

    def _last_words(self) -> str:
        self._process.wait()
        self._said.seek(0)
        lines = self._said.read()[-4_000:].decode("utf-8", "replace").strip().splitlines()
        return lines[-1].strip() if lines else ""

    def _fault(self, what: str) -> RetrievalError:
        return RetrievalError(what, where=f"{self._name} in {self._command[0]}")


def _read(stream: IO[str], answers: queue.Queue[str]) -> None:
    for line in stream:
        answers.put(line)
    answers.put("")


def _end(process: subprocess.Popen[str], reader: threading.Thread, said: IO[bytes]) -> None:
    process.kill()
    process.wait()
    reader.join()
    for stream in (process.stdin, process.stdout, said):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
