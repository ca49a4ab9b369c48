from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.errors import ConfigError
from toolcrib.routing.prefer import prefer
from toolcrib.types import Risk, RoutingRules, ToolHealth, ToolState

from .making import alike, by_pairs, old, ranking, tool, unlike

FAILING = ToolHealth(n_calls=9, n_failed=8, n_late=0)
LATE = ToolHealth(n_calls=9, n_failed=0, n_late=8)
DOWN = ToolHealth(n_calls=0, n_failed=0, n_late=0, circuit_open=True)


def routed(tools, scores=None, *, similarity=None, health=None, hits=None, **rules):
    before = ranking(tools, scores=scores, **(hits or {}))
    return prefer(before, tools=tools, rules=RoutingRules(**rules), similar=by_pairs(similarity), health=health or {})


def preferred(tools, scores=None, **more):
    done, moves = routed(tools, scores, **more)
    return [hit.tool_id for hit in done.hits], [(move.tool_id, move.code, move.behind) for move in moves]


def test_without_reason_nothing_moves():
    tools = [tool("a.one"), tool("a.two", risk=Risk.DESTRUCTIVE), tool("a.three")]
    assert preferred(tools) == (["a.one", "a.two", "a.three"], [])


def test_the_rest_of_the_ranking_stays_as_it_was():
    before = ranking([tool("a.one")])
    assert prefer(before, tools=[tool("a.one")], rules=RoutingRules())[0] == before


# --- lifecycle


def test_a_deprecated_tool_goes_directly_behind_its_replacement():
    tools = [old("a.v1", "a.v2"), tool("a.x"), tool("a.v2"), tool("a.y")]
    assert preferred(tools) == (["a.x", "a.v2", "a.v1", "a.y"], [("a.v1", "replacement", "a.v2")])


def test_the_reason_names_the_replacement():
    assert "a.v2" in routed([old("a.v1", "a.v2"), tool("a.v2")])[1][0].reason


def test_a_deprecated_tool_behind_its_replacement_is_not_moved_up():
    tools = [tool("a.v2"), tool("a.x"), old("a.v1", "a.v2")]
    assert preferred(tools) == (["a.v2", "a.x", "a.v1"], [])


def test_a_replacement_outside_the_ranking_changes_nothing():
    tools = [old("a.v1", "a.v2"), tool("a.x"), tool("a.v2")]
    seen = dataclasses.replace(ranking(tools), hits=ranking(tools).hits[:2])
    assert prefer(seen, tools=tools, rules=RoutingRules()) == (seen, ())


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


def test_a_deprecated_tool_follows_its_replacement_behind_a_twin():
    tools = [tool("a.v2", cost=2.0), old("a.v1", "a.v2"), tool("a.cheap", cost=1.0)]
    ids, moves = preferred(tools, equivalent=(("a.v2", "a.cheap"),), prefer=("replacement", "cost"))
    assert ids == ["a.cheap", "a.v2", "a.v1"]
    assert moves == [("a.v2", "cost", "a.cheap"), ("a.v1", "replacement", "a.v2")]


def test_tools_that_replace_each_other_stay_where_they_are():
    tools = [old("a.one", "a.two"), old("a.two", "a.one"), old("a.self", "a.self"), old("a.into", "a.one")]
    assert preferred(tools) == (["a.one", "a.two", "a.self", "a.into"], [])


def test_an_operator_who_does_not_ask_for_replacements_gets_none():
    tools = [old("a.v1", "a.v2"), tool("a.v2")]
    assert preferred(tools, prefer=("health",)) == (["a.v1", "a.v2"], [])


def test_a_replacement_that_is_down_gives_way_only_where_health_comes_first():
    tools = [old("a.v1", "a.v2"), tool("a.v2")]
    down = {"a.v2": DOWN}
    assert preferred(tools, health=down)[0] == ["a.v2", "a.v1"]
    assert preferred(tools, health=down, prefer=("health", "replacement"))[0] == ["a.v1", "a.v2"]
    assert preferred(tools, prefer=("health", "replacement"))[0] == ["a.v2", "a.v1"]


# --- who is a twin

CHEAP_LAST = [tool("a.dear", cost=2.0), tool("a.cheap", cost=1.0)]


def test_twins_by_meaning_and_score_change_places():
    assert preferred(CHEAP_LAST, [1.0, 0.96], similarity=alike) == (
        ["a.cheap", "a.dear"],
        [("a.dear", "cost", "a.cheap")],
    )


