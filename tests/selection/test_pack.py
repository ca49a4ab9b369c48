from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.selection.outcomes import unavailable
from toolcrib.selection.pack import select
from toolcrib.types import Hit, Outcome, Ranking, SelectRequest

from .making import cost, ranking, tool


def packed(tools, ranked=None, *, limit=5, budget=1_000, floor=0.5, **more):
    request = SelectRequest(task="do it", limit=limit, token_budget=budget)
    found = ranking(tools) if ranked is None else ranked
    return select(found, tools=tools, request=request, cost=cost, floor=floor, **more)


def ids(selection):
    return [chosen.tool.tool_id for chosen in selection.tools]


def why(selection):
    return {dropped.tool_id: dropped.reason for dropped in selection.dropped}


def test_a_confident_ranking_is_selected_best_first():
    tools = [tool("a.one"), tool("a.two"), tool("a.three")]
    done = packed(tools)
    assert done.outcome is Outcome.SELECTED
    assert [(s.tool.tool_id, s.rank, s.score, s.capability, s.tokens) for s in done.tools] == [
        ("a.one", 1, 10.0, "do it", 10),
        ("a.two", 2, 9.0, "do it", 10),
        ("a.three", 3, 8.0, "do it", 10),
    ]
    assert (done.tokens, done.limit, done.token_budget, done.confidence) == (30, 5, 1_000, 0.9)
    assert done.dropped == ()


def test_definitions_go_in_whole_and_are_the_tools_own():
    tools = [tool("a.one"), tool("a.two")]
    assert all(chosen.tool is tools[number] for number, chosen in enumerate(packed(tools).tools))


def test_what_exceeds_the_limit_is_dropped_and_said():
    tools = [tool(f"a.t{n}") for n in range(4)]
    done = packed(tools, limit=2)
    assert ids(done) == ["a.t0", "a.t1"]
    assert why(done) == {"a.t2": "limit", "a.t3": "limit"}


def test_a_tool_too_large_for_the_budget_gives_way_to_the_next():
    tools = [tool("a.big", tokens=900), tool("a.small", tokens=50), tool("a.other", tokens=60)]
    done = packed(tools, budget=100)
    assert ids(done) == ["a.small"]
    assert why(done) == {"a.big": "token_budget", "a.other": "token_budget"}
    assert done.tokens == 50


def test_a_definition_that_fills_the_budget_exactly_goes_in():
    assert ids(packed([tool("a.one", tokens=100)], budget=100)) == ["a.one"]


def test_everything_too_large_is_said_with_the_budget_that_would_do():
    done = packed([tool("a.big", tokens=900), tool("a.large", tokens=700)], budget=100)
    assert (done.outcome, done.tools, done.tokens) == (Outcome.NEEDS_CLARIFICATION, (), 0)
    assert "700" in done.message
    assert why(done) == {"a.big": "token_budget", "a.large": "token_budget"}
    assert packed([tool("a.big", tokens=900), tool("a.large", tokens=700)], budget=700).tools


# --- several capabilities


def test_each_capability_gets_a_tool_before_any_gets_a_second():
    tools = [tool("a.find1"), tool("a.find2"), tool("a.find3"), tool("b.post"), tool("c.convert")]
    ranked = ranking(tools, capabilities=("find", "convert", "post"), of=[0, 0, 0, 2, 1])
    assert ids(packed(tools, ranked, limit=3)) == ["a.find1", "b.post", "c.convert"]
    done = packed(tools, ranked, limit=4)
    assert ids(done) == ["a.find1", "a.find2", "b.post", "c.convert"]
    assert [chosen.capability for chosen in done.tools] == ["find", "find", "post", "convert"]
    assert why(done) == {"a.find3": "limit"}


def test_a_capability_whose_best_tool_is_too_large_is_covered_by_its_next():
    tools = [tool("a.find1", tokens=60), tool("b.post1", tokens=60), tool("a.find2", tokens=30), tool("b.post2")]
    ranked = ranking(tools, capabilities=("find", "post"), of=[0, 1, 0, 1])
    assert ids(packed(tools, ranked, budget=80)) == ["a.find1", "b.post2"]


def test_a_part_of_the_task_that_nothing_covers_is_said():
    tools = [tool("a.find")]
    done = packed(tools, ranking(tools, capabilities=("find it", "fly to the moon")))
    assert done.outcome is Outcome.SELECTED
    assert "fly to the moon" in done.message
    assert "find it" not in done.message
    assert "fly" not in packed(tools).message


