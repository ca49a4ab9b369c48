"""Policy tests: a table of who may do what to which tool, and whether policy says the same.

Below: `engine.py`. Above: `policy_desk.py`, which reads the file and knows callers and catalog.

    [[cases]]
    name = "nobody outside billing sees invoices"
    caller = "*"                       a profile, a glob on profiles, or a table of a caller's fields
    except = ["ines"]                  profiles that the glob leaves out
    action = "discover"                discover, call or approve
    tool = "freight.invoice_*"         a tool id or a glob; every tool it matches is asked for
    context = { channel = "http" }     see `Context`
    expect = "forbid"                  permit, forbid or needs_approval
    rule = "missing-scope"             optional: this policy must be among those that decided

Invariants
1. A case that asks nothing fails: a glob that matches no tool or no profile proves nothing.
2. Decisions come from the engine that serves; routing's constraints and the gate's other checks are not asked here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from toolcrib.errors import ConfigError
from toolcrib.policy.approving import request_by
from toolcrib.policy.engine import PolicyEngine
from toolcrib.types import ApprovalRequest, Caller, Channel, Decision, Effect, Resource, Tool

KeyPath: TypeAlias = tuple[str | int, ...]
_STRICT = ConfigDict(extra="forbid", frozen=True, strict=True)


class Target(BaseModel):
    """The resource that a call names, as its owner would describe it."""

    model_config = _STRICT
    type: str
    id: str = "1"
    tenant: str = ""
    owner: str = ""


class Context(BaseModel):
    """The circumstances of a request.

    `stage`, `environment` and `region` stand in for the caller's own. `approved` and `target` are for calls. For
    approvals, `requester` is a profile or a caller's fields, or else somebody else of the approver's tenant.
    """

    model_config = _STRICT
    channel: Literal["cli", "library", "stdio", "http"] = "library"
    approved: bool = False
    stage: str | None = None
    environment: str | None = None
    region: str | None = None
    target: Target | None = None
    requester: str | dict[str, Any] | None = None
    own_request: bool = False


class _Row(BaseModel):
    model_config = _STRICT
    name: str
    caller: str | dict[str, Any]
    without: list[str] = Field(default_factory=list, alias="except")
    action: Literal["discover", "call", "approve"]
    tool: str
    context: Context = Context()
    expect: Literal["permit", "forbid", "needs_approval"]
    rule: str = ""


class _File(BaseModel):
    model_config = _STRICT
    cases: list[_Row] = Field(min_length=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyCase:
    """One row. `callers`: name -> caller, those that it asks for. `where`: file:line."""

    name: str
    where: str
    callers: Mapping[str, Caller]
    action: Literal["discover", "call", "approve"]
    tool: str
    context: Context
    requester: Caller | None
    expect: Effect
    rule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """What a case did not get. `caller` and `tool_id` are "" where nothing could be asked; then `why` says so."""

    caller: str = ""
    tool_id: str = ""
    got: Effect | None = None
    policies: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """How one case went. `n_asked`: decisions that were made for it."""

    case: PolicyCase
    n_asked: int
    misses: tuple[Miss, ...]

    @property
    def passed(self) -> bool:
        return not self.misses


def cases_of(
    document: Mapping[str, Any],
    *,
    where: Callable[[KeyPath], str],
    profiles: Mapping[str, Caller],
    described: Callable[[Mapping[str, Any], str], Caller],
) -> tuple[PolicyCase, ...]:
    """The cases of a TOML document.

    Args:
        where: path of a key -> file:line.
        profiles: name -> caller.
        described: fields of a caller, and where they stand -> the caller.
    Raises:
        ConfigError: an unknown key, a wrong value, an unknown profile; all problems of shape at once.
    """
    try:
        file = _File.model_validate(dict(document))
    except ValidationError as fault:
        raise _shape_fault(fault, where) from fault
    found = []
    for number, row in enumerate(file.cases):

        def place(*path: str | int, number: int = number) -> str:
            return where(("cases", number, *path))

        found.append(_case(row, where=place, profiles=profiles, described=described))
    return tuple(found)


def _shape_fault(fault: ValidationError, where: Callable[[KeyPath], str]) -> ConfigError:
    told = []
    for details in fault.errors(include_url=False, include_input=False):
        path = tuple(part for part in details["loc"] if part not in ("str", "dict[str,any]"))
        key = ".".join(str(part) for part in path if isinstance(part, str) and part != "cases")
        told.append(f"{where(path)}: {key or 'the file'}: {details['msg']}")
    hint = 'a case has name, caller, action, tool, expect; and, where wanted, except, context, rule'  # fmt: skip
    return ConfigError("the policy tests cannot be read\n  " + "\n  ".join(dict.fromkeys(told)), hint=hint)


def _case(
    row: _Row,
    *,
    where: Callable[..., str],
    profiles: Mapping[str, Caller],
    described: Callable[[Mapping[str, Any], str], Caller],
) -> PolicyCase:
    given = row.context
    if row.action == "discover" and (row.expect == "needs_approval" or given.approved or given.target):
        raise ConfigError(
            "approvals and targets are for calls; discovering needs none", where=where("action"), hint='action = "call"'
        )
    if row.action == "approve" and row.expect == "needs_approval":
        raise ConfigError("an approval is permitted or forbidden", where=where("expect"), hint='expect = "forbid"')
    if row.action != "approve" and (given.requester is not None or given.own_request):
        raise ConfigError(
            "requester and own_request are for approvals", where=where("context"), hint='action = "approve"'
        )
    requester = None
    if given.requester is not None:
        ((_, requester),) = _callers(given.requester, (), where("context", "requester"), profiles, described).items()
    callers = _callers(row.caller, row.without, where("caller"), profiles, described)
    return PolicyCase(
        name=row.name,
        where=where(),
        callers={name: _placed(caller, given) for name, caller in callers.items()},
        action=row.action,
        tool=row.tool,
        context=given,
        requester=requester,
        expect=Effect(row.expect),
        rule=row.rule,
    )


def _callers(
    asked: str | Mapping[str, Any],
    without: Sequence[str],
    where: str,
    profiles: Mapping[str, Caller],
    described: Callable[[Mapping[str, Any], str], Caller],
) -> dict[str, Caller]:
    if not isinstance(asked, str):
        caller = described(asked, where)
        return {caller.subject: caller}
    known = f"profiles: {', '.join(profiles) or 'none; see [crib] profiles'}"
    for name in without:
        if name not in profiles:
            raise ConfigError(f'no profile "{name}"', where=where, hint=known)
    found = {name: c for name, c in profiles.items() if fnmatchcase(name, asked) and name not in without}
    if not found:
        raise ConfigError(f'no profile "{asked}"', where=where, hint=known)
    return found


def _placed(caller: Caller, context: Context) -> Caller:
    changed = {key: getattr(context, key) for key in ("stage", "environment", "region")}
    return replace(caller, **{key: value for key, value in changed.items() if value is not None})


# --- running ---------------------------------------------------------------------------------------------


def run_case(
    case: PolicyCase,
    *,
    engine: PolicyEngine,
    tools: Sequence[Tool],
    withheld: Mapping[str, str],
    labels: frozenset[str],
    unknown_risk: Mapping[Channel, str],
) -> CaseResult:
    """Ask for every caller and tool of a case.

    Args:
        tools: those in service.
        withheld: tool id -> why it is not in service, to tell a missing tool from a withheld one.
        labels: of all policies, so that a case that names none is not taken for a decision that changed.
        unknown_risk: "allow" or "needs_approval" for each channel.
    """
    asked = [tool for tool in tools if fnmatchcase(tool.tool_id, case.tool)]
    if case.rule and case.rule not in labels:
        return CaseResult(case=case, n_asked=0, misses=(Miss(why=f'no policy is called "{case.rule}"'),))
    if not asked:
        why = next((reason for tool_id, reason in withheld.items() if fnmatchcase(tool_id, case.tool)), "")
        told = f'no tool in service matches "{case.tool}"' + (f"; one is withheld: {why}" if why else "")
        return CaseResult(case=case, n_asked=0, misses=(Miss(why=told),))
    misses = tuple(_misses(case, engine=engine, tools=asked, unknown_risk=unknown_risk))
    return CaseResult(case=case, n_asked=len(asked) * len(case.callers), misses=misses)


def _misses(
    case: PolicyCase, *, engine: PolicyEngine, tools: Sequence[Tool], unknown_risk: Mapping[Channel, str]
) -> Iterator[Miss]:
    for name, caller in case.callers.items():
        for tool in tools:
            decision = _decide(case, caller, tool, engine=engine, unknown_risk=unknown_risk)
            why = ""
            if decision.effect is not case.expect:
                why = f"expected {case.expect}, got {decision.effect}"
            elif case.rule and case.rule not in decision.policies:
                why = f'{decision.effect} as expected, but not by "{case.rule}"'
            if why:
                yield Miss(
                    caller=name,
                    tool_id=tool.tool_id,
                    got=decision.effect,
                    policies=decision.policies,
                    errors=decision.errors,
                    why=why,
                )


def _decide(
    case: PolicyCase, caller: Caller, tool: Tool, *, engine: PolicyEngine, unknown_risk: Mapping[Channel, str]
) -> Decision:
    channel = Channel(case.context.channel)
    risk = unknown_risk[channel]
    if case.action == "discover":
        return engine.decide_discover(caller, tool, channel=channel, unknown_risk=risk)
    if case.action == "approve":
        return engine.decide_approval(caller, tool=tool, request=_request(case, caller, tool), channel=channel)
    given = case.context.target
    target = None
    if given is not None:
        target = Resource(resource_type=given.type, resource_id=given.id, tenant=given.tenant, owner=given.owner)
    return engine.decide_call(
        caller, tool, channel=channel, unknown_risk=risk, approved=case.context.approved, target=target
    )


def _request(case: PolicyCase, approver: Caller, tool: Tool) -> ApprovalRequest:
    other = Caller(subject=f"not {approver.subject}", tenant=approver.tenant)
    requester = approver if case.context.own_request else case.requester or other
    return request_by(requester, tool, channel=case.context.channel)
