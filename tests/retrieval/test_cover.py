"""The first places of a ranking cover what a task speaks of."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.retrieval.cover import ANSWERED, N_COVERING, covering


def test_one_facet_leaves_the_order_to_the_scores() -> None:
    assert covering(np.array([0.2, 0.9, 0.9, 0.5]), np.zeros((0, 4))) == [1, 2, 3, 0]


def test_second_tool_for_a_facet_waits_for_the_first_of_another() -> None:
    whole = np.array([0.50, 0.49, 0.40])
    facets = np.array([[1.0, 0.99, 0.0], [0.0, 0.0, 0.6]])

    # By score the twin (0.49 + 0.99) comes second; the facet it answers counts 1 - ANSWERED once the first is taken.
    assert 0.49 + 0.99 * (1 - ANSWERED) < 0.40 + 0.6
    assert covering(whole, facets) == [0, 2, 1]


def test_ties_break_by_place() -> None:
    same = np.full(4, 0.5)

    assert covering(same, np.full((2, 4), 0.3)) == [0, 1, 2, 3]


@given(st.integers(1, 30), st.integers(0, 5), st.randoms(use_true_random=False))
def test_every_candidate_is_ranked_once(n: int, n_facets: int, rng: object) -> None:
    drawn = np.random.default_rng(rng.randrange(2**32))  # type: ignore[attr-defined]

    order = covering(drawn.random(n), drawn.random((n_facets, n)))

    assert sorted(order) == list(range(n))


def test_behind_the_covering_places_scores_decide_undiscounted() -> None:
    n = N_COVERING + 5
    whole = np.linspace(1.0, 0.0, n)
    facets = np.vstack([np.linspace(1.0, 0.0, n), np.zeros(n)])

    tail = covering(whole, facets)[N_COVERING:]

    assert tail == sorted(tail)
