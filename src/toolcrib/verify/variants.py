"""Catalogs that differ from the operator's only in what a caller may not discover: what proofs of isolation compare.

Above: `isolation.py` opens them and throws out what policy turns out to show the caller. Pure.

    removed      all of it is gone
    changed      other descriptions and schemas, full of the words of the caller's own questions
    added        copies of hidden tools, look-alikes of the caller's own, huge ones, a whole hidden server
    states       hidden tools put into quarantine, waiting ones approved
    described    the operator says other things of them: keywords, examples, preload, namespace

    All but the first may be made at once: less time, and what differs is told from the rest afterwards.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from toolcrib.types import RiskSource, Tool, ToolMetadata, WithheldTool
from toolcrib.verify.questions import Effort, Questions
from toolcrib.verify.world import Edit, EditKind

NEW_SERVER = "verify-hidden"
"""A server of tools that need a scope which nobody holds, of a tenant that nobody belongs to."""
NOBODY = "toolcrib-verify-nobody"
_HUGE_WORDS = 8_000
_LOOK_ALIKES: Mapping[str, str] = {"a": "а", "e": "е", "o": "о", "i": "і", "c": "с"}
_APPROVABLE = ("unreviewed", "changed", "rejected")


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What variants are made of.

    Args:
        visible: tools the caller may discover. hidden, withheld: those it may not, without the operator's own means
            (the read tools that know the owners of resources).
    """

    visible: tuple[Tool, ...]
    hidden: tuple[Tool, ...]
    withheld: tuple[WithheldTool, ...]
    questions: Questions


def variants(material: Material, *, effort: Effort, seed: int) -> Iterator[tuple[str, tuple[Edit, ...]]]:
    """Names and edits, those first that have found most. A variant without anything to edit is left out."""
    made: list[tuple[str, tuple[Edit, ...]]] = [("removed", _removed(material))]
    for turn in range(effort.rounds):
        chance = random.Random(seed + turn)  # noqa: S311 - sampling, not secrecy
        kinds = [(name, tuple(make(material, effort, chance))) for name, make in _KINDS]
        if effort.together:
            kinds = [("everything at once", _each_once([edit for _name, edits in kinds for edit in edits]))]
        made += [(name if turn == 0 else f"{name} {turn + 1}", edits) for name, edits in kinds]
    return (variant for variant in made if variant[1])


def added_ids(material: Material, *, effort: Effort, seed: int) -> tuple[str, ...]:
    """The ids of all tools that the variants add: worth asking for before they are there, too."""
    every = [edit for _name, edits in variants(material, effort=effort, seed=seed) for edit in edits]
    return tuple(dict.fromkeys(edit.tool_id for edit in every if edit.kind is EditKind.ADDED))


def _removed(material: Material) -> tuple[Edit, ...]:
    ids = [*(tool.tool_id for tool in material.hidden), *(tool.tool_id for tool in material.withheld)]
    return tuple(Edit(kind=EditKind.REMOVED, tool_id=tool_id) for tool_id in dict.fromkeys(ids))


def _changed(material: Material, effort: Effort, chance: random.Random) -> list[Edit]:
    return [
        Edit(kind=EditKind.CHANGED, tool_id=tool.tool_id, definition=_rewritten(tool.definition, material, chance))
        for tool in _some(chance, material.hidden, effort.n_edits)
    ]


def _added(material: Material, effort: Effort, chance: random.Random) -> list[Edit]:
    edits: list[Edit] = []
    for number, tool in enumerate(_some(chance, material.hidden, effort.n_added)):
        edits.append(_new(f"{tool.tool_id}_{number}", tool.definition, material, chance, row=_row_like(tool, material)))
    for number, mine in enumerate(_some(chance, material.visible, effort.n_added)):
        if material.hidden:
            row = _row_like(chance.choice(material.hidden), material)
            edits.append(_new(_look_alike(mine.tool_id, number), mine.definition, material, chance, row=row))
        row = {"required_scopes": [NOBODY], "tenants": [NOBODY], "preload": True, "namespace": "verify vault"}
        edits.append(_new(f"{NEW_SERVER}.{mine.name}", mine.definition, material, chance, row=row, huge=number == 0))
    return list(_each_once(edits))


