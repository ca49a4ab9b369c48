"""Words of names, looked up when an index is built: the same as when each name is read."""

from __future__ import annotations

import numpy as np
import pytest

from tests.retrieval.making import build, everyone, tool
from toolcrib.retrieval.dense import bundled_embedder
from toolcrib.retrieval.index import Index
from toolcrib.retrieval.lexical import Terms
from toolcrib.retrieval.name_terms import NOT_HERE, NameTerms, joined_name_terms, name_terms, own_words
from toolcrib.retrieval.telling import name_words

NAMES = (
    "create_issue",
    "createPullRequest",
    "get_the_weather",
    "x",
    "the_of",
    "查询订单",
    "ＦＵＬＬ_width",
    "a_" * 60 + "end",
)
SAID = ("creat", "issu", "weather", "订单", "full", "nothing", "x")


def test_what_is_said_of_a_name_is_what_its_text_tells() -> None:
    index = build([tool(f"s{n}.{name}", "Does something.") for n, name in enumerate(NAMES)])
    view = index.view(everyone(index))
    told = view._name_words.of(np.arange(len(NAMES)), SAID)

    for column, one in enumerate(index.tools):
        words = name_words(one.name)
        idf = {word: view.lexical.idf(view.lexical.n_holding(word)) for word in words}
        said = [word for word in words if word in SAID]
        assert told[0, column] == pytest.approx(sum(idf.values()))
        assert told[1, column] == pytest.approx(sum(idf[word] for word in said))
        assert told[2:, column].tolist() == [len(said), len(words)]


def test_a_word_that_no_document_of_the_tool_has_marks_the_name() -> None:
    assert own_words("create_issue", ["creat", "issu", "more"]) == ("creat", "issu")
    assert own_words("create_issue", ["creat"]) is None
    made = name_terms([("b",), None, ()], Terms.of(["a", "b"]))
    assert made.ids.tolist() == [1, NOT_HERE]
    assert made.starts.tolist() == [0, 1, 2, 2]


def test_words_are_columns_filled_up_below() -> None:
    made = NameTerms(starts=np.array([0, 2, 2, 3]), ids=np.array([4, 5, NOT_HERE], dtype=np.int32))

    assert made.of(np.array([2, 0, 1])).tolist() == [[NOT_HERE, 4, -2], [-2, 5, -2]]
    assert made.of(np.zeros(0, dtype=np.int64)).shape == (0, 0)


def test_no_name_has_a_word() -> None:
    made = name_terms([(), ()], Terms.of(["a"]))

    assert made.of(np.array([1, 0])).shape == (0, 2)


def test_names_from_several_places_are_as_if_built_at_once() -> None:
    old = name_terms([("b", "c"), None, ("c",)], Terms.of(["b", "c"]))
    new = name_terms([("a", "c"), ()], Terms.of(["a", "c"]))
    whole = Terms.of(["a", "b", "c"])

    joined = joined_name_terms(
        [
            (old, Terms.of(["b", "c"]), np.array([3, 0, -1])),
            (new, Terms.of(["a", "c"]), np.array([1, 2])),
        ],
        terms=whole,
        n_tools=4,
    )

    expected = name_terms([None, ("a", "c"), (), ("b", "c")], whole)
    assert joined.ids.tolist() == expected.ids.tolist()
    assert joined.starts.tolist() == expected.starts.tolist()


def test_an_updated_index_holds_the_same_words_as_one_built() -> None:
    tools = [tool(f"s.tool_{word}", f"Does {word}.") for word in ("anchor", "bell", "cable", "deck", "engine")]
    changed = sorted([*tools[1:], tool("s.aft_mast", "Does a mast.")], key=lambda one: one.tool_id)
    made = Index.build(changed, embedder=bundled_embedder())
    updated = build(tools).updated(changed, embedder=bundled_embedder())

    assert updated._parts.name_terms.ids.tolist() == made._parts.name_terms.ids.tolist()
    assert updated._parts.name_terms.starts.tolist() == made._parts.name_terms.starts.tolist()
