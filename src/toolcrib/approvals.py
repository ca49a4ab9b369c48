"""Who may let a waiting call run: one road for every approver, at the terminal, behind a webhook, or in a client.

Floor 4. Above: `crib.py`, `dispatch.py`'s hook, `cli/approvals.py`. Below: the store makes each step once, policy says
who may approve, `connectors/webhook.py` asks the operator's service.

    known ▸ pending ▸ not expired ▸ (granting:) tool in service under the digest that was asked for ▸ policy ▸ store

Invariants
1. An approver is never the caller unless policy says so; `PolicyEngine.decide_approval` has the word, errors deny (I2).
2. A grant is for the definition that was asked for: a changed or withdrawn tool is not granted any more.
3. Refusing a request needs no right: nothing runs by it, and it works while policy is broken.
4. The `by` of a webhook's answer is an approver of the request's own tenant, known by name alone: under the caller's
   name it is the caller, and a policy that asks for a role is not satisfied by it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal, Protocol

from toolcrib import curation
from toolcrib.connectors.webhook import WebhookAnswer, notify
from toolcrib.errors import ConfigError
from toolcrib.settings import Settings, reveal
from toolcrib.types import ApprovalRequest, Caller, CallerKind, Channel, Decision, Effect, JsonObject, Tool

_log = logging.getLogger(__name__)
MIN_ID_CHARS: Final = 6
"""Of the beginning of an approval's id; shorter ones are met by accident."""

Status = Literal["done", "not_found", "not_pending", "expired", "changed", "not_allowed"]


class ApprovalStore(Protocol):
    """The part of the store that holds requests."""

    def approvals(self, *, key: str = "") -> Sequence[ApprovalRequest]: ...
    def decide_approval(self, approval_id: str, *, granted: bool, by: str, now: str) -> bool: ...


