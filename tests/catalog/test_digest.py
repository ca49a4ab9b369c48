"""Digests: one per JSON value, over the whole definition."""

from __future__ import annotations

import pytest

from toolcrib.catalog.digest import definition_digest, raw_digest
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
