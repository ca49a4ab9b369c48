"""Explain names the stage that lost a tool, for any tool."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from toolcrib.trace.explain import explain
from toolcrib.trace.records import bit, pack_bits
from toolcrib.types import Channel, Stage, StageRecord, Trace

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
        Stage.ROUTING: {"moves": [{"tool_id": "s.routed", "action": "dropped", "code": "region", "reason": "why"}]},
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


def test_bitmaps_keep_every_bit() -> None:
    wanted = np.random.default_rng(0).random(77) < 0.5
    text = pack_bits(wanted)
    assert [bit(text, number) for number in range(77)] == wanted.tolist()
    assert not bit(text, 500)
