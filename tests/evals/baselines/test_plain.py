"""The three that stand here: all tools, BM25 and regex, by hand-computed cases."""

from __future__ import annotations

import re

import pytest

from tests.evals.baselines.making import tool
from toolcrib.evals.baselines.bm25 import Bm25
from toolcrib.evals.baselines.everything import AllTools
from toolcrib.evals.baselines.regex import MAX_PATTERN, Regex, pattern_words
from toolcrib.evals.baselines.texts import texts_of, words_of

TOOLS = (
    tool("a.refund", "refund", "pay money back"),
    tool("a.order", "order", "find an order"),
    tool("b.pay", "pay", "", {"amount": "money to pay"}),
)


def test_what_is_read_is_name_description_and_arguments() -> None:
    one = tool("a.x", "get_order", "Finds one.", {"orderId": "the number", "loud": ""})
    assert texts_of(one) == ("get_order", "Finds one.", "orderId", "the number", "loud")


@pytest.mark.parametrize("broken", [["amount"], "amount", 7], ids=["list", "text", "number"])
def test_a_malformed_schema_has_no_arguments_and_breaks_nothing(broken: object) -> None:
    tools = [*TOOLS, tool("c.odd", "odd_refund", "Odd.", broken)]
    assert texts_of(tools[-1]) == ("odd_refund", "Odd.")
    assert "c.odd" in Bm25().open(tools).search("odd", 5)
    assert "c.odd" in Regex().open(tools).search("odd", 5)


def test_words_are_runs_of_letters_and_digits_without_case() -> None:
    assert words_of("GET_order-2 Straße!") == ["get", "order", "2", "strasse"]


def test_all_tools_gives_all_in_the_catalogs_order() -> None:
    assert AllTools().default_k == 0
    assert AllTools().open(TOOLS).search("whatever", 3) == ["a.refund", "a.order", "b.pay"]


def test_bm25_scores_are_those_of_the_formula() -> None:
    # Lengths 4, 4, 5; mean 13/3. Both words stand in two of three tools: idf = ln(1 + 1.5/2.5) = 0.470004.
    # a.refund: 2 words with tf 1, 2.5/(1 + 1.5*(0.25 + 0.75*12/13)) = 1.035857 each.
    # b.pay: "pay" twice, 5/(2 + 1.5*(0.25 + 0.75*15/13)) = 1.361257; "money" once, 2.5/(1 + 1.673077) = 0.935252.
    scores = Bm25().open(TOOLS).scores("Pay money")
    assert scores == {0: pytest.approx(0.973714, abs=1e-5), 2: pytest.approx(1.079368, abs=1e-5)}


def test_bm25_gives_best_first_and_only_what_shares_a_word() -> None:
    opened = Bm25().open(TOOLS)
    assert opened.search("pay money", 5) == ["b.pay", "a.refund"]
    assert opened.search("pay money", 1) == ["b.pay"]
    assert opened.search("knit scarves", 5) == []
    assert Bm25().open(()).search("pay", 5) == []


def test_bm25_ties_keep_the_catalogs_order() -> None:
    twins = [tool("z.one", "ping", "host"), tool("a.two", "ping", "host")]
    assert Bm25().open(twins).search("ping", 5) == ["z.one", "a.two"]


def test_the_pattern_is_made_of_the_tasks_words_that_say_something() -> None:
    assert pattern_words("Please could you find the Order, and the order's refund?") == ["find", "order", "refund"]
    assert pattern_words("can you help me please") == []


def test_the_pattern_stays_within_the_documented_length() -> None:
    words = pattern_words(" ".join(f"word{n:03}" for n in range(100)))
    assert len("(?i)" + "|".join(words)) <= MAX_PATTERN
    assert len(words) == 24
    re.compile("|".join(words))


def test_regex_orders_by_how_many_words_are_found() -> None:
    opened = Regex().open(TOOLS)
    assert opened.search("money for an order back", 5) == ["a.refund", "a.order", "b.pay"]
    assert opened.search("MONEY back", 1) == ["a.refund"]
    assert opened.search("knit scarves", 5) == []
    assert opened.search("can you help me", 5) == []


def test_regex_finds_parts_of_words_as_re_search_does() -> None:
    opened = Regex().open([tool("a.create", "createPullRequest", "Opens one.")])
    assert opened.search("pull", 5) == ["a.create"]
