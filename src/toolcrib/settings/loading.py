"""From `toolcrib.toml` to `Settings`.

    bytes ─▶ text ─▶ TOML ─▶ problems of shape (document.py) + problems between keys (checks.py) ─▶ Settings
                                          └── all of them in one ConfigError (faults.py)

Invariants
1. Either everything is right and there is a `Settings`, or everything that is wrong is told at once, with lines.
2. Nothing is fetched or run; no secret is read.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from toolcrib.errors import ConfigError
from toolcrib.settings.checks import problems_in, transport_of, warnings_in
from toolcrib.settings.document import Document, ResourceTable, ServerTable, ToolTable
from toolcrib.settings.faults import Problem, config_error, problems_of
from toolcrib.settings.lines import Lines, lines_of
from toolcrib.settings.model import (
    ApprovalSettings,
    CribSettings,
    FallbackSettings,
    GateSettings,
    IdentitySettings,
    JwtSettings,
    ModelSettings,
    PolicySettings,
    ProxyClient,
    ProxySettings,
    RefreshSettings,
    RetrievalSettings,
    ReviewSettings,
    RoutingSettings,
    SelectionSettings,
    Settings,
    ShadowSettings,
    Signer,
    TokenSettings,
    ToolRule,
    TraceSettings,
    VaultEntry,
)
from toolcrib.settings.references import parse_reference
from toolcrib.types import (
    CallLimit,
    ResidencyRule,
    ResourceRule,
    Risk,
    RiskCeiling,
    RoutingRules,
    SecretRef,
    ServerSpec,
    Transport,
)

FILE_NAME = "toolcrib.toml"
_POSITION = re.compile(r"\s*\(at (?:line (?P<line>\d+), column \d+|end of document)\)$")


def load_settings(path: Path) -> Settings:
    """The settings of a crib.

    Args:
        path: `toolcrib.toml`, or the folder that holds it.
    Raises:
        ConfigError: there is none, or it cannot be used; says everything that is wrong, with lines.
    """
    file = path / FILE_NAME if path.is_dir() else path
    return settings_from_text(_read(file), path=file.absolute(), source=file.name)


def settings_from_text(text: str, *, path: Path, source: str = FILE_NAME) -> Settings:
    """The settings that a text holds.

    Args:
        path: where the text lies; relative paths in it are taken from there.
        source: the file's name as errors show it.
    """
    text = text.replace("\r\n", "\n")
    document = _parsed(text, source=source)
    lines = lines_of(text, source=source)
    checked, problems = _checked(document)
    problems += problems_in(document, lines=lines)
    if checked is None or problems:
        raise config_error(problems, lines=lines)
    return _settings(checked, document, path=path, lines=lines)


def _read(file: Path) -> str:
    hint = "run `toolcrib init` there, or name the folder that holds it with -C"
    if file.suffix == ".toml" and file.name != FILE_NAME:
        hint = "check the path that names it"
    try:
        data = file.read_bytes()
    except FileNotFoundError as fault:
        raise ConfigError(f"there is no {file.name} here", where=str(file.parent.absolute()), hint=hint) from fault
    except OSError as fault:
        raise ConfigError(f"cannot be read: {fault.strerror}", where=str(file), hint="check its permissions") from fault
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        line = data.count(b"\n", 0, fault.start) + 1
    raise ConfigError("this is not UTF-8 text", where=f"{file.name}:{line}", hint="save the file as UTF-8")


def _parsed(text: str, *, source: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        fault, line = "it is nested too deeply", 0
    except ValueError as error:  # TOMLDecodeError is one; a number of thousands of digits raises another
        fault, line = _syntax_fault(str(error), text)
    where = f"{source}:{line}" if line else source
    raise ConfigError(f"this is not TOML: {fault}", where=where, hint=_syntax_hint(fault))


def _syntax_fault(message: str, text: str) -> tuple[str, int]:
    match = _POSITION.search(message)
    if match is None:
        return message, 0
    return message[: match.start()], int(match["line"] or text.rstrip("\n").count("\n") + 1)


def _syntax_hint(fault: str) -> str:
    if any(open_text in fault for open_text in ("Illegal character '\\n'", "Unterminated string", 'Expected "\'"')):
        return 'a text is not closed: name = "crib" has a quote at either end'
    if "\\" in fault or "escape" in fault.lower() or "hex value" in fault:
        return "write text with backslashes in single quotes: 'C:\\tools\\server.exe'"
    if "Cannot overwrite" in fault or "twice" in fault or "Cannot declare" in fault or "Cannot mutate" in fault:
        return "the same key or [table] stands twice; tables that repeat have double brackets: [[servers]]"
    if "Invalid value" in fault:
        return 'text needs quotes: name = "crib"; true and false are written small'
    return 'a line is key = value, [table] or # comment; text needs quotes: name = "crib"'


def _checked(document: Mapping[str, Any]) -> tuple[Document | None, list[Problem]]:
    # Not raised from here: the models' error holds what was read, and would hang on ours as its context.
    try:
        return Document.model_validate(document), []
    except ValidationError as error:
        return None, problems_of(error)


# --- conversion


def _settings(checked: Document, document: Mapping[str, Any], *, path: Path, lines: Lines) -> Settings:
    dumped = checked.model_dump(exclude_unset=True)
    section = {name: dumped.get(name, {}) for name in ("crib", "policy", "selection", "trace", "shadow", "refresh")}
    return Settings(
        root=path.parent,
        path=path,
        crib=CribSettings(**section["crib"]),
        policy_options=PolicySettings(**section["policy"]),
        identity=_identity(dumped.get("identity", {})),
        servers=tuple(_server(row) for row in checked.servers or ()),
        tools=tuple(_rule(row, lines.line(("tools", number))) for number, row in enumerate(checked.tools or ())),
        retrieval=_retrieval(dumped.get("retrieval", {})),
        selection=SelectionSettings(**section["selection"]),
        routing=_routing(dumped.get("routing", {})),
        fallback=FallbackSettings(tools=tuple(dumped.get("fallback", {}).get("tools", ()))),
        gate=_gate(dumped.get("gate", {})),
        approvals=_approvals(dumped.get("approvals", {})),
        vault=tuple(VaultEntry(**{**row, "secret": SecretRef(row["secret"])}) for row in dumped.get("vault", ())),
        trace=TraceSettings(**section["trace"]),
        refresh=RefreshSettings(**_frozen(section["refresh"])),
        review=_review(dumped.get("review", {})),
        shadow=ShadowSettings(**section["shadow"]),
        resources=tuple(_resource(row) for row in checked.resources or ()),
        warnings=tuple(warnings_in(document, lines=lines)),
        lines=lines,
    )


def _identity(dumped: Mapping[str, Any]) -> IdentitySettings:
    tokens = tuple(
        TokenSettings(token=SecretRef(row["token"]), caller=_frozen(row["caller"])) for row in dumped.get("tokens", ())
    )
    return IdentitySettings(
        local=_frozen(dumped.get("local", {})),
        tokens=tokens,
        jwt=tuple(JwtSettings(**_frozen(row)) for row in dumped.get("jwt", ())),
        agents=tuple(_frozen(row["caller"]) for row in dumped.get("agents", ())),
        proxies=tuple(_proxy(row) for row in dumped.get("proxies", ())),
        required_scopes=tuple(dumped.get("required_scopes", ())),
        resource=dumped.get("resource", ""),
        authorization_servers=tuple(dumped.get("authorization_servers", ())),
    )


def _proxy(row: Mapping[str, Any]) -> ProxySettings:
    clients = tuple(
        ProxyClient(certificate=client["certificate"], caller=_frozen(client["caller"]))
        for client in row.get("clients", ())
    )
    return ProxySettings(**{**_frozen(row), "secret": SecretRef(row["secret"]), "clients": clients})


def _retrieval(dumped: Mapping[str, Any]) -> RetrievalSettings:
    model = dumped.get("model")
    if model is None:
        return RetrievalSettings(**dumped)
    secret = model.get("api_key")
    own = ModelSettings(**{**model, "api_key": SecretRef(secret) if secret else None})
    return RetrievalSettings(**{**dumped, "model": own})


def _gate(dumped: Mapping[str, Any]) -> GateSettings:
    fields = _frozen(dumped)
    limits = tuple(CallLimit(**row) for row in fields.pop("limits", ()))
    circuit = {f"circuit_{key}": value for key, value in fields.pop("circuit", {}).items()}
    return GateSettings(**fields, **circuit, limits=limits)


def _review(dumped: Mapping[str, Any]) -> ReviewSettings:
    return ReviewSettings(**{**dumped, "signers": tuple(Signer(**row) for row in dumped.get("signers", ()))})


def _approvals(dumped: Mapping[str, Any]) -> ApprovalSettings:
    secret = dumped.get("webhook_secret")
    return ApprovalSettings(**{**dumped, "webhook_secret": SecretRef(secret) if secret else None})


def _server(row: ServerTable) -> ServerSpec:
    fields = row.model_dump(exclude_unset=True)
    transport = transport_of(fields)
    assert transport is not None  # checks.py has refused rows without one
    fields |= {"server_id": fields.pop("id"), "transport": transport}
    if transport is Transport.STDIO:
        fields["command"] = (*fields["command"], *fields.pop("args", ()))
    for table in ("env", "headers"):
        if table in fields:
            fields[table] = {name: _value(text) for name, text in fields[table].items()}
    return ServerSpec(**_frozen(fields))


def _value(text: str) -> str | SecretRef:
    return text if parse_reference(text) is None else SecretRef(text)


def _rule(row: ToolTable, line: int) -> ToolRule:
    fields = _frozen(row.model_dump(exclude_unset=True))
    return ToolRule(pattern=fields.pop("match"), fields=fields, line=line)


def _routing(dumped: Mapping[str, Any]) -> RoutingSettings:
    fields = _frozen(dumped)
    health = {f"health_{key}": value for key, value in fields.pop("health", {}).items()}
    ceilings = tuple(
        RiskCeiling(stages=tuple(row.get("stages", ())), max_risk=Risk(row["max_risk"]))
        for row in fields.pop("risk_ceilings", ())
    )
    residency = tuple(ResidencyRule(**_frozen(row)) for row in fields.pop("residency", ()))
    equivalent = tuple(tuple(row["tools"]) for row in fields.pop("equivalent", ()))
    rules = RoutingRules(**fields, risk_ceilings=ceilings, residency=residency, equivalent=equivalent)
    return RoutingSettings(rules=rules, **health)


def _resource(row: ResourceTable) -> ResourceRule:
    given = row.model_dump(exclude_unset=True)
    named = row.argument.rsplit("/", 1)[-1].replace("~1", "/").replace("~0", "~")
    return ResourceRule(
        resource_type=given.pop("type"),
        pattern=given.pop("tools"),
        lookup_argument=given.pop("lookup_argument", named) if "lookup_tool" in given else "",
        headers={name: _value(text) for name, text in given.pop("headers", {}).items()},
        **given,
    )


def _frozen(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The same fields with tuples for lists."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
