"""Callers whom no profile and no trace stands for: who else a change of policy may let do more than before.

Below: `stranger_values.py`, `changing.py`. Above: `comparing_strangers.py`, which asks both policies about them.

    what the changed rules compare ─▶ each such caller ─▶ those for whom they may open something ─┐
    what the other rules compare, and what the callers at hand have ──────────────────────────────┴─▶ strangers

Invariants
1. Two callers that no rule can tell apart are one, and whoever is at hand already is no stranger.
2. Where not all of them were made, or a rule reads a caller in a way that is not seen through, `Strangers.complete`
   says so; not where the changed rules open nothing to anybody, whatever the others say.
3. Nobody acts for a stranger: whoever acts for another may do what both may, and so gains only where one of them does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Any, Final

from toolcrib.policy.changes import Asker, channels_of
from toolcrib.policy.changing import may_open
from toolcrib.policy.rules import APPROVE, Rule
from toolcrib.policy.samples import collapsed
from toolcrib.policy.stranger_values import NOBODY, OTHER, PATHS, SETS, STRANGER, Values, in_words, reads, values_for
from toolcrib.types import Caller, Channel, Tool

SOMEBODY_ELSE: Final = "somebody else"
MAX_STRANGERS = 500
"""Those that are tried, the nearest to the callers at hand first."""
MAX_FIRST = 4_000
"""Callers that are told apart by the changed rules alone."""


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
        some = [tuple(in_words(name, getattr(caller, name)) for name in self.fields) for caller in callers]
        rows = sorted(collapsed(some, self.n_values), key=lambda row: (sum(map(bool, row)), row))
        return tuple(dict.fromkeys(map(self._sentence, rows)))

    def _sentence(self, row: tuple[str, ...]) -> str:
        words = dict(zip(self.fields, row, strict=True))
        kind = words.pop("kind", "") or "a caller"
        return " ".join(["for", kind, ", ".join(filter(None, words.values()))]).strip()


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
    read = {name for name in PATHS if any(reads(rule, name) for rule in rules)}
    if any(rule.covers(APPROVE) for rule in rules):
        read.add("tenant")  # the built-in bounds on approvals read it, whatever the rules do
    fields = tuple(name for name in PATHS if name in read)
    values = values_for(fields, changed, others, tools, askers)
    rows = islice(product(*values.changed.values()), MAX_FIRST + 1)
    candidates = [Caller(**{"subject": STRANGER, **dict(zip(values.changed, row, strict=True))}) for row in rows]
    opened = may_open(candidates[:MAX_FIRST], added=added, removed=removed, tools=tools, unknown_risk=unknown_risk)
    complete = len(candidates) <= MAX_FIRST and (values.complete or not opened)
    channels = tuple(channels_of(Asker(name="", source="", caller=NOBODY), rules, unknown_risk))
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


def _key(caller: Caller, fields: Sequence[str], words: Mapping[str, frozenset[str]]) -> tuple[Any, ...]:
    """What rules can tell of a caller: a name that none has is like any other such name."""
    key: list[Any] = []
    for name in fields:
        value, known = getattr(caller, name), words.get(name)
        if known is None:
            key.append(value)
        elif name in SETS:
            others = {OTHER} if OTHER in known and value - known else set()
            key.append((value & known) | others)
        else:
            key.append(value if value in known or not value else STRANGER)
    return tuple(key)


def _expanded(opened: Sequence[Caller], values: Values, askers: Sequence[Asker]) -> Iterator[Caller]:
    """These callers with all that the other rules compare: as the callers at hand have it, with nothing, in every way.

    The nearest to the callers at hand come first, since there may be too many.
    """
    others = [name for name in values.beside if name not in values.changed]
    at_hand = (asker.caller for asker in askers)
    for near in (*at_hand, NOBODY):
        yield from (_with(caller, {name: getattr(near, name) for name in others}) for caller in opened)
    for row in product(*values.beside.values()):
        more = dict(zip(values.beside, row, strict=True))
        for caller in opened:
            sets = {name: getattr(caller, name) | value for name, value in more.items() if name in values.changed}
            yield _with(caller, {**more, **sets})


def _with(caller: Caller, fields: Mapping[str, Any]) -> Caller:
    return Caller(**{**{name: getattr(caller, name) for name in PATHS}, **fields})
