"""`toolcrib serve`: this crib as an MCP gateway, over stdio or HTTP."""

from __future__ import annotations

import asyncio
import logging
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from toolcrib import __version__
from toolcrib.cli.shared import AsFile, app, caller_now, open_crib, say
from toolcrib.crib import Crib
from toolcrib.errors import ConfigError
from toolcrib.identity.refusals import RefusalLog, request_refused
from toolcrib.types import Caller, Presented

_log = logging.getLogger(__name__)


@app.command(epilog="Example: toolcrib serve --http 127.0.0.1:8765")
def serve(
    http: Annotated[str, typer.Option("--http", metavar="HOST:PORT", help="Streamable HTTP instead of stdio.")] = "",
    surface: Annotated[
        str, typer.Option("--surface", help="search: find, describe and call; all: every permitted tool.")
    ] = "search",
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", metavar="NAME", help="A host name clients use, beyond loopback; repeatable."),
    ] = None,
    as_file: AsFile = None,
) -> None:
    """Serve this crib to MCP clients, in both protocol eras.

    While it serves, it keeps the servers' lists fresh: it listens to those that announce changes, and asks again when
    [refresh] in toolcrib.toml says so. What is new or changed waits for review as after `toolcrib refresh`.

    Over HTTP, [[identity.tokens]], [[identity.jwt]] and [[identity.proxies]] in toolcrib.toml and API keys (`toolcrib
    key create`) say who may come; without any of them, on loopback only, every request is the local operator's (or
    the caller's of --as).
    """
    if surface not in ("search", "all"):
        raise ConfigError(f"--surface must be search or all, got {surface!r}")
    try:
        asyncio.run(_serve(http, surface=surface, hosts=tuple(allow_host or ()), as_file=as_file))
    except KeyboardInterrupt:
        sys.exit(0)


async def _serve(http: str, *, surface: str, hosts: tuple[str, ...], as_file: Path | None) -> None:
    # The MCP package costs most of a second to import, which every other command would pay.
    from toolcrib.server.challenge import ProtectedResource, named_servers
    from toolcrib.server.serve import serve_http
    from toolcrib.server.stdio import serve_stdio
    from toolcrib.server.surface import SurfaceKind
    from toolcrib.settings.hosts import is_loopback

    async with open_crib() as crib:
        kind = SurfaceKind(surface)
        crib.pipeline()  # what cannot serve anybody says so now, not to the first client
        crib.shadow.warm(crib.settings)
        if not http:
            await serve_stdio(
                crib,
                caller=lambda: caller_now(crib, as_file),
                surface=kind,
                version=__version__,
                watching=crib.watch,
            )
            return
        host, port = _address(http)
        alone = is_loopback(host) and not hosts
        door = _Door(crib=crib, as_file=as_file, alone=alone, open_to_anybody=not _knows_callers(crib))
        door.check()

        def describe() -> ProtectedResource:
            identity = crib.settings.identity
            issuers = [row.issuer for row in identity.jwt]
            return ProtectedResource(
                resource=identity.resource,
                authorization_servers=named_servers(identity.authorization_servers, issuers=issuers),
                required_scopes=identity.required_scopes,
            )

        await serve_http(
            crib,
            resolve_caller=door.caller,
            describe=describe,
            host=host,
            port=port,
            surface=kind,
            allowed_hosts=hosts,
            version=__version__,
            on_listening=lambda address: say(f"toolcrib: serving {crib.name} at {address}"),
            watching=crib.watch,
        )


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit():
        raise ConfigError(f"--http wants HOST:PORT, got {text!r}", hint="toolcrib serve --http 127.0.0.1:8765")
    return host.strip("[]"), int(port)


def _knows_callers(crib: Crib) -> bool:
    """Whether anybody was given something to come in with. An API key that has ended counts, too: it shuts the door."""
    identity = crib.settings.identity
    return bool(identity.tokens or identity.jwt or identity.proxies or crib.store.api_keys())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Door:
    """Who a request over HTTP is, by the configuration as it is when the request comes.

    Args:
        alone: only processes of this machine can come, under loopback's own names.
        open_to_anybody: nobody had a credential at the start; taking the last one away later opens nothing.
    """

    crib: Crib
    as_file: Path | None
    alone: bool
    open_to_anybody: bool
    refusals: RefusalLog = field(default_factory=lambda: RefusalLog(_log))

    def check(self) -> None:
        """Whether serving makes sense at all; says who comes without a credential.

        Raises:
            ConfigError: nobody could come, or anybody could.
        """
        if not self.open_to_anybody:
            if self.as_file is not None:
                hint = "leave --as out; callers come with tokens, keys or certificates of their own"
                raise ConfigError("--as does not go with callers of their own over HTTP", hint=hint)
            for fault in self.crib.unreadable_tokens():
                raise fault
        elif not self.alone:
            hint = (
                "add [[identity.tokens]] or [[identity.jwt]] to toolcrib.toml, make an API key, or listen on 127.0.0.1 "
                "without --allow-host"
            )
            raise ConfigError("others can reach this address, and no caller has a token or key", hint=hint)
        else:
            caller = caller_now(self.crib, self.as_file)
            say(f"toolcrib: no tokens or keys configured: every request from this machine is {caller.subject!r}")

    async def caller(self, presented: Presented) -> Caller | None:
        """The caller behind what a request shows, or None."""
        self.crib.pipeline()  # the configuration as it is now, or nobody comes in
        found = await self.crib.identify(presented)
        if found is not None or presented.authorization is not None:
            return found
        if self.alone and self.open_to_anybody and not _knows_callers(self.crib):
            return caller_now(self.crib, self.as_file)
        if not any(row.header.lower() in presented.headers for row in self.crib.settings.identity.proxies):
            # Whatever was shown, the crib has said what is wrong with it; of nothing it says nothing.
            self.refusals.say("it shows no credential", what=request_refused(presented.peer))
        return None