def _states(material: Material, effort: Effort, chance: random.Random) -> list[Edit]:
    waiting = [tool for tool in material.withheld if tool.code in _APPROVABLE]
    return [
        *(Edit(kind=EditKind.APPROVED, tool_id=t.tool_id) for t in _some(chance, waiting, effort.n_edits)),
        *(
            Edit(kind=EditKind.QUARANTINED, tool_id=t.tool_id)
            for t in _some(chance, material.hidden, min(effort.n_edits, len(material.hidden) // 3 + 1))
        ),
    ]


def _described(material: Material, effort: Effort, chance: random.Random) -> list[Edit]:
    edits = []
    for number, tool in enumerate(_some(chance, material.hidden, min(effort.n_edits, 30))):
        row: dict[str, Any] = {
            "keywords": _words(material, chance, 12),
            "examples": [task for task in material.questions.tasks if task.strip()][:5],
            "preload": not tool.metadata.preload,
        }
        if number % 2:  # a policy may look at namespaces, and then show such a tool
            row["namespace"] = "verify vault"
        edits.append(Edit(kind=EditKind.DESCRIBED, tool_id=tool.tool_id, row=row))
    return edits


_KINDS: Sequence[tuple[str, Callable[[Material, Effort, random.Random], Sequence[Edit]]]] = (
    ("added", _added),
    ("described", _described),
    ("states", _states),
    ("changed", _changed),
)
"""Where all are made at once, a tool is edited by the first that chose it: those that choose few come first."""


def _new(
    tool_id: str,
    definition: Mapping[str, Any],
    material: Material,
    chance: random.Random,
    *,
    row: dict[str, Any],
    huge: bool = False,
) -> Edit:
    made = _rewritten(definition, material, chance)
    if huge:
        made["description"] = " ".join(chance.choices(material.questions.words, k=_HUGE_WORDS))
    return Edit(kind=EditKind.ADDED, tool_id=tool_id, definition=made, row=row)


def _rewritten(definition: Mapping[str, Any], material: Material, chance: random.Random) -> dict[str, Any]:
    """The definition with texts that answer the caller's questions, and another schema; its annotations stay."""
    words = _words(material, chance, 30)
    properties = {word: {"type": "string", "description": " ".join(words)} for word in words[:4]}
    return {
        **definition,
        "description": " ".join([*words, *chance.sample(material.questions.tasks, 2)]),
        "inputSchema": {"type": "object", "properties": properties, "required": words[:1]},
    }


def _words(material: Material, chance: random.Random, n: int) -> list[str]:
    words = material.questions.words
    return chance.sample(words, min(n, len(words)))


def _row_like(tool: Tool, material: Material) -> dict[str, Any]:
    """What the operator says of this tool, as a row, so that policy sees its copy as it sees the tool."""
    empty, meta = ToolMetadata(), tool.metadata
    row = {
        field.name: list(value) if isinstance(value, tuple) else value
        for field in fields(ToolMetadata)
        if (value := getattr(meta, field.name)) != getattr(empty, field.name) and field.name != "risk_source"
    }
    row.pop("aliases", None)  # an old name leads to one tool
    if meta.risk_source is not RiskSource.OPERATOR:
        row.pop("risk", None)
    return {**row, "keywords": list(material.questions.words[:8]), "preload": True}


def _look_alike(tool_id: str, number: int) -> str:
    """An id that is easily taken for this one."""
    server_id, _, name = tool_id.partition(".")
    if number % 3 == 0 and (letter := next((c for c in name if c in _LOOK_ALIKES), "")):
        return f"{server_id}.{name.replace(letter, _LOOK_ALIKES[letter], 1)}"
    if number % 3 == 1 and "_" in name:
        return f"{server_id}.{name.replace('_', '-', 1)}"
    return f"{server_id}.{name.swapcase()}" if name.swapcase() != name else f"{server_id}.{name}_"


def _each_once(edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """One edit per tool: the first."""
    return tuple({edit.tool_id: edit for edit in reversed(edits)}.values())[::-1]


def _some(chance: random.Random, items: Sequence[Any], n: int) -> list[Any]:
    return list(items) if len(items) <= n else chance.sample(list(items), n)
