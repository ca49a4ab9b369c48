"""The gateway before real clients in one process, in both protocol eras."""

from __future__ import annotations

import json

import anyio
import pytest
from mcp import Client, MCPError

from toolcrib.server import answers
from toolcrib.server.meta_tools import META_NAMES
from toolcrib.server.surface import SurfaceKind, mcp_name
from toolcrib.types import MAX_LIMIT, Channel, Code, ToolResult, Verdict

from .asking import ask, names, raw, tools
from .carriers import ADA, BOB, ERAS, gateway
from .fakes import FakeCrib, FakeOutcome, lost_policy, tool

WHOLE = {
    "name": "shipment_get",
    "title": "Shipment",
    "description": "Reads a shipment.",
    "inputSchema": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"id": {"$ref": "#/$defs/Id"}, "n": {"default": None, "maximum": 9007199254740993}},
        "$defs": {"Id": {"type": "string"}},
        "x-vendor": [1.5, None],
    },
    "annotations": {"readOnlyHint": True, "x-hint": "keep"},
    "_meta": {"com.example/owner": None},
    "execution": {"taskSupport": "optional"},
    "x-top": {"deep": [None, {"a": None}]},
}


@pytest.fixture
def crib():
    made = FakeCrib()
    made.put(tool("freight.shipment_get", WHOLE, preload=True))
    made.put(tool("freight.note_draft"))
    made.put(tool("billing.invoice_get"), known_to=frozenset({"bob"}))
    return made


era = pytest.mark.parametrize("mode", ERAS)


# --- listing


@era
async def test_lists_the_meta_tools_and_preloaded_tools_in_a_stable_order(crib, mode):
    async with Client(gateway(crib).server, mode=mode) as client:
        first = await names(client)
        assert first == [*META_NAMES, mcp_name("freight.shipment_get")]
        assert await names(client) == first


@era
async def test_listed_definition_is_unaltered_but_for_its_name(crib, mode):
    async with Client(gateway(crib).server, mode=mode) as client:
        shown = (await tools(client))[-1]
    assert shown == {**WHOLE, "name": mcp_name("freight.shipment_get")}


@era
async def test_typed_client_reads_the_list(crib, mode):
    async with Client(gateway(crib).server, mode=mode) as client:
        assert len((await client.list_tools()).tools) == 4


async def test_modern_list_is_private_and_has_its_envelope(crib):
    async with Client(gateway(crib).server) as client:
        result = await raw(client, "tools/list")
    assert result["resultType"] == "complete"
    assert result["cacheScope"] == "private"
    assert result["ttlMs"] > 0
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "toolcrib"


async def test_legacy_list_has_no_modern_fields(crib):
    async with Client(gateway(crib).server, mode="legacy") as client:
        assert set(await raw(client, "tools/list")) == {"tools"}


@era
async def test_an_unknown_cursor_is_refused(crib, mode):
    async with Client(gateway(crib).server, mode=mode) as client:
        with pytest.raises(MCPError) as refused:
            await raw(client, "tools/list", {"cursor": ""})
    assert refused.value.code == -32602


async def test_output_schema_without_object_root_does_not_break_a_legacy_client(crib):
    crib.put(tool("freight.list_all", {"outputSchema": {"type": "array"}}, preload=True))
    async with Client(gateway(crib).server, mode="legacy") as client:
        assert mcp_name("freight.list_all") in [t.name for t in (await client.list_tools()).tools]
    async with Client(gateway(crib).server) as client:
        shown = next(t for t in await tools(client) if t["name"] == mcp_name("freight.list_all"))
        assert shown["outputSchema"] == {"type": "array"}


@era
async def test_surface_all_lists_every_permitted_tool(crib, mode):
    async with Client(gateway(crib, surface=SurfaceKind.ALL).server, mode=mode) as client:
        assert await names(client) == [mcp_name("freight.note_draft"), mcp_name("freight.shipment_get")]
        with pytest.raises(MCPError):
            await ask(client, "find_tools", {"task": "note"})


