"""What is wrong with a configuration, in the operator's words: what, on which line, and what to do.

Invariant: no value is quoted where a secret may stand (`env`, `headers`, `args`, `url`, `token`), nor in a traceback.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from toolcrib.errors import ConfigError
from toolcrib.settings.document import Document, Table, tables
from toolcrib.settings.lines import KeyPath, Lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing wrong at one key."""

    path: KeyPath
    what: str
    hint: str


def config_error(problems: Iterable[Problem], *, lines: Lines) -> ConfigError:
    """One error that tells all problems, in the order of their lines."""
    ordered = sorted(set(problems), key=lambda p: (lines.line(p.path), [str(part) for part in p.path], p.what))
    if len(ordered) == 1:
        return ConfigError(ordered[0].what, where=lines.where(ordered[0].path), hint=ordered[0].hint)
    told = "".join(f"\n  {lines.where(p.path)}: {p.what}\n    -> {p.hint}" for p in ordered)
    return ConfigError(
        f"{len(ordered)} problems{told}", where=lines.source, hint="mend all of them, then run this again"
    )


def problems_of(error: ValidationError) -> list[Problem]:
    """The problems that the models found."""
    return [_problem(details) for details in error.errors(include_url=False)]


def table_name(path: KeyPath) -> str:
    """How the table at this path is written in the file: `[crib]`, `[[servers]]`; "the file" at the top."""
    names = ".".join(part for part in path if isinstance(part, str))
    if not names:
        return "the file"
    return f"[[{names}]]" if isinstance(path[-1], int) else f"[{names}]"


def _problem(details: ErrorDetails) -> Problem:
    path = tuple(details["loc"])
    key, table = _key(path), table_name(_table_path(path))
    if details["type"] == "extra_forbidden":
        return _unknown_key(path)
    if details["type"] == "missing":
        return Problem(path=path, what=f"{table} needs `{key}`", hint=f"add a line {key} = …")
    what, hint = _words(details, key, _names(path))
    return Problem(path=path, what=f"`{key}` in {table} {what}" if key else what, hint=hint)


def _words(details: ErrorDetails, key: str, names: tuple[str, ...]) -> tuple[str, str]:
    """What follows the key's name, and the hint."""
    kind, context, given = details["type"], details.get("ctx", {}), details["input"]
    if kind == "toolcrib":
        return str(context["what"]), str(context["hint"])
    if kind in ("enum", "literal_error"):
        return _not_allowed(str(context["expected"]), given)
    if kind in _BOUNDS:
        bound = next(iter(context.values()), 0)
        return (
            f"must be {_BOUNDS[kind]} {_number(bound)}, not {_shown(given)}",
            f"for example {_last(names)} = {_within(kind, bound)}",
        )
    if kind == "finite_number":
        return "must be a finite number", f"{key} = 30"
    if kind == "float_type" and isinstance(given, int) and not isinstance(given, bool):
        return "is a number far too large", f"for example {_last(names)} = 30.0"
    if names in _TABLES:
        return _wrong_brackets(names)
    if kind == "string_type" and key.endswith("]"):
        return f"must be text, not {_kind(given)}", f'{_last(names)} = ["one", "two"]'
    expected, example = _EXPECTED.get(kind, ("something else", f"see what `toolcrib init` writes for {key}"))
    return f"must be {expected}, not {_kind(given)}", f"{_last(names)} = {example}"


_MAX_NUMBER_BITS = 128
_BOUNDS = {
    "greater_than": "more than",
    "greater_than_equal": "at least",
    "less_than": "less than",
    "less_than_equal": "at most",
}


def _within(kind: str, bound: float) -> str:
    beyond = {"greater_than": 1, "less_than": -1}
    return _number(bound + beyond.get(kind, 0))


def _number(bound: float) -> str:
    """All digits of a whole number: `:g` alone would say 2.592e+06."""
    return str(int(bound)) if float(bound).is_integer() else f"{bound:g}"