@pytest.mark.parametrize(
    "more",
    [
        {"scores": [1.0, 0.89], "similarity": alike},
        {"scores": [1.0, 1.0], "similarity": unlike},
        {"scores": [1.0, 1.0], "similarity": lambda _a, _b: None},
        {"scores": [1.0, 1.0]},
        {"scores": [1.0, 1.0], "similarity": alike, "hits": {"capability": [0, 1]}},
        {"scores": [1.0, 1.0], "similarity": alike, "hits": {"named": ["a.dear"]}},
        {"scores": [1.0, 1.0], "similarity": alike, "prefer": ("latency", "risk")},
    ],
    ids=["score", "meaning", "unknown", "no_vectors", "another_part", "named", "not_asked"],
)
def test_a_better_match_is_not_put_behind_what_is_no_twin(more):
    assert preferred(CHEAP_LAST, **more) == (["a.dear", "a.cheap"], [])


def test_declared_twins_need_neither_score_nor_meaning():
    tools = [tool("a.dear", cost=2.0), tool("a.x"), tool("a.cheap", cost=1.0)]
    assert preferred(tools, equivalent=(("a.dear", "a.cheap"),), prefer=("cost",))[0] == ["a.cheap", "a.x", "a.dear"]


@pytest.mark.parametrize("hits", [{"capability": [0, 0, 1]}, {"named": ["a.dear"]}], ids=["another_part", "named"])
def test_declared_twins_answer_the_same_part_and_are_named_alike(hits):
    tools = [tool("a.dear", cost=2.0), tool("a.x"), tool("a.cheap", cost=1.0)]
    assert preferred(tools, equivalent=(("a.dear", "a.cheap"),), hits=hits)[0] == ["a.dear", "a.x", "a.cheap"]


def test_both_named_tools_may_change_places():
    hits = {"named": ["a.dear", "a.cheap"]}
    assert preferred(CHEAP_LAST, [1.0, 1.0], similarity=alike, hits=hits)[0] == ["a.cheap", "a.dear"]


def test_many_small_steps_are_not_one_group():
    tools = [tool(f"a.t{n}", cost=9.0 - n) for n in range(9)]
    scores = [1.0 - n * 0.03 for n in range(9)]
    ids, _ = preferred(tools, scores, similarity=alike, near_score=0.05)
    assert ids == ["a.t1", "a.t0", "a.t3", "a.t2", "a.t5", "a.t4", "a.t7", "a.t6", "a.t8"]


def test_meaning_is_measured_against_the_best_too():
    def chain(a, b):
        return 1.0 - 0.08 * abs(a - b)

    tools = [tool(f"a.t{n}", cost=3.0 - n) for n in range(3)]
    assert preferred(tools, [1.0, 1.0, 1.0], similarity=chain)[0] == ["a.t1", "a.t0", "a.t2"]


def test_a_near_tool_joins_declared_twins_by_their_best():
    tools = [tool("a.x", cost=3.0), tool("a.one", cost=2.0), tool("a.two", cost=1.0)]
    ids, moves = preferred(
        tools, [1.0, 0.98, 0.2], similarity=alike, equivalent=(("a.one", "a.two"),), prefer=("cost",)
    )
    assert ids == ["a.two", "a.one", "a.x"]
    assert moves == [("a.x", "cost", "a.two")]


def test_twins_move_in_their_own_slots_only():
    tools = [tool("a.dear", cost=3.0), tool("a.p"), tool("a.mid", cost=2.0), tool("a.q"), tool("a.cheap", cost=1.0)]
    group = (("a.cheap", "a.dear", "a.mid"),)
    ids, moves = preferred(tools, equivalent=group, prefer=("cost",))
    assert ids == ["a.cheap", "a.p", "a.mid", "a.q", "a.dear"]
    assert moves == [("a.dear", "cost", "a.cheap")]


# --- what decides between twins


def twins(first, second, **more):
    """Order and reason codes of two declared twins, ranked in this order; the group names the second first."""
    tools = [tool("a.first", **first), tool("a.second", **second)]
    ids, moves = preferred(tools, equivalent=(("a.second", "a.first"),), **more)
    return ids[0], [move[1] for move in moves]


@pytest.mark.parametrize(
    ("name", "worse", "better"),
    [
        ("risk", {"risk": Risk.WRITE}, {"risk": Risk.READ}),
        ("cost", {"cost": 0.2}, {"cost": 0.1}),
        ("cost", {"cost": 0.2}, {}),
        ("latency", {"latency_ms": 900}, {"latency_ms": 90}),
        ("latency", {"latency_ms": 900}, {}),
    ],
)
def test_the_lesser_figure_comes_first(name, worse, better):
    assert twins(worse, better, prefer=(name,)) == ("a.second", [name])
    assert twins(better, worse, prefer=(name,)) == ("a.first", [])
    assert twins(worse, worse, prefer=(name,)) == ("a.first", [])