@era
async def test_two_callers_see_two_lists_and_descriptions(crib, mode):
    async with Client(gateway(crib, caller=ADA).server, mode=mode) as client:
        ada, ada_says = await tools(client), client.instructions
    async with Client(gateway(crib, caller=BOB).server, mode=mode) as client:
        bob, bob_says = await tools(client), client.instructions
    assert "billing" not in json.dumps(ada) + (ada_says or "")
    assert "billing" in bob[0]["description"]
    assert "billing" in (bob_says or "")


@era
async def test_client_is_told_that_lists_change(crib, mode):
    async with Client(gateway(crib).server, mode=mode) as client:
        assert client.server_capabilities.tools is not None
        assert client.server_capabilities.tools.list_changed is True


# --- finding and describing


@era
async def test_find_answers_with_whole_definitions_as_structure_and_as_text(crib, mode):
    async with Client(gateway(crib).server, mode=mode) as client:
        result = await ask(client, "find_tools", {"task": "get the shipment"})
    body = result["structuredContent"]
    assert json.loads(result["content"][0]["text"]) == body
    assert body["outcome"] == "selected"
    (found,) = body["tools"]
    assert found["name"] == mcp_name("freight.shipment_get")
    assert found["tool_id"] == "freight.shipment_get"
    assert found["definition"] == {**WHOLE, "name": found["name"]}
    assert found["digest"].startswith("sha256:")
    assert "score" not in found
    assert body["trace_id"]


@era
async def test_find_passes_queries_and_limit(crib, mode):
    async with Client(gateway(crib).server, mode=mode) as client:
        result = await ask(client, "find_tools", {"task": "x", "queries": ["draft", "shipment"], "limit": 1})
    assert len(result["structuredContent"]["tools"]) == 1


@era
async def test_find_never_shows_a_hidden_tool(crib, mode):
    async with Client(gateway(crib).server, mode=mode) as client:
        result = await ask(client, "find_tools", {"task": "invoice"})
    assert result["structuredContent"]["outcome"] == "no_match"
    assert "invoice" not in json.dumps(result)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("find_tools", {}),
        ("find_tools", {"task": 1}),
        ("find_tools", {"task": "x", "limit": 0}),
        ("find_tools", {"task": "x", "limit": True}),
        ("find_tools", {"task": "x", "caller": "root"}),
        ("describe_tools", {"names": []}),
        ("describe_tools", {"names": ["x"] * 21}),
        ("call_tool", {"name": "x", "arguments": [1]}),
    ],
    ids=["missing", "type", "range", "boolean", "unknown", "empty", "too-many", "array"],
)
async def test_wrong_arguments_of_meta_tools_come_back_as_faults(crib, name, arguments):
    async with Client(gateway(crib).server) as client:
        result = await ask(client, name, arguments)
    assert result["isError"] is True
    assert result["structuredContent"]["code"] == "invalid_arguments"
    assert result["structuredContent"]["faults"]
    assert crib.calls == []


@era
async def test_describe_gives_whole_definitions_in_the_order_asked(crib, mode):
    asked = ["freight.note_draft", "nowhere.tool", mcp_name("freight.shipment_get")]
    async with Client(gateway(crib).server, mode=mode) as client:
        entries = (await ask(client, "describe_tools", {"names": asked}))["structuredContent"]["tools"]
    assert [entry["code"] for entry in entries] == ["ok", "not_available", "ok"]
    assert entries[2]["definition"] == {**WHOLE, "name": mcp_name("freight.shipment_get")}


# --- calling


@era
async def test_call_by_name_by_id_and_directly(crib, mode):
    name = mcp_name("freight.note_draft")
    async with Client(gateway(crib).server, mode=mode) as client:
        through = await ask(client, "call_tool", {"name": name, "arguments": {"a": 1}})
        by_id = await ask(client, "call_tool", {"name": "freight.note_draft", "arguments": {"a": 1}})
        direct = await ask(client, name, {"a": 1})
    assert through == by_id == direct
    assert direct["structuredContent"] == {"a": 1}
    assert crib.calls == [("freight.note_draft", Channel.STDIO, "ada")] * 3


@era
async def test_arguments_may_be_left_out(crib, mode):
    async with Client(gateway(crib).server, mode=mode) as client:
        assert (await raw(client, "tools/call", {"name": mcp_name("freight.note_draft")}))["structuredContent"] == {}
        assert (await ask(client, "call_tool", {"name": "freight.note_draft"}))["structuredContent"] == {}


