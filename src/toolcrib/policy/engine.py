"""The policy engine: from a caller and tools to decisions, with every failure a denial.

Above: the pipeline (before search) and the gate's caller (before a call). Below: `policies.py`, `classes.py`.

    eligibility   one evaluation per decision class, for discover and for call, then a bitmap over tool numbers
    decide_call   one tool, afresh, from its own attributes

Invariants
1. Default deny. An evaluation error is a denial, whichever rule it came from: Cedar skips a rule that fails, and a
   skipped forbid would permit.
2. Deciding never raises for what a caller or a tool contains; the decision says what went wrong.
3. `needs_approval` is said only where an approval would in fact let the call through.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import cedarpy
import numpy as np

from toolcrib.errors import PolicyError
from toolcrib.policy.classes import DecisionClasses, decision_classes
from toolcrib.policy.entities import caller_entity, caller_uid, context_json, tool_entity, tool_uid
from toolcrib.policy.policies import Policies, load_policies
from toolcrib.types import BoolArray, Caller, Channel, Decision, Effect, Eligibility, Tool

_MAX_ERRORS = 20
_DISCOVER = {"type": "Action", "id": "discover"}
_CALL = {"type": "Action", "id": "call"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asking:
    """Who asks, and where the request came in."""

    caller: Caller
    channel: Channel
    unknown_risk: str

    def requests(self, tools: Sequence[Tool], *, action: Mapping[str, str], approved: bool) -> list[dict[str, Any]]:
        """One Cedar request per tool."""
        principal = caller_uid(self.caller)
        context = context_json(self.caller, channel=self.channel, unknown_risk=self.unknown_risk, approved=approved)
        return [
            {"principal": principal, "action": action, "resource": tool_uid(tool), "context": context} for tool in tools
        ]


class PolicyEngine:
    """One loaded policy text. Immutable; a changed text is a new engine with another `version`."""

    __slots__ = ("_policies",)

    def __init__(self, policies: Policies) -> None:
        self._policies = policies

    @classmethod
    def from_text(cls, text: str | None = None, *, source: str = "built-in") -> PolicyEngine:
        """The engine for a policy text; None is the built-in default. An empty text permits nothing.

        Args:
            source: the file the text came from, for error messages.
        Raises:
            PolicySyntaxError: with file, line and what to do.
        """
        return cls(load_policies(text, source=source))

    @property
    def version(self) -> str:
        """ "sha256:<hex>" over policy text and schema."""
        return self._policies.version

    @property
    def names_subjects(self) -> bool:
        """Whether a policy names a caller: the subject then belongs into the caller's fingerprint."""
        return self._policies.names_subjects

    @property
    def named_tools(self) -> frozenset[str]:
        """Tool ids that policies name; each such tool is a decision class of its own."""
        return self._policies.named_tools

    def classes(self, tools: Sequence[Tool]) -> DecisionClasses:
        """The decision classes of a snapshot's tools. Computed once per snapshot and policy."""
        known = self._policies
        return decision_classes(tools, named_tools=known.named_tools, by_name=known.reads_names, schema=known.schema)

    def eligibility(
        self,
        caller: Caller,
        *,
        tools: Sequence[Tool],
        classes: DecisionClasses,
        snapshot_version: str,
        channel: Channel,
        unknown_risk: str,
    ) -> Eligibility:
        """What this caller may know of, over all tools of a snapshot.

        Permitted is what may be discovered and called, after an approval if need be (listed = found = callable).

        Args:
            tools: the snapshot's tools, those that `classes` was made from.
            unknown_risk: "allow" or "needs_approval", as configured for this channel.
        Raises:
            PolicyError: `classes` belongs to other tools.
        """
        if len(tools) != len(classes.class_of):
            raise PolicyError(
                f"decision classes of {len(classes.class_of)} tools do not fit a snapshot of {len(tools)}"
            )
        asking = _Asking(caller=caller, channel=channel, unknown_risk=unknown_risk)
        try:
            entities = classes.entities.with_added_json_str(json.dumps([caller_entity(caller)]), self._policies.schema)
            discover = self._decide_classes(asking, classes, entities, _DISCOVER)
            call = self._decide_classes(asking, classes, entities, _CALL)
        except BaseException as fault:  # noqa: BLE001 - whatever goes wrong must deny; `_denial` passes interrupts on
            discover = call = (_denial(fault),) * len(classes.representatives)
        return Eligibility(
            snapshot_version=snapshot_version,
            policy_version=self.version,
            fingerprint=caller.fingerprint(with_subject=self.names_subjects),
            permitted=_spread(classes, [_usable(d, c) for d, c in zip(discover, call, strict=True)]),
            disclosed=_spread(classes, [_disclosed(d, c) for d, c in zip(discover, call, strict=True)]),
            class_of=classes.class_of,
            discover=discover,
            call=call,
        )

    def decide_call(
        self, caller: Caller, tool: Tool, *, channel: Channel, unknown_risk: str, approved: bool
    ) -> Decision:
        """Whether this caller may call this tool now, from the tool's own attributes and nothing remembered.

        What may not be discovered may not be called either: the decision is then the one on `discover`.

        Args:
            approved: a human approved this very call.
        """
        asking = _Asking(caller=caller, channel=channel, unknown_risk=unknown_risk)
        try:
            entities = cedarpy.Entities.from_json_str(
                json.dumps([caller_entity(caller), tool_entity(tool)]), self._policies.schema
            )
            discover = self._decide(asking, [tool], entities, _DISCOVER, approved=False)[0]
            call = self._decide(asking, [tool], entities, _CALL, approved=approved)[0]
        except BaseException as fault:  # noqa: BLE001 - as above
            return _denial(fault)
        return call if discover.effect is Effect.PERMIT else discover

    def _decide_classes(
        self, asking: _Asking, classes: DecisionClasses, entities: cedarpy.Entities, action: Mapping[str, str]
    ) -> tuple[Decision, ...]:
        """A decision per class; classes that Cedar cannot read are denied without asking it."""
        readable = [idx for idx in range(len(classes.representatives)) if idx not in classes.faults]
        tools = [classes.representatives[idx] for idx in readable]
        decided = dict(zip(readable, self._decide(asking, tools, entities, action, approved=False), strict=True))
        return tuple(
            decided[idx] if idx in decided else Decision(effect=Effect.FORBID, errors=(classes.faults[idx],))
            for idx in range(len(classes.representatives))
        )

    def _decide(
        self,
        asking: _Asking,
        tools: Sequence[Tool],
        entities: cedarpy.Entities,
        action: Mapping[str, str],
        *,
        approved: bool,
    ) -> list[Decision]:
        """A decision per tool; what only an approval stands before is asked a second time, as if approved."""
        results = self._ask(asking.requests(tools, action=action, approved=approved), entities)
        decisions = [self._decision(result) for result in results]
        waiting = [idx for idx, result in enumerate(results) if not approved and self._only_approval_missing(result)]
        if waiting:
            again = asking.requests([tools[idx] for idx in waiting], action=action, approved=True)
            for idx, result in zip(waiting, self._ask(again, entities), strict=True):
                if self._decision(result).effect is Effect.PERMIT:
                    decisions[idx] = replace(decisions[idx], effect=Effect.NEEDS_APPROVAL)
        return decisions

    def _ask(self, requests: list[dict[str, Any]], entities: cedarpy.Entities) -> list[cedarpy.AuthzResult]:
        return cedarpy.is_authorized_batch(requests, self._policies.handle, entities)

    def _only_approval_missing(self, result: cedarpy.AuthzResult) -> bool:
        found = result.diagnostics
        return (
            result.decision is cedarpy.Decision.Deny
            and not found.errors
            and bool(found.reasons)
            and self._policies.approvals.issuperset(found.reasons)
        )

    def _decision(self, result: cedarpy.AuthzResult) -> Decision:
        """Cedar's answer with our labels; anything but a clean Allow forbids."""
        labels = self._policies.labels
        # Cedar reports in no stable order; a trace should not depend on it.
        determining = set(result.diagnostics.reasons)
        reasons = tuple(label for cedar_id, label in labels.items() if cedar_id in determining)
        errors = tuple(sorted(_labelled(error, labels) for error in result.diagnostics.errors)[:_MAX_ERRORS])
        if result.decision is cedarpy.Decision.NoDecision and not errors:
            errors = ("Cedar gave no decision",)
        clean = result.allowed and not errors
        return Decision(effect=Effect.PERMIT if clean else Effect.FORBID, policies=reasons, errors=errors)


def _labelled(error: str, labels: Mapping[str, str]) -> str:
    return re.sub(r"`(policy\d+)`", lambda found: f'"{labels.get(found.group(1), found.group(1))}"', error)


def _denial(fault: BaseException) -> Decision:
    """Every fault of evaluation as a denial; of what is not an `Exception`, Cedar's panic alone is one."""
    if not isinstance(fault, Exception) and type(fault).__name__ != "PanicException":
        raise fault
    return Decision(effect=Effect.FORBID, errors=(f"policy could not be evaluated: {type(fault).__name__}: {fault}",))


def _usable(discover: Decision, call: Decision) -> bool:
    return discover.effect is Effect.PERMIT and call.effect in (Effect.PERMIT, Effect.NEEDS_APPROVAL)


def _disclosed(discover: Decision, call: Decision) -> bool:
    return discover.effect is Effect.PERMIT and call.effect is Effect.FORBID and not call.errors


def _spread(classes: DecisionClasses, per_class: Sequence[bool]) -> BoolArray:
    """A value per class, as a read-only array over tool numbers."""
    spread: BoolArray = np.array(per_class, dtype=np.bool_)[classes.class_of]
    spread.flags.writeable = False
    return spread
