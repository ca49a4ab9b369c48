"""What policy says of all decision classes at once: the form that both ways of asking give.

Above: `by_class.py` and `partial.py` make these, `engine.py` joins them to an eligibility.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toolcrib.types import BoolArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answers:
    """One caller and one action. All arrays: bool, shape (n_classes,).

    Args:
        allowed: a permit and no forbid, and no error.
        waiting: forbidden, by rules that oblige to an approval alone, and no error.
        failed: evaluation went wrong; neither allowed nor waiting.
        errors: what went wrong; not necessarily the words for every class.
    """

    allowed: BoolArray
    waiting: BoolArray
    failed: BoolArray
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CallerAnswers:
    """One caller: may it discover, may it call, and may it call once approved. The last where something waits."""

    discover: Answers
    call: Answers
    approved: Answers | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Joint:
    """What all of several callers may do together. All arrays: bool, shape (n_classes,)."""

    permitted: BoolArray
    needs_approval: BoolArray
    disclosed: BoolArray
    errors: tuple[str, ...]


def joint(answers: tuple[CallerAnswers, ...]) -> Joint:
    """The intersection: an agent that acts for a user may do what both may.

    A call waits where each of them would be let through, once approved, and not all of them are before that.
    """
    discover = np.logical_and.reduce([each.discover.allowed for each in answers])
    call = np.logical_and.reduce([each.call.allowed for each in answers])
    failed = np.logical_or.reduce([each.discover.failed | each.call.failed for each in answers])
    waiting = ~call & np.logical_and.reduce([each.call.allowed | each.call.waiting for each in answers])
    errors = {error for each in answers for error in (*each.discover.errors, *each.call.errors)}
    for each in answers:
        if each.approved is None:
            continue
        failed |= waiting & each.approved.failed
        errors.update(each.approved.errors)
    for each in answers:
        if each.approved is not None:
            waiting = waiting & each.approved.allowed
    usable = discover & (call | waiting)
    return Joint(
        permitted=usable,
        needs_approval=usable & waiting,
        disclosed=discover & ~(call | waiting) & ~failed,
        errors=tuple(sorted(errors)),
    )
