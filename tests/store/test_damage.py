"""A store that is damaged, deleted or replaced is a StoreError, never another error and never an empty store (I2)."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.store.test_sqlite import EARLY, approval, publication, trace
from toolcrib.errors import DamagedPublicationError, StoreError
from toolcrib.store.sqlite import SqliteStore
from toolcrib.types import ReviewEvent

STATUS = {"server_id": "s", "state": "fresh", "n_tools": 1}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "box" / "store.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(path)
    store.publish(lambda _: publication("p1", "a"))
    store.add_reviews([ReviewEvent(at=EARLY, action="approve", tool_id="s.a", digest="raw:a", reviewer="r")])
    store.put_approval(approval("a1"))
    store.put_trace(trace("aaaaaa11"))
    store.put_catalog("v1", {"tools": []})
    yield store
    store.close()


def change(path: Path, sql: str, *values: Any) -> None:
    other = sqlite3.connect(path)
    *first, last = sql.split("; ")
    for before in first:
        other.execute(before)
    other.execute(last, values)
    other.commit()
    other.close()


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("UPDATE publications SET entries = ?", '[["a"'),
        ("UPDATE publications SET entries = ?", '[["s", "a", "raw:a"]]'),
        ("UPDATE publications SET entries = ?", '[["s", 5, "raw:a", ""]]'),
        ("UPDATE publications SET entries = ?", '[["s", "a", "raw:gone", ""]]'),
        ("UPDATE publications SET entries = ?", '[["s", "a", ["raw:a"], ""]]'),
        ("UPDATE publications SET entries = ?", "7"),
        ("UPDATE publications SET entries = ?", "[" * 100_000),
        ("UPDATE publications SET entries = CAST(? AS TEXT)", b"\xff\xfe\xfd"),
        ("UPDATE publications SET servers = ?", '[{"server_id": "s"}]'),
        ("UPDATE publications SET servers = ?", '[{"nobody": "knows"}]'),
        ("UPDATE publications SET servers = ?", json.dumps([{**STATUS, "state": "excellent"}])),
        ("UPDATE publications SET servers = ?", json.dumps([{**STATUS, "error": ["x"]}])),
        ("UPDATE publications SET servers = ?", json.dumps([{**STATUS, "n_tools": "1"}])),
        ("UPDATE publications SET servers = ?", "[null]"),
        ("UPDATE publications SET publication_id = ?", "p2"),
        ("UPDATE definitions SET body = ?", b'{"name"'),
        ("UPDATE definitions SET body = ?", b"\xff"),
        ("UPDATE definitions SET body = ?", 5),
        ("UPDATE definitions SET digest = ?", "raw:b"),
    ],
)
def test_a_damaged_publication_is_told_as_one_and_mended_by_the_next(
    store: SqliteStore, path: Path, sql: str, value: Any
) -> None:
    change(path, sql, value)
    with pytest.raises(DamagedPublicationError):
        store.current()
    store.publish(lambda _: publication("p1", "a"))
    assert store.current() == publication("p1", "a")


@pytest.mark.parametrize(
    ("sql", "read"),
    [
        ("DROP TRIGGER reviews_are_final; UPDATE reviews SET action = 'rejectx'", lambda s: s.reviews()),
        ("DROP TRIGGER reviews_are_final; UPDATE reviews SET reason = x'ff'", lambda s: s.reviews()),
        ("UPDATE approvals SET body = '{'", lambda s: s.approvals()),
        ("UPDATE approvals SET body = '[]'", lambda s: s.approvals()),
        ("UPDATE approvals SET body = '{'", lambda s: s.decide_approval("a1", granted=True, by="b", now=EARLY)),
        ("UPDATE traces SET body = '{}'", lambda s: s.traces()),
        ("UPDATE traces SET body = '{}'", lambda s: list(s.each_trace(since="", limit=9))),
        ("UPDATE traces SET body = '{'", lambda s: s.trace("aaaaaa11")),
        ("UPDATE catalogs SET body = '7'", lambda s: s.catalog("v1")),
        ("UPDATE definitions SET body = '{'", lambda s: s.definition("raw:a")),
        ("DROP TABLE traces", lambda s: s.traces()),
    ],
)
def test_whatever_else_is_damaged_is_a_plain_store_error(
    store: SqliteStore, path: Path, sql: str, read: Callable[[SqliteStore], Any]
) -> None:
    change(path, sql)
    with pytest.raises(StoreError) as error:
        read(store)
    assert type(error.value) is StoreError


def test_a_store_that_somebody_else_is_writing_is_not_a_damaged_one(store: SqliteStore, path: Path) -> None:
    store._db.execute("PRAGMA busy_timeout = 1")
    other = sqlite3.connect(path)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StoreError) as error:
        store.publish(lambda _: publication("p2", "b"))
    other.close()
    assert type(error.value) is StoreError


def test_a_deleted_file_is_noticed_at_once(store: SqliteStore, path: Path) -> None:
    path.unlink()
    for use in (store.current_mark, store.current, lambda: store.put_trace(trace("bbbbbb22"))):
        with pytest.raises(StoreError):
            use()


def test_a_replaced_file_is_noticed_at_once(store: SqliteStore, path: Path) -> None:
    copy = path.with_name("copy.db")
    shutil.copy(path, copy)
    copy.replace(path)
    with pytest.raises(StoreError):
        store.current_mark()


def test_a_store_of_another_format_is_an_error(path: Path) -> None:
    SqliteStore(path).close()
    change(path, "PRAGMA user_version = 99")
    with pytest.raises(StoreError):
        SqliteStore(path)
