"""Whose signed tokens are taken, for whom they must be, and where the keys come from.

Below: `types/`. Above: `jwt.py` checks tokens by these, `jwks.py` brings the keys, `callers.py` on floor 4 makes them
of the settings. Kept apart from both, since the cryptography behind them takes a while to import and most commands
need none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from toolcrib.errors import ConfigError
from toolcrib.identity.refused import Refused
from toolcrib.types import JsonObject

ALGORITHMS = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"})
"""With these, whoever can check a signature cannot make one. `none` and HS256 are not among them and never will be: a
public key taken for an HMAC secret lets anybody sign."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationKey:
    """A public key of an issuer.

    Args:
        kid: its name in the key set, None without one.
        algorithm: the one it may be used with alone; "" leaves it to the kind of key.
        key: as `cryptography` has it.
    """

    kid: str | None
    algorithm: str
    key: Any = field(repr=False)


class KeySource(Protocol):
    async def find(self, kid: str | None, *, algorithm: str) -> VerificationKey | Refused:
        """The issuer's key of this name that fits this algorithm; without a name, the only one that fits."""
        ...

    def fault(self) -> ConfigError | None:
        """Why no key will come from here before the operator mends something; None where that is not known."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenIssuer:
    """One issuer, and the audiences under which its tokens are for this crib.

    Args:
        tenants: whom its tokens may be of; empty: of anybody.
        claims: see `claims.py`.
        terms: a digest of all that the operator wrote of this issuer; see `Credential`.
    Raises:
        ConfigError: an issuer or audience that is not there, or an algorithm that is not allowed.
    """

    issuer: str
    audience: tuple[str, ...]
    keys: KeySource
    algorithms: tuple[str, ...] = ("RS256", "ES256", "EdDSA")
    clock_skew_s: float = 60.0
    claims: JsonObject = field(default_factory=dict)
    tenants: tuple[str, ...] = ()
    terms: str = ""

    def __post_init__(self) -> None:
        if not self.issuer or not self.audience or not all(self.audience):
            raise ConfigError(
                "an issuer of tokens needs its name and an audience",
                where="[[identity.jwt]]",
                hint="a token that is for nobody in particular could be anybody's",
            )
        odd = [name for name in self.algorithms if name not in ALGORITHMS]
        if odd or not self.algorithms:
            raise ConfigError(
                f"tokens signed with {odd[0]!r} are not taken" if odd else "no algorithm is allowed",
                where=f"[[identity.jwt]] {self.issuer}",
                hint=f"one or more of {', '.join(sorted(ALGORITHMS))}",
            )
