"""A server behind an address."""

from __future__ import annotations

import pytest

from toolcrib.connectors.provenance.remote import origin, remote
from toolcrib.types import ProvenanceKind

from .certificates import certificate, key


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("https://u:p@Example.com/mcp?key=1#x", "https://example.com/mcp"),
        ("https://example.com:443/", "https://example.com/"),
        ("https://example.com:8443", "https://example.com:8443"),
        ("http://[::1]:8000/mcp", "http://[::1]:8000/mcp"),
        ("https://example.com/k/hunter2/mcp", "https://example.com/k/***/mcp"),
    ],
)
def test_of_an_address_only_the_public_part(url, told):
    assert origin(url, mask=lambda part: part.replace("hunter2", "***")) == told


def test_a_renewed_certificate_with_the_same_key_is_no_change():
    ours, other = key(), key()
    first, renewed, changed = (
        remote("https://x/mcp", certificate=certificate(one, "x"), mask=str) for one in (ours, ours, other)
    )
    assert first.kind is ProvenanceKind.REMOTE
    assert first.tls_key.startswith("sha256:")
    assert first.compared == renewed.compared
    assert first.tls_key != changed.tls_key
    assert not first.pinned


def test_a_key_that_cannot_be_seen_is_said():
    assert "could not be seen" in remote("https://x/mcp", certificate=b"", mask=str).note
    broken = remote("https://x/mcp", certificate=b"no certificate", mask=str)
    assert (broken.tls_key, "could not be read" in broken.note) == ("", True)
    assert remote("http://x/mcp", certificate=b"", mask=str).tls_key == ""
