"""Keys and tokens for tests, made here and now; also those that no honest library would sign."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

ISSUER, AUDIENCE = "https://issuer.example", "toolcrib"
RSA_A = rsa.generate_private_key(public_exponent=65537, key_size=2048)
RSA_B = rsa.generate_private_key(public_exponent=65537, key_size=2048)
RSA_SHORT = rsa.generate_private_key(public_exponent=65537, key_size=1024)
EC_256 = ec.generate_private_key(ec.SECP256R1())
EC_384 = ec.generate_private_key(ec.SECP384R1())
ED = ed25519.Ed25519PrivateKey.generate()
_WRITERS: Mapping[Any, Any] = {
    rsa.RSAPublicKey: RSAAlgorithm,
    ec.EllipticCurvePublicKey: ECAlgorithm,
    ed25519.Ed25519PublicKey: OKPAlgorithm,
}


def public_jwk(private: Any, kid: str | None = None, **more: Any) -> dict[str, Any]:
    """The entry of a key set for this private key."""
    public = private.public_key()
    writer = next(writer for kind, writer in _WRITERS.items() if isinstance(public, kind))
    entry = json.loads(writer.to_jwk(public))
    entry.pop("key_ops", None)
    return {**entry, **({} if kid is None else {"kid": kid}), **more}


def key_set(*entries: Mapping[str, Any]) -> bytes:
    return json.dumps({"keys": list(entries)}).encode()


def key_file(folder: Path, *entries: Mapping[str, Any]) -> Path:
    path = folder / "keys.json"
    path.write_bytes(key_set(*entries))
    return path


def claims(**more: Any) -> dict[str, Any]:
    """Of a token that is good for five minutes; None takes a claim out."""
    now = int(time.time())
    plain = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "iat": now, "nbf": now, "exp": now + 300}
    return {name: value for name, value in {**plain, **more}.items() if value is not None}


def signed(
    key: Any = RSA_A, alg: str = "RS256", *, kid: str | None = "a", headers: Any = None, **of_claims: Any
) -> str:
    given = {**({} if kid is None else {"kid": kid}), **(headers or {})}
    return jwt.encode(claims(**of_claims), key, algorithm=alg, headers=given)


def forged(header: Mapping[str, Any], *, secret: bytes | None = None, **of_claims: Any) -> str:
    """Any header at all; signed by HMAC with the secret, or not at all."""
    head = ".".join(_segment(json.dumps(part).encode()) for part in (header, claims(**of_claims)))
    signature = b"" if secret is None else hmac.new(secret, head.encode(), hashlib.sha256).digest()
    return f"{head}.{_segment(signature)}"


def hand_signed(header: Mapping[str, Any], key: Any = RSA_A, **of_claims: Any) -> str:
    """Any header at all, over a signature (RS256) that is right."""
    head = ".".join(_segment(json.dumps(part).encode()) for part in (header, claims(**of_claims)))
    return f"{head}.{_segment(key.sign(head.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


def public_pem(private: Any) -> bytes:
    pem: bytes = private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return pem


def _segment(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
