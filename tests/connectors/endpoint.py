"""A raw HTTP/1.1 endpoint on a loopback port: sees requests as they were sent, and answers whatever a test says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Asked:
    """One request: the target is the path and query as they were on the wire."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


Answerer = Callable[[Asked], bytes | None]
"""The whole response; None hangs until the client goes."""


@dataclass
class Endpoint:
    url: str = ""
    seen: list[Asked] = field(default_factory=list)


def response(body: bytes = b"{}", *, status: str = "200 OK", kind: str = "application/json", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"content-type: {kind}", f"content-length: {len(body)}", "connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@asynccontextmanager
async def endpoint(answerer: Answerer) -> AsyncIterator[Endpoint]:
    """Listens on a free port until the block ends."""
    made = Endpoint()
    open_now: set[asyncio.StreamWriter] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_now.add(writer)
        try:
            asked = await _read(reader)
            made.seen.append(asked)
            answer = answerer(asked)
            if answer is None:
                await reader.read()
            else:
                writer.write(answer)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            open_now.discard(writer)
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield made
        for writer in list(open_now):
            writer.close()


async def _read(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    method, target, _version = first.split(" ")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return Asked(method, target, headers, await reader.readexactly(int(headers.get("content-length", 0))))
