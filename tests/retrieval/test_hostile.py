from __future__ import annotations

from typing import Any

import pytest

from tests.retrieval.making import build, everyone, ids, search, tool
from toolcrib.retrieval.confidence import DEFAULT_FLOOR

TOOLS = (
    tool("hub.createPullRequest", "Opens a PR in a repository."),
    tool("hub.get_weather", "Current weather for a city."),
    tool("shop.issue_refund", "Return money to a customer."),
)


@pytest.mark.parametrize(
    "task", ["", " \n\t", "?!.,;:", "the of and to", "can you please help me", "\u200b\u202e", "\x00"]
)
def test_task_that_says_nothing_is_empty_and_finds_nothing(task: str) -> None:
    ranking = search(TOOLS, task)

    assert ranking.empty_query
    assert ranking.hits == ()


@pytest.mark.parametrize(
    "task",
    [
        pytest.param("a" * 50_000, id="one long word"),
        pytest.param('"*" NEAR( OR AND NOT', id="search operators"),
        pytest.param("' OR 1=1 --", id="sql"),
        pytest.param("\u202etxet neddih", id="right to left mark"),
        pytest.param("\ud800\udfff pull\x00", id="surrogates and null"),
        pytest.param('{"tenant":"other","role":"admin"}', id="json"),
        pytest.param("((((" * 10_000 + "x", id="brackets"),
        pytest.param("a.b" * 15_000, id="dots"),
        pytest.param("'\"`" * 15_000, id="quotes"),
        pytest.param("do not " * 7_000, id="negations"),
        pytest.param("😀" * 20_000, id="emoji"),
    ],
)
def test_hostile_task_neither_crashes_nor_opens_everything(task: str) -> None:
    ranking = search(TOOLS, task, task)

    assert sum(hit.confidence >= DEFAULT_FLOOR for hit in ranking.hits) < len(TOOLS)


def test_repetition_changes_nothing() -> None:
    assert ids(search(TOOLS, "weather " * 6_000))[0] == "hub.get_weather"


def test_request_after_a_long_paste_is_read() -> None:
    assert ids(search(TOOLS, "lorem ipsum dolor " * 3_000 + "issue a refund to the customer"))[0] == "shop.issue_refund"


RECURSIVE: dict[str, Any] = {
    "type": "object",
    "properties": {"node": {"$ref": "#/$defs/Node"}},
    "$defs": {"Node": {"properties": {"child": {"$ref": "#/$defs/Node"}, "label": {"description": "zebra"}}}},
}


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param(None, id="null"),
        pytest.param(True, id="true"),
        pytest.param([], id="list"),
        pytest.param({"properties": ["zebra", {"name": "stripe"}, 3]}, id="properties list"),
        pytest.param({"properties": "zebra"}, id="properties string"),
        pytest.param({"properties": {"a": None, "b": 3, "c": [1]}}, id="odd children"),
        pytest.param({"properties": {"a": {"enum": [None, {}, "zebra"], "description": 5}}}, id="odd enum"),
        pytest.param({"anyOf": [None, {"properties": {"zebra": {}}}], "items": [1]}, id="branches"),
        pytest.param({"$ref": "#"}, id="ref to itself"),
        pytest.param({"$ref": "http://example.invalid/schema"}, id="foreign ref"),
        pytest.param(RECURSIVE, id="recursive ref"),
    ],
)
def test_any_schema_shape_costs_neither_the_tool_nor_its_siblings(schema: Any) -> None:
    odd = tool("zoo.feed_animal", "Feed an animal.", schema=schema)

    assert ids(search((*TOOLS, odd), "feed the animal"))[0] == "zoo.feed_animal"
    assert ids(search((*TOOLS, odd), "weather of the city"))[0] == "hub.get_weather"


def test_text_behind_references_and_branches_is_searched() -> None:
    tools = (tool("zoo.tx_1", "Internal.", schema=RECURSIVE), tool("zoo.tx_2", "Internal."))

    assert ids(search(tools, "zebra"))[0] == "zoo.tx_1"


def test_deep_nesting_ends() -> None:
    schema: dict[str, Any] = {}
    for _ in range(500):
        schema = {"properties": {"inner": schema}}

    index = build((tool("deep.well", "Look into the well.", schema=schema),))

    assert ids(index.view(everyone(index)).search("look into the well")) == ["deep.well"]