class ApprovalPolicy(Protocol):
    """The policy engine's word on approvers."""

    def decide_approval(
        self, approver: Caller, *, tool: Tool, request: ApprovalRequest, channel: Channel
    ) -> Decision: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What became of an approver's decision. `policies`, `errors`: of the policy decision; the operator's view only."""

    status: Status
    message: str
    approval_id: str = ""
    granted: bool = False
    policies: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()

    @property
    def done(self) -> bool:
        return self.status == "done"

    def to_dict(self) -> dict[str, Any]:
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}


def find_in(requests: Sequence[ApprovalRequest], approval_id: str) -> ApprovalRequest | None:
    """The request with this id, or with a beginning of it that no other has; None when there is none such."""
    if len(approval_id) < MIN_ID_CHARS:
        return None
    known = [request for request in requests if request.approval_id.startswith(approval_id)]
    exact = [request for request in known if request.approval_id == approval_id]
    found = exact or known
    return found[0] if len(found) == 1 else None


def decide(
    store: ApprovalStore,
    policy: ApprovalPolicy | None,
    *,
    approval_id: str,
    granted: bool,
    approver: Caller,
    channel: Channel,
    tool: Tool | None,
    now: str,
) -> Decided:
    """Grant or refuse a waiting request, once, if this approver may.

    Args:
        policy: None while no policy can be used; nothing is granted then.
        approval_id: the id or a unique beginning of it, of `MIN_ID_CHARS` or more.
        approver: established by the edge, never by what a request says.
        tool: in service now under the request's tool id, or None.
        now: ISO 8601, UTC, in microseconds, as the store's stamps are.
    """
    request = find_in(store.approvals(), approval_id)
    if request is None:
        return Decided(status="not_found", message=f"nothing waits under {approval_id}", approval_id=approval_id)
    if fault := _not_waiting(request, now=now):
        return fault
    policies: tuple[str, ...] = ()
    if granted:
        refused, policies = _may_grant(policy, request, approver=approver, channel=channel, tool=tool)
        if refused is not None:
            return refused
    if not store.decide_approval(request.approval_id, granted=granted, by=approver.subject, now=now):
        return _not_waiting(find_in(store.approvals(), request.approval_id) or request, now=now) or _gone(request)
    return Decided(
        status="done",
        message=f"{'granted' if granted else 'denied'} {request.approval_id}",
        approval_id=request.approval_id,
        granted=granted,
        policies=policies,
    )


async def ask_webhook(
    settings: Settings, store: ApprovalStore, policy: ApprovalPolicy | None, request: ApprovalRequest, tool: Tool
) -> Decided | None:
    """Tell the configured webhook of a new request, and take its decision if it answers with one.

    Returns:
        None while nobody has decided: no webhook, no answer, none that can be trusted. The request then waits.
    """
    options = settings.approvals
    if not options.webhook:
        return None
    try:
        secret = reveal(options.webhook_secret, root=settings.root) if options.webhook_secret else ""
    except ConfigError as fault:
        _log.error("the approvals webhook was not asked: its secret cannot be read: %s", fault)
        return None
    answer = await notify(
        options.webhook, body=webhook_body(request, tool), secret=secret.strip(), timeout_s=options.webhook_timeout_s
    )
    if not answer.decision:
        return None
    decided = decide(
        store,
        policy,
        approval_id=request.approval_id,
        granted=answer.decision == "granted",
        approver=_approver(answer, request, settings=settings),
        channel=Channel.HTTP,
        tool=tool,
        now=curation.now(),
    )
    if not decided.done:
        _log.warning("the webhook's decision about %s was not taken: %s", request.approval_id, decided.message)
    return decided


def webhook_body(request: ApprovalRequest, tool: Tool) -> JsonObject:
    """What the webhook is told: everything that an approver decides by, arguments with their secrets masked."""
    return {
        "approval_id": request.approval_id,
        "caller": {
            "subject": request.subject,
            "tenant": request.tenant,
            "on_behalf_of": request.on_behalf_of,
            "channel": request.channel,
        },
        "tool": {"tool_id": request.tool_id, "digest": request.digest, "risk": tool.metadata.risk.value},
        "arguments_preview": request.arguments_preview,
        "policies": list(request.policies),
        "created_at": request.created_at,
        "expires_at": request.expires_at,
    }


def at_terminal(operator: Caller, *, name: str) -> Caller:
    """The person at the terminal as an approver: the local operator's rights under a name of their own.

    Calls from the command line and over stdio are made by the local operator (`local-operator`, if nothing else is
    configured); whoever approves them there is a user of the operating system, `ann`. These are two subjects, so the
    rule "never the caller" leaves the person at the terminal the right to approve what an agent asked for under the
    operator's name. Who should not have that right must not have this machine's store, or gets a policy on `approve`.
    """
    return replace(operator, subject=name, kind=CallerKind.USER, on_behalf_of="", acting_for=None, credential=None)


def pretty_preview(request: ApprovalRequest) -> str:
    """The arguments over several lines; texts keep their escapes, so none of them can look like a line of ours."""
    try:
        return json.dumps(json.loads(request.arguments_preview), indent=2, ensure_ascii=False)
    except ValueError:
        return request.arguments_preview


def _not_waiting(request: ApprovalRequest, *, now: str) -> Decided | None:
    """Why this request can be decided by nobody any more; None while it can."""
    if request.state != "pending":
        by = f" by {request.decided_by}" if request.decided_by else ""
        message = f"{request.approval_id} does not wait any more: it was {request.state}{by}"
        return Decided(status="not_pending", message=message, approval_id=request.approval_id)
    if request.expires_at <= now:
        message = f"{request.approval_id} expired at {request.expires_at}; the call must be made again"
        return Decided(status="expired", message=message, approval_id=request.approval_id)
    return None


def _gone(request: ApprovalRequest) -> Decided:
    """The store had it no more, though it was there a moment ago."""
    message = f"nothing waits under {request.approval_id}"
    return Decided(status="not_pending", message=message, approval_id=request.approval_id)


def _may_grant(
    policy: ApprovalPolicy | None,
    request: ApprovalRequest,
    *,
    approver: Caller,
    channel: Channel,
    tool: Tool | None,
) -> tuple[Decided | None, tuple[str, ...]]:
    """Why this approver cannot grant this request, if so; and the policies that decided."""
    if tool is None or (tool.tool_id, tool.digest) != (request.tool_id, request.digest):
        what = "is not in service any more" if tool is None else "has another definition now"
        message = f"{request.tool_id} {what}; the call must be made again"
        return Decided(status="changed", message=message, approval_id=request.approval_id), ()
    if policy is None:
        message = "no policy can be used at the moment, so nobody may approve"
        return Decided(status="not_allowed", message=message, approval_id=request.approval_id), ()
    decision = policy.decide_approval(approver, tool=tool, request=request, channel=channel)
    if decision.effect is Effect.PERMIT and not decision.errors:
        return None, decision.policies
    refused = Decided(
        status="not_allowed",
        message=_not_allowed(approver, request, decision),
        approval_id=request.approval_id,
        policies=decision.policies,
        errors=decision.errors,
    )
    return refused, decision.policies


def _not_allowed(approver: Caller, request: ApprovalRequest, decision: Decision) -> str:
    if decision.errors:
        return f"policy could not be evaluated: {decision.errors[0]}"
    if decision.policies:
        return f"{approver.subject} may not approve this: {', '.join(decision.policies)}"
    if approver.subject == request.subject:
        return f"{approver.subject} asked for this call, and nobody approves their own unless a policy says so"
    return f"no policy lets {approver.subject} approve this"


def _approver(answer: WebhookAnswer, request: ApprovalRequest, *, settings: Settings) -> Caller:
    return Caller(
        subject=answer.by,
        tenant=request.tenant,
        environment=settings.crib.environment,
        region=settings.crib.region,
    )
