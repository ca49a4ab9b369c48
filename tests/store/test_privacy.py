"""Traces and definitions are for the owner's eyes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.test_sqlite import publication
from toolcrib.store import _privacy
from toolcrib.store._privacy import make_private
from toolcrib.store.sqlite import SqliteStore

pytestmark = pytest.mark.skipif(os.name != "posix", reason="permission bits mean nothing elsewhere")


@pytest.fixture
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    return {file.name: file.stat().st_mode & 0o777 for file in (folder, *folder.iterdir())}


@pytest.mark.usefixtures("usual_umask")
def test_folder_and_files_are_the_owners_alone(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "box" / "store.db")
    store.publish(lambda _: publication("p1", "a"))
    assert modes(tmp_path / "box") == {
        "box": 0o700,
        "store.db": 0o600,
        "store.db-wal": 0o600,
        "store.db-shm": 0o600,
    }
    store.close()


@pytest.mark.usefixtures("usual_umask")
def test_there_is_no_moment_at_which_they_are_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_privacy, "_close", lambda path: None)
    make_private(tmp_path / "box" / "store.db")
    assert modes(tmp_path / "box") == {"box": 0o700, "store.db": 0o600}


@pytest.mark.usefixtures("usual_umask")
def test_an_older_store_is_closed_when_it_is_opened(tmp_path: Path) -> None:
    box = tmp_path / "box"
    SqliteStore(box / "store.db").close()
    (box / "index").mkdir()
    box.chmod(0o755)
    (box / "store.db").chmod(0o644)
    SqliteStore(box / "store.db").close()
    assert (modes(box)["box"], modes(box)["store.db"]) == (0o700, 0o600)


@pytest.mark.usefixtures("usual_umask")
def test_a_folder_that_holds_more_than_the_store_stays_open_to_others(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir(mode=0o755)
    (project / "toolcrib.toml").write_text("", encoding="utf-8")
    SqliteStore(project / "store.db").close()
    assert (modes(project)["project"], modes(project)["store.db"]) == (0o755, 0o600)
