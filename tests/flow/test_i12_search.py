"""I12 in search: whatever breaks in a model, a file or a definition costs itself, and is said; the rest goes on."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.flow.searched import CALIBRATION
from tests.flow.worlds import World, Worlds, tool, with_default
from toolcrib.crib import Crib
from toolcrib.retrieval import confidence, ranker
from toolcrib.retrieval.dense import MODEL_DIR, StaticEmbedder, bundled_embedder
from toolcrib.types import Outcome

SHOP = [
    tool("get_order", "Look up one order by its number."),
    tool("issue_refund", "Return money to a customer for a specific order."),
    tool("track_parcel", "Where a parcel is right now."),
    tool("send_invoice", "Send an invoice to a customer by mail."),
    tool("open_ticket", "Open a support ticket for a customer."),
    tool("close_ticket", "Close a support ticket."),
    tool("list_products", "List products and their prices."),
    tool("update_stock", "Set how many pieces of a product are in stock."),
    tool("book_room", "Reserve a meeting room for a time."),
]
TASK = "issue a refund for an order"
FIRST = "shop.issue_refund"


@pytest.fixture
def world(make_world: Worlds) -> Worlds:
    return with_default(make_world, {"shop": SHOP})


def first(offer: Any) -> str:
    return str(offer.tools[0].tool.tool_id)


class Model:
    """The bundled vectors from a model of somebody's own: no pieces, only texts and numbers."""

    model_id = "own-1"

    def __init__(self) -> None:
        self._inner = bundled_embedder()
        self.dim = self._inner.dim

    def embed_documents(self, texts: Sequence[str]) -> Any:
        return self._inner.embed_documents(texts)

    def embed_query(self, text: str) -> Any:
        return self._inner.embed_query(text)


def raises(*_: Any) -> Any:
    raise RuntimeError("down")


def in_force(patch: pytest.MonkeyPatch, model: object) -> None:
    patch.setattr("toolcrib.assembly.embedder_for", lambda _settings: model)


ANSWERS: dict[str, Callable[..., Any]] = {
    "raises": raises,
    "none": lambda *_: None,
    "nan": lambda *_: np.full(256, np.nan, dtype=np.float32),
    "infinite": lambda *_: np.full(256, np.inf, dtype=np.float32),
    "another length": lambda *_: np.ones(7, dtype=np.float32),
    "a row too many": lambda *_: np.ones((2, 256), dtype=np.float32),
    "words": lambda *_: ["no", "vector"],
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_i12_a_model_that_answers_a_request_with_nonsense_leaves_the_words_and_says_so(
    world: Worlds, monkeypatch: pytest.MonkeyPatch, answer: Callable[..., Any]
) -> None:
    model = Model()
    in_force(monkeypatch, model)
    one = world()
    sound = one.crib.select(TASK)
    assert not sound.selection.degraded
    monkeypatch.setattr(model, "embed_query", answer, raising=False)
    offer = one.crib.select(TASK)
    assert offer.selection.degraded
    assert first(offer) == FIRST


DOCUMENTS: dict[str, Callable[[Any], Any]] = {
    "raises": raises,
    "none": lambda _rows: None,
    "nan": lambda rows: rows * np.nan,
    "another length": lambda rows: rows[:, :7],
    "a row too few": lambda rows: rows[1:],
}


@pytest.mark.parametrize("spoil", DOCUMENTS.values(), ids=DOCUMENTS)
def test_i12_a_model_that_embeds_no_tool_leaves_the_words_and_is_tried_again(
    world: Worlds, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[Any], Any]
) -> None:
    model, sound = Model(), bundled_embedder()
    in_force(monkeypatch, model)
    monkeypatch.setattr(model, "embed_documents", lambda texts: spoil(sound.embed_documents(texts)), raising=False)
    one = world()
    offer = one.crib.select(TASK)
    assert offer.selection.degraded
    assert first(offer) == FIRST
    monkeypatch.setattr(model, "embed_documents", sound.embed_documents, raising=False)
    with Crib.open(one.folder, connectors=one.servers) as again:
        assert not again.select(TASK).selection.degraded


