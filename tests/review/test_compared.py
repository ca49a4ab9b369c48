"""What a reviewer is shown of a change: all of it, and nothing that acts on a terminal."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.review.compared import ABSENT, as_json, differences, in_a_line, marked

TEXTS = st.text(alphabet=st.sampled_from("ab \n\t.\u200b\x1b\u202ezäß"), max_size=60)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "b", "null"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "c/d"]), inner, max_size=3),
    max_leaves=12,
)


def joined(pieces: Any) -> str:
    return "".join(f"[{piece.text}]" if piece.mark else piece.text for piece in pieces)


def test_the_words_that_differ_are_marked_and_a_hidden_character_is_one_of_them() -> None:
    was, now = marked("Look up one order.", "Look up one or\u200bder now.")
    assert joined(was) == "Look up one [order]."
    assert joined(now) == "Look up one [or<U+200B ZERO WIDTH SPACE>der now]."


def test_one_hidden_character_is_marked_alone() -> None:
    was, now = marked("one order", "one\u200b order")
    assert joined(was) == "one order"
    assert joined(now) == "one[<U+200B ZERO WIDTH SPACE>] order"


def test_long_stretches_that_both_have_are_left_out_with_their_size() -> None:
    words = " ".join(f"w{n}" for n in range(100))
    was, now = marked(f"{words} old {words}", f"{words} new {words}")
    assert joined(was) == " [... 96 words ...] w96 w97 w98 w99 [old] w0 w1 w2 w3 [... 96 words ...] "
    assert "[new]" in joined(now)


def test_texts_too_long_to_compare_by_words_are_both_shown_whole() -> None:
    was, now = marked("a " * 4_000 + "a", "b " * 4_000 + "b")
    assert (was[0].text, now[0].text) == ("a " * 4_000 + "a", "b " * 4_000 + "b")


def test_what_changed_of_a_long_text_is_not_lost_among_what_did_not() -> None:
    words = "word " * 4_000
    was, now = marked(f"{words}one {words}", f"{words}two {words}")
    assert [piece.text for piece in was if piece.mark] == ["one"]
    assert [piece.text for piece in now if piece.mark] == ["two"]
    was, now = marked(words, f"{words}And more.")
    assert ([piece for piece in was if piece.mark], [piece.text for piece in now if piece.mark]) == ([], ["And more."])
    assert [piece.text for piece in marked(words, f"{words}And {words}")[1] if piece.mark] == [f"And {words}"]


@given(TEXTS, TEXTS)
def test_nothing_shown_of_a_text_acts_on_a_terminal_and_nothing_that_differs_is_unmarked(was: str, now: str) -> None:
    for pieces, text in zip(marked(was, now), (was, now), strict=True):
        shown = "".join(piece.text for piece in pieces)
        assert shown.isprintable()
        if not any(piece.skipped for piece in pieces):
            assert shown == in_a_line(text)
    both = marked(was, now)
    assert any(piece.mark for pieces in both for piece in pieces) == (was != now)


@pytest.mark.parametrize(
    ("was", "now", "found"),
    [
        ({"a": 1}, {"a": True}, [("/a", "changed", 1, True)]),
        ({"a": None}, {}, [("/a", "removed", None, ABSENT)]),
        ({}, {"a": None}, [("/a", "added", ABSENT, None)]),
        ({"a": None}, {"a": "null"}, [("/a", "changed", None, "null")]),
        ({"a/b": {"c~": 1}}, {"a/b": {"c~": 2}}, [("/a~1b/c~0", "changed", 1, 2)]),
        ([1, 2, 3], [1, 9, 3], [("/1", "changed", 2, 9)]),
        ({"a": [1]}, {"a": [1, 2]}, [("/a", "changed", [1], [1, 2])]),
        ({"a": 1}, {"a": 1.0}, []),
    ],
    ids=["true-is-not-one", "null-removed", "null-added", "null-is-no-text", "pointer", "item", "length", "equal"],
)
def test_each_place_that_differs_is_named(was: Any, now: Any, found: list[Any]) -> None:
    assert [(d.pointer, d.kind, d.was, d.now) for d in differences(was, now)] == found


@given(JSON, JSON)
def test_values_differ_exactly_where_their_json_does(was: Any, now: Any) -> None:
    assert bool(list(differences(was, now))) == (as_json(was) != as_json(now))


def test_json_is_shown_on_one_safe_line() -> None:
    assert as_json({"b": "x\ny\u202e", "a": 1}) == '{"a": 1, "b": "x\\ny<U+202E RIGHT-TO-LEFT OVERRIDE>"}'
