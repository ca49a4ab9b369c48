"""Who asks: the local operator and the holders of bearer tokens, as the configuration describes them now.

Floor 4. Above: `crib.py`, which looks at the configuration before it asks here. Below: `identity/`.

Invariants
1. Nothing is remembered but a table of token digests, and that only as long as configuration and token files stay as
   they are: what was taken away counts on the next request.
2. Nobody is nobody: no value but a `Caller` or `LOCAL` stands for somebody (I2, I7).
3. A caller that came in by a token is somebody only as long as a token stands for exactly this caller (I3).
4. A token that cannot be read locks its own caller out, and nobody else (I12).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from toolcrib.errors import ConfigError, PolicyError
from toolcrib.identity.callers import caller_from_mapping, local_operator
from toolcrib.identity.tokens import TokenTable
from toolcrib.settings import Settings, reveal
from toolcrib.settings.references import parse_reference
from toolcrib.types import LOCAL, Caller, JsonObject, SecretRef

_log = logging.getLogger(__name__)


class Callers:
    """Callers under the settings that `settings` gives at the moment of asking."""

    def __init__(self, settings: Callable[[], Settings]) -> None:
        self._settings = settings
        self._known: tuple[tuple[object, ...], TokenTable, frozenset[Caller]] | None = None
        self._issued: set[Caller] = set()

    def established(self, caller: object) -> Caller:
        """The caller of a request. Checked, since callers from untyped code come here, too.

        Raises:
            PolicyError: nobody was established.
        """
        if caller is LOCAL:
            return self.local()
        if isinstance(caller, Caller) and caller in self._issued and caller not in self._current()[1]:
            raise PolicyError(f"the token of {caller.subject!r} does not stand for this caller any more")
        if not isinstance(caller, Caller):
            hint = "leave `caller` out for the local operator; a token that stands for nobody must end the request"
            raise PolicyError(f"no caller was established, got {caller!r}", hint=hint)
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

    def bearer(self, token: str) -> Caller | None:
        """The caller that a bearer token stands for, or None."""
        table, _holders = self._current()
        found = table.resolve(token)
        if found is not None:
            self._issued.add(found)
        return found

    def _current(self) -> tuple[TokenTable, frozenset[Caller]]:
        """The tokens as they are now, and the callers that they stand for."""
        settings = self._settings()
        mark = (settings, tuple(secret_mark(row.token, settings) for row in settings.identity.tokens))
        if self._known is None or self._known[0] != mark:
            entries, faults = self._entries()
            for fault in faults:
                _log.error("a caller is locked out: %s", fault)
            self._known = (mark, TokenTable(entries), frozenset(caller for _token, caller in entries))
        return self._known[1], self._known[2]

    def unreadable_tokens(self) -> tuple[ConfigError, ...]:
        """Why configured tokens cannot be read or used now."""
        return self._entries()[1]

    def described(self, fields: JsonObject, *, where: str) -> Caller:
        """The caller that these fields describe; environment and region are the crib's where they name none."""
        settings = self._settings()
        return caller_from_mapping(
            fields,
            environment=settings.crib.environment,
            region=settings.crib.region,
            where=f"{settings.path} {where}",
        )

    def _entries(self) -> tuple[list[tuple[str, Caller]], tuple[ConfigError, ...]]:
        entries: list[tuple[str, Caller]] = []
        faults: list[ConfigError] = []
        settings = self._settings()
        for row in settings.identity.tokens:
            try:
                caller = self.described(row.caller, where="[[identity.tokens]]")
                entry = (reveal(row.token, root=settings.root), caller)
                TokenTable([*entries, entry])  # too short, or another caller's
            except ConfigError as fault:
                faults.append(fault)
            else:
                entries.append(entry)
        return entries, tuple(faults)


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
