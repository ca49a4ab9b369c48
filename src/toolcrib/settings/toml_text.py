"""Writing TOML: strings, and one `[[servers]]` block. Nothing else is ever written."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def toml_string(text: str) -> str:
    """A basic string on one line.

    JSON's escapes are TOML's; only DEL must be escaped in TOML and need not be in JSON.

    Raises:
        ValueError: a lone surrogate, which no TOML file can hold.
    """
    text.encode("utf-8")
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def server_block(fields: Mapping[str, str | bool | Sequence[str] | Mapping[str, str]]) -> str:
    """One `[[servers]]` table, keys in the given order; empty values are left out."""
    lines = [f"{_key(key)} = {_value(value)}" for key, value in fields.items() if value or value is False]
    return "\n".join(["[[servers]]", *lines]) + "\n"


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else toml_string(key)


def _value(value: str | bool | Sequence[str] | Mapping[str, str]) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return toml_string(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(name)} = {toml_string(text)}" for name, text in value.items()) + " }"
    return "[" + ", ".join(toml_string(item) for item in value) + "]"