ANSWER = {
    "content": [{"type": "text", "text": "", "x-block": None}, {"type": "x-unknown", "data": [None]}],
    "structuredContent": {"deep": [None, 1.0]},
    "isError": False,
    "_meta": {"com.example/k": None, "io.modelcontextprotocol/serverInfo": {"name": "hidden backend", "version": "1"}},
    "x-field": [1],
}


@era
@pytest.mark.parametrize("failed", [False, True], ids=["ok", "error"])
async def test_result_passes_as_its_server_sent_it(crib, mode, failed):
    sent = {**ANSWER, "isError": failed, "resultType": "complete", "ttlMs": 5}
    crib.answers["freight.note_draft"] = lambda _arguments: sent
    async with Client(gateway(crib).server, mode=mode) as client:
        got = await ask(client, mcp_name("freight.note_draft"))
    own_name = got["_meta"].pop("io.modelcontextprotocol/serverInfo", {"name": "toolcrib"})
    assert own_name["name"] == "toolcrib"
    assert got.pop("resultType", "complete") == "complete"
    assert got == {**ANSWER, "isError": failed, "_meta": {"com.example/k": None}}


async def test_legacy_client_gets_structure_that_is_no_object_as_text(crib):
    crib.answers["freight.note_draft"] = lambda _arguments: {"content": [], "structuredContent": [1, 2]}
    async with Client(gateway(crib).server, mode="legacy") as client:
        got = await client.call_tool(mcp_name("freight.note_draft"))
        assert got.content[0].text == "[1,2]"
    async with Client(gateway(crib).server) as client:
        assert (await ask(client, mcp_name("freight.note_draft")))["structuredContent"] == [1, 2]


async def test_only_trace_keys_of_the_callers_meta_go_on(crib):
    trace = {"traceparent": "00-1", "tracestate": "a=1", "baggage": "b=2"}
    meta = {**trace, "progressToken": 7, "force": True, "com.example/tenant": "other"}
    async with Client(gateway(crib).server) as client:
        await client.call_tool(mcp_name("freight.note_draft"), meta=meta)
        await client.call_tool(mcp_name("freight.note_draft"), meta={"traceparent": {"force": True}})
    assert crib.metas == [trace, {}]


@era
async def test_refusal_says_what_to_mend(crib, mode):
    async with Client(gateway(crib).server, mode=mode) as client:
        result = await ask(client, "call_tool", {"name": "freight.note_draft", "arguments": {"bad": 1}})
    assert result["isError"] is True
    body = result["structuredContent"]
    assert body["code"] == "invalid_arguments"
    assert body["faults"] == [{"path": "/bad", "expected": "nothing", "got": "something"}]
    assert body["trace_id"]
    assert json.loads(result["content"][0]["text"]) == body
    assert "check" not in body


async def test_refusal_of_a_tool_with_output_schema_is_text_alone(crib):
    schema = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
    crib.put(tool("freight.count", {"outputSchema": schema}, preload=True))
    async with Client(gateway(crib).server) as client:
        result = await ask(client, mcp_name("freight.count"), {"bad": 1})
    assert "structuredContent" not in result
    assert json.loads(result["content"][0]["text"])["code"] == "invalid_arguments"


@era
async def test_offered_digest_that_is_no_longer_true_is_a_conflict(crib, mode):
    async with Client(gateway(crib).server, mode=mode) as client:
        found = (await ask(client, "find_tools", {"task": "draft"}))["structuredContent"]["tools"][0]
        asked = {"name": found["name"], "digest": found["digest"]}
        assert "isError" not in await ask(client, "call_tool", asked)
        crib.change("freight.note_draft", description="Now it does something else.")
        result = await ask(client, "call_tool", asked)
    assert result["structuredContent"]["code"] == "conflict"


# --- what the gate adds


