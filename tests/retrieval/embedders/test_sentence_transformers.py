"""How the library is used: a folder, local files only, one text at a time. A stand-in takes the library's place."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from toolcrib.errors import ConfigError
from toolcrib.retrieval.embedders.sentence_transformers import SentenceTransformerEmbedder
from toolcrib.retrieval.embedders.shaping import Shaping


class Library:
    """Stands for `SentenceTransformer`: remembers how it was made and what it was given."""

    made: list[tuple[str, dict[str, Any]]]
    given: list[list[str]]

    def __init__(self, name: str, **options: Any) -> None:
        type(self).made.append((name, options))
        self.max_seq_length = 100
        if (Path(name) / "broken").exists():
            raise OSError("no weights")

    def encode(self, texts: list[str], **_options: Any) -> np.ndarray:
        type(self).given.append(texts)
        return np.array([[len(text), text.count("a"), 1.0, 0.0] for text in texts], dtype=np.float32)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> type[Library]:
    module = ModuleType("sentence_transformers")
    Library.made, Library.given = [], []
    module.SentenceTransformer = Library  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    return Library


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    return tmp_path


def test_nothing_is_fetched_and_no_code_of_a_model_is_run(library: type[Library], folder: Path) -> None:
    SentenceTransformerEmbedder(folder)
    [(name, options)] = library.made
    assert Path(name).is_absolute()
    assert options == {"device": "cpu", "local_files_only": True, "trust_remote_code": False}


def test_a_name_that_is_no_folder_never_reaches_the_library(library: type[Library], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such folder"):
        SentenceTransformerEmbedder(tmp_path / "all-MiniLM-L6-v2")
    assert library.made == []


def test_each_text_is_encoded_alone_with_its_prefix(library: type[Library], folder: Path) -> None:
    model = SentenceTransformerEmbedder(folder, shaping=Shaping(query_prefix="q: ", document_prefix="d: "))
    library.given.clear()
    rows = model.embed_documents(["a", "bb"])
    query = model.embed_query("a")
    assert library.given == [["d: a"], ["d: bb"], ["q: a"]]
    assert rows.shape == (2, model.dim) == (2, 4)
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1.0)
    assert np.array_equal(query, rows[0]), "both have one a and four characters"


def test_other_files_are_another_model(library: type[Library], folder: Path) -> None:
    before = SentenceTransformerEmbedder(folder).model_id
    (folder / "config.json").write_text('{"a": 1}', encoding="utf-8")
    assert SentenceTransformerEmbedder(folder).model_id != before


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(("asked", "read"), [(50, 50), (400, 100)], ids=["fewer", "more than it was made for"])
def test_a_text_is_read_no_further_than_the_model_was_made_for(folder: Path, asked: int, read: int) -> None:
    model = SentenceTransformerEmbedder(folder, shaping=Shaping(max_tokens=asked))
    assert model._model.max_seq_length == read


@pytest.mark.usefixtures("library")
def test_a_folder_without_a_model_is_told(folder: Path) -> None:
    (folder / "broken").touch()
    with pytest.raises(ConfigError, match="no weights"):
        SentenceTransformerEmbedder(folder)


def test_without_the_library_the_error_names_the_extra(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(ConfigError) as fault:
        SentenceTransformerEmbedder(folder)
    assert fault.value.hint == 'pip install "toolcrib[sentence-transformers]"'
