"""Explain names the stage that lost a tool, for any tool."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from toolcrib.trace.explain import explain
from toolcrib.trace.records import bit, execution_record, pack_bits
from toolcrib.types import Channel, Code, Stage, StageRecord, ToolResult, Trace

IDS = ["s.chosen", "s.denied", "s.dropped", "s.known", "s.limit", "s.routed", "s.unranked"]
CATALOG = {
    "tools": [[tool_id, "sha256:0", "approved"] for tool_id in IDS],
    "withheld": [["s.new", "unreviewed", "nobody has approved this definition yet"]],
}


def bits(*names: str) -> str:
    return pack_bits(np.array([tool_id.split(".")[1] in names for tool_id in IDS]))


def select_trace(outcome: str = "selected") -> Trace:
    offered = [{"tool_id": "s.chosen"}] if outcome == "selected" else []
    views: dict[Stage, dict[str, Any]] = {
        Stage.REGISTRY: {"catalog_version": "v"},
        Stage.ELIGIBILITY: {
            "permitted": bits("chosen", "dropped", "limit", "routed", "unranked"),
            "disclosed": bits("known"),
            "errors": [],
        },
        Stage.RETRIEVAL: {"hits": [{"tool_id": f"s.{n}"} for n in ("chosen", "dropped", "limit")]},
        Stage.ROUTING: {"moves": [], "drops": [{"tools": bits("routed"), "code": "region", "reason": "why"}]},
        Stage.SELECTION: {
            "outcome": outcome,
            "tools": offered,
            "dropped": [{"tool_id": "s.dropped", "reason": "token_budget"}],
        },
    }
    return trace("select", views)


def trace(kind: Any, views: dict[Stage, dict[str, Any]]) -> Trace:
    records = tuple(StageRecord(stage=stage, operator_view=view) for stage, view in views.items())
    return Trace(
        trace_id="t",
        kind=kind,
        at="2026",
        subject="u",
        on_behalf_of="",
        tenant="",
        channel=Channel.CLI,
        records=records,
    )


@pytest.mark.parametrize(
    ("tool_id", "stage", "code"),
    [
        ("s.nothing", Stage.REGISTRY, "not_in_catalog"),
        ("s.new", Stage.REGISTRY, "unreviewed"),
        ("s.denied", Stage.ELIGIBILITY, "not_permitted"),
        ("s.known", Stage.ELIGIBILITY, "not_callable"),
        ("s.routed", Stage.ROUTING, "region"),
        ("s.unranked", Stage.RETRIEVAL, "not_retrieved"),
        ("s.dropped", Stage.SELECTION, "token_budget"),
        ("s.limit", Stage.SELECTION, "limit"),
        ("s.chosen", None, "not_chosen"),
    ],
)
def test_the_stage_that_lost_a_tool_is_named(tool_id: str, stage: Stage | None, code: str) -> None:
    found = explain(select_trace(), tool_id=tool_id, catalog=CATALOG)
    assert (found.lost_at, found.code) == (stage, code)
    assert found.reason


def test_a_ranked_tool_of_an_unanswered_request_was_lost_at_selection() -> None:
    found = explain(select_trace("no_match"), tool_id="s.chosen", catalog=CATALOG)
    assert (found.lost_at, found.code) == (Stage.SELECTION, "no_match")


@pytest.mark.parametrize(
    ("gate", "execution", "stage", "code"),
    [
        ({"code": "needs_approval", "check": "approval"}, {}, Stage.GATE, "needs_approval"),
        ({"code": "ok"}, {"code": "tool_error"}, Stage.EXECUTION, "tool_error"),
        ({"code": "ok"}, {"code": "ok"}, None, "carried_out"),
    ],
)
def test_a_later_call_tells_what_became_of_an_offer(
    gate: dict[str, str], execution: dict[str, str], stage: Stage | None, code: str
) -> None:
    call = trace("call", {Stage.GATE: {"tool_id": "s.chosen", **gate}, Stage.EXECUTION: execution})
    found = explain(select_trace(), tool_id="s.chosen", catalog=CATALOG, later_calls=[call])
    assert (found.lost_at, found.code) == (stage, code)


def test_without_a_catalog_every_tool_was_lost_at_the_registry() -> None:
    assert explain(select_trace(), tool_id="s.chosen", catalog=None).lost_at is Stage.REGISTRY


@pytest.mark.parametrize(
    ("stage", "fault", "code"),
    [
        (Stage.ELIGIBILITY, "PolicySyntaxError", "policy_error"),
        (Stage.REGISTRY, "StoreError", "store_error"),
        (Stage.REGISTRY, "ConfigError", "config_error"),
    ],
)
@pytest.mark.parametrize("catalog", [None, CATALOG], ids=["no-catalog", "catalog"])
def test_a_fault_names_its_own_stage(stage: Stage, fault: str, code: str, catalog: Any) -> None:
    broken = trace("select", {stage: {"fault": fault, "what": "p.cedar:1: unexpected token"}})
    found = explain(broken, tool_id="s.chosen", catalog=catalog)
    assert (found.lost_at, found.code) == (stage, code)
    assert "p.cedar:1" in found.reason


def call_trace(tool_id: str, *, check: str, version: str = "v") -> Trace:
    eligibility = {
        "permitted": bits("chosen", "routed"),
        "disclosed": bits("known"),
        "reach": bits("chosen"),
        "errors": [],
    }
    gate = {"tool_id": tool_id, "code": "not_available", "check": check, "message": "No such tool"}
    views = {Stage.REGISTRY: {"catalog_version": version}, Stage.ELIGIBILITY: eligibility, Stage.GATE: gate}
    return trace("call", views)


@pytest.mark.parametrize(
    ("tool_id", "check", "stage", "code"),
    [
        ("s.denied", "reach", Stage.ELIGIBILITY, "not_permitted"),
        ("s.known", "reach", Stage.ELIGIBILITY, "not_callable"),
        ("s.routed", "reach", Stage.ROUTING, "out_of_reach"),
        ("s.chosen", "policy", Stage.GATE, "not_available"),
        ("s.chosen", "resource", Stage.GATE, "not_available"),
    ],
)
def test_a_call_out_of_reach_was_lost_before_the_gate(tool_id: str, check: str, stage: Stage, code: str) -> None:
    found = explain(call_trace(tool_id, check=check), tool_id=tool_id, catalog=CATALOG)
    assert (found.lost_at, found.code) == (stage, code)


@pytest.mark.parametrize(
    ("check", "version", "stage", "code"),
    [
        ("known", "w", Stage.REGISTRY, "not_in_service"),
        ("reach", "w", Stage.ELIGIBILITY, "out_of_reach"),
        ("reach", "v", Stage.GATE, "not_available"),
    ],
)
def test_a_later_call_is_read_by_the_numbers_of_its_own_catalog(
    check: str, version: str, stage: Stage, code: str
) -> None:
    later = call_trace("s.chosen", check=check, version=version)
    found = explain(select_trace(), tool_id="s.chosen", catalog=CATALOG, later_calls=[later])
    assert (found.lost_at, found.code) == (stage, code)


def test_a_tools_own_words_are_written_down_only_on_request() -> None:
    failed = ToolResult(code=Code.TOOL_ERROR, message="login failed for hunter2", reached_server=True)
    record = execution_record(failed, server_id="s", duration_ms=1.0)
    assert "hunter2" not in repr(record)
    assert (record.operator_view["code"], record.operator_view["n_message_chars"]) == ("tool_error", 24)
    asked = execution_record(failed, server_id="s", duration_ms=1.0, record_text=True)
    assert asked.operator_view["message"] == failed.message
    assert "hunter2" not in repr(asked.caller_view)


def test_bitmaps_keep_every_bit() -> None:
    wanted = np.random.default_rng(0).random(77) < 0.5
    text = pack_bits(wanted)
    assert [bit(text, number) for number in range(77)] == wanted.tolist()
    assert not bit(text, 500)