@pytest.mark.parametrize("trouble", [FAILING, LATE, DOWN], ids=["failing", "late", "down"])
def test_a_tool_in_trouble_goes_behind_its_twin(trouble):
    assert twins({}, {}, prefer=("health",), health={"a.first": trouble}) == ("a.second", ["health"])
    assert twins({}, {}, prefer=("health",), health={"a.second": trouble}) == ("a.first", [])


def test_an_open_circuit_is_worse_than_failing_calls():
    assert twins({}, {}, prefer=("health",), health={"a.first": DOWN, "a.second": FAILING})[0] == "a.second"
    assert twins({}, {}, prefer=("health",), health={"a.first": FAILING, "a.second": DOWN})[0] == "a.first"
    assert twins({}, {}, prefer=("health",), health={"a.first": FAILING, "a.second": LATE})[0] == "a.first"


def test_the_owners_order_counts_among_declared_twins_and_others_come_after():
    assert twins({}, {}, prefer=("order",)) == ("a.second", ["order"])
    tools = [tool("a.x"), tool("a.one"), tool("a.two")]
    ids, moves = preferred(tools, [1.0, 1.0, 1.0], similarity=alike, equivalent=(("a.two", "a.one", "a.gone"),))
    assert ids == ["a.two", "a.one", "a.x"]
    assert [move[:2] for move in moves] == [("a.x", "order")]


def test_an_order_with_one_of_its_tools_here_says_nothing():
    tools = [tool("a.x"), tool("a.one")]
    assert preferred(tools, [1.0, 1.0], similarity=alike, equivalent=(("a.one", "a.gone"),))[0] == ["a.x", "a.one"]


def test_a_tool_in_two_orders_counts_for_the_first():
    tools = [tool("a.one"), tool("a.two"), tool("a.three")]
    ids, _ = preferred(tools, equivalent=(("a.two", "a.one"), ("a.three", "a.one")))
    assert ids == ["a.two", "a.one", "a.three"]


def test_the_first_preference_that_tells_two_apart_decides():
    first, second = {"risk": Risk.READ, "cost": 2.0}, {"risk": Risk.WRITE, "cost": 1.0}
    assert twins(first, second, prefer=("risk", "cost")) == ("a.first", [])
    assert twins(first, second, prefer=("cost", "risk")) == ("a.second", ["cost"])
    assert twins(first, second, prefer=("latency", "cost", "risk")) == ("a.second", ["cost"])


def test_an_unknown_preference_is_a_fault_of_the_configuration():
    with pytest.raises(ConfigError):
        twins({}, {}, prefer=("speed",))


@pytest.mark.parametrize("trouble", [FAILING, LATE, DOWN], ids=["failing", "late", "down"])
def test_a_reason_of_health_tells_no_figure_of_others_calls(trouble):
    moves = routed(
        [tool("a.first"), tool("a.second")], equivalent=(("a.first", "a.second"),), health={"a.first": trouble}
    )[1]
    assert moves[0].code == "health"
    assert not any(letter.isdigit() for letter in moves[0].reason)


# --- properties

_NAMES = [f"a.t{n}" for n in range(8)]


@st.composite
def worlds(draw):
    """A ranking, its tools, rules, a table of similarities and a report on health."""
    n_tools = draw(st.integers(0, len(_NAMES)))
    names = _NAMES[:n_tools]
    tools = [
        tool(
            name,
            risk=draw(st.sampled_from(Risk)),
            cost=draw(st.sampled_from([0.0, 1.0])),
            state=draw(st.sampled_from([ToolState.APPROVED, ToolState.APPROVED, ToolState.DEPRECATED])),
            replaced_by=draw(st.sampled_from([*names, "", "hidden.tool"])),
        )
        for name in names
    ]
    levels = st.lists(st.sampled_from([1.0, 0.97, 0.94, 0.5]), min_size=n_tools, max_size=n_tools)
    before = ranking(
        tools,
        scores=sorted(draw(levels), reverse=True),
        capability=draw(st.lists(st.sampled_from([0, 0, 1]), min_size=n_tools, max_size=n_tools)),
        named=names[: draw(st.integers(0, 1))],
    )
    order = draw(st.permutations(range(n_tools)))
    before = dataclasses.replace(
        before,
        hits=tuple(
            dataclasses.replace(before.hits[i], score=hit.score) for i, hit in zip(order, before.hits, strict=True)
        ),
    )
    bucket = draw(st.lists(st.integers(0, 2), min_size=n_tools, max_size=n_tools))

    def similarity(a, b):
        return 1.0 - 0.08 * abs(bucket[a] - bucket[b])

    shuffled = draw(st.permutations(_NAMES))
    rules = RoutingRules(
        prefer=tuple(draw(st.permutations(RoutingRules().prefer))[: draw(st.integers(0, 6))]),
        equivalent=draw(st.sampled_from([(), (tuple(shuffled[:3]),), (tuple(shuffled[:2]), tuple(shuffled[2:5]))])),
    )
    health = draw(st.dictionaries(st.sampled_from(_NAMES), st.sampled_from([FAILING, DOWN]), max_size=3))
    return before, {"tools": tools, "rules": rules, "similar": by_pairs(similarity), "health": health}


