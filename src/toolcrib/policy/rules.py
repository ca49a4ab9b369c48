"""A policy text as a person reads it: its rules one by one, where each stands, what it names and what it reads.

Below: `policies.py` says that the text is sound, `statements.py` cuts it. Above: `check.py` and `why.py`, tools for
operators. Nothing here decides anything: that is `engine.py` alone.

Invariants
1. The label of a rule is the one that decisions name (`Policies.labels`).
2. Cedar numbers the policies of a text in their order, so the n-th statement is the n-th rule.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import cedarpy

from toolcrib.policy.policies import NEEDS_APPROVAL, load_policies
from toolcrib.policy.shipped import default_policy_text
from toolcrib.policy.statements import statements
from toolcrib.policy.tree import nodes

ActionName = Literal["discover", "call", "approve"]
APPROVE: ActionName = "approve"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rule:
    """One policy of a text.

    Args:
        where: file:line of its beginning.
        text: as written, without the comments before it.
        tree: as Cedar's JSON.
        obliges: it asks for an approval rather than forbidding outright.
        reads: paths such as `principal.scopes` or `context.target.tenant` that its scope and conditions read, sorted.
        names: type and id of each entity that it names, sorted; actions are left out.
    """

    label: str
    where: str
    text: str
    effect: Literal["permit", "forbid"]
    tree: Mapping[str, Any]
    obliges: bool
    reads: tuple[str, ...]
    names: tuple[tuple[str, str], ...]

    def covers(self, action: ActionName) -> bool:
        """Whether its scope covers this action. A bare `action` means discover and call, never approve."""
        scope = self.tree["action"]
        if scope["op"] == "All":
            return action != APPROVE
        return action in {entity["id"] for entity in _entities(scope)}

    def reads_of(self, attribute: str) -> bool:
        """Whether it reads this path, or one below it."""
        return any(path == attribute or path.startswith(f"{attribute}.") for path in self.reads)


@lru_cache(maxsize=8)
def rules_of(text: str | None, *, source: str) -> tuple[Rule, ...]:
    """The rules of a policy text in their order; None reads the built-in one.

    Raises:
        PolicySyntaxError: the text cannot be loaded; the words are those that loading it has.
    """
    labels = load_policies(text, source=source).labels
    text = default_policy_text() if text is None else text
    trees = json.loads(cedarpy.policies_to_json_str(text))["staticPolicies"]
    parts = statements(text)
    numbers = {cedar_id: int(cedar_id.removeprefix("policy")) for cedar_id in trees}
    return tuple(
        Rule(
            label=labels[cedar_id],
            where=f"{source}:{parts[number].line}",
            text=parts[number].text,
            effect=trees[cedar_id]["effect"],
            tree=trees[cedar_id],
            obliges=(trees[cedar_id].get("annotations") or {}).get("obligation") == NEEDS_APPROVAL,
            reads=tuple(sorted(_read(trees[cedar_id]))),
            names=tuple(sorted(_named(trees[cedar_id]))),
        )
        for cedar_id, number in sorted(numbers.items(), key=lambda item: item[1])
    )


def policy_set(rules: Sequence[Rule]) -> cedarpy.PolicySet:
    """These rules alone; Cedar's id of the n-th is `policy<n>`."""
    return cedarpy.PolicySet.from_str("\n".join(rule.text for rule in rules))


def path_of(node: Any) -> str:
    """`resource.risk` for such an expression, `resource` for the variable, "" for anything else."""
    names: list[str] = []
    while isinstance(node, Mapping):
        if isinstance(variable := node.get("Var"), str):
            return ".".join([variable, *reversed(names)])
        step = node.get(".")
        if not isinstance(step, Mapping):
            break
        names.append(str(step["attr"]))
        node = step["left"]
    return ""


def _entities(scope: Mapping[str, Any]) -> list[dict[str, str]]:
    found = [scope["entity"]] if "entity" in scope else []
    return [*found, *scope.get("entities", ())]


def _named(tree: Mapping[str, Any]) -> set[tuple[str, str]]:
    found = {
        (node["type"], node["id"])
        for node in nodes(tree)
        if isinstance(node.get("type"), str) and isinstance(node.get("id"), str)
    }
    return {(kind, entity_id) for kind, entity_id in found if kind != "Action"}


# What membership in an entity of this type says of the variable, as the attribute that holds the same.
_MEMBERSHIP = {"Role": "roles", "Namespace": "namespace", "Server": "server_id"}


def _read(tree: Mapping[str, Any]) -> set[str]:
    found = _read_by_scope("principal", tree["principal"]) | _read_by_scope("resource", tree["resource"])
    for node in nodes(tree["conditions"]):
        if path := path_of(node):
            found.add(path)
        if isinstance(has := node.get("has"), Mapping) and (path := path_of(has["left"])):
            found.add(f"{path}.{has['attr']}")
        for operator in ("in", "is"):
            if isinstance(test := node.get(operator), Mapping) and (path := path_of(test.get("left"))):
                found |= {f"{path}.{_MEMBERSHIP[kind]}" for kind, _ in _named(test) if kind in _MEMBERSHIP}
    return {path for path in found if path not in ("principal", "resource", "context", "action")} | _compared_whole(
        tree
    )


def _compared_whole(tree: Mapping[str, Any]) -> set[str]:
    """`principal` or `resource` where a rule names a caller or a tool, or asks for the kind of one."""
    kinds = {kind for kind, _ in _named(tree)}
    found = {"resource"} if "Tool" in kinds else set()
    is_tests = [node["is"] for node in nodes(tree["conditions"]) if isinstance(node.get("is"), Mapping)]
    asked = any(path_of(test["left"]) == "principal" for test in is_tests) or tree["principal"]["op"] == "is"
    return found | ({"principal"} if asked or kinds & {"User", "Agent", "Workload"} else set())


def _read_by_scope(variable: str, scope: Mapping[str, Any]) -> set[str]:
    return {f"{variable}.{_MEMBERSHIP[kind]}" for kind, _ in _named(scope) if kind in _MEMBERSHIP}
