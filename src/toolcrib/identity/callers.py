"""Callers from what the operator wrote down: the local operator's settings, or a caller file.

Below: `types/`. Above: `crib.py`, `cli/`.

Invariants
1. A caller comes from configuration or from a file that an operator named, never from a query, an argument or a
   model's words (I7).
2. A file that says something unclear is refused, not read generously: a misspelled `tenants` must not mean "no tenant".
3. Nobody writes down by which credential a caller came in, or that it acts for somebody: code at the door says both.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from toolcrib.errors import ConfigError
from toolcrib.types import Caller, CallerKind, Credential

_KEYS = tuple(f.name for f in fields(Caller) if f.name not in ("acting_for", "credential"))
SETS = frozenset({"roles", "scopes", "features"})
"""The fields that are sets of names."""


def local_operator(described: Mapping[str, Any], *, environment: str, region: str, where: str = "[identity]") -> Caller:
    """Whoever sits at this machine: the caller of the CLI and of stdio. Holds what configuration grants, no more.

    Args:
        described: `Caller`'s fields as configured; without a subject it is "local-operator".
        environment: the crib's own, where `described` has none; so is `region`.
        where: the file and table it came from, for error messages.
    Raises:
        ConfigError: an unknown key or a value of the wrong type.
    """
    caller = caller_from_mapping(
        {"subject": "local-operator", **described}, environment=environment, region=region, where=where
    )
    return replace(caller, credential=Credential(kind="local"))


def caller_from_file(path: Path, *, environment: str, region: str) -> Caller:
    """The caller described by a JSON file, for operators' trials.

    Args:
        environment: the crib's own, for a file that names none; so is `region`.
    Raises:
        ConfigError: the file cannot be read, is not one JSON object, or does not describe a caller.
    """
    where = str(path)
    try:
        described = json.loads(path.read_bytes().decode("utf-8-sig"), object_pairs_hook=_without_duplicates)
    except OSError as fault:
        raise ConfigError(
            f"the caller file cannot be read: {fault.strerror}", where=where, hint="check the path and its permissions"
        ) from fault
    except json.JSONDecodeError as fault:
        raise ConfigError(
            f"the caller file is not JSON: {fault.msg}", where=f"{where}:{fault.lineno}", hint=_EXAMPLE
        ) from fault
    except (UnicodeDecodeError, RecursionError) as fault:
        raise ConfigError("the caller file is not JSON in UTF-8", where=where, hint=_EXAMPLE) from fault
    except _DuplicateKeyError as fault:
        raise ConfigError(f'"{fault.key}" is given twice', where=where, hint="keep one of the two") from fault
    caller = caller_from_mapping(described, environment=environment, region=region, where=where)
    return replace(caller, credential=Credential(kind="file"))


def caller_from_mapping(described: Any, *, environment: str, region: str, where: str) -> Caller:
    """The caller that a mapping of `Caller`'s fields describes; what it leaves out is empty.

    Args:
        described: as read from JSON or TOML; anything but a mapping is refused.
        environment: taken where the mapping has none; so is `region`.
        where: the file or table it came from, for error messages.
    Raises:
        ConfigError: an unknown key, a value of the wrong type, or no subject.
    """
    if not isinstance(described, Mapping):
        raise ConfigError(f"a caller must be an object, got {_kind(described)}", where=where, hint=_EXAMPLE)
    for key in described:
        if key not in _KEYS:
            raise ConfigError(f'a caller has no "{key}"', where=where, hint=_known(str(key)))
    values = {key: _value(key, value, where=where) for key, value in described.items()}
    if not values.get("subject"):
        raise ConfigError("a caller needs a subject", where=where, hint=_EXAMPLE)
    return Caller(**{"environment": environment, "region": region, **values})


def caller_from_record(described: Mapping[str, Any], *, where: str) -> Caller:
    """The caller as a trace holds it (`trace.records.caller_fields`), with whom it acted for; without a credential.

    Raises:
        ConfigError: the record describes no caller.
    """
    fields_of = {key: value for key, value in described.items() if key not in ("acting_for", "credential")}
    caller = caller_from_mapping(fields_of, environment="", region="", where=where)
    behind = described.get("acting_for")
    return caller if behind is None else replace(caller, acting_for=caller_from_record(behind, where=where))


_EXAMPLE = 'for example {"subject": "ann", "tenant": "acme", "roles": ["support"], "scopes": ["tickets:read"]}'


def _value(key: str, value: Any, *, where: str) -> Any:
    if key in SETS:
        if isinstance(value, list | tuple | frozenset) and all(
            isinstance(item, str) and item.strip() for item in value
        ):
            return frozenset(value)
        raise ConfigError(
            f'"{key}" must be a list of non-empty strings, got {_kind(value)}',
            where=where,
            hint=f'"{key}": ["one", "two"]',
        )
    if not isinstance(value, str):
        raise ConfigError(
            f'"{key}" must be a string, got {_kind(value)}', where=where, hint="leave it out where there is none"
        )
    if key == "kind":
        return _caller_kind(value, where=where)
    if key == "subject" and not value.strip():
        raise ConfigError("a caller's subject is blank", where=where, hint=_EXAMPLE)
    return value


def _caller_kind(value: str, *, where: str) -> CallerKind:
    try:
        return CallerKind(value)
    except ValueError:
        known = ", ".join(f'"{kind}"' for kind in CallerKind)
        raise ConfigError(f'"{value}" is no kind of caller', where=where, hint=f"one of {known}") from None


def _known(key: str) -> str:
    close = get_close_matches(key, _KEYS, n=1)
    return f'did you mean "{close[0]}"?' if close else f"a caller may have: {', '.join(_KEYS)}"


def _blank(item: Any) -> bool:
    """Whether a list's item is anything but a text with something in it."""
    return not isinstance(item, str) or not item.strip()


def _kind(value: Any) -> str:
    """The JSON kind of a value, in words; what is wrong in a list is its first item that is no text."""
    if isinstance(value, list | tuple | frozenset):
        odd = [item for item in value if _blank(item)]
        return f"a list with {_kind(odd[0])} in it" if odd else "a list"
    if isinstance(value, str):
        return "a string" if value.strip() else "a blank string"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    return (
        "an object" if isinstance(value, Mapping) else "a number" if isinstance(value, int | float) else "another value"
    )


class _DuplicateKeyError(Exception):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """One of two equal keys would win silently, and readers disagree on which."""
    described: dict[str, Any] = {}
    for key, value in pairs:
        if key in described:
            raise _DuplicateKeyError(key)
        described[key] = value
    return described
