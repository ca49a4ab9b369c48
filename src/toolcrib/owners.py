"""Whose the resources are that a call names: their owners are asked, each in the way that its rule says.

    lookup_tool ─▶ a read tool of the owner    url ─▶ the owner's HTTP endpoint    neither ─▶ a resolver in Python

Floor 4. Above: `dispatch.py`, between two verdicts. Below: `gate/resources.py` reads pointers and answers, `sending.py`
and `connectors/lookup.py` ask.

Invariants
1. Whatever goes wrong, an owner that did not plainly answer gives None, and the gate refuses (I2); nothing is raised.
   An owner that could not be asked is told apart: that is no word about the resource.
2. All owners of one call are asked within one deadline.
3. A lookup tool only reads: nobody judged its call. It is opened with the crib's own credentials, never with the
   caller's: the answer is the owner's word.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeAlias

from toolcrib.connectors.lookup import look_up
from toolcrib.errors import ToolcribError
from toolcrib.gate.checks import Named
from toolcrib.gate.duplicates import may_write
from toolcrib.gate.resources import (
    ABSENT,
    lookup_argument,
    names_one,
    resource_from_answer,
    resource_from_body,
    resource_from_resolver,
)
from toolcrib.pipeline import Pipeline
from toolcrib.sending import Sender, failed_on_the_way
from toolcrib.settings import Settings, reveal
from toolcrib.types import Caller, Resource, ResourceRule, SecretRef, Tool, ToolCall

Resolver: TypeAlias = Callable[[str, Caller], Awaitable[Resource | None]]
"""Takes a resource's id and who asks; gives the resource with its tenant and owner, or None where there is none."""

_LOOKUP_S = 10.0
_MAX_ANSWER_BYTES = 1024 * 1024
_log = logging.getLogger(__name__)


class _NoAnswerError(Exception):
    """An owner that could not be asked, or did not answer: nothing is known of the resource, not even that it is not
    there."""


def _only_reads(tool: Tool) -> bool:
    """Whether it may be asked with nobody's rights and nobody's approval."""
    if may_write(tool):
        _log.error('%s is named as a lookup tool and may write, so it is not asked: say risk = "read"', tool.tool_id)
        return False
    return True


class Owners:
    """Asks owners.

    Args:
        resolvers: resource type -> who knows resources of that type, for rules that name no other way.
    """

    def __init__(
        self,
        *,
        sender: Sender,
        pipeline: Callable[[], Pipeline],
        settings: Callable[[], Settings],
        resolvers: Mapping[str, Resolver],
    ) -> None:
        self._sender = sender
        self._pipeline = pipeline
        self._settings = settings
        self._resolvers = resolvers

    async def named(self, rules: Sequence[ResourceRule], call: ToolCall, caller: Caller) -> tuple[Named, ...]:
        """Each resource that the arguments name, as its owner describes it; without one where it cannot say."""
        until = _now_s() + max([_LOOKUP_S, *(self._own_limit_s(rule) for rule in rules)])
        found: list[Named] = []
        for rule in rules:
            named = lookup_argument(rule, call.arguments)
            if named is ABSENT:
                continue
            try:
                resource = await self._asked(rule, named, caller, until=until) if names_one(named) else None
                found.append(Named(resource=resource, check=rule.check))
            except _NoAnswerError:
                found.append(Named(resource=None, check=rule.check, unanswered=True))
        return tuple(found)

    def _own_limit_s(self, rule: ResourceRule) -> float:
        """Seconds that the server of a lookup tool may take for any call; 0 where there is none."""
        owner = self._in_service(rule.lookup_tool) if rule.lookup_tool else None
        return self._settings().server(owner.server_id).call_timeout_s if owner else 0.0

    async def _asked(self, rule: ResourceRule, named: str | int, caller: Caller, *, until: float) -> Resource | None:
        """The owner's word, or None. `until`: seconds on the event loop's clock.

        Raises:
            _NoAnswerError: it could not be asked, or did not answer.
        """
        try:
            if rule.lookup_tool:
                return await self._by_tool(rule, named, until=until)
            if rule.url:
                return await self._by_url(rule, named, until=until)
            return await self._by_resolver(rule, named, caller, until=until)
        except _NoAnswerError:
            raise
        # A resolver is the application's and may raise anything; its text may quote what it was asked for.
        except Exception as fault:  # noqa: BLE001
            what = fault.what if isinstance(fault, ToolcribError) else type(fault).__name__
            _log.warning("whose a %s is could not be found out: %s", rule.resource_type, what)
            return None

    async def _by_tool(self, rule: ResourceRule, named: str | int, *, until: float) -> Resource | None:
        if not (owner := self._in_service(rule.lookup_tool)) or not _only_reads(owner):
            return None
        line = self._sender.line(owner.server_id, caller=None)
        try:
            async with asyncio.timeout_at(until):
                is_open = await line.open()
            if not is_open:
                raise _NoAnswerError
            owner, question = self._in_service(rule.lookup_tool), {rule.lookup_argument: named}
            if owner is None or not _only_reads(owner) or self._pipeline().checker.check(owner, question):
                return None
            answer = await line.send(owner, question, timeout_s=_left_s(until))
            if failed_on_the_way(answer):
                raise _NoAnswerError
            return resource_from_answer(rule, named, answer)
        finally:
            line.close()

    async def _by_url(self, rule: ResourceRule, named: str | int, *, until: float) -> Resource | None:
        root = self._settings().root
        headers = {k: reveal(v, root=root) if isinstance(v, SecretRef) else v for k, v in rule.headers.items()}
        body = await look_up(
            rule.url,
            resource_id=str(named),
            headers=headers,
            timeout_s=_left_s(until),
            max_bytes=_MAX_ANSWER_BYTES,
        )
        return resource_from_body(rule, named, body)

    async def _by_resolver(
        self, rule: ResourceRule, named: str | int, caller: Caller, *, until: float
    ) -> Resource | None:
        resolver = self._resolvers.get(rule.resource_type)
        if resolver is None:
            _log.warning("nobody knows whose a %s is: no resolver is registered for it", rule.resource_type)
            return None
        async with asyncio.timeout_at(until):
            found = await resolver(str(named), caller)
        return resource_from_resolver(rule, named, found)

    def _in_service(self, tool_id: str) -> Tool | None:
        pipeline = self._pipeline()
        number = pipeline.classes.number_of(tool_id)
        return None if number is None else pipeline.snapshot.tools[number]


def _now_s() -> float:
    return asyncio.get_running_loop().time()


def _left_s(until: float) -> float:
    return max(0.001, until - _now_s())
