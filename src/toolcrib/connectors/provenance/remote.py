"""A server behind an address: where it answers, and with which TLS key.

The certificate is the one of the very connection that listed the tools (`_http.py` keeps it), so nothing is asked for a
second time, a proxy is no obstacle, and there is no other server that could answer the second question.

Invariants
1. Of an address only scheme, host, port and path are kept; secrets in the path are masked.
2. The key is the certificate's public key, not the certificate: a renewal with the same key is no change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from urllib.parse import urlsplit

from toolcrib.types import Provenance, ProvenanceKind

_MUTABLE = "a remote server can change without notice"
_PORTS = {"https": 443, "http": 80}


def remote(url: str, *, certificate: bytes, mask: Callable[[str], str]) -> Provenance:
    """What is known of a remote server.

    Args:
        certificate: the leaf certificate, DER; b"" where there is none.
        mask: hides secrets in a path.
    """
    key, fault = _key(certificate) if certificate else ("", "")
    notes = [_MUTABLE]
    if url.lower().startswith("https:") and not key:
        notes.append(fault or "its TLS key could not be seen")
    return Provenance(
        kind=ProvenanceKind.REMOTE, origin=origin(url, mask=mask), tls_key=key, pinned=False, note="; ".join(notes)
    )


def origin(url: str, *, mask: Callable[[str], str]) -> str:
    """Scheme, host, port where it is not the usual one, and path."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    port = "" if parts.port in (None, _PORTS.get(parts.scheme)) else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}" + "/".join(mask(part) for part in parts.path.split("/"))


def _key(certificate: bytes) -> tuple[str, str]:
    """ "sha256:<hex>" of the public key (SubjectPublicKeyInfo), and why not."""
    from cryptography import x509  # costs 50 ms, for https only
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    try:
        key = x509.load_der_x509_certificate(certificate).public_key()
    except (ValueError, UnsupportedAlgorithm) as exc:
        return "", f"its certificate could not be read: {exc}"
    return "sha256:" + hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest(), ""
