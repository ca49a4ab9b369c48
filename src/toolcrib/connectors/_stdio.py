"""A server as a child process: JSON-RPC lines over its stdin and stdout, its stderr kept as a short tail.

Below `_session.py`; above it only the operating system. Written anew although the SDK has a stdio transport, because
that one reads a line of any length into memory and gives stderr to a file: an endless line or a chatty server would
take the whole gateway down.

    spawn ─▶ running ─▶ stdout ends, or a line too long ─▶ closed ─▶ (stdin closed, SIGTERM, SIGKILL) ─▶ gone

Invariants
1. Nothing the child writes reaches our own stdout or stderr.
2. No line longer than `max_message_bytes` and no more than `_TAIL_BYTES` of stderr is ever held.
   What is kept for people is whole lines, so that a secret in them can still be found whole and masked.
3. Once `__aexit__` is through, the child is gone, also when the closing itself is cancelled.
4. The child's environment is the SDK's short list of harmless variables plus what the operator configured.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

_CHUNK_BYTES = 64 * 1024
_TAIL_BYTES = 8 * 1024
_NOISE_BYTES = 8 * 1024
_MAX_PARSE_FAULTS = 3
_QUEUE = 256
"""Requests waiting for a child that does not read; a queue, so that a deadline never waits for a blocked pipe."""
_GRACE_S = 1.0
_LAST_WORDS_S = 0.5
_POLL_S = 0.01
_SIGKILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # Windows has no other


class StdioLink:
    """An SDK transport: an async context manager that gives the session its two streams."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        max_message_bytes: int,
        on_closed: Callable[[], None],
    ) -> None:
        self._command = command
        self.env = get_default_environment() | dict(env)
        self._cwd = cwd
        self._max_message_bytes = max_message_bytes
        self._on_closed = on_closed
        self._tail = bytearray()
        self._tasks: list[asyncio.Task[None]] = []
        self.n_messages = 0
        self.noise = ""
        self.overlong = False

    async def __aenter__(
        self,
    ) -> tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]:
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(
            *self._command, stdin=pipe, stdout=pipe, stderr=pipe, env=self.env, cwd=self._cwd, start_new_session=True
        )
        self._to_session, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, self._from_session = anyio.create_memory_object_stream[SessionMessage](_QUEUE)
        self._tasks = [asyncio.create_task(job()) for job in (self._read, self._write, self._read_stderr)]
        return received, outgoing

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._stop_child()
        finally:
            if self._process.returncode is None:
                self._signal_group(_SIGKILL)
            for task in self._tasks:
                task.cancel()
            self._to_session.close()
            self._from_session.close()
            # Nothing public closes the pipes while a grandchild holds their other ends; left open they warn at exit.
            self._process._transport.close()  # type: ignore[attr-defined]

    @property
    def pid(self) -> int | None:
        """The child's process id; None before it was started."""
        process = getattr(self, "_process", None)
        return process.pid if process is not None else None

    @property
    def exit_code(self) -> int | None:
        """The child's exit status; negative for a signal; None while it runs."""
        process = getattr(self, "_process", None)
        return process.returncode if process is not None else None

    def tail(self) -> str:
        """The last whole lines of stderr."""
        text = self._tail.decode("utf-8", "replace")
        return text.partition("\n")[2] if len(self._tail) >= _TAIL_BYTES else text

    async def last_words(self) -> str:
        """The tail once the child had a moment to finish writing it."""
        await self._exited_within(_LAST_WORDS_S)
        if self._tasks:
            await asyncio.wait(self._tasks[-1:], timeout=_LAST_WORDS_S)
        return self.tail()

    # --- the three pipes ---

    async def _read(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None
        line = bytearray()
        try:
            while chunk := await stdout.read(_CHUNK_BYTES):
                *ended, rest = chunk.split(b"\n")
                for part in ended:
                    line += part
                    if not await self._deliver(bytes(line)):
                        return
                    line.clear()
                line += rest
                if len(line) > self._max_message_bytes:
                    self.overlong = True
                    return
        finally:
            self._to_session.close()
            self._on_closed()

    async def _deliver(self, line: bytes) -> bool:
        """Whether the session still listens."""
        if len(line) > self._max_message_bytes:
            self.overlong = True
            return False
        if not line.strip():
            return True
        message = self._parse(line)
        if message is None:
            return True
        self.n_messages += 1
        try:
            await self._to_session.send(message)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return False
        return True

    def _parse(self, line: bytes) -> SessionMessage | None:
        """One message. An answer that is not JSON-RPC becomes an error for its request; other lines are noise."""
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
        except ValueError as exc:
            request_id = _answered_id(line)
            if request_id is None:
                self.noise = _noise(line)
                return None
            error = ErrorData(code=PARSE_ERROR, message=f"the answer is not valid JSON-RPC: {_what(exc)}")
            return SessionMessage(JSONRPCError(jsonrpc="2.0", id=request_id, error=error))

    async def _write(self) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        with suppress(OSError):  # the child is gone; the end of its stdout tells the session
            async for item in self._from_session:
                stdin.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                await stdin.drain()
        with suppress(OSError):
            stdin.close()

    async def _read_stderr(self) -> None:
        stderr = self._process.stderr
        assert stderr is not None
        while chunk := await stderr.read(_CHUNK_BYTES):
            self._tail += chunk
            del self._tail[:-_TAIL_BYTES]

    # --- the end ---

    async def _stop_child(self) -> None:
        """Closed stdin first, then SIGTERM, then SIGKILL, each with a moment's grace (the specification's order)."""
        stdin = self._process.stdin
        assert stdin is not None
        self._from_session.close()
        with suppress(OSError):
            stdin.close()
        if await self._exited_within(_GRACE_S):
            return
        self._signal_group(signal.SIGTERM)
        if await self._exited_within(_GRACE_S):
            return
        self._signal_group(_SIGKILL)
        await self._exited_within(_GRACE_S)

    async def _exited_within(self, seconds: float) -> bool:
        """Polls: `process.wait()` also waits for the pipes, which a grandchild may hold open."""
        end = asyncio.get_running_loop().time() + seconds
        while self._process.returncode is None:
            if asyncio.get_running_loop().time() >= end:
                return False
            await asyncio.sleep(_POLL_S)
        return True

    def _signal_group(self, number: int) -> None:
        """To the child and its children. Only while the child is not reaped: its number is then surely its own."""
        with suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, number)
            else:
                self._process.kill()


def _noise(line: bytes) -> str:
    """The line whole, or its size alone: a cut one could end in half a secret, which nothing masks any more."""
    return line.decode("utf-8", "replace") if len(line) <= _NOISE_BYTES else f"(a line of {len(line)} bytes)"


def _what(fault: ValueError) -> str:
    """What is wrong and where. Never pydantic's own text, which quotes the input with its middle cut out."""
    if not isinstance(fault, ValidationError):
        return type(fault).__name__
    errors = fault.errors(include_url=False, include_context=False, include_input=False)[:_MAX_PARSE_FAULTS]
    return "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in errors)


def _answered_id(line: bytes) -> int | str | None:
    """The id of the request that this broken answer belongs to, if it can be told."""
    try:
        message: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or not {"result", "error"} & message.keys():
        return None
    request_id = message.get("id")
    return request_id if isinstance(request_id, int | str) and not isinstance(request_id, bool) else None
