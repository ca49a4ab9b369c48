"""Kinds of requests and what must come first."""

from __future__ import annotations

import numpy as np
import pytest

from tests.retrieval.making import build, everyone, ids, search, tool
from toolcrib.retrieval.confidence import DEFAULT_FLOOR
from toolcrib.retrieval.index import Index
from toolcrib.types import Tool

OFFICE = (
    tool("office.openTicket", "Opens a support case."),
    tool("office.assign_ticket", "Assign a ticket to a colleague."),
    tool("office.cancel_booking", "Cancel a room booking and free the room."),
    tool("office.book_room", "Reserve a meeting room for a time."),
    tool("office.translate_text", "Translate a text into another language."),
    tool("office.room_temperature", "Current temperature in a room."),
    tool("office.print_document", "Send a document to a printer."),
)


@pytest.mark.parametrize(
    ("task", "first"),
    [
        pytest.param("open ticket", "office.openTicket", id="camel case"),
        pytest.param("open a ticket about the broken lamp", "office.openTicket", id="camel case in a sentence"),
        pytest.param("cancelling bookings", "office.cancel_booking", id="word forms"),
        pytest.param("could you please help me get this translated", "office.translate_text", id="request words"),
        pytest.param("what is the temperature in room Aurora", "office.room_temperature", id="question"),
        pytest.param("🖨 print the documents", "office.print_document", id="emoji"),
    ],
)
def test_right_tool_comes_first_with_confidence(task: str, first: str) -> None:
    ranking = search(OFFICE, task)

    assert ids(ranking)[0] == first
    assert ranking.confidence >= DEFAULT_FLOOR


@pytest.mark.parametrize(
    "task",
    [
        "compose a symphony in d minor",
        "who won the world cup of 1998",
        "what is the capital of the country",
        "grow tomatoes",
    ],
)
def test_what_no_tool_does_stays_below_the_floor(task: str) -> None:
    assert search(OFFICE, task).confidence < DEFAULT_FLOOR


@pytest.mark.parametrize("n_repeats", [1, 3, 20])
def test_length_buys_no_rank(n_repeats: int) -> None:
    wordy = (
        "Archive the report that was created for the customer in the ledger, and create another report from it later. "
    )
    tools = (
        tool("erp.create_invoice", "Create an invoice."),
        tool("erp.archive_report", wordy * n_repeats),
        tool("erp.assign_invoice", "Assign an invoice to somebody."),
        tool("erp.get_rate", "Exchange rate of a currency."),
    )

    assert ids(search(tools, "create a new invoice in the ledger for the customer"))[0] == "erp.create_invoice"


def test_request_words_in_a_tool_text_attract_nothing() -> None:
    stuffed = tool(
        "bad.helper", "Can you help me please, I want to know, could you recommend, tell me how, need, thanks"
    )

    for task in ("can you please help me cancel a booking", "could you tell me the temperature of the room"):
        ranking = search((*OFFICE, stuffed), task)
        assert ids(ranking)[0] != "bad.helper"
        assert {h.tool_id: h.confidence for h in ranking.hits}.get("bad.helper", 0.0) < 0.4 * ranking.confidence


@pytest.mark.parametrize(
    ("task", "first"),
    [
        pytest.param("查询订单", "shop.查询订单", id="chinese name"),
        pytest.param("快递", "shop.快递跟踪", id="chinese word"),
        pytest.param("возврат денег", "shop.refund_ru", id="cyrillic"),
        pytest.param("wann kommt die mullabfuhr", "shop.Müllabfuhr", id="accent left out"),
    ],
)
def test_words_of_any_script_match(task: str, first: str) -> None:
    tools = (
        tool("shop.查询订单", "按编号查询订单"),
        tool("shop.快递跟踪", "跟踪快递包裹"),
        tool("shop.refund_ru", "Возврат денег клиенту."),
        tool("shop.Müllabfuhr", "Termine der Müllabfuhr."),
        tool("shop.create_order", "Create an order."),
    )

    assert ids(search(tools, task))[0] == first


