"""What opens to callers that neither a profile nor the traces stand for.

Below: `strangers.py`, who they are; `changes.py`. Above: `compare.py`, which says what changes for a caller.

Invariants
1. Only what widens is told: what strangers lose is nobody's loss.
2. Strangers to whom the same opens are one change. Its circumstances say who they are: "for a caller without these
   roles".
3. Once something opens to one of them, that it widens is settled: the rest of the strangers are not tried, and of the
   changes only so many are told as show each tool that opens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from toolcrib.policy.changes import Asker, Change, ChangedRules, Part, Unseen, alike
from toolcrib.policy.classes import DecisionClasses
from toolcrib.policy.rules import Rule
from toolcrib.policy.stranger_values import NOBODY
from toolcrib.policy.strangers import SOMEBODY_ELSE, Strangers, strangers_of
from toolcrib.types import Caller, Channel, Tool

_AT_A_TIME = 100
_ANYBODY = Asker(name=SOMEBODY_ELSE, source="stranger", caller=NOBODY, channels=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened(Part):
    """What one part of a comparison found. `n_strangers`: how many kinds of callers were tried."""

    n_strangers: int = 0


def opened(
    changed: ChangedRules,
    rules: Sequence[Rule],
    *,
    changes_of: Callable[[Sequence[Asker]], Part],
    what: str,
    tools: Sequence[Tool],
    classes: Sequence[DecisionClasses],
    askers: Sequence[Asker],
    unknown_risk: Mapping[Channel, str],
) -> Opened:
    """What strangers may do and could not before.

    Args:
        rules: those of either text that are on what is compared: finding and calling, or approving.
        changes_of: what changes for some callers. what: the same in words.
        askers: the callers at hand.
    """
    strangers = strangers_of(
        added=[rule for rule in rules if rule in changed.added],
        removed=[rule for rule in rules if rule in changed.removed],
        others=[rule for rule in rules if rule not in changed.added and rule not in changed.removed],
        tools=[tools[group[0]] for group in alike(tools, classes)],
        askers=askers,
        unknown_risk=unknown_risk,
    )
    found: list[Change] = []
    notes: list[Unseen] = []
    n_tried = 0
    for start in range(0, len(strangers.askers), _AT_A_TIME):
        some = strangers.askers[start : start + _AT_A_TIME]
        part = changes_of(some)
        found += [change for change in part.changes if change.widens]
        notes += part.unseen
        n_tried += len(some)
        if found:
            break
    if not found and not strangers.complete:
        text = f"{what}: {n_tried} kinds of callers were tried that no profile and no trace stands for"
        notes.append(Unseen(where="", text=f"{text}, and there are more"))
    return Opened(changes=tuple(_fewest(_together(found, strangers))), unseen=tuple(notes), n_strangers=n_tried)


def _fewest(changes: Iterable[Change]) -> Iterator[Change]:
    """As few of these changes as show every tool that opens, and to how much; those with the most first."""
    left = {change: _shown(change) for change in changes}
    missing = frozenset[object]().union(*left.values())
    while missing:
        best = max(left, key=lambda change: len(left[change] & missing))
        missing -= left[best]
        yield best


def _shown(change: Change) -> frozenset[object]:
    """What opens, whoever it is for."""
    return frozenset(
        [
            *(("discover", tool_id) for tool_id in change.found_gained),
            *(("call", call.tool_id, call.after) for call in change.calls),
            *(("approve", tool_id) for tool_id in change.approve_gained),
        ]
    )


def _together(changes: Sequence[Change], strangers: Strangers) -> Iterator[Change]:
    by_change: dict[Change, dict[Caller, tuple[Channel, ...]]] = {}
    for change in changes:
        channels_of = by_change.setdefault(_wider(change), {})
        channels_of[change.asker.caller] = (*channels_of.get(change.asker.caller, ()), *change.channels)
    for wider, channels_of in by_change.items():
        by_channels: dict[tuple[Channel, ...], list[Caller]] = {}
        for caller, channels in channels_of.items():
            by_channels.setdefault(strangers.channels_like(channels), []).append(caller)
        for channels, callers in by_channels.items():
            whos = strangers.told(callers)
            yield replace(
                wider,
                asker=replace(_ANYBODY, caller=callers[0]),
                channels=channels,
                circumstances=tuple(f"{who}; {each}" for who in whos for each in wider.circumstances) or whos,
            )


def _wider(change: Change) -> Change:
    """What widens in it, whoever it is for."""
    return replace(
        change,
        asker=_ANYBODY,
        channels=(),
        found_lost=(),
        calls=tuple(call for call in change.calls if call.widens),
        approve_lost=(),
        errors=(),
    )