def test_a_tool_that_stands_in_the_ranking_twice_goes_in_once():
    tools = [tool("a.one"), tool("a.two")]
    hit = Hit(tool_idx=0, tool_id="a.one", score=9.0, confidence=0.9)
    twice = Ranking(hits=(hit, dataclasses.replace(hit, capability=1)), capabilities=("x", "y"), confidence=0.9)
    assert ids(packed(tools, twice)) == ["a.one"]


# --- outcomes without tools


def test_an_empty_query_asks_what_is_wanted_and_names_areas():
    done = packed([tool("a.one")], ranking([], confidence=0.0, empty_query=True), namespaces=("git", "calendar"))
    assert (done.outcome, done.tools) == (Outcome.NEEDS_CLARIFICATION, ())
    assert "calendar, git" in done.message


def test_at_most_eight_areas_are_named():
    areas = [f"area{n}" for n in range(30)]
    done = packed([], ranking([], confidence=0.0, empty_query=True), namespaces=areas)
    assert done.message.count("area") - done.message.count("areas") == 8
    assert "{" not in packed([], ranking([], confidence=0.0, empty_query=True), namespaces=()).message


@pytest.mark.parametrize("confidence", [0.0, 0.49, float("nan")])
def test_below_the_floor_nothing_is_offered(confidence):
    tools = [tool("a.one")]
    done = packed(tools, ranking(tools, confidence=confidence))
    assert (done.outcome, done.tools, done.dropped) == (Outcome.NO_MATCH, (), ())


def test_the_floor_itself_is_enough():
    tools = [tool("a.one")]
    assert packed(tools, ranking(tools, confidence=0.5)).outcome is Outcome.SELECTED


def test_no_hits_are_no_match_whatever_the_confidence():
    assert packed([], ranking([], confidence=1.0)).outcome is Outcome.NO_MATCH


def test_a_disclosed_match_turns_no_match_into_denied_and_names_nothing():
    tools = [tool("a.one")]
    weak = ranking(tools, confidence=0.1)
    denied = packed(tools, weak, disclosed_match=True)
    assert (denied.outcome, denied.tools) == (Outcome.DENIED, ())
    assert "one" not in denied.message
    assert packed(tools, disclosed_match=True).outcome is Outcome.SELECTED


def test_degradation_is_passed_on_and_said_where_nothing_was_found():
    tools = [tool("a.one")]
    assert packed(tools, ranking(tools, degraded=True)).degraded
    nothing = packed(tools, ranking([], confidence=0.0, degraded=True))
    assert (nothing.outcome, nothing.degraded) == (Outcome.NO_MATCH, True)
    assert nothing.message != packed(tools, ranking([], confidence=0.0)).message


def test_a_limit_of_nothing_offers_nothing():
    assert packed([tool("a.one")], limit=0).outcome is Outcome.NEEDS_CLARIFICATION


def test_unavailable_offers_nothing_and_keeps_the_request():
    done = unavailable(SelectRequest(task="x", limit=3, token_budget=70))
    assert (done.outcome, done.tools, done.limit, done.token_budget) == (Outcome.UNAVAILABLE, (), 3, 70)


# --- ties


def equals(*tool_ids, **changed):
    tools = [tool(tool_id) for tool_id in tool_ids]
    return tools, ranking(tools, scores=[5.0] * len(tools), **changed)


def test_more_equals_than_the_limit_from_several_areas_are_asked_about():
    tools, ranked = equals("git.search", "mail.search", "wiki.search")
    done = packed(tools, ranked, limit=2)
    assert (done.outcome, done.tools) == (Outcome.NEEDS_CLARIFICATION, ())
    assert "git, mail, wiki" in done.message


def test_equals_that_all_fit_are_offered():
    tools, ranked = equals("git.search", "mail.search")
    assert ids(packed(tools, ranked, limit=2)) == ["git.search", "mail.search"]


def test_equals_of_one_area_are_offered_up_to_the_limit():
    tools, ranked = equals("git.a", "git.b", "git.c")
    assert ids(packed(tools, ranked, limit=2)) == ["git.a", "git.b"]


def test_a_real_lead_however_small_is_no_tie():
    tools = [tool("git.search"), tool("mail.search"), tool("wiki.search")]
    ranked = ranking(tools, scores=[5.0001, 5.0, 5.0])
    assert ids(packed(tools, ranked, limit=1)) == ["git.search"]


