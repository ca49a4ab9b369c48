"""What a baseline is: another way of finding tools, run on the same cases over the same definitions.

Above: `evals/against.py` runs them. Beside it, one file per baseline.

Invariants
1. A baseline sees the tools that the caller may discover and the words of the task, nothing else: no labels, no ids of
   cases, no other task.
2. What it would put into a context is counted by the harness, whole definitions, with the same estimate as Toolcrib's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from toolcrib.types import Tool


class Opened(Protocol):
    """A baseline over one set of tools, ready to be asked."""

    def search(self, task: str, k: int) -> Sequence[str]:
        """Tool ids, best first, at most `k`, each once; fewer where it finds fewer, none where it finds none."""
        ...


class Baseline(Protocol):
    """One way of finding tools.

    Attributes:
        name: short and stable: a key in the JSON and a word for `--baselines=a,b`.
        about: one line for people: what it is, which package in which version, how it was set up.
        default_k: how many tools it gives by itself; 0 for all of them.
        overhead_tokens: what it puts into every context besides the definitions it finds: its own search tool, say.
    """

    @property
    def name(self) -> str: ...
    @property
    def about(self) -> str: ...
    @property
    def default_k(self) -> int: ...
    @property
    def overhead_tokens(self) -> int: ...

    def open(self, tools: Sequence[Tool]) -> Opened:
        """The baseline over these tools. Called once per set of tools; may take its time."""
        ...