def ids_of(one):
    return [hit.tool_id for hit in one.hits]


@given(worlds())
def test_nothing_is_added_lost_or_scored_anew_and_who_fell_back_is_explained(world):
    before, more = world
    after, moves = prefer(before, **more)
    assert sorted(after.hits, key=lambda h: h.tool_id) == sorted(before.hits, key=lambda h: h.tool_id)
    assert prefer(before, **more) == (after, moves)
    was, now = ids_of(before), ids_of(after)
    told = {move.tool_id for move in moves}
    assert {tool_id for tool_id in was if now.index(tool_id) > was.index(tool_id)} <= told
    assert len(told) == len(moves)


@given(worlds())
def test_every_move_names_a_tool_that_is_now_ahead_and_a_twin_that_overtook(world):
    before, more = world
    after, moves = prefer(before, **more)
    was, now = ids_of(before), ids_of(after)
    for move in moves:
        assert now.index(move.behind) < now.index(move.tool_id)
        if move.code != "replacement":
            assert was.index(move.behind) > was.index(move.tool_id)
        assert move.code in more["rules"].prefer


@given(worlds())
def test_doing_it_twice_changes_nothing_more(world):
    before, more = world
    after, _ = prefer(before, **more)
    assert prefer(after, **more) == (after, ())


@given(worlds())
def test_a_replacement_in_the_ranking_is_never_behind_what_it_replaces(world):
    before, more = world
    rules = dataclasses.replace(more["rules"], prefer=RoutingRules().prefer)
    after, _ = prefer(before, **{**more, "rules": rules})
    now = ids_of(after)
    known = {one.tool_id: one for one in more["tools"]}
    for one in more["tools"]:
        heir = known.get(one.metadata.replaced_by)
        if one.state is ToolState.DEPRECATED and heir is not None and heir.state is ToolState.APPROVED:
            assert now.index(heir.tool_id) < now.index(one.tool_id)


@given(worlds(), st.integers(0, 7))
def test_a_tool_that_is_no_twin_of_any_other_influences_no_other(world, number):
    """I1 within a ranking: taking out a bystander leaves the others in the order they had."""
    before, more = world
    bystander = f"a.t{number}"
    tools = [
        tool("z.bystander")
        if one.tool_id == bystander
        else dataclasses.replace(
            one,
            metadata=dataclasses.replace(
                one.metadata, replaced_by="" if one.metadata.replaced_by == bystander else one.metadata.replaced_by
            ),
        )
        for one in more["tools"]
    ]
    hits = tuple(
        dataclasses.replace(hit, tool_id="z.bystander", capability=7) if hit.tool_id == bystander else hit
        for hit in before.hits
    )
    with_it = dataclasses.replace(before, hits=hits)
    without = dataclasses.replace(before, hits=tuple(hit for hit in hits if hit.tool_id != "z.bystander"))
    seen, moves = prefer(with_it, **{**more, "tools": tools})
    alone, own_moves = prefer(without, **{**more, "tools": tools})
    assert [tool_id for tool_id in ids_of(seen) if tool_id != "z.bystander"] == ids_of(alone)
    assert moves == own_moves


@given(worlds())
def test_hits_outside_every_group_keep_their_order(world):
    """Nothing declared, nothing alike, nothing deprecated: every hit is a group of its own."""
    before, more = world
    tools = [dataclasses.replace(one, state=ToolState.APPROVED) for one in more["tools"]]
    rules = dataclasses.replace(more["rules"], equivalent=())
    assert prefer(before, **{**more, "tools": tools, "rules": rules, "similar": by_pairs(unlike)}) == (before, ())


@given(worlds())
def test_a_tool_never_changes_places_with_one_of_another_part_or_one_that_is_not_named_alike(world):
    before, more = world
    rules = dataclasses.replace(more["rules"], prefer=tuple(p for p in more["rules"].prefer if p != "replacement"))
    after, _ = prefer(before, **{**more, "rules": rules})
    assert [(h.capability, h.named) for h in after.hits] == [(h.capability, h.named) for h in before.hits]
