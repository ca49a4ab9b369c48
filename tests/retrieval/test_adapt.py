"""Adaptation to the permitted tools: what it does, and that it looks at nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.retrieval.making import build, everyone, ids, tool
from tests.retrieval.test_non_interference import TASKS, alone, catalogs, masked
from toolcrib.retrieval import dense
from toolcrib.retrieval.adapt import PieceWeights, count_pieces
from toolcrib.retrieval.dense import DenseView, bundled_embedder, embed_tools
from toolcrib.retrieval.vectors import Float32Array, Float64Array, quantise
from toolcrib.types import IntArray, Tool

VENDOR = "Part of the Contoso cloud platform; needs subscription, tenant and retry policy."
CONTOSO = [
    tool(f"contoso.{verb}_{noun}", f"{VENDOR} {verb} a {noun}.")
    for verb in ("create", "list", "delete")
    for noun in ("vault", "bucket", "queue")
]
TEXTS = ["contoso cloud: make a vault", "contoso cloud: list queues", "contoso cloud: delete a bucket", "weather"]


def view_of(texts: list[str], rows: IntArray, *, adapt: bool = True) -> DenseView:
    vectors, pieces = embed_tools(bundled_embedder(), texts)
    assert vectors is not None
    return DenseView(vectors, rows, embedder=bundled_embedder(), pieces=pieces, adapt=adapt)


def cosines(view: DenseView, text: str) -> Float64Array:
    asked = view.ask(text)
    assert asked is not None
    return view.cosines(asked)


@settings(max_examples=60, deadline=None)
@given(catalog=catalogs(), task=st.sampled_from(TASKS))
def test_ranking_after_a_first_look_equals_that_of_an_index_of_the_permitted_tools_alone(
    catalog: tuple[list[Tool], list[bool]], task: str
) -> None:
    """The path of large catalogs, taken by small ones: leading dimensions first, the likely ones in full."""
    tools, permitted = catalog

    with patch.object(dense, "SCAN_ALL", 2), patch.object(dense, "_MIN_LIKELY", 3):
        assert masked(build(tools), permitted, task) == alone(tools, permitted, task)


@pytest.mark.parametrize("scan_all", [0, 4_096], ids=["first look", "all at once"])
def test_adapted_cosines_are_the_same_bits_whoever_else_is_in_the_index(scan_all: int) -> None:
    with patch.object(dense, "SCAN_ALL", scan_all):
        here = view_of([*TEXTS, "something else", "cloud cloud"], np.array([0, 1, 3]))
        there = view_of([TEXTS[0], TEXTS[1], TEXTS[3]], np.arange(3))

        for text in ("make a vault in the cloud", "queues of contoso", ""):
            assert cosines(here, text).tobytes() == cosines(there, text).tobytes()


def test_adaptation_depends_on_who_is_permitted() -> None:
    """The two tests above can fail: the same tool scores otherwise among other permitted tools."""
    few, all_ = view_of(TEXTS, np.array([0, 1])), view_of(TEXTS, np.arange(4))

    assert (cosines(few, "make a vault") != cosines(all_, "make a vault")[:2]).all()


def test_what_all_tools_say_weighs_less() -> None:
    plain, adapted = (view_of(TEXTS[:3], np.arange(3), adapt=adapt) for adapt in (False, True))
    spread = [np.ptp(cosines(view, "contoso cloud: make a vault")) for view in (plain, adapted)]

    assert spread[1] > spread[0]


def test_plain_cosines_do_not_depend_on_who_is_permitted() -> None:
    views = view_of(TEXTS, np.array([0, 1])), view_of(TEXTS, np.arange(4))
    asked = [view.ask("make a vault") for view in views]
    at = np.array([0, 1])

    assert asked[0] is not None
    assert asked[1] is not None
    assert views[0].plain(asked[0], at).tolist() == views[1].plain(asked[1], at).tolist()


def test_first_look_is_near_the_full_cosines_and_exact_for_the_likely() -> None:
    rng = np.random.default_rng(3)
    words = "vault bucket queue order refund ticket weather invoice parcel mail report export list delete".split()
    texts = [" ".join(rng.choice(words, size=5)) for _ in range(200)]
    full = cosines(view_of(texts, np.arange(200)), "refund the invoice of an order")
    with patch.object(dense, "SCAN_ALL", 10), patch.object(dense, "_MIN_LIKELY", 20):
        view = view_of(texts, np.arange(200))
        asked = view.ask("refund the invoice of an order")
        assert asked is not None
        seen = view.cosines(asked, also=np.array([199]))

    best = np.argsort(-full, kind="stable")[:5]
    assert seen[best].tolist() == full[best].tolist()
    assert seen[199] == full[199]
    assert np.abs(seen - full).max() < 0.4
    assert np.corrcoef(seen, full)[0, 1] > 0.9


def test_vendor_words_do_not_drown_the_request() -> None:
    index = build(CONTOSO)

    found = ids(index.view(everyone(index)).search("I want to see which queues exist in the Contoso cloud"))

    assert found[0] == "contoso.list_queue"


def test_tool_without_a_vector_keeps_cosine_zero() -> None:
    texts = ["make a vault", "", "list queues"]

    assert cosines(view_of(texts, np.arange(3)), "vaults")[1] == 0.0
    with patch.object(dense, "SCAN_ALL", 1):
        assert cosines(view_of(texts, np.arange(3)), "vaults")[1] == 0.0


def test_pieces_of_a_text_are_counted_once_each() -> None:
    counts = count_pieces([[5, 3, 5], [], [3]], np.array([[1.0], [0.0], [-2.0]], dtype=np.float32), piece_peak=1.0)

    assert counts.starts.tolist() == [0, 2, 2, 3]
    assert counts.ids.tolist() == [3, 5, 3]
    assert counts.counts.tolist() == [1, 2, 1]
    assert counts.of(np.array([2, 0])).ids.tolist() == [3, 3, 5]
    assert counts.scales[2] == 2 * counts.scales[0]


def test_weighed_rows_equal_sums_of_weighed_pieces() -> None:
    """The rows are weighed by taking off what common pieces weigh too much; summing anew gives the same direction."""
    model = bundled_embedder()
    vectors, counts = embed_tools(model, TEXTS[:3])
    assert vectors is not None
    assert counts is not None
    n_holding = np.bincount(counts.ids, minlength=30_522)

    found = PieceWeights(counts, model).tools(vectors).astype(np.float64)

    for row, pieces in zip(found, model.pieces(TEXTS[:3]), strict=True):
        weights = 0.5 / (0.5 + n_holding[pieces] / 3)
        expected = (model.piece_vectors(pieces) * weights[:, None]).sum(axis=0)
        assert row @ expected / (np.linalg.norm(row) * np.linalg.norm(expected)) > 0.999


def test_vector_of_one_request_is_quantised_as_a_row_is() -> None:
    rows = np.array([[0.3, -1.7, 0.0], [np.nan, 1.0, 0.0], [np.inf, 1.0, 0.0], [0.0, 0.0, 0.0]], dtype=np.float32)

    assert [dense.quantise_one(row).tolist() for row in rows] == quantise(rows).tolist()


class Leading:
    """An embedder without pieces whose first two of four dimensions suffice for a first look."""

    model_id, dim, scan_dim = "leading", 4, 2

    def embed_documents(self, texts: Sequence[str]) -> Float32Array:
        return np.array([self.embed_query(text) for text in texts], dtype=np.float32)

    def embed_query(self, text: str) -> Float32Array:
        return np.array([text.count(letter) for letter in "abcd"], dtype=np.float32)


def test_model_without_pieces_may_have_leading_dimensions() -> None:
    texts = ["aaab", "bbba", "aacd", "abdd", "bbcc"]
    vectors, pieces = embed_tools(Leading(), texts)
    assert vectors is not None
    assert pieces is None
    full = cosines(DenseView(vectors, np.arange(5), embedder=Leading(), adapt=True), "aac")
    with patch.object(dense, "SCAN_ALL", 1), patch.object(dense, "_MIN_LIKELY", 1):
        seen = cosines(DenseView(vectors, np.arange(5), embedder=Leading(), adapt=True), "aac")

    n_exact = int((seen == full).sum())
    assert 1 <= n_exact < 5
    assert seen[2] == full[2]
