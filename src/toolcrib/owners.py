"""Whose the resources are that a call names: their owners are asked, each in the way that its rule says.

    lookup_tool ─▶ a read tool of the owner    url ─▶ the owner's HTTP endpoint    neither ─▶ a resolver in Python

Floor 4. Above: `dispatch.py`, between two verdicts. Below: `gate/resources.py` reads pointers and answers, `sending.py`
and `connectors/lookup.py` ask.

Invariants
1. Whatever goes wrong, an owner that did not plainly answer gives None, and the gate refuses (I2); nothing is raised.
   An owner that could not be asked is told apart: that is no word about the resource.
   Why there is no answer is for the operator: in the trace of each call, and once per cause in the log. It names
   neither identifiers nor other values.
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
    fault_of_answer,
    fault_of_body,
    fault_of_resolver,
    lookup_argument,
    names_one,
    resource_from_answer,
    resource_from_body,
    resource_from_resolver,
)
from toolcrib.pipeline import Pipeline
from toolcrib.sending import Sender, failed_on_the_way
from toolcrib.settings import Settings, reveal
from toolcrib.types import Caller, Code, Resource, ResourceRule, SecretRef, Tool, ToolCall

Resolver: TypeAlias = Callable[[str, Caller], Awaitable[Resource | None]]
"""Takes a resource's id and who asks; gives the resource with its tenant and owner, or None where there is none."""

_LOOKUP_S = 10.0
_MAX_ANSWER_BYTES = 1024 * 1024
_UNKNOWN = "its owner does not know it"
_NO_ONE = "the argument's value cannot name one record"
_SENT_AWAY = "the owner's endpoint does not know it, or did not answer with JSON"
_log = logging.getLogger(__name__)


class _UnansweredError(Exception):
    """An owner that could not be asked, or did not answer: nothing is known of the resource, not even that it is not
    there."""


