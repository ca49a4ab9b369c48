"""Places: who asks a case of a crib, and what it costs to name somebody who is not there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.evals.making import shop_place
from tests.flow.worlds import World, tool
from toolcrib.errors import ConfigError
from toolcrib.evals.cases import Case, case_of
from toolcrib.evals.places import place_of_crib


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    one = World(tmp_path, {"shop": [tool("get_order", "Look up one order.")]})
    (one.folder / "profiles").mkdir()
    (one.folder / "profiles" / "olga.json").write_text(json.dumps({"subject": "olga", "roles": ["lead"]}), "utf-8")
    yield one
    one.close()


def case(caller: object) -> Case:
    return case_of({"id": "a", "task": "look up an order", "expect": ["shop.get_order"], "caller": caller}, where="f:1")


def test_a_case_is_asked_by_the_profile_or_the_fields_that_it_names(world: World) -> None:
    fields = {"subject": "agent", "kind": "agent", "acting_for": {"subject": "ann", "tenant": "acme"}}
    nobody = case_of({"id": "b", "task": "look up an order", "expect": None}, where="f:2")
    place = place_of_crib(world.crib, [case("olga"), case(fields), nobody], name="cases")
    olga, agent, local = (asked.caller for asked in place.asked)
    assert (olga.subject, olga.roles, olga.environment) == ("olga", frozenset({"lead"}), "test")
    assert agent.acting_for is not None
    assert (agent.subject, agent.acting_for.subject, agent.acting_for.tenant) == ("agent", "ann", "acme")
    assert local == world.crib.local_caller


@pytest.mark.parametrize(
    ("caller", "told"),
    [("olag", 'did you mean "olga"?'), ("zz", "there are: olga"), ({"subject": "x", "rolls": ["a"]}, "rolls")],
    ids=["a slip", "nobody like that", "a field that there is not"],
)
def test_a_caller_that_is_not_there_is_an_error_with_what_there_is(world: World, caller: object, told: str) -> None:
    with pytest.raises(ConfigError) as fault:
        place_of_crib(world.crib, [case(caller)], name="cases")
    assert told in str(fault.value) and "f:1" in str(fault.value)


def test_a_folder_is_a_world_of_its_own_in_which_everything_is_permitted(tmp_path: Path) -> None:
    place = shop_place(tmp_path / "shop")
    assert place.own_world
    ids = [one.tool_id for one in place.pipeline.snapshot.tools]
    for asked in place.asked:
        assert [one.tool_id for one in place.pipeline.view(asked.caller, place.channel).tools] == ids
    bits = place.mask(frozenset({"shop.get_order", "not.there"}))
    assert [ids[n] for n in place.numbers(["shop.get_order", "not.there"])] == ["shop.get_order"]
    assert bits.sum() == 1 and bits[ids.index("shop.get_order")]
