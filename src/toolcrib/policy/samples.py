"""Values worth trying: what the rules of a text compare an attribute with, and something else besides.

Below: `rules.py`, `entities.py`. Above: `compare.py` and its parts, which try calls on samples of the resources that
arguments may name, and approvals on samples of requests.

Invariants
1. A comparison holds for some sample or other wherever one side is the attribute and the other a text, a set of texts,
   a pattern, or an attribute of the caller, the tool or the request.
2. Where an attribute is read in any other way, `unclear` says so; nobody takes the samples for all there is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final, TypeAlias

from toolcrib.policy.entities import caller_entity, tool_attributes
from toolcrib.policy.rules import Rule, path_of
from toolcrib.policy.tree import nodes
from toolcrib.types import Caller, Channel, Tool

ANOTHER: Final = "(another)"
"""Stands for a name that nobody and nothing has."""
MAX_SAMPLES: Final = 200
"""Combinations that are tried; from there on, each value in turn."""

_COMPARES = ("==", "!=", "in", "contains", "containsAll", "containsAny")
_Term: TypeAlias = tuple[str, str, Any]
"""("word", the text, _) or ("path", its path, its node)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparisons:
    """What rules compare each path with.

    Args:
        words: path -> texts; of a pattern, two texts that it matches. Of a path to an entity, ids.
        paths: path -> other paths.
        unclear: path -> a rule that reads it in a way that is not seen through here.
    """

    words: Mapping[str, frozenset[str]]
    paths: Mapping[str, frozenset[str]]
    unclear: Mapping[str, Rule]


def comparisons(rules: Sequence[Rule]) -> Comparisons:
    """All comparisons in the conditions of these rules."""
    words: dict[str, set[str]] = {}
    paths: dict[str, set[str]] = {}
    unclear: dict[str, Rule] = {}
    for rule in rules:
        understood: set[int] = set()
        for node in nodes(rule.tree["conditions"]):
            for one, other in _compared(node):
                understood |= {id(term[2]) for term in one if term[0] == "path"}
                for path in (term[1] for term in one if term[0] == "path"):
                    words.setdefault(path, set()).update(text for kind, text, _ in other if kind == "word")
                    paths.setdefault(path, set()).update(text for kind, text, _ in other if kind == "path")
            understood |= {id(step["left"]) for step in _steps(node)}
        for node in nodes(rule.tree["conditions"]):
            path = path_of(node)
            if path and id(node) not in understood:
                unclear.setdefault(path, rule)
    return Comparisons(
        words={path: frozenset(found) for path, found in words.items()},
        paths={path: frozenset(found) for path, found in paths.items()},
        unclear=unclear,
    )


def values_of(
    path: str, found: Comparisons, *, caller: Caller, channel: Channel, tools: Sequence[Tool]
) -> frozenset[str]:
    """What this path is compared with when this caller asks for these tools."""
    known = set(found.words.get(path, ()))
    for other in found.paths.get(path, ()):
        known |= found.words.get(other, frozenset()) | attribute_texts(other, caller, channel, tools)
    return frozenset(known)


def combined(values: Mapping[str, Sequence[str]]) -> tuple[tuple[dict[str, str], ...], bool]:
    """Combinations of these values, and whether those are all of them."""
    names = list(values)
    n_all = 1
    for each in values.values():
        n_all *= len(each)
    if n_all <= MAX_SAMPLES:
        return tuple(dict(zip(names, chosen, strict=True)) for chosen in product(*values.values())), True
    bases = [{name: each[min(at, len(each) - 1)] for name, each in values.items()} for at in (0, 1, 2)]
    each_in_turn = [{**base, name: value} for base in bases for name in names for value in values[name]]
    unique = {tuple(chosen.items()): chosen for chosen in each_in_turn}
    return tuple(unique.values()), False


def collapsed(rows: Sequence[tuple[str, ...]], n_values: Sequence[int]) -> list[tuple[str, ...]]:
    """These rows of words in as few rows: "" where all values of a place are among them, so that it does not matter.

    Args:
        n_values: how many different words each place can have.
    """
    left = list(rows)
    for at, n_all in enumerate(n_values):
        by_rest: dict[tuple[str, ...], set[str]] = {}
        for words in left:
            by_rest.setdefault((*words[:at], "", *words[at + 1 :]), set()).add(words[at])
        left = [
            (*rest[:at], value, *rest[at + 1 :])
            for rest, found in by_rest.items()
            for value in (("",) if len(found) == n_all else sorted(found))
        ]
    return left


def emptied(node: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The expression that is asked whether it is empty, if that is what is asked here."""
    test = node.get("isEmpty")
    return test["arg"] if isinstance(test, Mapping) and isinstance(test.get("arg"), Mapping) else None


def _compared(node: Mapping[str, Any]) -> Iterator[tuple[list[_Term], list[_Term]]]:
    """The two sides of a comparison, each way round; nothing where one of them is no plain value."""
    for operator in _COMPARES:
        sides = node.get(operator)
        if isinstance(sides, Mapping) and "left" in sides and "right" in sides:
            left, right = _terms(sides["left"]), _terms(sides["right"])
            if left is not None and right is not None:
                yield left, right
                yield right, left
    pattern = node.get("like")
    if isinstance(pattern, Mapping) and (left := _terms(pattern["left"])) is not None:
        parts = [part.get("Literal") if isinstance(part, Mapping) else None for part in pattern["pattern"]]
        yield left, [("word", "".join(filler if p is None else p for p in parts), None) for filler in ("", "x")]


def _terms(node: Any) -> list[_Term] | None:
    """The texts, entities and paths that an expression is, or that a set of them holds; None for all else."""
    if not isinstance(node, Mapping):
        return None
    if path := path_of(node):
        return [("path", path, node)]
    if "Set" in node:
        items = [_terms(item) for item in node["Set"]]
        return None if any(item is None for item in items) else [term for item in items if item for term in item]
    value = node.get("Value")
    if isinstance(value, Mapping):
        value = value.get("__entity", {}).get("id")
    return [("word", value, None)] if isinstance(value, str) else None


def _steps(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Where an entity is only passed through (`x.attr`) or asked for what it always has (`x has attr`, `x is T`), and
    where a set is asked whether it is empty, which some sample is and another is not."""
    for operator in (".", "has", "is"):
        step = node.get(operator)
        if isinstance(step, Mapping) and "left" in step:
            yield step
    if (asked := emptied(node)) is not None:
        yield {"left": asked}


def attribute_texts(path: str, caller: Caller, channel: Channel, tools: Sequence[Tool]) -> set[str]:
    """The texts that this attribute has of the caller, of the request, or of any of these tools."""
    variable, _, name = path.partition(".")
    if variable == "resource":
        return {text for tool in tools for text in _texts(tool_attributes(tool).get(name))}
    if variable == "principal":
        return {text for one in caller.chain for text in _texts(caller_entity(one)["attrs"].get(name))}
    return {"channel": {channel.value}}.get(name, {str(getattr(caller, name, ""))})


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [text for text in value if isinstance(text, str)] if isinstance(value, list | tuple) else []
