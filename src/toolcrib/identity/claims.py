"""Claims of a verified token to a caller, by the operator's mapping.

Below: `callers.py`. Above: `jwt.py`, which has checked the signature; nothing here is asked before.

    claims = { tenant = "org.id", roles = "/https:~1~1example.com~1roles", kind = { value = "workload" } }

Invariants
1. A claim that is not there is empty, never "any"; without a subject there is no caller.
2. A claim of the wrong type refuses the token: read generously, it could mean more than its issuer said.
3. What a mapping names and the token lacks does not fall back to the crib's own environment or region.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from toolcrib.errors import ConfigError
from toolcrib.identity.callers import SETS, caller_from_mapping
from toolcrib.identity.refused import Refused
from toolcrib.types import Caller, Credential, JsonObject

_DEFAULT: Mapping[str, tuple[Any, ...]] = {"subject": ("sub",), "scopes": ("scope", "scp")}
"""Where a field stands that the mapping does not name: the first of these claims that is there."""
_UNREADABLE = ("Cc", "Cs")
"""Control characters and halves of characters: no name holds them, and a log or a database might stumble."""


def caller_from_claims(
    claims: JsonObject, mapping: JsonObject, *, environment: str, region: str, credential: Credential
) -> Caller | Refused:
    """The caller that these claims describe.

    Args:
        mapping: field of `Caller` -> "a.b" (nested), "/a/b" (JSON pointer) or {"value": constant}. Fields that are a
            set take a list of strings, or one string with spaces between.
        environment: the crib's own, for a mapping that names none; so is `region`.
    """
    described: dict[str, Any] = {}
    sources = {**_DEFAULT, **{field: (source,) for field, source in mapping.items()}}
    for field, places in sources.items():
        value = _first(claims, places)
        if isinstance(value, Refused):
            return Refused(f'the claim for "{field}" {value.reason}')
        if value is None or value == "":
            if field != "kind":  # without a word on it, a user
                described[field] = () if field in SETS else ""
        elif not _readable(value):
            return Refused(f'the claim for "{field}" holds characters that no name has')
        else:
            described[field] = value.split() if field in SETS and isinstance(value, str) else value
    if not described["subject"]:
        return Refused("the token names no subject")
    try:
        caller = caller_from_mapping(described, environment=environment, region=region, where="the token's claims")
    except ConfigError as fault:
        return Refused(fault.what)
    return replace(caller, credential=credential)


def _first(claims: JsonObject, places: Sequence[Any]) -> Any:
    found = (_at(claims, place) for place in places)
    return next((value for value in found if value is not None), None)


def _at(claims: JsonObject, source: Any) -> Any:
    """The value at a place, None where there is none."""
    if isinstance(source, Mapping):
        return source.get("value")
    here: Any = claims
    for step in _steps(source):
        if here is None:
            return None
        if isinstance(here, list):
            here = here[int(step)] if step.isascii() and step.isdigit() and int(step) < len(here) else None
        elif isinstance(here, Mapping):
            here = here.get(step)
        else:
            return Refused("is not where the configuration says")
    return here


def _steps(source: str) -> list[str]:
    if source.startswith("/"):
        return [step.replace("~1", "/").replace("~0", "~") for step in source[1:].split("/")]
    return source.split(".")


def _readable(value: Any) -> bool:
    texts = value if isinstance(value, list | tuple) else (value,)
    return not any(
        unicodedata.category(char) in _UNREADABLE for text in texts if isinstance(text, str) for char in text
    )
