"""Vectors kept on disk: made once per model and text, never wrong, never in the way."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from tests.retrieval.embedders.making import Letters
from toolcrib.retrieval.embedders.kept import KeptEmbedder, watched
from toolcrib.retrieval.vectors import quantise

TEXTS = ["abc", "aabb", "fed", "abc"]


def file_of(folder: Path) -> Path:
    return next(folder.glob("*.db"))


def test_a_text_is_embedded_once_per_model(tmp_path: Path) -> None:
    inner = Letters()
    first = KeptEmbedder(inner, folder=tmp_path).embed_documents(TEXTS)
    assert inner.asked == ["abc", "aabb", "fed"], "twice the same text is one text"
    again = Letters()
    later = KeptEmbedder(again, folder=tmp_path)
    assert np.array_equal(later.embed_documents(TEXTS), first)
    assert np.array_equal(later.embed_documents([*TEXTS, "new"])[:4], first)
    assert again.asked == ["new"]


def test_what_is_kept_is_what_the_index_would_hold(tmp_path: Path) -> None:
    inner = Letters()
    fresh = quantise(inner.embed_documents(TEXTS))
    kept = KeptEmbedder(inner, folder=tmp_path)
    assert np.array_equal(quantise(kept.embed_documents(TEXTS)), fresh)
    assert np.array_equal(quantise(kept.embed_documents(TEXTS)), fresh), "read from disk"
    assert np.array_equal(quantise(KeptEmbedder(inner, folder=None).embed_documents(TEXTS)), fresh)


def test_another_model_has_its_own_file(tmp_path: Path) -> None:
    KeptEmbedder(Letters(model_id="one"), folder=tmp_path).embed_documents(TEXTS)
    other = Letters(model_id="../two", dim=3)
    assert KeptEmbedder(other, folder=tmp_path).embed_documents(TEXTS).shape == (4, 3)
    assert other.asked == ["abc", "aabb", "fed"]
    assert len(list(tmp_path.glob("*.db"))) == 2, "and it lies in the folder, whatever the id"


def test_files_of_models_no_longer_used_go(tmp_path: Path) -> None:
    for number in range(6):
        KeptEmbedder(Letters(model_id=f"m{number}"), folder=tmp_path).embed_documents(["abc"])
    assert len(list(tmp_path.glob("*.db"))) == 3
    assert (tmp_path / "m5.db").exists()


def test_the_file_of_a_model_that_is_only_read_stays(tmp_path: Path) -> None:
    for number in range(3):
        KeptEmbedder(Letters(model_id=f"m{number}"), folder=tmp_path).embed_documents(["abc"])
        os.utime(tmp_path / f"m{number}.db", (1_000 + number, 1_000 + number))
    KeptEmbedder(Letters(model_id="m0"), folder=tmp_path).embed_documents(["abc"])
    KeptEmbedder(Letters(model_id="m3"), folder=tmp_path).embed_documents(["abc"])
    assert {file.name for file in tmp_path.glob("*.db")} == {"m0.db", "m2.db", "m3.db"}


def test_a_damaged_file_that_cannot_be_removed_costs_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = KeptEmbedder(Letters(), folder=tmp_path).embed_documents(TEXTS)
    file_of(tmp_path).write_bytes(b"no database at all" * 100)

    def held(_path: Path, **_: object) -> None:
        raise PermissionError("it is open elsewhere")

    monkeypatch.setattr(Path, "unlink", held)
    assert np.array_equal(KeptEmbedder(Letters(), folder=tmp_path).embed_documents(TEXTS), right)


@pytest.mark.parametrize("damage", ["row", "length", "file", "other table"])
def test_damaged_vectors_are_made_again(tmp_path: Path, damage: str) -> None:
    right = KeptEmbedder(Letters(), folder=tmp_path).embed_documents(TEXTS)
    path = file_of(tmp_path)
    if damage == "file":
        path.write_bytes(b"no database at all" * 100)
    else:
        change = {
            "row": "UPDATE vectors SET row = x'010203040506'",
            "length": "UPDATE vectors SET row = x'01'",
            "other table": "DROP TABLE vectors",
        }[damage]
        with sqlite3.connect(path) as file:
            file.execute(change)
        file.close()
    inner = Letters()
    assert np.array_equal(KeptEmbedder(inner, folder=tmp_path).embed_documents(TEXTS), right)
    assert inner.asked == ["abc", "aabb", "fed"]
    last = Letters()
    assert np.array_equal(KeptEmbedder(last, folder=tmp_path).embed_documents(TEXTS), right)
    assert last.asked == [], "mended"


def test_a_folder_that_cannot_be_made_costs_nothing_but_time(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    kept = KeptEmbedder(Letters(), folder=blocked / "embeddings")
    assert kept.embed_documents(TEXTS).shape == (4, 6)


def test_what_was_made_before_a_fault_is_not_made_again(tmp_path: Path) -> None:
    texts = [f"{'a' * (n % 7 + 1)}{n}" for n in range(100)] + ["bad one"]
    inner = Letters(poison="bad")
    kept = KeptEmbedder(inner, folder=tmp_path)
    with pytest.raises(RuntimeError):
        kept.embed_documents(texts)
    inner.asked.clear()
    kept.embed_documents(texts[:64])
    assert inner.asked == []


def test_what_cannot_be_embedded_is_counted_and_not_kept(tmp_path: Path) -> None:
    kept = KeptEmbedder(Letters(poison="bad"), folder=tmp_path)
    kept.watch(3, None)
    for text in ("abc", "bad"):
        if text == "bad":
            with pytest.raises(RuntimeError):
                kept.embed_documents([text])
        else:
            kept.embed_documents([text])
    assert kept.n_failed == 1
    healed = KeptEmbedder(Letters(), folder=tmp_path)
    assert healed.embed_documents(["bad"]).any()


def test_progress_says_how_many_of_how_many(tmp_path: Path) -> None:
    told: list[str] = []
    kept = KeptEmbedder(Letters(), folder=tmp_path)
    texts = ["a" * n for n in range(1, 131)]
    kept.watch(200, told.append)
    kept.embed_documents(texts[:100])
    kept.embed_documents(texts[100:])
    assert told == ["embedding 64 of 200", "embedding 100 of 200", "embedding 130 of 200"]
    told.clear()
    kept.watch(200, told.append)
    kept.embed_documents(texts)
    assert told == [], "what is known takes no time worth telling"


def test_the_latest_requests_are_not_embedded_twice(tmp_path: Path) -> None:
    inner = Letters()
    kept = KeptEmbedder(inner, folder=tmp_path)
    assert np.array_equal(kept.embed_query("abc"), kept.embed_query("abc"))
    assert inner.asked == ["abc"]
    assert not list(tmp_path.glob("*.db")), "requests are not written down"


def test_only_the_slow_ones_are_watched() -> None:
    assert watched(Letters()) is None
    kept = KeptEmbedder(Letters(), folder=None)
    assert watched(kept) is kept
