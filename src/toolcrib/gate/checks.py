"""May this very call run. The checks in order; the first that fails gives the verdict.

    in service and in reach ▸ digest as offered ▸ policy now ▸ arguments ▸ resource ▸ size ▸ rate ▸ approval

Above: `pipeline.py`, which hands over today's tool, decision and resource. Nothing judged before counts (I3).

Invariants
1. A tool that is missing, quarantined or not permitted gives one answer, equal to the byte; it echoes nothing (I1).
2. What is not plainly allowed is refused: no decision, a decision with errors, a schema that cannot be compiled (I2).
3. Rate comes after everything that depends on the call itself, so that refused calls cost nobody anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from toolcrib.errors import InvalidDefinitionError
from toolcrib.gate.arguments import ArgumentChecker
from toolcrib.gate.preview import fits_a_preview
from toolcrib.types import ArgumentFault, Code, Decision, Effect, Resource, Tool, ToolCall, Verdict

_NOT_AVAILABLE = "No such tool is available. Search for one that is."
_RESOURCE = "What the arguments name is not available. Check the identifier."
_CONFLICT = "The tool's definition has changed since it was offered. Look it up again before calling it."
_UNCHECKABLE = "The tool cannot be called at the moment: its input schema cannot be checked."
_TOO_LARGE = "This call needs a person's approval, and its arguments are too large to be shown. Send less at once."
_RATE = "Too many calls to this tool. Wait before calling it again."
_APPROVAL = "This call needs the approval of a person. Nothing was done."


def judge(
    call: ToolCall,
    *,
    tool: Tool | None,
    in_reach: bool,
    decision: Decision | None,
    checker: ArgumentChecker,
    tenant: str = "",
    resources: Sequence[Resource | None] = (),
    allow_rate: Callable[[], bool] | None = None,
) -> Verdict:
    """The verdict on one call as things stand now.

    Args:
        tool: the tool in service under the call's id, or None.
        in_reach: whether this caller may know of it.
        decision: policy's word on this call, taken now; with a granted approval at hand it says permit.
        tenant: the caller's. resources: each resource that the arguments name, as its owner described it; None for
            one that its owner does not know or could not describe.
        allow_rate: takes one call out of the caller's allowance; asked at most once, and only for a sound call.
    """
    if tool is None:
        return _refused(Code.NOT_AVAILABLE, _NOT_AVAILABLE, check="known")
    if not in_reach:
        return _refused(Code.NOT_AVAILABLE, _NOT_AVAILABLE, check="reach")
    if call.offered_digest and call.offered_digest != tool.digest:
        return _refused(Code.CONFLICT, _CONFLICT, check="digest")
    if decision is None or decision.errors or decision.effect is Effect.FORBID:
        return _refused(Code.NOT_AVAILABLE, _NOT_AVAILABLE, check="policy", decision=decision)
    if refused := _check_arguments(call, tool=tool, checker=checker):
        return refused
    if not all(_is_theirs(resource, tenant=tenant) for resource in resources):
        return _refused(Code.NOT_AVAILABLE, _RESOURCE, check="resource")
    if decision.effect is not Effect.PERMIT and not fits_a_preview(call.arguments):
        return _refused(Code.INVALID_ARGUMENTS, _TOO_LARGE, check="size", decision=decision)
    if allow_rate is not None and not allow_rate():
        return _refused(Code.RATE_LIMITED, _RATE, check="rate")
    if decision.effect is not Effect.PERMIT:
        return _refused(Code.NEEDS_APPROVAL, _APPROVAL, check="approval", decision=decision)
    return Verdict(code=Code.OK, message="", policies=decision.policies)


def _check_arguments(call: ToolCall, *, tool: Tool, checker: ArgumentChecker) -> Verdict | None:
    try:
        faults = checker.check(tool, call.arguments)
    except InvalidDefinitionError:
        return _refused(Code.UNAVAILABLE, _UNCHECKABLE, check="schema")
    if not faults:
        return None
    return _refused(Code.INVALID_ARGUMENTS, _faults_in_words(faults), check="arguments", faults=faults)


def _faults_in_words(faults: Sequence[ArgumentFault]) -> str:
    """Places and expectations only: the message is written into traces, and values of arguments are not."""
    first = "; ".join(f"{f.path or 'arguments'}: expected {f.expected}" for f in faults[:3])
    more = f"; and {len(faults) - 3} more" if len(faults) > 3 else ""
    return f"The arguments do not fit the tool's input schema. {first}{more}"


def _is_theirs(resource: Resource | None, *, tenant: str) -> bool:
    """An unknown owner is nobody's tenant, and neither is a caller without one."""
    return resource is not None and bool(tenant) and resource.tenant == tenant


def _refused(
    code: Code,
    message: str,
    *,
    check: str,
    decision: Decision | None = None,
    faults: tuple[ArgumentFault, ...] = (),
) -> Verdict:
    policies = decision.policies if decision else ()
    return Verdict(code=code, message=message, check=check, faults=faults, policies=policies)
