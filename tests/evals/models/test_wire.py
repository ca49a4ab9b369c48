"""The vendors' shapes, field by field where a vendor is strict."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.evals.models.making import WIRES, shop
from tests.flow.worlds import World
from toolcrib.errors import ConfigError, ConnectorProtocolError
from toolcrib.evals.models.anthropic_wire import AnthropicWire
from toolcrib.evals.models.openai_wire import OpenAIWire, _namespace
from toolcrib.evals.models.protocol import Answered
from toolcrib.types import LOCAL, Tool


@pytest.fixture
def tools(tmp_path: Path) -> Iterator[tuple[Tool, ...]]:
    world: World = shop(tmp_path / "crib")
    yield tuple(world.crib.tools(LOCAL))
    world.close()


def test_anthropic_defers_every_tool_but_its_search(tools: tuple[Tool, ...]) -> None:
    first, *rest = AnthropicWire().searched(tools, kind="regex")
    assert first == {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}
    assert len(rest) == len(tools) and all(one["defer_loading"] is True for one in rest)
    assert AnthropicWire().searched(tools, kind="bm25")[0]["type"] == "tool_search_tool_bm25_20251119"


def test_anthropic_search_takes_ten_thousand_tools(tools: tuple[Tool, ...]) -> None:
    with pytest.raises(ConfigError, match="10,001"):
        AnthropicWire().searched(tools[:1] * 10_001, kind="bm25")


def test_openai_groups_deferred_tools_by_server(tools: tuple[Tool, ...]) -> None:
    search, *spaces = OpenAIWire().searched(tools, kind="bm25")
    assert search == {"type": "tool_search"}
    assert {space["name"]: len(space["tools"]) for space in spaces} == {"mail": 2, "shop": 3}
    assert spaces[0]["description"] == "Tools of mail: list_folders, send_message."
    assert all(one["defer_loading"] is True and one["type"] == "function" for s in spaces for one in s["tools"])


def test_namespaces_are_legal_and_differ() -> None:
    assert _namespace("git-hub_1") == "git-hub_1"
    odd = [_namespace(one) for one in ("a b", "a.b", "ü" * 90, "")]
    assert len(set(odd)) == 4 and all(len(one) <= 64 and one.isascii() and " " not in one for one in odd)


def test_a_paused_answer_is_sent_back_alone() -> None:
    wire = AnthropicWire()
    request = wire.opening("t", model="m", system="s", tools=[], max_output=9)
    answer = {"content": [{"type": "text", "text": "x"}], "stop_reason": "pause_turn",
              "usage": {"input_tokens": 1, "output_tokens": 1}}  # fmt: skip
    assert wire.read(answer).paused
    assert wire.following(request, answer, [])["messages"][1:] == [{"role": "assistant", "content": answer["content"]}]


def test_results_go_back_under_the_ids_of_their_calls() -> None:
    given = [Answered(call_id="1", text="a"), Answered(call_id="2", text="b", is_error=True)]
    opened = AnthropicWire().opening("t", model="m", system="s", tools=[], max_output=9)
    assert AnthropicWire().following(opened, {"content": []}, given)["messages"][-1]["content"] == [
        {"type": "tool_result", "tool_use_id": "1", "content": "a"},
        {"type": "tool_result", "tool_use_id": "2", "content": "b", "is_error": True},
    ]
    opened = OpenAIWire().opening("t", model="m", system="s", tools=[], max_output=9)
    assert OpenAIWire().following(opened, {"output": []}, given)["input"][1:] == [
        {"type": "function_call_output", "call_id": "1", "output": "a"},
        {"type": "function_call_output", "call_id": "2", "output": "b"},
    ]


def test_arguments_that_are_not_json_stay_text() -> None:
    item = {"type": "function_call", "call_id": "1", "name": "n", "arguments": '{"a":'}
    turn = OpenAIWire().read({"output": [item], "usage": {"input_tokens": 1, "output_tokens": 1}})
    assert turn.calls[0].arguments == '{"a":'


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("answer", [{}, {"content": None, "output": None}, {"content": [{}], "output": [{}]}])
def test_another_services_answer_is_a_fault(wire: str, answer: dict[str, object]) -> None:
    with pytest.raises(ConnectorProtocolError, match="--base-url"):
        WIRES[wire][0].read(answer)
