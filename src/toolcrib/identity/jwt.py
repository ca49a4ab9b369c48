"""Signed tokens (JWT, RFC 7519; for the pitfalls RFC 8725) to callers.

Below: `issuers.py`, `jwks.py`, `claims.py`, `delegation.py`; PyJWT does the cryptography. Above: `callers.py`, floor 4.

    shape and size ─▶ header ─▶ issuer and audience ─▶ key ─▶ signature, times ─▶ claims, tenant ─▶ user ─▶ agent

Invariants
1. Nothing in a token says how it is checked: the algorithm must be one that the operator allows and that the key is
   for; `jku`, `x5u`, `jwk` and `x5c` are not looked at; `crit` is refused.
2. A token is for us (`aud`), from an issuer that was named (`iss`), and ends (`exp`).
3. Claims count only after the signature; before it, issuer and audience choose the row to check by, no more.
4. Issuers do not speak for each other's tenants: a token of a tenant that its row does not name is refused.
5. No reason says anything of a token but names that its issuer or its bearer made public.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import jwt as pyjwt

from toolcrib.identity.claims import caller_from_claims
from toolcrib.identity.delegation import delegated
from toolcrib.identity.issuers import TokenIssuer
from toolcrib.identity.refused import Refused, shown
from toolcrib.types import Caller, Credential, JsonObject

MAX_TOKEN_CHARS: Final = 16 * 1024
_COMPACT = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_TYPES: Final = frozenset({"jwt", "at+jwt", "application/jwt", "application/at+jwt"})
"""Other types are made for other purposes by the same issuer, a logout for example, and let nobody in."""
_WORDS: Final[Mapping[type[Exception], str]] = {
    pyjwt.ExpiredSignatureError: "it has expired",
    pyjwt.ImmatureSignatureError: "it is not valid yet",
    pyjwt.InvalidAudienceError: "it is for another audience",
    pyjwt.InvalidIssuerError: "it is from another issuer",
    pyjwt.InvalidSignatureError: "its signature is not by the key that it names",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """A token whose signature, times, issuer and audience are right. `row`: what it was checked by."""

    row: TokenIssuer
    claims: JsonObject = field(repr=False)


async def caller_of_token(
    token: str, rows: Sequence[TokenIssuer], *, agents: Sequence[Caller], environment: str, region: str
) -> Caller | Refused:
    """Who asks with this token: a user, or an agent that acts for one.

    Args:
        agents: those that may act for users.
        environment: the crib's own, where claims say none; so is `region`.
    """
    found = await verified(token, rows)
    if isinstance(found, Refused):
        return found
    user = caller_from_claims(
        found.claims, found.row.claims, environment=environment, region=region, credential=_credential(found)
    )
    if isinstance(user, Refused):
        return user
    if found.row.tenants and user.tenant not in found.row.tenants:
        return Refused(f"the token is of the tenant {shown(user.tenant)}, for which its issuer may not speak")
    return delegated(user, found.claims, agents=agents, issuer=found.row.issuer)


async def verified(token: str, rows: Sequence[TokenIssuer]) -> Verified | Refused:
    """The token's claims, once all of it has been checked."""
    if len(token) > MAX_TOKEN_CHARS:
        return Refused(f"the token is longer than {MAX_TOKEN_CHARS} characters")
    if not _COMPACT.fullmatch(token):
        return Refused("the token is not a signed JWT")
    try:
        unverified = pyjwt.decode_complete(token, options={"verify_signature": False})
    except pyjwt.PyJWTError as fault:
        return Refused(f"the token cannot be parsed: {type(fault).__name__}")
    header = unverified["header"]
    row = _row(unverified["payload"], rows)
    if isinstance(row, Refused):
        return row
    fault_of_header = _header_fault(header, row)
    if fault_of_header:
        return Refused(fault_of_header)
    key = await row.keys.find(header.get("kid"), algorithm=header["alg"])
    return key if isinstance(key, Refused) else _checked(token, row, key=key.key, algorithm=header["alg"])


def _row(claims: JsonObject, rows: Sequence[TokenIssuer]) -> TokenIssuer | Refused:
    """The only row that this token can be checked by."""
    issuer, audience = claims.get("iss"), claims.get("aud")
    named = {audience} if isinstance(audience, str) else set()
    if isinstance(audience, list) and all(isinstance(one, str) for one in audience):
        named = set(audience)
    of_issuer = [row for row in rows if row.issuer == issuer]
    if not of_issuer:
        return Refused(f"no [[identity.jwt]] row has the issuer {shown(str(issuer))}")
    for_us = [row for row in of_issuer if named.intersection(row.audience)]
    if len(for_us) != 1:
        return Refused(
            "the token is for another audience" if not for_us else "the token is for several of our audiences"
        )
    return for_us[0]


def _header_fault(header: JsonObject, row: TokenIssuer) -> str:
    if header.get("alg") not in row.algorithms:
        return f"tokens of this issuer are not taken when signed with {shown(str(header.get('alg')))}"
    if "crit" in header or "b64" in header:
        return "the token asks for an extension of JWS that is not known here"
    kind = header.get("typ", "JWT")
    if not isinstance(kind, str) or kind.lower() not in _TYPES:
        return f"the token is of another type, {shown(str(kind))}"
    return ""


def _checked(token: str, row: TokenIssuer, *, key: Any, algorithm: str) -> Verified | Refused:
    try:
        claims = pyjwt.decode(
            token,
            key,
            algorithms=[algorithm],
            audience=row.audience,
            issuer=row.issuer,
            leeway=row.clock_skew_s,
            options={"require": ["exp", "iss", "aud"]},
        )
    except pyjwt.MissingRequiredClaimError as fault:
        return Refused(f'the token does not hold: every token needs the claim "{fault.claim}"')
    except pyjwt.PyJWTError as fault:
        return Refused(f"the token does not hold: {_WORDS.get(type(fault), type(fault).__name__)}")
    for name in ("exp", "nbf", "iat"):
        if name in claims and not _is_time(claims[name]):
            return Refused(f'the token\'s "{name}" is not a time')
    return Verified(row=row, claims=claims)


def _is_time(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _credential(found: Verified) -> Credential:
    session, token_id = (v if isinstance(v := found.claims.get(name), str) else "" for name in ("sid", "jti"))
    return Credential(
        kind="jwt",
        issuer=found.row.issuer,
        session=session,
        token_id=token_id,
        terms=found.row.terms,
        expires_at=float(found.claims["exp"]) + found.row.clock_skew_s,  # as `_checked` counts it
    )
