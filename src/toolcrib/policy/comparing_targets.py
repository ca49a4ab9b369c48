"""What changes for calls whose arguments name a resource: tried on samples of what they may name.

Below: `target_samples.py`, `changes.py`, `engine.py`. Above: `compare.py`.

Invariants
1. Reported is only what differs from the change that the same call sees without a resource.
2. Both engines decide, on every sample or on one with which the same rules hold.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import cedarpy

from toolcrib.policy.changes import (
    EFFECTS,
    MAX_DECISIONS,
    Asker,
    CallChange,
    Change,
    ChangedRules,
    Part,
    Unseen,
    alike,
    channels_of,
    on_calls,
    reads_tools,
    too_many,
)
from toolcrib.policy.classes import DecisionClasses
from toolcrib.policy.entities import caller_entity, caller_uid, context_json, resource_entity, tool_entity, tool_uid
from toolcrib.policy.loaded import LoadedPolicy
from toolcrib.policy.rules import Rule, policy_set
from toolcrib.policy.samples import comparisons
from toolcrib.policy.shipped import schema_text
from toolcrib.policy.target_samples import TARGET, TargetSample, target_samples, targets_told
from toolcrib.types import Caller, Channel, Effect, IntArray, Resource, Tool


@dataclass(slots=True, kw_only=True, eq=False)
class _Trial:
    """The two policies, and how many decisions may still be made.

    Args:
        reading: the rules of either text that read a target. handles: the same, permits and forbids apart.
        groups: tool numbers that cannot be told apart.
    """

    old: LoadedPolicy
    new: LoadedPolicy
    reading: tuple[Rule, ...]
    handles: tuple[cedarpy.PolicySet, ...]
    tools: Sequence[Tool]
    groups: tuple[tuple[int, ...], ...]
    unknown_risk: Mapping[Channel, str]
    n_left: int
    schema: cedarpy.Schema = field(default_factory=lambda: cedarpy.Schema.from_str(schema_text()))


def target_changes(
    old: LoadedPolicy,
    new: LoadedPolicy,
    *,
    changed: ChangedRules,
    tools: Sequence[Tool],
    classes: Sequence[DecisionClasses],
    askers: Sequence[Asker],
    levels: Mapping[tuple[int, Channel], tuple[IntArray, IntArray]],
    unknown_risk: Mapping[Channel, str],
) -> Part:
    """Changes of calls with a target; nothing where no rule reads one, or no rule on calls changes.

    Args:
        levels: (number of the asker, channel) -> what calls without a target were and are, as positions in `EFFECTS`.
    """
    rules = tuple(rule for rule in (*old.rules, *new.rules) if rule.covers("call"))
    reading = tuple(rule for rule in rules if rule.reads_of(TARGET))
    if not reading or not any(on_calls(rule) for rule in (*changed.added, *changed.removed)):
        return Part()
    found = comparisons(reading)
    trial = _Trial(
        old=old, new=new, reading=reading, handles=_handles(reading), tools=tools, groups=tuple(alike(tools, classes)),
        unknown_risk=unknown_risk, n_left=MAX_DECISIONS,
    )  # fmt: skip
    changes: list[Change] = []
    notes = [
        Unseen(
            where=rule.where,
            text=f'"{rule.label}" reads {path} in a way that no sample of a resource is sure to meet',
        )
        for path, rule in sorted(found.unclear.items())
        if path == TARGET or path.startswith(f"{TARGET}.")
    ]
    for number, asker in enumerate(askers):
        for channels in channels_of(asker, rules, unknown_risk):
            samples, all_of_them = target_samples(
                reading, found, caller=asker.caller, channel=channels[0], tools=[tools[g[0]] for g in trial.groups]
            )
            if not all_of_them:
                text = "rules compare the resource that a call names with so much that not every combination was tried"
                notes.append(Unseen(where="", text=text))
            if trial.n_left <= 0:
                notes.append(too_many("calls that name a resource"))
                return Part(changes=tuple(changes), unseen=tuple(dict.fromkeys(notes)))
            changes += _of_asker(trial, asker, channels, samples, levels[number, channels[0]])
    return Part(changes=tuple(changes), unseen=tuple(dict.fromkeys(notes)))


def _handles(rules: Sequence[Rule]) -> tuple[cedarpy.PolicySet, ...]:
    """Apart, since Cedar does not name the permits that hold where a forbid does."""
    apart = [[rule for rule in rules if rule.effect == effect] for effect in ("permit", "forbid")]
    return tuple(policy_set(some) for some in apart if some)


def _of_asker(
    trial: _Trial,
    asker: Asker,
    channels: tuple[Channel, ...],
    samples: Sequence[TargetSample],
    plain: tuple[IntArray, IntArray],
) -> Iterator[Change]:
    """The changes of one caller: one for each set of samples and what becomes of calls with them."""
    met: dict[tuple[int, Effect, Effect], list[TargetSample]] = {}
    decided: dict[tuple[int, object], tuple[Effect, Effect]] = {}
    for sample in samples:
        for number, held in enumerate(_held(trial, asker.caller, channels[0], sample.target)):
            if (number, held) not in decided:
                decided[number, held] = _decide(trial, asker.caller, channels[0], sample.target, number)
            before, after = decided[number, held]
            first = trial.groups[number][0]
            if before is not after and (before, after) != (EFFECTS[plain[0][first]], EFFECTS[plain[1][first]]):
                met.setdefault((number, before, after), []).append(sample)
    by_samples: dict[tuple[tuple[TargetSample, ...], Effect, Effect], list[int]] = {}
    for (number, before, after), some in met.items():
        by_samples.setdefault((tuple(some), before, after), []).extend(trial.groups[number])
    for (alike_samples, before, after), numbers in by_samples.items():
        yield Change(
            asker=asker,
            channels=channels,
            circumstances=targets_told(alike_samples, samples),
            calls=tuple(
                CallChange(tool_id=trial.tools[number].tool_id, before=before, after=after)
                for number in sorted(numbers)
            ),
        )


def _decide(trial: _Trial, caller: Caller, channel: Channel, target: Resource, group: int) -> tuple[Effect, Effect]:
    """What both policies say of calls to these tools."""
    trial.n_left -= 1
    tool, risk = trial.tools[trial.groups[group][0]], trial.unknown_risk[channel]
    before, after = (
        policy.engine.decide_call(
            caller, tool, channel=channel, unknown_risk=risk, approved=False, target=target
        ).effect
        for policy in (trial.old, trial.new)
    )
    return before, after


def _held(trial: _Trial, caller: Caller, channel: Channel, target: Resource) -> list[object]:
    """For each group of tools, which rules that read a target hold or fail with this one, approved or not.

    Decisions on two targets cannot differ where this is the same. Where Cedar cannot be asked, nothing is the same.
    """
    try:
        each = [_holding(trial, one, channel, target) for one in caller.chain]
    except ValueError:
        return [target] * len(trial.groups)
    return [tuple(of[number] for of in each) for number in range(len(trial.groups))]


def _holding(trial: _Trial, caller: Caller, channel: Channel, target: Resource) -> list[object]:
    shown = [trial.tools[group[0]] for group in trial.groups]
    asked = shown if any(reads_tools(rule) for rule in trial.reading) else shown[:1]
    found: list[list[object]] = [[] for _ in asked]
    entities = cedarpy.Entities.from_json_str(
        json.dumps([caller_entity(caller), resource_entity(target), *map(tool_entity, asked)]), trial.schema
    )
    for approved in (False, True) if any(rule.reads_of("context.approved") for rule in trial.reading) else (False,):
        context = context_json(
            caller, channel=channel, unknown_risk=trial.unknown_risk[channel], approved=approved, target=target
        )
        action = {"type": "Action", "id": "call"}
        requests = [
            {"principal": caller_uid(caller), "action": action, "resource": tool_uid(tool), "context": context}
            for tool in asked
        ]
        for handle in trial.handles:
            for number, result in enumerate(cedarpy.is_authorized_batch(requests, handle, entities)):
                found[number].append((frozenset(result.diagnostics.reasons), len(result.diagnostics.errors)))
    held: list[object] = [tuple(each) for each in found]
    return held if len(held) == len(shown) else held * len(shown)
