"""The page of shadow mode: safe whatever stands in a record, and no row for what is not known."""

from __future__ import annotations

import re
from typing import Any

from tests.evals.test_page import EVIL, read
from tests.evals.test_shadow import pair, select, side
from toolcrib.evals.shadow import figures, material
from toolcrib.evals.shadow_page import shadow_page
from toolcrib.evals.shadow_thresholds import held
from toolcrib.types import ShadowRecord


def drawn(told: dict[str, Any], **bounds: float) -> str:
    return shadow_page(told, bounds=held(bounds, told), state=EVIL, at="2026-11-30T10:00", version="0")


def told_of(*records: ShadowRecord, name: str = "ann") -> dict[str, Any]:
    traces = [select(record.trace_id, 0, name, "a", "b") for record in records if record.state == "compared"]
    return figures(material(records, traces), k=5)


def test_a_page_escapes_everything_that_it_did_not_write() -> None:
    evil = pair(EVIL, side(EVIL), side("b", outcome=EVIL), lost=(EVIL,), n_lost=1, gained=(EVIL,), n_gained=1)
    failed = ShadowRecord(trace_id="f", at="2026-11-02T00:00:00+00:00", state="failed", fault=EVIL)
    told = told_of(failed, evil, name=EVIL)
    told["calls"]["lost_tools"] = [{"tool_id": EVIL, "n": 1}]
    html = drawn(told, min_compared=5)
    page = read(html)
    assert not {tag for tag, _attrs in page.tags} & {"script", "img", "link", "iframe"}
    assert not [attrs for _tag, attrs in page.tags if any(name.startswith(("on", "src", "href")) for name in attrs)]
    assert "\x00" not in html and "\u202e" not in html
    assert page.text.count("<U+202E RIGHT-TO-LEFT OVERRIDE>") >= 8
    assert not re.search(r"https?:|url\(|@import", html)


def test_what_is_not_known_has_no_row() -> None:
    page = read(drawn(told_of(pair("1", side("a"), side("a")))))
    assert "recall of called tools" not in page.text and "called tool lost" not in page.text
    assert "tokens, mean" in page.text and "no call followed" in page.text
    assert "Thresholds" not in page.text and "Look at these" not in page.text


def test_a_candidate_that_never_answered_is_said_at_the_top() -> None:
    failed = ShadowRecord(trace_id="f", at="2026-11-02T00:00:00+00:00", state="failed", fault="PolicySyntaxError: x")
    page = read(drawn(told_of(failed)))
    assert "could not answer 1 of 1" in page.text and "1 times: PolicySyntaxError: x" in page.text
    assert "table" not in {tag for tag, _attrs in page.tags}