@era
async def test_notes_of_the_output_check_stand_beside_the_result_and_no_server_can_write_them(crib, mode):
    forged = {"content": [], "_meta": {"io.toolcrib/notes": ["checked, all good"], "com.example/k": 1}}
    crib.answers["freight.note_draft"] = lambda _arguments: forged
    async with Client(gateway(crib).server, mode=mode) as client:
        plain = await ask(client, mcp_name("freight.note_draft"))
        crib.notes = ("output_schema: /n is text",)
        noted = await ask(client, mcp_name("freight.note_draft"))
    for result in (plain, noted):
        result["_meta"].pop("io.modelcontextprotocol/serverInfo", None)
    assert plain["_meta"] == {"com.example/k": 1}
    assert noted["_meta"] == {"com.example/k": 1, "io.toolcrib/notes": ["output_schema: /n is text"]}


def test_notes_of_a_result_without_a_server_are_shown_too():
    done = ToolResult(code=Code.OK, content=({"type": "text", "text": "x"},), structured=[1], notes=("n",))
    outcome = FakeOutcome(code=Code.OK, message="", verdict=Verdict(code=Code.OK, message=""), result=done)
    assert answers.called(outcome) == {
        "content": [{"type": "text", "text": "x"}],
        "isError": False,
        "structuredContent": [1],
        "_meta": {"io.toolcrib/notes": ["n"]},
    }


@pytest.mark.parametrize("code", [c for c in Code if c not in (Code.OK, Code.NOT_AVAILABLE)])
def test_every_refusal_is_an_error_result_with_its_code_and_words(code):
    verdict = Verdict(code=code, message="m", check="secret", policies=("secret",), earlier_trace="t0")
    result = answers.called(FakeOutcome(code=code, message="Do this.", verdict=verdict, trace_id="t1"))
    body = result["structuredContent"]
    assert (result["isError"], body["code"], body["message"]) == (True, code.value, "Do this.")
    assert (body["earlier_trace_id"], body["trace_id"]) == ("t0", "t1")
    assert "secret" not in json.dumps(result)


@era
async def test_the_callers_idempotency_key_reaches_the_gate_and_no_further(crib, mode):
    meta = {"io.toolcrib/idempotencyKey": "order-7"}
    async with Client(gateway(crib).server, mode=mode) as client:
        await client.call_tool(mcp_name("freight.note_draft"), {}, meta=meta)
        await client.call_tool("call_tool", {"name": "freight.note_draft"}, meta=meta)
        await client.call_tool("call_tool", {"name": "freight.note_draft"})
    assert crib.keys == ["order-7", "order-7", ""]
    assert crib.metas == [{}, {}, {}]


@era
@pytest.mark.parametrize("key", [7, "", "x" * 201, ["a"]], ids=["number", "empty", "long", "list"])
@pytest.mark.parametrize("name", ["call_tool", mcp_name("freight.note_draft")])
async def test_an_idempotency_key_that_is_none_is_refused_before_anything_runs(crib, mode, key, name):
    async with Client(gateway(crib).server, mode=mode) as client:
        with pytest.raises(MCPError) as refused:
            meta = {"io.toolcrib/idempotencyKey": key}
            await client.call_tool(name, {"name": "freight.note_draft"}, meta=meta)
    assert refused.value.code == -32602
    assert crib.calls == []


@era
async def test_what_is_listed_or_described_counts_as_offered_and_nothing_else_does(crib, mode):
    async with Client(gateway(crib).server, mode=mode) as client:
        await names(client)
        assert crib.offered == [("ada", ("freight.shipment_get",))]
        crib.offered.clear()
        await ask(client, "describe_tools", {"names": ["billing.invoice_get", "nowhere", "freight.note_draft"]})
        await ask(client, "describe_tools", {"names": ["billing.invoice_get"]})
        await ask(client, "call_tool", {"name": "freight.note_draft"})
    assert crib.offered == [("ada", ("freight.note_draft",))]


# --- missing, hidden, withdrawn: one answer


def without_trace(result):
    body = {k: v for k, v in result["structuredContent"].items() if k != "trace_id"}
    return {**result, "structuredContent": body, "content": []}


@era
async def test_hidden_and_missing_tool_are_told_apart_by_nothing(crib, mode):
    hidden, missing = "billing.invoice_get", "billing.invoice_got"
    async with Client(gateway(crib).server, mode=mode) as client:
        through = [without_trace(await ask(client, "call_tool", {"name": n})) for n in (hidden, missing)]
        described = [json.dumps(await ask(client, "describe_tools", {"names": [n]})) for n in (hidden, missing)]
        direct = []
        for name in (hidden, missing, mcp_name(hidden), mcp_name(missing)):
            with pytest.raises(MCPError) as refused:
                await ask(client, name)
            direct.append((refused.value.code, refused.value.message, refused.value.data))
    assert json.dumps(through[0]) == json.dumps(through[1])
    assert through[0]["structuredContent"]["code"] == "not_available"
    assert described[0].replace(hidden, missing) == described[1]
    assert set(direct) == {(-32602, "Unknown tool", None)}