def _shown(given: Any) -> str:
    """The number, unless nobody would read it to its end (and Python would not write it)."""
    return (
        "a number far beyond that" if isinstance(given, int) and given.bit_length() > _MAX_NUMBER_BITS else str(given)
    )


_EXPECTED = {
    "string_type": ("text", '"text in quotes"'),
    "int_type": ("a whole number", "5"),
    "int_from_float": ("a whole number", "5"),
    "float_type": ("a number", "30.0"),
    "bool_type": ("true or false", "true"),
    "list_type": ("a list", '["one", "two"]'),
    "dict_type": ("a table", '{ NAME = "text" }'),
    "model_type": ("a table", '{ key = "value" }'),
}
_TABLES = tables()


def _not_allowed(expected: str, given: Any) -> tuple[str, str]:
    allowed = re.findall(r"'([^']*)'", expected)
    shown = repr(given) if isinstance(given, str) and len(given) <= 40 else _kind(given)
    close = get_close_matches(given.lower(), allowed, n=1, cutoff=0.6) if isinstance(given, str) else []
    listed = ", ".join(f'"{value}"' for value in allowed)
    return f"cannot be {shown}", (f'did you mean "{close[0]}"? ' if close else "") + f"allowed: {listed}"


def _wrong_brackets(names: tuple[str, ...]) -> tuple[str, str]:
    name, repeated = ".".join(names), _TABLES[names][1]
    if repeated:
        return "must be a list of tables", f"write [[{name}]] with double brackets, once for each"
    return "must be one table", f"write [{name}] with single brackets, once"


def _unknown_key(path: KeyPath) -> Problem:
    key, parent = str(path[-1]), path[:-1]
    known = _keys_of(_names(parent))
    part_of = [name for name in known if key.lower() in name.split("_")]
    close = part_of[:1] or get_close_matches(key.lower(), known, n=1, cutoff=0.6)
    elsewhere = [_written(names) for names in ((), *_TABLES) if key in _keys_of(names) and names != _names(parent)]
    if close:
        hint = f"did you mean `{close[0]}`?"
    elif elsewhere:
        hint = (
            f"`{key}` belongs to {' or '.join(elsewhere)}: move it there (a key belongs to the last [table] above it)"
        )
    else:
        hint = f"remove it, or use one of: {', '.join(known)}"
    what = f"unknown table [{key}]" if not parent else f"unknown key `{key}` in {table_name(parent)}"
    return Problem(path=path, what=what, hint=hint)


def _keys_of(names: tuple[str, ...]) -> Sequence[str]:
    model: type[Table] | None = Document if not names else _TABLES[names][0] if names in _TABLES else None
    return list(model.model_fields) if model else []


def _written(names: tuple[str, ...]) -> str:
    if not names:
        return "the file's top"
    return f"[[{'.'.join(names)}]]" if _TABLES[names][1] else f"[{'.'.join(names)}]"


def _names(path: KeyPath) -> tuple[str, ...]:
    return tuple(part for part in path if isinstance(part, str))


def _last(names: tuple[str, ...]) -> str:
    return names[-1] if names else "key"


def _table_path(path: KeyPath) -> KeyPath:
    """The longest part of the path, short of the whole, that is a table of the file."""
    for length in range(len(path) - 1, 0, -1):
        if _names(path[:length]) in _TABLES:
            return path[:length] if isinstance(path[length], str) else path[: length + 1]
    return ()


def _key(path: KeyPath) -> str:
    """The key within its table, as one would say it: `env.TOKEN`, `stages[0]`."""
    said = ""
    for part in path[len(_table_path(path)) :]:
        said += f"[{part}]" if isinstance(part, int) else f".{part}" if said else part
    return said


def _kind(value: Any) -> str:
    kinds = ((bool, "true or false"), (str, "text"), (int, "a number"), (float, "a number"), (list, "a list"))
    return next(
        (name for kind, name in kinds if isinstance(value, kind)), "a table" if isinstance(value, dict) else "a date"
    )
