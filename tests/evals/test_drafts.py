"""Drafts from a catalog, and cases from traces."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.flow.worlds import World, caller, tool
from toolcrib.evals.cases import case_of
from toolcrib.evals.catalog_drafts import drafts_of_crib
from toolcrib.evals.drafts import request_of
from toolcrib.evals.past import from_traces
from toolcrib.types import Tool, ToolMetadata, ToolState

ORDER = {"order_id": {"type": "string"}}
SERVERS = {
    "shop": [
        tool("issue_refund", "Returns money to a customer for an order. Needs a manager.", properties=ORDER),
        tool("get_order", "Looks up one order by its number.", properties=ORDER),
        tool("delete_order", "Deletes an order and everything about it.", properties=ORDER),
    ],
    "mail": [
        tool("send", "This tool is used to send an e-mail message to somebody."),
        tool("list_folders", "Lists the folders of a mailbox, with how many messages each holds."),
        tool("x", "Short."),
    ],
}
for one in SERVERS["shop"]:
    one["inputSchema"]["required"] = ["order_id"]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, SERVERS, toml='[[tools]]\nmatch = "*"\nrisk = "read"\n')


def described(description: str) -> Tool:
    return Tool(
        tool_id="s.t",
        server_id="s",
        name="t",
        definition={"name": "t", "description": description},
        digest="",
        state=ToolState.APPROVED,
        metadata=ToolMetadata(),
    )


@pytest.mark.parametrize(
    ("description", "request_"),
    [
        ("Returns money to a customer. And more.", "return money to a customer"),
        ("Searches all of the notes", "search all of the notes"),
        ("Queries a table of the warehouse", "query a table of the warehouse"),
        ("Process a payment of a customer", "process a payment of a customer"),
        ("This tool is used to send an `e-mail` message", "send an e-mail message"),
        ("Everything that happened to a shipment", "show me everything that happened to a shipment"),
        ("API access to the ledger", "API access to the ledger"),
        ("Short.", ""),
        ("", ""),
        ("x" * 500, ""),
    ],
)
def test_a_request_comes_from_the_first_sentence(description: str, request_: str) -> None:
    assert request_of(described(description)) == request_


def test_drafts_are_cases_of_this_catalog(world: World) -> None:
    cases = drafts_of_crib(world.crib, n=20, seed=5)
    known = set(world.ids())
    kinds = {case.tags[1] for case in cases}
    assert kinds == {"direct", "arguments", "compound", "none"}
    assert len({case.case_id for case in cases}) == len(cases)
    for case in cases:
        assert case.tags[0] == "draft" and case.note
        assert case_of(json.loads(json.dumps(case.to_row())), where="") == case
        assert all(tools <= known for tools in case.expect or ())
    assert not any("mail.x" in tools for case in cases for tools in case.expect or ())
    assert drafts_of_crib(world.crib, n=20, seed=5) == cases


def test_compound_drafts_take_two_servers(world: World) -> None:
    for case in drafts_of_crib(world.crib, n=20, seed=5):
        if "compound" in case.tags:
            assert case.expect is not None
            assert {next(iter(tools)).split(".")[0] for tools in case.expect} == {"shop", "mail"}


def test_drafts_ask_as_callers_who_can_be_offered_the_tool(tmp_path: Path) -> None:
    toml = '[[tools]]\nmatch = "shop.*"\nrequired_scopes = ["orders"]\n[[tools]]\nmatch = "mail.*"\nenabled = false\n'
    world = World(tmp_path, SERVERS, toml=toml)
    profiles = tmp_path / "profiles"
    profiles.mkdir()
    for name, scopes in (("olga", ["orders"]), ("nobody", [])):
        (profiles / f"{name}.json").write_text(json.dumps({"subject": name, "scopes": scopes}), encoding="utf-8")
    cases = drafts_of_crib(world.crib, n=10, seed=5)
    assert {case.caller for case in cases} == {"olga"}


# --- traces


def test_a_request_and_what_was_called_after_it_become_a_case(world: World) -> None:
    ann = caller(subject="ann", scopes=["a"])
    offer = world.crib.select("look up one order by its number", caller=ann, queries=["one order"])
    world.crib.select("folders of a mailbox", caller=caller(subject="bob"))
    world.call("shop.get_order", {"order_id": "4"}, caller=ann)
    taken = from_traces(world.crib.store.each_trace(since="", limit=100), n=10)
    (case,) = taken.cases
    assert (taken.n_selects, taken.n_uncalled) == (2, 1)
    assert (case.task, case.queries) == ("look up one order by its number", ("one order",))
    assert case.expect == (frozenset({"shop.get_order"}),)
    assert case.caller == {"subject": "ann", "kind": "user", "scopes": ["a"], "environment": "test"}
    assert case.case_id == f"trace-{offer.trace_id[:12]}"
    assert case_of(json.loads(json.dumps(case.to_row())), where="") == case


def test_what_was_refused_or_never_offered_is_not_what_was_right(world: World) -> None:
    offer = world.crib.select("look up one order by its number", limit=1)
    assert [chosen.tool.tool_id for chosen in offer.tools] == ["shop.get_order"]
    world.call("shop.get_order", {"order_id": 4})  # refused: no text
    world.call("mail.list_folders")  # not offered
    assert from_traces(world.crib.store.each_trace(since="", limit=100), n=10).cases == ()


def test_calls_belong_to_the_last_request_of_the_same_caller(world: World) -> None:
    world.crib.select("look up one order by its number")
    world.crib.select("return money to a customer for an order")
    world.call("shop.issue_refund", {"order_id": "4"})
    (case,) = from_traces(world.crib.store.each_trace(since="", limit=100), n=10).cases
    assert case.task == "return money to a customer for an order"


def test_a_call_belongs_to_the_request_that_offered_its_tool_also_after_another_one(world: World) -> None:
    world.crib.select("look up one order by its number", limit=1)
    world.crib.select("send an e-mail message to somebody", limit=1)
    world.call("shop.get_order", {"order_id": "4"})
    (case,) = from_traces(world.crib.store.each_trace(since="", limit=100), n=10).cases
    assert (case.task, case.expect) == ("look up one order by its number", (frozenset({"shop.get_order"}),))


def test_an_honest_refusal_is_a_case_to_look_at(world: World) -> None:
    offer = world.crib.select("knit a scarf for my nephew")
    assert offer.outcome == "no_match"
    (case,) = from_traces(world.crib.store.each_trace(since="", limit=100), n=10).cases
    assert case.expect is None
    assert "does really no tool fit" in case.note


def test_of_equal_requests_one_is_taken_and_the_newest_first(world: World) -> None:
    for task in ("look up one order by its number", "return money to a customer", "look up one order by its number"):
        world.crib.select(task)
        world.call("shop.get_order", {"order_id": "4"}, idempotency_key=task)
        world.call("shop.issue_refund", {"order_id": "4"}, idempotency_key=task)
    traces = list(world.crib.store.each_trace(since="", limit=100))
    assert len(from_traces(traces, n=10).cases) == 2
    assert [case.task for case in from_traces(traces, n=1).cases] == ["look up one order by its number"]
