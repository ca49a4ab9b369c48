"""Who asks: whoever shows a credential that the configuration or the store knows, as both are now.

Floor 4. Above: `crib.py`, which looks at the configuration before it asks here. Below: `identity/`.

    certificate header ─▶ trusted proxy ─┐
    Bearer ─▶ token table ─▶ tck_…: key ─▶ a.b.c: JWT ─┴─▶ Caller ─▶ still in force? not revoked? ─▶ somebody

Invariants
1. Nothing is remembered but what configuration, token files and key sets say, and that only as long as they stay as
   they are: what was taken away counts on the next request. Revocations are read from the store every time.
2. Nobody is nobody: no value but a `Caller` or `LOCAL` stands for somebody (I2, I7). What goes wrong in finding out
   makes nobody, too.
3. A caller stays somebody only as long as what it came in with stands for exactly this caller (I3).
4. A token, key set or proxy that cannot be used locks its own callers out, and nobody else (I12).
5. Reasons go to the operator's log, never to whoever knocked, and hold no credential.
"""

from __future__ import annotations

import ipaddress
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from toolcrib.errors import ConfigError, PolicyError, ToolcribError
from toolcrib.identity.callers import caller_from_mapping, local_operator
from toolcrib.identity.issuers import KeySource, TokenIssuer
from toolcrib.identity.keys import caller_of_key, key_fault, key_id_of
from toolcrib.identity.proxy import TrustedProxy, certified
from toolcrib.identity.refused import Refused
from toolcrib.identity.standing import revoked
from toolcrib.identity.tokens import TokenTable
from toolcrib.settings import JwtSettings, ProxySettings, Settings, reveal
from toolcrib.settings.references import parse_reference
from toolcrib.store.protocol import Store
from toolcrib.types import LOCAL, Caller, Credential, JsonObject, Presented, SecretRef

_KEY_PREFIX = "tck_"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Door:
    """Everybody whom the configuration lets in, as of `mark`. `faults`: why some of it cannot be used."""

    mark: tuple[object, ...]
    tokens: TokenTable
    issuers: tuple[TokenIssuer, ...]
    agents: tuple[Caller, ...]
    proxies: tuple[TrustedProxy, ...]
    named: frozenset[tuple[str, Caller]]
    """The kind of credential, and each caller that one of this kind stands for by configuration alone."""
    faults: tuple[ConfigError, ...]


