"""The learned ranker: its trees, its features, and where it stays silent."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.retrieval.making import build, everyone, tool
from toolcrib.errors import RetrievalError
from toolcrib.retrieval import ranker
from toolcrib.retrieval.dense import bundled_embedder
from toolcrib.retrieval.ranker import FEATURES, N_LEAVES, Trees, read_trees, trees_for

SHOP = (
    tool("shop.refund_order", "Give money back for an order.", schema={"properties": {"order_id": {}}}),
    tool("shop.list_orders", "List the orders of a customer."),
    tool("mail.send_email", "Send an email."),
    tool("geo.weather", "Weather in the city of a customer."),
)


def small_trees() -> Trees:
    """Two trees by hand: (f0 <= 1 ? (f1 <= 2 ? 10 : 20) : 30) and (f1 <= 0 ? 1 : 2)."""
    features_ = np.zeros((N_LEAVES - 1, 2), dtype=np.int64)
    limits = np.full((N_LEAVES - 1, 2), np.inf)
    masks = np.full((N_LEAVES - 1, 2), 255, dtype=np.uint8)
    values = np.zeros((2, N_LEAVES))
    features_[0, 0], limits[0, 0], masks[0, 0] = 0, 1.0, 255 ^ 0b011
    features_[1, 0], limits[1, 0], masks[1, 0] = 1, 2.0, 255 ^ 0b001
    values[0, :3] = 10, 20, 30
    features_[0, 1], limits[0, 1], masks[0, 1] = 1, 0.0, 255 ^ 0b001
    values[1, :2] = 1, 2
    return Trees(features=features_, limits=limits, masks=masks, values=values)


def test_trees_give_what_walking_them_gives() -> None:
    x = np.array([[0.0, 0.0, 5.0, 1.0], [0.0, 3.0, 0.0, 2.0]])

    assert small_trees().scores(x).tolist() == [11.0, 22.0, 31.0, 12.0]


def test_packaged_trees_are_whole() -> None:
    trees = trees_for(bundled_embedder().model_id)

    assert trees is not None
    assert trees.features.max() < len(FEATURES)
    assert np.isfinite(trees.values).all()


def test_an_embedding_model_without_trees_of_its_own_gets_none() -> None:
    assert trees_for("somebody-elses-model") is None
    assert trees_for("none") is None


def test_trees_fitted_for_other_features_are_refused(tmp_path: Path) -> None:
    trees = small_trees()
    np.savez(tmp_path / "r.npz", names=np.array(["other"]), features=trees.features, limits=trees.limits)

    with pytest.raises(RetrievalError, match="other features"):
        read_trees(tmp_path / "r.npz")


def test_damaged_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "r.npz").write_bytes(b"not an archive")

    with pytest.raises(RetrievalError, match="cannot be read"):
        read_trees(tmp_path / "r.npz")


def test_features_say_how_much_of_request_and_name_meet() -> None:
    index = build(SHOP)
    view = index.view(everyone(index))
    seen = view.candidates("refund the order of a customer")
    at = {name: column for column, name in enumerate(seen.names)}

    x = dict(zip(FEATURES, view.features(seen), strict=True))

    assert x["name_said"][at["refund_order"]] == pytest.approx(1.0)
    assert 0 < x["name_said"][at["list_orders"]] < 1
    assert x["name_unsaid"][at["weather"]] == 1
    assert x["any_gap"].max() == 0.0
    assert x["total_rank"][seen.total.argmax()] == 0.0


def test_a_request_without_a_known_word_has_features_too() -> None:
    index = build(SHOP)
    view = index.view(everyone(index))
    seen = view.candidates("qwzx blorp")

    x = view.features(seen)

    assert x.shape == (len(FEATURES), len(seen.tools))
    assert np.isfinite(x).all()
    assert x[FEATURES.index("unknown")].tolist() == [1.0] * len(seen.tools)


def test_ranker_moves_a_ranking(monkeypatch: pytest.MonkeyPatch) -> None:
    index = build(SHOP)
    plain = index.view(everyone(index)).search("send an email about the order").hits
    by_server = Trees(
        features=np.full((N_LEAVES - 1, 1), FEATURES.index("length")),
        limits=np.full((N_LEAVES - 1, 1), -1.0),
        masks=np.full((N_LEAVES - 1, 1), 0b10, dtype=np.uint8),
        values=np.array([[0.0, 7.0, *[0.0] * (N_LEAVES - 2)]]),
    )
    monkeypatch.setattr("toolcrib.retrieval.search.trees_for", lambda model_id: by_server)
    moved = index.view(everyone(index)).search("send an email about the order").hits

    assert {h.tool_id for h in moved} >= {h.tool_id for h in plain}
    assert moved[0].score == pytest.approx(plain[0].score + 7 * ranker.WEIGHT, abs=1.0)
    assert moved[0].score > plain[0].score


def test_scripts_that_the_model_cannot_read_are_left_to_the_words() -> None:
    tools = (tool("shop.查询订单", "按编号查询订单"), tool("shop.取消订单", "取消一个订单"))
    index = build(tools)
    view = index.view(everyone(index))

    assert view.candidates("查询订单").cosines is None
    assert view.search("查询订单的状态").hits[0].tool_id == "shop.查询订单"


@pytest.mark.parametrize(
    "changed",
    [
        {"features": np.full((N_LEAVES - 1, 2), len(FEATURES))},
        {"features": np.full((N_LEAVES - 1, 2), -1)},
        {"features": np.full((N_LEAVES - 1, 2), 0.5)},
        {"limits": np.full((N_LEAVES - 1, 2), np.nan)},
        {"limits": np.zeros((N_LEAVES - 1, 3))},
        {"masks": np.full((N_LEAVES - 1, 2), 255, dtype=np.uint16)},
        {"masks": np.full((2, N_LEAVES - 1), 255, dtype=np.uint8)},
        {"values": np.full((2, N_LEAVES), np.inf)},
        {"values": np.zeros((2, N_LEAVES + 1))},
        {"values": np.zeros(())},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_arrays_that_are_no_trees_are_refused(changed: dict[str, np.ndarray], tmp_path: Path) -> None:
    trees = small_trees()
    whole = {name: getattr(trees, name) for name in ("features", "limits", "masks", "values")}
    np.savez(tmp_path / "r.npz", names=np.array(FEATURES), **whole)
    assert read_trees(tmp_path / "r.npz").values.tolist() == trees.values.tolist()
    np.savez(tmp_path / "r.npz", names=np.array(FEATURES), **(whole | changed))

    with pytest.raises(RetrievalError, match="cannot be read"):
        read_trees(tmp_path / "r.npz")
