from __future__ import annotations

import numpy as np
import pytest

from toolcrib.routing.admissible import admissible
from toolcrib.types import Caller, Risk, RiskCeiling

from .making import tool

READ = tool("a.read", risk=Risk.READ)
WRITE = tool("a.write", risk=Risk.WRITE)
DESTROY = tool("a.destroy", risk=Risk.DESTRUCTIVE)
EU_ONLY = tool("b.eu", regions=("eu", "uk"))
TOOLS = (READ, DESTROY, WRITE, EU_ONLY)


def left(caller, *ceilings, tools=TOOLS, permitted=None):
    reach, moves = admissible(
        tools,
        caller=caller,
        permitted=np.ones(len(tools), dtype=bool) if permitted is None else np.array(permitted),
        ceilings=ceilings,
    )
    return [one.tool_id for one, kept in zip(tools, reach, strict=True) if kept], {m.tool_id: m.code for m in moves}


def in_stage(stage):
    return Caller(subject="ann", stage=stage, region="eu")


def test_without_rules_everything_permitted_stays():
    assert left(in_stage("")) == (["a.read", "a.destroy", "a.write", "b.eu"], {})


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


@pytest.mark.parametrize(("region", "kept"), [("eu", True), ("uk", True), ("us", False), ("", False)])
def test_a_regional_tool_is_kept_to_its_regions(region, kept):
    ids, moves = left(Caller(subject="ann", region=region))
    assert ("b.eu" in ids) == kept
    assert moves == ({} if kept else {"b.eu": "region"})


def test_only_permitted_tools_are_moved_or_kept():
    reach, moves = left(Caller(subject="ann"), RiskCeiling(max_risk=Risk.READ), permitted=[True, False, True, False])
    assert reach == ["a.read"]
    assert moves == {"a.write": "risk_ceiling"}


def test_the_permitted_set_itself_is_left_alone():
    permitted = np.ones(len(TOOLS), dtype=bool)
    admissible(TOOLS, caller=in_stage(""), permitted=permitted, ceilings=(RiskCeiling(max_risk=Risk.READ),))
    assert permitted.all()


def test_other_tools_change_nothing():
    ceiling = RiskCeiling(max_risk=Risk.WRITE)
    alone, moves = left(in_stage(""), ceiling, tools=(WRITE, DESTROY))
    more, more_moves = left(
        in_stage(""), ceiling, tools=(READ, WRITE, DESTROY, EU_ONLY), permitted=[False, True, True, False]
    )
    assert (alone, moves) == (more, more_moves)
