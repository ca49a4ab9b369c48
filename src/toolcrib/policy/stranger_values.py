"""What fields of callers may be, as far as rules can tell: what they compare, something else, and nothing.

Below: `samples.py`. Above: `strangers.py`.

Invariants
1. A field has each value that some rule compares it with, one that none does, and none at all.
2. Of a set: each combination of the words that the changed rules have (of many, each word, each rule's, none and all);
   beside these none of the words that other rules have, all of them, or those of one permit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any, Final

from toolcrib.policy.changes import Asker
from toolcrib.policy.rules import Rule, path_of
from toolcrib.policy.samples import attribute_texts, comparisons, emptied, values_of
from toolcrib.policy.tree import nodes
from toolcrib.types import Caller, CallerKind, Channel, Tool

STRANGER: Final = "(stranger)"
"""A name that no rule, no caller and no sample of a resource or a request has."""
OTHER: Final = "(other)"
"""The same for a word in a set."""
NOBODY: Final = Caller(subject=STRANGER)
PATHS: Final[Mapping[str, str]] = {
    "subject": "principal",
    "kind": "principal.kind",
    "tenant": "principal.tenant",
    "on_behalf_of": "principal.on_behalf_of",
    "clearance": "principal.clearance",
    "roles": "principal.roles",
    "scopes": "principal.scopes",
    "features": "principal.features",
    "stage": "context.stage",
    "environment": "context.environment",
    "region": "context.region",
}
"""Fields of a caller, and where a rule reads them; in the order in which they are told."""
SETS: Final = ("roles", "scopes", "features")
_CALLER_TYPES = ("User", "Agent", "Workload")
_MAX_COMBINED = 6
_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Values:
    """What fields of callers may be.

    Args:
        changed: values of the fields that the changed rules read.
        beside: values of the other fields; of a set that the changed rules read, what other rules add to it.
        words: names that rules know; every other name is like any other.
        n_words: how many values of each field can be told apart in words.
    """

    changed: Mapping[str, tuple[Any, ...]]
    beside: Mapping[str, tuple[Any, ...]]
    words: Mapping[str, frozenset[str]]
    n_words: Mapping[str, int]
    complete: bool


def reads(rule: Rule, name: str) -> bool:
    """Whether a rule reads this field of a caller."""
    if name == "subject":
        return any(kind in _CALLER_TYPES for kind, _ in rule.names)
    return PATHS[name] in rule.reads or (name == "kind" and "principal" in rule.reads)


def values_for(
    fields: Sequence[str],
    changed: Sequence[Rule],
    others: Sequence[Rule],
    tools: Sequence[Tool],
    askers: Sequence[Asker],
) -> Values:
    """What these fields may be, with what the callers at hand have where a rule reads it in a way not seen through."""
    unclear = comparisons((*changed, *others)).unclear
    of_changed: dict[str, tuple[Any, ...]] = {}
    beside: dict[str, tuple[Any, ...]] = {}
    words: dict[str, frozenset[str]] = {}
    n_words: dict[str, int] = {}
    complete = not unclear.keys() & {PATHS[name] for name in fields if name not in ("kind", "subject")}
    for name in fields:
        own = [getattr(asker.caller, name) for asker in askers] if PATHS[name] in unclear else []
        read_by_changed = any(reads(rule, name) for rule in changed)
        if name in SETS:
            first, all_of_them = _sets(name, changed, tools)
            complete = complete and all_of_them
            more = _added_to_sets(name, others, tools)
            first = (*first, *_with_other_words(name, changed))
            more = (*more, *_with_other_words(name, others))
            first = tuple(dict.fromkeys((*first, *own)))
            words[name] = frozenset[str]().union(*first, *more)
            every: Sequence[Any] = [one | other for one, other in product(first, more)]
            beside[name] = more if read_by_changed else tuple(dict.fromkeys((*every, *own)))
        else:
            every = first = tuple(dict.fromkeys((*_scalars(name, (*changed, *others), tools), *own)))
            words[name] = frozenset(map(str, every)) - {STRANGER}
            if not read_by_changed:
                beside[name] = first
        if read_by_changed:
            of_changed[name] = first
        n_words[name] = len({in_words(name, value) for value in every})
    return Values(changed=of_changed, beside=beside, words=words, n_words=n_words, complete=complete)


def _scalars(name: str, rules: Sequence[Rule], tools: Sequence[Tool]) -> tuple[Any, ...]:
    if name == "kind":
        return tuple(CallerKind)
    if name == "subject":
        named = {entity_id for rule in rules for kind, entity_id in rule.names if kind in _CALLER_TYPES}
        return (STRANGER, *sorted(named - {""}))
    found = comparisons(rules)
    texts = values_of(PATHS[name], found, caller=NOBODY, channel=Channel.CLI, tools=tools)
    return ("", STRANGER, *sorted(texts - {"", STRANGER}))


def _sets(name: str, rules: Sequence[Rule], tools: Sequence[Tool]) -> tuple[tuple[frozenset[str], ...], bool]:
    """Combinations of the words that these rules have for a set, and whether those are all of them."""
    words = sorted({word for rule in rules for word in _words(name, rule)})
    if len(words) <= _MAX_COMBINED:
        sizes = range(len(words) + 1)
        combined = [frozenset(some) for size in sizes for some in combinations(words, size)]
    else:
        of_rules = (frozenset(_words(name, rule)) for rule in rules)
        combined = [frozenset(), *(frozenset([word]) for word in words), *of_rules, frozenset(words)]
    of_tools = {text for rule in rules for text in _of_tools(name, rule, tools)}
    every = frozenset[str]().union(*of_tools)
    more = sorted({frozenset[str](), every, *of_tools}, key=lambda some: (len(some), sorted(some)))
    joined = dict.fromkeys(one | other for one, other in product(combined, more))
    return tuple(joined), len(words) <= _MAX_COMBINED


def _added_to_sets(name: str, others: Sequence[Rule], tools: Sequence[Tool]) -> tuple[frozenset[str], ...]:
    """What rules that stay may ask of a set: nothing, all that any of them names, and all that one permit names."""
    texts = [{frozenset(_words(name, rule)), *_of_tools(name, rule, tools)} for rule in others]
    every = frozenset[str]().union(*(one for of_rule in texts for one in of_rule))
    permits = (frozenset(_words(name, rule)) for rule in others if rule.effect == "permit")
    return tuple(dict.fromkeys((frozenset[str](), every, *permits)))


def _words(name: str, rule: Rule) -> set[str]:
    named = {entity_id for kind, entity_id in rule.names if kind == "Role"} if name == "roles" else set()
    found = comparisons([rule])
    others = (found.words.get(path, ()) for path in found.paths.get(PATHS[name], ()))
    return named.union(found.words.get(PATHS[name], ()), *others)


def _with_other_words(name: str, rules: Sequence[Rule]) -> list[frozenset[str]]:
    """A set of words that no rule has, where some rule would notice: asked whether it is empty, or compared with what
    a call, a request or the caller itself names."""
    for rule in rules:
        emptied_here = (emptied(node) for node in nodes(rule.tree["conditions"]))
        compared = comparisons([rule]).paths.get(PATHS[name], frozenset())
        if any(path_of(one) == PATHS[name] for one in emptied_here if one is not None) or any(
            not path.startswith("resource.") for path in compared
        ):
            return [frozenset({OTHER})]
    return []


def _of_tools(name: str, rule: Rule, tools: Sequence[Tool]) -> set[frozenset[str]]:
    """What tools have in the attributes that this rule compares the set with, each tool's own."""
    paths = comparisons([rule]).paths.get(PATHS[name], frozenset())
    return {
        frozenset(attribute_texts(path, NOBODY, Channel.CLI, [tool]))
        for path in paths
        for tool in tools
        if path.startswith("resource.")
    }


def in_words(name: str, value: Any) -> str:
    """What a stranger has in this field, for people."""
    if name == "kind":
        return {"user": "a user", "agent": "an agent"}.get(value, f"a {value}")
    if name == "subject":
        return "of another name" if value == STRANGER else f'named "{value}"'
    if name in SETS:
        if not value:
            return f"without these {name}"
        known, others = sorted(value - {OTHER}), [f"other {name}"] if OTHER in value else []
        more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
        quoted = ", ".join(f'"{word}"' for word in known[:_SHOWN]) + more
        named = [f"{name if len(known) > 1 else name[:-1]} {quoted}"] if known else []
        return "with " + " and ".join([*named, *others])
    what = {"on_behalf_of": "principal"}.get(name, name)
    if not value:
        return f"without a {what}" if what != "environment" else "without an environment"
    return f"with another {what}" if value == STRANGER else f'with {what} "{value}"'
