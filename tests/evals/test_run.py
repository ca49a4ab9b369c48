"""Asking cases: what each stage did, refusal over candidates, and what a caller must not see."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.evals.making import shop_place
from tests.flow.worlds import World, tool
from toolcrib.errors import ConfigError
from toolcrib.evals.cases import Case, case_of
from toolcrib.evals.exposure import Hidden, exposed
from toolcrib.evals.places import Place, place_of_crib
from toolcrib.evals.results import Searched
from toolcrib.evals.run import filled, run, sampled
from toolcrib.retrieval.index import Index
from toolcrib.retrieval.search import View
from toolcrib.trace.explain import explain
from toolcrib.types import BoolArray, SelectRequest, Stage, StageRecord

CLERK = {"subject": "cleo", "scopes": ["orders"]}
TOML = """
[selection]
limit = 1
[[tools]]
match = "*"
risk = "read"
[[tools]]
match = "shop.issue_refund"
required_scopes = ["money"]
[[tools]]
match = "shop.get_old_order"
status = "retired"
[[tools]]
match = "shop.list_rates"
regions = ["us"]
"""
SHOP = [
    tool("get_order", "Look up one order by its number."),
    tool("list_orders", "List the orders of a customer by their numbers."),
    tool("issue_refund", "Return money to a customer who sent an order back."),
    tool("get_old_order", "Look up an order in the archive of the last century."),
    tool("list_rates", "List the shipping rates of every carrier."),
]


@pytest.fixture
def world(tmp_path: Path) -> World:
    one = World(tmp_path, {"shop": SHOP}, toml=TOML)
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "cleo.json").write_text(json.dumps({**CLERK, "environment": "test"}), encoding="utf-8")
    return one


def case(task: str, expect: object, **more: object) -> Case:
    return case_of({"id": task, "task": task, "expect": expect, **more}, where="cases.jsonl:1")


def asked(world: World, *cases: Case) -> Place:
    return place_of_crib(world.crib, cases, name="cases")


def searched(world: World, *cases: Case) -> list[Searched]:
    found = [result.searched for result in run(asked(world, *cases))]
    assert all(found)
    return [one for one in found if one is not None]


def test_the_ranking_and_the_selection_are_those_that_serve(world: World) -> None:
    (one,) = searched(world, case("look up one order by its number", [["shop.get_order"]]))
    offer = world.crib.select("look up one order by its number")
    assert one.offered == tuple(chosen.tool.tool_id for chosen in offer.tools) == ("shop.get_order",)
    assert one.tokens == offer.selection.tokens
    assert (one.ranks, one.first_rank, one.rounds, one.lost) == ((1,), 1, 1, ())
    assert one.confidence == pytest.approx(offer.selection.confidence)


def test_measuring_leaves_no_trace(world: World) -> None:
    run(asked(world, case("look up one order", [["shop.get_order"]])))
    assert world.crib.store.traces() == ()


@pytest.mark.parametrize(
    ("task", "expect", "stage", "code"),
    [
        ("fly to the moon with an order", "shop.fly", Stage.REGISTRY, "not_in_catalog"),
        ("look up an order in the archive", "shop.get_old_order", Stage.REGISTRY, "retired"),
        ("return money to a customer", "shop.issue_refund", Stage.ELIGIBILITY, "not_permitted"),
        ("list the shipping rates of every carrier", "shop.list_rates", Stage.ROUTING, "region"),
        ("list the orders of a customer", "shop.get_order", Stage.SELECTION, "limit"),
    ],
    ids=["unknown", "retired", "not-permitted", "region", "limit"],
)
def test_a_lost_capability_is_told_with_the_stage_that_lost_it(
    world: World, task: str, expect: str, stage: Stage, code: str
) -> None:
    (one,) = searched(world, case(task, [[expect]], caller="cleo"))
    assert [(loss.stage, loss.code) for loss in one.lost] == [(stage, code)]
    assert one.in_service == (stage is not Stage.REGISTRY,)


def test_a_capability_is_lost_where_its_last_tool_was(world: World) -> None:
    task = "list the orders of a customer by their numbers"
    (one,) = searched(world, case(task, [["shop.fly", "shop.issue_refund", "shop.get_order"]], caller=CLERK))
    assert [(loss.stage, loss.code) for loss in one.lost] == [(Stage.SELECTION, "limit")]


def test_attribution_is_what_explain_says(world: World) -> None:
    task = "return money to a customer"
    (one,) = searched(world, case(task, [["shop.issue_refund"]], caller="cleo"))
    cleo = asked(world, case(task, None, caller="cleo")).asked[0].caller
    offer = world.crib.select(task, caller=cleo)
    trace = world.crib.trace(offer.trace_id)
    registry = trace.record(Stage.REGISTRY)
    assert registry is not None
    catalog = world.crib.store.catalog(registry.operator_view["catalog_version"])
    told = explain(trace, tool_id="shop.issue_refund", catalog=catalog)
    assert (one.lost[0].stage, one.lost[0].code, one.lost[0].reason) == (told.lost_at, told.code, told.reason)


def test_refusal_is_measured_over_the_candidates_where_a_case_names_them(tmp_path: Path) -> None:
    place = shop_place(tmp_path / "shop")
    by_id = {result.case.case_id: result for result in run(place)}
    whole, narrow = by_id["refund"], by_id["narrow"]
    assert narrow.searched is None
    assert narrow.confidence < whole.confidence
    index = place.pipeline.index
    assert index is not None and narrow.case.candidates is not None
    mask = np.array([t.tool_id in narrow.case.candidates for t in place.pipeline.snapshot.tools])
    assert narrow.confidence == index.view(mask).search(narrow.case.task).confidence


def test_candidates_are_searched_with_the_settings_in_force(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = shop_place(tmp_path / "shop")
    index = place.pipeline.index
    assert index is not None
    asked_for: list[tuple[bool, bool]] = []
    honest = type(index).view

    def seen(self: Index, permitted: BoolArray, *, adapt: bool = True, rerank: bool = True, **more: Any) -> View:
        asked_for.append((adapt, rerank))
        return honest(self, permitted, adapt=adapt, rerank=rerank, **more)

    monkeypatch.setattr(type(index), "view", seen)
    options = replace(place.pipeline.options, adapt=False, rerank=False)
    run(replace(place, pipeline=replace(place.pipeline, options=options)))
    assert set(asked_for) == {(False, False)}


def test_whether_some_tool_fits_is_a_matter_of_the_callers_reach(world: World) -> None:
    results = run(
        asked(
            world,
            case("look up one order by its number", [["shop.get_order"]]),
            case("return money to a customer", [["shop.issue_refund"]], caller="cleo"),
            case("knit a scarf", None),
            case("find an order by number", [["shop.get_order"]], candidates=["shop.list_orders"]),
        )
    )
    assert [result.fits for result in results] == [True, None, False, None]


def test_of_no_candidates_none_is_offered(world: World) -> None:
    (result,) = run(asked(world, case("look up one order by its number", None, candidates=[])))
    assert (result.confidence, result.refused, result.fits) == (0.0, True, False)


def test_forbidden_tools_that_were_offered_are_named(world: World) -> None:
    (one,) = searched(world, case("list the orders of a customer", [["shop.get_order"]], forbid=["shop.list_orders"]))
    assert one.forbidden == ("shop.list_orders",)


def test_an_unknown_caller_is_an_error_with_its_place(world: World) -> None:
    with pytest.raises(ConfigError) as fault:
        asked(world, case("x", None, caller="clео"))
    assert fault.value.where == "cases.jsonl:1"
    with pytest.raises(ConfigError, match="cleo"):
        asked(world, case("x", None, caller="cleoo"))


def test_a_callers_fields_may_say_whom_it_acts_for(world: World) -> None:
    agent = {"subject": "bot", "kind": "agent", "on_behalf_of": "cleo", "acting_for": CLERK}
    (one,) = asked(world, case("x", None, caller=agent)).asked
    assert one.caller.acting_for is not None
    assert (one.caller.acting_for.subject, one.caller.environment) == ("cleo", "test")


def test_expected_arguments_that_do_not_fit_any_more_are_told(tmp_path: Path) -> None:
    schema = {"order_id": {"type": "string"}}
    world = World(tmp_path, {"shop": [tool("get_order", "Look up one order.", properties=schema)]})
    arguments = {"shop.get_order": {"order_id": 4}, "shop.gone": {}}
    fits, misfits = searched(
        world,
        case("look up one order", ["shop.get_order"], arguments={"shop.get_order": {"order_id": "4"}}),
        case("look up an order", ["shop.get_order"], arguments=arguments),
    )
    assert (fits.misfits, fits.n_arguments) == ((), 1)
    assert [line.split(":")[0] for line in misfits.misfits] == ["shop.get_order", "shop.gone"]


# --- exposure


def test_an_honest_answer_shows_nothing_of_hidden_tools(world: World) -> None:
    tasks = ("return money to a customer", "use shop.issue_refund", "list everything", "orders")
    for one in searched(world, *(case(task, [["shop.issue_refund"]], caller="cleo") for task in tasks)):
        assert one.exposed == ()


def test_a_planted_leak_of_each_kind_is_seen(world: World) -> None:
    place = asked(world, case("orders", None, caller="cleo"))
    pipeline, caller = place.pipeline, place.asked[0].caller
    request = SelectRequest(task="look up one order", limit=5)
    done = pipeline.select(request, caller=caller, channel=place.channel)
    hidden = Hidden.of(done.view, pipeline.snapshot)
    assert exposed(done, hidden=hidden, request=request) == ()
    assert "shop.issue_refund" in hidden.ids
    refund = pipeline.tool("shop.issue_refund")
    assert refund is not None

    message = replace(done, selection=replace(done.selection, message="try shop__issue_refund instead"))
    words = replace(done, selection=replace(done.selection, message=f"see: {refund.description}"))
    record = StageRecord(stage=Stage.REGISTRY, operator_view={}, caller_view={"hidden": ["shop.issue_refund"]})
    counted = StageRecord(stage=Stage.REGISTRY, operator_view={}, caller_view={"n_tools": len(pipeline.snapshot.tools)})
    chosen = replace(done.selection.tools[0], tool=refund)
    offered = replace(done, selection=replace(done.selection, tools=(chosen,)))
    kinds = [
        exposed(one, hidden=hidden, request=request)
        for one in (message, words, replace(done, records=(record,)), replace(done, records=(counted,)), offered)
    ]
    assert [told[0].split(":")[0] for told in kinds] == ["names", "descriptions", "traces", "counts", "names"]


# --- small parts


def test_a_budget_is_filled_with_whole_definitions() -> None:
    costs = {"a": 60, "b": 50, "c": 40}
    assert filled(["a", "b", "c"], costs, 100) == ["a", "c"]
    assert filled(["a", "b", "c"], costs, 39) == []


def test_a_sample_takes_both_kinds_and_is_the_same_for_a_seed(tmp_path: Path) -> None:
    place = shop_place(tmp_path / "shop")
    one = sampled(place, sample=1, seed=3)
    assert sorted(a.case.answerable for a in one.asked) == [False, True]
    assert one.asked == sampled(place, sample=1, seed=3).asked
    assert sampled(place, sample=0, seed=3).asked == place.asked
