"""Who a caller is to things that are kept for it: what it was offered, what it wrote, what it used up.

Above: `dispatch.py` asks the store whether the tool was offered to this holder lately (`[gate] require_offer`); the
crib records offers under the same key. `duplicates.py` and `limits.py` build their keys on it.

Invariants
1. Two callers share a holder only if they are the same subject of the same tenant, acting for the same subject.
2. What a caller may do is no part of it: a scope gained or lost makes nobody another holder.
"""

from __future__ import annotations

import hashlib
import json

from toolcrib.gate.stamps import stamp
from toolcrib.types import Caller


def holder_key(caller: Caller) -> str:
    """SHA-256 (hex) over who calls and for whom."""
    return hashlib.sha256(json.dumps(caller.identity).encode()).hexdigest()


def offered_since(now: str, *, ttl_s: float) -> str:
    """The moment from which on an offer still counts.

    Args:
        now: ISO 8601 with an offset. ttl_s: seconds that an offer counts.
    Returns:
        ISO 8601, UTC, of one width, so that it compares as text.
    """
    return stamp(now, plus_s=-ttl_s)
