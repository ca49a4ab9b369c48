"""Connectors that can say what runs behind their open session, before anything is sent through it.

Above: whoever calls tools compares it with what was approved. Below: `mcp.py`, `files.py`, `functions.py`.

Invariants
1. It is said of the very session that a call would use: a package that changed since the tools were listed is seen
   when the next session is opened, not at the next listing.
2. Within one session it stays the same; it is found out once.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from toolcrib.connectors.base import Connector
from toolcrib.types import Provenance


@runtime_checkable
class Observing(Connector, Protocol):
    """A connector that knows what its server is."""

    async def observed(self) -> Provenance:
        """What runs behind the session, or answers for it. Opens the session if it is not open.

        Raises:
            ConnectorError: the server could not be started or reached.
        """
        ...