def test_foreign_script_without_a_match_gives_no_confident_hit() -> None:
    assert search(OFFICE, "закрыть заявку").confidence < DEFAULT_FLOOR


def test_one_permitted_tool_is_found_among_many_forbidden_lookalikes() -> None:
    crowd = [tool(f"crm.delete_person_{i}", "Remove a person from the list for ever.") for i in range(60)]
    index = build([*crowd, tool("crm.archive_person", "Move a person off the active list.")])
    permitted = np.array([t.tool_id == "crm.archive_person" for t in index.tools])

    ranking = index.view(permitted).search("remove a person from the active list")

    assert ids(ranking) == ["crm.archive_person"]
    assert ranking.confidence >= DEFAULT_FLOOR


def test_what_is_asked_not_to_happen_does_not_lead() -> None:
    tools = (
        tool("ops.restart_service", "Restart a running service."),
        tool("ops.service_logs", "Show recent log lines of a service."),
        tool("ops.stop_service", "Stop a service."),
    )

    assert ids(search(tools, "don't restart or stop the service, show me its logs"))[0] == "ops.service_logs"
    assert ids(search(tools, "stop the service instead of restarting it"))[0] == "ops.stop_service"


def test_each_part_of_a_task_gets_its_best_tool_before_near_copies() -> None:
    copies = [tool(f"net.weather_{i}", f"Get the weather for a city from provider {i}.") for i in range(30)]

    ranking = search([*copies, tool("net.send_email", "Send an email.")], "get the weather for Oslo and email it to Bo")

    assert "net.send_email" in ids(ranking)[:2]
    assert len(ranking.capabilities) == 2
    by_id = {hit.tool_id: hit for hit in ranking.hits}
    assert by_id["net.send_email"].capability == 1


def test_one_verb_over_two_objects_is_one_part() -> None:
    tools = (
        tool("erp.export_invoices", "Export invoices to a file."),
        tool("erp.export_payroll", "Export the payroll to a file."),
    )

    ranking = search(tools, "export invoices and payroll to a file")

    assert ranking.capabilities == ("export invoices and payroll to a file",)
    assert {hit.tool_id for hit in ranking.hits if hit.confidence >= DEFAULT_FLOOR} == {t.tool_id for t in tools}


def test_queries_of_the_caller_replace_the_parts() -> None:
    ranking = search(OFFICE, "prepare the visit", "translate the agenda", "print the document")

    assert ranking.capabilities == ("translate the agenda", "print the document")
    assert ids(ranking)[:2] == ["office.translate_text", "office.print_document"]
    assert [hit.capability for hit in ranking.hits[:2]] == [0, 1]


def test_operator_keywords_and_examples_are_found() -> None:
    tools: tuple[Tool, ...] = (
        tool("pay.tx_7", "Internal.", keywords=("wire transfer",), examples=("send 50 euros to Ann",)),
        tool("pay.tx_8", "Internal."),
    )

    assert ids(search(tools, "make a wire transfer"))[0] == "pay.tx_7"
    assert ids(search(tools, "send euros to somebody"))[0] == "pay.tx_7"


def test_scores_fall_with_the_rank_and_ties_break_by_id() -> None:
    twins = [tool(f"s{i}.count_sheep", "Count sheep.") for i in (3, 1, 2)]

    index = Index.build(sorted(twins, key=lambda t: t.tool_id), embedder=None)  # vectors tell one server from another

    ranking = index.view(everyone(index)).search("count the sheep in the meadow")

    assert [h.tool_id for h in ranking.hits] == ["s1.count_sheep", "s2.count_sheep", "s3.count_sheep"]
    assert [h.score for h in ranking.hits] == sorted((h.score for h in ranking.hits), reverse=True)


def test_top_k_bounds_the_hits() -> None:
    assert len(search(OFFICE, "ticket room document", top_k=2).hits) == 2
    assert search(OFFICE, "ticket room document", top_k=0).hits == ()


def test_same_question_gets_the_same_ranking() -> None:
    first, second = build(OFFICE), build(OFFICE)
    task = "book a room and print the document for the visitors"

    assert first.view(everyone(first)).search(task) == second.view(everyone(second)).search(task)
