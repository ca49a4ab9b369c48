"""Who may approve a waiting call.

Below: `asking.py`, `policies.py`. Above: `engine.py`.

Two cases
1. No policy names Action::"approve" in its scope: whoever the edge lets act as an approver may approve, but for its own
   request and for requests of another tenant than its own.
2. Some do: these policies decide, and they alone. A bare `action` is none of them, since a permit for every action
   would let callers approve their own calls. Two bounds stay unless a permit behind the decision was written with them
   in mind: own requests need one that reads `context.own_request`, and requests of another tenant than the approver's
   own one that reads `context.requester_tenant`.

A request is the approver's own where it comes from the approver's subject in the same tenant, or where the approver
acts for the one who asked, or for the one in whose name it was asked. Where one of the two has no tenant, the same name
is enough. A user in whose name an agent asked is another than the agent, and may approve.

No tenant means none, never any: an approver without one that came in by a token, a key or a certificate is of another
tenant than every request that has one. The operator's own are not: the local operator, a caller file given with `--as`,
and callers that the program itself makes (no credential at all) approve for all tenants where they have none.
"""

from __future__ import annotations

from toolcrib.policy.asking import Asking, ask, decision_of, entities_of
from toolcrib.policy.policies import Policies
from toolcrib.types import ApprovalRequest, Caller, Channel, Decision, Effect, Tool

BY_DEFAULT = "built-in: approver"
OWN_REQUEST = "built-in: own request"
OTHER_TENANT = "built-in: other tenant"
_OPERATORS = ("local", "file")
"""Kinds of `Credential` that nobody but the operator has."""


def approval_decision(
    approver: Caller, *, tool: Tool, request: ApprovalRequest, channel: Channel, policies: Policies
) -> Decision:
    """Whether this approver may let this call run: `PERMIT` or `FORBID`. An error denies.

    Raises:
        Exception: whatever Cedar raises; the caller of this denies.
    """
    own = is_own_request(approver, request)
    decisions = []
    for one in approver.chain:
        foreign = _is_foreign(one, request, is_operators=_is_operators(approver))
        if policies.approve.ids:
            asking = _asking(one, request, channel=channel, own=own)
            decisions.append(_by_policy(asking, tool=tool, policies=policies, own=own, foreign=foreign))
        else:
            decisions.append(_by_default(own=own, foreign=foreign))
    # Who acts for somebody approves only what that one may approve, too.
    return next((decision for decision in decisions if decision.effect is not Effect.PERMIT), decisions[0])


def request_by(asker: Caller, tool: Tool | None = None, *, channel: str = "") -> ApprovalRequest:
    """A request as if this caller had made it, to try out who may approve it: who asks, for whom and for which tool."""
    return ApprovalRequest(
        approval_id="",
        key="",
        subject=asker.subject,
        tenant=asker.tenant,
        on_behalf_of=asker.on_behalf_of,
        tool_id=tool.tool_id if tool else "",
        digest=tool.digest if tool else "",
        arguments_preview="",
        state="pending",
        created_at="",
        expires_at="",
        channel=channel,
    )


def is_own_request(approver: Caller, request: ApprovalRequest) -> bool:
    """Whether the approver asked for this call itself, or acts for whoever did.

    Without a tenant on one of the two sides, the names decide: a name without a tenant may be anybody's of that name.
    """
    asked = {request.subject, request.on_behalf_of} - {""}
    for number, one in enumerate(approver.chain):
        if one.tenant and request.tenant and one.tenant != request.tenant:
            continue
        acts_for_it = one.on_behalf_of in asked or (number > 0 and one.subject in asked)
        if one.subject == request.subject or acts_for_it:
            return True
    return False


def _is_foreign(approver: Caller, request: ApprovalRequest, *, is_operators: bool) -> bool:
    """Whether the request is of another tenant than this one. No tenant is another one, too, but for the operator's."""
    if approver.tenant == request.tenant:
        return False
    return bool(approver.tenant) or not is_operators


def _is_operators(approver: Caller) -> bool:
    """Whether nobody in the chain came in by what somebody else may hold."""
    return all(one.credential is None or one.credential.kind in _OPERATORS for one in approver.chain)


def _by_default(*, own: bool, foreign: bool) -> Decision:
    if own:
        return Decision(effect=Effect.FORBID, policies=(OWN_REQUEST,))
    if foreign:
        return Decision(effect=Effect.FORBID, policies=(OTHER_TENANT,))
    return Decision(effect=Effect.PERMIT, policies=(BY_DEFAULT,))


def _asking(approver: Caller, request: ApprovalRequest, *, channel: Channel, own: bool) -> Asking:
    return Asking(
        caller=approver,
        channel=channel,
        extra={"own_request": own, "requester": request.subject, "requester_tenant": request.tenant},
    )


def _by_policy(asking: Asking, *, tool: Tool, policies: Policies, own: bool, foreign: bool) -> Decision:
    (result,) = ask(
        asking,
        [tool],
        action="approve",
        approved=False,
        handle=policies.approve.handle,
        entities=entities_of(asking.caller, tool, policies.schema),
    )
    decision = decision_of(result, policies.approve.labels)
    behind = {policies.approve.whole_id(reason) for reason in result.diagnostics.reasons}
    if decision.effect is not Effect.PERMIT:
        return decision
    if own and policies.owning.isdisjoint(behind):
        return Decision(effect=Effect.FORBID, policies=(OWN_REQUEST, *decision.policies))
    if foreign and policies.crossing.isdisjoint(behind):
        return Decision(effect=Effect.FORBID, policies=(OTHER_TENANT, *decision.policies))
    return decision
