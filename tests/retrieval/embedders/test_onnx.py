"""A model on disk: what comes of a text, what the id depends on, and what is said of a folder that holds no model.

Those that run a graph need onnxruntime (`toolcrib[quality]`), and are skipped where it is not installed.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from toolcrib.errors import ConfigError
from toolcrib.retrieval.embedders.onnx import OnnxEmbedder, graph_of
from toolcrib.retrieval.embedders.shaping import Shaping

TINY = Path(__file__).parent / "tiny"
TEXTS = ("open issue", "refund order refund order refund order", "weather", "", "city city")


@pytest.fixture
def _runtime() -> None:
    pytest.importorskip("onnxruntime", reason="toolcrib[quality] is not installed")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(TINY, tmp_path / "model"))


@pytest.mark.usefixtures("_runtime")
def test_a_texts_vector_is_the_mean_of_its_tokens_at_length_one() -> None:
    tokens = OnnxEmbedder(TINY, pooling="cls")
    first, mean = tokens.embed_query("open"), OnnxEmbedder(TINY).embed_query("open")
    assert first.shape == mean.shape == (4,)
    assert first.dtype == mean.dtype == np.float32
    assert np.linalg.norm(mean) == pytest.approx(1.0)
    assert not np.allclose(first, mean)
    assert np.array_equal(first, tokens.embed_query("issue")), "cls is the first token, which is that of every text"


@pytest.mark.usefixtures("_runtime")
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_a_vector_does_not_depend_on_its_neighbours(pooling: str) -> None:
    model = OnnxEmbedder(TINY, pooling=pooling)  # type: ignore[arg-type]
    together = model.embed_documents(TEXTS)
    for text, row in zip(TEXTS, together, strict=True):
        assert np.array_equal(model.embed_documents([text])[0], row)
        assert np.array_equal(model.embed_query(text), row)
    assert np.array_equal(model.embed_documents(TEXTS[::-1]), together[::-1])


@pytest.mark.usefixtures("_runtime")
def test_no_texts_give_no_rows() -> None:
    assert OnnxEmbedder(TINY).embed_documents([]).shape == (0, 4)


@pytest.mark.usefixtures("_runtime")
def test_prefixes_cut_and_length_do_what_they_say() -> None:
    plain = OnnxEmbedder(TINY)
    prefixed = OnnxEmbedder(TINY, shaping=Shaping(query_prefix="query : "))
    assert np.array_equal(prefixed.embed_query("weather"), plain.embed_query("query : weather"))
    assert np.array_equal(prefixed.embed_documents(["weather"]), plain.embed_documents(["weather"]))
    short = OnnxEmbedder(TINY, shaping=Shaping(max_tokens=3))
    assert np.array_equal(short.embed_query("open issue refund order"), plain.embed_query("open issue"))
    cut = OnnxEmbedder(TINY, shaping=Shaping(dimensions=2))
    whole = plain.embed_query("weather")[:2]
    assert cut.dim == 2
    assert cut.embed_query("weather") == pytest.approx(whole / np.linalg.norm(whole))


@pytest.mark.usefixtures("_runtime")
def test_another_graph_prefix_or_pooling_is_another_model(folder: Path) -> None:
    ids = {
        OnnxEmbedder(TINY).model_id,
        OnnxEmbedder(TINY, pooling="cls").model_id,
        OnnxEmbedder(TINY, shaping=Shaping(document_prefix="x ")).model_id,
        OnnxEmbedder(TINY, shaping=Shaping(max_tokens=9)).model_id,
    }
    assert OnnxEmbedder(folder).model_id in ids, "the same files elsewhere are the same model"
    words = folder / "tokenizer.json"
    words.write_text(words.read_text(encoding="utf-8").replace('"refund": 8', '"refund": 9'), encoding="utf-8")
    ids.add(OnnxEmbedder(folder).model_id)
    assert len(ids) == 5


@pytest.mark.usefixtures("_runtime")
@pytest.mark.parametrize("wanted", [5, 4096])
def test_more_numbers_than_the_model_gives_are_refused(wanted: int) -> None:
    with pytest.raises(ConfigError, match="4 numbers a text"):
        OnnxEmbedder(TINY, shaping=Shaping(dimensions=wanted))


@pytest.mark.usefixtures("_runtime")
def test_more_tokens_than_the_graph_takes_are_refused_at_once() -> None:
    assert OnnxEmbedder(TINY, shaping=Shaping(max_tokens=256)).embed_query("order " * 999).any()
    with pytest.raises(ConfigError, match="does not take 300 tokens"):
        OnnxEmbedder(TINY, shaping=Shaping(max_tokens=300))


@pytest.mark.usefixtures("_runtime")
def test_a_file_that_is_no_graph_is_said_to_be_none(folder: Path) -> None:
    (folder / "model.onnx").write_bytes(b"not a graph")
    with pytest.raises(ConfigError, match="not an ONNX graph"):
        OnnxEmbedder(folder)


@pytest.mark.usefixtures("_runtime")
def test_a_damaged_tokenizer_is_told(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ConfigError, match="cannot be run"):
        OnnxEmbedder(folder)


def test_without_a_folder_or_tokenizer_the_error_says_what_is_missing(folder: Path) -> None:
    with pytest.raises(ConfigError, match="no such folder"):
        OnnxEmbedder(folder / "nowhere")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ConfigError, match=r"no tokenizer\.json"):
        OnnxEmbedder(folder)


def test_the_graph_is_found_by_name_or_by_being_the_only_one(folder: Path) -> None:
    assert graph_of(folder).name == "model.onnx"
    (folder / "onnx").mkdir()
    (folder / "model.onnx").rename(folder / "onnx" / "model.onnx")
    assert graph_of(folder) == folder / "onnx" / "model.onnx"
    (folder / "onnx" / "model.onnx").rename(folder / "mine.onnx")
    assert graph_of(folder).name == "mine.onnx"
    shutil.copy(folder / "mine.onnx", folder / "other.onnx")
    with pytest.raises(ConfigError, match=r"mine\.onnx, other\.onnx"):
        graph_of(folder)


def test_without_onnxruntime_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ConfigError) as fault:
        OnnxEmbedder(TINY)
    assert fault.value.hint == 'pip install "toolcrib[quality]"'
