from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.errors import CatalogError
from toolcrib.routing.admissible import admissible
from toolcrib.routing.facts import routing_facts
from toolcrib.types import Caller, CallerKind, ResidencyRule, Risk, RiskCeiling, RouteMove, RoutingRules

from .making import tool

READ = tool("a.read", risk=Risk.READ)
WRITE = tool("a.write", risk=Risk.WRITE)
DESTROY = tool("a.destroy", risk=Risk.DESTRUCTIVE)
EU_ONLY = tool("b.eu", regions=("eu", "uk"))
TOOLS = (READ, DESTROY, WRITE, EU_ONLY)


def left(caller, *ceilings, residency=(), tools=TOOLS, permitted=None):
    reach, moves = admissible(
        tools,
        caller=caller,
        permitted=np.ones(len(tools), dtype=bool) if permitted is None else np.array(permitted),
        rules=RoutingRules(risk_ceilings=ceilings, residency=tuple(residency)),
    )
    return [one.tool_id for one, kept in zip(tools, reach, strict=True) if kept], {m.tool_id: m.code for m in moves}


def in_stage(stage):
    return Caller(subject="ann", stage=stage, region="eu")


def test_without_rules_everything_permitted_stays():
    assert left(in_stage("")) == (["a.read", "a.destroy", "a.write", "b.eu"], {})


# --- risk ceiling


def test_a_ceiling_rules_out_what_is_riskier_and_says_so():
    kept, moves = left(in_stage("triage"), RiskCeiling(stages=("triage",), max_risk=Risk.WRITE))
    assert kept == ["a.read", "a.write", "b.eu"]
    assert moves == {"a.destroy": "risk_ceiling"}


@pytest.mark.parametrize("stage", ["", "repair", "tri"])
def test_a_ceiling_holds_in_its_stages_only(stage):
    assert "a.destroy" in left(in_stage(stage), RiskCeiling(stages=("triage",), max_risk=Risk.READ))[0]


@pytest.mark.parametrize("stage", ["", "triage"])
def test_a_ceiling_without_stages_holds_always(stage):
    assert left(in_stage(stage), RiskCeiling(max_risk=Risk.READ))[0] == ["a.read", "b.eu"]


def test_the_lowest_of_several_ceilings_decides():
    high, low = RiskCeiling(max_risk=Risk.WRITE), RiskCeiling(stages=("triage",), max_risk=Risk.READ)
    assert left(in_stage("triage"), high, low) == left(in_stage("triage"), low, high)
    assert left(in_stage("triage"), high, low)[0] == ["a.read", "b.eu"]
    assert left(in_stage("repair"), high, low)[0] == ["a.read", "a.write", "b.eu"]


# --- region and environment


@pytest.mark.parametrize(("region", "kept"), [("eu", True), ("uk", True), ("us", False), ("", False)])
def test_a_regional_tool_is_kept_to_its_regions(region, kept):
    ids, moves = left(Caller(subject="ann", region=region))
    assert ("b.eu" in ids) == kept
    assert moves == ({} if kept else {"b.eu": "region"})


@pytest.mark.parametrize(("environment", "kept"), [("test", True), ("stage", True), ("production", False), ("", False)])
def test_a_tool_is_kept_to_its_environments(environment, kept):
    tools = (tool("a.any"), tool("a.inner", environments=("test", "stage")))
    ids, moves = left(Caller(subject="ann", environment=environment), tools=tools)
    assert ids == (["a.any", "a.inner"] if kept else ["a.any"])
    assert moves == ({} if kept else {"a.inner": "environment"})


# --- residency

PLACED = (
    tool("a.abroad", residency=("us",), data_class="personal"),
    tool("a.both", residency=("eu", "us"), data_class="personal"),
    tool("a.home", residency=("eu",), data_class="personal"),
    tool("a.silent", data_class="personal"),
    tool("a.weather", data_class="public"),
)


def test_data_that_must_stay_is_given_to_no_tool_that_keeps_it_elsewhere_or_does_not_say():
    kept, moves = left(Caller(subject="ann"), residency=[ResidencyRule(within=("eu", "ch"))], tools=PLACED)
    assert kept == ["a.home"]
    assert set(moves.values()) == {"residency"}


def test_a_residency_rule_about_data_classes_leaves_other_tools_alone():
    rule = ResidencyRule(data_classes=("pers*",), within=("eu",))
    assert left(Caller(subject="ann"), residency=[rule], tools=PLACED)[0] == ["a.home", "a.weather"]


