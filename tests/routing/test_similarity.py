"""What routing is told of two definitions: `Index.similarity`."""

from __future__ import annotations

import numpy as np
import pytest

from tests.retrieval.making import build, tool
from toolcrib.retrieval.dense import bundled_embedder, cosine
from toolcrib.retrieval.index import Index

ISSUES = tool("one.create_issue", "Create an issue in a repository.")
SAME = tool("two.create_issue", "Create an issue in a repository.")
WEATHER = tool("sky.forecast", "Tomorrow's weather for a city.")


def test_definitions_that_say_the_same_are_near_and_others_are_far():
    index = build([ISSUES, SAME, WEATHER])
    one, sky, two = range(3)
    assert index.similarity(one, one) == pytest.approx(1.0)
    assert index.similarity(one, two) == index.similarity(two, one) > 0.9
    assert index.similarity(one, sky) < 0.5


def test_a_third_tool_changes_no_bit_of_it():
    alone, among = build([ISSUES, SAME]), build([ISSUES, tool("p.q", "Play music."), SAME, WEATHER])
    found = [t.tool_id for t in among.tools]
    a, b = found.index(ISSUES.tool_id), found.index(SAME.tool_id)
    assert alone.similarity(0, 1) == among.similarity(a, b)


def test_an_index_without_vectors_cannot_say():
    assert Index.build((ISSUES, SAME), embedder=None).similarity(0, 1) is None


def test_opposites_with_the_same_words_are_not_one_capability():
    index = build(
        [
            tool("hub.delete_branch", "Delete a branch in a repository."),
            tool("hub.get_branch", "Get a branch in a repository."),
        ]
    )
    assert index.similarity(0, 1) < 0.9


def test_cosine_of_known_vectors():
    a, b = np.array([3, 4, 0], dtype=np.int8), np.array([4, 3, 0], dtype=np.int8)
    assert cosine(a, b) == pytest.approx(24 / 25)
    assert cosine(a, -a) == pytest.approx(-1.0)
    assert cosine(a, np.zeros(3, dtype=np.int8)) == 0.0
    longest = np.full(bundled_embedder().dim, -127, dtype=np.int8)
    assert cosine(longest, longest) == 1.0


def test_all_pairs_at_once_are_told_by_the_same_numbers():
    index = build([ISSUES, SAME, WEATHER])
    asked, threshold = [2, 0, 1, 0], index.similarity(0, 2)
    for at_least in (threshold, np.nextafter(threshold, 2)):
        told = [[index.similarity(a, b) >= at_least for b in asked] for a in asked]
        assert index.similar_among(asked, at_least).tolist() == told


def test_an_index_without_vectors_tells_no_pair():
    assert Index.build((ISSUES, SAME), embedder=None).similar_among([0, 1], 0.9) is None
