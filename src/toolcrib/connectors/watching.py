"""Servers that say unasked that their list of tools changed, in either protocol era.

Above: `live.py` on floor 4 asks for it. Below: `mcp.py`, with `_announcements.py` where the SDK is spoken to.

    2026-07-28     `subscriptions/listen`: one request that stays open; acknowledged, then a word per change
    2025-11-25     a notification, on stdout or on the session's standing stream

Invariants
1. Once `watch` said True, nothing that changes is missed without a word: a list taken after it, and one more for each
   announcement, is the last list. Where announcements can't come any more, `on_lost` says so.
2. No announcement is believed to be true, and none carries anything: it is a reason to list, that is all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from toolcrib.connectors.base import Connector


@runtime_checkable
class Announcing(Connector, Protocol):
    """A connector whose server may say that its list changed."""

    async def watch(self, on_changed: Callable[[], None], on_lost: Callable[[], None]) -> bool:
        """Opens the session and listens, until the connector is closed.

        Args:
            on_changed: called at each announcement. on_lost: called when none can come any more; perhaps twice.
        Returns:
            Whether the server announces changes at all; if not, nothing is listened to.
        Raises:
            ConnectorError: the server could not be started or reached, or did not answer in time.
        """
        ...