@pytest.mark.parametrize("spoil", DOCUMENTS.values(), ids=DOCUMENTS)
def test_i12_a_text_that_a_model_cannot_embed_costs_its_own_vector(
    world: Worlds, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[Any], Any]
) -> None:
    model, sound = Model(), bundled_embedder()
    in_force(monkeypatch, model)

    def choosy(texts: Sequence[str]) -> Any:
        rows = sound.embed_documents(texts)
        return spoil(rows) if any("parcel" in text for text in texts) else rows

    monkeypatch.setattr(model, "embed_documents", choosy, raising=False)
    one = world()
    for task, found in (
        (TASK, FIRST),
        ("where is the parcel", "shop.track_parcel"),
        ("reserve a room", "shop.book_room"),
    ):
        offer = one.crib.select(task)
        assert first(offer) == found
        assert not offer.selection.degraded
    index = one.crib.pipeline().index
    assert index is not None
    vectors = index._parts.vectors
    assert vectors is not None
    lacking = [t.name for t, row in zip(index.tools, vectors, strict=True) if not row.any()]
    assert lacking == ["track_parcel"]


@pytest.mark.parametrize("method", ["pieces", "piece_vectors"])
def test_i12_the_bundled_model_may_fail_at_a_request_too(
    world: Worlds, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    one = world()
    assert not one.crib.select(TASK).selection.degraded
    monkeypatch.setattr(StaticEmbedder, method, raises)
    offer = one.crib.select(TASK)
    assert offer.selection.degraded
    assert first(offer) == FIRST


@pytest.mark.parametrize("method", ["pieces", "embed_documents"])
def test_i12_the_bundled_model_may_fail_at_the_tools_too(
    world: Worlds, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr(StaticEmbedder, method, raises)
    offer = world().crib.select(TASK)
    assert offer.selection.degraded
    assert first(offer) == FIRST


def cut(raw: bytes) -> bytes:
    return raw[: 2 * len(raw) // 3]


def flipped(raw: bytes) -> bytes:
    turned = bytearray(raw)
    for at in (len(raw) // 3, len(raw) // 2, len(raw) - 90):
        turned[at] ^= 0xFF
    return bytes(turned)


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "cut": cut,
    "empty": lambda _raw: b"",
    "flipped": flipped,
    "foreign": lambda _raw: b"PK\x05\x06" + bytes(18),
    "nonsense": lambda _raw: b"no such file " * 40,
}
damages = pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)


def again(one: World) -> tuple[Crib, list[str]]:
    """The same folder, opened anew, and what it tells."""
    told: list[str] = []
    return Crib.open(one.folder, connectors=one.servers, on_progress=told.append), told


@damages
def test_i12_a_damaged_index_is_built_again(world: Worlds, damage: Callable[[bytes], bytes]) -> None:
    one = world()
    sound = one.crib.select(TASK).selection
    [file] = sorted((one.folder / ".toolcrib" / "index").glob("*.idx"))
    raw = file.read_bytes()
    file.write_bytes(damage(raw))
    crib, told = again(one)
    with crib:
        assert crib.select(TASK).selection == sound
    assert any("building the index again" in line for line in told)
    assert file.read_bytes() == raw


@damages
def test_i12_a_damaged_model_leaves_the_words_and_says_so(
    world: Worlds, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    one = world()
    model = tmp_path / "model"
    shutil.copytree(MODEL_DIR, model)
    (model / "tokenizer.json").write_bytes(damage((model / "tokenizer.json").read_bytes()))
    monkeypatch.setattr("toolcrib.models.bundled_embedder", lambda: StaticEmbedder(model))
    crib, told = again(one)
    with crib:
        offer = crib.select(TASK)
    assert offer.selection.degraded
    assert first(offer) == FIRST
    assert any("the embedding model cannot be read" in line for line in told)


@damages
def test_i12_a_damaged_ranker_leaves_the_rest_of_the_ranking_and_says_so(
    world: Worlds,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
    damage: Callable[[bytes], bytes],
) -> None:
    one = world()
    sound = ranker._MODELS / "ranker.npz"
    (tmp_path / "ranker.npz").write_bytes(damage(sound.read_bytes()))
    monkeypatch.setattr(ranker, "_MODELS", tmp_path)
    ranker.trees_for.cache_clear()
    try:
        crib, told = again(one)
        with crib:
            offer = crib.select(TASK)
            assert crib.pipeline().options.rerank is False
        assert first(offer) == FIRST
        assert not offer.selection.degraded
        assert any("the ranker cannot be read" in line for line in told)
        assert "the ranker cannot be read" in caplog.text
    finally:
        ranker.trees_for.cache_clear()


@damages
def test_i12_damaged_weights_of_confidence_leave_search_and_say_so(
    world: Worlds,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
    damage: Callable[[bytes], bytes],
) -> None:
    one = world()
    (tmp_path / "confidence.npz").write_bytes(damage(confidence.MODEL_FILE.read_bytes()))
    monkeypatch.setattr(confidence, "MODEL_FILE", tmp_path / "confidence.npz")
    confidence._packaged.cache_clear()
    try:
        crib, told = again(one)
        with crib:
            offer = crib.select(TASK)
        assert first(offer) == FIRST
        assert "the weights of confidence cannot be read" in caplog.text
        assert any("the weights of confidence cannot be read" in line for line in told)
    finally:
        confidence._packaged.cache_clear()


@damages
@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("calibration", "confidence is not calibrated"),
        ("learned", "searching without what was learned from use"),
    ],
)
def test_i12_a_damaged_file_of_the_operators_costs_only_itself_and_is_said(
    world: Worlds, caplog: pytest.LogCaptureFixture, setting: str, said: str, damage: Callable[[bytes], bytes]
) -> None:
    sound = world()
    one = world(toml=f'[retrieval]\n{setting} = "file"\n')
    CALIBRATION.write(one.folder / "whole")
    (one.folder / "file").write_bytes(damage((one.folder / "whole").read_bytes()))
    caplog.clear()
    with caplog.at_level(logging.ERROR):
        crib, told = again(one)
        with crib:
            offer = crib.select(TASK)
    assert offer.selection == sound.crib.select(TASK).selection
    assert any(said in line for line in told)
    assert said in caplog.text


BAD: dict[str, Any] = {
    "no name": {"description": "Return money.", "inputSchema": {"type": "object"}},
    "a number": 7,
    "a schema that is none": tool("bad", inputSchema={"type": "object", "properties": [1]}),
    "half a character": tool("bad", "Return \ud800 money \udfff."),
    "a megabyte of words": tool("bad", "refund " * 150_000),
    "numbers for texts": {"name": "bad", "description": 5, "inputSchema": {"type": "object"}},
    "a thousand levels": tool("bad", "Deep.", properties=json.loads('{"properties":' * 400 + "{}" + "}" * 400)),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_i12_one_bad_definition_takes_no_other_tool_with_it(world: Worlds, bad: Any) -> None:
    sound = world()
    one = world()
    listed = json.dumps({"tools": [SHOP[0], bad, *SHOP[1:]]})
    (one.folder / "shop.tools.json").write_text(listed, encoding="utf-8")
    assert one.refresh().failed == {}
    one.crib.approve(None, reviewer="tests")
    assert [name for name in one.ids() if name != "shop.bad"] == sound.ids()
    offer = one.crib.select(TASK)
    assert offer.outcome is Outcome.SELECTED
    assert not offer.selection.degraded
    assert FIRST in [found.tool.tool_id for found in offer.tools]
