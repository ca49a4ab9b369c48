"""Persistent sessions."""

from __future__ import annotations

import asyncio
import json
import os
import sys

import pytest

from toolcrib.connectors.functions import FunctionServer
from toolcrib.connectors.opening import open_connector
from toolcrib.connectors.pool import ConnectorPool
from toolcrib.errors import ConfigError
from toolcrib.types import Code, ServerSpec, ToolResult, Transport

from .conftest import SERVERS

OK = {"result": {"content": []}}


async def test_one_session_serves_many_calls_side_by_side(rude, tmp_path):
    log = tmp_path / "log"
    pool = ConnectorPool(lambda server_id, _caller: rude(calls={"a": OK}, log=str(log)))
    results = await asyncio.gather(*(pool.call("s", "a", {"n": n}, timeout_s=20) for n in range(10)))
    await pool.aclose()
    methods = [json.loads(line)["method"] for line in log.read_text().splitlines()]
    assert {result.code for result in results} == {Code.OK}
    assert methods.count("initialize") == 1
    assert methods.count("tools/call") == 10


async def test_dead_server_costs_one_call_and_the_next_opens_a_new_session(rude, tmp_path):
    log = tmp_path / "log"
    pool = ConnectorPool(lambda server_id, _caller: rude(calls={"die": "die", "a": OK}, log=str(log)))
    results = [await pool.call("s", name, {}, timeout_s=20) for name in ("a", "die", "a")]
    await pool.aclose()
    calls = [m["params"]["name"] for m in map(json.loads, log.read_text().splitlines()) if m["method"] == "tools/call"]
    assert [(r.code, r.reached_server) for r in results] == [
        (Code.OK, True),
        (Code.UNAVAILABLE, True),
        (Code.OK, True),
    ]
    assert calls == ["a", "die", "a"]


async def test_server_that_died_between_calls_is_opened_again(rude):
    made = []

    def open_one(server_id, _caller):
        made.append(rude(calls={"a": OK}))
        return made[-1]

    pool = ConnectorPool(open_one)
    first = await pool.call("s", "a", {}, timeout_s=20)
    made[0]._session._link._process.kill()
    await made[0]._session._stop.wait()
    second = await pool.call("s", "a", {}, timeout_s=20)
    await pool.aclose()
    assert (first.code, second.code, len(made)) == (Code.OK, Code.OK, 2)


async def test_server_that_cannot_start_is_tried_again_by_the_next_call(rude):
    made = iter([{"start": "crash"}, {"calls": {"a": OK}}])
    pool = ConnectorPool(lambda server_id, _caller: rude(**next(made)))
    results = [await pool.call("s", "a", {}, timeout_s=20) for _ in range(2)]
    await pool.aclose()
    assert [(r.code, r.reached_server) for r in results] == [(Code.UNAVAILABLE, False), (Code.OK, True)]


async def test_secret_that_cannot_be_read_is_unavailable():
    def open_one(server_id, _caller):
        raise ConfigError("the variable TOKEN is not set", where="toolcrib.toml:3")

    result = await ConnectorPool(open_one).call("s", "a", {}, timeout_s=1)
    assert (result.code, result.reached_server) == (Code.UNAVAILABLE, False)


async def test_closed_pool_refuses_and_closes_what_was_open():
    closed = []

    class Watched(FunctionServer):
        async def aclose(self):
            closed.append(self)

    pool = ConnectorPool(lambda server_id, _caller: Watched(server_id, {"a": ({}, lambda: None)}))
    assert (await pool.call("s", "a", {}, timeout_s=1)).code is Code.OK
    await pool.aclose()
    assert len(closed) == 1
    assert (await pool.call("s", "a", {}, timeout_s=1)).code is Code.UNAVAILABLE


async def test_a_retired_server_is_opened_anew():
    made = []

    def open_one(server_id, _caller):
        made.append(FunctionServer(server_id, {"a": ({}, lambda: None)}))
        return made[-1]

    pool = ConnectorPool(open_one)
    await pool.call("s", "a", {}, timeout_s=1)
    pool.retire("s")
    await pool.call("s", "a", {}, timeout_s=1)
    assert len(made) == 2


async def test_nothing_is_sent_while_it_cannot_be_told_whether_the_server_is_the_approved_one(rude, tmp_path):
    log = tmp_path / "log"

    def lost(_server_id, _found):
        raise ConfigError("the settings cannot be read")

    pool = ConnectorPool(lambda server_id, _caller: rude(calls={"a": OK}, log=str(log)), fault_of=lost)
    done = await pool.call("s", "a", {}, timeout_s=20)
    await pool.aclose()
    assert (done.code, done.reached_server) == (Code.UNAVAILABLE, False)
    assert "tools/call" not in log.read_text(encoding="utf-8")


def test_pool_survives_the_end_of_its_event_loop():
    answers = []

    class OneLoop(FunctionServer):
        """A connector that breaks with the loop it was opened in, as sessions do."""

        loop = None

        @property
        def broken(self):
            return self.loop is not None and self.loop.is_closed()

        async def call(self, name, arguments, **options) -> ToolResult:
            self.loop = asyncio.get_running_loop()
            return await super().call(name, arguments, **options)

    pool = ConnectorPool(lambda server_id, _caller: OneLoop(server_id, {"a": ({}, lambda: None)}))
    for _ in range(2):
        answers.append(asyncio.run(pool.call("s", "a", {}, timeout_s=5)))
    assert [a.code for a in answers] == [Code.OK, Code.OK]


def test_process_of_an_ended_loop_is_gone_and_the_next_loop_has_its_own(tmp_path):
    command = (sys.executable, "-S", str(SERVERS / "rude.py"), json.dumps({"calls": {"a": OK}}))
    spec = ServerSpec(server_id="s", transport=Transport.STDIO, command=command)
    made = []

    def open_one(server_id, _caller):
        made.append(open_connector(spec, env={}, headers={}, root=tmp_path))
        return made[-1]

    pool = ConnectorPool(open_one)
    codes = [asyncio.run(pool.call("s", "a", {}, timeout_s=20)).code for _ in range(2)]
    assert codes == [Code.OK, Code.OK]
    assert all(connector.broken for connector in made)
    for connector in made:
        with pytest.raises(ProcessLookupError):
            os.kill(connector._session._link._process.pid, 0)


async def test_a_retired_session_closes_when_its_last_call_is_done():
    running, may_end, closed = asyncio.Event(), asyncio.Event(), []

    async def slow():
        running.set()
        await may_end.wait()
        return "done"

    class Watched(FunctionServer):
        async def aclose(self):
            closed.append(self)

    pool = ConnectorPool(lambda server_id, _caller: Watched(server_id, {"a": ({}, slow)}))
    calling = asyncio.create_task(pool.call("s", "a", {}, timeout_s=5))
    await running.wait()
    pool.retire("s")
    await asyncio.wait([calling], timeout=0.01)
    assert closed == []
    may_end.set()
    assert (await calling).code is Code.OK
    await pool.aclose()
    assert len(closed) == 1