@pytest.mark.parametrize(
    ("tenant", "holds"), [("acme", True), ("acme-de", True), ("other", False), ("", False), ("Acme", False)]
)
def test_a_residency_rule_about_tenants_holds_for_them_only(tenant, holds):
    rule = ResidencyRule(tenants=("acme*",), within=("eu",))
    kept = left(Caller(subject="ann", tenant=tenant), residency=[rule], tools=PLACED)[0]
    assert kept == (["a.home"] if holds else [one.tool_id for one in PLACED])


def test_every_residency_rule_must_be_satisfied():
    rules = [ResidencyRule(within=("eu", "us")), ResidencyRule(data_classes=("personal",), within=("eu",))]
    assert left(Caller(subject="ann"), residency=rules, tools=PLACED)[0] == ["a.home"]


# --- delegation


@pytest.mark.parametrize("agent_is_in", ["eu", "us", ""])
@pytest.mark.parametrize("user_is_in", ["eu", "us", ""])
def test_an_agent_is_held_to_what_both_it_and_its_user_may(agent_is_in, user_is_in):
    tools = (tool("a.eu", regions=("eu",)), tool("b.eu", environments=("eu",)))
    user = Caller(subject="ann", region=user_is_in, environment=user_is_in)
    agent = Caller(subject="bot", kind=CallerKind.AGENT, region=agent_is_in, environment=agent_is_in, acting_for=user)
    both = agent_is_in == user_is_in == "eu"
    assert left(agent, tools=tools)[0] == (["a.eu", "b.eu"] if both else [])


@pytest.mark.parametrize(("agent_stage", "user_stage"), [("triage", ""), ("", "triage"), ("triage", "triage")])
def test_a_ceiling_for_either_of_two_parties_holds(agent_stage, user_stage):
    agent = Caller(subject="bot", stage=agent_stage, acting_for=Caller(subject="ann", stage=user_stage))
    ceiling = RiskCeiling(stages=("triage",), max_risk=Risk.READ)
    assert left(agent, ceiling, tools=(READ, WRITE))[0] == ["a.read"]


@pytest.mark.parametrize(("agent_tenant", "user_tenant"), [("acme", ""), ("", "acme")])
def test_residency_for_either_of_two_parties_holds(agent_tenant, user_tenant):
    agent = Caller(subject="bot", tenant=agent_tenant, acting_for=Caller(subject="ann", tenant=user_tenant))
    rule = ResidencyRule(tenants=("acme",), within=("eu",))
    assert left(agent, residency=[rule], tools=PLACED)[0] == ["a.home"]


# --- what is said


def test_the_first_constraint_that_rules_a_tool_out_is_named():
    tools = (tool("a.x", risk=Risk.WRITE, regions=("eu",), environments=("test",), residency=("us",)),)
    rule, ceiling = ResidencyRule(within=("eu",)), RiskCeiling(max_risk=Risk.READ)
    nowhere, there = Caller(subject="ann"), Caller(subject="ann", region="eu")
    tested = dataclasses.replace(there, environment="test")
    said = [left(c, ceiling, residency=[rule], tools=tools)[1]["a.x"] for c in (nowhere, there, tested)]
    assert said == ["region", "environment", "residency"]
    assert left(tested, ceiling, tools=tools)[1] == {"a.x": "risk_ceiling"}


def test_only_permitted_tools_are_moved_or_kept():
    reach, moves = left(Caller(subject="ann"), RiskCeiling(max_risk=Risk.READ), permitted=[True, False, True, False])
    assert reach == ["a.read"]
    assert moves == {"a.write": "risk_ceiling"}


def test_the_permitted_set_itself_is_left_alone():
    permitted = np.ones(len(TOOLS), dtype=bool)
    rules = RoutingRules(risk_ceilings=(RiskCeiling(max_risk=Risk.READ),))
    admissible(TOOLS, caller=in_stage(""), permitted=permitted, rules=rules)
    assert permitted.all()


def test_moves_are_a_sequence_in_the_order_of_the_tools():
    rules = RoutingRules(risk_ceilings=(RiskCeiling(max_risk=Risk.READ),))
    _, moves = admissible(TOOLS, caller=Caller(subject="ann"), permitted=np.ones(4, dtype=bool), rules=rules)
    made = list(moves)
    assert [move.tool_id for move in made] == ["a.destroy", "a.write", "b.eu"]
    assert all(isinstance(move, RouteMove) and move.action == "dropped" and move.reason for move in made)
    assert (len(moves), moves[-1], list(moves[1:])) == (3, made[2], made[1:])
    with pytest.raises(IndexError):
        moves[3]


