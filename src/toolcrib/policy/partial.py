"""Asking Cedar once for all decision classes: with the tool unknown, and then what is left over columns.

Below: `residuals.py`, `asking.py`, `classes.py`. Above: `engine.py`, which asks class by class where this is not exact.

Cedar calls partial evaluation experimental and warns against deciding by it. Hence the bounds: the resource is the only
thing unknown, every policy comes back, every operator is one that `residuals.py` knows; and a call is always decided
by plain evaluation of that one tool.

Invariants
1. The answers are those of `by_class.py`, errors included, or `NotExact` is raised.
2. A policy is evaluated again for another action, or for an approval, only where it could say something else there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import cedarpy
import numpy as np

from toolcrib.policy.answers import Answers, CallerAnswers
from toolcrib.policy.asking import MAX_ERRORS, Action, Asking, ask, decision_of, entities_of, labelled
from toolcrib.policy.classes import DecisionClasses
from toolcrib.policy.columns import Columns
from toolcrib.policy.entities import caller_entity, caller_uid
from toolcrib.policy.operands import Truth
from toolcrib.policy.policies import Part, Policies
from toolcrib.policy.residuals import NotExact, satisfied

_ESCAPES = {"\0": "\\0", "\t": "\\t", "\n": "\\n", "\r": "\\r", "'": "\\'", '"': '\\"', "\\": "\\\\"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Rule:
    """What one policy says to one question.

    Args:
        truth: for which classes it is satisfied; None: for none.
        fault: why it fails whatever the tool is, in Cedar's words, or "".
    """

    permits: bool
    truth: Truth | None
    fault: str = ""


def answers_by_residuals(
    asking: Sequence[Asking], classes: DecisionClasses, policies: Policies
) -> tuple[CallerAnswers, ...]:
    """What each of these callers may do.

    Raises:
        NotExact: this way cannot be sure to give what Cedar gives, class by class.
        ValueError: Cedar cannot read a caller.
    """
    first = [_Questions(each, classes, policies) for each in asking]
    answers = [each.unapproved() for each in first]
    if not np.logical_or.reduce([call.waiting for _, call in answers]).any():
        return tuple(CallerAnswers(discover=discover, call=call, approved=None) for discover, call in answers)
    return tuple(
        CallerAnswers(discover=discover, call=call, approved=each.approved())
        for each, (discover, call) in zip(first, answers, strict=True)
    )


class _Questions:
    """One caller's questions to Cedar, with what was answered so far."""

    __slots__ = ("_asking", "_call", "_classes", "_entities", "_policies")

    def __init__(self, asking: Asking, classes: DecisionClasses, policies: Policies) -> None:
        self._asking, self._classes, self._policies = asking, classes, policies
        self._entities = cedarpy.Entities.from_json_str(json.dumps([caller_entity(asking.caller)]), policies.schema)
        self._call: dict[str, _Rule] = {}

    def unapproved(self) -> tuple[Answers, Answers]:
        """For discover, and for call."""
        self._call = self._said(self._policies.whole, action="call", approved=False)
        alike = {cedar_id: r for cedar_id, r in self._call.items() if cedar_id not in self._policies.not_discovery}
        discover = {**alike, **self._said(self._policies.by_action, action="discover", approved=False)}
        return (
            self._answers(discover, action="discover", approved=False),
            self._answers(self._call, action="call", approved=False),
        )

    def approved(self) -> Answers:
        """For a call that is approved."""
        call = {**self._call, **self._said(self._policies.by_approval, action="call", approved=True)}
        return self._answers(call, action="call", approved=True)

    def _said(self, part: Part, *, action: Action, approved: bool) -> dict[str, _Rule]:
        """What these policies say: Cedar's part of it, and then the residuals over all classes."""
        if not part.ids:
            return {}
        try:
            result = cedarpy.is_authorized_partial(
                {
                    "principal": _in_words(caller_uid(self._asking.caller)),
                    "action": f'Action::"{action}"',
                    "resource": None,
                    "context": self._asking.context(approved=approved),
                },
                part.handle,
                self._entities,
            )
        except RecursionError as fault:
            raise NotExact("a residual is nested too deeply") from fault
        found = result.diagnostics
        if set(result.residuals) != part.labels.keys() or found.unknown_entities:
            raise NotExact("not every policy came back, or more than the resource is unknown")
        faults = {_failed_policy(error): labelled(error, part.labels) for error in found.errors}
        if not faults.keys() <= part.labels.keys():
            raise NotExact("an error outside the policies")
        over = self._classes.columns
        return {
            part.whole_id(cedar_id): _rule(residual, faults.get(cedar_id, ""), over)
            for cedar_id, residual in result.residuals.items()
        }

    def _answers(self, rules: Mapping[str, _Rule], *, action: Action, approved: bool) -> Answers:
        """The policies taken together, as Cedar does: no permit, no access; a forbid wins; an error denies."""
        n_classes = self._classes.columns.n_classes
        permitted, forbidden, refused = (np.zeros(n_classes, dtype=np.bool_) for _ in range(3))
        failed, to_ask = np.zeros(n_classes, dtype=np.bool_), set[int]()
        for cedar_id, rule in rules.items():
            if rule.fault:
                failed[:] = True
            if rule.truth is None:
                continue
            if rule.permits:
                permitted |= rule.truth.holds
            else:
                forbidden |= rule.truth.holds
                if cedar_id not in self._policies.approvals:
                    refused |= rule.truth.holds
            if rule.truth.failed is not None and rule.truth.failed.any():
                failed |= rule.truth.failed
                to_ask.add(int(np.argmax(rule.truth.failed)))
        errors = {rule.fault for rule in rules.values() if rule.fault}
        errors.update(self._in_cedars_words(sorted(to_ask), action=action, approved=approved))
        for class_idx, fault in self._classes.faults.items():
            failed[class_idx] = True
            errors.add(fault)
        return Answers(
            allowed=permitted & ~forbidden & ~failed,
            waiting=forbidden & ~refused & ~failed,
            failed=failed,
            errors=tuple(sorted(errors)),
        )

    def _in_cedars_words(self, class_idxs: Sequence[int], *, action: Action, approved: bool) -> set[str]:
        """The errors of these classes, asked of Cedar itself, which must agree that there are any."""
        errors: set[str] = set()
        for class_idx in [idx for idx in class_idxs if idx not in self._classes.faults][:MAX_ERRORS]:
            tool = self._classes.representatives[class_idx]
            entities = entities_of(self._asking.caller, tool, self._policies.schema)
            (result,) = ask(
                self._asking, [tool], action=action, approved=approved, handle=self._policies.handle, entities=entities
            )
            if not (found := decision_of(result, self._policies.labels).errors):
                raise NotExact("an error that Cedar does not report")
            errors.update(found)
        return errors


def _rule(residual: Mapping[str, Any], fault: str, over: Columns) -> _Rule:
    permits = residual["effect"] == "permit"
    if [condition["body"].get("Value") is False for condition in residual["conditions"]] == [True]:
        return _Rule(permits=permits, truth=None, fault=fault)
    if fault:
        raise NotExact("a policy that fails, and yet something is left of it")
    try:
        return _Rule(permits=permits, truth=satisfied(residual, over))
    except RecursionError as deep:
        raise NotExact("a residual is nested too deeply") from deep


def _failed_policy(error: str) -> str:
    found = re.search(r"`(policy\d+)`", error)
    return found.group(1) if found else ""


def _in_words(uid: Mapping[str, str]) -> str:
    """An entity in Cedar's syntax, which is how partial evaluation wants it: as Cedar itself would write it.

    Cedar refuses any other spelling; such a caller is then decided class by class.
    """
    return f'{uid["type"]}::"{"".join(_ESCAPES.get(sign) or _escaped(sign) for sign in uid["id"])}"'


def _escaped(sign: str) -> str:
    return sign if sign.isprintable() else f"\\u{{{ord(sign):x}}}"
