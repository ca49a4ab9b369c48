"""The digest of a definition: SHA-256 over RFC 8785 canonical JSON of the whole object, unknown fields included.

Above: `refresh.py`. Two definitions have one digest exactly when they are the same JSON value.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

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
        canonical = rfc8785.dumps(definition)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError, RecursionError) as fault:
        raise InvalidDefinitionError(f"the definition has no canonical JSON form: {fault}") from fault
    return "sha256:" + hashlib.sha256(canonical).hexdigest()


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
