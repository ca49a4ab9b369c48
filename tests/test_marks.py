"""Marks of files: no change is missed, however coarse the times of files, and a file at rest is not read again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.coarse import CoarseFiles
from toolcrib import marks
from toolcrib.marks import YOUNG_S, file_mark, secret_mark
from toolcrib.settings import load_settings
from toolcrib.types import SecretRef


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> CoarseFiles:
    return CoarseFiles(monkeypatch)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    one = tmp_path / "x.cedar"
    one.write_text("permit-AAAA")
    return one


@pytest.mark.parametrize("waits", [0.0, 1.0, YOUNG_S, YOUNG_S + 0.1, 3_600.0])
@pytest.mark.parametrize("looks", [1, 2], ids=["looked-once", "looked-twice"])
def test_a_text_of_equal_length_in_the_same_tick_has_another_mark_whenever_it_is_looked_at(
    files: CoarseFiles, path: Path, waits: float, looks: int
) -> None:
    before = {file_mark(path) for _ in range(looks)}
    path.write_text("forbid-BBBB")
    files.passes(waits)
    assert len(before) == 1
    assert file_mark(path) not in before
    files.passes(waits)
    assert file_mark(path) not in before


def test_a_file_is_read_until_it_has_been_at_rest_and_then_no_more(
    files: CoarseFiles, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_read, honest = [0], marks._digest

    def counted(one: Path, is_regular: bool) -> bytes:
        n_read[0] += 1
        return honest(one, is_regular)

    monkeypatch.setattr(marks, "_digest", counted)
    first = file_mark(path)
    assert (file_mark(path), n_read[0]) == (first, 2), "young: read at each look"
    files.passes(YOUNG_S + 0.1)
    assert [file_mark(path) for _ in range(5)] == [first] * 5
    assert n_read[0] == 3, "once more when at rest"
    files.tick()
    path.write_text("forbid-BBBB")
    assert file_mark(path) != first
    assert n_read[0] == 4
    files.passes(YOUNG_S + 0.1)
    assert file_mark(path) == file_mark(path)
    assert n_read[0] == 5


def test_a_file_that_is_written_while_at_rest_has_another_mark(files: CoarseFiles, path: Path) -> None:
    file_mark(path)
    files.passes(YOUNG_S + 0.1)
    before = file_mark(path)
    files.tick()
    path.write_text("forbid-BBBB")
    assert file_mark(path) != before


def test_a_file_that_is_replaced_has_another_mark_even_with_the_same_text(files: CoarseFiles, path: Path) -> None:
    before = file_mark(path)
    other = path.with_name("other")
    other.write_text("permit-AAAA")
    other.replace(path)
    assert file_mark(path) != before


def test_no_file_has_no_mark_and_one_that_comes_has_one(path: Path) -> None:
    before = file_mark(path)
    path.unlink()
    assert file_mark(path) == ()
    path.write_text("permit-AAAA")
    assert file_mark(path) not in ((), before)


def test_a_pipe_is_not_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert file_mark(pipe) == file_mark(pipe) != ()


def test_a_secret_in_a_file_has_that_files_mark_and_one_in_the_environment_none(
    files: CoarseFiles, tmp_path: Path
) -> None:
    (tmp_path / "toolcrib.toml").write_text('[crib]\nname = "x"\n')
    settings = load_settings(tmp_path / "toolcrib.toml")
    (tmp_path / "a.token").write_text("first")
    in_file, in_environment = SecretRef("file:a.token"), SecretRef("env:A_TOKEN")
    before = secret_mark(in_file, settings)
    (tmp_path / "a.token").write_text("other")
    files.passes(YOUNG_S + 0.1)
    assert secret_mark(in_file, settings) != before
    assert secret_mark(in_environment, settings) == (in_environment,)
