"""Checks of a finished task: what tools give in this case, what must have been called, what the answer must say.

    "check": {"results": {"shop.find_order": {"order": 17}}, "calls": ["shop.find_order", "shop.refund"],
              "answer": ["17"]}

Above: `conversation.py`. A check that is a text stands for an answer that must hold it. Nothing is executed: tools give
what the case says, so a check holds on any machine, and holds as much as its results are like the tools' own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from toolcrib.errors import ConfigError
from toolcrib.evals.cases import Case

STUB = '{"ok": true}'


class _Given(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    results: dict[str, Any] = {}
    calls: list[str] = []
    answer: str | list[str] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCheck:
    """What makes a task done.

    Args:
        results: tool id -> what a call of it gives; `{"ok": true}` for the others.
        calls: tools that must have been called with arguments that fit, in this order; others may come between.
        answer: texts that the last answer must hold, whatever their case.
    """

    results: Mapping[str, Any] = field(default_factory=dict)
    calls: tuple[str, ...] = ()
    answer: tuple[str, ...] = ()

    def result_of(self, tool_id: str) -> str:
        """What a call of the tool gives, as text."""
        if tool_id not in self.results:
            return STUB
        given = self.results[tool_id]
        return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)

    def holds(self, *, called: Iterable[str], answer: str) -> bool:
        """Whether the task was done.

        Args:
            called: ids of the tools called with arguments that fit, in order.
        """
        said = answer.casefold()
        return _in_order(self.calls, called) and all(text.casefold() in said for text in self.answer)


def check_of(case: Case) -> TaskCheck | None:
    """The check of a case, or None where it has none.

    Raises:
        ConfigError: it cannot be read, or asks for nothing.
    """
    if case.check is None:
        return None
    hint = 'for example "check": {"results": {"shop.find": {"id": 17}}, "answer": ["17"]}'
    try:
        given = _Given.model_validate({"answer": case.check} if isinstance(case.check, str) else dict(case.check))
    except ValidationError as fault:
        first = fault.errors(include_url=False, include_input=False)[0]
        field_name = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"check: {field_name}: {first['msg']}", where=case.where, hint=hint) from fault
    answer = (given.answer,) if isinstance(given.answer, str) else tuple(given.answer)
    if not any(answer) and not given.calls:
        raise ConfigError("check: asks for nothing: neither calls nor an answer", where=case.where, hint=hint)
    return TaskCheck(results=given.results, calls=tuple(given.calls), answer=answer)


def _in_order(wanted: Sequence[str], called: Iterable[str]) -> bool:
    """Whether all that is wanted was called, one after the other; others may stand between."""
    left = iter(called)
    return all(tool_id in left for tool_id in wanted)
