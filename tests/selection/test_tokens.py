from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.selection.tokens import TOKEN_ESTIMATE_ERROR, estimate_text_tokens, estimate_tokens

SMALL = {
    "name": "create_issue",
    "description": "Create an issue in a repository.",
    "inputSchema": {
        "type": "object",
        "properties": {"title": {"type": "string"}, "labels": {"type": "array", "items": {"type": "string"}}},
        "required": ["title"],
    },
}
LONG_TEXT = {
    "name": "searchShipments",
    "description": (
        "Find shipments by customer, route or state.\n\nUse this when the user asks where goods are, why a delivery is"
        " late, or which consignments wait at customs. Results come newest first, at most 100 a page; pass `nextCursor`"
        " to go on.\n\n- `state` is one of OPEN, HELD, CLEARED\n- dates are ISO 8601 (2026-01-31)"
    ),
    "inputSchema": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "customerId": {"type": "string", "description": "The customer's identifier, for example C-1042"},
            "state": {"enum": ["OPEN", "HELD", "CLEARED"]},
            "from": {"type": "string", "format": "date"},
            "page": {"type": "integer", "minimum": 1, "maximum": 10000, "default": 1},
        },
    },
}
GERMAN = {
    "name": "rechnung_suchen",
    "description": (
        "Sucht offene Rechnungen nach Kundennummer oder Fälligkeit und gibt eine Liste mit Beträgen zurück."
    ),
    "inputSchema": {
        "type": "object",
        "properties": {"kunde": {"type": "string", "description": "Kundennummer oder Teil des Namens"}},
    },
}
CHINESE = {
    "name": "get_notes",
    "description": "按照关键词搜索笔记,返回标题、作者和发布时间。",
    "inputSchema": {"type": "object", "properties": {"keyword": {"type": "string", "description": "要搜索的关键词"}}},
}

# Real o200k counts of the definitions above, taken with js-tiktoken.
COUNTED = [(SMALL, 66, 0.05), (LONG_TEXT, 222, 0.05), (GERMAN, 71, 0.08), (CHINESE, 57, 0.15)]


@pytest.mark.parametrize(("definition", "n_tokens", "share"), COUNTED, ids=["small", "long", "german", "chinese"])
def test_the_estimate_is_close_to_real_counts(definition, n_tokens, share):
    assert estimate_tokens(definition) == pytest.approx(n_tokens, rel=share)


@pytest.mark.parametrize("field", ["outputSchema", "annotations", "_meta", "title", "x-unknown"])
def test_all_that_is_sent_is_counted(field):
    more = {**SMALL, field: {"description": "many words more " * 100}}
    assert estimate_tokens(more) == estimate_text_tokens(json.dumps(more, ensure_ascii=False))
    assert estimate_tokens(more) > estimate_tokens(SMALL) + 300


def test_what_cannot_be_written_fits_no_budget():
    deep: dict = {}
    for _ in range(50_000):
        deep = {"a": deep}
    assert estimate_tokens({**SMALL, "_meta": deep}) > 1_000_000


def test_a_longer_definition_never_costs_less():
    for key in ("description", "inputSchema"):
        assert estimate_tokens({k: v for k, v in LONG_TEXT.items() if k != key}) < estimate_tokens(LONG_TEXT)


def test_the_error_is_stated_and_within_what_was_asked():
    assert TOKEN_ESTIMATE_ERROR["p95_abs_percent"] < 12
    assert 0 <= TOKEN_ESTIMATE_ERROR["total_percent"] < 2


@pytest.mark.parametrize(
    "text",
    ["", " ", "\n\n\n", "🚀" * 50, "a" * 100_000, "_" * 1_000, "\x00\x01", "\ud800", "१२३", "e\u0301", "x²", "—word"],
    ids=lambda text: ascii(text[:6]),
)
def test_any_text_gets_a_count(text):
    n_tokens = estimate_text_tokens(text)
    assert (n_tokens > 0) == bool(text)


@given(st.text(max_size=200), st.text(max_size=200))
def test_counts_never_fall_when_text_is_added(one, other):
    longer = max(estimate_text_tokens(one), estimate_text_tokens(other))
    # An estimate rounds: a few characters more may cost a token less.
    assert estimate_text_tokens(one + " " + other) >= 0.8 * longer - 1


def test_nonsense_words_and_pictographs_cost_more_than_plain_words():
    assert estimate_text_tokens("qzxkvwjpqzxkvwjpqzxkvwjp") > 2
    assert estimate_text_tokens("🚀🔍📊") >= 5


def test_a_definition_of_hostile_length_is_counted_in_linear_time():
    started = time.process_time()
    estimate_tokens({"name": "x", "description": "a1_ " * 250_000})
    assert time.process_time() - started < 5.0
