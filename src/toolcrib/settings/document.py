"""The shape of `toolcrib.toml`: which tables and keys there are, of which type, within which bounds.

The edge: pydantic models that live no longer than loading does. What spans several keys is in `checks.py`; defaults
are in `model.py`, so an optional key is `UNSET` here and left out when the model is dumped.
"""

from __future__ import annotations

import re
import shlex
from typing import Annotated, Any, Literal, get_args, get_origin
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from toolcrib.settings.globs import glob_fault
from toolcrib.settings.references import parse_reference
from toolcrib.types import MAX_LIMIT, CallerKind, Risk, Transport, Trust

UNSET: Any = None

_SERVER_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
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
    if not value.startswith("/") or len(value) < 2:
        raise _wrong(f"is not a JSON pointer: {value!r}", 'it begins with a slash, for example "/shipment_id"')
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
    if not usable or not value.isprintable() or " " in value:
        raise _wrong("is not an http:// or https:// address", hint)
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


def _bare_reference(value: str) -> str:
    reference = parse_reference(value)
    hint = 'write token = "env:NAME" or token = "file:PATH", and keep the token itself there'
    if reference is None:
        raise _wrong("must be a reference, not the token itself", hint)
    if reference.fault or reference.prefix:
        raise _wrong(f"is not a usable reference: {reference.fault or 'a word stands before it'}", hint)
    return value


Filled = Annotated[str, AfterValidator(_filled)]
Glob = Annotated[str, AfterValidator(_glob)]
Pointer = Annotated[str, AfterValidator(_pointer)]
ToolId = Annotated[str, AfterValidator(_tool_id)]
Positive = Annotated[int, Field(gt=0)]
_DAY_S = 24 * 60 * 60
"""Bounds of time are where a number is a slip of the pen, and far below where dates and clocks overflow."""
Timeout = Annotated[float, Field(gt=0, le=_DAY_S, allow_inf_nan=False)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
NamedRisk = Annotated[Risk, Field(strict=False)]


class Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)


class CribTable(Table):
    name: Filled = UNSET
    environment: str = UNSET
    region: str = UNSET
    store: Filled = UNSET
    policy: str = UNSET
    lock: Filled = UNSET


class LocalTable(Table):
    subject: Filled = UNSET
    kind: Annotated[CallerKind, Field(strict=False)] = UNSET
    on_behalf_of: str = UNSET
    tenant: str = UNSET
    roles: list[Filled] = UNSET
    scopes: list[Filled] = UNSET
    stage: str = UNSET
    environment: str = UNSET
    region: str = UNSET
    features: list[Filled] = UNSET
    clearance: str = UNSET


class CallerTable(LocalTable):
    subject: Filled


class TokenTable(Table):
    token: Annotated[str, AfterValidator(_bare_reference)]
    caller: CallerTable


class IdentityTable(Table):
    local: LocalTable = UNSET
    tokens: list[TokenTable] = UNSET


class ServerTable(Table):
    id: Annotated[str, AfterValidator(_server_id)]
    transport: Annotated[Transport, Field(strict=False)] = UNSET
    command: Annotated[list[str], BeforeValidator(_command), AfterValidator(_runnable)] = UNSET
    args: list[str] = UNSET
    env: Annotated[dict[str, str], AfterValidator(_references)] = UNSET
    cwd: Filled = UNSET
    url: Annotated[str, AfterValidator(_url)] = UNSET
    headers: Annotated[dict[str, str], AfterValidator(_headers)] = UNSET
    path: Filled = UNSET
    namespace: str = UNSET
    trust: Annotated[Trust, Field(strict=False)] = UNSET
    enabled: bool = UNSET
    start_timeout_s: Timeout = UNSET
    call_timeout_s: Timeout = UNSET
    max_pages: Positive = UNSET
    max_list_bytes: Positive = UNSET


class ToolTable(Table):
    match: Glob
    owner: str = UNSET
    namespace: str = UNSET
    required_scopes: list[Filled] = UNSET
    stages: list[Filled] = UNSET
    environments: list[Filled] = UNSET
    tenants: list[Filled] = UNSET
    regions: list[Filled] = UNSET
    risk: NamedRisk = UNSET
    cost: Amount = UNSET
    latency_ms: Amount = UNSET
    data_class: str = UNSET
    enabled: bool = UNSET
    status: Literal["active", "deprecated", "retired"] = UNSET
    replaced_by: ToolId = UNSET
    preload: bool = UNSET
    keywords: list[Filled] = UNSET
    examples: list[Filled] = UNSET


class RetrievalTable(Table):
    embedder: Literal["bundled", "none"] = UNSET
    top_k: Positive = UNSET
    confidence_floor: Share = UNSET


class SelectionTable(Table):
    limit: Annotated[int, Field(gt=0, le=MAX_LIMIT)] = UNSET
    token_budget: Positive = UNSET


class RiskCeilingTable(Table):
    stages: list[Filled] = UNSET
    max_risk: Literal["read", "write"]


class RoutingTable(Table):
    risk_ceilings: list[RiskCeilingTable] = UNSET


class FallbackTable(Table):
    tools: list[Glob] = UNSET


class GateTable(Table):
    unknown_risk: Literal["auto", "allow", "needs_approval"] = UNSET
    approval_ttl_s: Annotated[float, Field(gt=0, le=30 * _DAY_S, allow_inf_nan=False)] = UNSET
    calls_per_minute: Annotated[int, Field(ge=0)] = UNSET
    max_result_bytes: Positive = UNSET


class TraceTable(Table):
    keep_days: Annotated[int, Field(gt=0, le=36_500)] = UNSET
    record_arguments: bool = UNSET


class ResourceTable(Table):
    type: Filled
    tools: Glob
    argument: Pointer
    lookup_tool: ToolId
    lookup_argument: Filled = UNSET
    tenant: Pointer


class Document(Table):
    """The whole file."""

    crib: CribTable = UNSET
    identity: IdentityTable = UNSET
    servers: list[ServerTable] = UNSET
    tools: list[ToolTable] = UNSET
    retrieval: RetrievalTable = UNSET
    selection: SelectionTable = UNSET
    routing: RoutingTable = UNSET
    fallback: FallbackTable = UNSET
    gate: GateTable = UNSET
    trace: TraceTable = UNSET
    resources: list[ResourceTable] = UNSET


def tables(
    model: type[Table] = Document, path: tuple[str, ...] = ()
) -> dict[tuple[str, ...], tuple[type[Table], bool]]:
    """Every table by its path: its model, and whether it is written `[[so]]`."""
    found: dict[tuple[str, ...], tuple[type[Table], bool]] = {}
    for name, described in model.model_fields.items():
        inner = described.annotation
        arguments = get_args(inner)
        repeated = get_origin(inner) is list
        kind: Any = arguments[0] if repeated else inner
        if isinstance(kind, type) and issubclass(kind, Table):
            found[(*path, name)] = (kind, repeated)
            found |= tables(kind, (*path, name))
    return found
