"""The desk where waiting calls are decided: by an approver, by a webhook, or by the caller itself where policy says so.

Floor 4. Above: `crib.py`. Below: `approvals.py` decides one request; this file finds it, its tool and who decides.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from toolcrib import curation
from toolcrib.approvals import Decided, ask_webhook, decide, find_in
from toolcrib.callers import Callers
from toolcrib.errors import ToolcribError
from toolcrib.gate.offers import holder_key
from toolcrib.pipeline import Pipeline
from toolcrib.settings import Settings
from toolcrib.store.protocol import Store
from toolcrib.types import ApprovalRequest, Caller, Channel, Effect, Tool

_log = logging.getLogger(__name__)


class ApprovalDesk:
    """Decides under what is in force at the moment of deciding.

    Args:
        pipeline: gives the pipeline in force; raises ToolcribError when there is none. settings: those in force.
    """

    def __init__(
        self, store: Store, *, pipeline: Callable[[], Pipeline], settings: Callable[[], Settings], callers: Callers
    ) -> None:
        self._store = store
        self._pipeline = pipeline
        self._settings = settings
        self._callers = callers

    def decide(self, approval_id: str, *, granted: bool, approver: Caller, channel: Channel) -> Decided:
        """Grant or deny a pending request, by its id or a unique beginning of it. Denying needs no valid policy."""
        pipeline = self._pipeline_or_none()
        request = find_in(self._store.approvals(), approval_id)
        return decide(
            self._store,
            pipeline.policy if pipeline else None,
            approval_id=approval_id,
            granted=granted,
            approver=self._callers.established(approver),
            channel=channel,
            tool=pipeline.tool(request.tool_id) if pipeline and request else None,
            now=curation.now(),
        )

    def own(self, approval_id: str, *, caller: Caller, channel: Channel) -> ApprovalRequest | None:
        """The caller's own request that waits under exactly this id, where the caller may be asked to decide it itself.

        Returns:
            None unless `[approvals] elicitation` is on and policy lets this caller approve what it asked for.
        """
        pipeline, who = self._pipeline_or_none(), self._callers.established(caller)
        known = [one for one in self._store.approvals() if one.approval_id == approval_id and one.state == "pending"]
        request = known[0] if known else None
        tool = pipeline.tool(request.tool_id) if pipeline and request else None
        if not self._settings().approvals.elicitation or pipeline is None or request is None or tool is None:
            return None
        if request.holder != holder_key(who):
            return None
        decision = pipeline.policy.decide_approval(who, tool=tool, request=request, channel=channel)
        return request if decision.effect is Effect.PERMIT and not decision.errors else None

    def answer(self, approval_id: str, *, granted: bool, caller: Caller, channel: Channel) -> bool:
        """The caller's decision about its own waiting request; False, and nothing is decided, where it may not."""
        if self.own(approval_id, caller=caller, channel=channel) is None:
            return False
        return self.decide(approval_id, granted=granted, approver=caller, channel=channel).done

    async def ask_webhook(self, request: ApprovalRequest, tool: Tool) -> None:
        """Tell the configured webhook of a new request; its answer may decide at once."""
        await ask_webhook(self._settings(), self._store, self._pipeline().policy, request, tool)

    def _pipeline_or_none(self) -> Pipeline | None:
        try:
            return self._pipeline()
        except ToolcribError as fault:
            _log.error("nothing can be approved at the moment: %s", fault)
            return None
