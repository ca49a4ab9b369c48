"""Whether listed, found and callable are one set for every caller: tried on the operator's own catalog.

Above: `cli/verify.py`. Below: `world.py`, and the crib and gateway as they are.

    listed ⊆ found      each listed tool is among the answers to the words of its own name and description
    found ⊆ listed      whatever a search gives, or says that it dropped, is listed
    listed ⊆ callable   each listed tool, called, gives anything but `not_available` and `unavailable`
    callable ⊆ listed   what is in the catalog and not listed is not found, not described, and a call gives the very
                        bytes that an id gives which never existed

Invariants
1. No call leaves this process: servers are stand-ins.
2. What policy lets a caller know of, but not use, is neither listed nor held to be hidden.
3. A tool that only its own id finds cannot be found by somebody who needs it: it breaks parity, unless that is allowed.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolcrib.crib import Crib
from toolcrib.offer import Offer
from toolcrib.server.surface import SurfaceKind
from toolcrib.settings import Settings
from toolcrib.types import Caller, Channel, Code, Tool
from toolcrib.verify.asking import Seat, as_bytes, comparable, request
from toolcrib.verify.differences import Counterexample, excerpt, first_difference
from toolcrib.verify.groups import groups_of, seats_of, visible_to
from toolcrib.verify.mcp_wire import McpSurface
from toolcrib.verify.messages import MODERN
from toolcrib.verify.questions import UNKNOWN_ID, mcp_name, words_of
from toolcrib.verify.samples import sample_arguments
from toolcrib.verify.stand_in import Owner
from toolcrib.verify.world import world_of

_LIMIT = 50
SHOWN = 5
"""Tools that a report names, of those found by their ids only."""
_BUDGET_TOKENS = 10_000_000
_NUMBER = re.compile(rb'"id":\d+,')
_NEVER = (Code.NOT_AVAILABLE, Code.UNAVAILABLE)


@dataclass(slots=True, kw_only=True)
class ParityReport:
    """What was tried.

    Args:
        n_listed, n_hidden: tools tried over all callers and channels.
        found_by_id_only: ids of tools that their own words do not find, and their ids do, for some caller; in order.
    """

    n_tools: int
    callers: tuple[str, ...]
    n_callers_in_all: int
    n_listed: int = 0
    n_hidden: int = 0
    n_searches: int = 0
    n_calls: int = 0
    found_by_id_only: list[str] = field(default_factory=list)
    counterexample: Counterexample | None = None

    def to_dict(self) -> dict[str, Any]:
        found = self.counterexample
        return {
            "holds": found is None,
            "tools": self.n_tools,
            "callers": list(self.callers),
            "callers_in_all": self.n_callers_in_all,
            "listed": self.n_listed,
            "hidden": self.n_hidden,
            "searches": self.n_searches,
            "calls": self.n_calls,
            "found_by_id_only": {"n": len(self.found_by_id_only), "tools": self.found_by_id_only[:SHOWN]},
            "counterexample": found.to_dict() if found else None,
        }


def verify_parity(
    settings: Settings,
    *,
    profiles: Mapping[str, Path],
    max_callers: int = 0,
    sample: int = 0,
    seed: int = 0,
    allow_by_id: bool = False,
    on_progress: Callable[[str], None] = lambda _text: None,
) -> ParityReport:
    """Try every caller's listed and unlisted tools in every way.

    Args:
        profiles: name -> caller file; at least one.
        max_callers: callers to try, drawn by `seed`; 0 for all. sample: of each caller's listed and hidden tools at
            most so many each; 0 for all.
        allow_by_id: that a tool is found by its own id only is counted, and does not break parity.
    Returns:
        What was tried, with a counterexample if there is one; it stops at the first, but tools found by their ids only
        are counted to the end.
    Raises:
        ToolcribError: the operator's catalog, policy or a caller file cannot be used.
    """
    world, owner = world_of(settings, profiles=profiles), Owner()
    with world.opened(owner=owner) as (folder, crib):
        seats = seats_of(folder, crib, profiles)
        groups = groups_of(crib, seats, max_groups=max_callers, seed=seed)
        snapshot = crib.pipeline().snapshot
        report = ParityReport(
            n_tools=len(snapshot.tools),
            callers=tuple(group.names[0] for group in groups),
            n_callers_in_all=len(profiles),
        )
        first_by_id: Counterexample | None = None
        for number, group in enumerate(groups, start=1):
            name = group.names[0]
            on_progress(f"{number} of {len(groups)}: {name}")
            owner.caller = seats[name].caller
            trial = _Trial(seat=seats[name], name=name, sample=sample, seed=seed, report=report)
            report.counterexample = next(trial.faults(), None)
            if report.counterexample is not None:
                break
            if trial.by_id_only and not allow_by_id:
                first_by_id = first_by_id or trial.by_id_only[0]
    report.counterexample = report.counterexample or first_by_id
    return report


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trial:
    """One caller's tools, tried through the library and through the gateway. `by_id_only`: filled while it is tried."""

    seat: Seat
    name: str
    sample: int
    seed: int
    report: ParityReport
    by_id_only: list[Counterexample] = field(default_factory=list)

    @property
    def crib(self) -> Crib:
        return self.seat.crib

    @property
    def caller(self) -> Caller:
        return self.seat.caller

    def faults(self) -> Iterator[Counterexample]:
        """What breaks parity, cheap checks first."""
        listed = {tool.tool_id: tool for tool in self.crib.tools(self.caller)}
        yield from self._listings(listed)
        for tool in self._some(list(listed.values())):
            self.report.n_listed += 1
            yield from self._found(tool, listed)
            yield from self._callable(tool)
        snapshot = self.crib.pipeline().snapshot
        seen = visible_to(self.crib, self.caller)
        seen |= {alias for tool in listed.values() for alias in tool.metadata.aliases}  # they lead to those tools
        hidden = [(t.tool_id, t.name, t.description) for t in snapshot.tools if t.tool_id not in seen]
        hidden += [(w.tool_id, w.name, _description(w.definition)) for w in snapshot.withheld if w.tool_id not in seen]
        chosen = self._some(hidden)
        self.report.n_hidden += len(chosen)
        for tool_id, name, description in chosen:
            yield from self._not_found(tool_id, name, description, listed)
        yield from self._not_callable([tool_id for tool_id, _name, _description in chosen])

    def _some(self, items: Sequence[Any]) -> list[Any]:
        if not 0 < self.sample < len(items):
            return list(items)
        return random.Random(self.seed).sample(list(items), self.sample)  # noqa: S311 - sampling, not secrecy

    def _listings(self, listed: Mapping[str, Tool]) -> Iterator[Counterexample]:
        """The gateway lists the same tools as the library, where policy does not tell their channels apart."""
        here = self.crib.view(self.caller, Channel.LIBRARY)
        view = self.crib.view(self.caller, Channel.STDIO)
        expected = {tool.tool_id for tool in view.tools}
        if {tool.tool_id for tool in here.tools} != listed.keys():
            other = next(iter({t.tool_id for t in here.tools} ^ listed.keys()))
            yield self._fault("library", "tools()", "listed is not what the view holds", other)
        everything = McpSurface(MODERN, kind=SurfaceKind.ALL)
        told = everything.answers(self.seat, [request(everything.name, "tools/list", ["tools/list", {}])])[0]
        shown = {definition["name"] for definition in json.loads(told)["result"]["tools"]}
        for tool_id in sorted(expected):
            if mcp_name(tool_id) not in shown:
                yield self._fault("mcp", "tools/list", "permitted and not listed", tool_id)
        for name in sorted(shown - {mcp_name(tool_id) for tool_id in expected}):
            yield self._fault("mcp", "tools/list", "listed and not permitted", name)

    def _found(self, tool: Tool, listed: Mapping[str, Tool]) -> Iterator[Counterexample]:
        """The tool is among the answers to its own words."""
        queries = (f"{words_of(tool.name)}: {tool.description}"[:2_000], tool.tool_id)
        for query in queries:
            offer = self._select(query)
            yield from self._all_listed(query, offer, listed)
            if any(chosen.tool.tool_id == tool.tool_id for chosen in offer.tools):
                if query == tool.tool_id:
                    self._note_by_id_only(tool, queries[0])
                return
        yield self._fault("library", f"select({tool.tool_id!r})", "listed and not found", tool.tool_id)

    def _note_by_id_only(self, tool: Tool, words: str) -> None:
        if tool.tool_id not in self.report.found_by_id_only:
            self.report.found_by_id_only.append(tool.tool_id)
        rule = "listed, and found by its own id only"
        self.by_id_only.append(
            self._fault("library", f"select({words[:80]!r})", rule, tool.tool_id, "found", "not among the answers")
        )

    def _all_listed(self, query: str, offer: Offer, listed: Mapping[str, Tool]) -> Iterator[Counterexample]:
        named = [chosen.tool.tool_id for chosen in offer.tools]
        named += [dropped.tool_id for dropped in offer.selection.dropped]
        for tool_id in named:
            if tool_id not in listed:
                yield self._fault("library", f"select({query[:80]!r})", "found and not listed", tool_id)

    def _select(self, query: str) -> Offer:
        self.report.n_searches += 1
        return self.crib.select(query, caller=self.caller, limit=_LIMIT, token_budget=_BUDGET_TOKENS)

    def _callable(self, tool: Tool) -> Iterator[Counterexample]:
        for arguments in ({}, sample_arguments(tool.input_schema)):
            self.report.n_calls += 1
            done = asyncio.run(self.crib.call(tool.tool_id, arguments, caller=self.caller))
            if done.code in _NEVER and done.verdict.check != "resource":
                yield self._fault(
                    "library",
                    f"call({tool.tool_id!r}, {arguments})",
                    "listed and not callable",
                    tool.tool_id,
                    expected="any answer but not_available",
                    got=comparable(as_bytes(done.to_dict())),
                )
                return

    def _not_found(
        self, tool_id: str, name: str, description: str, listed: Mapping[str, Tool]
    ) -> Iterator[Counterexample]:
        for query in (f"{words_of(name)}: {description}"[:2_000], tool_id):
            yield from self._all_listed(query, self._select(query), listed)

    def _not_callable(self, tool_ids: Sequence[str]) -> Iterator[Counterexample]:
        """A call, a direct call and a description give the very bytes that an id of no tool gives."""
        every = [UNKNOWN_ID, *tool_ids]
        for surface, what, told in (
            ("library", "call", self._library_calls(every)),
            ("mcp", "call_tool", self._wire(every, lambda i: ("call_tool", {"name": i, "arguments": {}}))),
            ("mcp", "describe_tools", self._wire(every, lambda i: ("describe_tools", {"names": [i]}))),
            ("mcp", "tools/call", self._wire(every, lambda i: (mcp_name(i), {}))),
        ):
            self.report.n_calls += len(told)
            expected = _nameless(told[0], UNKNOWN_ID)
            for tool_id, answer in zip(tool_ids, told[1:], strict=True):
                got = _nameless(answer, tool_id)
                if got != expected:
                    rule = "not listed, and told apart from no tool"
                    yield self._fault(surface, f"{what} {tool_id}", rule, tool_id, expected, got)

    def _library_calls(self, tool_ids: Sequence[str]) -> list[bytes]:
        async def call() -> list[bytes]:
            done = [await self.crib.call(tool_id, {}, caller=self.caller) for tool_id in tool_ids]
            return [as_bytes(outcome.to_dict()) for outcome in done]

        return asyncio.run(call())

    def _wire(self, tool_ids: Sequence[str], call: Callable[[str], tuple[str, dict[str, Any]]]) -> list[bytes]:
        surface = McpSurface(MODERN)
        asked = []
        for tool_id in tool_ids:
            name, arguments = call(tool_id)
            asked.append(request(surface.name, name, ["tools/call", {"name": name, "arguments": arguments}]))
        return surface.answers(self.seat, asked)

    def _fault(
        self, surface: str, request: str, rule: str, tool: str, expected: bytes | str = "", got: bytes | str = ""
    ) -> Counterexample:
        before, after = (text if isinstance(text, bytes) else text.encode() for text in (expected, got))
        offset = first_difference(before, after)
        return Counterexample(
            caller=self.name,
            surface=surface,
            request=request,
            variant=rule,
            tools=(tool,),
            offset=offset,
            before=excerpt(before, offset),
            after=excerpt(after, offset),
        )


def _description(definition: Any) -> str:
    found = definition.get("description") if isinstance(definition, Mapping) else ""
    return found if isinstance(found, str) else ""


def _nameless(answer: bytes, tool_id: str) -> bytes:
    """The answer without its number and without the name that was asked for, which an answer may repeat."""
    answer = _NUMBER.sub(b"", answer)
    for name in (tool_id, mcp_name(tool_id)):
        once = as_bytes(name)[1:-1]
        answer = answer.replace(as_bytes(once.decode())[1:-1], b"NAME").replace(once, b"NAME")
    return comparable(answer)
