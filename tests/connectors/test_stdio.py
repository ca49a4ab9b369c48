"""MCP over stdio: listing, calls, and servers that misbehave."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from toolcrib.connectors.mcp import McpConnector
from toolcrib.errors import ConnectorError, ConnectorProtocolError, ConnectorTimeoutError
from toolcrib.types import Code, SecretRef, ServerSpec, Transport

from .conftest import SERVERS

ONE_TOOL = '{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}'


def requests(log: Path, method: str) -> list[dict]:
    return [m for m in map(json.loads, log.read_text().splitlines()) if m["method"] == method]


@pytest.mark.parametrize(("modern", "version"), [(False, "2025-11-25"), (True, "2026-07-28")], ids=["legacy", "modern"])
async def test_both_eras_list_over_stdio(rude, modern, version):
    listing = await rude(modern=modern, pages=[[None, ONE_TOOL]]).list_tools()
    assert (listing.protocol_version, listing.instructions) == (version, "Be rude.")
    assert [tool["name"] for tool in listing.tools] == ["a"]


async def test_sdk_server_lists_and_calls_over_stdio(tmp_path):
    command = (sys.executable, str(SERVERS / "polite.py"))
    spec = ServerSpec(server_id="polite", transport=Transport.STDIO, command=command)
    connector = McpConnector(spec, env={}, headers={}, root=tmp_path)
    listing = await connector.list_tools()
    result = await connector.call("echo", {"text": "hi"}, timeout_s=20)
    await connector.aclose()
    assert (listing.protocol_version, listing.server_name, listing.server_version) == ("2026-07-28", "polite", "1")
    assert listing.tools[0]["x-unknown"] == [1, 2.5, None]
    assert (result.code, result.structured) == (Code.OK, {"got": {"text": "hi"}})
    assert result.raw["resultType"] == "complete"


async def test_server_that_exits_on_the_probe_is_started_again_the_old_way(rude):
    listing = await rude(start="dies_on_probe", pages=[[None, ONE_TOOL]]).list_tools()
    assert listing.protocol_version == "2025-11-25"


async def test_definitions_are_kept_as_received(rude):
    text = (
        '{"tools":[{"name":"a","x-unknown":{"deep":[1,2.0,null]},"_meta":{"k/v":null},"title":null,'
        '"big":123456789012345678901234567890,"inputSchema":{"$ref":"#/$defs/A","$defs":{"A":{"type":"object"}},'
        '"properties":{"url":{"$ref":"https://example.com/schema.json"}}},"execution":{"taskSupport":"optional"}}]}'
    )
    listing = await rude(pages=[[None, text]]).list_tools()
    assert json.dumps(listing.tools[0]) == json.dumps(json.loads(text)["tools"][0])


async def test_malformed_tools_do_not_cost_their_siblings(rude):
    text = '{"tools":[{"name":"bad","inputSchema":"string"},{"description":"nameless"},17,{"name":"good"}]}'
    listing = await rude(pages=[[None, text]]).list_tools()
    assert len(listing.tools) == 4
    assert listing.tools[3] == {"name": "good"}


# --- pages ---


async def test_empty_string_is_a_cursor_and_null_ends(rude, tmp_path):
    log = tmp_path / "log"
    pages = [
        [None, '{"tools":[{"name":"a"}],"nextCursor":""}'],
        ["", '{"tools":[{"name":"b"}],"nextCursor":"x"}'],
        ["x", '{"tools":[{"name":"c"}],"nextCursor":null}'],
    ]
    listing = await rude(pages=pages, log=str(log)).list_tools()
    assert [tool["name"] for tool in listing.tools] == ["a", "b", "c"]
    assert listing.n_pages == 3
    assert [r.get("params", {}).get("cursor") for r in requests(log, "tools/list")] == [None, "", "x"]


@pytest.mark.parametrize(
    ("script", "spec", "words"),
    [
        (
            {"pages": [[None, '{"tools":[],"nextCursor":"x"}'], ["x", '{"tools":[],"nextCursor":"x"}']]},
            {},
            "repeats the cursor",
        ),
        ({"endless": True}, {"max_pages": 3}, "more than 3 pages"),
        ({"pages": [[None, '{"tools":["%s"]}' % ("x" * 500)]]}, {"max_list_bytes": 400}, "longer than 400 bytes"),
        ({"pages": [[None, '{"tools":[],"nextCursor":5}']]}, {}, "no string"),
        ({"pages": [[None, '{"tools":{}}']]}, {}, "without a list"),
        ({"pages": [[None, "[]"]]}, {}, "not valid JSON-RPC"),
    ],
    ids=["loop", "too many pages", "too many bytes", "cursor is a number", "tools is an object", "result is a list"],
)
async def test_listing_outside_the_protocol_is_refused(rude, script, spec, words):
    with pytest.raises(ConnectorProtocolError, match=words):
        await rude(spec=spec, **script).list_tools()


async def test_bytes_are_counted_over_all_pages(rude):
    pages = [[None, '{"tools":["%s"],"nextCursor":"2"}' % ("x" * 300)], ["2", '{"tools":["%s"]}' % ("y" * 300)]]
    assert (await rude(spec={"max_list_bytes": 1_000}, pages=pages).list_tools()).n_pages == 2
    with pytest.raises(ConnectorProtocolError):
        await rude(spec={"max_list_bytes": 500}, pages=pages).list_tools()


async def test_endless_line_is_cut_off_and_the_server_is_ended(rude, monkeypatch):
    monkeypatch.setattr("toolcrib.connectors._session._MIN_MESSAGE_BYTES", 100_000)
    connector = rude(spec={"max_list_bytes": 1_000}, pages=[[None, '{"tools":["%s"]}' % ("x" * 110_000)]])
    with pytest.raises(ConnectorProtocolError, match="single message of more than 100000 bytes"):
        await connector.list_tools()
    assert connector.broken


async def test_server_that_offers_no_tools_has_an_empty_listing(rude):
    assert (await rude(capabilities={}).list_tools()).tools == ()


async def test_server_that_offers_tools_and_does_not_list_them_fails(rude):
    with pytest.raises(ConnectorError, match="no list here"):
        await rude().list_tools()


# --- starting ---


async def test_hanging_server_hits_its_own_deadline_and_is_killed(rude):
    connector = rude(start="hang", stderr="still loading\n", spec={"start_timeout_s": 0.5})
    with pytest.raises(ConnectorTimeoutError) as caught:
        await connector.list_tools()
    child = connector._session._link._process
    await connector.aclose()
    assert child.returncode is not None
    assert "rude" in caught.value.where
    assert "0.5 s" in caught.value.what


async def test_server_that_ignores_every_request_to_end_is_killed(rude, monkeypatch):
    monkeypatch.setattr("toolcrib.connectors._stdio._GRACE_S", 0.2)
    connector = rude(start="stubborn", spec={"start_timeout_s": 0.5})
    with pytest.raises(ConnectorTimeoutError):
        await connector.list_tools()
    await connector.aclose()
    assert connector._session._link.exit_code == -signal.SIGKILL


async def test_deadline_covers_the_listing_too(rude):
    connector = rude(calls={"a": {"result": {"content": []}}}, spec={"start_timeout_s": 0.8}, start="silent")
    with pytest.raises(ConnectorTimeoutError):
        await connector.list_tools()


async def test_crash_message_has_the_last_lines_with_the_secret_masked(rude):
    noise = "".join(f"line {n} {'z' * 900}\n" for n in range(30))
    connector = rude(
        start="crash",
        stderr=noise + "bad token {API_TOKEN} of {USER_NAME}\n",
        env={"API_TOKEN": "tok-12345", "USER_NAME": "someone"},
        spec={"env": {"API_TOKEN": SecretRef("env:X"), "USER_NAME": "someone"}},
    )
    with pytest.raises(ConnectorError) as caught:
        await connector.list_tools()
    assert "exited with code 3" in caught.value.what
    assert "bad token *** of someone" in caught.value.hint
    assert "tok-12345" not in str(caught.value)
    assert len(caught.value.hint) < 5_000


SECRET = "tok-" + "x7" * 40


@pytest.mark.parametrize("before", [140, 195, 480, 990], ids=str)
async def test_no_cut_leaves_half_a_secret(rude, before):
    filler = "z" * before + " "
    spec = {"env": {"TOKEN": SecretRef("env:X")}, "start_timeout_s": 0.8}
    broken = '{"jsonrpc":"2.0","id":ID,"result":5,"error":"' + filler + SECRET + '"}'
    calls = {"a": {"error": {"code": -1, "message": filler + SECRET}}, "b": {"raw": broken}}
    page = {"pages": [[None, '5, "error": "' + filler + SECRET + '"']]}
    running = rude(env={"TOKEN": SECRET}, spec={"env": spec["env"]}, calls=calls)
    told = [(await running.call(name, {}, timeout_s=20)).message for name in calls]
    for script in ({"start": "silent", "stdout": filler + SECRET}, page):
        with pytest.raises(ConnectorError) as caught:
            await rude(env={"TOKEN": SECRET}, spec=spec, **script).list_tools()
        told.append(str(caught.value))
    assert not [text for text in told if "tok-" in text or "x7x7" in text]


async def test_a_line_too_long_to_be_kept_whole_is_told_by_its_size(rude):
    connector = rude(start="silent", stdout=f"{'z' * 9_000}", spec={"start_timeout_s": 0.8})
    with pytest.raises(ConnectorTimeoutError) as caught:
        await connector.list_tools()
    assert "(a line of 9000 bytes)" in caught.value.hint


async def test_unanswered_start_names_the_text_on_stdout(rude):
    connector = rude(start="silent", stdout="Welcome to my server!", spec={"start_timeout_s": 0.8})
    with pytest.raises(ConnectorTimeoutError) as caught:
        await connector.list_tools()
    assert "Welcome to my server!" in caught.value.hint


async def test_text_on_stdout_costs_nothing_else(rude):
    assert len((await rude(stdout="Welcome!", pages=[[None, ONE_TOOL]]).list_tools()).tools) == 1


async def test_server_writes_nothing_to_our_own_output(rude, capfd):
    await rude(stdout="OUTPUT", stderr="NOISE\n", pages=[[None, ONE_TOOL]]).list_tools()
    captured = capfd.readouterr()
    assert "OUTPUT" not in captured.out + captured.err
    assert "NOISE" not in captured.out + captured.err


@pytest.mark.parametrize(
    ("command", "cwd", "words"),
    [
        (
            ("no-such-command-anywhere",),
            "",
            "could not start 'no-such-command-anywhere': there is no such program on PATH",
        ),
        ((sys.executable,), "no/such/dir", "does not exist"),
    ],
    ids=["command", "directory"],
)
async def test_what_cannot_start_says_what_is_missing(tmp_path, command, cwd, words):
    spec = ServerSpec(server_id="s", transport=Transport.STDIO, command=command, cwd=cwd)
    with pytest.raises(ConnectorError, match=words):
        await McpConnector(spec, env={}, headers={}, root=tmp_path).list_tools()


async def test_server_gets_its_own_environment_and_not_ours(rude, monkeypatch):
    monkeypatch.setenv("OUR_SECRET", "do-not-pass-on")
    connector = rude(start="crash", stderr="{MINE} {PATH} {OUR_SECRET}\n", env={"MINE": "yes"})
    with pytest.raises(ConnectorError) as caught:
        await connector.list_tools()
    assert "KeyError: 'OUR_SECRET'" in caught.value.hint


# --- calls ---


async def test_result_is_passed_on_as_received(rude):
    wire = {"content": [{"type": "odd", "x": 1}], "structuredContent": [1], "_meta": {"k": None}, "x-more": 1}
    result = await rude(calls={"a": {"result": wire}}).call("a", {}, timeout_s=20)
    assert (result.code, result.raw, result.structured) == (Code.OK, wire, [1])
    assert result.content == ({"type": "odd", "x": 1},)


async def test_error_and_empty_answer_are_told_apart(rude):
    connector = rude(
        calls={
            "empty": {"result": {"content": []}},
            "failed": {"result": {"content": [{"type": "text", "text": "no such id"}], "isError": True}},
            "failed_silently": {"result": {"content": [], "isError": True}},
            "nothing": {"result": {}},
            "truthy": {"result": {"content": [], "isError": "true"}},
        }
    )
    results = {
        name: await connector.call(name, {}, timeout_s=20)
        for name in ("empty", "failed", "failed_silently", "nothing", "truthy")
    }
    assert {name: r.code for name, r in results.items()} == {
        "empty": Code.OK,
        "failed": Code.TOOL_ERROR,
        "failed_silently": Code.TOOL_ERROR,
        "nothing": Code.TOOL_ERROR,
        "truthy": Code.TOOL_ERROR,
    }
    assert results["failed"].message == "no such id"
    assert results["failed"].raw["isError"] is True
    assert results["nothing"].raw is None


async def test_error_of_the_server_keeps_its_words_and_masks_our_secret(rude):
    connector = rude(
        calls={"a": {"error": {"code": -32000, "message": "denied for tok-12345"}}},
        env={"T": "tok-12345"},
        spec={"env": {"T": SecretRef("env:X")}},
    )
    known = await connector.call("a", {}, timeout_s=20)
    unknown = await connector.call("b", {}, timeout_s=20)
    assert (known.code, known.reached_server) == (Code.TOOL_ERROR, True)
    assert "-32000: denied for ***" in known.message
    assert (unknown.code, "Unknown tool" in unknown.message) == (Code.TOOL_ERROR, True)
    assert (unknown.reached_server, unknown.refused) == (True, True)


async def test_unreadable_answer_fails_its_call_at_once(rude):
    connector = rude(calls={"a": {"raw": '{"jsonrpc":"2.0","id":ID,"result":[1]}'}})
    result = await connector.call("a", {}, timeout_s=20)
    assert (result.code, result.reached_server) == (Code.TOOL_ERROR, True)
    assert not connector.broken


async def test_request_for_more_input_is_an_error_that_says_so(rude):
    wire = {"resultType": "input_required", "requestState": "s", "inputRequests": {}}
    result = await rude(modern=True, calls={"a": {"result": wire}}).call("a", {}, timeout_s=20)
    assert (result.code, result.raw) == (Code.TOOL_ERROR, None)
    assert "more input" in result.message


async def test_deadline_of_a_call_is_a_timeout_and_the_request_went_once(rude, tmp_path):
    log = tmp_path / "log"
    connector = rude(calls={"slow": "hang", "fast": {"result": {"content": []}}}, log=str(log))
    result = await connector.call("slow", {}, timeout_s=0.3)
    after = await connector.call("fast", {}, timeout_s=20)
    assert (result.code, result.reached_server) == (Code.TIMEOUT, True)
    assert after.code is Code.OK
    names = [request["params"]["name"] for request in requests(log, "tools/call")]
    assert names == ["slow", "fast"]


async def test_calls_run_side_by_side(rude):
    connector = rude(calls={"slow": "hang", "fast": {"result": {"content": []}}})
    slow = asyncio.create_task(connector.call("slow", {}, timeout_s=1.5))
    fast = await connector.call("fast", {}, timeout_s=20)
    assert fast.code is Code.OK
    assert not slow.done()
    assert (await slow).code is Code.TIMEOUT


async def test_server_that_dies_in_a_call_is_unavailable_and_was_reached(rude, tmp_path):
    log = tmp_path / "log"
    connector = rude(calls={"a": "die"}, log=str(log))
    died = await connector.call("a", {}, timeout_s=20)
    after = await connector.call("a", {}, timeout_s=20)
    assert (died.code, died.reached_server) == (Code.UNAVAILABLE, True)
    assert (after.code, after.reached_server) == (Code.UNAVAILABLE, False)
    assert len(requests(log, "tools/call")) == 1


async def test_unstartable_server_is_unavailable_and_hides_our_paths(rude, tmp_path):
    connector = rude(start="crash", stderr=f"cannot open {tmp_path}\n")
    result = await connector.call("a", {}, timeout_s=20)
    assert (result.code, result.reached_server) == (Code.UNAVAILABLE, False)
    assert str(tmp_path) not in result.message


async def test_only_trace_keys_of_the_callers_meta_go_on(rude, tmp_path):
    log = tmp_path / "log"
    connector = rude(calls={"a": {"result": {"content": []}}}, log=str(log))
    meta = {
        "progressToken": 5,
        "io.modelcontextprotocol/clientInfo": {"name": "x"},
        "force": True,
        "traceparent": "00-1",
    }
    await connector.call("a", {"n": 1}, timeout_s=20, meta=meta)
    (request,) = requests(log, "tools/call")
    assert request["params"] == {"name": "a", "arguments": {"n": 1}, "_meta": {"traceparent": "00-1"}}


async def test_closing_ends_the_process_also_when_used_by_several_tasks(rude):
    connector = rude(calls={"a": {"result": {"content": []}}})
    results = await asyncio.gather(*(connector.call("a", {}, timeout_s=20) for _ in range(20)))
    child = connector._session._link._process
    await asyncio.create_task(connector.aclose())
    assert {r.code for r in results} == {Code.OK}
    assert child.returncode is not None
    with pytest.raises(ProcessLookupError):
        os.kill(child.pid, 0)
    assert connector.broken
