"""Arguments as bytes that are equal exactly when the arguments are: what approvals and the guard of writes compare.

Above: `approval.py`, `duplicates.py`.
"""

from __future__ import annotations

import json
from typing import Any

import rfc8785


def canonical(arguments: Any) -> bytes:
    """RFC 8785; whole numbers past 2^53, which it has no form for, get sorted JSON with a mark of its own.

    Raises:
        ValueError: the arguments are not JSON.
    """
    try:
        return b"jcs " + rfc8785.dumps(arguments)
    except rfc8785.IntegerDomainError:
        return b"json " + json.dumps(arguments, sort_keys=True, allow_nan=False).encode()
