"""Resources worth trying as what a call names: with what rules compare, with the caller's own, with another and none.

Below: `samples.py`. Above: `comparing_targets.py`, `changing.py`.

Invariants
1. A sample is a type, a tenant, an owner and an id, each one that some of the rules compares with: the caller's own,
   another one, none, and every text, pattern or attribute that stands in a comparison.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolcrib.policy.rules import Rule
from toolcrib.policy.samples import ANOTHER, Comparisons, collapsed, combined, values_of
from toolcrib.types import Caller, Channel, Resource, Tool

TARGET = "context.target"
_NAMES = ("type", "tenant", "owner")
_ID = "(sample)"


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetSample:
    """A resource, and each attribute that a rule reads of it in words."""

    target: Resource
    words: tuple[str, ...]


def target_samples(
    reading: Sequence[Rule], found: Comparisons, *, caller: Caller, channel: Channel, tools: Sequence[Tool]
) -> tuple[tuple[TargetSample, ...], bool]:
    """Resources that these rules can tell apart, and whether those are all of them.

    Args:
        found: what the rules compare.
        tools: those that the caller asks for.
    """
    read = {path for rule in reading for path in rule.reads}
    values: dict[str, list[str]] = {}
    for name in (name for name in _NAMES if f"{TARGET}.{name}" in read):
        own = {"tenant": [caller.tenant], "owner": [caller.subject]}.get(name, [])
        asked = values_of(f"{TARGET}.{name}", found, caller=caller, channel=channel, tools=tools)
        values[name] = list(dict.fromkeys([*own, ANOTHER, "", *sorted(asked)]))
    if ids := found.words.get(TARGET):
        values["id"] = [_ID, *sorted(ids)]
    chosen, all_of_them = combined(values)
    samples = tuple(
        TargetSample(
            target=Resource(
                resource_type=each.get("type", ""),
                resource_id=each.get("id", _ID),
                tenant=each.get("tenant", ""),
                owner=each.get("owner", ""),
            ),
            words=tuple(_word(name, value, caller) for name, value in each.items()),
        )
        for each in chosen
    )
    return samples, all_of_them


def targets_told(some: Sequence[TargetSample], everything: Sequence[TargetSample]) -> tuple[str, ...]:
    """Samples in words. An attribute is left out where all its values are among them: `of another tenant`, whoever
    the owner is."""
    n_values = [len({sample.words[at] for sample in everything}) for at in range(len(everything[0].words))]
    left = collapsed([sample.words for sample in some], n_values)
    return tuple("target: " + (", ".join(word for word in words if word) or "any") for words in left)


def _word(name: str, value: str, caller: Caller) -> str:
    if value in (ANOTHER, _ID):
        return f"another {name}"
    if not value:
        return f"no {name}"
    own = {"tenant": caller.tenant, "owner": caller.subject}.get(name) == value
    return f"its own {name}" if name == "tenant" and own else "itself the owner" if own else f'{name} "{value}"'
