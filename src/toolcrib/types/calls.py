"""What is proposed, judged and run: calls, verdicts, approvals, resources, results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from toolcrib.types.registry import SecretRef
from toolcrib.types.shapes import JsonObject


class Code(StrEnum):
    """What a caller is told. `not_available` covers missing, quarantined and not permitted alike (I1).

    `timeout`: no answer in time to a call that only reads. `unknown_outcome`: none to one that may have changed
    something, so that nobody sends it again in good faith. `no_credential`: the caller has none for this server.
    """

    OK = "ok"
    NOT_AVAILABLE = "not_available"
    INVALID_ARGUMENTS = "invalid_arguments"
    NEEDS_APPROVAL = "needs_approval"
    CONFLICT = "conflict"
    NOT_OFFERED = "not_offered"
    DUPLICATE = "duplicate"
    RATE_LIMITED = "rate_limited"
    NO_CREDENTIAL = "no_credential"
    TIMEOUT = "timeout"
    UNKNOWN_OUTCOME = "unknown_outcome"
    TOOL_ERROR = "tool_error"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A proposed call.

    Args:
        offered_digest: the digest under which the tool was offered, if the edge knows it; a mismatch is a conflict.
        idempotency_key: the caller's own word that this is, or is not, the same write as one before.
    """

    tool_id: str
    arguments: JsonObject
    offered_digest: str = ""
    idempotency_key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentFault:
    """One thing wrong with the arguments, in words a model can act on. `path` is a JSON pointer, "" for the root."""

    path: str
    expected: str
    got: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """May this very call run. `check` names the first check that failed; the operator's view only.

    `earlier_trace`: of a duplicate write, the trace of the caller's own call before it.
    """

    code: Code
    message: str
    check: str = ""
    faults: tuple[ArgumentFault, ...] = ()
    policies: tuple[str, ...] = ()
    approval_id: str = ""
    earlier_trace: str = ""

    @property
    def allowed(self) -> bool:
        return self.code is Code.OK


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """Somebody with the right to do so may let one exact call run, once, for a while.

    Args:
        key: digest over caller, tool id, tool digest and canonical arguments; another argument is another key.
        arguments_preview: the arguments with secrets masked, for the approver.
        created_at, expires_at: ISO 8601, UTC.
        holder: digest over the identity of the caller that asked, and of whom it acts for.
        on_behalf_of, channel: of that caller. policies: the rules that ask for the approval.
    """

    approval_id: str
    key: str
    subject: str
    tenant: str
    tool_id: str
    digest: str
    arguments_preview: str
    state: Literal["pending", "granted", "denied", "used"]
    created_at: str
    expires_at: str
    decided_by: str = ""
    holder: str = ""
    on_behalf_of: str = ""
    channel: str = ""
    policies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLimit:
    """A limit that calls share: those of one caller, tenant, tool or server (`by`), each counted on its own.

    Args:
        match: glob on what is counted: the subject, the tenant, the tool id or the server id.
        calls_per_minute: 0 for no limit. concurrent: calls under way at a time; 0 for no limit.
    """

    by: Literal["caller", "tenant", "tool", "server"]
    match: str = "*"
    calls_per_minute: int = 0
    concurrent: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceRule:
    """Which resource the arguments of some tools name, and who knows its owner.

    The owner is asked through a read tool (`lookup_tool`), over HTTP (`url`), or through a resolver that was registered
    in Python for the resource type (neither of the two).

    Args:
        pattern: glob on tool ids.
        argument: JSON pointer into the arguments; an absent value means that the call names no such resource.
        lookup_tool: tool id of a read tool of the owner, called with `{lookup_argument: value}`.
        url: of the owner's endpoint; `{id}` stands for the percent-encoded value. headers: as of a server.
        tenant: JSON pointer into the structured answer: the resource's tenant. owner: likewise; "" for none.
        check: `tenant`: the resource's tenant must be the caller's, and policy must agree; `policy`: policy alone says.
    """

    resource_type: str
    pattern: str
    argument: str
    lookup_tool: str = ""
    lookup_argument: str = ""
    url: str = ""
    headers: Mapping[str, str | SecretRef] = field(default_factory=dict)
    tenant: str = ""
    owner: str = ""
    check: Literal["tenant", "policy"] = "tenant"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A resource that a call names, as its owner described it. `tenant` and `owner` are "" where it said none."""

    resource_type: str
    resource_id: str
    tenant: str
    owner: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a call gave.

    Args:
        content: MCP content blocks, as received; an empty tuple is a legitimate empty answer when `code` is `ok`.
        structured: `structuredContent` as received, or None.
        raw: the whole result object as received, for a faithful relay; None when no server answered.
        reached_server: whether the request may have left for the server (a write is then never sent again).
        refused: the server said that it did nothing: an unknown tool, invalid parameters, a credential that it does
            not take, too many requests.
        notes: what the output check has to say of it (see `gate/output.py`); labels, the content stays.
    """

    code: Code
    message: str = ""
    content: tuple[JsonObject, ...] = ()
    structured: Any = None
    raw: JsonObject | None = None
    reached_server: bool = False
    refused: bool = False
    notes: tuple[str, ...] = ()
