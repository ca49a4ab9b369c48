"""What changes for approvers: whose calls, to which tools, they may let run.

Below: `samples.py`, `changes.py`, `engine.py`. Above: `compare.py`.

Every caller is tried as an approver, since nothing but policy says who is none: of its own requests, of another's in
its own tenant, in another one and in none, and of whoever a rule names. One without a tenant is tried twice, since it
is for all tenants only where it is the operator's own. Without any rule on approvals the built-in one holds
(`approving.py`), so that the first such rule, and the last one that goes, change much.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from toolcrib.policy.approving import is_own_request, request_by
from toolcrib.policy.changes import (
    MAX_DECISIONS,
    Asker,
    Change,
    ChangedRules,
    Part,
    Unseen,
    alike,
    channels_of,
    reads_tools,
    too_many,
)
from toolcrib.policy.classes import DecisionClasses
from toolcrib.policy.loaded import LoadedPolicy
from toolcrib.policy.rules import APPROVE
from toolcrib.policy.samples import ANOTHER, Comparisons, combined, comparisons, values_of
from toolcrib.types import ApprovalRequest, Caller, Channel, Credential, Effect, Tool

_REQUESTER, _TENANT = "context.requester", "context.requester_tenant"
_NETWORK = Credential(kind="token")
_Approvable: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]
"""Ids of tools whose calls may newly be approved, and of those whose calls no longer may."""


def approval_changes(
    old: LoadedPolicy,
    new: LoadedPolicy,
    *,
    changed: ChangedRules,
    tools: Sequence[Tool],
    classes: Sequence[DecisionClasses],
    askers: Sequence[Asker],
) -> Part:
    """What each caller may newly, or no longer, approve; nothing where the rules on approvals are the same."""
    if not changed.of_approvals:
        return Part()
    rules = [rule for rule in (*old.rules, *new.rules) if rule.covers(APPROVE)]
    found = comparisons(rules)
    groups = list(alike(tools, classes))
    if groups and not any(reads_tools(rule) for rule in rules):
        groups = [tuple(sorted(number for group in groups for number in group))]
    notes = [
        Unseen(
            where=found.unclear[path].where,
            text=f'"{found.unclear[path].label}" reads {path} in a way that no sample of a request is sure to meet',
        )
        for path in (_REQUESTER, _TENANT)
        if path in found.unclear
    ]
    changes: list[Change] = []
    n_left = MAX_DECISIONS
    for asker in askers:
        for channels in channels_of(asker, rules, {}):
            if n_left <= 0:
                notes.append(too_many("approvals"))
                return Part(changes=tuple(changes), unseen=tuple(dict.fromkeys(notes)))
            requests, all_of_them = _requests(asker.caller, found, channels[0], tools)
            if not all_of_them:
                notes.append(Unseen(where="", text="rules on approvals compare requests with more than was tried"))
            n_left -= len(requests) * len(groups) * len(_ways_in(asker.caller))
            changes += _of_asker(old, new, asker, channels, requests, groups=groups, tools=tools)
    return Part(changes=tuple(changes), unseen=tuple(dict.fromkeys(notes)))


def _of_asker(
    old: LoadedPolicy,
    new: LoadedPolicy,
    asker: Asker,
    channels: tuple[Channel, ...],
    requests: Sequence[tuple[str, ApprovalRequest]],
    *,
    groups: Sequence[tuple[int, ...]],
    tools: Sequence[Tool],
) -> Iterator[Change]:
    by_change: dict[_Approvable, list[str]] = {}
    for words, request in requests:
        seen: set[_Approvable] = set()
        for how, approver in _ways_in(asker.caller):
            change = _changed(old, new, approver, request, channels[0], groups=groups, tools=tools)
            if any(change) and change not in seen:
                by_change.setdefault(change, []).append(words + how)
            seen.add(change)
    for (more, less), words_of in by_change.items():
        told = tuple(dict.fromkeys(words_of))
        yield Change(asker=asker, channels=channels, circumstances=told, approve_gained=more, approve_lost=less)


def _ways_in(approver: Caller) -> tuple[tuple[str, Caller], ...]:
    """The approver as it came in, which is the operator's way, and where it makes a difference by a credential."""
    if all(one.tenant for one in approver.chain):
        return (("", approver),)
    return (("", approver), (", coming in by a token or a key", replace(approver, credential=_NETWORK)))


def _changed(
    old: LoadedPolicy,
    new: LoadedPolicy,
    approver: Caller,
    request: ApprovalRequest,
    channel: Channel,
    *,
    groups: Sequence[tuple[int, ...]],
    tools: Sequence[Tool],
) -> _Approvable:
    gained: list[int] = []
    lost: list[int] = []
    for group in groups:
        before, after = (
            policy.engine.decide_approval(approver, tool=tools[group[0]], request=request, channel=channel).effect
            for policy in (old, new)
        )
        if before is not after:
            (gained if after is Effect.PERMIT else lost).extend(group)
    more, less = (tuple(tools[number].tool_id for number in sorted(found)) for found in (gained, lost))
    return more, less


def _requests(
    approver: Caller, found: Comparisons, channel: Channel, tools: Sequence[Tool]
) -> tuple[list[tuple[str, ApprovalRequest]], bool]:
    """Requests to try, each in words."""
    own = [("requests of its own", _request(approver.subject, approver.tenant))]
    if approver.on_behalf_of:
        own.append(("requests of whom it acts for", _request(approver.on_behalf_of, approver.tenant)))
    subjects, tenants = (
        values_of(p, found, caller=approver, channel=channel, tools=tools) for p in (_REQUESTER, _TENANT)
    )
    chosen, all_of_them = combined(
        {
            "tenant": list(dict.fromkeys([approver.tenant, ANOTHER, "", *sorted(tenants)])),
            "subject": list(dict.fromkeys([ANOTHER, *sorted(subjects - {""})])),
        }
    )
    others = [
        (
            f"requests of {_who(each['subject'])} {_where(each['tenant'], approver)}",
            _request(each["subject"], each["tenant"]),
        )
        for each in chosen
    ]
    return [*own, *((words, r) for words, r in others if not is_own_request(approver, r))], all_of_them


def _request(subject: str, tenant: str) -> ApprovalRequest:
    return request_by(Caller(subject=subject, tenant=tenant))


def _who(subject: str) -> str:
    return "another caller" if subject == ANOTHER else f'"{subject}"'


def _where(tenant: str, approver: Caller) -> str:
    if tenant == ANOTHER:
        return "in another tenant"
    if not tenant:
        return "without a tenant"
    return "in its own tenant" if tenant == approver.tenant else f'in tenant "{tenant}"'
