"""Who asks: callers, what they came in with, and what takes it away again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Final

from toolcrib.types.shapes import JsonObject


class CallerKind(StrEnum):
    USER = "user"
    AGENT = "agent"
    WORKLOAD = "workload"


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """What a caller came in with: what revocation, expiry and the trace need of it. Never the secret itself.

    Args:
        kind: `local`, `file` (an operator's `--as`), `token` ([[identity.tokens]]), `key` (an API key), `jwt`, `proxy`.
        issuer: of a JWT; else "". key_id: of an API key; else "".
        session, token_id: of a JWT, its `sid` and its `jti`; "" where it has none.
        terms: of a JWT, a digest of the configuration under which it was let in; else "".
        expires_at: seconds since 1970, UTC; 0 for never.
    """

    kind: str
    issuer: str = ""
    key_id: str = ""
    session: str = ""
    token_id: str = ""
    terms: str = ""
    expires_at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks, as trusted code at the boundary established it (I7). Built in `identity/` only.

    Empty strings and empty sets mean "none", never "any".

    Args:
        on_behalf_of: the subject that an agent acts for.
        acting_for: that subject as a caller of its own: what is permitted is then the intersection of both. None where
            the operator described the agent's rights directly.
        credential: not part of who this is: two callers that differ in it alone are equal, and policy cannot read it.
    """

    subject: str
    kind: CallerKind = CallerKind.USER
    on_behalf_of: str = ""
    tenant: str = ""
    roles: frozenset[str] = frozenset()
    scopes: frozenset[str] = frozenset()
    stage: str = ""
    environment: str = ""
    region: str = ""
    features: frozenset[str] = frozenset()
    clearance: str = ""
    acting_for: Caller | None = None
    credential: Credential | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        """Sets and lists of words become frozen sets, so that callers can be compared and remembered.

        Raises:
            TypeError: a bare text where a set of words belongs.
        """
        for name in ("roles", "scopes", "features"):
            given = getattr(self, name)
            if isinstance(given, str):
                raise TypeError(f'a caller\'s {name} are a set of words, got the text "{given}"')
            object.__setattr__(self, name, frozenset(given))

    @property
    def chain(self) -> tuple[Caller, ...]:
        """The caller, and everybody it acts for, each after the one that acts for it."""
        chain = [self]
        while (behind := chain[-1].acting_for) is not None:
            chain.append(behind)
        return tuple(chain)

    @property
    def identity(self) -> tuple[str, ...]:
        """Who this is and whom it acts for, whatever its rights are now: what approvals, offers, writes and sessions
        are bound to. Fixed places for each of the callers behind a delegation, so that no two can look alike."""
        each = ((one.kind.value, one.tenant, one.subject, one.on_behalf_of) for one in self.chain)
        return tuple(part for parts in each for part in parts)

    def fingerprint(self, *, with_subject: bool) -> str:
        """SHA-256 over the attributes that policy may read; the subject only where a policy names principals."""
        return hashlib.sha256(
            json.dumps(
                [
                    self.acting_for.fingerprint(with_subject=with_subject) if self.acting_for else "",
                    self.subject if with_subject else "",
                    self.kind,
                    self.on_behalf_of,
                    self.tenant,
                    sorted(self.roles),
                    sorted(self.scopes),
                    self.stage,
                    self.environment,
                    self.region,
                    sorted(self.features),
                    self.clearance,
                ]
            ).encode()
        ).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Presented:
    """What a request over HTTP shows of itself, before anybody decided who it is.

    Args:
        authorization: the `Authorization` header, or None without one; a request with two of them never gets here.
        peer: the address that the connection came from, "" when unknown.
        headers: all headers, names in lower case; of a header given twice, the values joined by a comma.
    """

    authorization: str | None = None
    peer: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """An API key as it is kept: a digest of the secret, and whom it stands for.

    Args:
        secret_digest: SHA-256 (hex) of the whole key; the key itself was shown once and is nowhere.
        caller: the fields of `Caller` that are set.
        created_at, expires_at, revoked_at: ISO 8601, UTC; `expires_at` and `revoked_at` are "" for never.
    """

    key_id: str
    secret_digest: str
    caller: JsonObject
    created_at: str
    created_by: str
    expires_at: str = ""
    revoked_at: str = ""


class RevokedKind(StrEnum):
    """What can be revoked. An API key is not among them: its own record says so.

    SUBJECT: within its tenant, `value` as `identity.standing.subject_value` writes it. SESSION: of signed tokens, by
    their `sid`, or one token alone by its `jti`.
    """

    SUBJECT = "subject"
    SESSION = "session"


@dataclass(frozen=True, slots=True, kw_only=True)
class Revocation:
    """Somebody or something that is let in no more. `at`: ISO 8601, UTC."""

    kind: RevokedKind
    value: str
    at: str
    by: str
    reason: str = ""


class LocalOperator(Enum):
    """Says "the local operator" where a caller is wanted; None never does: nobody established is nobody."""

    LOCAL = "local"


LOCAL: Final = LocalOperator.LOCAL


class Channel(StrEnum):
    """Where a request came in. Part of the policy context: a human confirms at some of them."""

    CLI = "cli"
    LIBRARY = "library"
    STDIO = "stdio"
    HTTP = "http"