def test_moves_by_ground_name_each_dropped_tool_once():
    rules = RoutingRules(risk_ceilings=(RiskCeiling(max_risk=Risk.READ),))
    _, moves = admissible(TOOLS, caller=Caller(subject="ann"), permitted=np.ones(4, dtype=bool), rules=rules)
    told = [(code, [TOOLS[n].tool_id for n in numbers]) for code, _, numbers in moves.by_ground()]
    assert sorted(told) == [("region", ["b.eu"]), ("risk_ceiling", ["a.destroy"]), ("risk_ceiling", ["a.write"])]
    spelled = {(TOOLS[n].tool_id, code, reason) for code, reason, numbers in moves.by_ground() for n in numbers}
    assert spelled == {(move.tool_id, move.code, move.reason) for move in moves}


@pytest.mark.parametrize("n_permitted", [3, 5])
def test_a_permitted_set_of_another_snapshot_is_refused(n_permitted):
    with pytest.raises(CatalogError):
        admissible(TOOLS, caller=in_stage(""), permitted=np.ones(n_permitted, dtype=bool), rules=RoutingRules())


def test_facts_of_another_snapshot_are_refused():
    with pytest.raises(CatalogError):
        admissible(
            TOOLS,
            caller=in_stage(""),
            permitted=np.ones(len(TOOLS), dtype=bool),
            rules=RoutingRules(),
            facts=routing_facts(TOOLS[:-1]),
        )


def test_no_tools_at_all_are_no_trouble():
    rules = RoutingRules(residency=(ResidencyRule(within=("eu",)),))
    reach, moves = admissible((), caller=in_stage(""), permitted=np.zeros(0, dtype=bool), rules=rules)
    assert (len(reach), len(moves)) == (0, 0)


# --- properties

_PLACES = st.sampled_from([(), ("eu",), ("us",), ("eu", "us"), ("ch", "eu")])
_PLACE = st.sampled_from(["", "eu", "us", "ch"])


@st.composite
def worlds(draw):
    n_tools = draw(st.integers(1, 6))
    tools = tuple(
        tool(
            f"a.t{n}",
            risk=draw(st.sampled_from(Risk)),
            regions=draw(_PLACES),
            environments=draw(_PLACES),
            residency=draw(_PLACES),
            data_class=draw(st.sampled_from(["", "personal"])),
        )
        for n in range(n_tools)
    )
    parties = [
        Caller(subject=name, stage=draw(_PLACE), region=draw(_PLACE), environment=draw(_PLACE), tenant=draw(_PLACE))
        for name in ("bot", "ann")
    ]
    rules = RoutingRules(
        risk_ceilings=draw(
            st.lists(st.builds(RiskCeiling, stages=_PLACES, max_risk=st.sampled_from(Risk)), max_size=2).map(tuple)
        ),
        residency=draw(
            st.lists(
                st.builds(
                    ResidencyRule,
                    tenants=_PLACES,
                    data_classes=st.sampled_from([(), ("pers*",)]),
                    within=st.sampled_from([("eu",), ("eu", "ch")]),
                ),
                max_size=2,
            ).map(tuple)
        ),
    )
    permitted = np.array(draw(st.lists(st.booleans(), min_size=n_tools, max_size=n_tools)))
    return tools, parties, rules, permitted


@given(worlds())
def test_each_tool_is_judged_by_itself(world):
    """I1: the verdict on a tool is the one it gets in a catalog of its own."""
    tools, (caller, _), rules, permitted = world
    reach, moves = admissible(tools, caller=caller, permitted=permitted, rules=rules, facts=routing_facts(tools))
    told = {move.tool_id: move for move in moves}
    for number, one in enumerate(tools):
        alone, its_moves = admissible((one,), caller=caller, permitted=permitted[number : number + 1], rules=rules)
        assert bool(alone[0]) == bool(reach[number])
        assert list(its_moves) == ([told[one.tool_id]] if one.tool_id in told else [])


@given(worlds())
def test_every_permitted_tool_is_kept_or_explained_and_no_other_is_mentioned(world):
    tools, (caller, _), rules, permitted = world
    reach, moves = admissible(tools, caller=caller, permitted=permitted, rules=rules)
    dropped = {move.tool_id for move in moves}
    assert {t.tool_id for t, may in zip(tools, permitted, strict=True) if may} == dropped | {
        t.tool_id for t, kept in zip(tools, reach, strict=True) if kept
    }
    assert not dropped & {t.tool_id for t, kept in zip(tools, reach, strict=True) if kept}


@given(worlds())
def test_an_agent_reaches_exactly_what_agent_and_user_reach_each_for_themselves(world):
    tools, (agent, user), rules, permitted = world
    delegated = dataclasses.replace(agent, acting_for=user)
    each = [admissible(tools, caller=c, permitted=permitted, rules=rules)[0] for c in (agent, user)]
    together = admissible(tools, caller=delegated, permitted=permitted, rules=rules)[0]
    assert together.tolist() == (each[0] & each[1]).tolist()
