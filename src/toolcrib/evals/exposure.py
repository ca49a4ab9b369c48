"""Whether an answer shows anything of a tool that its caller may not know of. It must not, ever.

Above: `run.py` asks of every answer. What is looked at: which tools were offered, every word beside their definitions
(message, dropped tools, parts of the task), the caller's own view of the trace, and numbers in it.

This looks at single answers. `toolcrib verify` compares whole worlds with and without the hidden tools, and proves
more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolcrib.pipeline import CallerView, Selected
from toolcrib.providers.names import NameTarget, public_name
from toolcrib.types import CatalogSnapshot, SelectRequest

_WORDS = re.compile(r"[^\s\"',;:()\[\]{}]+")
_MIN_TEXT_CHARS = 24
_KNOWN_NUMBERS = frozenset({"rank", "score", "tokens", "token_budget", "limit", "confidence"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    """What a caller may not know of.

    Args:
        ids: tools in service that it may neither use nor know of, and all that is withheld.
        names: their ids, and the names that clients would know them by.
        texts: tool id -> its description, where that is long enough to be told from ordinary words.
        counts: numbers of tools that would tell of them.
    """

    ids: frozenset[str]
    names: frozenset[str]
    texts: Mapping[str, str]
    counts: frozenset[int]

    @classmethod
    def of(cls, view: CallerView, snapshot: CatalogSnapshot) -> Hidden:
        known = (view.reach | view.disclosed).tolist()
        seen = {tool.tool_id for tool, is_known in zip(snapshot.tools, known, strict=True) if is_known}
        hidden = [tool for tool, is_known in zip(snapshot.tools, known, strict=True) if not is_known]
        ids = ({tool.tool_id for tool in hidden} | {tool.tool_id for tool in snapshot.withheld}) - seen
        counts = {len(ids), len(hidden), len(snapshot.tools), len(snapshot.withheld)} - {0, len(seen)}
        return cls(
            ids=frozenset(ids),
            names=frozenset(ids | {public_name(name, target=NameTarget.MCP) for name in ids}),
            texts={t.tool_id: t.description for t in hidden if len(t.description) >= _MIN_TEXT_CHARS},
            counts=frozenset(counts if ids else ()),
        )


def exposed(done: Selected, *, hidden: Hidden, request: SelectRequest) -> tuple[str, ...]:
    """What of a hidden tool shows in this answer, a line each: `names: ...`, `descriptions: ...`, `counts: ...`,
    `traces: ...`; nothing where all is well.

    Args:
        request: what the caller wrote itself; a hidden tool's name in it is the caller's own word.
    """
    if not hidden.ids:
        return ()
    own_words = set(_WORDS.findall(" ".join([request.task, *request.queries])))
    answer, trace = _answer(done), [record.caller_view for record in done.records]
    told = [f"names: {one.tool.tool_id}, offered" for one in done.selection.tools if one.tool.tool_id in hidden.ids]
    told += [f"names: {name}" for name in sorted(_words(answer) & hidden.names - own_words)]
    told += [f"traces: {name}" for name in sorted(_words(trace) & hidden.names - own_words)]
    text = "\n".join(_texts([answer, trace]))
    told += [f"descriptions: of {tool_id}" for tool_id, words in hidden.texts.items() if words in text]
    told += [f"counts: {key} is {number}" for key, number in _numbers([answer, trace]) if number in hidden.counts]
    return tuple(dict.fromkeys(told))


def _answer(done: Selected) -> dict[str, Any]:
    """What the caller reads beside the definitions."""
    chosen = done.selection
    return {
        "outcome": chosen.outcome.value,
        "message": chosen.message,
        "tools": [one.tool.tool_id for one in chosen.tools],
        "capabilities": [one.capability for one in chosen.tools],
        "dropped": [one.tool_id for one in chosen.dropped],
        "namespaces": list(done.view.namespaces),
    }


def _words(value: Any) -> set[str]:
    return {word for text in _texts(value) for word in _WORDS.findall(text)}


def _texts(value: Any) -> Iterator[str]:
    """Every text in a value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield str(name)
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)


def _numbers(value: Any, key: str = "") -> Iterator[tuple[str, int]]:
    """Whole numbers and the keys they stand under, but for those that every answer holds."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _numbers(inner, str(name))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _numbers(inner, key)
    elif isinstance(value, int) and not isinstance(value, bool) and key not in _KNOWN_NUMBERS:
        yield key, value
