"""Signatures under approvals: who signed what, and whether enough different people did.

Ed25519 over the subject and its digest, so that a signature for one tool, or for one version of it, is worth nothing
for another. Private keys stay in their files; the configuration lists the public ones.

Above: `curation.py` signs, `assembly.py` asks what lacks signatures. Below: `cryptography`.

Invariants
1. A signature counts for the configured signer whose key made it, once, however often it stands in the lock.
2. With signers required, what has too few is out of service, whatever else the lock says (I4).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from toolcrib.errors import ConfigError


class SignerRow(Protocol):
    """A row of `[[review.signers]]`."""

    @property
    def name(self) -> str: ...
    @property
    def public_key(self) -> str: ...


class Requirement(Protocol):
    """Of `[review]`: how many signatures, and whose count."""

    @property
    def require_signers(self) -> int: ...
    @property
    def signers(self) -> Sequence[SignerRow]: ...


class Signed(Protocol):
    """A pin: its digest and the signatures under it."""

    @property
    def digest(self) -> str: ...
    @property
    def signatures(self) -> Mapping[str, str]: ...


class Pinned(Protocol):
    """The part of a lock that is asked here."""

    @property
    def tools(self) -> Mapping[str, Signed]: ...


def message(subject: str, digest: str) -> bytes:
    """What is signed. `subject`: a tool id, or "server:<server id>" for what a server is."""
    return json.dumps(["toolcrib approval 1", subject, digest], ensure_ascii=True).encode()


def sign(key: Ed25519PrivateKey, *, subject: str, digest: str) -> str:
    """The signature, base64."""
    return base64.b64encode(key.sign(message(subject, digest))).decode()


def is_signed(public_key: str, signature: str, *, subject: str, digest: str) -> bool:
    """Whether this key (base64) made this signature (base64) under this subject and digest."""
    return _is_signed(public_key, signature, message(subject, digest))


@lru_cache(maxsize=65_536)
def _is_signed(public_key: str, signature: str, signed: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(base64.b64decode(public_key)).verify(base64.b64decode(signature), signed)
    except (InvalidSignature, ValueError):
        return False
    return True


def signed_by(pin: Signed, *, subject: str, signers: Sequence[SignerRow]) -> tuple[str, ...]:
    """The configured signers whose signature under this pin holds, sorted."""
    return tuple(
        sorted(
            signer.name
            for signer in signers
            if signer.name in pin.signatures
            and is_signed(signer.public_key, pin.signatures[signer.name], subject=subject, digest=pin.digest)
        )
    )


def unsigned_tools(lock: Pinned, requirement: Requirement) -> dict[str, str]:
    """Tool id -> why its approval does not count yet, for those that lack signatures."""
    needed = requirement.require_signers
    if not needed:
        return {}
    lacking: dict[str, str] = {}
    for tool_id, pin in lock.tools.items():
        found = signed_by(pin, subject=tool_id, signers=requirement.signers)
        if len(found) < needed:
            lacking[tool_id] = f"signed by {', '.join(found) or 'nobody'}, {needed} signers are required"
    return lacking


def new_key() -> Ed25519PrivateKey:
    """A new signing key."""
    return Ed25519PrivateKey.generate()


def private_pem(key: Ed25519PrivateKey) -> bytes:
    """The key as a file holds it: PEM, PKCS 8, without a passphrase."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def public_text(key: Ed25519PrivateKey) -> str:
    """Its public half, base64 of 32 bytes, as `[[review.signers]]` holds it."""
    return base64.b64encode(key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)).decode()


def read_key(path: Path) -> Ed25519PrivateKey:
    """The signing key in this file.

    Raises:
        ConfigError: it cannot be read, or holds no Ed25519 private key. Says nothing of what stands in it.
    """
    hint = "`toolcrib review key NAME` makes one"
    try:
        key = load_pem_private_key(path.read_bytes(), password=None)
    except OSError as fault:
        raise ConfigError(f"the signing key cannot be read: {fault.strerror}", where=str(path), hint=hint) from fault
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ConfigError("this file holds no private key without a passphrase", where=str(path), hint=hint) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise ConfigError("the signing key is not an Ed25519 key", where=str(path), hint=hint)
    return key
