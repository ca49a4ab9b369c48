from __future__ import annotations

import copy
from types import SimpleNamespace

import pytest

from toolcrib.providers import anthropic, gemini, mcp, openai
from toolcrib.types import ToolCall

from .making import tool

SCHEMA = {
    "type": "object",
    "properties": {"node": {"$ref": "#/$defs/Node"}},
    "$defs": {"Node": {"type": "object", "properties": {"kids": {"items": {"$ref": "#/$defs/Node"}}}}},
    "x-own": [1],
}
DEFINITION = {
    "name": "admin.tree",
    "title": "Tree",
    "description": "Write a tree.",
    "inputSchema": SCHEMA,
    "outputSchema": {"type": "array"},
    "annotations": {"readOnlyHint": False},
    "_meta": {"vendor/field": 1},
    "unknown": {"kept": True},
}
TREE = tool("forest.admin.tree", DEFINITION)
BARE = tool("forest.ping", {"name": "ping", "inputSchema": {"type": "object"}})
NAME = "forest__admin_tree__zyvtabzj2u"


def test_anthropic_tools():
    assert anthropic.tool_definitions([TREE, BARE]) == [
        {"name": NAME, "description": "Write a tree.", "input_schema": SCHEMA},
        {"name": "forest__ping", "description": "", "input_schema": {"type": "object"}},
    ]


def test_openai_function_tools():
    assert openai.tool_definitions([TREE]) == [
        {"type": "function", "name": NAME, "description": "Write a tree.", "parameters": SCHEMA, "strict": False}
    ]


def test_gemini_function_declarations():
    assert gemini.tool_definitions([TREE]) == [
        {"name": NAME, "description": "Write a tree.", "parameters_json_schema": SCHEMA}
    ]


def test_mcp_definitions_are_unaltered_but_for_the_name():
    (listed,) = mcp.tool_definitions([TREE])
    assert listed == {**DEFINITION, "name": NAME}
    assert list(listed) == list(DEFINITION)


@pytest.mark.parametrize("provider", [anthropic, openai, gemini, mcp], ids=lambda module: module.__name__)
def test_what_is_handed_out_is_the_applications_to_change(provider):
    before = copy.deepcopy(DEFINITION)
    (payload,) = provider.tool_definitions([TREE])
    for value in payload.values():
        if isinstance(value, dict):
            value["broken"] = True
            value.get("properties", {}).clear()
    assert before == DEFINITION


def test_a_tool_use_block_becomes_a_call_with_the_digest_it_was_offered_under():
    block = {"type": "tool_use", "id": "toolu_1", "name": NAME, "input": {"node": {}}}
    expected = ToolCall(tool_id="forest.admin.tree", arguments={"node": {}}, offered_digest=TREE.digest)
    assert anthropic.tool_call_from_anthropic(block, [BARE, TREE]) == expected
    assert anthropic.tool_call_from_anthropic(SimpleNamespace(**block), [BARE, TREE]) == expected


def test_a_function_call_item_becomes_a_call_with_the_digest_it_was_offered_under():
    item = {"type": "function_call", "call_id": "c1", "name": "forest__ping", "arguments": '{"n": 1}'}
    expected = ToolCall(tool_id="forest.ping", arguments={"n": 1}, offered_digest=BARE.digest)
    assert openai.tool_call_from_openai(item, [BARE, TREE]) == expected
    assert openai.tool_call_from_openai(SimpleNamespace(**item), [BARE, TREE]) == expected


@pytest.mark.parametrize("arguments", ["{not json", "", '"text"', "[1]", "[" * 100_000], ids=lambda text: text[:9])
def test_arguments_that_are_no_object_reach_the_gate_as_they_are(arguments):
    call = openai.tool_call_from_openai({"name": "forest__ping", "arguments": arguments}, [BARE])
    assert call.tool_id == "forest.ping"
    assert not isinstance(call.arguments, dict)


@pytest.mark.parametrize("name", ["forest__pong", "", None, 5, "find_tools"], ids=str)
def test_a_name_that_was_not_offered_is_no_tools_id_and_has_no_digest(name):
    call = anthropic.tool_call_from_anthropic({"name": name, "input": {}}, [BARE, TREE])
    assert call.tool_id not in {BARE.tool_id, TREE.tool_id}
    assert call.offered_digest == ""
