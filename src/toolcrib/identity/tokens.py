"""Bearer tokens to callers.

Below: `types/`. Above: `crib.py`.

Invariants
1. A token is never printed, logged or kept; the table holds digests.
2. How long an answer takes depends on the number of entries alone, not on which entry matches or how nearly.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence

from toolcrib.errors import ConfigError
from toolcrib.types import Caller

MIN_TOKEN_CHARS = 16


class TokenTable:
    """Which caller a token stands for. Immutable.

    Args:
        entries: token and caller; tokens are distinct, of `MIN_TOKEN_CHARS` or more characters, without white space.
    Raises:
        ConfigError: a token that is empty, short, spaced or given twice; the message names its caller, not the token.
    """

    __slots__ = ("_entries",)

    def __init__(self, entries: Sequence[tuple[str, Caller]]) -> None:
        seen: dict[bytes, str] = {}
        for token, caller in entries:
            _check(token, caller.subject)
            digest = _digest(token)
            if digest in seen:
                raise ConfigError(
                    f'"{seen[digest]}" and "{caller.subject}" have the same token',
                    where="bearer tokens",
                    hint="give each caller a token of its own",
                )
            seen[digest] = caller.subject
        self._entries = tuple((_digest(token), caller) for token, caller in entries)

    def resolve(self, presented: str) -> Caller | None:
        """The caller this token stands for, or None."""
        digest = _digest(presented)
        found: Caller | None = None
        for known, caller in self._entries:  # all of them, whichever matches: an early exit could be timed
            found = caller if hmac.compare_digest(known, digest) else found
        return found

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"TokenTable({len(self._entries)} entries)"


def _digest(token: str) -> bytes:
    # Comparing digests hides length and content alike. "surrogatepass": a header may hold anything, and must not raise.
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def _check(token: str, subject: str) -> None:
    hint = "make one with: openssl rand -hex 32"
    if len(token) < MIN_TOKEN_CHARS:
        raise ConfigError(
            f'the token of "{subject}" has fewer than {MIN_TOKEN_CHARS} characters', where="bearer tokens", hint=hint
        )
    if any(char.isspace() for char in token):
        raise ConfigError(f'the token of "{subject}" holds white space', where="bearer tokens", hint=hint)
