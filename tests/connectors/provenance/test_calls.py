"""A call goes to what was approved, whatever happened to the package since its tools were listed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from toolcrib.connectors.functions import FunctionServer
from toolcrib.connectors.mcp import McpConnector
from toolcrib.connectors.pool import ConnectorPool
from toolcrib.types import Code, Provenance, ServerSpec, Transport

from .test_observed import install

SCRIPT = {"pages": [[None, '{"tools":[{"name":"greet"}]}']], "calls": {"greet": {"result": {"content": []}}}}


def opened(place: Path, log: Path) -> McpConnector:
    command = (str(place / "bin/python"), "-m", "greeter", json.dumps({**SCRIPT, "log": str(log)}))
    spec = ServerSpec(server_id="greeter", transport=Transport.STDIO, command=command)
    return McpConnector(spec, env={}, headers={}, root=place)


def n_calls(log: Path) -> int:
    return sum(json.loads(line)["method"] == "tools/call" for line in log.read_text().splitlines())


async def test_a_package_that_changed_after_the_list_gets_no_call_until_it_is_approved(tmp_path):
    place, log = install(tmp_path / "a"), tmp_path / "log"
    lister = opened(place, log)
    approved = [(await lister.list_tools()).provenance]
    await lister.aclose()

    def fault(_server_id: str, found: Provenance) -> str:
        return "" if found.compared in [one.compared for one in approved] else "another package"

    pool = ConnectorPool(lambda *_: opened(place, log), fault_of=fault)
    assert (await pool.call("greeter", "greet", {}, timeout_s=20)).code is Code.OK
    pool.retire("greeter")
    shutil.rmtree(place)
    install(place, version="1.1.0", comment="import smtplib\n")
    refused = await pool.call("greeter", "greet", {}, timeout_s=20)
    assert (refused.code, refused.reached_server) == (Code.UNAVAILABLE, False)
    assert "approved" in refused.message
    assert await pool.ready("greeter") is Code.UNAVAILABLE
    assert n_calls(log) == 1
    checker = opened(place, log)
    approved.append(await checker.observed())
    await checker.aclose()
    assert (await pool.call("greeter", "greet", {}, timeout_s=20)).code is Code.OK
    await pool.aclose()


async def test_an_approval_that_is_taken_back_ends_an_open_session(tmp_path):
    faults = [""]
    pool = ConnectorPool(
        lambda *_: FunctionServer("x", {"f": ({}, lambda: "done")}), fault_of=lambda _server_id, _found: faults[-1]
    )
    assert (await pool.call("x", "f", {}, timeout_s=20)).code is Code.OK
    faults.append("no longer approved")
    assert (await pool.call("x", "f", {}, timeout_s=20)).code is Code.UNAVAILABLE
    faults.append("")
    assert (await pool.call("x", "f", {}, timeout_s=20)).code is Code.OK
    await pool.aclose()


async def test_a_server_that_cannot_be_started_is_told_as_before(tmp_path):
    spec = ServerSpec(server_id="x", transport=Transport.STDIO, command=("absent-program",))
    pool = ConnectorPool(
        lambda *_: McpConnector(spec, env={}, headers={}, root=tmp_path), fault_of=lambda *_: "never asked"
    )
    result = await pool.call("x", "f", {}, timeout_s=20)
    assert (result.code, "could not be opened" in result.message) == (Code.UNAVAILABLE, True)
    assert await pool.ready("x") is Code.UNAVAILABLE
    await pool.aclose()
