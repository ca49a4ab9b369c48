"""The words of a comparison: who asks, what changes for it, and which rules make the difference.

Below: `loaded.py`, `rules.py`. Above: `compare.py` and its parts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from toolcrib.policy.classes import DecisionClasses
from toolcrib.policy.loaded import LoadedPolicy
from toolcrib.policy.rules import APPROVE, Rule
from toolcrib.types import Caller, Channel, Effect, Tool

EFFECTS = (Effect.FORBID, Effect.NEEDS_APPROVAL, Effect.PERMIT)
"""From the least to the most that a caller may do."""
MAX_DECISIONS = 50_000
"""Decisions of either policy, one by one, after which a comparison stops and says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """A caller to compare for.

    Args:
        name: the profile's, or the subject in the traces; with others of the same rights, how many.
        source: `profile` or `traces`; `stranger` for whoever neither stands for.
        channels: those over which it asks.
        calls: tool id -> calls that ran for it in the time looked at.
    """

    name: str
    source: str
    caller: Caller
    channels: tuple[Channel, ...] = tuple(Channel)
    calls: Mapping[str, int] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallChange:
    """What becomes of calls to one tool. `n_calls`: of this caller's, in the time looked at."""

    tool_id: str
    before: Effect
    after: Effect
    n_calls: int = 0

    @property
    def widens(self) -> bool:
        return EFFECTS.index(self.after) > EFFECTS.index(self.before)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What changes for one caller over these channels. Tool ids are sorted.

    Args:
        circumstances: which calls or approvals this is about, such as "target: another tenant" or "requests of its
            own", and which strangers, such as "for a caller without these roles"; empty for what changes in any case.
        approve_gained, approve_lost: tools whose calls it may newly, or no longer, approve.
        errors: what goes wrong when the new policy is evaluated; tools that it goes wrong for are denied.
    """

    asker: Asker
    channels: tuple[Channel, ...]
    circumstances: tuple[str, ...] = ()
    found_gained: tuple[str, ...] = ()
    found_lost: tuple[str, ...] = ()
    calls: tuple[CallChange, ...] = ()
    approve_gained: tuple[str, ...] = ()
    approve_lost: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()

    @property
    def widens(self) -> bool:
        return bool(self.found_gained or self.approve_gained) or any(change.widens for change in self.calls)

    @property
    def says_something(self) -> bool:
        return bool(
            self.found_gained
            or self.found_lost
            or self.calls
            or self.approve_gained
            or self.approve_lost
            or self.errors
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Unseen:
    """Something that may let somebody do more than before, and that no caller or sample at hand could show."""

    where: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one part of a comparison found."""

    changes: tuple[Change, ...] = ()
    unseen: tuple[Unseen, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChangedRules:
    """Rules that stand in one of two texts only, whatever they are called there.

    Args:
        calls_widen, approvals_widen: whether any of this can let somebody do more than before. To add a forbid or to
            take a permit away cannot; but without any rule on approvals, everybody may approve others' calls.
    """

    added: tuple[Rule, ...]
    removed: tuple[Rule, ...]
    calls_widen: bool
    approvals_widen: bool

    @property
    def any(self) -> bool:
        return bool(self.added or self.removed)

    @property
    def of_approvals(self) -> bool:
        return any(rule.covers(APPROVE) for rule in (*self.added, *self.removed))


def changed_rules(old: LoadedPolicy, new: LoadedPolicy) -> ChangedRules:
    """What makes the difference between two texts."""
    before, after = ({_meaning(rule) for rule in policy.rules} for policy in (old, new))
    added = tuple(rule for rule in new.rules if _meaning(rule) not in before)
    removed = tuple(rule for rule in old.rules if _meaning(rule) not in after)
    widening = widening_rules(added=added, removed=removed)
    last_gone = any(rule.covers(APPROVE) for rule in old.rules) and not any(rule.covers(APPROVE) for rule in new.rules)
    return ChangedRules(
        added=added,
        removed=removed,
        calls_widen=any(on_calls(rule) for rule in widening),
        approvals_widen=last_gone or any(rule.covers(APPROVE) for rule in widening),
    )


def widening_rules(*, added: Sequence[Rule], removed: Sequence[Rule]) -> tuple[Rule, ...]:
    """New permits, and forbids that are gone."""
    return (*(r for r in added if r.effect == "permit"), *(r for r in removed if r.effect == "forbid"))


def on_calls(rule: Rule) -> bool:
    """Whether a rule is about finding or calling tools."""
    return rule.covers("discover") or rule.covers("call")


def on_approvals(rule: Rule) -> bool:
    return rule.covers(APPROVE)


def reads_tools(rule: Rule) -> bool:
    """Whether a rule may hold for one tool and not for another."""
    return rule.reads_of("resource") or any(kind in ("Tool", "Namespace", "Server") for kind, _ in rule.names)


def alike(tools: Sequence[Tool], classes: Sequence[DecisionClasses]) -> Iterator[tuple[int, ...]]:
    """Tool numbers in groups that none of the policies behind these classes can tell apart.

    Tools that Cedar cannot read are in no group: both policies deny them.
    """
    groups: dict[tuple[int, ...], list[int]] = {}
    for number in range(len(tools)):
        groups.setdefault(tuple(int(of.class_of[number]) for of in classes), []).append(number)
    for key, numbers in groups.items():
        if not any(number in of.faults for number, of in zip(key, classes, strict=True)):
            yield tuple(numbers)


def channels_of(asker: Asker, rules: Sequence[Rule], risks: Mapping[Channel, str]) -> list[tuple[Channel, ...]]:
    """The caller's channels in groups that these rules cannot tell apart."""
    by_channel = any(rule.reads_of("context.channel") for rule in rules)
    groups: dict[tuple[str, str], tuple[Channel, ...]] = {}
    for channel in asker.channels:
        key = (channel.value if by_channel else "", risks.get(channel, ""))
        groups[key] = (*groups.get(key, ()), channel)
    return list(groups.values())


def too_many(what: str) -> Unseen:
    """The note for a part that stopped at `MAX_DECISIONS`."""
    return Unseen(
        where="",
        text=f"{what}: there are too many callers and tools to try them all; compare for fewer days or profiles",
    )


def _meaning(rule: Rule) -> str:
    parts = {key: rule.tree[key] for key in ("effect", "principal", "action", "resource", "conditions")}
    return json.dumps([parts, rule.obliges], sort_keys=True)
