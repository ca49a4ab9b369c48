"""The same write twice: a caller's call to a tool that may write, with the same arguments, within a window.

    reserve ──▶ sent ──▶ settle      the window counts from the end of the call
       └──────▶ release              when nothing left for the server, or the server itself turned it away

Above: `dispatch.py` reserves once nothing but an approval stands before the call, so that a duplicate uses up none.
Below: the store, which gives a key to one call only, whichever process asks.

Invariants
1. A write that may have left keeps its reservation: until the longest that it may take, and the window after.
2. The answer of the earlier call is not given again. The caller is told which of its own calls it was.
3. An idempotency key decides by itself: a known one is the same write whatever the arguments, a new one is another
   write. A call without a key is the same write as one before with the same arguments, whether that had a key or not.
"""

from __future__ import annotations

import hashlib
import json
import logging
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import rfc8785

from toolcrib.errors import StoreError
from toolcrib.gate.offers import identity_of
from toolcrib.types import Caller, JsonObject, Risk, RiskSource, Tool

_log = logging.getLogger(__name__)


class WriteStore(Protocol):
    """What the store must do for it."""

    def reserve_write(self, key: str, *, at: str, until: str, trace_id: str) -> str:
        """Hold the key until then; "" when it is ours now, else the trace id of the call that holds it.

        The trace that holds a key may move its `until`.
        """
        ...

    def release_write(self, key: str, *, trace_id: str) -> None:
        """Give a key back that this trace holds."""
        ...


def may_write(tool: Tool) -> bool:
    """Whether a call may change something, as far as anybody knows: what nobody has said to read may write."""
    return tool.metadata.risk is not Risk.READ


def is_guarded(tool: Tool) -> bool:
    """Whether the same call again within the window is taken for a mistake: of tools that somebody says may write.

    Most tools that nobody described only read, and asking twice is how one reads. Their calls wait for a person anyway:
    over HTTP for an approval, elsewhere at the client.
    """
    return may_write(tool) and tool.metadata.risk_source is not RiskSource.UNKNOWN


def write_key(caller: Caller, tool: Tool, arguments: JsonObject, idempotency_key: str = "") -> str:
    """SHA-256 (hex) of what makes two calls the same write: who calls, which tool, and the idempotency key or else the
    arguments. Not the definition's digest: a write is not another one because its description changed.

    Raises:
        ValueError: the arguments are not JSON.
    """
    bound = json.dumps([*identity_of(caller), tool.tool_id, "key" if idempotency_key else "arguments"]).encode()
    told = idempotency_key.encode("utf-8", "surrogatepass") if idempotency_key else _canonical(arguments)
    return hashlib.sha256(bound + b"\n" + told).hexdigest()


class Reservation:
    """The keys that one call holds. Made by `reserve`."""

    def __init__(self, store: WriteStore, keys: tuple[str, ...], *, trace_id: str) -> None:
        self._store = store
        self._keys = keys
        self._trace_id = trace_id
        self._may_have_left = False

    def sent(self) -> None:
        """From now on the write may have left, whatever is heard of it."""
        self._may_have_left = True

    def turned_away(self) -> None:
        """It is known after all that the write had no effect: nothing left, or the server did not take it."""
        self._may_have_left = False

    def close(self, *, now: str, window_s: float) -> None:
        """Shorten the reservation to the window from now, or give it back when nothing was sent.

        Args:
            now: ISO 8601 with an offset, the end of the call.
        """
        try:
            for key in self._keys:
                if not self._may_have_left:
                    self._store.release_write(key, trace_id=self._trace_id)
                    continue
                at, until = _span(now, seconds=window_s)
                self._store.reserve_write(key, at=at, until=until, trace_id=self._trace_id)
        except StoreError as fault:
            # The answer of the call must not be lost for it; the reservation then ends by itself, a little later.
            _log.error("the reservation of a write could not be changed: %s", fault)


def reserve(
    store: WriteStore,
    caller: Caller,
    tool: Tool,
    arguments: JsonObject,
    *,
    idempotency_key: str,
    now: str,
    may_take_s: float,
    window_s: float,
    trace_id: str,
) -> Reservation | str:
    """Hold this write for the call, or the trace id of the call that holds it already.

    Args:
        now: ISO 8601 with an offset. may_take_s: seconds that the call may be under way. window_s: more than 0.
    Raises:
        StoreError: the store is lost; nothing may be sent.
    """
    at, until = _span(now, seconds=may_take_s + window_s)
    plain = write_key(caller, tool, arguments)
    first = write_key(caller, tool, arguments, idempotency_key)
    if earlier := store.reserve_write(first, at=at, until=until, trace_id=trace_id):
        return earlier
    keys = [first]
    if idempotency_key and not store.reserve_write(plain, at=at, until=until, trace_id=trace_id):
        keys.append(plain)  # so that the same call without a key counts as the same write
    return Reservation(store, tuple(keys), trace_id=trace_id)


def _span(now: str, *, seconds: float) -> tuple[str, str]:
    """Both ends as ISO 8601, UTC, of one width, so that they compare as text."""
    at = datetime.fromisoformat(now).astimezone(UTC)
    return _stamp(at), _stamp(at + timedelta(seconds=seconds))


def _stamp(at: datetime) -> str:
    return at.isoformat(timespec="microseconds")


def _canonical(arguments: Any) -> bytes:
    """RFC 8785; whole numbers past 2^53, which it has no form for, get sorted JSON with a mark of its own."""
    try:
        return b"jcs " + rfc8785.dumps(arguments)
    except rfc8785.IntegerDomainError:
        return b"json " + json.dumps(arguments, sort_keys=True, allow_nan=False).encode()
