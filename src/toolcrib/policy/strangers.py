"""Callers whom no profile and no trace stands for: who else a change of policy may let do more than before.

Below: `samples.py`, `changes.py`, `changing.py`. Above: `compare.py`, which asks both policies about them.

    what the changed rules compare ─▶ each such caller ─▶ those for whom they may open something ─┐
    what the other rules compare, and what the callers at hand have ──────────────────────────────┴─▶ strangers

Invariants
1. A stranger has of each attribute that rules read a value that some rule compares it with, one that none does, or none
   at all. Two callers that no rule can tell apart are one, and whoever is at hand already is no stranger.
2. Of a set: each combination of the words that the changed rules have (of many, each word, each rule's, none and all),
   with none of the words that other rules have, with all of them, and with those of each permit.
3. Where not all of them were made, or a rule reads a caller in a way that is not seen through, `Strangers.complete`
   says so; not where the changed rules open nothing to anybody, whatever the others say.
4. Nobody acts for a stranger: whoever acts for another may do what both may, and so gains only where one of them does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, product
from typing import Any, Final

from toolcrib.policy.changes import Asker, channels_of
from toolcrib.policy.changing import may_open
from toolcrib.policy.rules import APPROVE, Rule, nodes, path_of
from toolcrib.policy.samples import attribute_texts, collapsed, comparisons, emptied, values_of
from toolcrib.types import Caller, CallerKind, Channel, Tool

STRANGER: Final = "(stranger)"
"""A name that no rule, no caller and no sample of a resource or a request has."""
SOMEBODY_ELSE: Final = "somebody else"
MAX_STRANGERS = 500
"""Those that are tried, the nearest to the callers at hand first."""
MAX_FIRST = 4_000
"""Callers that are told apart by the changed rules alone."""
_MAX_COMBINED = 6
_SHOWN = 3
_NOBODY: Final = Caller(subject=STRANGER)
_PATHS: Final[Mapping[str, str]] = {
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
_SETS = ("roles", "scopes", "features")
_CALLER_TYPES = ("User", "Agent", "Workload")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Strangers:
    """Callers to try besides those at hand.

    Args:
        askers: each over one channel of each group that rules cannot tell apart. channels: these groups.
        fields: what rules tell callers apart by. n_values: how many values of each were thought of.
        complete: no kind of stranger was left out.
    """

    askers: tuple[Asker, ...]
    channels: tuple[tuple[Channel, ...], ...]
    fields: tuple[str, ...]
    n_values: tuple[int, ...]
    complete: bool

    def channels_like(self, some: Iterable[Channel]) -> tuple[Channel, ...]:
        """These channels, with those that rules cannot tell from them."""
        known = set(some)
        found = {channel for group in self.channels if known.intersection(group) for channel in group}
        return tuple(channel for channel in Channel if channel in found)

    def told(self, callers: Iterable[Caller]) -> tuple[str, ...]:
        """These strangers in words, the simplest first: what they may be without a difference is left out."""
        some = [tuple(_word(name, getattr(caller, name)) for name in self.fields) for caller in callers]
        rows = sorted(collapsed(some, self.n_values), key=lambda row: (sum(map(bool, row)), row))
        return tuple(dict.fromkeys(map(self._sentence, rows)))

    def _sentence(self, row: tuple[str, ...]) -> str:
        words = dict(zip(self.fields, row, strict=True))
        kind = words.pop("kind", "") or "a caller"
        return " ".join(["for", kind, ", ".join(filter(None, words.values()))]).strip()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Values:
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


def strangers_of(
    *,
    added: Sequence[Rule],
    removed: Sequence[Rule],
    others: Sequence[Rule],
    tools: Sequence[Tool],
    askers: Sequence[Asker],
    unknown_risk: Mapping[Channel, str],
) -> Strangers:
    """Those for whom something may open when `added` takes the place of `removed`, while the `others` stay.

    Args:
        added, removed, others: rules on what is compared, either finding and calling, or approving.
        tools: one of each decision class, readable by Cedar.
        unknown_risk: "allow" or "needs_approval" for each channel.
    """
    changed, rules = (*added, *removed), (*added, *removed, *others)
    read = {name for name in _PATHS if any(_reads(rule, name) for rule in rules)}
    if any(rule.covers(APPROVE) for rule in rules):
        read.add("tenant")  # the built-in bounds on approvals read it, whatever the rules do
    fields = tuple(name for name in _PATHS if name in read)
    values = _values(fields, changed, others, tools, askers)
    rows = islice(product(*values.changed.values()), MAX_FIRST + 1)
    candidates = [Caller(**{"subject": STRANGER, **dict(zip(values.changed, row, strict=True))}) for row in rows]
    opened = may_open(candidates[:MAX_FIRST], added=added, removed=removed, tools=tools, unknown_risk=unknown_risk)
    complete = len(candidates) <= MAX_FIRST and (values.complete or not opened)
    channels = tuple(channels_of(Asker(name="", source="", caller=_NOBODY), rules, unknown_risk))
    tried = {
        (_key(asker.caller, fields, values.words), group[0])
        for asker in askers
        if asker.caller.acting_for is None
        for group in channels
        if set(group).intersection(asker.channels)
    }
    found: dict[tuple[Any, ...], Asker] = {}
    for caller in _expanded(opened, values, askers):
        key = _key(caller, fields, values.words)
        untried = tuple(group[0] for group in channels if (key, group[0]) not in tried)
        if untried and key not in found:
            if len(found) == MAX_STRANGERS:
                complete = False
                break
            found[key] = Asker(name=SOMEBODY_ELSE, source="stranger", caller=caller, channels=untried)
    return Strangers(
        askers=tuple(found.values()),
        channels=channels,
        fields=fields,
        n_values=tuple(values.n_words[name] for name in fields),
        complete=complete,
    )


def _reads(rule: Rule, name: str) -> bool:
    if name == "subject":
        return any(kind in _CALLER_TYPES for kind, _ in rule.names)
    return _PATHS[name] in rule.reads or (name == "kind" and "principal" in rule.reads)


def _key(caller: Caller, fields: Sequence[str], words: Mapping[str, frozenset[str]]) -> tuple[Any, ...]:
    """What rules can tell of a caller: a name that none has is like any other such name."""
    key: list[Any] = []
    for name in fields:
        value, known = getattr(caller, name), words.get(name)
        if known is None:
            key.append(value)
        elif name in _SETS:
            key.append(value & known)
        else:
            key.append(value if value in known or not value else STRANGER)
    return tuple(key)


def _expanded(opened: Sequence[Caller], values: _Values, askers: Sequence[Asker]) -> Iterator[Caller]:
    """These callers with all that the other rules compare: as the callers at hand have it, with nothing, in every way.

    The nearest to the callers at hand come first, since there may be too many.
    """
    others = [name for name in values.beside if name not in values.changed]
    at_hand = (asker.caller for asker in askers)
    for near in (*at_hand, _NOBODY):
        yield from (_with(caller, {name: getattr(near, name) for name in others}) for caller in opened)
    for row in product(*values.beside.values()):
        more = dict(zip(values.beside, row, strict=True))
        for caller in opened:
            sets = {name: getattr(caller, name) | value for name, value in more.items() if name in values.changed}
            yield _with(caller, {**more, **sets})


def _with(caller: Caller, fields: Mapping[str, Any]) -> Caller:
    return Caller(**{**{name: getattr(caller, name) for name in _PATHS}, **fields})


# --- values ----------------------------------------------------------------------------------------------


def _values(
    fields: Sequence[str],
    changed: Sequence[Rule],
    others: Sequence[Rule],
    tools: Sequence[Tool],
    askers: Sequence[Asker],
) -> _Values:
    unclear = comparisons((*changed, *others)).unclear
    of_changed: dict[str, tuple[Any, ...]] = {}
    beside: dict[str, tuple[Any, ...]] = {}
    words: dict[str, frozenset[str]] = {}
    n_words: dict[str, int] = {}
    complete = not unclear.keys() & {_PATHS[name] for name in fields if name not in ("kind", "subject")}
    for name in fields:
        own = [getattr(asker.caller, name) for asker in askers] if _PATHS[name] in unclear else []
        read_by_changed = any(_reads(rule, name) for rule in changed)
        if name in _SETS:
            first, all_of_them = _sets(name, changed, tools)
            complete = complete and all_of_them
            more = _added_to_sets(name, others, tools)
            if any(_asks_if_empty(rule, name) for rule in changed):
                first = (*first, frozenset({STRANGER}))
            if any(_asks_if_empty(rule, name) for rule in others):
                more = (*more, frozenset({STRANGER}))
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
        n_words[name] = len({_word(name, value) for value in every})
    return _Values(changed=of_changed, beside=beside, words=words, n_words=n_words, complete=complete)


def _scalars(name: str, rules: Sequence[Rule], tools: Sequence[Tool]) -> tuple[Any, ...]:
    if name == "kind":
        return tuple(CallerKind)
    if name == "subject":
        named = {entity_id for rule in rules for kind, entity_id in rule.names if kind in _CALLER_TYPES}
        return (STRANGER, *sorted(named - {""}))
    found = comparisons(rules)
    texts = values_of(_PATHS[name], found, caller=_NOBODY, channel=Channel.CLI, tools=tools)
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
    return named | set(comparisons([rule]).words.get(_PATHS[name], ()))


def _asks_if_empty(rule: Rule, name: str) -> bool:
    tests = (emptied(node) for node in nodes(rule.tree["conditions"]))
    return any(path_of(test) == _PATHS[name] for test in tests if test is not None)


def _of_tools(name: str, rule: Rule, tools: Sequence[Tool]) -> set[frozenset[str]]:
    """What tools have in the attributes that this rule compares the set with, each tool's own."""
    paths = comparisons([rule]).paths.get(_PATHS[name], frozenset())
    return {
        frozenset(attribute_texts(path, _NOBODY, Channel.CLI, [tool]))
        for path in paths
        for tool in tools
        if path.startswith("resource.")
    }


# --- in words --------------------------------------------------------------------------------------------


def _word(name: str, value: Any) -> str:
    if name == "kind":
        return {"user": "a user", "agent": "an agent"}.get(value, f"a {value}")
    if name == "subject":
        return "of another name" if value == STRANGER else f'named "{value}"'
    if name in _SETS:
        if not value:
            return f"without these {name}"
        known, others = sorted(value - {STRANGER}), [f"other {name}"] if STRANGER in value else []
        more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
        quoted = ", ".join(f'"{word}"' for word in known[:_SHOWN]) + more
        named = [f"{name if len(known) > 1 else name[:-1]} {quoted}"] if known else []
        return "with " + " and ".join([*named, *others])
    what = {"on_behalf_of": "principal"}.get(name, name)
    if not value:
        return f"without a {what}" if what != "environment" else "without an environment"
    return f"with another {what}" if value == STRANGER else f'with {what} "{value}"'
