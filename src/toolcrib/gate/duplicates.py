"""The same write twice: a caller's call to a tool that may write, with the same arguments, within a window.

    guarded ──▶ earlier_write ──▶ (an approval) ──▶ reserve ──▶ sent ──▶ close     the window counts from the end
                                                       └──────▶ turned_away ──▶ close     given back

Above: `dispatch.py` asks for an earlier one first, so that a duplicate asks nobody for an approval, and reserves just
before the request leaves, so that a duplicate uses none up. Below: the store, which gives a key to one call only,
whichever process asks.

Invariants
1. A write that may have left keeps its reservation: until the longest that it may take, and the window after.
2. The answer of the earlier call is not given again. The caller is told which of its own calls it was.
3. An idempotency key decides by itself, for its own, longer window: a known one is the same write whatever the
   arguments, a new one is another write. A call without a key is the same write as one before with the same arguments,
   whether that had a key or not.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from toolcrib.errors import StoreError
from toolcrib.gate.canonical import canonical
from toolcrib.gate.stamps import stamp
from toolcrib.types import Caller, JsonObject, Risk, RiskSource, Tool

_log = logging.getLogger(__name__)


class WriteStore(Protocol):
    """What the store must do for it."""

    def write_holder(self, key: str, *, at: str) -> str:
        """The trace id of the call that holds the key at that moment, or ""."""
        ...

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


def counts_once(tool: Tool) -> bool:
    """Whether the same call again within the window is taken for a mistake, where no key says otherwise.

    So it is for what somebody calls destructive and for what the operator calls a write, unless the operator says that
    it is made to be repeated. Not for what its server alone calls a write (pressing a key twice is how one uses a
    browser), nor for what nobody described: most such tools only read, and their calls wait for a person anyway, over
    HTTP for an approval, elsewhere at the client.
    """
    said = tool.metadata
    if said.repeatable or said.risk_source is RiskSource.UNKNOWN:
        return False
    return said.risk is Risk.DESTRUCTIVE or (said.risk is Risk.WRITE and said.risk_source is RiskSource.OPERATOR)


def write_key(caller: Caller, tool: Tool, arguments: JsonObject, idempotency_key: str = "") -> str:
    """SHA-256 (hex) of what makes two calls the same write: who calls, which tool, and the idempotency key or else the
    arguments. Not the definition's digest: a write is not another one because its description changed.

    Raises:
        ValueError: the arguments are not JSON.
    """
    bound = json.dumps([*caller.identity, tool.tool_id, "key" if idempotency_key else "arguments"]).encode()
    told = idempotency_key.encode("utf-8", "surrogatepass") if idempotency_key else canonical(arguments)
    return hashlib.sha256(bound + b"\n" + told).hexdigest()


@dataclass(frozen=True, slots=True)
class Guarded:
    """One key under which a write is held, and for how many seconds after its call ended."""

    key: str
    window_s: float


def guarded(
    caller: Caller,
    tool: Tool,
    arguments: JsonObject,
    *,
    idempotency_key: str,
    window_s: float,
    key_window_s: float,
) -> tuple[Guarded, ...]:
    """The keys that make this call the same write as another, the one that decides first; none without a guard.

    Args:
        window_s: of a call without a key; 0 for no guard. key_window_s: of one with a key.
    """
    if not may_write(tool):
        return ()
    held = []
    if idempotency_key:
        held.append(Guarded(write_key(caller, tool, arguments, idempotency_key), key_window_s))
    if window_s > 0 and counts_once(tool):
        held.append(Guarded(write_key(caller, tool, arguments), window_s))
    return tuple(held)


def earlier_write(store: WriteStore, keys: Sequence[Guarded], *, now: str) -> str:
    """The trace id of the call that made this write already, or ""."""
    return store.write_holder(keys[0].key, at=stamp(now)) if keys else ""


class Reservation:
    """The keys that one call holds. Made by `reserve`."""

    def __init__(self, store: WriteStore, keys: Sequence[Guarded], *, trace_id: str) -> None:
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

    def close(self, *, now: str) -> None:
        """Shorten the reservation to its windows from now, or give it back when nothing was sent.

        Args:
            now: ISO 8601 with an offset, the end of the call.
        """
        try:
            for held in self._keys:
                if not self._may_have_left:
                    self._store.release_write(held.key, trace_id=self._trace_id)
                    continue
                at, until = stamp(now), stamp(now, plus_s=held.window_s)
                self._store.reserve_write(held.key, at=at, until=until, trace_id=self._trace_id)
        except StoreError as fault:
            # The answer of the call must not be lost for it; the reservation then ends by itself, a little later.
            _log.error("the reservation of a write could not be changed: %s", fault)


def reserve(
    store: WriteStore, keys: Sequence[Guarded], *, now: str, may_take_s: float, trace_id: str
) -> Reservation | str:
    """Hold this write for the call, or the trace id of the call that holds it already.

    Args:
        keys: from `guarded`, at least one.
        now: ISO 8601 with an offset. may_take_s: seconds that the call may be under way.
    Raises:
        StoreError: the store is lost; nothing is held, and nothing may be sent.
    """
    mine: list[Guarded] = []
    try:
        for held in keys:
            at, until = stamp(now), stamp(now, plus_s=may_take_s + held.window_s)
            earlier = store.reserve_write(held.key, at=at, until=until, trace_id=trace_id)
            if earlier and held is keys[0]:
                return earlier
            if not earlier:
                mine.append(held)  # the others too, so that the same call without a key counts as the same write
    except StoreError:
        Reservation(store, mine, trace_id=trace_id).close(now=now)
        raise
    return Reservation(store, mine, trace_id=trace_id)