@era
@pytest.mark.parametrize("schema", [None, {"type": "object"}], ids=["untyped", "typed"])
async def test_a_resource_that_is_not_available_is_told_apart_from_the_tool(crib, mode, schema):
    crib.put(tool("freight.move", {"outputSchema": schema} if schema else {}))
    async with Client(gateway(crib).server, mode=mode) as client:
        through = await ask(client, "call_tool", {"name": "freight.move", "arguments": {"foreign": "S-1"}})
        direct = await ask(client, mcp_name("freight.move"), {"foreign": "S-1"})
    for result in (through, direct):
        body = json.loads(result["content"][0]["text"])
        assert result["isError"] is True
        assert (body["code"], body["message"]) == ("not_available", "What the arguments name is not available.")
        assert "policy" not in json.dumps(result)
    assert ("structuredContent" in direct) == (schema is None)


async def test_no_more_tools_can_be_asked_for_than_a_selection_holds(crib):
    async with Client(gateway(crib).server) as client:
        find = next(t for t in (await raw(client, "tools/list"))["tools"] if t["name"] == "find_tools")
        assert find["inputSchema"]["properties"]["limit"]["maximum"] == MAX_LIMIT
        asked = [await ask(client, "find_tools", {"task": "draft", "limit": n}) for n in (MAX_LIMIT, MAX_LIMIT + 1)]
    assert not asked[0].get("isError")
    assert asked[1]["structuredContent"]["code"] == "invalid_arguments"


async def test_the_text_beside_structured_content_is_compact(crib):
    async with Client(gateway(crib).server) as client:
        found = await ask(client, "find_tools", {"task": "draft"})
    compact = json.dumps(found["structuredContent"], ensure_ascii=False, separators=(",", ":"))
    assert found["content"][0]["text"] == compact


async def test_a_call_to_an_unknown_name_reaches_the_crib_so_that_it_is_traced(crib):
    async with Client(gateway(crib).server) as client:
        with pytest.raises(MCPError):
            await ask(client, "nowhere")
        await ask(client, "call_tool", {"name": "nowhere"})
    assert [call[0] for call in crib.calls] == ["nowhere", "nowhere"]


@era
async def test_revoked_after_listing_is_refused(crib, mode):
    name = mcp_name("freight.shipment_get")
    async with Client(gateway(crib).server, mode=mode) as client:
        assert name in await names(client)
        crib.tools["freight.shipment_get"] = (crib.tools["freight.shipment_get"][0], frozenset())
        with pytest.raises(MCPError) as refused:
            await ask(client, name)
        assert refused.value.message == "Unknown tool"
        assert name not in await names(client)


@era
async def test_nothing_a_caller_sees_depends_on_a_hidden_tool(crib, mode):
    async def seen():
        async with Client(gateway(crib).server, mode=mode) as client:
            found = await ask(client, "find_tools", {"task": "shipment invoice"})
            described = await ask(client, "describe_tools", {"names": ["billing.invoice_get"]})
            return json.dumps(
                [await raw(client, "tools/list"), without_trace(found), described, client.instructions], sort_keys=True
            )

    before = await seen()
    crib.change("billing.invoice_get", description="shipment shipment", outputSchema={"type": "array"})
    crib.prefer("billing.invoice_get", preload=True, namespace="secret")
    changed = await seen()
    crib.drop("billing.invoice_get")
    assert before == changed == await seen()


# --- faults


