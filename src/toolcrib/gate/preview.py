"""What an approver is shown of a call: every name and every value, each shortened on its own.

Above: `approval.py` writes it into the request; `checks.py` refuses what it would not hold.

Invariants
1. Nothing hides another value: a long text is cut by itself and says how much is missing and the digest of the whole.
2. A value under a name that surely means a secret is masked, with its kind and size. Names that are mostly ordinary
   words (`key`, `auth`, `pin`) are shown here: who approves `{"key": "prod/everything"}` must see it. In faults and
   traces, which nobody decides by, they stay masked.
3. There is no preview that was cut as a whole: a call too large for one cannot be approved, and the gate says so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from toolcrib.gate.masking import MASK, is_secret_name, kind_of, shown
from toolcrib.types import JsonObject

MAX_PREVIEW_CHARS = 64 * 1024
_MAX_TEXT_CHARS = 200
_DIGEST_CHARS = 16


def preview(arguments: JsonObject) -> str:
    """The arguments as one line of JSON, secrets masked, long texts shortened."""
    return shown(_previewed(arguments))


def fits_a_preview(arguments: JsonObject) -> bool:
    """Whether an approver could be shown all of it."""
    return len(preview(arguments)) <= MAX_PREVIEW_CHARS


def _previewed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            _shortened(str(name)): _masked(inner) if is_secret_name(str(name)) else _previewed(inner)
            for name, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [_previewed(inner) for inner in value]
    return _shortened(value) if isinstance(value, str) else value


def _masked(value: Any) -> str:
    """No digest here: a short secret could be found from it."""
    n_chars = len(value) if isinstance(value, str) else len(shown(value))
    return f"{MASK} ({kind_of(value)}, {n_chars} characters)"


def _shortened(text: str) -> str:
    if len(text) <= _MAX_TEXT_CHARS:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_CHARS]
    return f"{text[:_MAX_TEXT_CHARS]}… ({len(text) - _MAX_TEXT_CHARS} more characters, whole text sha256:{digest}…)"
