"""What changes for whom when one policy takes the place of another.

Below: `comparing_targets.py`, `comparing_approvals.py`, `comparing_strangers.py`, `unseen.py`, `engine.py`. Above:
`policy_desk.py`, which gathers the callers and counts calls.

    no resource named        discover and call, all tools at once
    a resource named         calls on samples of what the arguments may name, where a rule reads it
    somebody else's call     approvals, on samples of requests, where the rules on them change

    the callers at hand      all that changes
    strangers                what widens, for whoever no caller at hand stands for

Invariants
1. Both policies are asked about the same catalog, callers and channels; only the policy differs.
2. Anything that lets a caller do more than before widens: a tool that can be found, a call that was forbidden, an
   approval that is not asked for any more, or one that may be given. It is said even where the same change narrows
   elsewhere, and even where nobody at hand is such a caller.
3. What was not tried is not called unchanged: `Comparison.unseen` says what it is, and counts as widening.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from toolcrib.policy.changes import (
    EFFECTS,
    Asker,
    CallChange,
    Change,
    ChangedRules,
    Part,
    Unseen,
    changed_rules,
    on_approvals,
    on_calls,
)
from toolcrib.policy.classes import DecisionClasses
from toolcrib.policy.comparing_approvals import approval_changes
from toolcrib.policy.comparing_strangers import opened
from toolcrib.policy.comparing_targets import target_changes
from toolcrib.policy.loaded import LoadedPolicy
from toolcrib.policy.unseen import unseen
from toolcrib.types import BoolArray, Channel, Eligibility, IntArray, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What changes, in the callers' order, and what nobody could see. Callers for whom nothing changes are left out.

    `n_strangers`: kinds of callers that were tried besides those at hand.
    """

    changes: tuple[Change, ...]
    unseen: tuple[Unseen, ...]
    n_strangers: int = 0

    @property
    def widens(self) -> bool:
        """Whether somebody may do more than before, as far as was seen, or something was not seen."""
        return bool(self.unseen) or any(change.widens for change in self.changes)


def compare(
    old: LoadedPolicy,
    new: LoadedPolicy,
    *,
    tools: Sequence[Tool],
    askers: Sequence[Asker],
    unknown_risk: Mapping[Channel, str],
) -> Comparison:
    """What the new policy changes for each caller, and what it opens to others.

    Args:
        tools: those in service, sorted by id.
        unknown_risk: "allow" or "needs_approval" for each channel.
    """
    changed = changed_rules(old, new)
    if not changed.any:
        return Comparison(changes=(), unseen=())
    classes = (old.engine.classes(tools), new.engine.classes(tools))
    rules = (*old.rules, *new.rules)

    def calls(some: Sequence[Asker]) -> Part:
        return _calls(old, new, changed=changed, tools=tools, classes=classes, askers=some, unknown_risk=unknown_risk)

    def approvals(some: Sequence[Asker]) -> Part:
        return approval_changes(old, new, changed=changed, tools=tools, classes=classes, askers=some)

    others = [
        opened(
            changed, [rule for rule in rules if concerns(rule)], changes_of=changes_of, what=what, tools=tools,
            classes=classes, askers=askers, unknown_risk=unknown_risk,
        )
        for widens, concerns, changes_of, what in (
            (changed.calls_widen, on_calls, calls, "finding and calling"),
            (changed.approvals_widen, on_approvals, approvals, "approving"),
        )
        if widens
    ]  # fmt: skip
    at_hand = (calls(askers), approvals(askers))
    places = {id(asker): number for number, asker in enumerate(askers)}
    known = list(_merged(change for part in at_hand for change in part.changes))
    not_seen = unseen(old, new, changed=changed, tools=tools, askers=askers, unknown_risk=unknown_risk)
    notes = [note for part in at_hand for note in part.unseen] + [*not_seen]
    return Comparison(
        changes=(
            *sorted(known, key=lambda change: places[id(change.asker)]),
            *(change for part in others for change in part.changes),
        ),
        unseen=tuple(dict.fromkeys((*notes, *(note for part in others for note in part.unseen)))),
        n_strangers=sum(part.n_strangers for part in others),
    )


def _calls(
    old: LoadedPolicy,
    new: LoadedPolicy,
    *,
    changed: ChangedRules,
    tools: Sequence[Tool],
    classes: tuple[DecisionClasses, DecisionClasses],
    askers: Sequence[Asker],
    unknown_risk: Mapping[Channel, str],
) -> Part:
    """What changes for these callers in finding and calling."""
    found: list[Change] = []
    levels: dict[tuple[int, Channel], tuple[IntArray, IntArray]] = {}
    for number, asker in enumerate(askers):
        for channel in asker.channels:
            before, after = (
                policy.engine.eligibility(
                    asker.caller, tools=tools, classes=of, snapshot_version="", channel=channel,
                    unknown_risk=unknown_risk[channel],
                )
                for policy, of in zip((old, new), classes, strict=True)
            )  # fmt: skip
            levels[number, channel] = (_levels(before), _levels(after))
            found.append(_change(asker, channel, before, after, levels[number, channel], tools))
    with_target = target_changes(
        old, new, changed=changed, tools=tools, classes=classes, askers=askers, levels=levels, unknown_risk=unknown_risk
    )
    return Part(changes=(*found, *with_target.changes), unseen=with_target.unseen)


def _change(
    asker: Asker,
    channel: Channel,
    before: Eligibility,
    after: Eligibility,
    levels: tuple[IntArray, IntArray],
    tools: Sequence[Tool],
) -> Change:
    found_before, found_after = (e.permitted | e.disclosed for e in (before, after))
    return Change(
        asker=asker,
        channels=(channel,),
        found_gained=_ids(tools, found_after & ~found_before),
        found_lost=_ids(tools, found_before & ~found_after),
        calls=tuple(_call_changes(tools, *levels, asker.calls)),
        errors=after.errors,
    )


def _merged(changes: Iterable[Change]) -> Iterator[Change]:
    """Channels with the same change are one; what changes nothing is left out."""
    by_change: dict[Change, tuple[Channel, ...]] = {}
    for change in changes:
        if change.says_something:
            alike = replace(change, channels=())
            by_change[alike] = (*by_change.get(alike, ()), *change.channels)
    for alike, channels in by_change.items():
        yield replace(alike, channels=channels)


def _ids(tools: Sequence[Tool], which: BoolArray) -> tuple[str, ...]:
    return tuple(tools[number].tool_id for number in map(int, np.flatnonzero(which)))


def _levels(eligibility: Eligibility) -> IntArray:
    """Positions in `EFFECTS`, one for each tool."""
    return np.where(eligibility.permitted, np.where(eligibility.needs_approval, 1, 2), 0).astype(np.int64)


def _call_changes(
    tools: Sequence[Tool], before: IntArray, after: IntArray, calls: Mapping[str, int]
) -> Iterator[CallChange]:
    for number in map(int, np.flatnonzero(before != after)):
        tool_id = tools[number].tool_id
        yield CallChange(
            tool_id=tool_id,
            before=EFFECTS[before[number]],
            after=EFFECTS[after[number]],
            n_calls=calls.get(tool_id, 0),
        )
