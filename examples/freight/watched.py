"""A crib whose requests are written down as steps: who asked what, what came back, and which stage decided.

Above: `six_cases.py`. The last of these is the operator's view, from the trace; whoever asked never sees it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from toolcrib import CallOutcome, Crib
from toolcrib.identity.callers import caller_from_file
from toolcrib.types import Caller, Channel, Stage, StageRecord, Tool

LINE = 150
BY_POLICY = ("policy", "resource", "approval")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One request and what became of it.

    Args:
        asked: the words, or the call. code: of the call, or the search's outcome. told: the rest of the answer.
        offered: names of tools, best first; None where nothing was searched for.
        before: what somebody else did just before; "" where nothing happened.
        about: the tool that `stage` and `why` speak of.
        stage: the stage that lost it; "" where none did. why: in the operator's words.
    """

    who: str
    asked: str
    code: str
    told: Any = None
    offered: tuple[str, ...] | None = None
    about: str = ""
    stage: str = ""
    why: str = ""
    before: str = ""

    def lines(self) -> list[str]:
        """For people: what whoever asked sees, and under `operator` what only the operator does."""
        told = " ".join(str(self.told or "").split())
        came = f"{self.code}: {told}" if told else self.code
        offered = [] if self.offered is None else [f"    offered: {', '.join(self.offered) or 'nothing'}"]
        return [
            *([f"  ({self.before})"] if self.before else []),
            f"  {self.who}: {self.asked}",
            *offered,
            f"    {came if len(came) <= LINE else came[: LINE - 1] + '…'}",
            f"    operator: {self.about}: {f'{self.stage}: ' if self.stage else ''}{self.why}",
        ]


class Watched:
    """One crib, and the steps so far."""

    def __init__(self, crib: Crib, root: Path) -> None:
        self.crib = crib
        self.root = root
        self.steps: list[Step] = []
        self._before = ""

    def meanwhile(self, what: str) -> None:
        """Say what was done before the next step; the caller does it."""
        self._before = what

    def person(self, name: str, **changed: Any) -> Caller:
        """The caller of this file as it is now; `changed`: fields that are others this time."""
        caller = caller_from_file(self.root / "callers" / f"{name}.json", environment="production", region="eu")
        return replace(caller, **changed)

    def select(self, task: str, caller: Caller, *, about: str) -> dict[str, Tool]:
        """What is offered for the task, by name. `about`: the tool that the operator asks about afterwards."""
        offer = self.crib.select(task, caller=caller)
        tools = {chosen.tool.name: chosen.tool for chosen in offer.tools}
        self._note(
            offer.trace_id,
            who=caller.subject,
            asked=task,
            code=str(offer.outcome),
            told=offer.message,
            offered=tuple(tools),
            about=about,
        )
        return tools

    async def call(
        self, name: str, caller: Caller, *, digest: str = "", key: str = "", **arguments: str
    ) -> CallOutcome:
        """What the call came to. `digest`: the definition it was offered under. `key`: for another such write."""
        done = await self.crib.call(
            f"freight.{name}", arguments, caller=caller, offered_digest=digest, idempotency_key=key
        )
        shown = f"{name}({', '.join(f'{argument}={value!r}' for argument, value in arguments.items())})"
        asked = f"{shown}, idempotency key {key!r}" if key else shown
        told = done.message or (done.result.structured if done.result else None)
        self._note(done.trace_id, who=caller.subject, asked=asked, code=str(done.code), told=told, about=name)
        return done

    def grant(self, approval_id: str, approver: Caller) -> None:
        """This person grants the waiting request, as `toolcrib approvals grant` does; policy says whether it may."""
        done = self.crib.decide_approval(approval_id, granted=True, approver=approver, channel=Channel.CLI)
        rules = ", ".join(done.policies) or "no rule lets this person approve it"
        code = "granted" if done.done else done.status
        self._add(
            Step(
                who=approver.subject, asked="grants the request", code=code, about="approve", stage="policy", why=rules
            )
        )

    def _note(self, trace_id: str, *, about: str, **told: Any) -> None:
        found = self.crib.explain(trace_id, tool_id=f"freight.{about}")
        why = found.reason
        if found.lost_at is None:
            why = "carried out" if found.code == "carried_out" else "offered"
        elif found.lost_at in (Stage.GATE, Stage.EXECUTION):
            why = _check(self.crib.trace(trace_id).record(found.lost_at))
        self._add(Step(about=about, stage=str(found.lost_at or ""), why=why, **told))

    def _add(self, step: Step) -> None:
        self.steps.append(replace(step, before=self._before))
        self._before = ""


def _check(record: StageRecord | None) -> str:
    """Which check refused a call, and the policies behind it where it was one of policy."""
    view = record.operator_view if record else {}
    check = view.get("check") or "the tool itself"
    rules = ", ".join(view.get("policies", ())) if view.get("effect") != "permit" and check in BY_POLICY else ""
    return f"check {check!r} ({rules})" if rules else f"check {check!r}" if view.get("check") else check


@asynccontextmanager
async def watched(root: Path) -> AsyncIterator[Watched]:
    """The crib in this folder, opened anew, as any process would open it."""
    async with Crib.open(root) as crib:
        yield Watched(crib, root)
