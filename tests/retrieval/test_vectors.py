"""Exact arithmetic on vectors, however it is made quick."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.retrieval.dense import bundled_embedder
from toolcrib.retrieval.fusion import best_first
from toolcrib.retrieval.vectors import kth_largest, products


@given(st.integers(0, 2**32 - 1), st.integers(1, 3_000), st.integers(1, 300), st.booleans())
def test_the_kth_largest_is_what_sorting_finds(seed: int, n: int, k: int, ties: bool) -> None:
    drawn = np.random.default_rng(seed).normal(size=n)
    values = np.round(drawn) if ties else drawn
    k = min(k, n)

    assert kth_largest(values, k) == np.sort(values)[n - k]


@given(st.integers(0, 2**32 - 1), st.integers(0, 2_000), st.integers(0, 200))
def test_best_first_is_what_sorting_all_scores_finds(seed: int, n: int, k: int) -> None:
    scores = np.round(np.random.default_rng(seed).normal(size=n), 1)
    order = [place for place in sorted(range(n), key=lambda place: (-scores[place], place)) if scores[place] > 0]

    assert best_first(scores, top_k=k).tolist() == order[:k]


@pytest.mark.parametrize(("n_rows", "dim"), [(0, 256), (1, 256), (31, 256), (32, 256), (1_000, 64), (9, 1024), (5, 1)])
def test_products_are_whole_numbers_whatever_their_blocks(n_rows: int, dim: int) -> None:
    rng = np.random.default_rng(1)
    rows = rng.integers(-127, 128, (n_rows, dim)).astype(np.int8)
    vector = rng.integers(-127, 128, dim).astype(np.int8)

    found = products(rows.astype(np.float32), vector)

    assert found.tolist() == (rows.astype(np.int64) @ vector.astype(np.int64)).tolist()


@given(st.text(st.characters(max_codepoint=0x17F), max_size=120))
def test_a_request_read_word_by_word_has_the_tokenizers_pieces(text: str) -> None:
    embedder = bundled_embedder()
    whole = embedder._tokenizer.encode(text, add_special_tokens=False).ids

    assert embedder.pieces([text]) == [whole[:256]]


@pytest.mark.parametrize(
    "text", ["", " ", "[SEP] a", "don't_do.it/now", "a" * 150 + " b", "one\ntwo\tthree", "x " * 900]
)
def test_odd_requests_have_the_tokenizers_pieces_too(text: str) -> None:
    embedder = bundled_embedder()
    whole = embedder._tokenizer.encode(text, add_special_tokens=False).ids

    assert embedder.pieces([text]) == [whole[:256]]
