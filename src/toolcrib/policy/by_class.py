"""Asking Cedar about every decision class, one after the other: slow, and what the quick way is measured against.

Below: `asking.py`, `classes.py`. Above: `engine.py`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import cedarpy
import numpy as np

from toolcrib.policy.answers import Answers, CallerAnswers
from toolcrib.policy.asking import Action, Asking, ask, decision_of, only_approval_missing
from toolcrib.policy.classes import DecisionClasses
from toolcrib.policy.entities import caller_entity
from toolcrib.policy.policies import Policies
from toolcrib.types import Effect


def answers_by_class(
    asking: Sequence[Asking], classes: DecisionClasses, policies: Policies
) -> tuple[CallerAnswers, ...]:
    """What each of these callers may do.

    Raises:
        Exception: whatever Cedar raises; the caller of this denies.
    """
    first = [_unapproved(each, classes, policies) for each in asking]
    open_questions = np.logical_or.reduce([call.waiting for _, call, _ in first])
    return tuple(
        CallerAnswers(
            discover=discover,
            call=call,
            approved=_answers(each, classes, policies, entities, action="call", approved=True, only=open_questions)
            if open_questions.any()
            else None,
        )
        for each, (discover, call, entities) in zip(asking, first, strict=True)
    )


def _unapproved(
    asking: Asking, classes: DecisionClasses, policies: Policies
) -> tuple[Answers, Answers, cedarpy.Entities]:
    entities = classes.entities.with_added_json_str(json.dumps([caller_entity(asking.caller)]), policies.schema)
    everything = np.ones(len(classes.representatives), dtype=np.bool_)
    discover, call = (
        _answers(asking, classes, policies, entities, action=action, approved=False, only=everything)
        for action in ("discover", "call")
    )
    return discover, call, entities


def _answers(
    asking: Asking,
    classes: DecisionClasses,
    policies: Policies,
    entities: cedarpy.Entities,
    *,
    action: Action,
    approved: bool,
    only: np.ndarray,
) -> Answers:
    """Classes that Cedar cannot read are denied without asking it; those outside `only` are not asked about."""
    numbers = [int(number) for number in np.flatnonzero(only) if int(number) not in classes.faults]
    tools = [classes.representatives[number] for number in numbers]
    results = ask(asking, tools, action=action, approved=approved, handle=policies.handle, entities=entities)
    allowed, waiting, failed = (np.zeros(len(only), dtype=np.bool_) for _ in range(3))
    faulty = [number for number in classes.faults if only[number]]
    failed[faulty] = True
    errors = {classes.faults[number] for number in faulty}
    for number, result in zip(numbers, results, strict=True):
        decision = decision_of(result, policies.labels)
        allowed[number] = decision.effect is Effect.PERMIT
        waiting[number] = only_approval_missing(result, policies)
        failed[number] = bool(decision.errors)
        errors.update(decision.errors)
    return Answers(allowed=allowed, waiting=waiting, failed=failed, errors=tuple(sorted(errors)))
