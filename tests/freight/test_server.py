"""The freight server alone, through the MCP SDK's own client in memory."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from freight_desk.catalog import ALL, release
from freight_desk.desk import Desk
from freight_desk.fields import FIELDS
from freight_desk.records import TABLES, DeskError, Records
from jsonschema import Draft202012Validator
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError

EXAMPLE = Path(__file__).parents[2] / "examples" / "freight"


def text_of(result: Any) -> str:
    return " ".join(block.text for block in result.content)


def example_arguments(tool: Any) -> dict[str, Any]:
    """Every argument of a tool, with the example that its schema gives."""
    properties = tool.input_schema()["properties"]
    return {name: properties[name]["examples"][0] for name in properties if "examples" in properties[name]}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_every_tool_is_listed_with_all_that_a_model_needs(server_module: Any, mode: Any) -> None:
    async with Client(server_module.build_server(Desk()), mode=mode) as client:
        tools = (await client.list_tools()).tools
    assert 190 <= len(tools) <= 220
    assert [tool.name for tool in tools] == sorted({tool.name for tool in tools})
    assert all(len(tool.description or "") >= 20 for tool in tools)
    assert len({tool.description for tool in tools}) == len(tools)
    assert all(tool.annotations is not None and tool.annotations.read_only_hint is not None for tool in tools)
    for tool in tools:
        Draft202012Validator.check_schema(tool.input_schema)
        assert all(schema.get("description") for schema in tool.input_schema["properties"].values()), tool.name


@pytest.mark.parametrize("tool", ALL, ids=lambda tool: tool.name)
def test_a_tool_does_something_on_the_records_or_says_why_not(tool: Any) -> None:
    desk = Desk()
    before = json.dumps([desk.records.rows(name) for name in TABLES])
    try:
        answer = desk.call(tool.name, example_arguments(tool))
    except DeskError as fault:
        assert fault.code in ("conflict", "not_found"), repr(fault)
        assert json.dumps([desk.records.rows(name) for name in TABLES]) == before
        return
    if tool.action.output:
        Draft202012Validator(tool.action.output).validate(answer)
    assert (json.dumps([desk.records.rows(name) for name in TABLES]) != before) is tool.action.writes


def test_most_tools_work_on_the_seed_records_with_the_examples_of_their_schemas() -> None:
    refused = []
    for tool in ALL:
        try:
            Desk().call(tool.name, example_arguments(tool))
        except DeskError as fault:
            refused.append((tool.name, str(fault)))
    assert len(refused) < 16, refused


def test_every_declared_argument_is_used_by_a_tool() -> None:
    used = {name for tool in ALL for name in (*tool.action.required, *tool.action.optional)}
    assert set(FIELDS) - used == set()


async def test_a_held_shipment_says_what_holds_it(server_module: Any) -> None:
    async with Client(server_module.build_server(Desk())) as client:
        shipment = (await client.call_tool("shipment_get", {"shipment_id": "S-204"})).structured_content
        customs = (await client.call_tool("customs_requirements_get", {"shipment_id": "S-204"})).structured_content
        billing = (await client.call_tool("billing_hold_get", {"shipment_id": "S-204"})).structured_content
    assert (shipment["status"], [hold["kind"] for hold in shipment["holds"]]) == ("held", ["CUSTOMS"])
    assert customs["n_missing"] == 2
    assert billing["holds"] == []


async def test_a_billing_hold_is_billing_s_business(server_module: Any) -> None:
    async with Client(server_module.build_server(Desk())) as client:
        billing = (await client.call_tool("billing_hold_get", {"shipment_id": "S-310"})).structured_content
        wrong = await client.call_tool("billing_hold_release", {"hold_id": "H-31", "reason": "paid"})
    assert [hold["hold_id"] for hold in billing["holds"]] == ["H-40"]
    assert [invoice["invoice_id"] for invoice in billing["overdue_invoices"]] == ["INV-1187"]
    assert wrong.is_error and text_of(wrong).startswith("conflict:")


async def test_an_empty_answer_and_an_error_are_different_results(server_module: Any) -> None:
    async with Client(server_module.build_server(Desk())) as client:
        empty = await client.call_tool("claim_list", {"shipment_id": "S-204"})
        missing = await client.call_tool("claim_list", {"shipment_id": "S-999"})
        invalid = await client.call_tool("claim_list", {"shipment": "S-204"})
        with pytest.raises(MCPError):
            await client.call_tool("shipment_teleport", {"shipment_id": "S-204"})
    assert not empty.is_error and empty.structured_content == {"items": [], "total": 0}
    assert missing.is_error and text_of(missing).startswith("not_found:")
    assert invalid.is_error and text_of(invalid).startswith("invalid:")


async def test_a_checklist_that_cannot_be_asked_is_an_error_not_an_empty_list(
    server_module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Client(server_module.build_server(Desk())) as client:
        up = await client.call_tool("customs_checklist_get", {"shipment_id": "S-204"})
        monkeypatch.setenv("FREIGHT_CHECKLIST_DOWN", "1")
        down = await client.call_tool("customs_checklist_get", {"shipment_id": "S-204"})
        monkeypatch.delenv("FREIGHT_CHECKLIST_DOWN")
        await client.call_tool("integration_stop", {"integration_id": "customs-checklist", "reason": "update"})
        stopped = await client.call_tool("customs_checklist_get", {"shipment_id": "S-204"})
    assert up.structured_content["total"] == 4
    for result in (down, stopped):
        assert result.is_error and text_of(result).startswith("unavailable:") and result.structured_content is None


def test_a_draft_is_written_and_a_hold_cleared_only_when_asked(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    desk = Desk(state)
    desk.call("internal_note_draft", {"shipment_id": "S-204", "body": "Two papers are missing."})
    kept = Records(state)
    assert [note["status"] for note in kept.where("notes", shipment_id="S-204")] == ["draft"]
    assert kept.get("holds", "H-31")["status"] == "active"
    desk.call("hold_clear", {"hold_id": "H-31", "reason": "Papers arrived"})
    kept = Records(state)
    assert kept.get("holds", "H-31")["status"] == "cleared"
    assert kept.get("shipments", "S-204")["status"] == "in_transit"
    assert [row["tool"] for row in kept.rows("audit")] == ["internal_note_draft", "hold_clear"]


def test_an_answer_is_a_copy_that_later_writes_do_not_change() -> None:
    desk = Desk()
    before = desk.call("shipment_get", {"shipment_id": "S-204"})
    desk.call("hold_clear", {"hold_id": "H-31", "reason": "Papers arrived"})
    assert before["holds"][0]["status"] == "active"


@pytest.mark.parametrize(
    ("record_id", "tenant"),
    [("S-204", "northwind"), ("H-52", "baltic"), ("PAY-1", "baltic"), ("A-11", "northwind"), ("PICK-2", "baltic")],
)
def test_the_gate_can_ask_whose_a_record_is(record_id: str, tenant: str) -> None:
    assert Desk().call("record_owner_lookup", {"record_id": record_id})["tenant"] == tenant


@pytest.mark.parametrize(
    ("hold_id", "role"), [("H-31", "customs_desk"), ("H-40", "billing_clerk"), ("H-30", "manager")]
)
def test_the_gate_can_ask_which_role_answers_for_a_hold(hold_id: str, role: str) -> None:
    assert Desk().call("record_owner_lookup", {"record_id": hold_id}) == {"tenant": "northwind", "owner": role}


def test_the_next_release_changes_one_definition_and_keeps_every_name() -> None:
    now, then = release("1"), release("2")
    assert [tool.name for tool in now] == [tool.name for tool in then]
    changed = [new for old, new in zip(now, then, strict=True) if old.definition() != new.definition()]
    assert [tool.name for tool in changed] == ["customs_requirements_get"]
    desk = Desk(tools=then)
    answer = desk.call("customs_requirements_get", {"shipment_id": "S-204", "office_code": "USNYC-4601"})
    assert answer["n_missing"] == 2
    with pytest.raises(DeskError, match="does not clear goods"):
        desk.call("customs_requirements_get", {"shipment_id": "S-204", "office_code": "NLRTM-0396"})


def test_ids_are_unique_over_all_records_that_belong_to_customers() -> None:
    records = Records()
    ids = [row[table.key] for name, table in TABLES.items() if table.through for row in records.rows(name)]
    assert len(ids) == len(set(ids))


def test_pages_follow_each_other_without_gap_or_repeat() -> None:
    desk = Desk()
    seen: list[str] = []
    more: dict[str, str] = {}
    while True:
        answer = desk.call("shipment_list", {"account_id": "A-10", "limit": 3} | more)
        seen += [row["shipment_id"] for row in answer["items"]]
        if "next_after" not in answer:
            break
        more = {"after": answer["next_after"]}
    assert seen == ["S-203", "S-204", "S-205", "S-206", "S-310"]


async def test_it_runs_as_a_process_of_its_own_over_stdio(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    params = StdioServerParameters(
        command=sys.executable,
        args=[str(EXAMPLE / "server.py")],
        env={"FREIGHT_STATE": str(state), "PATH": os.environ.get("PATH", "")},
    )
    async with Client(params) as client:
        assert len((await client.list_tools()).tools) == len(ALL)
        await client.call_tool("internal_note_draft", {"shipment_id": "S-204", "body": "Waiting."})
    assert [note["body"] for note in Records(state).where("notes", shipment_id="S-204")] == ["Waiting."]
