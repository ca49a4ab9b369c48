"""API keys: shown once, kept as a digest, and nobody's once they end."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from toolcrib.errors import ConfigError
from toolcrib.identity.keys import caller_of_key, key_id_of, new_key
from toolcrib.identity.refused import Refused
from toolcrib.types import ApiKey, Caller

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def made(**more: Any) -> tuple[str, ApiKey]:
    return new_key({"subject": "bot"}, **{"created_by": "ann", "now": NOW, "valid_for": timedelta(days=1), **more})


def who(key: str, record: ApiKey | None, now: datetime = NOW) -> Caller | Refused:
    return caller_of_key(key, record, now=now, environment="test", region="eu")


def test_a_key_gives_its_caller() -> None:
    key, record = made()
    found = who(key, record)
    assert found == Caller(subject="bot", environment="test", region="eu")
    assert isinstance(found, Caller) and found.credential is not None
    assert (found.credential.kind, found.credential.key_id) == ("key", record.key_id)
    assert found.credential.expires_at == (NOW + timedelta(days=1)).timestamp()
    assert key_id_of(key) == record.key_id


def test_the_record_holds_no_part_of_the_secret_and_two_keys_share_nothing() -> None:
    key, record = made()
    secret = key.split("_", 2)[2]
    assert len(secret) >= 43, "256 bits"
    assert secret not in repr(asdict(record))
    other, _ = made()
    assert other.split("_", 2)[1:] != key.split("_", 2)[1:]


@pytest.mark.parametrize("change", ["cut", "longer", "other-secret", "other-id", "digest", "upper"])
def test_nearly_the_key_is_nobodys(change: str) -> None:
    key, record = made()
    other, _ = made()
    nearly = {
        "cut": key[:-1],
        "longer": key + "A",
        "other-secret": key[: -len(key.split("_", 2)[2])] + other.split("_", 2)[2],
        "other-id": other,
        "digest": record.secret_digest,
        "upper": key.upper(),
    }[change]
    assert isinstance(who(nearly, record), Refused)


def test_a_key_without_a_record_is_nobodys() -> None:
    key, _record = made()
    assert isinstance(who(key, None), Refused)


def test_a_key_ends_at_its_end_and_one_without_never_does() -> None:
    key, record = made()
    assert isinstance(who(key, record, NOW + timedelta(hours=23)), Caller)
    assert isinstance(who(key, record, NOW + timedelta(days=1)), Refused)
    key, record = made(valid_for=None)
    found = who(key, record, NOW + timedelta(days=9_999))
    assert isinstance(found, Caller) and found.credential is not None and found.credential.expires_at == 0.0


@pytest.mark.parametrize(
    "broken",
    [{"revoked_at": NOW.isoformat()}, {"expires_at": "soon"}, {"expires_at": "2099-01-01T00:00:00"}],
    ids=str,
)
def test_a_revoked_key_or_one_whose_end_is_unclear_is_nobodys(broken: Any) -> None:
    key, record = made()
    found = who(key, replace(record, **broken))
    assert isinstance(found, Refused) and key.split("_", 2)[2] not in found.reason


@pytest.mark.parametrize(
    "text", ["", "tck_", "tck__x", "tck_1_2", "sk_" + "0" * 16, "tck_" + "g" * 16 + "_" + "a" * 43, "tck_\ud800"]
)
def test_what_does_not_look_like_a_key_is_not_looked_up(text: str) -> None:
    assert key_id_of(text) == ""


@pytest.mark.parametrize(
    "described", [{}, {"subject": ""}, {"subject": "a", "tenants": "x"}, {"subject": "a", "acting_for": {}}]
)
def test_a_key_for_an_unclear_caller_is_not_made(described: Any) -> None:
    with pytest.raises(ConfigError):
        new_key(described, created_by="ann", now=NOW, valid_for=None)
