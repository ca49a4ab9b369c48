"""An attempt: one case asked once in one way, every call judged. And what it was worth.

Above: `summary.py`. Below: `conversation.py` fills it.

Invariants
1. A call counts as a call of a tool only if the model had that tool to call; a name that it made up, or that the caller
   may not use, counts as `unavailable`.
2. Which tool was called and whether its arguments fit are two questions, told apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolcrib.evals.cases import Case
from toolcrib.evals.models.ways import Way
from toolcrib.types import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A call that the model made.

    Args:
        available: the caller may use this tool, and the model could call it.
        faults: what the gate has against the arguments; empty when they fit.
        as_expected: whether every argument that the case expects has its value; None where it expects none.
    """

    tool_id: str
    arguments: Any
    available: bool
    faults: tuple[str, ...]
    as_expected: bool | None

    @property
    def fits(self) -> bool:
        """Whether the gate would find nothing wrong with the arguments."""
        return self.available and not self.faults


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One case, asked once in one way.

    Args:
        repeat: from 1.
        lookups: calls of find_tools and describe_tools, or searches of the vendor.
        shown: expected tools whose definitions the model had before it ended.
        first_input_tokens: of the first request. The other counts are over all requests.
        failed: why the vendor gave no answer to a request of it, or "".
        cut: an answer ran into the limit of output. out_of_turns: it was ended for its length.
        completed: whether the case's check holds; None where it has none.
    """

    set_name: str
    case: Case
    way: Way
    repeat: int
    calls: tuple[Made, ...]
    lookups: int
    turns: int
    shown: frozenset[str]
    answer: str
    input_tokens: int
    first_input_tokens: int
    output_tokens: int
    failed: str = ""
    cut: bool = False
    out_of_turns: bool = False
    completed: bool | None = None

    @property
    def called(self) -> tuple[str, ...]:
        """Ids of the tools that were called, in order."""
        return tuple(made.tool_id for made in self.calls if made.available)

    @property
    def covered(self) -> float | None:
        """Share of the needed capabilities with an acceptable tool among those called; None where nothing is needed."""
        return covered(self.case, self.called)

    @property
    def forbidden(self) -> bool:
        """Whether a tool was called that the case forbids."""
        return not self.case.forbid.isdisjoint(self.called)

    @property
    def correct(self) -> bool:
        """All that is needed was called and nothing forbidden; where no tool fits, nothing was called."""
        if self.failed:
            return False
        return not self.called if self.case.expect is None else self.covered == 1.0 and not self.forbidden

    @property
    def exact(self) -> bool:
        """Correct, and no other tool was called."""
        return self.correct and all(tool_id in _wanted(self.case) for tool_id in self.called)

    @property
    def first_correct(self) -> bool | None:
        """Whether the first call was of a needed tool; None where no tool fits."""
        if self.case.expect is None:
            return None
        return bool(self.called) and self.called[0] in _wanted(self.case)

    @property
    def missed(self) -> str:
        """Why it is not correct: `failed`, `called_needlessly`, `forbidden`, `not_shown`, `not_called`; "" if it is."""
        if self.correct:
            return ""
        if self.failed:
            return "failed"
        if self.case.expect is None:
            return "called_needlessly"
        if self.forbidden:
            return "forbidden"
        lost = [tools for tools in self.case.expect if tools.isdisjoint(self.called)]
        return "not_shown" if any(tools.isdisjoint(self.shown) for tools in lost) else "not_called"


def covered(case: Case, called: tuple[str, ...]) -> float | None:
    """Share of the case's capabilities with an acceptable tool among these; None where no tool fits."""
    if case.expect is None:
        return None
    return sum(not tools.isdisjoint(called) for tools in case.expect) / len(case.expect)


def holds_expected(expected: JsonObject | None, arguments: Any) -> bool | None:
    """Whether the arguments hold every expected one with its value; None where none is expected."""
    if expected is None:
        return None
    if not isinstance(arguments, Mapping):
        return False
    return all(name in arguments and arguments[name] == value for name, value in expected.items())


def _wanted(case: Case) -> frozenset[str]:
    return frozenset().union(*case.expect or ())
