"""Keeps configured secrets out of text that leaves this room: a server may print its own token while it crashes.

1. Masking comes before cutting, so that a cut can never leave half a secret.
2. What hides behind a `SecretRef` is always a secret; a header value is one when it is long enough to be one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from toolcrib.types import SecretRef, ServerSpec

MASK = "***"
_MIN_PART_CHARS = 6
"""Parts of a secret (a line of a key, the token after `Bearer`) shorter than this are words, not secrets."""


@dataclass(frozen=True, slots=True)
class Masker:
    """Replaces every known form of the secrets, longest first. Printing it shows none of them."""

    forms: tuple[str, ...] = field(default=(), repr=False)

    def __call__(self, text: str) -> str:
        for form in self.forms:
            text = text.replace(form, MASK)
        return text


def masker_for(spec: ServerSpec, *, env: Mapping[str, str], headers: Mapping[str, str]) -> Masker:
    """A masker for the resolved values of one server's configuration."""
    return Masker(forms=_all_forms(_secrets(spec, env=env, headers=headers)))


def _secrets(spec: ServerSpec, *, env: Mapping[str, str], headers: Mapping[str, str]) -> Iterator[str]:
    for name, value in env.items():
        if isinstance(spec.env.get(name), SecretRef):
            yield value
    for name, value in headers.items():
        if isinstance(spec.headers.get(name), SecretRef) or len(value) >= _MIN_PART_CHARS:
            yield value


def _all_forms(secrets: Iterable[str]) -> tuple[str, ...]:
    forms: set[str] = set()
    for secret in secrets:
        parts = [part for part in (*secret.splitlines(), *secret.split()) if len(part) >= _MIN_PART_CHARS]
        for form in (secret, secret.strip(), *parts):
            forms |= {form, json.dumps(form)[1:-1], quote(form, safe="")}
    return tuple(sorted(forms - {""}, key=lambda form: (-len(form), form)))
