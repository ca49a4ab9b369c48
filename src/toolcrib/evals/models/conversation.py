"""One conversation: a case asked in one way until it is settled. Read this first.

    opening ─▶ ask ─▶ turn ─▶ calls? ──none──▶ the model has ended
                ▲              │ each: looking for tools ─▶ the gateway's answer
                │              │       a tool            ─▶ judged; answered with the case's result, or {"ok": true}
                └─ following ◀─┘ settled? ──yes──▶ ended

Above: `run.py`. Below: `ways.py` (how it begins), `asking.py` (answers), `checks.py`.

Invariants
1. No tool is called. What a call gives is what the case says, so later turns rest on made-up results: a case without a
   check is therefore settled as soon as all that it needs was called, or something that makes it wrong for good.
2. Arguments that do not fit are answered as the gate would: with what is wrong. The call counts as made all the same.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from toolcrib.errors import InvalidDefinitionError
from toolcrib.evals.models.asking import Asking, OverBudget
from toolcrib.evals.models.attempts import Attempt, Made, covered, holds_expected
from toolcrib.evals.models.checks import STUB, TaskCheck
from toolcrib.evals.models.protocol import Answered, Declined, Turn, Vendor, WireCall
from toolcrib.evals.models.ways import LookedUp, Start
from toolcrib.evals.places import Asked, Place
from toolcrib.types import ToolCall

NOT_AVAILABLE = "No tool of this name is available to you."


class Conversation:
    """One attempt in the making."""

    def __init__(
        self, place: Place, asked: Asked, start: Start, *, vendor: Vendor, check: TaskCheck | None, repeat: int
    ) -> None:
        self._place, self._asked, self._start = place, asked, start
        self._vendor, self._check, self._repeat = vendor, check, repeat
        self._made: list[Made] = []
        self._shown = set(start.shown)
        self._turns: list[Turn] = []
        self._lookups = 0
        view = place.pipeline.view(asked.caller, place.channel)
        self._in_reach = {tool.tool_id: tool for tool in view.tools}

    def held(self, asking: Asking, *, model: str, max_output: int, max_turns: int) -> Attempt | Declined | OverBudget:
        """The attempt; Declined where an answer was not kept and none may be asked for.

        Raises:
            ToolcribError: as `Asking.ask`.
        """
        start = self._start
        request = self._vendor.opening(
            self._asked.case.task, model=model, system=start.system, tools=start.tools, max_output=max_output
        )
        while True:
            answer = asking.ask(request, repeat=self._repeat, tool_tokens=start.tool_tokens)
            if isinstance(answer, OverBudget) or (isinstance(answer, Declined) and not answer.status):
                return answer
            if isinstance(answer, Declined):
                return self._attempt(failed=f"status {answer.status}: {answer.message}")
            results = self._heard(answer.turn)
            if not (results or answer.turn.paused) or self._settled():
                return self._attempt()
            if len(self._turns) >= max_turns:
                return self._attempt(out_of_turns=True)
            request = self._vendor.following(request, answer.body, results)

    def _heard(self, turn: Turn) -> list[Answered]:
        self._turns.append(turn)
        self._lookups += turn.searches
        by_name = self._start.by_name
        self._shown |= {by_name[name].tool_id for name in turn.loaded if name in by_name}
        return [self._answered(call) for call in turn.calls]

    def _answered(self, call: WireCall) -> Answered:
        door = self._start.door
        if door is None:
            tool = self._start.by_name.get(call.name)
            proposed = ToolCall(tool_id=tool.tool_id if tool else call.name, arguments=call.arguments)
            return self._judged(call.call_id, proposed, known=tool is not None)
        found = door.answer(call.name, call.arguments)
        if isinstance(found, LookedUp):
            self._lookups += 1
            self._shown.update(found.shown)
            return Answered(call_id=call.call_id, text=found.text, is_error=found.is_error)
        return self._judged(call.call_id, found, known=True)

    def _judged(self, call_id: str, call: ToolCall, *, known: bool) -> Answered:
        tool = self._in_reach.get(call.tool_id) if known else None
        if tool is None:
            self._keep(call, available=False)
            return Answered(call_id=call_id, text=NOT_AVAILABLE, is_error=True)
        try:
            faults = [
                f"{fault.path or '(root)'}: expected {fault.expected}, got {fault.got}"
                for fault in self._place.pipeline.checker.check(tool, call.arguments)
            ]
        except InvalidDefinitionError as fault:
            faults = [fault.what]
        self._keep(call, available=True, faults=faults)
        if faults:
            said = json.dumps({"code": "invalid_arguments", "faults": faults}, ensure_ascii=False)
            return Answered(call_id=call_id, text=said, is_error=True)
        return Answered(call_id=call_id, text=self._check.result_of(tool.tool_id) if self._check else STUB)

    def _keep(self, call: ToolCall, *, available: bool, faults: Sequence[str] = ()) -> None:
        expected = self._asked.case.arguments.get(call.tool_id) if available else None
        self._made.append(
            Made(
                tool_id=call.tool_id,
                arguments=_plain(call.arguments),
                available=available,
                faults=tuple(faults),
                as_expected=holds_expected(expected, call.arguments),
            )
        )

    def _settled(self) -> bool:
        """Whether nothing that comes could change what is measured."""
        case = self._asked.case
        if self._check is not None:
            return False
        called = tuple(made.tool_id for made in self._made if made.available)
        if case.expect is None:
            return bool(called)
        return covered(case, called) == 1.0 or not case.forbid.isdisjoint(called)

    def _attempt(self, *, failed: str = "", out_of_turns: bool = False) -> Attempt:
        case, turns = self._asked.case, self._turns
        answer = turns[-1].text if turns else ""
        completed: bool | None = None
        if self._check is not None:
            fitting = [made.tool_id for made in self._made if made.fits]
            ended = not failed and not out_of_turns
            completed = ended and self._check.holds(called=fitting, answer=answer)
        wanted = frozenset().union(*case.expect or ())
        return Attempt(
            set_name=self._place.name,
            case=case,
            way=self._start.way,
            repeat=self._repeat,
            calls=tuple(self._made),
            lookups=self._lookups,
            turns=len(turns),
            shown=wanted & self._shown,
            answer=answer,
            input_tokens=sum(turn.input_tokens for turn in turns),
            first_input_tokens=turns[0].input_tokens if turns else 0,
            output_tokens=sum(turn.output_tokens for turn in turns),
            failed=failed,
            cut=any(turn.cut for turn in turns),
            out_of_turns=out_of_turns,
            completed=completed,
        )


def _plain(arguments: Any) -> Any:
    return dict(arguments) if hasattr(arguments, "keys") else arguments
