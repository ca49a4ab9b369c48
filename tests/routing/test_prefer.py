from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from toolcrib.routing.prefer import prefer
from toolcrib.types import Risk, ToolState

from .making import old, ranking, tool


def preferred(tools, scores=None):
    done, moves = prefer(ranking(tools, scores=scores), tools=tools)
    return [hit.tool_id for hit in done.hits], [(move.tool_id, move.action, move.code) for move in moves]


def test_without_reason_nothing_moves():
    tools = [tool("a.one"), tool("a.two", risk=Risk.DESTRUCTIVE), tool("a.three")]
    assert preferred(tools) == (["a.one", "a.two", "a.three"], [])


def test_the_rest_of_the_ranking_stays_as_it_was():
    before = ranking([tool("a.one")])
    assert prefer(before, tools=[tool("a.one")])[0] == before


# --- lifecycle


def test_a_deprecated_tool_goes_directly_behind_its_replacement():
    tools = [old("a.v1", "a.v2"), tool("a.x"), tool("a.v2"), tool("a.y")]
    assert preferred(tools) == (["a.x", "a.v2", "a.v1", "a.y"], [("a.v1", "demoted", "deprecated")])


def test_the_reason_names_the_replacement():
    tools = [old("a.v1", "a.v2"), tool("a.v2")]
    assert "a.v2" in prefer(ranking(tools), tools=tools)[1][0].reason


def test_a_deprecated_tool_behind_its_replacement_is_not_moved_up():
    tools = [tool("a.v2"), tool("a.x"), old("a.v1", "a.v2")]
    assert preferred(tools) == (["a.v2", "a.x", "a.v1"], [])


def test_a_replacement_outside_the_ranking_changes_nothing():
    tools = [old("a.v1", "a.v2"), tool("a.x"), tool("a.v2")]
    seen = dataclasses.replace(ranking(tools), hits=ranking(tools).hits[:2])
    assert prefer(seen, tools=tools) == (seen, ())


def test_a_replacement_counts_only_once_the_tool_is_deprecated():
    tools = [tool("a.v1", replaced_by="a.v2"), tool("a.v2")]
    assert preferred(tools)[0] == ["a.v1", "a.v2"]
    tools = [tool("a.v1", replaced_by="a.v2", status="deprecated"), tool("a.v2")]
    assert preferred(tools)[0] == ["a.v2", "a.v1"]


def test_generations_come_newest_first():
    tools = [old("a.v1", "a.v2"), old("a.v2", "a.v3"), tool("a.x"), tool("a.v3")]
    ids, moves = preferred(tools)
    assert ids == ["a.x", "a.v3", "a.v2", "a.v1"]
    assert [move[0] for move in moves] == ["a.v2", "a.v1"]


def test_tools_that_replace_each_other_stay_where_they_are():
    tools = [old("a.one", "a.two"), old("a.two", "a.one"), old("a.self", "a.self"), old("a.into", "a.one")]
    assert preferred(tools) == (["a.one", "a.two", "a.self", "a.into"], [])


# --- risk


def test_among_equals_the_less_risky_comes_first():
    tools = [tool("a.drop", risk=Risk.DESTRUCTIVE), tool("a.edit", risk=Risk.WRITE), tool("a.look")]
    ids, moves = preferred(tools, scores=[5.0, 5.0 - 1e-9, 5.0 - 2e-9])
    assert ids == ["a.look", "a.edit", "a.drop"]
    assert moves == [("a.drop", "demoted", "risk")]


def test_a_better_score_beats_a_lower_risk():
    tools = [tool("a.drop", risk=Risk.DESTRUCTIVE), tool("a.look")]
    assert preferred(tools, scores=[5.0, 4.999]) == (["a.drop", "a.look"], [])


def test_equal_scores_and_risks_keep_their_order():
    tools = [tool("a.b"), tool("a.c"), tool("a.d")]
    assert preferred(tools, scores=[1.0, 1.0, 1.0]) == (["a.b", "a.c", "a.d"], [])


def test_many_small_steps_are_not_one_group():
    tools = [tool(f"a.t{n}", risk=Risk.WRITE) for n in range(9)] + [tool("a.look")]
    scores = [5.0 - n * 4e-6 for n in range(10)]
    assert preferred(tools, scores=scores)[0][0] == "a.t0"


# --- properties


@st.composite
def worlds(draw):
    n_tools = draw(st.integers(0, 8))
    names = [f"a.t{n}" for n in range(n_tools)]
    tools = [
        tool(
            name,
            risk=draw(st.sampled_from(Risk)),
            state=draw(st.sampled_from([ToolState.APPROVED, ToolState.DEPRECATED])),
            replaced_by=draw(st.sampled_from([*names, "", "hidden.tool"])),
        )
        for name in names
    ]
    scores = sorted(draw(st.lists(st.sampled_from([3.0, 2.0, 1.0]), min_size=n_tools, max_size=n_tools)), reverse=True)
    return tools, scores


@given(worlds())
def test_nothing_is_added_or_lost_and_every_tool_that_jumped_a_queue_is_explained(world):
    tools, scores = world
    before = ranking(tools, scores=scores)
    after, moves = prefer(before, tools=tools)
    assert sorted(hit.tool_id for hit in after.hits) == sorted(hit.tool_id for hit in before.hits)
    assert set(after.hits) == set(before.hits)
    assert prefer(before, tools=tools) == (after, moves)
    if [hit.tool_id for hit in after.hits] != [hit.tool_id for hit in before.hits]:
        assert moves


@given(worlds())
def test_a_replacement_in_the_ranking_is_never_behind_what_it_replaces(world):
    tools, scores = world
    after, _ = prefer(ranking(tools, scores=scores), tools=tools)
    place = {hit.tool_id: number for number, hit in enumerate(after.hits)}
    for one in tools:
        heir = one.metadata.replaced_by
        if one.state is ToolState.DEPRECATED and heir in place:
            final = next(t for t in tools if t.tool_id == heir)
            if final.state is ToolState.APPROVED:
                assert place[heir] < place[one.tool_id]
