"""Certificates for tests: signed by their own key, for one name."""

from __future__ import annotations

import datetime
import ipaddress
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_DAY = datetime.timedelta(days=1)


def key() -> Any:
    return ec.generate_private_key(ec.SECP256R1())


def certificate(private: Any, host: str, *, encoding: Any = serialization.Encoding.DER) -> bytes:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = datetime.datetime.now(datetime.UTC)
    other: x509.GeneralName = x509.DNSName(host)
    if host[0].isdigit():
        other = x509.IPAddress(ipaddress.ip_address(host))
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + _DAY)
        .add_extension(x509.SubjectAlternativeName([other]), critical=False)
        .sign(private, hashes.SHA256())
    )
    return made.public_bytes(encoding)


def pem(private: Any) -> bytes:
    return private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
