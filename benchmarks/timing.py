"""Whether the time of `not_available` tells a hidden tool from no tool at all.

    python benchmarks/timing.py [--tools 2000] [--calls 3000]

Half of a made-up catalog is hidden from the caller. Calls of hidden tools and of ids of no tool, equally long, come in
random order, through the library and through the gateway in this process: no network, so an attacker from
outside sees less than this. Printed for each: both distributions, and the area under the ROC curve of the attacker who
guesses by a threshold on one time (0.5: no better than a coin, 1: certain).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import numpy as np
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from toolcrib.crib import Crib
from toolcrib.identity.callers import caller_from_mapping
from toolcrib.server.callers import CurrentCaller
from toolcrib.server.mcp_gateway import Gateway
from toolcrib.types import Caller, Channel
from toolcrib.verify.messages import MODERN, message

_WARM_UP = 100
_TOML = """
[crib]
name = "timing"
[[servers]]
id = "open"
transport = "file"
path = "open.tools.json"
[[servers]]
id = "shut"
transport = "file"
path = "shut.tools.json"
[[tools]]
match = "shut.*"
required_scopes = ["nobody"]
"""

Ask = Callable[[str], Awaitable[None]]


def measure(n_tools: int, n_calls: int) -> dict[str, Any]:
    """Distributions in microseconds and AUC, by way of asking."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "toolcrib.toml").write_text(_TOML, encoding="utf-8")
        for server_id in ("open", "shut"):
            tools = [_tool(f"tool_{number:06}") for number in range(n_tools // 2)]
            (folder / f"{server_id}.tools.json").write_text(json.dumps({"tools": tools}), encoding="utf-8")
        return asyncio.run(_measure(folder, n_tools=n_tools, n_calls=n_calls))


async def _measure(folder: Path, *, n_tools: int, n_calls: int) -> dict[str, Any]:
    async with Crib.open(folder) as crib:
        await crib.refresh()
        crib.approve(None, reviewer="benchmark")
        caller = caller_from_mapping({"subject": "eve"}, environment="default", region="", where="benchmark")
        order = random.Random(0)
        names = [f"tool_{order.randrange(n_tools // 2):06}" for _ in range(n_calls)]
        asked = [(place % 2 == 0, name) for place, name in enumerate(names)]
        order.shuffle(asked)
        found = {"tools": n_tools, "calls": n_calls}
        found["library"] = await _times(asked, _library(crib, caller))
        async with _gateway(crib, caller) as ask:
            found["mcp call_tool"] = await _times(asked, ask)
        return found


async def _times(asked: list[tuple[bool, str]], ask: Ask) -> dict[str, Any]:
    """Hidden tools are `shut.*`, ids of no tool `none.*`; all are equally long."""
    times: dict[bool, list[float]] = {True: [], False: []}
    for number, (hidden, name) in enumerate(asked):
        tool_id = f"{'shut' if hidden else 'none'}.{name}"
        started = time.perf_counter()
        await ask(tool_id)
        if number >= _WARM_UP:
            times[hidden].append((time.perf_counter() - started) * 1e6)
    hidden_us, none_us = np.array(times[True]), np.array(times[False])
    return {
        "hidden_us": _spread(hidden_us),
        "no_tool_us": _spread(none_us),
        "auc": round(auc(hidden_us, none_us), 4),
        "auc_standard_error": round(float(np.sqrt(1 / (12 * len(hidden_us)) + 1 / (12 * len(none_us)))), 4),
    }


def _library(crib: Crib, caller: Caller) -> Ask:
    async def ask(tool_id: str) -> None:
        done = await crib.call(tool_id, {}, caller=caller)
        assert done.code == "not_available"

    return ask


class _gateway:  # noqa: N801 - used as a context manager
    """The gateway over memory streams, asked by JSON-RPC messages."""

    def __init__(self, crib: Crib, caller: Caller) -> None:
        self._gateway = Gateway(crib, channel=Channel.STDIO, callers=CurrentCaller(lambda: caller), poll_s=0)

    async def __aenter__(self) -> Ask:
        server = self._gateway.server
        self._streams = create_client_server_memory_streams()
        (receive, send), theirs = await self._streams.__aenter__()
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        self._tasks.start_soon(server.run, theirs[0], theirs[1], server.create_initialization_options())
        number = 0

        async def ask(tool_id: str) -> None:
            nonlocal number
            number += 1
            params = {"name": "call_tool", "arguments": {"name": tool_id, "arguments": {}}}
            body = message(MODERN, "tools/call", params, number=number)
            await send.send(SessionMessage(message=jsonrpc_message_adapter.validate_python(body)))
            answer = await receive.receive()
            assert not isinstance(answer, Exception)

        return ask

    async def __aexit__(self, *_fault: object) -> None:
        self._tasks.cancel_scope.cancel()
        await self._tasks.__aexit__(None, None, None)
        await self._streams.__aexit__(None, None, None)


def auc(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> float:
    """Probability that a time of `one` is longer than a time of `other`, ties half; or its complement if larger."""
    ordered = np.sort(other)
    below, not_above = np.searchsorted(ordered, one, side="left"), np.searchsorted(ordered, one, side="right")
    share = float((below + not_above).mean() / (2 * len(other)))
    return max(share, 1 - share)


def _spread(times_us: np.ndarray[Any, Any]) -> dict[str, float]:
    p5, median, p95 = np.percentile(times_us, [5, 50, 95])
    return {"p5": round(float(p5), 1), "median": round(float(median), 1), "p95": round(float(p95), 1)}


def _tool(name: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
    return {"name": name, "description": f"The tool {name}.", "inputSchema": schema}


def main() -> None:
    """Print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", type=int, default=2_000)
    parser.add_argument("--calls", type=int, default=3_000)
    given = parser.parse_args()
    print(json.dumps(measure(given.tools, given.calls), indent=2))


if __name__ == "__main__":
    main()
