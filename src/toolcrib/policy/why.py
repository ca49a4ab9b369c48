"""Why policy says what it says about one caller and one tool: the rules behind it and the values that they looked at.

Below: `engine.py` decides, `rules.py` reads the text. Above: `policy_desk.py`. The operator's view only: it tells of
rules and of tools that the caller may not know of (I1).

Invariants
1. The decision is the engine's own. What is worked out here is the reason, never the answer.
2. A clause is judged in its place: in `a && b`, `b` only where `a` holds, since `a` may be what makes `b` readable.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import cedarpy

from toolcrib.policy.engine import PolicyEngine
from toolcrib.policy.entities import caller_entity, caller_uid, context_json, tool_attributes, tool_entity, tool_uid
from toolcrib.policy.rules import Rule
from toolcrib.policy.shipped import schema_text
from toolcrib.types import Caller, Channel, Decision, Effect, Tool

_NEAREST = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """An attribute that a rule looked at, and what it was. `value`: text, true or false, or a sorted list of texts."""

    path: str
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Behind:
    """A rule, and what it looked at."""

    rule: Rule
    looked_at: tuple[Looked, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NearMiss:
    """A permit that did not hold, and the first thing in it that was in the way.

    Args:
        clause: as Cedar writes it back: `when { … }`, `unless { … }`, or the scope.
        outcome: `false`, `true` (of an `unless`), or why it cannot be evaluated.
    """

    behind: Behind
    clause: str
    outcome: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Why:
    """A decision with its reasons.

    Args:
        decided_on: the action whose decision this is: what may not be discovered may not be called either.
        nearest: where no rule decided, the permits that came closest, closest first.
    """

    action: Literal["discover", "call"]
    decided_on: Literal["discover", "call"]
    decision: Decision
    behind: tuple[Behind, ...]
    nearest: tuple[NearMiss, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """One caller, one tool, one action, and everything that a rule can look at."""

    principal: Mapping[str, str]
    resource: Mapping[str, str]
    action: str
    context: str
    entities: cedarpy.Entities
    values: Mapping[str, Any]


def why(
    rules: Sequence[Rule],
    *,
    engine: PolicyEngine,
    caller: Caller,
    tool: Tool,
    action: Literal["discover", "call"],
    channel: Channel,
    unknown_risk: str,
    approved: bool = False,
) -> Why:
    """The decision on this tool, and why.

    Args:
        rules, engine: of one policy text.
        unknown_risk: "allow" or "needs_approval", as configured for this channel.
    """
    discover = engine.decide_discover(caller, tool, channel=channel, unknown_risk=unknown_risk)
    on_call = action == "call" and discover.effect is Effect.PERMIT
    decision = discover
    if on_call:
        decision = engine.decide_call(caller, tool, channel=channel, unknown_risk=unknown_risk, approved=approved)
    decided_on: Literal["discover", "call"] = "call" if on_call else "discover"
    try:
        request = _request(caller, tool, decided_on, channel, unknown_risk, approved=approved and on_call)
    except ValueError:  # Cedar cannot read the tool or the caller, and the decision says so
        return Why(action=action, decided_on=decided_on, decision=decision, behind=(), nearest=())
    deciding = set(decision.policies)
    undecided = decision.effect is Effect.FORBID and not deciding
    return Why(
        action=action,
        decided_on=decided_on,
        decision=decision,
        behind=tuple(_behind(rule, request) for rule in rules if rule.label in deciding),
        nearest=_nearest(rules, request) if undecided else (),
    )


def _request(
    caller: Caller, tool: Tool, action: str, channel: Channel, unknown_risk: str, *, approved: bool
) -> _Request:
    context = context_json(caller, channel=channel, unknown_risk=unknown_risk, approved=approved)
    schema = cedarpy.Schema.from_str(schema_text())
    principal = caller_uid(caller)
    return _Request(
        principal=principal,
        resource=tool_uid(tool),
        action=action,
        context=context,
        entities=cedarpy.Entities.from_json_str(json.dumps([caller_entity(caller), tool_entity(tool)]), schema),
        values={
            "principal": f"{principal['type']} {principal['id']}",
            "resource": tool.tool_id,
            **{f"principal.{name}": value for name, value in caller_entity(caller)["attrs"].items()},
            **{f"resource.{name}": value for name, value in tool_attributes(tool).items()},
            **{f"context.{name}": value for name, value in json.loads(context).items()},
        },
    )


def _behind(rule: Rule, request: _Request) -> Behind:
    looked = [Looked(path=path, value=request.values[path]) for path in rule.reads if path in request.values]
    return Behind(rule=rule, looked_at=tuple(looked))


# --- the permits that came closest -----------------------------------------------------------------------


def _nearest(rules: Sequence[Rule], request: _Request) -> tuple[NearMiss, ...]:
    """Permits for the action, those that fail latest first; equal ones in the order of the text."""
    permits = [rule for rule in rules if rule.effect == "permit" and rule.covers(_action(request))]
    misses = [(passed, miss) for rule in permits for passed, miss in _first_miss(rule, request)]
    misses.sort(key=lambda found: -found[0])
    return tuple(miss for _, miss in misses[:_NEAREST])


def _action(request: _Request) -> Literal["discover", "call"]:
    return "call" if request.action == "call" else "discover"


def _first_miss(rule: Rule, request: _Request) -> Iterator[tuple[int, NearMiss]]:
    """How many parts of a permit hold before the first that does not, and that one; nothing if all hold."""
    passed = 0
    for variable in ("principal", "resource"):
        scope = {name: rule.tree[name] if name == variable else _ANY for name in ("principal", "action", "resource")}
        outcome = _holds(scope, (), request)
        if outcome != "true":
            yield passed, NearMiss(behind=_behind(rule, request), clause=_scope_text(scope, variable), outcome=outcome)
            return
        passed += 1
    for condition in rule.tree["conditions"]:
        for clause, body, holds in _parts(condition):
            outcome = _holds(_ANYTHING, ({"kind": "when", "body": body},), request)
            if outcome != holds:
                yield passed, NearMiss(behind=_behind(rule, request), clause=clause, outcome=outcome)
                return
            passed += 1


_ANY = {"op": "All"}
_ANYTHING = {"principal": _ANY, "action": _ANY, "resource": _ANY}


def _parts(condition: Mapping[str, Any]) -> Iterator[tuple[str, Any, str]]:
    """The parts of a condition that must hold one after the other: text, what to evaluate, what it must come to.

    `when { a && b }` is `a`, then `a && b`; `unless { a || b }` must not hold, so neither may `a`, nor `a || b`.
    """
    kind, body = condition["kind"], condition["body"]
    operator, holds = ("&&", "true") if kind == "when" else ("||", "false")
    chain = [(body, body)]
    while isinstance(step := chain[-1][0].get(operator), Mapping):
        chain[-1] = (chain[-1][0], step["right"])
        chain.append((step["left"], step["left"]))
    for whole, part in reversed(chain):
        yield f"{kind} {{ {_text(part)} }}", whole, holds


def _holds(scope: Mapping[str, Any], conditions: Sequence[Mapping[str, Any]], request: _Request) -> str:
    """`true` or `false`, or in other words why it cannot be evaluated."""
    policies = cedarpy.PolicySet.from_str(_cedar(scope, conditions))
    asked = {
        "principal": dict(request.principal),
        "action": {"type": "Action", "id": request.action},
        "resource": dict(request.resource),
        "context": request.context,
    }
    (result,) = cedarpy.is_authorized_batch([asked], policies, request.entities)
    if result.diagnostics.errors:
        return f"cannot be evaluated: {result.diagnostics.errors[0]}"
    return "true" if result.allowed else "false"


def _cedar(scope: Mapping[str, Any], conditions: Sequence[Mapping[str, Any]]) -> str:
    policy = {"effect": "permit", **scope, "conditions": list(conditions)}
    whole = {"staticPolicies": {"policy0": policy}, "templates": {}, "templateLinks": []}
    return str(cedarpy.policies_from_json_str(json.dumps(whole)))


def _text(expression: Any) -> str:
    """An expression as Cedar writes it, without the brackets around plain attributes that it adds."""
    written = _cedar(_ANYTHING, ({"kind": "when", "body": expression},))
    inner = written[written.index("when {") + len("when {") : written.rindex("}")].strip()
    return re.sub(r"(?<!\w)\(((?:principal|resource|context)(?:\.\w+)+)\)", r"\1", inner)


def _scope_text(scope: Mapping[str, Any], variable: str) -> str:
    """The part of a scope that is about this variable: `principal in Role::"support"`."""
    written = _cedar(scope, ())
    inner = written[written.index("(") + 1 : written.rindex(")")]
    return next((part.strip() for part in inner.split(", ") if part.strip().startswith(variable)), inner)
