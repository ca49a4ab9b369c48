"""Digests: one per JSON value, over the whole definition."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st

from toolcrib.catalog.digest import _canonical_fast, definition_digest, raw_digest
from toolcrib.errors import InvalidDefinitionError


def test_key_order_does_not_change_the_digest() -> None:
    assert definition_digest({"a": 1, "b": [1, 2]}) == definition_digest({"b": [1, 2], "a": 1})


@pytest.mark.parametrize(
    "changed",
    [
        {"name": "t", "description": "d", "unknown": {"x": 2}},
        {"name": "t", "description": "d\u200b", "unknown": {"x": 1}},
        {"name": "t", "description": "d", "unknown": {"x": 1}, "_meta": {}},
    ],
    ids=["unknown-field", "zero-width-character", "added-meta"],
)
def test_any_change_changes_the_digest(changed: dict[str, object]) -> None:
    assert definition_digest({"name": "t", "description": "d", "unknown": {"x": 1}}) != definition_digest(changed)


@pytest.mark.parametrize("odd", [{"n": 2**60}, {"n": float("nan")}, {"s": "\ud800"}], ids=["big", "nan", "surrogate"])
def test_what_has_no_canonical_form_is_said_and_still_told_apart(odd: dict[str, object]) -> None:
    with pytest.raises(InvalidDefinitionError):
        definition_digest(odd)
    assert raw_digest(odd).startswith("raw:")
    assert raw_digest(odd) != raw_digest({**odd, "more": 1})


def test_known_digest() -> None:
    # echo -n '{"a":1}' | sha256sum
    assert definition_digest({"a": 1}) == "sha256:015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862"


TEXT = st.text(st.characters(exclude_categories=[]), max_size=8)
NUMBERS = st.integers(-(2**53) - 2, 2**53 + 2) | st.integers() | st.floats()
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
@example({"\uffff": 1, "\U00010000": 2})
@example({"\ufb33": 1, "\U0001f600": 2, "\u20ac": 3, "\r": 4, "1": 5, "\x80": 6})
@example([1.0, 1, True, 0, False, -0.0, 1e21, 1e-7, 5e-324])
@example({"a": 2**53, "b": 2**53 - 1})
@example("".join(map(chr, range(0x100))) + "\u2028\u2029\uffff\U0001f600")
@example(["\ud800"])
@example({"": {"": [[], {}, ""]}})
def test_the_fast_way_gives_the_same_bytes_or_none(value: Any) -> None:
    fast = _canonical_fast(value)
    try:
        canonical = rfc8785.dumps(value)
    except ValueError:
        assert fast is None
        return
    assert fast in (None, canonical)
    assert definition_digest(value) == "sha256:" + hashlib.sha256(canonical).hexdigest()


def test_what_most_definitions_are_goes_the_fast_way() -> None:
    definition = {"name": "t", "description": "naïve 😀\n\x7f", "inputSchema": {"type": "object", "maxProperties": 3}}
    assert _canonical_fast(definition) == rfc8785.dumps(definition)


@pytest.mark.parametrize(
    "value",
    [1.0, float("nan"), 2**53, {"é": 1}, {1: 2}, ("a",), "\ud800", b"x", {"a": [0.5]}],
    ids=repr,
)
def test_what_two_encoders_might_write_differently_goes_the_slow_way(value: Any) -> None:
    assert _canonical_fast(value) is None
