"""What one caller asks, on every surface, before and after a change: the same questions each time. Pure.

Above: the surfaces turn them into requests.

Invariants
1. Sampling is by seed: the same catalog, caller and seed give the same questions.
2. Half of what is asked is about what the caller may not know: hidden, withheld, near-miss and made-up names.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from toolcrib.providers.names import NameTarget, public_name
from toolcrib.types import Tool, WithheldTool
from toolcrib.verify.samples import sample_arguments

UNKNOWN_ID = "nowhere.no_such_tool"
NONSENSE = ("", "?!", "zzqx blorfl wumpus", "please help me with something")
_WORD = re.compile(r"[^\W\d_]{3,}")
_MAX_TASK_CHARS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is tried. `n_*`: at most so many of each.

    Args:
        rounds: how often variants are drawn anew. together: all kinds of changes in one catalog.
        brief: fewer questions where each costs a start.
    """

    n_tasks: int
    n_names: int
    n_edits: int
    n_added: int
    rounds: int
    together: bool
    brief: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """Args:
    tasks: what to find. names: tool ids to describe and to call with no arguments, known to the caller or not.
    calls: permitted tools with arguments, fitting ones and others.
    brief: starting anew for every question, as a command does, would take too long here.
    """

    tasks: tuple[str, ...]
    names: tuple[str, ...]
    calls: tuple[tuple[str, dict[str, Any]], ...]
    brief: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the tasks, in order, each once."""
        return tuple(dict.fromkeys(word.lower() for task in self.tasks for word in _WORD.findall(task))) or ("tool",)


def questions_of(
    *,
    visible: Sequence[Tool],
    hidden: Sequence[Tool],
    withheld: Sequence[WithheldTool],
    effort: Effort,
    seed: int,
) -> Questions:
    """Questions of a caller who may discover `visible`, of a catalog that also holds `hidden` and `withheld`."""
    chance = random.Random(seed)  # noqa: S311 - sampling, not secrecy
    mine = _some(chance, visible, effort.n_tasks)
    others = _some(chance, hidden, effort.n_tasks)
    held = _some(chance, withheld, max(1, effort.n_tasks // 2))
    told = [opening(tool.description) or tool.name for tool in mine]
    tasks = [
        *NONSENSE,
        *(words_of(tool.name) for tool in mine[: effort.n_tasks // 2 + 1]),
        *told[: effort.n_tasks // 2 + 1],
        *(f"{one} and then {two}" for one, two in pairwise(told[:3])),
        *(tool.tool_id for tool in (*others[:2], *held[:1], *mine[:1])),
        *(opening(tool.description) or words_of(tool.name) for tool in others[: effort.n_tasks // 2 + 1]),
    ]
    names = [
        UNKNOWN_ID,
        "",
        *(tool.tool_id for tool in _some(chance, visible, effort.n_names // 4 + 1)),
        *(tool.tool_id for tool in _some(chance, hidden, effort.n_names // 2 + 1)),
        *(tool.tool_id for tool in _some(chance, withheld, effort.n_names // 4 + 1)),
        *(f"{tool.tool_id}s" for tool in (*mine[:2], *others[:1])),
        *(tool.tool_id[:-1] for tool in others[:1]),
        *(tool.tool_id.upper() for tool in mine[:1]),
    ]
    called = _some(chance, visible, effort.n_names // 2 + 1)
    calls = [(tool.tool_id, sample_arguments(tool.input_schema)) for tool in called]
    calls += [(tool.tool_id, {"no_such_argument": [1, None, "x"]}) for tool in called[:2]]
    return Questions(
        tasks=tuple(dict.fromkeys(task[:_MAX_TASK_CHARS] for task in tasks)),
        names=tuple(dict.fromkeys(names)),
        calls=tuple(calls),
        brief=effort.brief,
    )


def words_of(name: str) -> str:
    """A tool's name as words."""
    return " ".join(re.split(r"[\W_]+", name)).strip()


def opening(text: str) -> str:
    """The first sentence of a description, bounded."""
    return re.split(r"(?<=[.!?])\s|\n", text.strip(), maxsplit=1)[0][:_MAX_TASK_CHARS]


def mcp_name(tool_id: str) -> str:
    """The name under which MCP clients would call this id."""
    return public_name(tool_id, target=NameTarget.MCP)


def _some(chance: random.Random, items: Sequence[Any], n: int) -> list[Any]:
    """A sample in the order of the items, so that it reads well."""
    if len(items) <= n:
        return list(items)
    return [items[place] for place in sorted(chance.sample(range(len(items)), n))]