class Callers:
    """Callers under the settings that `settings` gives at the moment of asking.

    Args:
        now: seconds since 1970, UTC; for tests.
    """

    def __init__(self, settings: Callable[[], Settings], store: Store, *, now: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._store = store
        self._now = now
        self._door: _Door | None = None
        self._key_sources: dict[tuple[object, ...], KeySource] = {}

    # --- who is it

    async def identify(self, presented: Presented) -> Caller | None:
        """Who sent a request over HTTP that shows this, or None: nobody. The reason goes to the log."""
        try:
            return self._let_in(await self._shown_by(presented))
        except Exception as fault:  # noqa: BLE001 - whatever it is, nobody comes in
            _say_nobody(fault if isinstance(fault, ToolcribError) else type(fault).__name__)
            return None

    def bearer(self, token: str) -> Caller | None:
        """The caller that a configured bearer token or an API key stands for, or None. Knows no JWTs: see `identify`.

        Raises:
            ToolcribError: the settings or the store cannot be read.
        """
        return self._let_in(self._holder(token))

    def established(self, caller: object) -> Caller:
        """The caller of a request, asked before every verdict. Checked, since callers from untyped code come here, too.

        Raises:
            PolicyError: nobody was established, or not any more: expired, revoked, or taken out of configuration.
            StoreError: the store is lost, and with it the list of those revoked.
        """
        if caller is LOCAL:
            caller = self.local()
        if not isinstance(caller, Caller):
            hint = "leave `caller` out for the local operator; a token that stands for nobody must end the request"
            raise PolicyError(f"no caller was established, got {caller!r}", hint=hint)
        fault = self._fallen(caller)
        if fault:
            raise PolicyError(fault)
        return caller

    def local(self) -> Caller:
        """The local operator."""
        settings = self._settings()
        return local_operator(
            settings.identity.local,
            environment=settings.crib.environment,
            region=settings.crib.region,
            where=f"{settings.path} [identity.local]",
        )

    def described(self, fields: JsonObject, *, where: str) -> Caller:
        """The caller that these fields describe; environment and region are the crib's where they name none."""
        settings = self._settings()
        return caller_from_mapping(fields, **self._place(), where=f"{settings.path} {where}")

    def unreadable_tokens(self) -> tuple[ConfigError, ...]:
        """Why configured tokens, issuers, agents or proxies cannot be used now."""
        return self._built(()).faults

    # --- credentials

    async def _shown_by(self, presented: Presented) -> Caller | Refused | None:
        """Whoever this shows; None when it shows nothing at all."""
        door = self._current()
        found = certified(presented, door.proxies)
        if found is not None or presented.authorization is None:
            return found
        scheme, _, token = presented.authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return Refused("the Authorization header holds no bearer token")
        holder = self._holder(token)
        if isinstance(holder, Caller) or token.startswith(_KEY_PREFIX) or token.count(".") != 2 or not door.issuers:
            return holder
        # Most commands know no issuers, and the cryptography takes a tenth of a second to import.
        from toolcrib.identity.jwt import caller_of_token

        return await caller_of_token(token, door.issuers, agents=door.agents, **self._place())

    def _holder(self, token: str) -> Caller | Refused:
        """Who holds this token, by the table or, if it looks like an API key, by the store."""
        found = self._current().tokens.resolve(token)
        if found is not None:
            return found
        key_id = key_id_of(token)
        if not key_id:
            return Refused("no such bearer token")
        return caller_of_key(token, self._store.api_key(key_id), now=self._time(), **self._place())

    def _let_in(self, found: Caller | Refused | None) -> Caller | None:
        if found is None:
            return None
        reason = found.reason if isinstance(found, Refused) else self._fallen(found)
        if reason or isinstance(found, Refused):
            _say_nobody(reason)
            return None
        return found

    def _fallen(self, caller: Caller) -> str:
        """Why this caller is nobody any more, or ""."""
        credential = caller.credential
        gone = self._credential_gone(caller, credential) if credential is not None else ""
        return gone or revoked(caller, self._store.revocations())

    def _credential_gone(self, caller: Caller, credential: Credential) -> str:
        if credential.expires_at and self._now() >= credential.expires_at:
            return f"what {caller.subject!r} came in with has expired"
        if credential.kind in ("local", "file"):
            return ""
        if credential.kind in ("token", "proxy"):
            held = (credential.kind, caller) in self._current().named
            what = "token" if credential.kind == "token" else "certificate"
            return "" if held else f"the {what} of {caller.subject!r} does not stand for this caller any more"
        if credential.kind == "key":
            return key_fault(self._store.api_key(credential.key_id), now=self._time())
        if credential.kind == "jwt":
            return self._issuer_gone(caller, credential)
        return f"{caller.subject!r} came in by {credential.kind!r}, which is not known here"

    def _issuer_gone(self, caller: Caller, credential: Credential) -> str:
        identity = self._settings().identity
        if credential.issuer not in {row.issuer for row in identity.jwt}:
            return f"tokens of {credential.issuer!r} are not taken any more"
        if caller.acting_for is not None and caller.subject not in {row.get("subject") for row in identity.agents}:
            return f"{caller.subject!r} may not act for others any more"
        return ""

    def _time(self) -> datetime:
        return datetime.fromtimestamp(self._now(), UTC)

    def _place(self) -> dict[str, str]:
        """Where callers are that do not say so."""
        crib = self._settings().crib
        return {"environment": crib.environment, "region": crib.region}

    # --- the configuration, as it is now

    def _current(self) -> _Door:
        settings = self._settings()
        secrets = [row.token for row in settings.identity.tokens] + [row.secret for row in settings.identity.proxies]
        mark = (settings, tuple(secret_mark(ref, settings) for ref in secrets))
        if self._door is None or self._door.mark != mark:
            self._door = self._built(mark)
            for fault in self._door.faults:
                _log.error("somebody is locked out: %s", fault)
        return self._door

    def _built(self, mark: tuple[object, ...]) -> _Door:
        identity = self._settings().identity
        faults: list[ConfigError] = []
        tokens = self._entries(faults)
        proxies = _each(identity.proxies, self._proxy, faults)
        agents = _each(identity.agents, self._agent, faults)
        issuers = _each(identity.jwt, self._issuer, faults)
        for row in proxies:
            if not row.secret:
                faults.append(
                    ConfigError("its secret cannot be read: it vouches for nobody", where=f"proxy {row.name}")
                )
        return _Door(
            mark=mark,
            tokens=TokenTable(tokens),
            issuers=issuers,
            agents=agents,
            proxies=proxies,
            named=frozenset(
                [("token", caller) for _token, caller in tokens]
                + [("proxy", caller) for proxy in proxies for caller in proxy.clients.values()]
            ),
            faults=tuple(faults),
        )

    def _entries(self, faults: list[ConfigError]) -> list[tuple[str, Caller]]:
        entries: list[tuple[str, Caller]] = []
        settings = self._settings()
        for row in settings.identity.tokens:
            try:
                caller = replace(
                    self.described(row.caller, where="[[identity.tokens]]"), credential=Credential(kind="token")
                )
                entry = (reveal(row.token, root=settings.root), caller)
                TokenTable([*entries, entry])  # too short, or another caller's
            except ConfigError as fault:
                faults.append(fault)
            else:
                entries.append(entry)
        return entries

    def _agent(self, fields: JsonObject) -> Caller:
        return self.described({"kind": "agent", **fields}, where="[[identity.agents]]")

    def _proxy(self, row: ProxySettings) -> TrustedProxy:
        """A proxy whose secret can't be read stays, so that its header lets nobody in by another way."""
        settings = self._settings()
        try:
            secret = reveal(row.secret, root=settings.root)
        except ConfigError:
            secret = ""
        clients = {
            client.certificate: replace(
                self.described(client.caller, where="[[identity.proxies.clients]]"),
                credential=Credential(kind="proxy"),
            )
            for client in row.clients
        }
        return TrustedProxy(
            name=row.name,
            networks=tuple(ipaddress.ip_network(address, strict=False) for address in row.addresses),
            header=row.header.lower(),
            secret_header=row.secret_header.lower(),
            secret=secret,
            clients=clients,
        )

    def _issuer(self, row: JwtSettings) -> TokenIssuer:
        return TokenIssuer(
            issuer=row.issuer,
            audience=row.audience,
            keys=self._keys(row),
            algorithms=row.algorithms,
            clock_skew_s=row.clock_skew_s,
            claims=row.claims,
        )

    def _keys(self, row: JwtSettings) -> KeySource:
        """The issuer's keys; a set that was fetched outlives changes of the configuration elsewhere."""
        from toolcrib.identity.jwks import FetchedKeys, FileKeys  # as for `caller_of_token`

        place = (row.keys_url, row.keys_file, row.refresh_s, self._settings().root)
        if place not in self._key_sources:
            self._key_sources[place] = (
                FileKeys(self._settings().resolve(row.keys_file))
                if row.keys_file
                else FetchedKeys(row.keys_url, refresh_s=row.refresh_s)
            )
        return self._key_sources[place]


def _each(rows: Sequence[Any], build: Callable[[Any], Any], faults: list[ConfigError]) -> tuple[Any, ...]:
    """What can be built; why the rest can't goes into `faults`."""
    built = []
    for row in rows:
        try:
            built.append(build(row))
        except ConfigError as fault:
            faults.append(fault)
    return tuple(built)


def _say_nobody(why: object) -> None:
    """The reason, for the operator. Of a foreign error its kind alone: its text might quote what was shown."""
    _log.warning("nobody is let in: %s", why)


def secret_mark(ref: SecretRef, settings: Settings) -> tuple[object, ...]:
    """Changes when the file changes that a secret lies in; the environment of a process does not change."""
    parts = parse_reference(ref.reference)
    return (ref, file_mark(settings.resolve(parts.target))) if parts and parts.kind == "file" else (ref,)


def file_mark(path: Path) -> tuple[int, ...]:
    """Changes when the file does, or is replaced; empty when there is none."""
    try:
        stat = path.stat()
    except OSError:
        return ()
    return (stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino)
