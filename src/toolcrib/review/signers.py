"""Who signs: a key file and the configured signer it belongs to; and which pins of servers lack signatures.

Above: `review_desk.py` and `assembly.py`. Below: `signatures.py`.

Invariants
1. Nobody signs whose key is not configured: such a signature would count for nothing, and look like one that does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from toolcrib.errors import ConfigError
from toolcrib.review.signatures import Requirement, Signed, SignerRow, public_text, read_key, sign, signed_by


class PinnedServer(Signed, Protocol):
    """The pin of a server, as far as it is asked here."""

    @property
    def provenance(self) -> Mapping[str, Any]: ...


class PinnedServers(Protocol):
    """The part of a lock that is asked here."""

    @property
    def servers(self) -> Mapping[str, PinnedServer]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Signing:
    """A reviewer who signs. The key is never printed."""

    name: str
    key: Ed25519PrivateKey

    def __repr__(self) -> str:
        return f"Signing(name={self.name!r})"

    def signature(self, subject: str, digest: str) -> str:
        """Under this subject and digest, base64."""
        return sign(self.key, subject=subject, digest=digest)


def signing(path: Path, signers: Sequence[SignerRow]) -> Signing:
    """Whoever of the configured signers holds the key in this file.

    Raises:
        ConfigError: it holds no key, or nobody's.
    """
    key = read_key(path)
    public = public_text(key)
    for signer in signers:
        if signer.public_key == public:
            return Signing(name=signer.name, key=key)
    raise ConfigError(
        "this key belongs to no configured signer",
        where=str(path),
        hint=f'add it: [[review.signers]] with a name and public_key = "{public}"',
    )


def server_subject(server_id: str) -> str:
    """What a signature under a server's provenance is about."""
    return f"server:{server_id}"


def unsigned_servers(lock: PinnedServers, requirement: Requirement) -> dict[str, str]:
    """Server id -> why the approval of what it is does not count yet, for those that lack signatures.

    A server of which nothing is pinned has nothing to sign.
    """
    needed = requirement.require_signers
    lacking: dict[str, str] = {}
    for server_id, pin in lock.servers.items() if needed else ():
        found = signed_by(pin, subject=server_subject(server_id), signers=requirement.signers)
        if pin.provenance and len(found) < needed:
            lacking[server_id] = (
                f"what server {server_id} is was signed by {', '.join(found) or 'nobody'}, "
                f"{needed} signers are required"
            )
    return lacking
