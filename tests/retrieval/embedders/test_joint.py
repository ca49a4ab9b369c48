"""Several embedders as one vector: cosines add up by weight, silence is silence, ids tell all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.retrieval.embedders.making import Letters
from toolcrib.errors import ConfigError, RetrievalError
from toolcrib.retrieval.dense import bundled_embedder
from toolcrib.retrieval.embedders import packaged
from toolcrib.retrieval.embedders.joint import JointEmbedder, Part
from toolcrib.retrieval.embedders.kept import KeptEmbedder, watched
from toolcrib.retrieval.embedders.packaged import quality_embedder
from toolcrib.retrieval.tokenize import is_mostly_latin

TINY = Path(__file__).parent / "tiny"


def cos(one: np.ndarray, other: np.ndarray) -> float:
    return float(one @ other / (np.linalg.norm(one) * np.linalg.norm(other)))


def test_a_joint_cosine_is_the_weighed_sum_of_the_parts() -> None:
    first, second = Letters(dim=4), Letters(dim=9, model_id="more")
    both = JointEmbedder([Part(embedder=first, weight=1.0), Part(embedder=second, weight=2.0)], name="both")
    ask, tell = "abca hi", "bcd ig"
    expected = (
        cos(first.embed_query(ask), first.embed_query(tell))
        + 4 * cos(second.embed_query(ask), second.embed_query(tell))
    ) / 5
    rows = both.embed_documents([tell, ask])
    assert both.dim == 13
    assert cos(both.embed_query(ask), rows[0]) == pytest.approx(expected)
    assert np.array_equal(both.embed_query(ask), rows[1])


def test_a_part_that_does_not_read_a_text_leaves_it_to_the_others() -> None:
    parts = [Part(embedder=bundled_embedder(), weight=1.0, reads=is_mostly_latin), Part(embedder=Letters(), weight=1.0)]
    both = JointEmbedder(parts, name="both", multilingual=True)
    n = bundled_embedder().dim
    rows = both.embed_documents(["查询天气 abc", "查询今天的天气预报 a", "weather abc"])
    assert not rows[1, :n].any()
    assert rows[1, n:].any()
    assert rows[2, :n].any()
    assert not both.embed_query("查询今天的天气预报 a")[:n].any()
    assert both.multilingual


def test_other_weights_or_parts_are_another_model() -> None:
    def made(weight: float, model_id: str = "letters") -> str:
        parts = [Part(embedder=Letters(), weight=1.0), Part(embedder=Letters(model_id=model_id), weight=weight)]
        return JointEmbedder(parts, name="both").model_id

    assert len({made(1.0), made(2.0), made(1.0, "others")}) == 3
    assert made(1.0) == made(1.0)


def test_what_cannot_be_held_exactly_is_refused() -> None:
    parts = [Part(embedder=Letters(dim=600), weight=1.0), Part(embedder=Letters(dim=600), weight=1.0)]
    with pytest.raises(RetrievalError, match="1200 dimensions"):
        JointEmbedder(parts, name="both")
    with pytest.raises(RetrievalError, match="weights above 0"):
        JointEmbedder([Part(embedder=Letters(), weight=0.0)], name="none")


def test_it_is_watched_through_its_slow_parts(tmp_path: Path) -> None:
    slow = KeptEmbedder(Letters(poison="bad"), folder=tmp_path)
    both = JointEmbedder([Part(embedder=Letters(), weight=1.0), Part(embedder=slow, weight=1.0)], name="both")
    told: list[str] = []
    assert watched(both) is both
    both.watch(2, told.append)
    both.embed_documents(["abc", "a"])
    with pytest.raises(RuntimeError):
        both.embed_documents(["bad"])
    assert told == ["embedding 2 of 2"]
    assert both.n_failed == 1


def test_the_quality_model_joins_the_bundled_table_and_an_encoder(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="toolcrib[quality] is not installed")
    model = quality_embedder(bundled_embedder(), folder=TINY, kept_in=tmp_path)
    assert model.dim == bundled_embedder().dim + 4
    assert model.scan_dim <= bundled_embedder().dim, "a first look reads the table alone"
    row = model.embed_documents(["open issue"])[0]
    assert np.linalg.norm(row) == pytest.approx(1.0, abs=0.01)
    ratio = np.linalg.norm(row[-4:]) / np.linalg.norm(row[:-4])
    assert ratio == pytest.approx(packaged.QUALITY_WEIGHT, rel=0.01)
    assert len(list(tmp_path.glob("onnx-*.db"))) == 1, "only the encoder's vectors are kept"


def test_without_its_files_the_quality_model_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no quality model"):
        quality_embedder(bundled_embedder(), folder=tmp_path / "none", kept_in=None)
