"""The probe at intake over the whole road: a stuffed definition is pointed out to the reviewer, and to nobody else."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.flow.worlds import World, Worlds, tool
from toolcrib.crib import Crib
from toolcrib.errors import RetrievalError
from toolcrib.retrieval.tokenize import content_words
from toolcrib.review.probe import RULE, probe_requests

_NOUNS = "invoice pallet turbine violin glacier passport lantern beehive quarry saddle tractor chapel".split()
HONEST = [
    tool(f"{verb}_{noun}", f"{verb.capitalize()} one {noun} of the museum.")
    for verb in ("create", "paint", "weigh", "insure", "lend")
    for noun in _NOUNS
]
_COUNTS = Counter(word.lower() for request in probe_requests() for word in set(content_words(request)))
STUFFED = tool("assistant", "Helps with " + " ".join(word for word, _ in _COUNTS.most_common(300)))


def told(one: World) -> dict[str, list[str]]:
    """What the probe has to say; lint has its own tests."""
    found = {
        item.tool.tool_id: [f.rule for f in item.findings if f.rule in (RULE, "kept")] for item in one.crib.review()
    }
    return {tool_id: rules for tool_id, rules in found.items() if rules}


@pytest.fixture(params=["bundled", "none"])
def museum(make_world: Worlds, request: pytest.FixtureRequest) -> World:
    return make_world({"museum": HONEST}, toml=f'[retrieval]\nembedder = "{request.param}"\n')


def test_a_stuffed_definition_beside_tools_in_service_is_pointed_out_first(museum: World) -> None:
    museum.write("museum", [*HONEST, tool("sell_globe", "Sell one globe of the museum."), STUFFED])
    museum.refresh()
    assert told(museum) == {"museum.assistant": [RULE]}
    assert [item.tool.tool_id for item in museum.crib.review()] == ["museum.assistant", "museum.sell_globe"]


def test_a_stuffed_definition_among_the_first_import_is_pointed_out(make_world: Worlds) -> None:
    one = make_world({"museum": [*HONEST, STUFFED]}, approve=False)
    assert told(one) == {"museum.assistant": [RULE]}


def test_findings_are_kept_until_the_catalog_changes(museum: World) -> None:
    museum.write("museum", [*HONEST, STUFFED])
    museum.refresh()
    first = told(museum)
    kept = museum.folder / ".toolcrib" / "probe" / "found.json"
    body = json.loads(kept.read_text(encoding="utf-8"))
    body["found"]["museum.assistant"]["rule"] = "kept"
    kept.write_text(json.dumps(body), encoding="utf-8")
    assert told(museum) == {"museum.assistant": ["kept"]}
    kept.write_text("damaged", encoding="utf-8")
    assert told(museum) == first
    museum.crib.approve(["museum.assistant"], reviewer="ann")
    assert told(museum) == {}


def test_a_small_catalog_is_not_probed(make_world: Worlds) -> None:
    one = make_world({"museum": HONEST[:20]})
    one.write("museum", [*HONEST[:20], STUFFED])
    one.refresh()
    assert told(one) == {}
    assert not (one.folder / ".toolcrib" / "probe").exists()


def test_a_definition_that_is_no_object_costs_only_itself(museum: World) -> None:
    museum.write("museum", [*HONEST, STUFFED, "no object", tool("odd", "Odd.", properties={"a": 1})])
    museum.refresh()
    assert told(museum) == {"museum.assistant": [RULE]}


def test_i01_a_tool_that_waits_changes_nothing_for_callers(museum: World) -> None:
    before = museum.crib.select("paint a lantern").selection
    museum.write("museum", [*HONEST, STUFFED])
    museum.refresh()
    museum.crib.review()
    assert museum.crib.select("paint a lantern").selection == before


def test_progress_is_told_once_a_catalog(museum: World) -> None:
    museum.write("museum", [*HONEST, STUFFED])
    museum.refresh()
    heard: list[str] = []
    with Crib.open(museum.folder, on_progress=heard.append) as crib:
        crib.review()
        crib.review()
    assert heard.count("trying how easily what waits is found (definitions: 1)") == 1


def test_i12_a_damaged_ranker_costs_no_review(museum: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(_model_id: str) -> None:
        raise RetrievalError("the ranker cannot be read")

    museum.write("museum", [*HONEST, STUFFED])
    museum.refresh()
    monkeypatch.setattr("toolcrib.retrieval.search.trees_for", damaged)
    assert told(museum) == {"museum.assistant": [RULE]}


def test_i12_a_probe_whose_search_fails_costs_no_review(museum: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(*_args: object, **_more: object) -> None:
        raise RetrievalError("the index cannot be used")

    museum.write("museum", [*HONEST, STUFFED])
    museum.refresh()
    monkeypatch.setattr("toolcrib.retrieval.search.View.search", damaged)
    assert [item.tool.tool_id for item in museum.crib.review()] == ["museum.assistant"]
    assert told(museum) == {}
