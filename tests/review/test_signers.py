"""Who signs, and whose signatures are missing under what a server is."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolcrib.catalog.pins import Lock, ServerPin
from toolcrib.errors import ConfigError
from toolcrib.review.signatures import new_key, private_pem, public_text, sign
from toolcrib.review.signers import server_subject, signing, unsigned_servers
from toolcrib.settings import ReviewSettings, Signer

ANN, BOB = new_key(), new_key()
SIGNERS = (Signer(name="ann", public_key=public_text(ANN)), Signer(name="bob", public_key=public_text(BOB)))


def test_a_key_file_names_the_signer_it_belongs_to_and_does_not_show_itself(tmp_path: Path) -> None:
    (tmp_path / "bob.pem").write_bytes(private_pem(BOB))
    found = signing(tmp_path / "bob.pem", SIGNERS)
    assert found.name == "bob"
    assert repr(found) == "Signing(name='bob')"


def test_a_key_that_is_nobodys_cannot_sign(tmp_path: Path) -> None:
    (tmp_path / "eve.pem").write_bytes(private_pem(new_key()))
    with pytest.raises(ConfigError, match="no configured signer"):
        signing(tmp_path / "eve.pem", SIGNERS)


def pinned(**signatures: str) -> Lock:
    return Lock(servers={"shop": ServerPin(provenance={"package": "p"}, signatures=signatures)})


def test_what_a_server_is_needs_as_many_signatures_as_a_definition() -> None:
    digest = pinned().servers["shop"].digest
    ann = sign(ANN, subject=server_subject("shop"), digest=digest)
    bob = sign(BOB, subject=server_subject("shop"), digest=digest)
    two = ReviewSettings(require_signers=2, signers=SIGNERS)
    assert "ann" in unsigned_servers(pinned(ann=ann), two)["shop"]
    assert unsigned_servers(pinned(ann=ann, bob=ann), two)
    assert unsigned_servers(pinned(ann=ann, bob=bob), two) == {}
    assert unsigned_servers(pinned(), ReviewSettings()) == {}
    assert unsigned_servers(Lock(servers={"shop": ServerPin()}), two) == {}
