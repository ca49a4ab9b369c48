"""What changes for calls whose arguments name a resource: tried on samples of what they may name.

Below: `samples.py`, `changes.py`, `engine.py`. Above: `compare.py`.

Invariants
1. A sample is a type, a tenant, an owner and an id, each one that some rule of either text compares with: the caller's
   own, another one, none, and every text, pattern or attribute that stands in a comparison.
2. Reported is only what differs from the change that the same call sees without a resource.
3. Both engines decide, on every sample or on one with which the same rules hold.
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
from toolcrib.policy.samples import ANOTHER, Comparisons, combined, comparisons, values_of
from toolcrib.policy.shipped import schema_text
from toolcrib.types import Caller, Channel, Effect, IntArray, Resource, Tool

_TARGET = "context.target"
_NAMES = ("type", "tenant", "owner")
_ID = "(sample)"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sample:
    """A resource, and each attribute that a rule reads of it in words."""

    target: Resource
    words: tuple[str, ...]


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
    reading = tuple(rule for rule in rules if rule.reads_of(_TARGET))
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
        if path == _TARGET or path.startswith(f"{_TARGET}.")
    ]
    for number, asker in enumerate(askers):
        for channels in channels_of(asker, rules, unknown_risk):
            samples, all_of_them = _samples(reading, found, trial, caller=asker.caller, channel=channels[0])
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
    samples: Sequence[_Sample],
    plain: tuple[IntArray, IntArray],
) -> Iterator[Change]:
    """The changes of one caller: one for each set of samples and what becomes of calls with them."""
    met: dict[tuple[int, Effect, Effect], list[_Sample]] = {}
    decided: dict[tuple[int, object], tuple[Effect, Effect]] = {}
    for sample in samples:
        for number, held in enumerate(_held(trial, asker.caller, channels[0], sample.target)):
            if (number, held) not in decided:
                decided[number, held] = _decide(trial, asker.caller, channels[0], sample.target, number)
            before, after = decided[number, held]
            first = trial.groups[number][0]
            if before is not after and (before, after) != (EFFECTS[plain[0][first]], EFFECTS[plain[1][first]]):
                met.setdefault((number, before, after), []).append(sample)
    by_samples: dict[tuple[tuple[tuple[str, ...], ...], Effect, Effect], list[int]] = {}
    for (number, before, after), some in met.items():
        key = (tuple(sample.words for sample in some), before, after)
        by_samples.setdefault(key, []).extend(trial.groups[number])
    for (words, before, after), numbers in by_samples.items():
        yield Change(
            asker=asker,
            channels=channels,
            circumstances=_told(words, [sample.words for sample in samples]),
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


# --- samples ---------------------------------------------------------------------------------------------


def _samples(
    reading: Sequence[Rule], found: Comparisons, trial: _Trial, *, caller: Caller, channel: Channel
) -> tuple[tuple[_Sample, ...], bool]:
    read = {path for rule in reading for path in rule.reads}
    shown = [trial.tools[group[0]] for group in trial.groups]
    values: dict[str, list[str]] = {}
    for name in (name for name in _NAMES if f"{_TARGET}.{name}" in read):
        own = {"tenant": [caller.tenant], "owner": [caller.subject]}.get(name, [])
        asked = values_of(f"{_TARGET}.{name}", found, caller=caller, channel=channel, tools=shown)
        values[name] = list(dict.fromkeys([*own, ANOTHER, "", *sorted(asked)]))
    if ids := found.words.get(_TARGET):
        values["id"] = [_ID, *sorted(ids)]
    chosen, all_of_them = combined(values)
    samples = tuple(
        _Sample(
            target=Resource(
                resource_type=each.get("type", ""),
                resource_id=each.get("id", _ID),
                tenant=each.get("tenant", ""),
                owner=each.get("owner", ""),
            ),
            words=tuple(_word(name, value, caller) for name, value in each.items()),
        )
        for each in chosen
    )
    return samples, all_of_them


def _word(name: str, value: str, caller: Caller) -> str:
    if value in (ANOTHER, _ID):
        return f"another {name}"
    if not value:
        return f"no {name}"
    own = {"tenant": caller.tenant, "owner": caller.subject}.get(name) == value
    return f"its own {name}" if name == "tenant" and own else "itself the owner" if own else f'{name} "{value}"'


def _told(some: Sequence[tuple[str, ...]], everything: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Samples in words. An attribute is left out where all its values are among them: `of another tenant`, whoever
    the owner is."""
    left = [tuple(words) for words in some]
    for at in range(len(everything[0])):
        n_values = len({words[at] for words in everything})
        by_rest: dict[tuple[str, ...], set[str]] = {}
        for words in left:
            by_rest.setdefault((*words[:at], "", *words[at + 1 :]), set()).add(words[at])
        left = [
            (*rest[:at], value, *rest[at + 1 :])
            for rest, found in by_rest.items()
            for value in (("",) if len(found) == n_values else sorted(found))
        ]
    return tuple("target: " + (", ".join(word for word in words if word) or "any") for words in left)
