"""The freight example's configuration against the tools that it is about. Reads the files; starts nothing."""

from __future__ import annotations

import json
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from freight_desk.catalog import ALL
from freight_desk.records import TABLES

EXAMPLE = Path(__file__).parents[2] / "examples" / "freight"
CONFIG = tomllib.loads((EXAMPLE / "toolcrib.toml").read_text("utf-8"))
CALLERS = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted((EXAMPLE / "callers").glob("*.json"))}
OF_CUSTOMERS = {table.key for table in TABLES.values() if table.through}


def row_for(tool: Any) -> dict[str, Any]:
    """What the `[[tools]]` rows say of a tool: later rows win."""
    told: dict[str, Any] = {}
    for row in CONFIG["tools"]:
        if fnmatchcase(f"freight.{tool.name}", row["match"]):
            told |= row
    return told


def permitted(caller: dict[str, Any]) -> list[Any]:
    """What the built-in policy permits by scope, stage and tenant."""

    def may(row: dict[str, Any]) -> bool:
        stages, tenants = row.get("stages"), row.get("tenants")
        return (
            set(row["required_scopes"]) <= set(caller["scopes"])
            and (not stages or caller["stage"] in stages)
            and (not tenants or caller.get("tenant") in tenants)
        )

    return [tool for tool in ALL if may(row_for(tool))]


def test_every_tool_is_assigned_and_every_row_matches_one() -> None:
    assert [tool.name for tool in ALL if row_for(tool)["required_scopes"] == ["not.assigned"]] == []
    assert [row["match"] for row in CONFIG["tools"] if not any(row in matching(tool) for tool in ALL)] == []


def matching(tool: Any) -> list[dict[str, Any]]:
    return [row for row in CONFIG["tools"] if fnmatchcase(f"freight.{tool.name}", row["match"])]


def test_a_scope_for_reading_permits_no_writing() -> None:
    read = [tool for tool in ALL if any(scope.endswith(".read") for scope in row_for(tool)["required_scopes"])]
    assert read
    assert [tool.name for tool in read if tool.action.writes] == []


def test_mara_sees_about_two_dozen_of_about_two_hundred() -> None:
    names = {tool.name for tool in permitted(CALLERS["mara"])}
    assert 20 <= len(names) <= 28
    assert {"shipment_get", "customs_requirements_get", "customs_checklist_get", "internal_note_draft"} <= names
    assert names.isdisjoint({"billing_hold_get", "hold_clear", "internal_note_publish", "shipment_owner_lookup"})


@pytest.mark.parametrize("name", sorted(CALLERS))
def test_nobody_reaches_customer_data_past_the_tenant_check(name: str) -> None:
    """Each permitted tool that touches customers' records names exactly one, in an argument that the gate resolves."""
    guarded = {row["argument"].removeprefix("/") for row in CONFIG["resources"]}
    for tool in permitted(CALLERS[name]):
        customers = any(TABLES[table].through for table in tool.action.tables)
        named = [argument for argument in tool.action.required if argument in OF_CUSTOMERS]
        optional = [argument for argument in tool.action.optional if argument in OF_CUSTOMERS]
        assert len(named) == (1 if customers else 0), tool.name
        assert set(named) <= guarded and not optional, tool.name


def test_nobody_holds_the_gate_s_own_scope() -> None:
    assert [name for name, caller in CALLERS.items() if "gate.internal" in caller["scopes"]] == []
