"""A policy text, parsed, checked against the schema, and read for what evaluation must know about it.

Below: `statements.py`, `shipped.py`. Above: `engine.py`.

Invariants
1. What loads is valid: it parses, fits the schema, and every obligation in it is one that is enforced.
2. Nothing loads that silently does nothing: no template, no obligation where none can work.
3. A decision depends on principal, resource and context alone, never on another tool or caller that a policy names.
4. Each policy has one label, its `@id` or else its number and line; no two have the same `@id`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import cedarpy

from toolcrib.errors import PolicySyntaxError
from toolcrib.policy.shipped import default_policy_text, schema_text
from toolcrib.policy.statements import Statement, statements
from toolcrib.policy.tree import nodes

NEEDS_APPROVAL = "needs_approval"
_READS = frozenset({".", "has", "in", "is", "getTag", "hasTag"})
_CALLER_TYPES = ("User", "Agent", "Workload")


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """A loaded policy text.

    Args:
        version: "sha256:<hex>" over policy text and schema.
        labels: Cedar's own id of each policy ("policy0") -> what people call it.
        approvals: Cedar's ids of the policies that oblige to an approval.
        names_subjects: a policy names a caller, so that callers with equal attributes may get different decisions.
        named_tools: tool ids that policies name.
        reads_names: a policy reads `resource.name`, so that tools with equal metadata may get different decisions.
        whole: all policies.
        by_action: the policies on discovery that may say something else of it than of a call.
        not_discovery: the policies whose scope leaves discovery out.
        by_approval: the policies that may say something else once a call is approved.
        approve: the policies that say who may approve a call: those that name Action::"approve" in their scope.
        owning: of these, the permits that read `context.own_request`; crossing: those that read
            `context.requester_tenant`.
    """

    handle: cedarpy.PolicySet
    schema: cedarpy.Schema
    version: str
    labels: Mapping[str, str]
    approvals: frozenset[str]
    names_subjects: bool
    named_tools: frozenset[str]
    reads_names: bool
    whole: Part
    by_action: Part
    not_discovery: frozenset[str]
    by_approval: Part
    approve: Part
    owning: frozenset[str]
    crossing: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Some policies of a text, as a set of their own, in which Cedar numbers them anew.

    Args:
        ids: the number of each in the part -> its id in the whole text.
        labels: Cedar's id of each in the part -> what people call it.
    """

    ids: tuple[str, ...]
    handle: cedarpy.PolicySet
    labels: Mapping[str, str]

    def whole_id(self, cedar_id: str) -> str:
        """The id in the whole text of a policy of this part."""
        return self.ids[_number(cedar_id)]


