"""Cases: what somebody asks, as whom, and which tools would do it. A file holds one JSON object a line.

    {"id": "refund-1", "task": "give the customer her money back", "caller": "billing",
     "expect": [["shop.issue_refund", "shop.refund_order"]], "forbid": ["shop.delete_order"], "tags": ["refunds"]}

Above: `places.py` gives each case its caller, `run.py` asks it. Beside it: `folders.py` for sets of another shape.

Invariants
1. A file that says something unclear is refused with file and line, not read generously: a misspelled `expcet` must not
   mean "no tool fits".
2. `expect` of null says that no tool fits; a case without `expect` is not a case.
3. Which tools exist is not looked at here: a case may name one that the catalog lost, and that is a result.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from toolcrib.errors import ConfigError
from toolcrib.types import JsonObject

Capabilities = tuple[frozenset[str], ...]
_NonEmpty = Annotated[str, Field(min_length=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One thing that somebody asks, and what a good answer holds.

    Args:
        case_id: unique in its set.
        task: what is asked, in the words of whoever asks. queries: focused parts, as a client may send them along.
        caller: a profile's name, a caller's fields, or None: the local operator.
        expect: the capabilities that the task needs, each a set of tools any of which will do; None: no tool fits.
        forbid: tools that must not be offered for this task: close ones that do something else, or harm.
        tags: what to group figures by.
        candidates: for refusal: all that this caller may use, instead of the whole catalog; None: the whole.
        arguments: tool id -> arguments that a right call holds. check: how a finished task is checked. Both are for
            runs with a model.
        note: for people; nothing reads it.
        where: file:line, for messages.
    """

    case_id: str
    task: str
    queries: tuple[str, ...] = ()
    caller: str | JsonObject | None = None
    expect: Capabilities | None
    forbid: frozenset[str] = frozenset()
    tags: tuple[str, ...] = ()
    candidates: frozenset[str] | None = None
    arguments: Mapping[str, JsonObject] = field(default_factory=dict)
    check: JsonObject | str | None = None
    note: str = ""
    where: str = ""

    @property
    def answerable(self) -> bool:
        """Whether some tool fits, as the case says."""
        return self.expect is not None

    def to_row(self) -> dict[str, Any]:
        """The case as a line of a case file holds it: what is empty is left out."""
        row: dict[str, Any] = {"id": self.case_id, "task": self.task}
        optional = {
            "queries": list(self.queries),
            "caller": dict(self.caller) if isinstance(self.caller, Mapping) else self.caller,
        }
        row |= {key: value for key, value in optional.items() if value}
        row["expect"] = None if self.expect is None else [sorted(tools) for tools in self.expect]
        rest = {
            "forbid": sorted(self.forbid),
            "tags": list(self.tags),
            "arguments": dict(self.arguments),
            "check": self.check,
            "note": self.note,
        }
        empty = {} if self.candidates is None else {"candidates": sorted(self.candidates)}
        return row | {key: value for key, value in rest.items() if value} | empty


