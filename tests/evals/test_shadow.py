"""Figures of shadow mode: hand-computed, calls attributed to the right select, bounds that hold or do not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from toolcrib.errors import ConfigError
from toolcrib.evals.shadow import figures, material
from toolcrib.evals.shadow_thresholds import BOUNDS, held, read_bounds
from toolcrib.types import Channel, ShadowRecord, ShadowSide, Stage, StageRecord, Trace


def side(*tool_ids: str, tokens: int = 100, ms: float = 1.0, outcome: str = "") -> ShadowSide:
    return ShadowSide(
        outcome=outcome or ("selected" if tool_ids else "no_match"),
        tool_ids=tool_ids,
        tokens=tokens,
        confidence=0.5,
        latency_ms=ms,
        catalog_version="c",
        policy_version="p",
        index_version="i",
        options="o",
    )


def at(minute: int) -> str:
    return f"2026-11-01T{minute // 60:02}:{minute % 60:02}:00+00:00"


def pair(trace_id: str, present: ShadowSide, candidate: ShadowSide, *, minute: int = 0, **more: Any) -> ShadowRecord:
    fields = {"candidate_id": "new", **more}
    return ShadowRecord(
        trace_id=trace_id, at=at(minute), state="compared", present=present, candidate=candidate, **fields
    )


def trace(trace_id: str, minute: int, who: str, kind: Any, *records: StageRecord) -> Trace:
    return Trace(
        trace_id=trace_id,
        kind=kind,
        at=at(minute),
        subject=who,
        on_behalf_of="",
        tenant="acme",
        channel=Channel.LIBRARY,
        records=records,
    )


def select(trace_id: str, minute: int, who: str, *offered: str, everything: bool = False) -> Trace:
    found = StageRecord(stage=Stage.RETRIEVAL, operator_view={"present": "all"} if everything else {})
    tools = [{"tool_id": tool_id} for tool_id in offered]
    return trace(
        trace_id, minute, who, "select", found, StageRecord(stage=Stage.SELECTION, operator_view={"tools": tools})
    )


def call(tool_id: str, minute: int, who: str, *, gate: str = "ok", done: str = "ok") -> Trace:
    records = [StageRecord(stage=Stage.GATE, operator_view={"code": gate, "tool_id": tool_id})]
    if gate == "ok":
        records.append(StageRecord(stage=Stage.EXECUTION, operator_view={"code": done}))
    return trace(f"call{minute}", minute, who, "call", *records)


def newest_first(*traces: Trace) -> list[Trace]:
    return sorted(traces, key=lambda one: one.at, reverse=True)


def told(records: list[ShadowRecord], traces: list[Trace] | None = None, *, k: int = 5) -> dict[str, Any]:
    return figures(material(records[::-1], traces or []), k=k)


def test_a_hand_computed_case() -> None:
    records = [
        pair("t1", side("a", "b", "c"), side("a", "b", "d", tokens=50, ms=2.0)),
        pair("t2", side("a"), side("b", tokens=50, ms=2.0), minute=1),
        pair("t3", side(), side(), minute=2),
        pair("t4", side("a"), side(tokens=0, ms=4.0), minute=3, lost=("a",), n_lost=1),
    ]
    found = told(records)
    # First tools: same, other, none in both, other. Overlap: 2 of 4, 0 of 2, two empty ones, 0 of 1.
    assert found["agreement"] == {"k": 5, "first": 0.5, "same_tools": 0.25, "overlap": (0.5 + 0 + 1 + 0) / 4}
    assert found["outcomes"]["changed"] == 0.25
    assert {"present": "selected", "candidate": "no_match", "n": 1} in found["outcomes"]["pairs"]
    assert found["tokens"]["ratio"] == (50 + 50 + 100 + 0) / 400
    assert found["tokens"]["difference"]["mean"] == -50.0
    assert found["latency_ms"]["present"]["p50"] == 1.0
    assert found["latency_ms"]["candidate"]["p50"] == 2.0
    assert [row["tool_id"] for row in found["reach"]["lost"]] == ["a"]
    assert [row["trace_id"] for row in found["disagreements"]] == ["t4", "t2"]
    assert found["calls"]["recall_present"] is None
    assert any("no call followed" in note for note in found["notes"])


def test_only_the_first_k_count_for_the_overlap() -> None:
    records = [pair("t1", side("a", "b"), side("a", "c"))]
    assert told(records, k=1)["agreement"]["overlap"] == 1.0
    assert told(records, k=2)["agreement"]["overlap"] == pytest.approx(1 / 3, abs=1e-6)


def test_called_tools_are_recalled_in_both_offers() -> None:
    records = [
        pair("t1", side("a", "b"), side("a", "x")),
        pair("t2", side("c"), side("d"), minute=10),
        pair("t3", side("e"), side("e"), minute=20),
    ]
    traces = newest_first(
        select("t1", 0, "ann", "a", "b"),
        call("a", 1, "ann"),
        call("b", 2, "ann"),
        call("b", 3, "ann"),
        select("t2", 10, "ann", "c"),
        call("d", 11, "ann"),  # offered by nobody before it: the newest select's
        select("t3", 20, "bob", "e"),
    )
    found = told(records, traces)
    assert found["n_labelled"] == 2
    assert found["calls"]["recall_present"] == (1 + 0) / 2
    assert found["calls"]["recall_candidate"] == (0.5 + 1) / 2
    assert found["calls"]["difference"]["mean"] == 0.25
    assert (found["calls"]["lost"], found["calls"]["won"]) == (0.5, 0.5)
    assert found["calls"]["lost_tools"] == [{"tool_id": "b", "n": 1}]
    assert found["disagreements"][0]["lost_calls"] == ["b"]


@pytest.mark.parametrize(
    "after",
    [
        call("a", 1, "bob"),
        call("a", 61, "ann"),
        call("a", 1, "ann", gate="denied"),
        call("a", 1, "ann", done="tool_error"),
    ],
    ids=["another caller", "too late", "refused", "failed"],
)
def test_what_is_no_answered_call_of_that_caller_labels_nothing(after: Trace) -> None:
    records = [pair("t1", side("a"), side("a"))]
    assert told(records, newest_first(select("t1", 0, "ann", "a"), after))["n_labelled"] == 0


def test_a_call_belongs_to_the_newest_select_that_offered_the_tool() -> None:
    records = [pair("t1", side("a"), side()), pair("t2", side("b"), side("b"), minute=1)]
    traces = newest_first(select("t1", 0, "ann", "a"), select("t2", 1, "ann", "b"), call("a", 2, "ann"))
    found = told(records, traces)
    assert (found["n_labelled"], found["calls"]["lost"]) == (1, 1.0)


def test_who_gains_and_loses_a_tool_is_named() -> None:
    records = [
        pair("t1", side(), side(), gained=("z",), n_gained=1),
        pair("t2", side(), side(), minute=1, gained=("z",), n_gained=1),
        pair("t3", side(), side(), minute=2, gained=("y",), n_gained=200),
    ]
    traces = newest_first(select("t1", 0, "ann"), select("t2", 1, "bob"))
    found = told(records, traces)["reach"]
    assert (found["n_gained_tools"], found["is_cut"]) == (2, True)
    assert found["gained"][0] == {
        "tool_id": "z",
        "n_selects": 2,
        "n_callers": 2,
        "callers": ["ann (acme)", "bob (acme)"],
    }
    assert found["gained"][1]["callers"] == ["(trace gone)"]


def test_another_candidate_and_what_came_before_this_one_are_left_out() -> None:
    records = [
        ShadowRecord(trace_id="t0", at=at(0), state="failed", present=side(), fault="ConfigError: x", n_dropped=3),
        pair("t1", side("a"), side("b"), minute=1, candidate_id="old"),
        pair("t2", side("a"), side("a"), minute=2, n_dropped=1),
        ShadowRecord(trace_id="t3", at=at(3), state="failed", present=side(), fault="PolicyError: y\n  -> z"),
        ShadowRecord(trace_id="t4", at=at(4), state="dropped", n_dropped=2),
    ]
    found = told(records)
    assert (found["n_compared"], found["n_other_candidates"], found["candidate_id"]) == (1, 1, "new")
    assert (found["n_failed"], found["faults"], found["failed"]) == (1, {"PolicyError: y": 1}, 0.5)
    assert (found["n_dropped"], found["dropped"]) == (3, 3 / 5)
    assert found["agreement"]["first"] == 1.0


def test_where_everything_was_offered_no_first_tool_is_compared() -> None:
    records = [pair("t1", side("a", "b", tokens=900), side("b"))]
    found = told(records, [select("t1", 0, "ann", "a", "b", everything=True)])
    assert found["agreement"]["first"] is None
    assert found["tokens"]["ratio"] == round(100 / 900, 6)
    assert any("nothing was ranked" in note for note in found["notes"])
    assert found["disagreements"] == []


def test_nothing_on_record_is_no_figure() -> None:
    found = told([])
    assert (found["n_compared"], found["agreement"]["first"], found["tokens"]["ratio"]) == (0, None, None)
    assert found["latency_ms"]["ratio"] is None
    assert held({"min_agreement": 0.0, "max_lost_calls": 1.0}, found) == tuple(
        replace(one, holds=False) for one in held({"min_agreement": 0.0, "max_lost_calls": 1.0}, found)
    )


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "release.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_bounds_hold_or_do_not(tmp_path: Path) -> None:
    found = told([pair("t1", side("a"), side("a", tokens=120)), pair("t2", side("a"), side("b", tokens=100), minute=1)])
    bounds = read_bounds(
        write(tmp_path, "[shadow]\nmin_compared = 2\nmin_agreement = 0.6\nmax_tokens_ratio = 1.1\nmax_lost_calls = 0\n")
    )
    assert [(one.name, one.got, one.holds) for one in held(bounds, found)] == [
        ("min_compared", 2, True),
        ("min_agreement", 0.5, False),
        ("max_tokens_ratio", 1.1, True),
        ("max_lost_calls", None, False),
    ]
    assert str(held(bounds, found)[1]) == "agreement is 0.5, at least 0.6 is asked"
    assert str(held(bounds, found)[3]) == "lost_calls is not known, at most 0 is asked"


def test_every_bound_is_on_a_figure_of_the_report() -> None:
    records = [pair("t1", side("a"), side("a"))]
    found = told(records, newest_first(select("t1", 0, "ann", "a"), call("a", 1, "ann")))
    assert all(one.got is not None for one in held(dict.fromkeys(BOUNDS, 0.0), found))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[shadow]\nmin_agrement = 0.8\n", "did you mean min_agreement"),
        ("[shadow]\nmin_agreement = true\n", "must be a number"),
        ("[metrics]\nmin_agreement = 1\n", "one table"),
        ("[shadow]\n", "one table"),
        ("[shadow\n", "not TOML"),
    ],
)
def test_a_faulty_bound_is_an_error(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ConfigError) as fault:
        read_bounds(write(tmp_path, text))
    assert says in str(fault.value)
