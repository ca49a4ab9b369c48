"""Whether a server is asked at all: after several failures in a row it is left alone for a while.

                 `failures` failed in a row                 `reset_s` passed
    closed ──────────────────────────────▶ open ──────────────────────────────▶ half-open
      ▲                                     ▲                                      │  one call goes through
      │                                     └───────────── it failed ──────────────┤
      └────────────────────────────────────────────────── it came back ───────────┘

Above: `sending.py` enters before it opens a session and leaves with what became of it; routing is told which are open.

Invariants
1. Only the transport counts: a server that answers with an error of its tool is there.
2. At most one call goes through a half-open circuit at a time; one that was given up decides nothing.
3. A closed circuit without failures takes no memory, and what is remembered is bounded.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """One call's way through a circuit. `probe`: the only one while it is half-open."""

    server_id: str
    probe: bool = False


@dataclass(slots=True, kw_only=True)
class _Circuit:
    """`opened_at`: seconds on the clock; None while it is closed."""

    n_failed: int = 0
    opened_at: float | None = None
    probing: bool = False


class Circuits:
    """A circuit for each server. Safe to share between threads.

    Args:
        failures: calls failed in a row that open a circuit; 0 never opens one.
        reset_s: seconds that it stays open before a call may try.
        clock: seconds, never going back. max_servers: circuits remembered; the one untouched longest is forgotten.
    """

    def __init__(
        self,
        *,
        failures: int = 5,
        reset_s: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
        max_servers: int = 10_000,
    ) -> None:
        self._failures = failures
        self._reset_s = reset_s
        self._clock = clock
        self._max_servers = max_servers
        self._circuits: OrderedDict[str, _Circuit] = OrderedDict()
        self._lock = threading.Lock()

    def configure(self, *, failures: int, reset_s: float) -> None:
        """Other limits from now on; they hold for circuits that are open already. 0 failures closes all of them."""
        with self._lock:
            self._failures, self._reset_s = failures, reset_s
            if failures == 0:
                self._circuits.clear()

    def enter(self, server_id: str) -> Passage | None:
        """A way through for one call, which must `leave` with it; None while the server is not asked."""
        with self._lock:
            known = self._circuits.get(server_id)
            if known is None or known.opened_at is None:
                return Passage(server_id=server_id)
            if known.probing or not self._rested(known):
                return None
            known.probing = True
            return Passage(server_id=server_id, probe=True)

    def leave(self, passage: Passage, *, failed: bool | None) -> None:
        """What became of the call.

        Args:
            failed: whether the server could not be reached or did not answer in time; None when nothing was learnt.
        """
        with self._lock:
            known = self._circuits.get(passage.server_id)
            if known is not None and passage.probe:
                known.probing = False
            if failed is None:
                return
            if not failed:
                self._circuits.pop(passage.server_id, None)
                return
            self._count(passage, known or _Circuit())

    def is_open(self, server_id: str) -> bool:
        """Whether the server is not asked at present; a half-open circuit is no longer open."""
        with self._lock:
            known = self._circuits.get(server_id)
            return known is not None and known.opened_at is not None and not self._rested(known)

    def _rested(self, circuit: _Circuit) -> bool:
        return circuit.opened_at is not None and self._clock() - circuit.opened_at >= self._reset_s

    def _count(self, passage: Passage, circuit: _Circuit) -> None:
        """A call that had begun before the circuit opened, and failed after, does not keep it open any longer."""
        if self._failures == 0:
            return
        circuit.n_failed += 1
        if passage.probe or (circuit.opened_at is None and circuit.n_failed >= self._failures):
            circuit.opened_at = self._clock()
        self._circuits[passage.server_id] = circuit
        self._circuits.move_to_end(passage.server_id)
        if len(self._circuits) > self._max_servers:
            self._circuits.popitem(last=False)