def test_a_named_tool_is_what_was_meant():
    tools, ranked = equals("git.search", "mail.search")
    named = dataclasses.replace(ranked, hits=(dataclasses.replace(ranked.hits[0], named=True), *ranked.hits[1:]))
    assert ids(packed(tools, named, limit=1)) == ["git.search"]


def test_a_safe_set_without_scores_is_offered_not_asked_about():
    tools = [tool("git.search"), tool("mail.search")]
    safe = ranking(tools, scores=[0.0, 0.0], degraded=True)
    assert ids(packed(tools, safe, limit=1)) == ["git.search"]


# --- the tail


def test_hopeless_hits_stay_out_and_are_said():
    tools = [tool("a.one"), tool("a.two"), tool("a.three")]
    done = packed(tools, ranking(tools, sure=[0.9, 0.04, 0.06]), floor=0.5)
    assert ids(done) == ["a.one", "a.three"]
    assert why(done) == {"a.two": "confidence"}


def test_the_best_hit_stays_whatever_its_own_confidence():
    tools = [tool("a.one"), tool("a.two")]
    assert ids(packed(tools, ranking(tools, sure=[0.0, 0.0]))) == ["a.one"]


def test_dropped_candidates_are_bounded():
    tools = [tool(f"a.t{n:03}") for n in range(200)]
    done = packed(tools, ranking(tools, scores=[1000.0 - n for n in range(200)]), limit=3)
    assert len(done.dropped) == 20
    assert done.dropped[0].tool_id == "a.t003"


# --- properties


@st.composite
def worlds(draw):
    n_tools = draw(st.integers(0, 12))
    tools = [tool(f"s{n % 3}.t{n:02}", tokens=draw(st.integers(0, 120))) for n in range(n_tools)]
    n_parts = draw(st.integers(1, 4))
    scores = sorted(draw(st.lists(st.floats(0, 9), min_size=n_tools, max_size=n_tools)), reverse=True)
    ranked = ranking(
        tools,
        capabilities=tuple(f"part {n}" for n in range(n_parts)),
        of=draw(st.lists(st.integers(0, n_parts - 1), min_size=n_tools, max_size=n_tools)),
        sure=draw(st.lists(st.floats(0, 1), min_size=n_tools, max_size=n_tools)),
        scores=scores,
        confidence=draw(st.floats(0, 1)),
        empty_query=draw(st.booleans()) and draw(st.booleans()),
    )
    return tools, ranked, draw(st.integers(0, 6)), draw(st.integers(0, 300))


@given(worlds())
def test_limit_and_budget_are_never_exceeded_and_definitions_are_whole(world):
    tools, ranked, limit, budget = world
    done = packed(tools, ranked, limit=limit, budget=budget)
    assert len(done.tools) <= limit
    assert done.tokens == sum(chosen.tokens for chosen in done.tools) <= budget
    assert all(chosen.tool in tools and chosen.tokens == cost(chosen.tool.definition) for chosen in done.tools)
    assert bool(done.tools) == (done.outcome is Outcome.SELECTED)


@given(worlds())
def test_the_same_input_gives_the_same_selection_in_ranking_order(world):
    tools, ranked, limit, budget = world
    done = packed(tools, ranked, limit=limit, budget=budget)
    assert packed(tools, ranked, limit=limit, budget=budget) == done
    order = [hit.tool_id for hit in ranked.hits]
    places = [order.index(tool_id) for tool_id in ids(done)]
    assert places == sorted(places)
    assert [chosen.rank for chosen in done.tools] == list(range(1, len(places) + 1))
    assert not set(ids(done)) & set(why(done))


@given(worlds())
def test_no_capability_has_two_tools_while_another_could_have_had_one(world):
    tools, ranked, limit, budget = world
    done = packed(tools, ranked, limit=limit, budget=budget, floor=0.0)
    parts = [chosen.capability for chosen in done.tools]
    if len(parts) == len(set(parts)):
        return
    spent_on_seconds = sum(c.tokens for n, c in enumerate(done.tools) if c.capability in parts[:n])
    for hit in ranked.hits:
        if ranked.capabilities[hit.capability] not in parts:
            assert cost(tools[hit.tool_idx].definition) > budget - (done.tokens - spent_on_seconds)


@given(worlds())
def test_tools_outside_the_ranking_change_nothing(world):
    tools, ranked, limit, budget = world
    more = [*tools, tool("hidden.one", tokens=1), tool("hidden.two", tokens=1)]
    assert packed(more, ranked, limit=limit, budget=budget) == packed(tools, ranked, limit=limit, budget=budget)
