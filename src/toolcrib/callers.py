"""Who asks: whoever shows a credential that the configuration or the store knows, as both are now.

Floor 4. Above: `crib.py`, which looks at the configuration before it asks here. Below: `identity/`, `marks.py`.

    certificate header ─▶ trusted proxy ─┐
    Bearer ─▶ token table ─▶ tck_…: key ─▶ a.b.c: JWT ─┴─▶ Caller ─▶ still in force? not revoked? ─▶ somebody

Invariants
1. Nothing is remembered but what configuration, token files and key sets say, and that only as long as they stay as
   they are: what was taken away counts on the next request. Revocations are read from the store every time.
2. Nobody is nobody: no value but a `Caller` or `LOCAL` stands for somebody (I2, I7). What goes wrong in finding out
   makes nobody, too.
3. A caller stays somebody only as long as what it came in with stands for exactly this caller (I3): the row of its
   token, certificate or issuer, the key's record, and of an agent that acts for a user, what the operator says of it.
   Of whoever acts for somebody, that holds for everybody in the chain.
4. The local operator comes in over no network: neither a signed token nor a certificate makes somebody of that name.
5. A token, key set or proxy that cannot be used locks its own callers out, and nobody else (I12).
6. Reasons go to the operator's log, never to whoever knocked, and hold no credential.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from toolcrib.errors import ConfigError, ToolcribError, UnknownCallerError
from toolcrib.identity.callers import caller_from_mapping, local_operator
from toolcrib.identity.delegation import delegated
from toolcrib.identity.issuers import KeySource, TokenIssuer
from toolcrib.identity.keys import caller_of_key, caller_of_record, key_fault, key_id_of
from toolcrib.identity.proxy import TrustedProxy, certified
from toolcrib.identity.refusals import RefusalLog, request_refused
from toolcrib.identity.refused import Refused
from toolcrib.identity.standing import revoked
from toolcrib.identity.tokens import TokenTable
from toolcrib.marks import file_mark, secret_mark
from toolcrib.settings import JwtSettings, ProxySettings, Settings, reveal
from toolcrib.store.protocol import Store
from toolcrib.types import LOCAL, Caller, Credential, JsonObject, Presented

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
        self._refusals = RefusalLog(_log)

    # --- who is it

    async def identify(self, presented: Presented) -> Caller | None:
        """Who sent a request over HTTP that shows this, or None: nobody. The reason goes to the log."""
        what = request_refused(presented.peer)
        try:
            return self._let_in(await self._shown_by(presented), what=what)
        except Exception as fault:  # noqa: BLE001 - whatever it is, nobody comes in
            # Of a foreign error its kind alone: its text might quote what was shown.
            self._refusals.say(str(fault) if isinstance(fault, ToolcribError) else type(fault).__name__, what=what)
            return None

    def bearer(self, token: str) -> Caller | None:
        """The caller that a configured bearer token or an API key stands for, or None. Knows no JWTs: see `identify`.

        Raises:
            ToolcribError: the settings or the store cannot be read.
        """
        return self._let_in(self._holder(token), what="a bearer token was refused")

    def established(self, caller: object) -> Caller:
        """The caller of a request, asked before every verdict. Checked, since callers from untyped code come here, too.

        Raises:
            UnknownCallerError: nobody was established, or not any more: expired, revoked, or out of the configuration.
            StoreError: the store is lost, and with it the list of those revoked.
        """
        if caller is LOCAL:
            caller = self.local()
        if not isinstance(caller, Caller):
            hint = "leave `caller` out for the local operator; a token that stands for nobody must end the request"
            raise UnknownCallerError(f"no caller was established, got {caller!r}", hint=hint)
        fault = self._fallen(caller)
        if fault:
            raise UnknownCallerError(fault)
        return caller

    def local(self) -> Caller:
        """The local operator."""
        settings = self._settings()
        where = f"{settings.path} [identity.local]"
        return local_operator(settings.identity.local, **self._place(), where=where)

    def described(self, fields: JsonObject, *, where: str) -> Caller:
        """The caller that these fields describe; environment and region are the crib's where they name none."""
        return caller_from_mapping(fields, **self._place(), where=f"{self._settings().path} {where}")

    def unreadable_tokens(self) -> tuple[ConfigError, ...]:
        """Why configured tokens, issuers, their key files, agents or proxies cannot be used now."""
        door = self._built(())
        return (*door.faults, *(fault for row in door.issuers if (fault := row.keys.fault()) is not None))

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

    def _let_in(self, found: Caller | Refused | None, *, what: str) -> Caller | None:
        if found is None:
            return None
        reason = found.reason if isinstance(found, Refused) else self._fallen(found)
        if reason or isinstance(found, Refused):
            self._refusals.say(reason, what=what)
            return None
        return found

    def _fallen(self, caller: Caller) -> str:
        """Why this caller is nobody any more, or ""."""
        for who in caller.chain:
            gone = self._credential_gone(who, who.credential) if who.credential is not None else ""
            if gone:
                return gone
        return revoked(caller, self._store.revocations())

    def _credential_gone(self, caller: Caller, credential: Credential) -> str:
        if credential.expires_at and self._now() >= credential.expires_at:
            return f"what {caller.subject!r} came in with has expired"
        if credential.kind in ("local", "file"):
            return ""
        if credential.kind == "token":
            return self._not_named(caller, credential)
        if credential.kind == "proxy":
            return self._not_named(caller, credential) or self._takes_local_name(caller)
        if credential.kind == "key":
            return self._key_gone(caller, credential)
        if credential.kind == "jwt":
            return self._issuer_gone(caller, credential) or self._takes_local_name(caller)
        return f"{caller.subject!r} came in by {credential.kind!r}, which is not known here"

    def _not_named(self, caller: Caller, credential: Credential) -> str:
        if (credential.kind, caller) in self._current().named:
            return ""
        what = "token" if credential.kind == "token" else "certificate"
        return f"the {what} of {caller.subject!r} does not stand for this caller any more"

    def _key_gone(self, caller: Caller, credential: Credential) -> str:
        record = self._store.api_key(credential.key_id)
        fault = key_fault(record, now=self._time())
        if fault or record is None:
            return fault
        same = caller_of_record(record, **self._place()) == caller
        return "" if same else f"the API key {record.key_id} does not stand for this caller any more"

    def _issuer_gone(self, caller: Caller, credential: Credential) -> str:
        door = self._current()
        if not any((row.issuer, row.terms) == (credential.issuer, credential.terms) for row in door.issuers):
            return f"tokens of {credential.issuer!r} are not taken any more as they were when this one was shown"
        if caller.acting_for is None:
            return ""
        acting = {"act": {"sub": caller.subject}}
        today = delegated(caller.acting_for, acting, agents=door.agents, issuer=credential.issuer)
        return "" if today == caller else f"what {caller.subject!r} may do for others is another now"

    def _takes_local_name(self, caller: Caller) -> str:
        local = self.local()
        for who in caller.chain:
            if (who.subject, who.tenant) == (local.subject, local.tenant):
                return f"{who.subject!r} is the local operator, who comes in over no network"
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
            tenants=row.tenants,
            terms=self._terms(row),
        )

    def _terms(self, row: JwtSettings) -> str:
        """A digest of the row and of what its callers take from the crib: another one makes other callers."""
        written = json.dumps([asdict(row), self._place()], sort_keys=True)
        return hashlib.sha256(written.encode()).hexdigest()

    def _keys(self, row: JwtSettings) -> KeySource:
        """The issuer's keys; a set that was fetched outlives changes of the configuration elsewhere."""
        from toolcrib.identity.jwks import FetchedKeys, FileKeys  # as for `caller_of_token`

        place = (row.keys_url, row.keys_file, row.refresh_s, self._settings().root)
        if place not in self._key_sources:
            self._key_sources[place] = (
                FileKeys(self._settings().resolve(row.keys_file), mark=file_mark)
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
