"""I1 with everything switched on: adaptation, the learned ranker, calibration, what was learned from use, tasks of
several parts, the caller's own queries, disclosed tools, small catalogs and those that are looked at twice.

Hidden tools come, change and go; what Ann sees must stay the same bytes. Then leaks are planted, each in one of these
parts, and the same comparison must notice them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.flow import searched
from tests.flow.searched import CALIBRATION, KNOWN, Setup, differing, in_order, large, secret, seen
from toolcrib.retrieval import dense as dense_module
from toolcrib.retrieval import search as search_module
from toolcrib.retrieval.adapt import MeanDirection, PieceCounts, PieceWeights
from toolcrib.retrieval.dense import bundled_embedder
from toolcrib.retrieval.index import Index
from toolcrib.retrieval.lexical import LexicalView
from toolcrib.retrieval.vectors import norms
from toolcrib.types import Tool

SETUPS: dict[str, Callable[[], Setup]] = {
    "as installed": lambda: Setup(),
    "not adapted": lambda: Setup(adapt=False),
    "not reranked": lambda: Setup(rerank=False),
    "neither": lambda: Setup(adapt=False, rerank=False),
    "calibrated": lambda: Setup(calibration=CALIBRATION),
    "learned": lambda: Setup(learned=searched.learned()),
    "all": lambda: Setup(calibration=CALIBRATION, learned=searched.learned()),
}
WORDS = "order refund parcel invoice ticket customer contoso platform subscription tenant safe parchment cancel".split()
words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6)
hidden_tools = st.lists(
    st.builds(
        # Beside the open ones, on their servers and on others, with their words.
        lambda place, name, text: secret(f"{place}.{'_'.join(name[:2])}", f"{' '.join(text)}. {searched.VENDOR}"),
        st.sampled_from(("shop", "cloud", "attic", "vault", "zoo")),
        words,
        words,
    ),
    max_size=12,
    unique_by=lambda one: one.tool_id,
)
SAFE = secret("vault.open_safe", "Open the safe.")
"""Hidden, and in a part of what was learned."""


def built(hidden: Sequence[Tool]) -> Index:
    held = {one.tool_id: one for one in (*hidden, *KNOWN)}
    return Index.build(in_order(tuple(held.values())), embedder=bundled_embedder())


ALONE: dict[str, dict[str, str]] = {}


def alone(name: str) -> dict[str, str]:
    """What Ann sees where nothing is hidden."""
    if name not in ALONE:
        ALONE[name] = seen(built(()), SETUPS[name]())
    return ALONE[name]


@pytest.mark.parametrize("name", SETUPS)
def test_i01_no_hidden_tool_moves_a_bit_of_a_search(name: str) -> None:
    @settings(
        max_examples=5,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(hidden=hidden_tools)
    def holds(hidden: list[Tool]) -> None:
        assert differing(seen(built([*hidden, SAFE]), SETUPS[name]()), alone(name)) == []

    holds()


@pytest.mark.parametrize("name", [name for name in SETUPS if name != "as installed"])
def test_each_of_these_setups_tells_something_else(name: str) -> None:
    """The property above is about parts that are at work."""
    assert differing(alone(name), alone("as installed")) != []


MANY = tuple(
    secret(f"{('shop', 'vault', 'zoo')[n % 3]}.{word}_{n}", f"{word} the order of a customer and the parcel. {word}")
    for n, word in enumerate(WORDS * 4)
)


def test_i01_an_index_brought_up_to_date_after_hidden_tools_changed_gives_the_same_bytes() -> None:
    model, setup = bundled_embedder(), SETUPS["all"]()
    index = built(MANY)
    for hidden in (MANY[10:], (*MANY[:10], SAFE), ()):
        index = index.updated(in_order((*hidden, *KNOWN)), embedder=model)
        assert differing(seen(index, setup), alone("all")) == []


@pytest.fixture(scope="module")
def many() -> tuple[Index, Index]:
    """The large catalog without and with hidden tools."""
    small = searched.large_index()
    everything = in_order((*large(), *MANY, SAFE))
    return small, small.updated(everything, embedder=bundled_embedder())


@pytest.mark.parametrize("name", ["neither", "all"])
def test_i01_no_hidden_tool_moves_a_bit_where_tools_are_looked_at_twice(many: tuple[Index, Index], name: str) -> None:
    setup = SETUPS[name]()
    view = many[0].view(np.ones(len(many[0].tools), dtype=np.bool_), adapt=setup.adapt)
    assert view.dense is not None and view.dense.looks_twice
    small, whole = (seen(index, setup) for index in many)
    assert differing(small, whole) == []


# --- the comparison must notice a leak in each part


def common_pieces_of_all(patch: pytest.MonkeyPatch) -> None:
    """Adaptation weighs word pieces by how many of all tools hold them."""
    honest, whole = PieceCounts.of, []

    def of(counts: PieceCounts, rows: Any) -> PieceCounts:
        whole[:] = [counts]
        return honest(counts, rows)

    class Leaky(PieceWeights):
        def __init__(self, counts: PieceCounts, embedder: Any) -> None:
            super().__init__(whole[0], embedder)
            self._counts = counts

    patch.setattr(PieceCounts, "of", of)
    patch.setattr(dense_module, "PieceWeights", Leaky)


def mean_of_all(patch: pytest.MonkeyPatch) -> None:
    """Adaptation takes out the direction that all tools share."""

    class Leaky(dense_module.DenseView):
        def __init__(self, vectors: Any, rows: Any, **how: Any) -> None:
            super().__init__(vectors, rows, **how)
            if self.mean is not None:
                self.mean = MeanDirection(vectors, norms(vectors))
                self.mean.of_tools = self.mean.of(self._rows, self._norms)

    patch.setattr(search_module, "DenseView", Leaky)


def rarity_of_all(patch: pytest.MonkeyPatch) -> None:
    """The learned ranker weighs the words of names by how many of all tools hold them."""

    class Leaky(search_module.NameWords):
        def __init__(self, view: Any, *how: Any) -> None:
            postings = view._postings
            super().__init__(LexicalView(postings, np.ones(postings.n_tools, dtype=np.bool_)), *how)

    patch.setattr(search_module, "NameWords", Leaky)


PLANTS = (common_pieces_of_all, mean_of_all, rarity_of_all)


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_i01_a_leak_planted_in_adaptation_or_ranking_is_noticed(
    monkeypatch: pytest.MonkeyPatch, plant: Callable[[pytest.MonkeyPatch], None]
) -> None:
    plant(monkeypatch)
    setup = SETUPS["all"]()
    assert differing(seen(built(MANY), setup), seen(built(()), setup)) != []


def test_i01_a_leak_planted_in_adaptation_is_noticed_where_tools_are_looked_at_twice(
    many: tuple[Index, Index], monkeypatch: pytest.MonkeyPatch
) -> None:
    common_pieces_of_all(monkeypatch)
    setup = SETUPS["all"]()
    small, whole = (seen(index, setup, searched.REQUESTS[:3]) for index in many)
    assert differing(small, whole) != []
