"""The digest of a definition: SHA-256 over RFC 8785 canonical JSON of the whole object, unknown fields included.

Above: `publication.py`. Two definitions have one digest exactly when they are the same JSON value.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import orjson
import rfc8785

from toolcrib.errors import InvalidDefinitionError


def definition_digest(definition: Any) -> str:
    """ "sha256:<hex>" of the canonical form.

    Raises:
        InvalidDefinitionError: no canonical form exists (integers past 2^53, NaN, lone surrogates, too deep).
    Source:
        RFC 8785, JSON Canonicalization Scheme.
    """
    try:
        canonical = _canonical_fast(definition) or rfc8785.dumps(definition)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError, RecursionError) as fault:
        raise InvalidDefinitionError(f"the definition has no canonical JSON form: {fault}") from fault
    return "sha256:" + hashlib.sha256(canonical).hexdigest()


_PLAIN_LEAVES = frozenset((str, int, bool, type(None)))
_SORTED_SAFE_INTEGERS = orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER


def _canonical_fast(value: Any) -> bytes | None:
    """The same bytes as `rfc8785.dumps`, 20 times as fast, or None where they might differ.

    orjson writes strings, whole numbers and separators as RFC 8785 does. It differs in floats (`1.0` for `1`), in the
    order of keys outside ASCII (code points for UTF-16 units) and in types of Python that JSON has not; none of these
    come this way. Whole numbers past 2^53, lone surrogates and depths it refuses are left to the other one as well.
    """
    if not _is_plain(value):
        return None
    try:
        return orjson.dumps(value, option=_SORTED_SAFE_INTEGERS)
    except TypeError:  # orjson.JSONEncodeError is one
        return None


def _is_plain(value: Any) -> bool:
    """Whether there is nothing in it but objects with ASCII keys, lists, strings, whole numbers, booleans and null."""
    waiting = [[value]]
    while waiting:
        inner: Any = waiting.pop()
        if type(inner) is dict:
            if not all(type(key) is str and key.isascii() for key in inner):
                return False
            inner = inner.values()
        for one in inner:
            kind = type(one)
            if kind is dict or kind is list:
                waiting.append(one)
            elif kind not in _PLAIN_LEAVES:
                return False
    return True


def raw_digest(definition: Any) -> str:
    """ "raw:<hex>" for what has no canonical form, so that a quarantined entry can still be told from a changed one."""
    try:
        text = json.dumps(definition, sort_keys=True)
    except (RecursionError, ValueError, TypeError):
        text = type(definition).__name__
    return "raw:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def digest_of(*parts: object) -> str:
    """SHA-256 (hex) over JSON of `parts`: for version identifiers, not for definitions."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()
