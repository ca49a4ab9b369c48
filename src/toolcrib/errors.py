"""Faults: the work could not be done. A denial or an empty ranking is not a fault; it is a value with a reason.

    ToolcribError
      ConfigError     NoCredentialError
      CatalogError    ToolNotFoundError, DuplicateToolError, InvalidDefinitionError, RefreshError
      PolicyError     PolicySyntaxError, UnknownCallerError
      RetrievalError  IndexFormatError, IndexStaleError
      ConnectorError  ConnectorTimeoutError, ConnectorProtocolError
      StoreError      DamagedPublicationError
      TraceError

Floor 1: imports nothing of ours. Each error says what is wrong, where, and what to do next. Foreign exceptions become
one of these in the file that speaks to the foreign library; these become wire codes once, in `server/` and `cli/`.
"""

from __future__ import annotations


class ToolcribError(Exception):
    """Base of all. `what`: what is wrong. `where`: file, line, id. `hint`: what to do next."""

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text}\n  -> {self.hint}" if self.hint else text


class ConfigError(ToolcribError):
    """The configuration cannot be used."""


class NoCredentialError(ConfigError):
    """Whoever asks has no credential of its own for a server that wants one."""


class CatalogError(ToolcribError):
    """The catalog cannot be read, built or published."""


class ToolNotFoundError(CatalogError):
    """The operator named a tool that is not in the catalog."""


class DuplicateToolError(CatalogError):
    """Two definitions claim one tool id."""


class InvalidDefinitionError(CatalogError):
    """A definition cannot be served; it is quarantined with this as its reason."""


class RefreshError(CatalogError):
    """A refresh could not be completed; the last good snapshot keeps serving."""


class PolicyError(ToolcribError):
    """Policy cannot be evaluated; nothing is permitted."""


class PolicySyntaxError(PolicyError):
    """Policy text does not parse or does not fit the schema."""


class UnknownCallerError(PolicyError):
    """Whoever asks was not established, or is not let in any more: revoked, expired, taken out of the configuration."""


class RetrievalError(ToolcribError):
    """The index cannot be built or searched."""


class IndexFormatError(RetrievalError):
    """An index on disk is damaged or of another format."""


class IndexStaleError(RetrievalError):
    """The index was built from another snapshot."""


class ConnectorError(ToolcribError):
    """A server could not be reached or gave no usable answer.

    `reached_server`: the request may have left. `pages_read`: of a list that broke off.
    """

    def __init__(
        self, what: str, *, where: str = "", hint: str = "", reached_server: bool = False, pages_read: int = 0
    ) -> None:
        super().__init__(what, where=where, hint=hint)
        self.reached_server = reached_server
        self.pages_read = pages_read


class ConnectorTimeoutError(ConnectorError):
    """A server did not answer within its deadline."""


class ConnectorProtocolError(ConnectorError):
    """A server answered outside the protocol (bad page, looping cursor, too many bytes)."""


class StoreError(ToolcribError):
    """The store cannot be read or written."""


class DamagedPublicationError(StoreError):
    """The store can be read, what was published in it cannot: a whole new refresh mends it."""


class TraceError(ToolcribError):
    """A trace cannot be read or does not exist."""
