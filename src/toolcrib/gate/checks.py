"""May this very call run. The checks in order; the first that fails gives the verdict.

    in service and in reach ▸ offered ▸ digest as offered ▸ policy now ▸ arguments ▸ (overtaken) ▸ resource ▸ size
                            ▸ limits ▸ duplicate write ▸ approval

Above: `pipeline.py`, which hands over today's tool and decisions; `dispatch.py` found out the rest. Nothing that was
judged before counts (I3).

Invariants
1. A tool that is missing, quarantined or not permitted gives one answer, equal to the byte; it echoes nothing (I1).
   Whether a tool was offered is asked only once it is in reach.
2. What is not plainly allowed is refused: no decision, a decision with errors, a schema that cannot be compiled (I2).
3. Limits are looked at after everything that depends on the call itself. `dispatch.py` takes the call out of its
   allowances before it asks owners, since asking costs, too; a call that owners then refuse has used allowance.
4. A duplicate is refused before an approval is looked for: it uses none up, and nobody is asked for one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from toolcrib.errors import InvalidDefinitionError
from toolcrib.gate.arguments import ArgumentChecker
from toolcrib.gate.limits import Limited
from toolcrib.gate.preview import fits_a_preview
from toolcrib.types import ArgumentFault, Code, Decision, Effect, Resource, Tool, ToolCall, Verdict

_NOT_AVAILABLE = "No such tool is available. Search for one that is."
_NOT_OFFERED = (
    "This tool was not offered to you lately in its present form. Search for it or describe it, then call it."
)
_RESOURCE = "What the arguments name is not available. Check the identifier."
_CONFLICT = "The tool's definition has changed since it was offered. Look it up again before calling it."
_UNCHECKABLE = "The tool cannot be called at the moment: its input schema cannot be checked."
_TOO_LARGE = "This call needs a person's approval, and its arguments are too large to be shown. Send less at once."
_RATE = "Too many calls {of}. Wait before calling it again."
_CONCURRENT = "Too many calls {of} are under way at once. Wait until one of them has ended."
_OF = {
    "caller": "of yours",
    "tenant": "of your organisation",
    "tool": "to this tool",
    "server": "to this tool's server",
}
_DUPLICATE = (
    "You have made this very call a short while ago, and it may have changed something. Nothing was sent again, and "
    "its answer is not repeated. Look at what it did first. If a second such call is meant, send it with a new "
    "idempotency key (call_tool takes one)."
)
_SAME_KEY = (
    "You have made a call to this tool with this idempotency key before. Nothing was sent again, whatever the "
    "arguments are, and the earlier answer is not repeated. If another call is meant, send it with another "
    "idempotency key."
)
_OVERTAKEN = "Something that this call rests on changed while it waited. Nothing was sent. Make the call again."
_UNANSWERED = "Whose the thing is that the arguments name cannot be found out at the moment. Try again later."
_APPROVAL = "This call needs the approval of a person. Nothing was done."


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A resource that the arguments name.

    Args:
        resource: as its owner described it; None for one that the owner does not know or could not describe.
        resource_type: of the rule under which it was looked for.
        check: `tenant`: its tenant must be the caller's, and policy must agree; `policy`: policy alone says.
        unanswered: the owner could not be asked at all, whatever is named.
        why: there is none; for the operator alone, without the identifier and without any value.
    """

    resource: Resource | None
    resource_type: str = ""
    check: Literal["tenant", "policy"] = "tenant"
    unanswered: bool = False
    why: str = ""

    def told(self, *, tenant: str) -> str:
        """A line for the operator, never for the caller: whose it is, and why that is not enough where it is not.

        Args:
            tenant: the caller's.
        """
        if self.resource is None:
            return f"{self.resource_type or 'resource'}: unknown, because {self.why or 'nobody said whose it is'}"
        whose = f"{self.resource.resource_type} {self.resource.resource_id}: of {self.resource.tenant or 'no tenant'}"
        if _is_usable(self, tenant=tenant):
            return whose
        return f"{whose}, not the caller's {tenant}" if tenant else f"{whose}, and the caller has no tenant"


