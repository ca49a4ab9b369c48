"""One live MCP session, run in a background task of its own.

Above it `mcp.py`; below it the SDK's `Client` over `_stdio.py` or `_http.py`. The task exists because the SDK's cancel
scopes must be entered and left by the same task, while calls come from any; callers only send through the session.

    new ─▶ starting ─▶ open ─▶ ended
              └── start_timeout_s passed, the server failed ─▶ ended

Invariants
1. `started` gives an open session or raises; it never waits longer than `start_timeout_s` from the beginning.
2. An ended session never comes back.
3. Text in errors holds no configured secret, and of a URL only scheme, host and path.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import shutil
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from urllib.parse import urlsplit

from mcp import Client, ClientSession, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CONNECTION_CLOSED, Implementation, ToolListChangedNotification

from toolcrib.connectors._http import BoundedClient, Exchange, watched
from toolcrib.connectors._stdio import StdioLink
from toolcrib.connectors.masking import masker_for
from toolcrib.connectors.provenance.observed import observe
from toolcrib.errors import ConnectorError, ConnectorProtocolError, ConnectorTimeoutError
from toolcrib.types import Provenance, ServerSpec, Transport

_MIN_MESSAGE_BYTES = 16 * 1024 * 1024
"""A small limit on listings must not cut the answers of calls."""
_CLOSE_S = 10.0
_STREAM_S = 2.0
"""A server may be slow to answer that the stream is open; one without sessions is not asked for a stream."""
_BAD_CREDENTIAL = (401, 403)
_TAIL_LINES = 10
_TAIL_LINE_CHARS = 300
_NOISE_CHARS = 200


class Session:
    """Starts at once. Build it inside a running event loop."""

    def __init__(self, spec: ServerSpec, *, env: Mapping[str, str], headers: Mapping[str, str], root: Path) -> None:
        self._spec = spec
        self._env = env
        self._headers = headers
        self._root = root
        self.mask = masker_for(spec, env=env, headers=headers)
        self._link: StdioLink | None = None
        self._http: BoundedClient | None = None
        self._observed: asyncio.Task[Provenance] | None = None
        self._exchange = Exchange(handshake=True)
        self._client: ClientSession | None = None
        self._failure: ConnectorError | None = None
        self._ready = asyncio.Event()
        self._stop = asyncio.Event()
        self._on_changed: Callable[[], None] = lambda: None
        self._on_lost: Callable[[], None] = lambda: None
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.create_task(self._run(), name=f"toolcrib server {spec.server_id}")
        self._timer = self._loop.call_later(spec.start_timeout_s, self._expire)

    @property
    def ended(self) -> bool:
        """Whether nothing can be sent any more."""
        return self._stop.is_set() or self._task.done()

    @property
    def credential_refused(self) -> bool:
        """Whether the session could not be opened because the server does not take the credential."""
        return self._failure is not None and self._exchange.status in _BAD_CREDENTIAL

    async def started(self) -> ClientSession:
        """The open session.

        Raises:
            ConnectorError: it could not be opened, or has ended.
        """
        await self._ready.wait()
        if self._failure is not None:
            raise self._failure
        if self._client is None or self.ended:
            raise self.ended_error()
        return self._client

    def listen(self, on_changed: Callable[[], None], on_lost: Callable[[], None]) -> None:
        """From now on, say when the server announces that its list changed, and when it can announce nothing more."""
        self._on_changed, self._on_lost = on_changed, on_lost
        self._task.add_done_callback(lambda _: on_lost())

    async def hears(self) -> bool:
        """Whether what the server says unasked can reach us: always over stdio, over HTTP by a standing stream.

        The stream opens a moment after the session; a list is taken after it, so that no change falls in between.
        """
        if self._http is None:
            return True
        with suppress(TimeoutError):
            async with asyncio.timeout(_STREAM_S):
                await self._http.standing_answered.wait()
        if self._http.standing == "failed":
            self._on_lost()
        self._http.counted_on = self._http.standing not in ("none", "refused")
        return self._http.counted_on

    def observe(self) -> None:
        """Begins to find out what runs behind the open session, beside whatever else is done."""
        if self._observed is not None:
            return
        self._observed = asyncio.create_task(
            observe(
                self._spec,
                env=self._link.env if self._link is not None else {},
                root=self._root,
                mask=self.mask,
                pid=self._link.pid if self._link is not None else None,
                certificate=self._http.certificate if self._http is not None else b"",
            )
        )

    async def observed(self) -> Provenance:
        """What runs behind the open session, or answers for it. Found out once; nobody who waits can end it."""
        self.observe()
        assert self._observed is not None
        if not self._observed.done():
            await asyncio.wait([self._observed])
        if self._observed.cancelled():
            return Provenance(note="the session ended before it could be told")
        return self._observed.result()

    async def aclose(self) -> None:
        """Ends the session and waits until its process or connection is gone."""
        self._stop.set()
        if self._loop is not asyncio.get_running_loop():
            return  # the loop it lived in has ended and took its tasks along
        if self._observed is not None:
            self._observed.cancel()
        if not self._ready.is_set():
            self._task.cancel()
        _, late = await asyncio.wait([self._task], timeout=_CLOSE_S)
        for task in late:
            task.cancel()

    # --- errors, worded where the server is known ---

    def timeout_error(self, doing: str) -> ConnectorTimeoutError:
        """That the server's own deadline passed, with what it last wrote."""
        return ConnectorTimeoutError(
            f"did not {doing} within {self._spec.start_timeout_s:g} s",
            where=self._where,
            hint=self._hint(
                f"raise start_timeout_s for server {self._spec.server_id!r} if its start is slow", self._tail()
            ),
        )

    def ended_error(self) -> ConnectorError:
        """That the connection is lost, with the reason when it is known."""
        if self._link is not None and self._link.overlong:
            return ConnectorProtocolError(
                f"sent a single message of more than {self._max_message_bytes} bytes", where=self._where
            )
        return ConnectorError("ended the connection", where=self._where, hint=self._hint("", self._tail()))

    @property
    def _where(self) -> str:
        return f"server {self._spec.server_id!r}"

    @property
    def _max_message_bytes(self) -> int:
        return max(self._spec.max_list_bytes, _MIN_MESSAGE_BYTES)

    def _tail(self) -> str:
        return self._link.tail() if self._link is not None else ""

    def _hint(self, advice: str, tail: str) -> str:
        lines = [line.rstrip()[:_TAIL_LINE_CHARS] for line in self.mask(tail).splitlines() if line.strip()]
        parts = [advice] if advice else []
        if self._link is not None and self._link.noise:
            parts.append(f"its stdout holds text that is not JSON-RPC: {self.mask(self._link.noise)[:_NOISE_CHARS]!r}")
        if lines:
            parts.append("its last lines on stderr:\n" + "\n".join(f"     {line}" for line in lines[-_TAIL_LINES:]))
        return "; ".join(parts)

    # --- the background task ---

    def _expire(self) -> None:
        """The start took too long. Told at once; taking the server down may take a moment more."""
        self._fail(self.timeout_error("start"))
        self._task.cancel()

    def _fail(self, error: ConnectorError) -> None:
        if self._failure is None and self._client is None:
            self._failure = error
        self._stop.set()
        self._ready.set()

    async def _run(self) -> None:
        try:
            async with AsyncExitStack() as stack:
                client = await self._connect(stack)
                self._timer.cancel()
                self._client = client.session
                self._ready.set()
                await self._stop.wait()
        # Everything that the SDK or the operating system may raise, single or in groups, is this server's failure.
        except (Exception, BaseExceptionGroup) as exc:  # noqa: BLE001
            self._fail(await self._explain(_first_cause(exc)))
        finally:
            self._timer.cancel()
            self._fail(ConnectorError("was closed while it started", where=self._where))

    async def _connect(self, stack: AsyncExitStack) -> Client:
        info = Implementation(name="toolcrib", version=_version())
        if self._spec.transport is Transport.HTTP:
            http = BoundedClient(
                headers=self._headers,
                max_body_bytes=self._max_message_bytes,
                on_stream_end=lambda: self._on_lost(),
            )
            self._http = http
            await stack.enter_async_context(http)
            wire = streamable_http_client(self._spec.url, http_client=http, max_sse_event_size=self._max_message_bytes)
            with watched(self._exchange):
                return await stack.enter_async_context(
                    Client(wire, client_info=info, cache=None, message_handler=self._heard)
                )
        try:
            return await stack.enter_async_context(
                Client(self._new_link(), client_info=info, cache=None, message_handler=self._heard)
            )
        except (MCPError, BaseExceptionGroup) as exc:
            if not self._died_of_the_probe(_first_cause(exc)):
                raise
        # Some older servers exit when the first message is not `initialize`. No tool was called yet: begin again.
        return await stack.enter_async_context(
            Client(self._new_link(), client_info=info, cache=None, message_handler=self._heard, mode="legacy")
        )

    async def _heard(self, message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._on_changed()

    def _new_link(self) -> StdioLink:
        self._link = StdioLink(
            self._spec.command,
            env=self._env,
            cwd=self._root / Path(self._spec.cwd).expanduser(),
            max_message_bytes=self._max_message_bytes,
            on_closed=self._on_closed,
        )
        return self._link

    def _on_closed(self) -> None:
        if self._client is not None:
            self._stop.set()

    def _died_of_the_probe(self, cause: BaseException) -> bool:
        assert self._link is not None
        closed = isinstance(cause, MCPError) and cause.error.code == CONNECTION_CLOSED
        return closed and self._link.n_messages == 0 and not self._link.overlong

    async def _explain(self, cause: BaseException) -> ConnectorError:
        if isinstance(cause, ConnectorError):
            return cause
        if self._spec.transport is Transport.HTTP:
            return self._explain_http(cause)
        if isinstance(cause, OSError):
            return self._explain_spawn(cause)
        if self._link is not None and self._link.overlong:
            return self.ended_error()
        tail = await self._link.last_words() if self._link is not None else ""
        code = self._link.exit_code if self._link is not None else None
        if isinstance(cause, MCPError) and cause.error.code == CONNECTION_CLOSED:
            how = "closed its stdout" if code is None else f"exited with code {code}"
            advice = "run its command by hand to see why" if not tail else ""
            return ConnectorError(f"{how} while it started", where=self._where, hint=self._hint(advice, tail))
        return ConnectorProtocolError(
            f"could not agree on a protocol: {self._worded(cause)}", where=self._where, hint=self._hint("", tail)
        )

    def _explain_spawn(self, cause: OSError) -> ConnectorError:
        cwd = self._root / Path(self._spec.cwd).expanduser()
        command = self._spec.command[0] if self._spec.command else ""
        if not cwd.is_dir():
            return ConnectorError(f"its directory {str(cwd)!r} does not exist", where=self._where, hint="check `cwd`")
        is_name = Path(command).name == command
        is_missing = is_name and shutil.which(command, path=self._env.get("PATH")) is None
        why = "there is no such program on PATH" if is_missing else self._worded(cause.strerror or cause)
        return ConnectorError(
            f"could not start {command!r}: {why}",
            where=self._where,
            hint="check `command`; the server gets PATH from this process and `env` from the configuration",
        )

    def _explain_http(self, cause: BaseException) -> ConnectorError:
        seen = self._exchange
        url = _public_url(self._spec.url)
        if seen.fault:
            return ConnectorError(
                f"could not be reached at {url}: {self._worded(seen.fault)}", where=self._where, hint="check `url`"
            )
        if seen.status in _BAD_CREDENTIAL:
            return ConnectorError(
                f"refused the credentials (HTTP {seen.status}) at {url}",
                where=self._where,
                hint="check `headers`; Toolcrib sends only what is configured there",
            )
        if seen.status is not None and seen.status >= 400:
            return ConnectorError(
                f"answered HTTP {seen.status} at {url}",
                where=self._where,
                hint="check `url`; it must be a streamable HTTP endpoint (the older HTTP+SSE transport is not spoken)",
            )
        return ConnectorProtocolError(
            f"could not agree on a protocol at {url}: {self._worded(cause)}", where=self._where
        )

    def _worded(self, cause: object) -> str:
        return self.mask(str(cause) or type(cause).__name__)[:500]


def _first_cause(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _public_url(url: str) -> str:
    """Scheme, host and path; the rest may carry credentials."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _version() -> str:
    try:
        return importlib.metadata.version("toolcrib")
    except importlib.metadata.PackageNotFoundError:
        return "0"
