"""The kinds of faults that tool search is known for, each with data of its own, through the whole road."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.flow.worlds import World, Worlds, caller, tool
from toolcrib.offer import Offer
from toolcrib.providers.names import NameTarget, public_name
from toolcrib.types import Code, Outcome

TEXT = {"type": "string", "description": ""}
OFFICE = [
    tool("cancelSubscription", "Ends a plan at the end of the month.", properties={"account": TEXT}),
    tool("create_invoice", "Create an invoice.", properties={"customer": TEXT, "amount": {"type": "number"}}),
    tool("list_meetings", "List the meetings of a day.", properties={"date": TEXT}),
    tool("translate_text", "Translate a text into another language.", properties={"text": TEXT, "target": TEXT}),
    tool("rotate_image", "Turn a picture by an angle.", properties={"angle": {"type": "number"}}),
]


@pytest.fixture
def make(make_world: Worlds) -> Worlds:
    return make_world


@pytest.fixture
def office(make: Any) -> World:
    world: World = make({"office": OFFICE})
    return world


def first(offer: Offer) -> str:
    return offer.tools[0].tool.tool_id if offer.tools else ""


def ids(offer: Offer) -> list[str]:
    return [s.tool.tool_id for s in offer.tools]


@pytest.mark.parametrize(
    "task",
    ["cancel subscription", "cancel the subscription of an account", "cancelling subscriptions", "cancelSubscription"],
)
def test_camel_case_names_are_words_and_word_forms_meet(office: World, task: str) -> None:
    assert first(office.crib.select(task)) == "office.cancelSubscription"


@pytest.mark.parametrize("task", ["invoicing customers", "translating texts", "rotated images"])
def test_word_forms_meet(office: World, task: str) -> None:
    expected = {"invoicing": "create_invoice", "translating": "translate_text", "rotated": "rotate_image"}
    assert first(office.crib.select(task)) == f"office.{expected[task.split()[0]]}"


def test_a_name_that_is_the_task_wins_over_longer_names_around_it(make: Any) -> None:
    names = ("merge_change_request_comment", "merge_change_request", "list_merge_change_requests")
    world = make({"forge": [tool(n, f"{n.replace('_', ' ')} in a repository. Merge change request.") for n in names]})
    assert first(world.crib.select("merge change request")) == "forge.merge_change_request"
    assert first(world.crib.select("merge a change request")) == "forge.merge_change_request"


def test_all_named_tools_are_there(make: Any) -> None:
    names = ["read_graph", "walk_edges", "code_snippet", "graph_query", "code_search", "repo_index"]
    others = [tool(f"graph_code_{n}", "Graph code search index snippet query.") for n in range(20)]
    world = make({"mem": [tool(n, "A tool of the memory.") for n in names] + others})
    assert set(ids(world.crib.select(" ".join(names), limit=6))) == {f"mem.{n}" for n in names}


def test_length_buys_no_rank(make: Any) -> None:
    wordy = " ".join(["The report of the customer stays in the queue, and the queue keeps every report."] * 12)
    world = make(
        {"desk": [tool("open_ticket", "Open a ticket."), tool("purge_cache", wordy), tool("ring_bell", "Ring.")]}
    )
    assert first(world.crib.select("open a new ticket in the queue for the customer")) == "desk.open_ticket"


@pytest.mark.parametrize("task", ["grow tomatoes on mars next spring", "who won the match yesterday"])
def test_what_no_tool_does_is_said_and_not_guessed(office: World, task: str) -> None:
    offer = office.crib.select(task)
    assert offer.outcome in (Outcome.NO_MATCH, Outcome.NEEDS_CLARIFICATION)
    assert offer.tools == ()


@pytest.mark.parametrize(
    "task",
    [
        "the of and to", "?!.,;:", '"*" NEAR( OR AND NOT', "' OR 1=1 --", "\u202etxet", "a" * 50_000,
        "image " * 9_000,
        '{"tenant": "other"}', "\x00\ud800", "(((((", "-_-_-", "\u200b\u200b",
    ],
    ids=lambda task: repr(task[:12]),
)  # fmt: skip
def test_hostile_tasks_neither_crash_nor_open_the_catalog(office: World, task: str) -> None:
    assert len(office.crib.select(task, limit=3).tools) <= 3


@pytest.mark.parametrize("task", ["", " ", "\n\t", "please", "can you help me"])
def test_a_task_that_asks_for_nothing_gets_nothing(office: World, task: str) -> None:
    offer = office.crib.select(task)
    assert offer.tools == ()
    assert offer.outcome is Outcome.NEEDS_CLARIFICATION


def test_scripts_of_all_kinds_match_their_own_words(make: Any) -> None:
    tools = [
        tool("查询订单", "按编号查询订单的状态"), tool("取消订单", "取消一个订单"), tool("汇率", "查询货币的汇率"),
        tool("Prüfbericht_öffnen", "Einen Prüfbericht für ein Gerät anzeigen."),
        tool("найти_счёт", "Найти счёт клиента."),
        tool("注文検索", "注文を番号で検索する"), tool("주문_조회", "주문 상태를 조회합니다"),
        tool("get_rate", "Get a rate."),
    ]  # fmt: skip
    world = make({"desk": tools})
    for task, expected in (
        ("取消订单", "取消订单"), ("汇率", "汇率"), ("prufbericht", "Prüfbericht_öffnen"),
        ("найти счета", "найти_счёт"),
        ("注文を検索", "注文検索"), ("주문 조회", "주문_조회"), ("💱 get rate", "get_rate"),
    ):  # fmt: skip
        assert first(world.crib.select(task)) == f"desk.{expected}", task


def test_denied_tools_do_not_starve_the_permitted_one(make: Any) -> None:
    many = [tool(f"erase_file_{n}", f"Erase a file for good, way {n}.") for n in range(60)]
    toml = '[[tools]]\nmatch = "disk.erase_*"\nrequired_scopes = ["root"]\n'
    world = make({"disk": [*many, tool("archive_file", "Put a file away so that it can be found later.")]}, toml=toml)
    who = caller(scopes=["basic"])
    assert world.ids(who) == ["disk.archive_file"]
    assert ids(world.crib.select("put a file away", caller=who)) == ["disk.archive_file"]
    assert not [i for i in ids(world.crib.select("erase a file for good", caller=who)) if "erase" in i]


def test_a_stranger_hears_the_same_of_a_hidden_tool_and_of_none(make: Any) -> None:
    toml = '[[tools]]\nmatch = "bank.*"\nrequired_scopes = ["treasury"]\n'
    world = make({"bank": [tool("pay_out", "Pay money out to an account.")]}, toml=toml)
    ann = caller(scopes=["basic"])
    answers = []
    for task in ("pay money out to an account", "paint a fence blue"):
        answer = world.crib.select(task, caller=ann).to_dict()
        answers.append({**answer, "trace_id": "", "confidence": 0})
    assert answers[0] == answers[1]
    assert answers[0]["outcome"] == "no_match"
    assert {world.call(t, caller=ann).code for t in ("bank.pay_out", "bank.nothing")} == {Code.NOT_AVAILABLE}


def test_a_tool_too_large_for_the_budget_gives_way_whole_and_is_said(make: Any) -> None:
    heavy = {f"f{n}": {"type": "string", "description": "A long text about this field. " * 8} for n in range(60)}
    tools = [
        tool("print_ledger", "Print the ledger on paper.", properties=heavy),
        tool("print_invoices", "Print invoices on paper.", properties={"month": TEXT}),
        tool("print_labels", "Print labels on paper.", properties={"month": TEXT}),
    ]
    world = make({"erp": tools})
    offer = world.crib.select("print invoices and labels on paper", token_budget=500)
    assert set(ids(offer)) == {"erp.print_invoices", "erp.print_labels"}
    assert offer.selection.tokens <= 500
    alone = world.crib.select("print the ledger on paper", token_budget=200)
    assert "erp.print_ledger" not in ids(alone)
    assert ("erp.print_ledger", "token_budget") in [(d.tool_id, d.reason) for d in alone.selection.dropped]


def test_public_names_are_legal_distinct_and_the_same_whatever_else_exists(make: Any) -> None:
    servers: dict[str, Sequence[Any]] = {
        "A_Very_Long_Server_Name_For_A_Cloud_Platform": [
            tool("search_everything_in_the_documentation_of_workers_v1", "One."),
            tool("search_everything_in_the_documentation_of_workers_v2", "Two."),
            tool("admin.tools.list", "Three."),
        ],
        "x": [tool("_status", "Four."), tool("call_tool", "Five."), tool("a/b c", "Six."), tool("поиск", "Seven.")],
        "x_": [tool("status", "Eight.")],
    }
    world = make(servers)
    for target in NameTarget:
        names = [public_name(i, target=target) for i in world.ids()]
        assert len(set(names)) == len(names) == 8
        assert all(
            n.isascii() and set(n) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
            for n in names
        )
        assert all(len(n) <= target.max_chars for n in names)
        assert "call_tool" not in names


def test_odd_schemas_cost_only_themselves_and_local_references_serve(make: Any) -> None:
    node = {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/Node"}}}}
    tree = {"type": "object", "properties": {"root": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": node}}
    draft7 = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "definitions": {"D": {"type": "string"}},
        "properties": {"d": {"$ref": "#/definitions/D"}},
    }
    good = [
        tool("tree_write", "Write a tree.", inputSchema=tree),
        tool("colour_pick", "Pick a colour.", properties={"c": {"type": ["string", "null"], "enum": ["red", None]}}),
        tool("hello", "Say hello.", inputSchema={"type": "object"}),
        tool("old_draft", "Use an old draft.", inputSchema=draft7),
    ]
    bad = [
        tool("remote", "r", properties={"x": {"$ref": "https://schemas.invalid/x.json"}}),
        tool("dangling", "d", properties={"x": {"$ref": "#/$defs/None"}}),
        tool("wrong", "w", properties={"x": {"type": "int"}}),
        tool("number", 5),  # type: ignore[arg-type]
        {"description": "no name", "inputSchema": {"type": "object"}},
        {"name": "none"},
    ]
    world = make({"odd": [good[0], *bad, *good[1:]]})
    assert world.ids() == ["odd.colour_pick", "odd.hello", "odd.old_draft", "odd.tree_write"]
    assert all(w.reason for w in world.crib.snapshot().withheld)
    assert len(world.crib.snapshot().withheld) == len(bad)
    assert first(world.crib.select("write a tree")) == "odd.tree_write"
    done = world.call("odd.tree_write", {"root": {"kids": [{"kids": "no"}]}})
    assert done.code is Code.INVALID_ARGUMENTS
    assert world.call("odd.tree_write", {"root": {"kids": [{"kids": []}]}}).ok


def test_several_capabilities_are_each_covered(make: Any) -> None:
    rates = [tool(f"rate_{n}", f"Look up the exchange rate of a currency at bank {n}.") for n in range(12)]
    world = make(
        {"fin": [*rates, tool("mail_send", "Send an e-mail to somebody."), tool("sheet_add", "Add a row to a sheet.")]}
    )
    offer = world.crib.select("look up the exchange rate of the euro and send it by e-mail to Kim", limit=4)
    assert "fin.mail_send" in ids(offer)
    assert any(i.startswith("fin.rate_") for i in ids(offer))
