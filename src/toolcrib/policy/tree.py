"""Cedar's JSON of a policy, walked.

Below: nothing of ours. Above: `policies.py`, `rules.py` and what reads rules for operators.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Every object within a JSON value. A stack instead of recursion: conditions may nest deeply."""
    stack = [tree]
    while stack:
        top = stack.pop()
        if isinstance(top, dict):
            yield top
            stack.extend(top.values())
        elif isinstance(top, list):
            stack.extend(top)
