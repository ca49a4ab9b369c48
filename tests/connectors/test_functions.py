"""Python functions as tools."""

from __future__ import annotations

import asyncio
import threading

import pytest

from toolcrib.connectors.functions import FunctionServer
from toolcrib.errors import ConfigError
from toolcrib.types import Code, ToolResult

SCHEMA = {"inputSchema": {"type": "object"}, "x-unknown": 1}


async def call(function, arguments=None, *, timeout_s=20.0):
    return await FunctionServer("py", {"f": (SCHEMA, function)}).call("f", arguments or {}, timeout_s=timeout_s)


async def test_definitions_are_listed_as_given_with_their_name():
    listing = await FunctionServer("py", {"f": (SCHEMA, print)}).list_tools()
    assert listing.tools == ({"name": "f", **SCHEMA},)


def test_definition_under_another_name_is_refused():
    with pytest.raises(ConfigError):
        FunctionServer("py", {"f": ({"name": "g"}, print)})


async def test_plain_and_async_functions_answer():
    async def later(n):
        return {"n": n}

    assert (await call(lambda n: f"got {n}", {"n": 1})).content == ({"type": "text", "text": "got 1"},)
    assert (await call(later, {"n": 1})).structured == {"n": 1}
    assert (await call(lambda: [1, 2])).structured == {"result": [1, 2]}


async def test_nothing_and_failure_are_told_apart():
    def fails():
        raise LookupError("no such id")

    nothing, failure = await call(lambda: None), await call(fails)
    assert (nothing.code, nothing.content, nothing.raw) == (Code.OK, (), {"content": []})
    assert (failure.code, failure.message) == (Code.TOOL_ERROR, "LookupError: no such id")
    assert failure.raw["isError"] is True


@pytest.mark.parametrize("value", [float("nan"), object(), {1, 2}], ids=["nan", "object", "set"])
async def test_value_that_json_cannot_hold_is_an_error(value):
    assert (await call(lambda: value)).code is Code.TOOL_ERROR


async def test_wrong_arguments_and_unknown_names_are_errors():
    assert (await call(lambda n: n, {"m": 1})).code is Code.TOOL_ERROR
    unknown = await FunctionServer("py", {}).call("f", {}, timeout_s=1)
    assert (unknown.code, unknown.refused) == (Code.TOOL_ERROR, True)


async def test_function_may_say_exactly_what_it_means():
    meant = ToolResult(code=Code.UNAVAILABLE, message="closed today")
    assert await call(lambda: meant) is meant


async def test_deadline_is_a_timeout_and_a_timeout_inside_is_an_error():
    async def never():
        await asyncio.Event().wait()

    async def raises():
        raise TimeoutError("backend")

    late, inside = await call(never, timeout_s=0.05), await call(raises)
    assert (late.code, late.reached_server) == (Code.TIMEOUT, True)
    assert inside.code is Code.TOOL_ERROR


async def test_blocked_plain_function_does_not_hold_the_caller():
    gate = threading.Event()
    result = await call(gate.wait, timeout_s=0.05)
    gate.set()
    assert result.code is Code.TIMEOUT


async def test_arguments_of_the_caller_stay_as_they_are():
    arguments = {"items": [1]}
    await call(lambda items: items.append(2), arguments)
    assert arguments == {"items": [1]}


async def test_cancelled_call_is_cancelled():
    started = asyncio.Event()

    async def never():
        started.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(call(never))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
