"""What one value of `toolcrib.toml` may be: its type, its bounds, and what is said when it is neither.

Below: `globs.py`, `references.py`. Above: `document.py` makes tables of these. No error quotes what may be a secret.
"""

from __future__ import annotations

import base64
import ipaddress
import re
import shlex
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from toolcrib.settings.globs import glob_fault
from toolcrib.settings.hosts import is_loopback
from toolcrib.settings.references import parse_reference
from toolcrib.types import CallerKind, Risk, Transport, Trust

_SERVER_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_PLAIN_PATH = re.compile(r"\$(?:\.[A-Za-z_][A-Za-z0-9_]*)+")
_MAX_URL_CHARS = 8_000
_KEY_BYTES = 32
_PLACE_OF_ID = "{id}"
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


def _wrong(what: str, hint: str) -> PydanticCustomError:
    """An error in our words. `what` goes on after the key's name and must not quote a value that may be secret."""
    return PydanticCustomError("toolcrib", "{what}", {"what": what, "hint": hint})


def _server_id(value: str) -> str:
    if not _SERVER_ID.fullmatch(value):
        raise _wrong(
            f"cannot be {value!r}", "use 1 to 64 of A-Z, a-z, 0-9, _ and -; no dot: it ends the id in a tool id"
        )
    return value


def _tool_id(value: str) -> str:
    server_id, dot, name = value.partition(".")
    if not (dot and _SERVER_ID.fullmatch(server_id) and name and name.isprintable() and name == name.strip()):
        raise _wrong(
            f"is not a tool id: {value!r}", "a tool id is <server id>.<tool name>, for example github.create_issue"
        )
    return value


def _glob(value: str) -> str:
    fault = glob_fault(value)
    if fault:
        raise _wrong(f"is not a usable glob: {fault}", 'for example "github.*", "*.delete_*" or "crm.get_[a-z]*"')
    return value


def _filled(value: str) -> str:
    if not value.strip():
        raise _wrong("is empty", "give it a value, or leave the key out where there is none")
    return value


def _pointer(value: str) -> str:
    """A JSON pointer; `$.a.b`, as JSONPath writes a plain place, is one in other words."""
    if _PLAIN_PATH.fullmatch(value):
        value = value[1:].replace(".", "/")
    if not value.startswith("/") or len(value) < 2:
        raise _wrong(
            f"is not a JSON pointer: {value!r}", 'it begins with a slash: "/shipment_id"; "$.shipment_id" will do'
        )
    return value


def _command(value: object) -> object:
    """A list as it is; a text split at spaces, with quotes respected and backslashes kept. No shell ever reads it."""
    if not isinstance(value, str):
        return value
    words = shlex.shlex(value, posix=True, punctuation_chars=False)
    words.whitespace_split, words.escape, words.commenters = True, "", ""
    try:
        return list(words)
    except ValueError:
        raise _wrong("has a quote that is not closed", 'write a list: command = ["program", "argument"]') from None


def _runnable(value: list[str]) -> list[str]:
    if not value or not value[0].strip():
        raise _wrong("is empty", 'name the program: command = ["uvx", "mcp-server-time"]')
    return value


def _url(value: str) -> str:
    # Never quoted in the error: URLs carry keys.
    hint = 'for example url = "https://mcp.example.com/mcp"'
    try:
        parts = urlsplit(value)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable or len(value) > _MAX_URL_CHARS or not value.isprintable() or " " in value or "\\" in value:
        raise _wrong("is not an http:// or https:// address", hint)
    return value


def _secure_url(value: str) -> str:
    """An address that is reached over https, or over http on this machine alone; without a user and password.

    `connectors/_json_http.py` says the same before it asks one; one table of addresses tests both.
    """
    parts = urlsplit(_url(value))
    if parts.username is not None or parts.password is not None:
        raise _wrong("holds a user or a password", "an address is no place for them: take out what stands before the @")
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise _wrong("would be reached over plain http", "use https; http is for this machine alone (127.0.0.1)")
    return value


def _lookup_url(value: str) -> str:
    """The address of a resource's owner, with one place for the identifier, from where it can reach no other host."""
    hint = 'for example url = "https://orders.example.com/orders/{id}"'
    if value.count(_PLACE_OF_ID) != 1:
        raise _wrong(f"needs one place for the identifier, {_PLACE_OF_ID}", hint)
    filled = urlsplit(_secure_url(value.replace(_PLACE_OF_ID, "x")))
    place = urlsplit(value)
    if place.netloc != filled.netloc or place.scheme != filled.scheme:
        raise _wrong(f"has {_PLACE_OF_ID} in its host", f"{_PLACE_OF_ID} stands in the path or the query: {hint}")
    if place.fragment != filled.fragment:
        raise _wrong(f"has {_PLACE_OF_ID} after a #, which is never sent", hint)
    return value


def _network(value: str) -> str:
    try:
        ipaddress.ip_network(value, strict=False)
    except ValueError:
        raise _wrong(f"is not an IP address or network: {value!r}", '"10.0.0.5" or "10.0.0.0/24"') from None
    return value


def _header_name(value: str) -> str:
    if not _HEADER_NAME.fullmatch(value):
        raise _wrong(f"is not a name that an HTTP header can have: {value!r}", "letters, digits and -")
    return value.lower()


