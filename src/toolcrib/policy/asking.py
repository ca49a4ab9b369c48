"""Who asks, in Cedar's words, and Cedar's answer about single tools.

Below: `policies.py`, `entities.py`. Above: `by_class.py` and `engine.py`.

Invariant
1. Anything but a clean Allow forbids; an evaluation error is part of the answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import cedarpy

from toolcrib.policy.entities import caller_entity, caller_uid, context_json, resource_entity, tool_entity, tool_uid
from toolcrib.policy.policies import Policies
from toolcrib.types import Caller, Channel, Decision, Effect, Resource, Tool

MAX_ERRORS = 20
Action = Literal["discover", "call", "approve"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """Who asks, and where the request came in.

    Args:
        unknown_risk: "allow" or "needs_approval", as configured for this channel.
        extra: more of the context, where the action has more.
    """

    caller: Caller
    channel: Channel
    unknown_risk: str = "needs_approval"
    extra: Mapping[str, Any] = field(default_factory=dict)

    def context(self, *, approved: bool, target: Resource | None = None) -> str:
        return context_json(
            self.caller,
            channel=self.channel,
            unknown_risk=self.unknown_risk,
            approved=approved,
            target=target,
            extra=self.extra,
        )


def ask(
    asking: Asking,
    tools: Sequence[Tool],
    *,
    action: Action,
    approved: bool,
    handle: cedarpy.PolicySet,
    entities: cedarpy.Entities,
    target: Resource | None = None,
) -> list[cedarpy.AuthzResult]:
    """Cedar's answer per tool.

    Args:
        entities: the caller, the tools and the target.
    """
    principal = caller_uid(asking.caller)
    context = asking.context(approved=approved, target=target)
    return cedarpy.is_authorized_batch(
        [
            {
                "principal": principal,
                "action": {"type": "Action", "id": action},
                "resource": tool_uid(tool),
                "context": context,
            }
            for tool in tools
        ],
        handle,
        entities,
    )


def entities_of(
    caller: Caller, tool: Tool, schema: cedarpy.Schema, *, target: Resource | None = None
) -> cedarpy.Entities:
    """All that one decision rests on.

    Raises:
        ValueError: Cedar cannot read them (a lone surrogate in a name).
    """
    found = [caller_entity(caller), tool_entity(tool), *([resource_entity(target)] if target else [])]
    return cedarpy.Entities.from_json_str(json.dumps(found), schema)


def decision_of(result: cedarpy.AuthzResult, labels: Mapping[str, str]) -> Decision:
    """Cedar's answer with our labels, its reasons in the order of the text: Cedar reports in no stable order.

    Args:
        labels: of the policies that were asked, by Cedar's ids, in order.
    """
    determining = set(result.diagnostics.reasons)
    reasons = tuple(label for cedar_id, label in labels.items() if cedar_id in determining)
    errors = tuple(sorted(labelled(error, labels) for error in result.diagnostics.errors)[:MAX_ERRORS])
    if result.decision is cedarpy.Decision.NoDecision and not errors:
        errors = ("Cedar gave no decision",)
    clean = result.allowed and not errors
    return Decision(effect=Effect.PERMIT if clean else Effect.FORBID, policies=reasons, errors=errors)


def only_approval_missing(result: cedarpy.AuthzResult, policies: Policies) -> bool:
    """Whether nothing but rules that oblige to an approval stands in the way."""
    found = result.diagnostics
    return (
        result.decision is cedarpy.Decision.Deny
        and not found.errors
        and bool(found.reasons)
        and policies.approvals.issuperset(found.reasons)
    )


def labelled(error: str, labels: Mapping[str, str]) -> str:
    """Cedar's words with what people call the policy in place of its number."""
    return re.sub(r"`(policy\d+)`", lambda found: f'"{labels.get(found.group(1), found.group(1))}"', error)
