"""Confidence: what raises it, what does not, one file of weights, and that it hangs on permitted tools alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.retrieval.making import build, everyone, search, tool
from toolcrib.errors import RetrievalError
from toolcrib.retrieval import confidence
from toolcrib.retrieval.confidence import DEFAULT_FLOOR, Weights, basis_of, kind_of, read_weights, weights_of
from toolcrib.retrieval.dense import Float32Array, bundled_embedder
from toolcrib.retrieval.index import Index
from toolcrib.types import Tool

CLOCK = tool("time.get_current_time", "Get the current time in a given timezone.")
FLEET = (
    CLOCK,
    tool("crm.find_customer", "Find a customer by name or number."),
    tool("crm.archive_customer", "Move a customer off the active list."),
    tool("mail.send_message", "Send a message to a recipient."),
)


@pytest.mark.parametrize("tools", [(CLOCK,), FLEET], ids=["alone", "among others"])
@pytest.mark.parametrize("task", ["what time is it in Oslo", "current time in Tokyo", "get the time"])
def test_a_paraphrase_finds_its_tool_with_confidence(tools: tuple[Tool, ...], task: str) -> None:
    ranking = search(tools, task)
    assert ranking.hits[0].tool_id == CLOCK.tool_id
    assert ranking.confidence >= DEFAULT_FLOOR


def test_a_tool_means_the_same_alone_and_among_others() -> None:
    alone = search((CLOCK,), "what time is it in Oslo").hits[0]
    among = next(hit for hit in search(FLEET, "what time is it in Oslo").hits if hit.tool_id == CLOCK.tool_id)
    assert alone.confidence == among.confidence


def test_a_request_that_says_more_of_a_tool_is_answered_with_more_confidence() -> None:
    told = [search(FLEET, task).confidence for task in ("knit a scarf", "find somebody", "find a customer by number")]
    assert told == sorted(told)
    assert told[0] < told[-1]


def test_tools_out_of_reach_change_no_bit_of_it() -> None:
    index = build(FLEET)
    permitted = np.array([one.tool_id.startswith("crm.") for one in index.tools])
    own = Index.build([one for one in index.tools if one.tool_id.startswith("crm.")], embedder=bundled_embedder())
    for task in ("find a customer", "what time is it", "send a message to the customer"):
        masked = index.view(permitted).search(task)
        alone = own.view(everyone(own)).search(task)
        assert [hit.confidence for hit in masked.hits] == [hit.confidence for hit in alone.hits]
        assert masked.confidence == alone.confidence


class Unknown:
    """A model that nothing was fitted for, with the bundled one's vectors."""

    model_id = "somebody-elses"
    dim = 256

    def embed_documents(self, texts: Sequence[str]) -> Float32Array:
        return bundled_embedder().embed_documents(texts)

    def embed_query(self, text: str) -> Float32Array:
        return bundled_embedder().embed_query(text)


def test_an_unknown_model_has_weights_of_its_own_and_words_alone_too() -> None:
    task = "find a customer by number"
    by_model = Index.build(sorted(FLEET, key=lambda one: one.tool_id), embedder=Unknown())
    by_words = Index.build(sorted(FLEET, key=lambda one: one.tool_id), embedder=None)
    for index in (by_model, by_words):
        ranking = index.view(everyone(index)).search(task)
        assert ranking.hits[0].tool_id == "crm.find_customer"
        assert ranking.confidence >= DEFAULT_FLOOR


@pytest.mark.parametrize(
    ("model_id", "kind"),
    [
        ("toolcrib-static-256-0123456789ab", "static"),
        ("toolcrib-quality-0123456789abcdef", "quality"),
        ("toolcrib-multilingual-0123456789abcdef", "other"),
        ("onnx-encoder-1", "other"),
        ("none", "none"),
    ],
)
def test_kind_of_a_model(model_id: str, kind: str) -> None:
    assert kind_of(model_id) == kind
    assert weights_of(kind).weights.shape == (len(confidence.FEATURES),)


def test_every_kind_has_weights_of_which_what_speaks_for_a_tool_counts_for_it() -> None:
    packaged = read_weights(confidence.MODEL_FILE)
    assert {"static", "other", "none"} <= set(packaged)
    for kind, mine in packaged.items():
        told = dict(zip(confidence.FEATURES, mine.weights.tolist(), strict=True))
        assert told["coverage"] > 0
        assert told["name_matched"] > 0
        assert (told["cosine"] > 0) is (kind != "none")
    assert len(packaged["none"].direction) == 0


def test_what_a_calibration_rests_on_is_told_apart_by_model() -> None:
    assert basis_of("toolcrib-static-256-a") != basis_of("toolcrib-static-256-b")
    assert basis_of("none") == basis_of("none")


def test_asking_by_hand() -> None:
    direction = np.array([3.0, -1.0])
    mine = Weights(weights=np.zeros(len(confidence.FEATURES)), bias=0.0, direction=direction, offset=0.5)
    assert mine.asks(np.array([3, 4], dtype=np.int8)) == pytest.approx((9 - 4) / 5 + 0.5)
    assert mine.asks(np.array([0, 0], dtype=np.int8)) == 0.5
    assert mine.asks(None) == 0.0
    assert mine.asks(np.array([1, 2, 3], dtype=np.int8)) == 0.0  # of another model


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "confidence.npz"
    path.write_bytes(b"no archive")
    with pytest.raises(RetrievalError):
        read_weights(path)
    np.savez(path, features=np.array(["other"]))
    with pytest.raises(RetrievalError):
        read_weights(path)