def _vault_name(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", value):
        raise _wrong(f"cannot be {value!r}", "use 1 to 64 of A-Z, a-z, 0-9, _ and -; servers write caller:NAME")
    return value


def _claim(value: object) -> object:
    """Where a claim stands, or a constant."""
    if isinstance(value, dict):
        if set(value) != {"value"} or not isinstance(value["value"], str | list):
            raise _wrong("is no constant", 'write tenant = { value = "acme" }')
        return value
    if not isinstance(value, str) or not value.strip():
        raise _wrong(
            "does not say where the claim stands", '"org.id", "/https:~1~1example.com~1tenant" or { value = "x" }'
        )
    return value


def _references(value: dict[str, str]) -> dict[str, str]:
    for name, text in value.items():
        reference = parse_reference(text)
        if reference is not None and reference.fault:
            raise _wrong(f"has an unusable reference under `{name}`: {reference.fault}", "env:NAME or file:PATH")
        if "\0" in text or not name.strip() or "=" in name or "\0" in name:
            raise _wrong(f"has an entry that no environment can hold: {name!r}", "names without =, values without NUL")
    return value


def _headers(value: dict[str, str]) -> dict[str, str]:
    for name, text in _references(value).items():
        if not _HEADER_NAME.fullmatch(name):
            raise _wrong(f"has a name that no HTTP header can have: {name!r}", "letters, digits and -")
        if not text.isprintable():
            raise _wrong(f"has line breaks or control characters under `{name}`", "write the header on one line")
    return value


def _time_of_day(value: str) -> str:
    if not re.fullmatch(r"(?:[01]\d|2[0-3]):[0-5]\d", value):
        raise _wrong(f"is not a time of the day: {value!r}", 'hours and minutes in UTC: "03:30"')
    return value


def _signer_name(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_.@-]{1,64}", value):
        raise _wrong(f"cannot be {value!r}", "use 1 to 64 of A-Z, a-z, 0-9, _, ., @ and -")
    return value


def _public_key(value: str) -> str:
    try:
        key = base64.b64decode(value, validate=True)
        usable = len(key) == _KEY_BYTES and base64.b64encode(key).decode() == value  # one key, one spelling
    except ValueError:
        usable = False
    if not usable:
        raise _wrong("is not an Ed25519 public key", "base64 of its 32 bytes, as `toolcrib review key` prints it")
    return value


def _bare_reference(value: str) -> str:
    reference = parse_reference(value)
    hint = "write env:NAME or file:PATH, and keep the secret itself there"
    if reference is None:
        raise _wrong("must be a reference, not the secret itself", hint)
    if reference.kind == "caller":
        raise _wrong("is the crib's own secret, not a caller's", hint)
    if reference.fault or reference.prefix:
        raise _wrong(f"is not a usable reference: {reference.fault or 'env:NAME or file:PATH alone is'}", hint)
    return value


Filled = Annotated[str, AfterValidator(_filled)]
SecureUrl = Annotated[str, AfterValidator(_secure_url)]
LookupUrl = Annotated[str, AfterValidator(_lookup_url)]
Network = Annotated[str, AfterValidator(_network)]
HeaderName = Annotated[str, AfterValidator(_header_name)]
Reference = Annotated[str, AfterValidator(_bare_reference)]
Claim = Annotated[Any, BeforeValidator(_claim)]
Glob = Annotated[str, AfterValidator(_glob)]
Pointer = Annotated[str, AfterValidator(_pointer)]
ToolId = Annotated[str, AfterValidator(_tool_id)]
Positive = Annotated[int, Field(gt=0, le=1_000_000_000)]
"""Bytes and counts. Bounds are where a number is a slip of the pen, and far below where arithmetic overflows."""
_MAX_CALLS = 1_000_000
Calls = Annotated[int, Field(gt=0, le=_MAX_CALLS)]
CallsOrNone = Annotated[int, Field(ge=0, le=_MAX_CALLS)]
"""0 is no limit."""
DAY_S = 24 * 60 * 60
Age = Annotated[float, Field(ge=0, le=365 * DAY_S, allow_inf_nan=False)]
"""0 is for ever."""
TimeOfDay = Annotated[str, AfterValidator(_time_of_day)]
SignerName = Annotated[str, AfterValidator(_signer_name)]
PublicKey = Annotated[str, AfterValidator(_public_key)]
Timeout = Annotated[float, Field(gt=0, le=DAY_S, allow_inf_nan=False)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
NamedRisk = Annotated[Risk, Field(strict=False)]
NamedKind = Annotated[CallerKind, Field(strict=False)]
NamedTransport = Annotated[Transport, Field(strict=False)]
NamedTrust = Annotated[Trust, Field(strict=False)]
ServerId = Annotated[str, AfterValidator(_server_id)]
VaultName = Annotated[str, AfterValidator(_vault_name)]
Command = Annotated[list[str], BeforeValidator(_command), AfterValidator(_runnable)]
Url = Annotated[str, AfterValidator(_url)]
Env = Annotated[dict[str, str], AfterValidator(_references)]
Headers = Annotated[dict[str, str], AfterValidator(_headers)]
