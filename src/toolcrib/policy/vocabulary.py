"""Words in a policy that stand for nothing: a namespace nobody configured, a risk that does not exist.

Below: `rules.py`, `entities.py`. Above: `check.py`.

A misspelled word fits the schema, since it is a string like any other. In a permit it takes something away and is soon
noticed; in a forbid it opens what was meant to be closed, and nobody notices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from toolcrib.policy.entities import tool_attributes
from toolcrib.policy.rules import Rule, path_of
from toolcrib.policy.tree import nodes
from toolcrib.types import CallerKind, Channel, Risk, RiskSource, Tool, ToolState

# What these can ever hold, whatever the catalog.
_FIXED: dict[str, frozenset[str]] = {
    "resource.risk": frozenset(Risk),
    "resource.risk_source": frozenset(RiskSource),
    "resource.state": frozenset({ToolState.APPROVED, ToolState.DEPRECATED}),
    "principal.kind": frozenset(CallerKind),
    "context.channel": frozenset(Channel),
    "context.unknown_risk": frozenset({"allow", "needs_approval"}),
}
_FROM_CATALOG = ("namespace", "server_id", "owner", "data_class")
_SETS_FROM_CATALOG = ("required_scopes", "stages", "environments", "tenants", "regions")
_ENTITIES = {"Namespace": "namespace", "Server": "server_id"}


@dataclass(frozen=True, slots=True, kw_only=True)
class EmptyWord:
    """A word that nothing in the catalog has. `text` says which, and what it may have been meant to be."""

    rule: Rule
    text: str


def empty_words(rules: Sequence[Rule], tools: Sequence[Tool]) -> tuple[EmptyWord, ...]:
    """Each word of each rule that no tool in service and no fixed list of values has, in the rules' order."""
    known = {**_FIXED, **_catalog_words(tools)}
    found = [EmptyWord(rule=rule, text=text) for rule in rules for text in _entity_faults(rule, tools, known)]
    found += [EmptyWord(rule=rule, text=text) for rule in rules for text in _value_faults(rule, known)]
    return tuple(sorted(found, key=lambda word: (rules.index(word.rule), word.text)))


def _catalog_words(tools: Sequence[Tool]) -> dict[str, frozenset[str]]:
    words: dict[str, set[str]] = {f"resource.{name}": set() for name in (*_FROM_CATALOG, *_SETS_FROM_CATALOG)}
    for tool in tools:
        attributes = tool_attributes(tool)
        for name in _FROM_CATALOG:
            words[f"resource.{name}"].add(str(attributes[name]))
        for name in _SETS_FROM_CATALOG:
            value = attributes[name]
            words[f"resource.{name}"].update(value if isinstance(value, tuple) else ())
    return {path: frozenset(found | {""}) for path, found in words.items()}


def _entity_faults(rule: Rule, tools: Sequence[Tool], known: dict[str, frozenset[str]]) -> Iterator[str]:
    ids = {tool.tool_id for tool in tools}
    for kind, entity_id in rule.names:
        there = ids if kind == "Tool" else known[f"resource.{_ENTITIES[kind]}"] if kind in _ENTITIES else None
        if there is not None and entity_id not in there:
            said = "has this id" if kind == "Tool" else "is in it"
            yield f'names {kind}::"{entity_id}", and no tool in service {said}{_meant(entity_id, there)}'


def _value_faults(rule: Rule, known: dict[str, frozenset[str]]) -> Iterator[str]:
    for path, value in sorted(set(_comparisons(rule))):
        if path in known and value not in known[path]:
            yield f'compares {path} with "{value}", which it never is{_meant(value, known[path])}'


def _comparisons(rule: Rule) -> Iterator[tuple[str, str]]:
    """Attribute and literal of each comparison: `==`, `!=`, `["a"].contains(x)`, `x.contains("a")` and its kin."""
    for node in nodes(rule.tree["conditions"]):
        for operator in ("==", "!=", "contains", "containsAll", "containsAny"):
            sides = node.get(operator)
            if isinstance(sides, dict):
                left, right = sides["left"], sides["right"]
                for one, other in ((left, right), (right, left)):
                    if path := path_of(one):
                        yield from ((path, word) for word in _texts(other))


def _texts(node: Any) -> list[str]:
    """The string, or the strings of a set, that this expression is."""
    items = node.get("Set", [node]) if isinstance(node, dict) else []
    values = [item.get("Value") for item in items if isinstance(item, dict)]
    return [value for value in values if isinstance(value, str)]


def _meant(word: str, known: Iterable[str]) -> str:
    close = get_close_matches(word, sorted(known), n=1, cutoff=0.6)
    return f'; did you mean "{close[0]}"?' if close else ""
