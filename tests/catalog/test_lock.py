"""The lock: readable, sorted, replaced whole; a damaged one approves nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolcrib.catalog.lock import read_lock, write_lock
from toolcrib.errors import CatalogError

DIGEST = "sha256:" + "0" * 64


def test_what_is_written_is_read_and_sorted(tmp_path: Path) -> None:
    lock = tmp_path / "toolcrib.lock"
    write_lock(lock, {"b.x": DIGEST, "a.x": DIGEST})
    assert read_lock(lock) == {"a.x": DIGEST, "b.x": DIGEST}
    text = lock.read_text(encoding="utf-8")
    assert text.index("a.x") < text.index("b.x")
    assert list(tmp_path.iterdir()) == [lock], "no temporary file is left behind"


def test_no_lock_approves_nothing(tmp_path: Path) -> None:
    assert read_lock(tmp_path / "none") == {}


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"version": 2, "tools": {}}', '{"version": 1}', '{"version": 1, "tools": {"a.b": {"digest": 5}}}'],
)
def test_a_damaged_lock_is_an_error_and_not_an_empty_one(tmp_path: Path, text: str) -> None:
    lock = tmp_path / "toolcrib.lock"
    lock.write_text(text, encoding="utf-8")
    with pytest.raises(CatalogError):
        read_lock(lock)
