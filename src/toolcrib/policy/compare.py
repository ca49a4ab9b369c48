"""What changes for whom when one policy takes the place of another.

Below: `engine.py`. Above: `policy_desk.py`, which gathers the callers and counts calls.

Invariants
1. Both policies are asked about the same catalog, callers and channels; only the policy differs.
2. Anything that lets a caller do more than before widens: a tool that can be found, a call that was forbidden, an
   approval that is not asked for any more. It is said even where the same change narrows elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from toolcrib.policy.classes import DecisionClasses
from toolcrib.policy.engine import PolicyEngine
from toolcrib.types import BoolArray, Caller, Channel, Effect, IntArray, Tool

_EFFECTS = (Effect.FORBID, Effect.NEEDS_APPROVAL, Effect.PERMIT)
"""From the least to the most that a caller may do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """A caller to compare for.

    Args:
        name: the profile's, or the subject in the traces; with others of the same rights, how many.
        source: `profile` or `traces`.
        channels: those over which it asks.
        calls: tool id -> calls that ran for it in the time looked at.
    """

    name: str
    source: str
    caller: Caller
    channels: tuple[Channel, ...] = tuple(Channel)
    calls: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallChange:
    """What becomes of calls to one tool. `n_calls`: of this caller's, in the time looked at."""

    tool_id: str
    before: Effect
    after: Effect
    n_calls: int = 0

    @property
    def widens(self) -> bool:
        return _EFFECTS.index(self.after) > _EFFECTS.index(self.before)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What changes for one caller over these channels. Tool ids are sorted.

    `errors`: what goes wrong when the new policy is evaluated; tools that it goes wrong for are denied.
    """

    asker: Asker
    channels: tuple[Channel, ...]
    found_gained: tuple[str, ...]
    found_lost: tuple[str, ...]
    calls: tuple[CallChange, ...]
    errors: tuple[str, ...]

    @property
    def widens(self) -> bool:
        return bool(self.found_gained) or any(change.widens for change in self.calls)

    @property
    def n_calls_lost(self) -> int:
        """Calls that ran before and would not run as easily now."""
        return sum(change.n_calls for change in self.calls if not change.widens)


def compare(
    old: PolicyEngine,
    new: PolicyEngine,
    *,
    tools: Sequence[Tool],
    askers: Sequence[Asker],
    unknown_risk: Mapping[Channel, str],
) -> tuple[Change, ...]:
    """The changes for each caller, in the callers' order; nothing for those for whom nothing changes.

    Args:
        tools: those in service, sorted by id.
        unknown_risk: "allow" or "needs_approval" for each channel.
    """
    classes = (old.classes(tools), new.classes(tools))
    found: list[Change] = []
    for asker in askers:
        by_change: dict[tuple[object, ...], Change] = {}
        for channel in asker.channels:
            change = _change(old, new, classes, asker, channel, tools=tools, unknown_risk=unknown_risk[channel])
            key = (change.found_gained, change.found_lost, change.calls, change.errors)
            if not any(key):
                continue
            known = by_change.get(key)
            channels = (*known.channels, channel) if known else (channel,)
            by_change[key] = Change(
                asker=asker,
                channels=channels,
                found_gained=change.found_gained,
                found_lost=change.found_lost,
                calls=change.calls,
                errors=change.errors,
            )
        found += by_change.values()
    return tuple(found)


def _change(
    old: PolicyEngine,
    new: PolicyEngine,
    classes: tuple[DecisionClasses, DecisionClasses],
    asker: Asker,
    channel: Channel,
    *,
    tools: Sequence[Tool],
    unknown_risk: str,
) -> Change:
    before, after = (
        engine.eligibility(
            asker.caller,
            tools=tools,
            classes=of,
            snapshot_version="",
            channel=channel,
            unknown_risk=unknown_risk,
        )
        for engine, of in zip((old, new), classes, strict=True)
    )
    found_before, found_after = (e.permitted | e.disclosed for e in (before, after))
    calls_before, calls_after = (_levels(e.permitted, e.needs_approval) for e in (before, after))
    return Change(
        asker=asker,
        channels=(channel,),
        found_gained=tuple(tools[n].tool_id for n in map(int, np.flatnonzero(found_after & ~found_before))),
        found_lost=tuple(tools[n].tool_id for n in map(int, np.flatnonzero(found_before & ~found_after))),
        calls=tuple(_call_changes(tools, calls_before, calls_after, asker.calls)),
        errors=after.errors,
    )


def _levels(permitted: BoolArray, needs_approval: BoolArray) -> IntArray:
    """Positions in `_EFFECTS`, one for each tool."""
    return np.where(permitted, np.where(needs_approval, 1, 2), 0).astype(np.int64)


def _call_changes(
    tools: Sequence[Tool], before: IntArray, after: IntArray, calls: Mapping[str, int]
) -> Iterator[CallChange]:
    for number in map(int, np.flatnonzero(before != after)):
        tool_id = tools[number].tool_id
        yield CallChange(
            tool_id=tool_id,
            before=_EFFECTS[before[number]],
            after=_EFFECTS[after[number]],
            n_calls=calls.get(tool_id, 0),
        )