class _Row(BaseModel):
    """A line as it is written. `expect` may name a tool alone where one capability has one tool."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    id: _NonEmpty
    task: _NonEmpty
    queries: list[_NonEmpty] = []
    caller: _NonEmpty | dict[str, Any] | None = None
    expect: list[_NonEmpty | list[_NonEmpty]] | None
    forbid: list[_NonEmpty] = []
    tags: list[_NonEmpty] = []
    candidates: list[_NonEmpty] | None = None
    arguments: dict[str, dict[str, Any]] = {}
    check: dict[str, Any] | str | None = None
    note: str = ""


_KEYS = tuple(_Row.model_fields)
_EXAMPLE = '{"id": "refund-1", "task": "give the customer her money back", "expect": [["shop.issue_refund"]]}'


def read_cases(path: Path) -> tuple[Case, ...]:
    """The cases of a file, in its order. Blank lines are skipped.

    Raises:
        ConfigError: the file cannot be read, or a line is no case; the first 20 such lines at once, each with its
            number and the field.
    """
    cases: list[Case] = []
    faults: list[str] = []
    seen: dict[str, int] = {}
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        try:
            case = case_of(parsed(line), where=f"{path.name}:{number}")
        except ConfigError as fault:
            faults += [f"line {number}: {text}" for text in fault.what.split("\n")]
            continue
        if case.case_id in seen:
            faults.append(f'line {number}: id: "{case.case_id}" stands on line {seen[case.case_id]}, too')
        seen[case.case_id] = number
        cases.append(case)
    if faults:
        more = f"\n  and {len(faults) - 20} more" if len(faults) > 20 else ""
        raise ConfigError(
            "the cases cannot be read\n  " + "\n  ".join(faults[:20]) + more,
            where=str(path),
            hint=f"a line is one JSON object, for example {_EXAMPLE}",
        )
    if not cases:
        raise ConfigError("there is no case in it", where=str(path), hint="draft some: toolcrib eval init")
    return tuple(cases)


def case_of(row: Any, *, where: str) -> Case:
    """The case that a parsed line holds.

    Raises:
        ConfigError: `what` has one line per wrong field.
    """
    if not isinstance(row, Mapping):
        raise ConfigError("a case is a JSON object")
    try:
        given = _Row.model_validate(dict(row))
    except ValidationError as fault:
        raise ConfigError("\n".join(_faults(fault, row))) from fault
    if given.expect == []:
        raise ConfigError('expect: an empty list asks for nothing; "expect": null says that no tool fits')
    return Case(
        case_id=given.id,
        task=given.task,
        queries=tuple(given.queries),
        caller=given.caller,
        expect=None if given.expect is None else tuple(_capability(one) for one in given.expect),
        forbid=frozenset(given.forbid),
        tags=tuple(dict.fromkeys(given.tags)),
        candidates=None if given.candidates is None else frozenset(given.candidates),
        arguments=given.arguments,
        check=given.check,
        note=given.note,
        where=where,
    )


def _capability(given: str | list[str]) -> frozenset[str]:
    if given == []:
        raise ConfigError("expect: a capability without a tool; leave it out, or name one")
    return frozenset([given] if isinstance(given, str) else given)


def _faults(fault: ValidationError, row: Mapping[str, Any]) -> list[str]:
    """A line for each wrong field, in the words of a case file."""
    told: dict[str, None] = {}
    for details in fault.errors(include_url=False, include_input=False):
        key = str(details["loc"][0])
        if details["type"] == "extra_forbidden":
            close = get_close_matches(key, [known for known in _KEYS if known not in row], n=1)
            hint = f'did you mean "{close[0]}"?' if close else f"a case may have: {', '.join(_KEYS)}"
            told[f'"{key}" is no field of a case; {hint}'] = None
        elif details["type"] == "missing":
            more = ' (null says that no tool fits)' if key == "expect" else ""  # fmt: skip
            told[f"{key}: is missing{more}"] = None
        else:
            told[f"{key}: {_SHAPES.get(key, details['msg'])}"] = None
    return list(told)


_SHAPES = {
    "expect": 'must be null, or a list of capabilities, each a list of tool ids: [["shop.issue_refund"]]',
    "caller": "must be a profile's name or an object of a caller's fields",
    "forbid": "must be a list of tool ids",
    "tags": "must be a list of words",
    "queries": "must be a list of texts",
    "candidates": "must be a list of tool ids",
    "id": "must be a text",
    "task": "must be a text with something in it",
}


def read_lines(path: Path) -> list[str]:
    """The lines of a file of ours. Raises ConfigError when it cannot be read."""
    try:
        return path.read_bytes().decode("utf-8-sig").split("\n")
    except OSError as fault:
        raise ConfigError(
            f"the file cannot be read: {fault.strerror}", where=str(path), hint="check the path and its permissions"
        ) from fault
    except UnicodeDecodeError as fault:
        raise ConfigError("the file is not UTF-8", where=str(path), hint="save it as UTF-8") from fault


def parsed(line: str) -> Any:
    """The JSON value of a line. Raises ConfigError."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as fault:
        raise ConfigError(f"is not JSON: {fault}") from fault
