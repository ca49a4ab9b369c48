"""Which rules of a policy ever match: tried on some callers and tools, over each context that the rules tell apart.

Below: `rules.py`, `entities.py`. Above: `check.py`.

Invariants
1. "Matches nothing" is said of the callers and tools that were tried, and of nobody else.
2. A rule that asks for the resource of a call (`context.target`) or for an approver cannot be tried here: no call is at
   hand. It is left out rather than called useless.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import cedarpy

from toolcrib.policy.entities import caller_entity, caller_uid, context_json, tool_entity, tool_uid
from toolcrib.policy.rules import ActionName, Rule, policy_set
from toolcrib.policy.shipped import schema_text
from toolcrib.types import Caller, Channel, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """Labels of rules. `tried` is all that could be; `matched` holds for somebody and something; `decided` also counted
    (a permit may match and yet be overridden by a forbid each time)."""

    tried: frozenset[str]
    matched: frozenset[str]
    decided: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trial:
    """One caller asking for one thing, over all tools."""

    caller: Caller
    action: ActionName
    context: str
    entities: cedarpy.Entities


def matches(
    rules: Sequence[Rule], *, tools: Sequence[Tool], callers: Sequence[Caller], unknown_risk: Mapping[Channel, str]
) -> Matches:
    """Which rules match any of these callers on any of these tools.

    Args:
        tools: one of each decision class is enough; all must be readable by Cedar.
        unknown_risk: "allow" or "needs_approval" for each channel.
    """
    tried = [rule for rule in rules if _can_be_tried(rule)]
    # Made anew for each look at them: thousands of callers with all tools beside each would not fit into memory.
    trials = partial(_trials, rules, tools=tools, callers=callers, unknown_risk=unknown_risk)
    forbids = {rule.label for rule in tried if rule.effect == "forbid"}
    decided = _deciding(tried, trials, tools)
    matched = decided | _satisfied([r for r in tried if r.label not in decided | forbids], trials, tools)
    return Matches(
        tried=frozenset(rule.label for rule in tried), matched=frozenset(matched), decided=frozenset(decided)
    )


def channels_apart(rules: Sequence[Rule], unknown_risk: Mapping[Channel, str]) -> tuple[Channel, ...]:
    """One channel of each group that these rules cannot tell apart."""
    by_channel = any(rule.reads_of("context.channel") for rule in rules)
    by_risk = any(rule.reads_of("context.unknown_risk") for rule in rules)
    groups: dict[tuple[str, str], Channel] = {}
    for channel in Channel:
        groups.setdefault((channel.value if by_channel else "", unknown_risk[channel] if by_risk else ""), channel)
    return tuple(groups.values())


def _can_be_tried(rule: Rule) -> bool:
    return not rule.reads_of("context.target") and (rule.covers("discover") or rule.covers("call"))


def _trials(
    rules: Sequence[Rule], *, tools: Sequence[Tool], callers: Sequence[Caller], unknown_risk: Mapping[Channel, str]
) -> Iterator[_Trial]:
    schema = cedarpy.Schema.from_str(schema_text())
    catalog = cedarpy.Entities.from_json_str(json.dumps([tool_entity(tool) for tool in tools]), schema)
    approved = (False, True) if any(rule.reads_of("context.approved") for rule in rules) else (False,)
    asked: list[tuple[ActionName, bool]] = [("discover", False), *(("call", yes) for yes in approved)]
    for caller in callers:
        try:
            entities = catalog.with_added_json_str(json.dumps([caller_entity(caller)]), schema)
        except ValueError:  # a name that Cedar cannot read (a lone surrogate): everything is denied to this caller
            continue
        for channel in channels_apart(rules, unknown_risk):
            for action, yes in asked:
                context = context_json(caller, channel=channel, unknown_risk=unknown_risk[channel], approved=yes)
                yield _Trial(caller=caller, action=action, context=context, entities=entities)


def _deciding(rules: Sequence[Rule], trials: Callable[[], Iterator[_Trial]], tools: Sequence[Tool]) -> set[str]:
    """Labels of the rules that decide something. Those known already are left out of later trials, for speed: a permit
    decides only where all forbids let it, and so these stay in while any permit is open."""
    found: set[str] = set()
    for trial in trials():
        missing = [rule for rule in rules if rule.label not in found]
        if not missing:
            break
        permits_open = any(rule.effect == "permit" for rule in missing)
        asked = [rule for rule in rules if rule in missing or (permits_open and rule.effect == "forbid")]
        found |= _reasons(asked, trial, tools)
    return found


def _satisfied(rules: Sequence[Rule], trials: Callable[[], Iterator[_Trial]], tools: Sequence[Tool]) -> set[str]:
    """Labels of the rules, all permits, that match when no forbid stands in the way."""
    found: set[str] = set()
    for trial in trials():
        missing = [rule for rule in rules if rule.label not in found]
        if not missing:
            break
        found |= _reasons(missing, trial, tools)
    return found


def _reasons(rules: Sequence[Rule], trial: _Trial, tools: Sequence[Tool]) -> set[str]:
    principal, action = caller_uid(trial.caller), {"type": "Action", "id": trial.action}
    requests = [
        {"principal": principal, "action": action, "resource": tool_uid(tool), "context": trial.context}
        for tool in tools
    ]
    results = cedarpy.is_authorized_batch(requests, policy_set(rules), trial.entities)
    numbers = {int(reason.removeprefix("policy")) for result in results for reason in result.diagnostics.reasons}
    return {rules[number].label for number in numbers}
