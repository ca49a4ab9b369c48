"""Values in words that may be shown: secrets masked by the name they stand under, long ones cut.

Above: `faults.py` (to the model that called), recorded arguments (`pipeline.py`), and `preview.py` (to the approver).

Invariants
1. Masking comes before cutting and goes by name alone: a value under a secret-looking name is never shown.
2. When in doubt a name looks secret: a masked page number costs little. Only an approver must not be kept in doubt:
   `is_secret_name` leaves the doubtful names out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

MASK = "***"
_MAX_CHARS = 60
_MAX_NAMES = 8
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+")
_SECRET_WORDS = frozenset(("pwd", "bearer", "cookie", "cookies", "otp", "jwt"))
_DOUBTFUL_WORDS = frozenset(("key", "keys", "auth", "pin"))
_SECRET_PARTS = ("password", "passwd", "passphrase", "secret", "token", "credential", "authorization", "apikey")
_SECRET_PARTS_ENDING = ("accesskey", "privatekey", "secretkey", "signingkey", "sshkey")


def looks_secret(name: str) -> bool:
    """Whether a property of this name may hold a secret: those that surely do, and `key`, `auth`, `userPIN`."""
    return is_secret_name(name) or bool(_words(name) & _DOUBTFUL_WORDS)


def is_secret_name(name: str) -> bool:
    """Whether this name says that it holds a secret: `apiKey`, `access_token`, `dbPassword`, `Authorization`."""
    joined = re.sub(r"[\W_]+", "", name).lower()
    if any(part in joined for part in _SECRET_PARTS) or joined.endswith(_SECRET_PARTS_ENDING):
        return True
    return bool(_words(name) & _SECRET_WORDS)


def _words(name: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(name)}


def masked(value: Any, *, depth: int = 20) -> Any:
    """The same JSON value with everything under a secret-looking name replaced."""
    if depth == 0 and isinstance(value, Mapping | list | tuple):
        return "…"
    if isinstance(value, Mapping):
        return {k: MASK if looks_secret(str(k)) else masked(v, depth=depth - 1) for k, v in value.items()}
    return [masked(v, depth=depth - 1) for v in value] if isinstance(value, list | tuple) else value


def described(value: Any, *, path: Sequence[object] = ()) -> str:
    """The value's type and a short form of it; its type alone where its path looks secret.

    Objects and arrays are described by names and sizes only, so that no value inside them is shown.
    """
    if value is None:
        return "null"
    if isinstance(value, Mapping):
        return _object(value)
    if isinstance(value, list | tuple):
        return f"an array of {len(value)}"
    kind = kind_of(value)
    if any(isinstance(part, str) and looks_secret(part) for part in path):
        return f"{kind} ({MASK})"
    return f"{kind} {cut(shown(value))}"


def kind_of(value: Any) -> str:
    """The JSON type of a value, in JSON Schema's words; Python's name for what JSON does not know."""
    kinds = {bool: "boolean", int: "number", float: "number", str: "string", list: "array", type(None): "null"}
    return "object" if isinstance(value, Mapping) else kinds.get(type(value), type(value).__name__)


def _object(value: Mapping[str, Any]) -> str:
    if not value:
        return "an empty object"
    names = [cut(str(name), at=30) for name in list(value)[:_MAX_NAMES]]
    return "an object with " + ", ".join(names) + (", …" if len(value) > _MAX_NAMES else "")


def shown(value: Any) -> str:
    """One line of JSON, or the type's name for what JSON cannot hold."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return type(value).__name__


def cut(text: str, *, at: int = _MAX_CHARS) -> str:
    return text if len(text) <= at else text[: at - 1] + "…"
