"""For which callers a change of rules may open anything at all, whatever the rules say that stay.

Below: `rules.py`, `matching.py`, `target_samples.py`. Above: `strangers.py`.

Invariants
1. A caller is left out only where, on every tool and in every context that the changed rules tell apart, a new permit
   holds only where an old one did, and where an old forbid did, a new one does. No decision can then become wider.
2. What cannot be asked beforehand may open: rules on approvals, on more resources than samples stand for, and whatever
   fails to be evaluated.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import cedarpy

from toolcrib.policy.entities import (
    caller_entity,
    caller_uid,
    context_json,
    resource_entity,
    tool_attributes,
    tool_entity,
    tool_uid,
)
from toolcrib.policy.matching import channels_apart
from toolcrib.policy.rules import APPROVE, ActionName, Rule, policy_set
from toolcrib.policy.samples import comparisons
from toolcrib.policy.shipped import schema_text
from toolcrib.policy.target_samples import TARGET, target_samples
from toolcrib.types import Caller, Channel, Resource, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    """If any of `opening` holds, and none of `covering`, something may open."""

    opening: cedarpy.PolicySet
    covering: cedarpy.PolicySet


def may_open(
    callers: Sequence[Caller],
    *,
    added: Sequence[Rule],
    removed: Sequence[Rule],
    tools: Sequence[Tool],
    unknown_risk: Mapping[Channel, str],
) -> list[Caller]:
    """Those of the callers for whom `added` in place of `removed` may open something.

    Args:
        tools: one of each decision class, readable by Cedar.
    """
    trial = _Trial(added=added, removed=removed, tools=tools, unknown_risk=unknown_risk)
    if not trial.pairs or not tools:
        return []
    if any(rule.covers(APPROVE) for rule in trial.rules):
        return list(callers)
    return [caller for caller in callers if trial.may_open_for(caller)]


class _Trial:
    """The changed rules, ready to be asked."""

    def __init__(
        self,
        *,
        added: Sequence[Rule],
        removed: Sequence[Rule],
        tools: Sequence[Tool],
        unknown_risk: Mapping[Channel, str],
    ) -> None:
        self.rules = (*added, *removed)
        self.pairs = tuple(_pairs(added, removed))
        self._tools = _apart(self.rules, tools)
        self._unknown_risk = unknown_risk
        self._schema = cedarpy.Schema.from_str(schema_text())
        self._catalog = cedarpy.Entities.from_json_str(json.dumps(list(map(tool_entity, self._tools))), self._schema)
        self._on_targets = [rule for rule in self.rules if rule.reads_of(TARGET)]
        self._compared = comparisons(self._on_targets)

    def may_open_for(self, caller: Caller) -> bool:
        for channel in channels_apart(self.rules, self._unknown_risk):
            targets = self._targets(caller, channel)
            if targets is None:
                return True
            try:
                for target in targets:
                    known = [caller_entity(caller), *([resource_entity(target)] if target else [])]
                    entities = self._catalog.with_added_json_str(json.dumps(known), self._schema)
                    requests = list(self._requests(caller, channel, target))
                    if any(_opens(pair, requests, entities) for pair in self.pairs):
                        return True
            except ValueError:  # a name that Cedar cannot read: both policies deny everything
                return False
        return False

    def _targets(self, caller: Caller, channel: Channel) -> list[Resource | None] | None:
        """Resources that a call may name, and that it names none; None where samples do not stand for all."""
        if not self._on_targets:
            return [None]
        if any(path == TARGET or path.startswith(f"{TARGET}.") for path in self._compared.unclear):
            return None
        samples, all_of_them = target_samples(
            self._on_targets, self._compared, caller=caller, channel=channel, tools=self._tools
        )
        return [None, *(sample.target for sample in samples)] if all_of_them else None

    def _requests(self, caller: Caller, channel: Channel, target: Resource | None) -> Iterator[dict[str, object]]:
        approved = (False, True) if any(rule.reads_of("context.approved") for rule in self.rules) else (False,)
        asked: list[tuple[ActionName, bool]] = [("call", yes) for yes in approved]
        for action, yes in asked if target else [("discover", False), *asked]:
            context = context_json(
                caller, channel=channel, unknown_risk=self._unknown_risk[channel], approved=yes, target=target
            )
            for tool in self._tools:
                yield {
                    "principal": caller_uid(caller),
                    "action": {"type": "Action", "id": action},
                    "resource": tool_uid(tool),
                    "context": context,
                }


def _pairs(added: Sequence[Rule], removed: Sequence[Rule]) -> Iterator[_Pair]:
    """A forbid that asks for an approval is no stand-in for one that asks for none."""

    def of(rules: Sequence[Rule], effect: str, *, obliges: bool | None = None) -> list[Rule]:
        return [rule for rule in rules if rule.effect == effect and obliges in (None, rule.obliges)]

    for opening, covering in (
        (of(added, "permit"), of(removed, "permit")),
        (of(removed, "forbid", obliges=False), of(added, "forbid", obliges=False)),
        (of(removed, "forbid", obliges=True), of(added, "forbid")),
    ):
        if opening:
            yield _Pair(opening=policy_set(opening), covering=policy_set(covering))


def _opens(pair: _Pair, requests: Sequence[dict[str, object]], entities: cedarpy.Entities) -> bool:
    first = cedarpy.is_authorized_batch(list(requests), pair.opening, entities)
    second = cedarpy.is_authorized_batch(list(requests), pair.covering, entities)
    return any(
        one.diagnostics.errors
        or other.diagnostics.errors
        or (one.diagnostics.reasons and not other.diagnostics.reasons)
        for one, other in zip(first, second, strict=True)
    )


def _apart(rules: Sequence[Rule], tools: Sequence[Tool]) -> list[Tool]:
    """One tool of each group that these rules cannot tell apart."""
    named = any(kind in ("Tool", "Namespace", "Server") for rule in rules for kind, _ in rule.names)
    read = {path.partition(".")[2] for rule in rules for path in rule.reads if path.startswith("resource.")}
    whole = any("resource" in rule.reads for rule in rules)
    groups: dict[object, Tool] = {}
    for tool in tools:
        said = tool_attributes(tool)
        key = (
            tool.tool_id if whole else "",
            (tool.server_id, tool.metadata.namespace) if named else (),
            tuple(sorted((name, value) for name, value in said.items() if name in read)),
        )
        groups.setdefault(key, tool)
    return list(groups.values())