@era
@pytest.mark.parametrize("fault", [lost_policy(), RuntimeError("secret")], ids=["ours", "foreign"])
async def test_faults_permit_nothing_and_leave_no_internal_text(crib, mode, fault):
    async with Client(gateway(crib).server, mode=mode) as client:
        crib.fault = fault
        with pytest.raises(MCPError) as refused:
            await raw(client, "tools/list")
        results = [
            await ask(client, "find_tools", {"task": "x"}),
            await ask(client, "call_tool", {"name": "freight.note_draft"}),
            await ask(client, mcp_name("freight.note_draft")),
        ]
    assert refused.value.code == -32603
    assert [r["structuredContent"]["code"] for r in results] == [Code.UNAVAILABLE] * 3
    assert "secret" not in str(refused.value) + json.dumps(results)


@era
async def test_client_connects_while_policy_is_lost_and_is_told_nothing(crib, mode):
    crib.fault = lost_policy()
    async with Client(gateway(crib).server, mode=mode) as client:
        assert "secret" not in (client.instructions or "")
        assert "freight" not in (client.instructions or "")


@pytest.mark.parametrize(
    "params", [{}, {"name": 1}, {"name": "x", "arguments": []}], ids=["no-name", "name-type", "arguments-type"]
)
@era
async def test_malformed_calls_are_invalid_params(crib, mode, params):
    async with Client(gateway(crib).server, mode=mode) as client:
        with pytest.raises(MCPError) as refused:
            await raw(client, "tools/call", params)
    assert refused.value.code == -32602
    assert crib.calls == []


async def test_strings_that_are_not_unicode_are_refused(crib):
    async with Client(gateway(crib).server) as client:
        with pytest.raises(MCPError) as refused:
            await ask(client, "describe_tools", {"names": ["\ud800"]})
    assert refused.value.code == -32602


@pytest.mark.parametrize("task", ["", "?!*", "x " * 25_000, "שלום 世界", '" OR 1=1 --'])
async def test_any_task_is_answered(crib, task):
    async with Client(gateway(crib).server) as client:
        result = await ask(client, "find_tools", {"task": task})
    assert result["structuredContent"]["outcome"] in ("no_match", "selected")


# --- changes


async def test_only_those_whose_list_changed_are_told(crib):
    ada, bob = gateway(crib, caller=ADA), gateway(crib, caller=BOB)
    async with (
        Client(ada.server) as one,
        Client(bob.server) as other,
        one.listen(tools_list_changed=True) as ada_hears,
        other.listen(tools_list_changed=True) as bob_hears,
    ):
        crib.prefer("billing.invoice_get", preload=True)  # bob's alone
        assert (await ada.notify_catalog_changed(), await bob.notify_catalog_changed()) == (0, 1)
        with anyio.fail_after(5):
            await bob_hears.__anext__()
        crib.change("freight.shipment_get", description="other")
        assert (await ada.notify_catalog_changed(), await bob.notify_catalog_changed()) == (1, 1)
        with anyio.fail_after(5):
            await ada_hears.__anext__()
            await bob_hears.__anext__()


async def test_closed_stream_is_forgotten(crib):
    door = gateway(crib)
    async with Client(door.server) as client:
        async with client.listen(tools_list_changed=True):
            assert len(door._changes._watchers) == 1
        with anyio.fail_after(5):
            while len(door._changes._watchers):
                await anyio.lowlevel.checkpoint()


async def test_streams_end_in_good_order_when_the_server_stops(crib):
    door = gateway(crib)
    async with Client(door.server) as client, client.listen(tools_list_changed=True) as hears:
        door.close_streams()
        with anyio.fail_after(5):
            assert [event async for event in hears] == []


async def test_legacy_session_is_told_when_its_list_changed_and_only_then(crib):
    told = []

    async def hear(message):
        told.append(type(message).__name__)

    door = gateway(crib)
    async with Client(door.server, mode="legacy", message_handler=hear) as client:
        await names(client)
        crib.prefer("billing.invoice_get", preload=True)
        assert await door.notify_catalog_changed() == 0
        crib.drop("freight.shipment_get")
        assert await door.notify_catalog_changed() == 1
        await client.list_tools()
    assert told == ["ToolListChangedNotification"]
    assert await door.notify_catalog_changed() == 0


async def test_a_change_made_elsewhere_is_noticed_while_somebody_listens(crib):
    door = gateway(crib)
    door._poll_s = 0.01
    async with Client(door.server) as client, client.listen(tools_list_changed=True) as hears:
        crib.drop("freight.shipment_get")
        with anyio.fail_after(5):
            await hears.__anext__()
