"""The run: every case, in every way, as often as asked; and what it will cost, before.

Above: `cli/eval_model.py`. Below: `conversation.py`, `ways.py`.

Invariants
1. Ways take turns at each case, so that a run which ends early compares them over the same cases.
2. Why a run ended early is told; attempts before that stand.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from toolcrib.errors import ConnectorError, ToolcribError
from toolcrib.evals.models.asking import Asking, OverBudget
from toolcrib.evals.models.attempts import Attempt
from toolcrib.evals.models.checks import TaskCheck, check_of
from toolcrib.evals.models.conversation import Conversation
from toolcrib.evals.models.prices import FIRST_RATIO, Price
from toolcrib.evals.models.protocol import Declined, Vendor
from toolcrib.evals.models.ways import Start, Way, Ways
from toolcrib.evals.places import Asked, Place
from toolcrib.selection.tokens import estimate_text_tokens

_OUTPUT_TOKENS = 150
"""Of a turn: a call or a sentence. A model that thinks before it calls gives several times that."""
_SEARCHED_TOKENS = 2_000
"""What a vendor's search puts into the context: five definitions of a usual length, and its own words."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is asked.

    Args:
        repeat: how often each case is asked in each way.
        max_output: tokens of one answer. max_turns: answers in one conversation.
    """

    model: str
    ways: tuple[Way, ...]
    repeat: int
    max_output: int
    max_turns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What came of it.

    Args:
        not_kept: attempts that a replay lacks answers for.
        stopped: why the run ended early, or "". by_fault: for a fault, not for the budget.
        left_out: cases that were not asked, since they name candidates.
    """

    attempts: tuple[Attempt, ...]
    not_kept: int
    stopped: str
    by_fault: bool
    left_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a way will take, about. `usd` is None without a price."""

    way: Way
    requests: int
    input_tokens: int
    output_tokens: int
    usd: float | None


class Run:
    """One run over places.

    Args:
        ways_of: the starts of each place, by its name.
    Raises:
        ConfigError: a case's check cannot be read.
    """

    def __init__(self, places: Sequence[Place], ways_of: Mapping[str, Ways], *, vendor: Vendor, plan: Plan) -> None:
        self._ways_of, self._vendor, self._plan = ways_of, vendor, plan
        whole = [(place, asked) for place in places for asked in place.asked]
        self._asked = [(place, asked) for place, asked in whole if asked.case.candidates is None]
        self._left_out = len(whole) - len(self._asked)
        self._checks: dict[int, TaskCheck | None] = {
            number: check_of(asked.case) for number, (_, asked) in enumerate(self._asked)
        }

    @property
    def n_attempts(self) -> int:
        """How many attempts the whole run has."""
        return len(self._asked) * len(self._plan.ways) * self._plan.repeat

    def expected(self, price: Price | None) -> list[Expected]:
        """What each way will take, if a model calls one tool a turn and says little.

        Raises:
            ConfigError: the vendor has no such way.
        """
        return [self._expected(way, price) for way in self._plan.ways]

    def _expected(self, way: Way, price: Price | None) -> Expected:
        requests = tokens = 0
        for number, (place, asked) in enumerate(self._asked):
            start = self._ways_of[place.name].start(way, asked)
            turns = self._turns(way, asked, checked=self._checks[number] is not None)
            first = start.tool_tokens + estimate_text_tokens(f"{start.system}\n{asked.case.task}")
            requests += turns
            tokens += _input_tokens(way, first, turns=turns, found=_found(way, asked, start))
        requests, tokens = requests * self._plan.repeat, int(tokens * self._plan.repeat * FIRST_RATIO)
        output = requests * _OUTPUT_TOKENS
        usd = None if price is None else price.of(input_tokens=tokens, output_tokens=output)
        return Expected(way=way, requests=requests, input_tokens=tokens, output_tokens=output, usd=usd)

    def _turns(self, way: Way, asked: Asked, *, checked: bool) -> int:
        turns = len(asked.case.expect or "1") + checked + (way is Way.TOOLCRIB)
        return min(turns, self._plan.max_turns)

    def run(self, asking: Asking, *, parallel: int = 1, on_progress: Progress = lambda _done, _all: None) -> Ran:
        """Ask everything. A fault of the vendor's ends the run and is told.

        Args:
            parallel: conversations at a time. What comes of it does not depend on that, unless the run ends early.
        Raises:
            ConfigError: the vendor takes neither key nor model. StoreError: answers cannot be kept.
        """
        ending = _Ending()
        every = [(repeat, number) for repeat in range(1, self._plan.repeat + 1) for number in range(len(self._asked))]
        attempts: list[Attempt] = []
        not_kept = 0
        with ThreadPoolExecutor(parallel, thread_name_prefix="toolcrib-eval") as pool:
            futures = [pool.submit(self._case, asking, number, ending, repeat=repeat) for repeat, number in every]
            try:
                for future in futures:
                    for done in future.result():
                        if isinstance(done, Declined):
                            not_kept += 1
                        else:
                            attempts.append(done)
                    on_progress(len(attempts) + not_kept, self.n_attempts)
            finally:
                pool.shutdown(wait=True, cancel_futures=True)
        return Ran(
            attempts=tuple(attempts),
            not_kept=not_kept,
            stopped=ending.why,
            by_fault=ending.by_fault,
            left_out=self._left_out,
        )

    def _case(self, asking: Asking, number: int, ending: _Ending, *, repeat: int) -> list[Attempt | Declined]:
        """The case in each way, until the run ends."""
        found: list[Attempt | Declined] = []
        for way in self._plan.ways:
            if ending.why:
                break
            try:
                done = self._attempt(asking, number, way, repeat=repeat)
            except ConnectorError as fault:
                ending.end(str(fault), by_fault=True)
                break
            except ToolcribError as fault:
                ending.end(str(fault), by_fault=True)
                raise
            if isinstance(done, OverBudget):
                ending.end("the next request could go past the budget", by_fault=False)
                break
            found.append(done)
        return found

    def _attempt(self, asking: Asking, number: int, way: Way, *, repeat: int) -> Attempt | Declined | OverBudget:
        place, asked = self._asked[number]
        start = self._ways_of[place.name].start(way, asked)
        talk = Conversation(place, asked, start, vendor=self._vendor, check=self._checks[number], repeat=repeat)
        plan = self._plan
        return talk.held(asking, model=plan.model, max_output=plan.max_output, max_turns=plan.max_turns)


class _Ending:
    """Why a run ends early: the first reason stands."""

    def __init__(self) -> None:
        self.why = ""
        self.by_fault = False
        self._lock = threading.Lock()

    def end(self, why: str, *, by_fault: bool) -> None:
        """No further attempt begins."""
        with self._lock:
            if not self.why:
                self.why, self.by_fault = why, by_fault


def _found(way: Way, asked: Asked, start: Start) -> int:
    """Tokens that looking for tools puts into the context."""
    if start.door is not None:
        return estimate_text_tokens(start.door.find(asked.case.task).text)
    return min(_SEARCHED_TOKENS, start.tool_tokens) if way is Way.SEARCH else 0


def _input_tokens(way: Way, first: int, *, turns: int, found: int) -> int:
    """Tokens of all requests of a conversation: each holds what was said before it."""
    if way is Way.SEARCH:
        first = min(first, _SEARCHED_TOKENS)  # of what is deferred, the vendor counts what it loads
        return turns * (first + found) + _OUTPUT_TOKENS * turns * (turns - 1) // 2
    return turns * first + (turns - 1) * found + _OUTPUT_TOKENS * turns * (turns - 1) // 2