def load_policies(text: str | None, *, source: str) -> Policies:
    """Parsed and checked policies; None loads the built-in ones. An empty text is valid and permits nothing.

    Raises:
        PolicySyntaxError: the text does not parse, does not fit the schema, or holds what would never take effect.
    """
    text = default_policy_text() if text is None else text
    schema = cedarpy.Schema.from_str(schema_text())
    parts = statements(text)
    parsed, handle = _parsed(text, parts, source)
    static: dict[str, dict[str, Any]] = parsed["staticPolicies"]
    rules = {cedar_id: static[cedar_id] for cedar_id in sorted(static, key=_number)}
    at = _Places(source=source, parts=parts)
    _refuse_templates(parsed, at)
    labels = _labels(rules, at)
    _validate(text, schema, labels, at)
    _refuse_other_entities(rules, at)
    literals = set(_literals(rules))
    return Policies(
        handle=handle,
        schema=schema,
        version="sha256:" + hashlib.sha256(json.dumps([text, schema_text()]).encode()).hexdigest(),
        labels=labels,
        approvals=frozenset(cedar_id for cedar_id, rule in rules.items() if _obliges(rule, cedar_id, at)),
        names_subjects=any(kind in _CALLER_TYPES for kind, _ in literals),
        named_tools=frozenset(entity_id for kind, entity_id in literals if kind == "Tool"),
        reads_names=any(node.get("attr") == "name" for node in nodes(rules)),
        whole=Part(ids=tuple(rules), handle=handle, labels=labels),
        by_action=_part([c for c, rule in rules.items() if _depends_on_action(rule)], labels, parts),
        not_discovery=frozenset(c for c, rule in rules.items() if not _on_discovery(rule)),
        by_approval=_part([c for c, rule in rules.items() if _reads_context(rule, "approved")], labels, parts),
        approve=_part([c for c, rule in rules.items() if _on_approve(rule)], labels, parts),
        owning=frozenset(c for c, rule in rules.items() if _permits_reading(rule, "own_request")),
        crossing=frozenset(c for c, rule in rules.items() if _permits_reading(rule, "requester_tenant")),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Places:
    """Where policies stand: Cedar numbers them in the order of the text, templates included."""

    source: str
    parts: tuple[Statement, ...]

    def line(self, cedar_id: str) -> int:
        return self.parts[_number(cedar_id)].line

    def where(self, cedar_id: str) -> str:
        return f"{self.source}:{self.line(cedar_id)}"


def _number(cedar_id: str) -> int:
    return int(cedar_id.removeprefix("policy"))


def _parsed(text: str, parts: tuple[Statement, ...], source: str) -> tuple[dict[str, Any], cedarpy.PolicySet]:
    """The text as Cedar's JSON, to be read here, and as Cedar's handle, to be evaluated."""
    for part in parts:
        if part.too_deep:
            raise _too_deep(f"{source}:{part.line}")
    try:
        return json.loads(cedarpy.policies_to_json_str(text)), cedarpy.PolicySet.from_str(text)
    except ValueError as fault:
        line = _first_refused(parts, ValueError)
        what = "the policy that starts here does not parse" if line else "the policies do not parse"
        raise PolicySyntaxError(
            f"{what}: {fault}",
            where=f"{source}:{line}" if line else source,
            hint='a policy reads: @id("name") permit (principal, action, resource) when { … };',
        ) from fault
    except RecursionError as fault:
        raise _too_deep(f"{source}:{_first_refused(parts, RecursionError)}") from fault


def _too_deep(where: str) -> PolicySyntaxError:
    return PolicySyntaxError(
        "the policy that starts here is nested too deeply to be read safely",
        where=where,
        hint='split it into several policies, or compare with a set: ["a", "b"].contains(…)',
    )


def _first_refused(parts: tuple[Statement, ...], fault: type[Exception]) -> int | None:
    """The line of the first policy that cannot be read on its own, for this kind of reason."""
    for part in parts:
        try:
            json.loads(cedarpy.policies_to_json_str(part.text))
        except fault:
            return part.line
        except (ValueError, RecursionError):
            continue
    return None


def _refuse_templates(parsed: Mapping[str, Any], at: _Places) -> None:
    for cedar_id in parsed["templates"]:
        raise PolicySyntaxError(
            "a template (?principal, ?resource) takes no effect: nothing fills its slots",
            where=at.where(cedar_id),
            hint='name the principal or resource, such as principal in Role::"support"',
        )


def _labels(rules: Mapping[str, dict[str, Any]], at: _Places) -> dict[str, str]:
    """What people call each policy: its `@id`, else where it stands."""
    labels: dict[str, str] = {}
    given: set[str] = set()
    for cedar_id, rule in rules.items():
        label = (rule.get("annotations") or {}).get("id")
        if label in given:
            raise PolicySyntaxError(
                f'two policies have the id "{label}"', where=at.where(cedar_id), hint="give each policy its own @id"
            )
        given.update([label] if label else [])
        labels[cedar_id] = label or f"{cedar_id} (line {at.line(cedar_id)})"
    return labels


def _validate(text: str, schema: cedarpy.Schema, labels: Mapping[str, str], at: _Places) -> None:
    faults = cedarpy.validate_policies(text, schema).errors
    if not faults:
        return
    first = faults[0]
    what = re.sub(r"^for policy `[^`]*`, ", "", first.error)
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    raise PolicySyntaxError(
        f'policy "{labels[first.policy_id]}" does not fit the schema: {what}{more}'
        if first.policy_id in labels
        else what,
        where=at.where(first.policy_id) if first.policy_id in labels else at.source,
        hint="entity types, attributes, actions and context are listed in toolcrib/policy/schema.cedarschema",
    )


def _refuse_other_entities(rules: Mapping[str, dict[str, Any]], at: _Places) -> None:
    """Names may be compared with, not read: `Tool::"a.b".risk` would let one tool's attributes decide on another."""
    for cedar_id, rule in rules.items():
        for node in nodes(rule["conditions"]):
            for operator in _READS.intersection(node):
                read = node[operator]
                if isinstance(read, dict) and any(_literals(read.get("left"))):
                    raise PolicySyntaxError(
                        f"a named entity is read here with `{operator}`; it may only be compared with",
                        where=at.where(cedar_id),
                        hint='compare: resource == Tool::"…", principal in Role::"…", resource in Namespace::"…"',
                    )


def _obliges(rule: Mapping[str, Any], cedar_id: str, at: _Places) -> bool:
    """Whether this policy asks for an approval rather than forbidding outright."""
    annotations = rule.get("annotations") or {}
    if "obligation" not in annotations:
        return False
    if annotations["obligation"] != NEEDS_APPROVAL:
        raise PolicySyntaxError(
            f'unknown obligation "{annotations["obligation"] or ""}"',
            where=at.where(cedar_id),
            hint=f'the only obligation is @obligation("{NEEDS_APPROVAL}")',
        )
    if rule["effect"] != "forbid":
        raise PolicySyntaxError(
            "an obligation on a permit takes no effect",
            where=at.where(cedar_id),
            hint='put it on: forbid (principal, action == Action::"call", resource) unless { context.approved };',
        )
    if not _call_only(rule["action"]):
        raise PolicySyntaxError(
            "an approval can be asked for a call only, and this policy covers discovery as well",
            where=at.where(cedar_id),
            hint='write action == Action::"call"',
        )
    return True


def _call_only(action: Mapping[str, Any]) -> bool:
    call = {"type": "Action", "id": "call"}
    named = action.get("entities", [action.get("entity")])
    return action["op"] in ("==", "in") and all(entity == call for entity in named)


def _part(ids: Sequence[str], labels: Mapping[str, str], parts: Sequence[Statement]) -> Part:
    text = "\n".join(parts[_number(cedar_id)].text for cedar_id in ids)
    return Part(
        ids=tuple(ids),
        handle=cedarpy.PolicySet.from_str(text),
        labels={f"policy{number}": labels[cedar_id] for number, cedar_id in enumerate(ids)},
    )


def _depends_on_action(rule: Mapping[str, Any]) -> bool:
    """Of a policy on discovery: whether its scope or its conditions look at the action."""
    return _on_discovery(rule) and (
        rule["action"]["op"] != "All"
        or any(node.get("Var") == "action" or node.get("type") == "Action" for node in nodes(rule["conditions"]))
    )


def _on_discovery(rule: Mapping[str, Any]) -> bool:
    return rule["action"]["op"] == "All" or _names_action(rule, "discover")


def _reads_context(rule: Mapping[str, Any], attribute: str) -> bool:
    """Whether the conditions read this of the context, or use the context in a way that is not seen through here."""
    n_reads = 0
    for node in nodes(rule["conditions"]):
        for operator in (".", "has"):
            read = node.get(operator)
            if isinstance(read, dict) and read.get("left") == {"Var": "context"}:
                if read.get("attr") == attribute:
                    return True
                n_reads += 1
    n_used = sum(1 for node in nodes(rule["conditions"]) if node.get("Var") == "context")
    return n_reads < n_used


def _on_approve(rule: Mapping[str, Any]) -> bool:
    """Whether the scope names Action::"approve". A bare `action` never does: whoever may call could then approve."""
    return _names_action(rule, "approve")


def _names_action(rule: Mapping[str, Any], action: str) -> bool:
    named = rule["action"].get("entities", [rule["action"].get("entity")])
    return {"type": "Action", "id": action} in named


def _permits_reading(rule: Mapping[str, Any], attribute: str) -> bool:
    """Whether this is a permit to approve whose author had this attribute of the request in mind."""
    return _on_approve(rule) and rule["effect"] == "permit" and _reads_context(rule, attribute)


def _literals(node: Any) -> Iterator[tuple[str, str]]:
    """Type and id of every entity that the policies name, in scopes and in conditions."""
    for found in nodes(node):
        kind, entity_id = found.get("type"), found.get("id")
        if isinstance(kind, str) and isinstance(entity_id, str):
            yield kind, entity_id
