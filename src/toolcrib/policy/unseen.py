"""What a comparison of two policies cannot see with the callers at hand, though it may let somebody do more.

Below: `changes.py`, `matching.py`, `samples.py`. Above: `compare.py`.

Invariants
1. Only where the change can widen at all: a permit is new, a forbid is gone, or the last rule on approvals is.
2. A word that rules have for a caller (a subject, role, scope, tenant, ...) and no caller at hand has: whoever has it
   may gain, and was not compared. It does not matter which rule has the word: a forbid that goes opens what a permit
   for `Role::"admin"` has granted all along.
3. A new permit, or a forbid that is gone, that holds for no caller and tool at hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from toolcrib.policy.changes import Asker, ChangedRules, Unseen, on_calls, widening_rules
from toolcrib.policy.entities import caller_entity
from toolcrib.policy.loaded import LoadedPolicy
from toolcrib.policy.matching import matches
from toolcrib.policy.rules import APPROVE, Rule
from toolcrib.policy.samples import comparisons
from toolcrib.types import Channel, Tool

_CALLER_TYPES = ("User", "Agent", "Workload")
_OF_CIRCUMSTANCES = ("stage", "environment", "region")


def unseen(
    old: LoadedPolicy,
    new: LoadedPolicy,
    *,
    changed: ChangedRules,
    tools: Sequence[Tool],
    askers: Sequence[Asker],
    unknown_risk: Mapping[Channel, str],
) -> tuple[Unseen, ...]:
    """Notes, first those on words, then those on rules, in the order of the texts."""
    concerned = [
        rule
        for rule in (*new.rules, *old.rules)
        if (changed.calls_widen and on_calls(rule)) or (changed.approvals_widen and rule.covers(APPROVE))
    ]
    return (
        *_words(concerned, askers),
        *_rules(new, widening_rules(added=changed.added, removed=()), "is new", tools, askers, unknown_risk),
        *_rules(old, widening_rules(added=(), removed=changed.removed), "is gone", tools, askers, unknown_risk),
    )


def _words(rules: Sequence[Rule], askers: Sequence[Asker]) -> Iterator[Unseen]:
    known = _known(askers)
    told: set[tuple[str, str]] = set()
    for rule in rules:
        for path, word, name in _said(rule):
            if path in known and word and word not in known[path] and (path, word) not in told:
                told.add((path, word))
                text = f'"{rule.label}" speaks of {name}, and no profile and no caller in the traces has that'
                yield Unseen(where=rule.where, text=f"{text}; write a profile that does")


def _said(rule: Rule) -> Iterator[tuple[str, str, str]]:
    """Path, word and how to name it, for each word that this rule has for a caller or its circumstances."""
    for kind, entity_id in rule.names:
        if kind == "Role" or kind in _CALLER_TYPES:
            yield ("principal.roles" if kind == "Role" else f"subject {kind}", entity_id, f'{kind}::"{entity_id}"')
    found = comparisons([rule])
    for path, words in sorted(found.words.items()):
        yield from ((path, word, f'{path} "{word}"') for word in sorted(words))


def _known(askers: Sequence[Asker]) -> dict[str, set[str]]:
    """Path -> the words that some caller at hand has there, those that it acts for included."""
    known: dict[str, set[str]] = {f"subject {kind}": set() for kind in _CALLER_TYPES}
    known |= {f"context.{name}": set() for name in (*_OF_CIRCUMSTANCES, "channel")}
    for asker in askers:
        known["context.channel"].update(channel.value for channel in asker.channels)
        for caller in asker.caller.chain:
            entity = caller_entity(caller)
            known[f"subject {entity['uid']['type']}"].add(caller.subject)
            for name, value in entity["attrs"].items():
                known.setdefault(f"principal.{name}", set()).update([value] if isinstance(value, str) else value)
            for name in _OF_CIRCUMSTANCES:
                known[f"context.{name}"].add(getattr(caller, name))
    return known


def _rules(
    policy: LoadedPolicy,
    rules: Sequence[Rule],
    what: str,
    tools: Sequence[Tool],
    askers: Sequence[Asker],
    unknown_risk: Mapping[Channel, str],
) -> Iterator[Unseen]:
    classes = policy.engine.classes(tools)
    readable = [tool for number, tool in enumerate(classes.representatives) if number not in classes.faults]
    if not rules or not readable:
        return
    callers = [one for asker in askers for one in asker.caller.chain]
    found = matches(rules, tools=readable, callers=callers, unknown_risk=unknown_risk)
    for rule in rules:
        if rule.label in found.tried - found.matched:
            text = f'"{rule.label}" {what}, and holds for none of these callers on any tool in service'
            yield Unseen(where=rule.where, text=f"{text}: whom it concerns was not compared")
