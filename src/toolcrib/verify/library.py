"""The library as a caller of Python sees it: listing, versions, offers, payloads, calls, and its view of the traces."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from toolcrib.crib import Crib
from toolcrib.types import Caller, Tool
from toolcrib.verify.asking import Request, Seat, as_bytes, failed, request
from toolcrib.verify.questions import Questions

_WIDE = {"limit": 50, "token_budget": 1_000_000}


class LibrarySurface:
    """`Crib.tools`, `view`, `select`, `call`, `trace`."""

    name = "library"

    def requests(self, questions: Questions) -> Sequence[Request]:
        return [
            request(self.name, "tools()", {"ask": "tools"}),
            request(self.name, "view()", {"ask": "view"}),
            *(request(self.name, f"select({task!r})", {"ask": "select", "task": task}) for task in questions.tasks),
            *(
                request(self.name, f"select({task!r}, limit=50)", {"ask": "select", "task": task, **_WIDE})
                for task in questions.tasks[:6]
            ),
            *(
                request(self.name, f"call({tool_id!r}, {arguments})", {"ask": "call", "id": tool_id, "args": arguments})
                for tool_id, arguments in (*((name, {}) for name in questions.names), *questions.calls)
            ),
        ]

    def answers(self, seat: Seat, requests: Sequence[Request]) -> list[bytes]:
        async def ask() -> list[bytes]:
            return [await _answer(seat.crib, seat.caller, one.read()) for one in requests]

        return asyncio.run(ask())


async def _answer(crib: Crib, caller: Caller, body: dict[str, Any]) -> bytes:
    kind = body.pop("ask")
    try:
        if kind == "tools":
            return as_bytes([_told(tool) for tool in crib.tools(caller)])
        if kind == "view":
            view = crib.view(caller)
            return as_bytes([view.namespaces, view.version, view.policy_version, view.index_version])
        if kind == "select":
            return as_bytes(_selected(crib, caller, body))
        done = await crib.call(body["id"], body["args"], caller=caller)
        return as_bytes([done.to_dict(), _caller_view(crib, done.trace_id)])
    except Exception as fault:  # noqa: BLE001 - whatever a caller would meet here is its answer
        return failed(fault)


def _told(tool: Tool) -> list[Any]:
    return [tool.tool_id, tool.digest, tool.state, tool.definition, tool.metadata.namespace, tool.metadata.keywords]


def _selected(crib: Crib, caller: Caller, body: dict[str, Any]) -> list[Any]:
    offer = crib.select(body.pop("task"), caller=caller, **body)
    payloads = [offer.to_anthropic(), offer.to_openai(), offer.to_gemini(), offer.to_mcp()]
    return [offer.to_dict(), payloads, _caller_view(crib, offer.trace_id)]


def _caller_view(crib: Crib, trace_id: str) -> list[Any]:
    """What the caller may see of its trace; the ids in it are those of the answer."""
    return [[record.stage, record.caller_view] for record in crib.trace(trace_id).records]