class _UnknownError(Exception):
    """There is no resource to judge by.

    Args:
        broken: no resource of this kind can ever be described in this way: somebody has to mend a rule or an owner.
    """

    def __init__(self, why: str, *, broken: bool = True) -> None:
        super().__init__(why)
        self.broken = broken


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
        self._logged: set[tuple[str, str]] = set()

    async def named(self, rules: Sequence[ResourceRule], call: ToolCall, caller: Caller) -> tuple[Named, ...]:
        """Each resource that the arguments name, as its owner describes it; without one where it cannot say."""
        until = _now_s() + max([_LOOKUP_S, *(self._own_limit_s(rule) for rule in rules)])
        found: list[Named] = []
        for rule in rules:
            named = lookup_argument(rule, call.arguments)
            if named is ABSENT:
                continue
            if names_one(named):
                found.append(await self._named(rule, named, caller, until=until))
            else:
                found.append(_unknown(rule, _NO_ONE))
        return tuple(found)

    async def _named(self, rule: ResourceRule, named: str | int, caller: Caller, *, until: float) -> Named:
        """What its owner says of it, or why there is nothing to go by. `until`: seconds on the event loop's clock."""
        try:
            resource = await self._asked(rule, named, caller, until=until)
        except _UnansweredError as fault:
            return _unknown(rule, str(fault), unanswered=True)
        except _UnknownError as fault:
            if fault.broken:
                self._warn_once(rule, str(fault))
            return _unknown(rule, str(fault))
        # A resolver is the application's and may raise anything; its text may quote what it was asked for.
        except Exception as fault:  # noqa: BLE001
            what = fault.what if isinstance(fault, ToolcribError) else type(fault).__name__
            _log.warning("whose a %s is could not be found out: %s", rule.resource_type, what)
            return _unknown(rule, f"its owner could not be asked: {what}")
        return Named(resource=resource, resource_type=resource.resource_type, check=rule.check)

    def _warn_once(self, rule: ResourceRule, why: str) -> None:
        """Once per cause: it refuses every call that names such a record, and the trace of each says so again."""
        if (rule.resource_type, why) not in self._logged:
            self._logged.add((rule.resource_type, why))
            _log.warning("calls that name a %s are refused: unknown, because %s", rule.resource_type, why)

    def _own_limit_s(self, rule: ResourceRule) -> float:
        """Seconds that the server of a lookup tool may take for any call; 0 where there is none."""
        owner = self._in_service(rule.lookup_tool) if rule.lookup_tool else None
        return self._settings().server(owner.server_id).call_timeout_s if owner else 0.0

    async def _asked(self, rule: ResourceRule, named: str | int, caller: Caller, *, until: float) -> Resource:
        """The owner's word.

        Raises:
            _UnansweredError: it could not be asked, or did not answer.
            _UnknownError: it gave no word to go by.
        """
        if rule.lookup_tool:
            return await self._by_tool(rule, named, until=until)
        if rule.url:
            return await self._by_url(rule, named, until=until)
        return await self._by_resolver(rule, named, caller, until=until)

    async def _by_tool(self, rule: ResourceRule, named: str | int, *, until: float) -> Resource:
        line = self._sender.line(self._lookup_tool(rule).server_id, caller=None)
        try:
            async with asyncio.timeout_at(until):
                is_open = await line.open()
            if not is_open:
                raise _UnansweredError(f"the server of its lookup tool cannot be asked ({line.check})")
            owner, question = self._lookup_tool(rule), {rule.lookup_argument: named}
            if faults := self._pipeline().checker.check(owner, question):
                fault = f"{faults[0].path or 'arguments'}: expected {faults[0].expected}"
                raise _UnknownError(f"the arguments of its lookup tool {rule.lookup_tool} do not fit: {fault}")
            answer = await line.send(owner, question, timeout_s=_left_s(until))
        finally:
            line.close()
        if failed_on_the_way(answer):
            raise _UnansweredError(f"its lookup tool did not answer ({answer.code})")
        resource = resource_from_answer(rule, named, answer)
        if resource is None:
            raise _UnknownError(fault_of_answer(rule, answer), broken=answer.code is Code.OK)
        return resource

    def _lookup_tool(self, rule: ResourceRule) -> Tool:
        """The tool in service that may be asked with nobody's rights and nobody's approval."""
        owner = self._in_service(rule.lookup_tool)
        if owner is None:
            raise _UnknownError(f"its lookup tool {rule.lookup_tool} is not in service")
        if may_write(owner):
            raise _UnknownError(f'its lookup tool {rule.lookup_tool} may write, so it is not asked: say risk = "read"')
        return owner

    async def _by_url(self, rule: ResourceRule, named: str | int, *, until: float) -> Resource:
        root = self._settings().root
        headers = {k: reveal(v, root=root) if isinstance(v, SecretRef) else v for k, v in rule.headers.items()}
        body = await look_up(
            rule.url,
            resource_id=str(named),
            headers=headers,
            timeout_s=_left_s(until),
            max_bytes=_MAX_ANSWER_BYTES,
        )
        if body is None:
            raise _UnknownError(_SENT_AWAY, broken=False)  # `look_up` has logged what is not plainly a 404
        resource = resource_from_body(rule, named, body)
        if resource is None:
            raise _UnknownError(fault_of_body(rule, body))
        return resource

    async def _by_resolver(self, rule: ResourceRule, named: str | int, caller: Caller, *, until: float) -> Resource:
        resolver = self._resolvers.get(rule.resource_type)
        if resolver is None:
            raise _UnknownError(f"no resolver is registered for {rule.resource_type}")
        async with asyncio.timeout_at(until):
            found = await resolver(str(named), caller)
        if fault := fault_of_resolver(rule, named, found):
            raise _UnknownError(fault)
        resource = resource_from_resolver(rule, named, found)
        if resource is None:
            raise _UnknownError(_UNKNOWN, broken=False)
        return resource

    def _in_service(self, tool_id: str) -> Tool | None:
        pipeline = self._pipeline()
        number = pipeline.classes.number_of(tool_id)
        return None if number is None else pipeline.snapshot.tools[number]


def _unknown(rule: ResourceRule, why: str, *, unanswered: bool = False) -> Named:
    return Named(resource=None, resource_type=rule.resource_type, check=rule.check, unanswered=unanswered, why=why)


def _now_s() -> float:
    return asyncio.get_running_loop().time()


def _left_s(until: float) -> float:
    return max(0.001, until - _now_s())