def judge(
    call: ToolCall,
    *,
    tool: Tool | None,
    in_reach: bool,
    decision: Decision | None,
    checker: ArgumentChecker,
    tenant: str = "",
    offered: bool | None = None,
    resources: Sequence[Named] = (),
    targets: Sequence[Decision] = (),
    limited: Limited | None = None,
    earlier_trace: str = "",
    overtaken: bool = False,
    retired: str = "",
) -> Verdict:
    """The verdict on one call as things stand now.

    Args:
        tool: the tool in service under the call's id, or None.
        in_reach: whether this caller may know of it.
        decision: policy's word on this call, taken now; with a granted approval at hand it says permit.
        tenant: the caller's.
        offered: whether this definition was offered to the caller lately; None where that is not asked for.
        resources: all that the arguments name. targets: policy's word on the call with each known one of them, taken
            now; the strictest word holds.
        limited: the limit that refuses the call, if one does.
        earlier_trace: of the caller's own call that made this write already; "" for none.
        overtaken: what the call waited for (owners, an approval, a session) rests on what is not in force any more.
        retired: what a caller who could have known the tool is told of one that is gone; "" for everybody else.
    """
    if retired and not in_reach:
        return _refused(Code.NOT_AVAILABLE, retired, check="retired")
    if tool is None:
        return _refused(Code.NOT_AVAILABLE, _NOT_AVAILABLE, check="known")
    if not in_reach:
        return _refused(Code.NOT_AVAILABLE, _NOT_AVAILABLE, check="reach")
    if offered is False:
        return _refused(Code.NOT_OFFERED, _NOT_OFFERED, check="offered")
    if call.offered_digest and call.offered_digest != tool.digest:
        return _refused(Code.CONFLICT, _CONFLICT, check="digest")
    if decision is None or not _permits(decision):
        return _refused(Code.NOT_AVAILABLE, _NOT_AVAILABLE, check="policy", decision=decision)
    if refused := _check_arguments(call, tool=tool, checker=checker):
        return refused
    strict = strictest(decision, targets)
    if overtaken:
        return _refused(Code.CONFLICT, _OVERTAKEN, check="overtaken", decision=strict)
    if any(one.unanswered for one in resources):
        return _refused(Code.UNAVAILABLE, _UNANSWERED, check="resource", decision=strict)
    if not all(_is_usable(one, tenant=tenant) for one in resources) or not _permits(strict):
        return _refused(Code.NOT_AVAILABLE, _RESOURCE, check="resource", decision=strict)
    if strict.effect is not Effect.PERMIT and not fits_a_preview(call.arguments):
        return _refused(Code.INVALID_ARGUMENTS, _TOO_LARGE, check="size", decision=strict)
    if limited is not None:
        return _limited(limited)
    if earlier_trace:
        words = _SAME_KEY if call.idempotency_key else _DUPLICATE
        return _refused(Code.DUPLICATE, words, check="duplicate", earlier_trace=earlier_trace)
    if strict.effect is not Effect.PERMIT:
        return _refused(Code.NEEDS_APPROVAL, _APPROVAL, check="approval", decision=strict)
    return Verdict(code=Code.OK, message="", policies=strict.policies)


def strictest(decision: Decision, targets: Sequence[Decision]) -> Decision:
    """One decision out of several that must all agree: forbid before approval before permit, with every error.

    The policies are those that made it what it is.
    """
    order = (Effect.FORBID, Effect.NEEDS_APPROVAL, Effect.PERMIT)
    effect = min((one.effect for one in (decision, *targets)), key=order.index)
    said = [one for one in (decision, *targets) if one.effect is effect]
    return Decision(
        effect=effect,
        policies=tuple(dict.fromkeys(policy for one in said for policy in one.policies)),
        errors=tuple(dict.fromkeys(error for one in (decision, *targets) for error in one.errors)),
    )


def _permits(decision: Decision) -> bool:
    return not decision.errors and decision.effect is not Effect.FORBID


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


def _is_usable(named: Named, *, tenant: str) -> bool:
    """An unknown owner is nobody's tenant, and neither is a caller without one."""
    if named.resource is None:
        return False
    return named.check == "policy" or (bool(tenant) and named.resource.tenant == tenant)


def _limited(limited: Limited) -> Verdict:
    words, check = (_CONCURRENT, "concurrent") if limited.concurrent else (_RATE, "rate")
    return _refused(Code.RATE_LIMITED, words.format(of=_OF[limited.by]), check=check)


def _refused(
    code: Code,
    message: str,
    *,
    check: str,
    decision: Decision | None = None,
    faults: tuple[ArgumentFault, ...] = (),
    earlier_trace: str = "",
) -> Verdict:
    policies = decision.policies if decision else ()
    return Verdict(
        code=code, message=message, check=check, faults=faults, policies=policies, earlier_trace=earlier_trace
    )
