"""API keys: made once, shown once, kept as digests.

Below: `callers.py`. Above: `callers.py` on floor 4 looks records up in the store; `cli/key.py` makes keys.

    tck_3f1b0c9d2e4a5b6c_RZ...     tck_<key id>_<secret>

The secret has 256 random bits, so a plain SHA-256 is kept: slow hashes such as bcrypt make up for secrets that people
choose and others can guess. Nobody guesses this one, and a slow hash would only let strangers keep the gateway busy.

Invariants
1. The key is nowhere but in the answer to its making; the record holds its digest.
2. A key that has expired, was revoked, or has times that cannot be read, is nobody's.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from toolcrib.identity.callers import caller_from_mapping
from toolcrib.identity.refused import Refused
from toolcrib.types import ApiKey, Caller, Credential, JsonObject

_SHAPE = re.compile(r"tck_([0-9a-f]{16})_[A-Za-z0-9_-]{43}")
_NOBODYS = "0" * 64


def new_key(caller: JsonObject, *, created_by: str, now: datetime, valid_for: timedelta | None) -> tuple[str, ApiKey]:
    """A key, to be shown once, and the record of it, to be kept.

    Args:
        caller: the fields of `Caller` that are set; checked.
        valid_for: None for a key that does not expire.
    Raises:
        ConfigError: these fields describe no caller.
    """
    caller_from_mapping(caller, environment="", region="", where="the key's caller")
    key_id = secrets.token_hex(8)
    key = f"tck_{key_id}_{secrets.token_urlsafe(32)}"
    record = ApiKey(
        key_id=key_id,
        secret_digest=_digest(key),
        caller=dict(caller),
        created_at=now.isoformat(),
        created_by=created_by,
        expires_at=(now + valid_for).isoformat() if valid_for is not None else "",
    )
    return key, record


def key_id_of(presented: str) -> str:
    """The id in what looks like an API key, "" in anything else."""
    match = _SHAPE.fullmatch(presented)
    return match[1] if match else ""


def caller_of_key(
    presented: str, record: ApiKey | None, *, now: datetime, environment: str, region: str
) -> Caller | Refused:
    """The caller that a key stands for.

    Args:
        record: the one of this key's id, None where there is none.
        environment: the crib's own, for a record that names none; so is `region`.
    Raises:
        ConfigError: the record describes no caller.
    """
    known = record.secret_digest if record is not None else _NOBODYS  # compared all the same: no id can be timed
    same = hmac.compare_digest(known.encode(), _digest(presented).encode())
    if record is None or not same:
        return Refused("no such API key")
    fault = key_fault(record, now=now)
    if fault:
        return Refused(fault)
    return caller_of_record(record, environment=environment, region=region)


def caller_of_record(record: ApiKey, *, environment: str, region: str) -> Caller:
    """The caller that whoever holds the key of this record is; see `caller_of_key`, which checks that somebody does.

    Raises:
        ConfigError: the record describes no caller.
    """
    caller = caller_from_mapping(record.caller, environment=environment, region=region, where="the key's caller")
    ends = datetime.fromisoformat(record.expires_at).timestamp() if record.expires_at else 0.0
    return replace(caller, credential=Credential(kind="key", key_id=record.key_id, expires_at=ends))


def key_fault(record: ApiKey | None, *, now: datetime) -> str:
    """Why a key lets nobody in any more, or ""."""
    if record is None:
        return "there is no such API key any more"
    if record.revoked_at:
        return f"the API key {record.key_id} was revoked"
    if not record.expires_at:
        return ""
    try:
        ends = datetime.fromisoformat(record.expires_at)
    except ValueError:
        return f"the API key {record.key_id} has an end that cannot be read"
    if ends.tzinfo is None or ends <= now.astimezone(UTC):
        return f"the API key {record.key_id} has expired"
    return ""


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
