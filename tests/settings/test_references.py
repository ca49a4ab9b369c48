"""Secrets behind references."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest

from toolcrib.errors import ConfigError
from toolcrib.settings import reveal
from toolcrib.types import SecretRef


def test_a_variable_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRIB_TOKEN", "s3cret ")
    assert reveal(SecretRef("env:CRIB_TOKEN"), root=tmp_path) == "s3cret "
    assert reveal(SecretRef("Bearer env:CRIB_TOKEN"), root=tmp_path) == "Bearer s3cret "


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_file_is_read_without_its_last_line_end(tmp_path: Path, end: str) -> None:
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "a b").write_bytes(b"one\ntwo" + end.encode())
    assert reveal(SecretRef("file:keys/a b"), root=tmp_path) == "one\ntwo"
    assert reveal(SecretRef(f"file:{tmp_path}/keys/a b"), root=Path("/")) == "one\ntwo"


def test_the_home_folder_may_be_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "key").write_text("abc\n")
    assert reveal(SecretRef("Token file:~/key"), root=Path("/")) == "Token abc"


def test_a_missing_variable_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CRIB_TOKEN", raising=False)
    with pytest.raises(ConfigError) as error:
        reveal(SecretRef("Bearer env:CRIB_TOKEN"), root=tmp_path)
    assert "CRIB_TOKEN" in error.value.what
    assert error.value.where == "env:CRIB_TOKEN"
    assert "CRIB_TOKEN" in error.value.hint


def test_an_empty_secret_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRIB_TOKEN", " ")
    (tmp_path / "empty").write_text("\n")
    for reference in ("env:CRIB_TOKEN", "file:empty"):
        with pytest.raises(ConfigError, match="empty"):
            reveal(SecretRef(reference), root=tmp_path)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    for reference in ("file:absent", "file:."):
        with pytest.raises(ConfigError) as error:
            reveal(SecretRef(reference), root=tmp_path)
        assert error.value.where == reference


def test_no_fault_shows_a_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRIB_TOKEN", "hunter2\nX-Evil: 1")
    (tmp_path / "binary").write_bytes(b"hunter2\xff")
    (tmp_path / "large").write_text("hunter2" * 200_000)
    for reference in ("Bearer env:CRIB_TOKEN", "file:binary", "file:large"):
        with pytest.raises(ConfigError) as error:
            reveal(SecretRef(reference), root=tmp_path)
        assert "hunter2" not in "".join(traceback.format_exception(error.value)) + repr(error.value.__context__)


@pytest.mark.parametrize("text", ["hunter2", "env:", "env:A-B", "file:", "env:hunter2 x"])
def test_what_is_no_reference_is_a_fault_that_does_not_repeat_it(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError) as error:
        reveal(SecretRef(text), root=tmp_path)
    assert "hunter2" not in str(error.value)
