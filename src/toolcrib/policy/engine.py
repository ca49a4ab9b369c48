"""The policy engine: from a caller and tools to decisions, with every failure a denial.

Above: the pipeline (before search) and the gate's caller (before a call). Below: `partial.py` and `by_class.py`, two
ways to the same eligibility; `asking.py` for one tool; `approving.py` for approvers.

    eligibility       all tools of a snapshot, for discover and for call: a bitmap over tool numbers
    decide_discover   one tool: may it be known of, and why
    decide_call       one tool, afresh, from its own attributes and the resource that the arguments name
    decide_approval   one waiting call: may this approver let it run

Invariants
1. Default deny. An evaluation error is a denial, whichever rule it came from: Cedar skips a rule that fails, and a
   skipped forbid would permit.
2. Deciding never raises for what a caller or a tool contains; the decision says what went wrong.
3. `needs_approval` is said only where an approval would in fact let the call through.
4. Who acts for somebody may do what both may: each is judged with its own attributes, and both must be permitted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from toolcrib.errors import PolicyError
from toolcrib.policy.answers import CallerAnswers, joint
from toolcrib.policy.approving import approval_decision
from toolcrib.policy.asking import MAX_ERRORS, Action, Asking, ask, decision_of, entities_of, only_approval_missing
from toolcrib.policy.by_class import answers_by_class
from toolcrib.policy.classes import DecisionClasses, decision_classes
from toolcrib.policy.partial import answers_by_residuals
from toolcrib.policy.policies import Policies, load_policies
from toolcrib.policy.residuals import NotExact
from toolcrib.types import (
    ApprovalRequest,
    BoolArray,
    Caller,
    Channel,
    Decision,
    Effect,
    Eligibility,
    Resource,
    Tool,
)


class PolicyEngine:
    """One loaded policy text. Immutable; a changed text is a new engine with another `version`."""

    __slots__ = ("_policies",)

    def __init__(self, policies: Policies) -> None:
        self._policies = policies

    @classmethod
    def from_text(cls, text: str | None = None, *, source: str = "built-in") -> PolicyEngine:
        """The engine for a policy text; None is the built-in default. An empty text permits nothing.

        Args:
            source: the file the text came from, for error messages.
        Raises:
            PolicySyntaxError: with file, line and what to do.
        """
        return cls(load_policies(text, source=source))

    @property
    def version(self) -> str:
        """ "sha256:<hex>" over policy text and schema."""
        return self._policies.version

    @property
    def names_subjects(self) -> bool:
        """Whether a policy names a caller: the subject then belongs into the caller's fingerprint."""
        return self._policies.names_subjects

    @property
    def named_tools(self) -> frozenset[str]:
        """Tool ids that policies name; each such tool is a decision class of its own."""
        return self._policies.named_tools

    def classes(self, tools: Sequence[Tool]) -> DecisionClasses:
        """The decision classes of a snapshot's tools. Computed once per snapshot and policy."""
        known = self._policies
        return decision_classes(tools, named_tools=known.named_tools, by_name=known.reads_names, schema=known.schema)

    # --- all tools of a snapshot

    def eligibility(
        self,
        caller: Caller,
        *,
        tools: Sequence[Tool],
        classes: DecisionClasses,
        snapshot_version: str,
        channel: Channel,
        unknown_risk: str,
    ) -> Eligibility:
        """What this caller may know of, over all tools of a snapshot.

        Permitted is what may be discovered and called, after an approval if need be (listed = found = callable). No
        call has named a resource yet: policies see no `context.target`.

        Args:
            tools: the snapshot's tools, those that `classes` was made from.
            unknown_risk: "allow" or "needs_approval", as configured for this channel.
        Raises:
            PolicyError: `classes` belongs to other tools.
        """
        _refuse_other_tools(tools, classes)
        asking = _asking(caller, channel=channel, unknown_risk=unknown_risk)
        method: Literal["residual", "class"] = "residual"
        try:
            try:
                answers = answers_by_residuals(asking, classes, self._policies)
            except NotExact:
                method = "class"
                answers = answers_by_class(asking, classes, self._policies)
        except BaseException as fault:  # noqa: BLE001 - whatever goes wrong must deny; `_why` passes interrupts on
            return self._nothing(caller, classes, snapshot_version, method, _why(fault))
        return self._eligibility(caller, classes, snapshot_version, method, answers)

    def eligibility_by_class(
        self,
        caller: Caller,
        *,
        tools: Sequence[Tool],
        classes: DecisionClasses,
        snapshot_version: str,
        channel: Channel,
        unknown_risk: str,
    ) -> Eligibility:
        """The same by plain evaluation of each class: what `eligibility` is held to, and falls back on."""
        _refuse_other_tools(tools, classes)
        try:
            asking = _asking(caller, channel=channel, unknown_risk=unknown_risk)
            answers = answers_by_class(asking, classes, self._policies)
        except BaseException as fault:  # noqa: BLE001 - as above
            return self._nothing(caller, classes, snapshot_version, "class", _why(fault))
        return self._eligibility(caller, classes, snapshot_version, "class", answers)

    def _eligibility(
        self,
        caller: Caller,
        classes: DecisionClasses,
        snapshot_version: str,
        method: Literal["residual", "class"],
        answers: tuple[CallerAnswers, ...],
    ) -> Eligibility:
        found = joint(answers)
        return Eligibility(
            snapshot_version=snapshot_version,
            policy_version=self.version,
            fingerprint=caller.fingerprint(with_subject=self.names_subjects),
            permitted=_spread(classes, found.permitted),
            needs_approval=_spread(classes, found.needs_approval),
            disclosed=_spread(classes, found.disclosed),
            class_of=classes.class_of,
            errors=found.errors[:MAX_ERRORS],
            method=method,
        )

    def _nothing(
        self,
        caller: Caller,
        classes: DecisionClasses,
        snapshot_version: str,
        method: Literal["residual", "class"],
        error: str,
    ) -> Eligibility:
        none = _spread(classes, np.zeros(len(classes.representatives), dtype=np.bool_))
        return Eligibility(
            snapshot_version=snapshot_version,
            policy_version=self.version,
            fingerprint=caller.fingerprint(with_subject=self.names_subjects),
            permitted=none,
            needs_approval=none,
            disclosed=none,
            class_of=classes.class_of,
            errors=(error,),
            method=method,
        )

    # --- one tool

    def decide_discover(self, caller: Caller, tool: Tool, *, channel: Channel, unknown_risk: str) -> Decision:
        """Whether this caller may know of this tool, and which policies say so."""
        questions = self._questions(caller, tool, channel=channel, unknown_risk=unknown_risk)
        return _joined([question("discover", False) for question in questions])

    def decide_call(
        self,
        caller: Caller,
        tool: Tool,
        *,
        channel: Channel,
        unknown_risk: str,
        approved: bool,
        target: Resource | None = None,
    ) -> Decision:
        """Whether this caller may call this tool now, from the tool's own attributes and nothing remembered.

        What may not be discovered may not be called either: the decision is then the one on `discover`.

        Args:
            approved: somebody with the right to do so approved this very call.
            target: the resource that the arguments name; policies read it as `context.target`.
        """
        questions = self._questions(caller, tool, channel=channel, unknown_risk=unknown_risk, target=target)
        discover = _joined([question("discover", False) for question in questions])
        if discover.effect is not Effect.PERMIT:
            return discover
        now = _joined([question("call", approved) for question in questions])
        if now.effect is not Effect.NEEDS_APPROVAL:
            return now
        then = _joined([question("call", True) for question in questions])
        return now if then.effect is Effect.PERMIT else replace(now, effect=Effect.FORBID, errors=then.errors)

    def decide_approval(self, approver: Caller, *, tool: Tool, request: ApprovalRequest, channel: Channel) -> Decision:
        """Whether this approver may let this waiting call run; see `approving.py` for the rules without a policy."""
        try:
            return approval_decision(approver, tool=tool, request=request, channel=channel, policies=self._policies)
        except BaseException as fault:  # noqa: BLE001 - as above
            return Decision(effect=Effect.FORBID, errors=(_why(fault),))

    def _questions(
        self, caller: Caller, tool: Tool, *, channel: Channel, unknown_risk: str, target: Resource | None = None
    ) -> list[Callable[[Action, bool], Decision]]:
        """(action, approved) -> decision, for the caller and for each it acts for. None of them raises."""
        asking = _asking(caller, channel=channel, unknown_risk=unknown_risk)
        return [self._question(each, tool, target) for each in asking]

    def _question(self, asking: Asking, tool: Tool, target: Resource | None) -> Callable[[Action, bool], Decision]:
        known = self._policies
        try:
            entities = entities_of(asking.caller, tool, known.schema, target=target)
        except BaseException as fault:  # noqa: BLE001 - as above
            denial = Decision(effect=Effect.FORBID, errors=(_why(fault),))
            return lambda _action, _approved: denial

        def question(action: Action, approved: bool) -> Decision:
            """`NEEDS_APPROVAL`: nothing but rules that oblige to one forbids; not yet whether it would help."""
            named = target if action == "call" else None
            try:
                (result,) = ask(
                    asking, [tool], action=action, approved=approved, target=named, handle=known.handle,
                    entities=entities,
                )  # fmt: skip
                decision = decision_of(result, known.labels)
                waits = not approved and only_approval_missing(result, known)
            except BaseException as fault:  # noqa: BLE001 - as above
                return Decision(effect=Effect.FORBID, errors=(_why(fault),))
            return replace(decision, effect=Effect.NEEDS_APPROVAL) if waits else decision

        return question


