"""What the versions and summaries of a caller's view need of each tool, worked out once for a whole snapshot.

Below: `types/`. Above: `pipeline.py`, which takes the rows that one caller can reach.

Invariants
1. A row is a function of its tool alone, so that whatever is made of a caller's rows is one of the caller's reach (I1).
2. Two tools have equal rows only where they are the same in everything that a caller can see of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from toolcrib.types import BoolArray, IntArray, Tool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ToolRows:
    """Columns over the tools of a snapshot, in its order.

    Args:
        digests: uint8, shape (n_tools, 32): SHA-256 over what a caller can see of a tool.
        namespace_of: int64, shape (n_tools,): positions in `namespaces`, which are sorted.
    """

    digests: npt.NDArray[np.uint8]
    namespace_of: IntArray
    namespaces: tuple[str, ...]

    def version(self, reach: BoolArray) -> str:
        """SHA-256 (hex) over the rows in reach. `reach`: bool, shape (n_tools,)."""
        return hashlib.sha256(self.digests[reach].tobytes()).hexdigest()

    def namespaces_of(self, reach: BoolArray) -> tuple[str, ...]:
        """The namespaces of the tools in reach, sorted, each once. `reach`: bool, shape (n_tools,)."""
        present = np.bincount(self.namespace_of[reach], minlength=len(self.namespaces))
        return tuple(self.namespaces[code] for code in np.flatnonzero(present).tolist())


def tool_rows(tools: Sequence[Tool]) -> ToolRows:
    """The rows of these tools."""
    namespaces = tuple(sorted({tool.metadata.namespace for tool in tools}))
    places = {namespace: code for code, namespace in enumerate(namespaces)}
    whole = b"".join(_digest(tool) for tool in tools)
    return ToolRows(
        digests=np.frombuffer(whole, dtype=np.uint8).reshape(len(tools), 32),
        namespace_of=np.array([places[tool.metadata.namespace] for tool in tools], dtype=np.int64),
        namespaces=namespaces,
    )


_AS_EVER = ("active", "", "", ())


def _digest(tool: Tool) -> bytes:
    said = tool.metadata
    shown: list[object] = [tool.tool_id, tool.digest, tool.state.value, said.keywords, said.examples]
    lifecycle = said.status, said.replaced_by, said.version, said.aliases
    if lifecycle != _AS_EVER:
        shown.append(lifecycle)
    return hashlib.sha256(json.dumps(shown).encode()).digest()
