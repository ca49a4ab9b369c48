"""How a server is opened, and with whose credential.

Floor 4. Above: `crib.py`. Below: `connectors/` opens, `identity/vault.py` knows whose credential is whose.

Invariants
1. A credential is the server's own entry or the calling caller's own vault entry, never another caller's. A missing one
   opens nothing (NoCredentialError).
2. A caller's token is no credential: it never gets here.
3. A session rests on its configuration and the files that its secrets lie in (`mark`); when they change it is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from toolcrib.connectors.base import Connector
from toolcrib.connectors.opening import open_connector
from toolcrib.gate.offers import holder_key
from toolcrib.identity.vault import entry
from toolcrib.marks import secret_mark
from toolcrib.settings import Settings, is_callers, reveal
from toolcrib.types import Caller, SecretRef, ServerSpec


class Sessions:
    """Opens servers under the settings that `settings` gives at the moment of asking.

    Args:
        given: server id -> connector to use instead of the configured way to reach it.
    """

    def __init__(self, settings: Callable[[], Settings], *, given: Mapping[str, Connector]) -> None:
        self._settings = settings
        self._given = given

    def opened(self, server_id: str, caller: Caller | None) -> Connector:
        """A connector to this server, not yet opened.

        Args:
            caller: whose credentials a server that wants the caller's own gets; None to list its tools.
        Raises:
            NoCredentialError: the caller has none. ConfigError: a secret cannot be read.
        """
        if server_id in self._given:
            return self._given[server_id]
        settings = self._settings()
        spec, root = settings.server(server_id), settings.root
        env, headers = (_revealed(values, settings, caller) for values in (spec.env, spec.headers))
        return open_connector(spec, env=env, headers=headers, root=root)

    def for_listing(self, server_id: str) -> Connector:
        """A connector to list this server's tools with, which is done for no caller. Raises as `opened`."""
        return self.opened(server_id, None)

    def owner(self, server_id: str, caller: Caller | None) -> str:
        """Whose session a call needs: "" for the crib's own, where the server wants nothing of the caller's."""
        if caller is None or server_id in self._given:
            return ""
        spec = self._settings().server(server_id)
        if not any(is_callers(ref) for ref in _secrets(spec)):
            return ""
        return holder_key(caller)

    def mark(self, server_id: str) -> tuple[object, ...]:
        """What open sessions with this server rest on: its configuration, and the files its secrets lie in."""
        if server_id in self._given:
            return ()
        settings = self._settings()
        spec = replace(settings.server(server_id), call_timeout_s=0.0)  # of each call, not of the session
        secrets = _secrets(spec)
        if any(is_callers(ref) for ref in secrets):
            secrets = [ref for ref in secrets if not is_callers(ref)] + [row.secret for row in settings.vault]
            return (spec, settings.vault, *(secret_mark(ref, settings) for ref in secrets))
        return (spec, *(secret_mark(ref, settings) for ref in secrets))


def listing_credentials(settings: Settings) -> dict[str, str]:
    """The credential that each server's list is taken with, by name: references, never what stands behind them.

    "" where the server is given none. `caller:NAME` stands for the entry of the vault that is for refresh.
    """
    return {server.server_id: _credential(server, settings) for server in settings.servers}


def _credential(spec: ServerSpec, settings: Settings) -> str:
    named = []
    for ref in _secrets(spec):
        if is_callers(ref):
            name = ref.reference.rpartition("caller:")[2]
            row = entry(settings.vault, name=name, caller=None)
            named.append(f"vault {name}" + (f" ({row.reference})" if row else " (no refresh entry)"))
        else:
            named.append(ref.reference)
    return ", ".join(sorted(named))


def _secrets(spec: ServerSpec) -> list[SecretRef]:
    return [value for value in (*spec.env.values(), *spec.headers.values()) if isinstance(value, SecretRef)]


def _revealed(values: Mapping[str, str | SecretRef], settings: Settings, caller: Caller | None) -> dict[str, str]:
    def vault(name: str) -> SecretRef | None:
        return entry(settings.vault, name=name, caller=caller)

    return {
        key: reveal(value, root=settings.root, vault=vault) if isinstance(value, SecretRef) else value
        for key, value in values.items()
    }