def _asking(caller: Caller, *, channel: Channel, unknown_risk: str) -> tuple[Asking, ...]:
    """The caller, and everybody it acts for: all must be permitted."""
    return tuple(Asking(caller=one, channel=channel, unknown_risk=unknown_risk) for one in caller.chain)


def _joined(decisions: Sequence[Decision]) -> Decision:
    """The strictest of them, with the policies of those that are that strict."""
    for effect in (Effect.FORBID, Effect.NEEDS_APPROVAL, Effect.PERMIT):
        alike = [decision for decision in decisions if decision.effect is effect]
        if alike:
            return Decision(
                effect=effect,
                policies=tuple(dict.fromkeys(label for decision in alike for label in decision.policies)),
                errors=tuple(dict.fromkeys(error for decision in alike for error in decision.errors)),
            )
    raise AssertionError("no decision at all")


def _refuse_other_tools(tools: Sequence[Tool], classes: DecisionClasses) -> None:
    if len(tools) != len(classes.class_of):
        raise PolicyError(f"decision classes of {len(classes.class_of)} tools do not fit a snapshot of {len(tools)}")


def _why(fault: BaseException) -> str:
    """Every fault of evaluation in words; of what is not an `Exception`, Cedar's panic alone is one."""
    if not isinstance(fault, Exception) and type(fault).__name__ != "PanicException":
        raise fault
    return f"policy could not be evaluated: {type(fault).__name__}: {fault}"


def _spread(classes: DecisionClasses, per_class: BoolArray) -> BoolArray:
    """A value per class, as a read-only array over tool numbers."""
    spread: BoolArray = per_class[classes.class_of]
    spread.flags.writeable = False
    return spread
