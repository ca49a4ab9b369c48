"""Shadow records and kept versions in the embedded store."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from toolcrib.errors import StoreError
from toolcrib.store.sqlite import SqliteStore
from toolcrib.types import ShadowRecord, ShadowSide

EARLY, LATE = "2026-01-01T00:00:00+00:00", "2099-01-01T00:00:00+00:00"
SIDE = ShadowSide(
    outcome="selected",
    tool_ids=("a.b", "c.d"),
    tokens=10,
    confidence=0.5,
    latency_ms=1.5,
    catalog_version="c",
    policy_version="p",
    index_version="i",
    options="o",
)


def record(trace_id: str, at: str = EARLY) -> ShadowRecord:
    return ShadowRecord(
        trace_id=trace_id,
        at=at,
        state="compared",
        present=SIDE,
        candidate=replace(SIDE, tool_ids=()),
        candidate_id="x",
        gained=("e.f",),
        n_gained=1,
        n_dropped=2,
    )


def test_records_come_back_as_they_were_newest_first(tmp_path: Path) -> None:
    failed = ShadowRecord(trace_id="t2", at=LATE, state="failed", present=SIDE, fault="ConfigError: no such file")
    with closing(SqliteStore(tmp_path / "store.db")) as store:
        store.put_shadow(record("t1"))
        store.put_shadow(failed)
        assert list(store.each_shadow(since="", limit=9)) == [failed, record("t1")]
        assert list(store.each_shadow(since="2027", limit=9)) == [failed]
        assert list(store.each_shadow(since="", limit=1)) == [failed]


def test_pages_hold_all_records(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "store.db")) as store:
        for number in range(450):
            store.put_shadow(record(str(number)))
        assert [r.trace_id for r in store.each_shadow(since="", limit=420)] == [str(n) for n in range(449, 29, -1)]


def test_old_records_leave_with_their_traces(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "store.db")) as store:
        store.put_shadow(record("old", at="2020-01-01T00:00:00+00:00"))
        store.put_shadow(record("new", at=LATE))
        store.prune(keep_days=30)
        assert [r.trace_id for r in store.each_shadow(since="", limit=9)] == ["new"]


@pytest.mark.parametrize("body", ["{", "7", '{"trace_id": "t"}', '{"present": 5, "candidate": null}'])
def test_a_damaged_record_is_a_store_error(tmp_path: Path, body: str) -> None:
    path = tmp_path / "store.db"
    with closing(SqliteStore(path)) as store:
        store.put_shadow(record("t1"))
        with closing(sqlite3.connect(path)) as other:
            other.execute("UPDATE shadows SET body = ?", (body,))
            other.commit()
        with pytest.raises(StoreError):
            list(store.each_shadow(since="", limit=9))


def test_a_version_keeps_its_first_text(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "store.db")) as store:
        store.keep_version("policy", "v1", "permit")
        store.keep_version("policy", "v1", "forbid")
        store.keep_version("options", "v1", "{}")
        assert store.kept_version("policy", "v1") == "permit"
        assert store.kept_version("options", "v1") == "{}"
        assert store.kept_version("policy", "v2") is None


def test_a_store_from_before_gets_its_tables(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    SqliteStore(path).close()
    with closing(sqlite3.connect(path)) as other:
        other.execute("DROP TABLE shadows")
        other.execute("DROP TABLE versions")
        other.commit()
    with closing(SqliteStore(path)) as store:
        store.put_shadow(record("t1"))
        assert store.kept_version("policy", "v") is None
