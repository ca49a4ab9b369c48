"""The embedded store: whole or not at all, and used by many at once."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from toolcrib.errors import StoreError
from toolcrib.store.sqlite import SqliteStore
from toolcrib.types import (
    ApprovalRequest,
    Channel,
    ListedTool,
    Publication,
    ReviewEvent,
    ServerStatus,
    Sighting,
    Stage,
    StageRecord,
    Trace,
)

EARLY, LATE = "2026-01-01T00:00:00+00:00", "2099-01-01T00:00:00+00:00"


def publication(identity: str, *names: str) -> Publication:
    tools = tuple(
        ListedTool(
            server_id="s", name=name, definition={"name": name, "n": 2**70, "x": 1.0}, digest=f"raw:{name}", fault="odd"
        )
        for name in names
    )
    status = ServerStatus(server_id="s", state="fresh", n_tools=len(tools), listed_at=EARLY)
    return Publication(publication_id=identity, at=EARLY, servers=(status,), tools=tools)


def trace(identity: str, at: str = EARLY) -> Trace:
    record = StageRecord(stage=Stage.GATE, operator_view={"code": "ok", "n": 1}, caller_view={"code": "ok"})
    return Trace(
        trace_id=identity,
        kind="call",
        at=at,
        subject="u",
        on_behalf_of="",
        tenant="",
        channel=Channel.CLI,
        records=(record,),
    )


def approval(identity: str, *, expires_at: str = LATE) -> ApprovalRequest:
    return ApprovalRequest(
        approval_id=identity,
        key="k",
        subject="u",
        tenant="",
        tool_id="s.a",
        digest="d",
        arguments_preview="{}",
        state="pending",
        created_at=EARLY,
        expires_at=expires_at,
    )


def test_a_publication_comes_back_as_it_was(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    assert store.current() is None
    written = publication("p1", "a", "b")
    store.publish(lambda _: written)
    assert store.current() == written
    store.close()
    again = SqliteStore(tmp_path / "store.db")
    assert again.current() == written
    assert again.definition("raw:a") == {"name": "a", "n": 2**70, "x": 1.0}
    again.close()


def test_a_publication_that_fails_midway_leaves_the_last_one_in_force(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    store.publish(lambda _: publication("p1", "a"))
    other = sqlite3.connect(tmp_path / "store.db")
    other.execute("CREATE TRIGGER stop BEFORE INSERT ON current BEGIN SELECT RAISE(ABORT, 'disk on fire'); END")
    other.commit()
    other.close()
    with pytest.raises(StoreError):
        store.publish(lambda _: publication("p2", "a", "b"))
    current = store.current()
    assert current is not None
    assert current.publication_id == "p1"
    assert store.definition("raw:b") is None
    store.close()


def test_the_mark_changes_with_publications_and_reviews(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    marks = [store.current_mark()]
    store.publish(lambda _: publication("p1", "a"))
    marks.append(store.current_mark())
    event = ReviewEvent(at=EARLY, action="reject", tool_id="s.a", digest="sha256:a", reviewer="r", reason="why")
    store.add_reviews([event])
    marks.append(store.current_mark())
    assert len(set(marks)) == 3
    assert store.reviews() == (event.sealed(""),)
    store.close()


def test_an_approval_is_used_by_exactly_one_of_many(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    store.put_approval(approval("a1"))
    assert not store.consume_approval("a1", now=EARLY), "pending is not granted"
    assert store.decide_approval("a1", granted=True, by="boss", now=EARLY)
    assert not store.decide_approval("a1", granted=False, by="boss", now=EARLY), "decided once"
    with ThreadPoolExecutor(8) as threads:
        used = list(threads.map(lambda _n: store.consume_approval("a1", now=EARLY), range(40)))
    assert used.count(True) == 1
    assert (store.approvals()[0].state, store.approvals()[0].decided_by) == ("used", "boss")
    store.close()


def test_an_expired_approval_can_neither_be_granted_nor_used(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    store.put_approval(approval("a1", expires_at=EARLY))
    assert not store.decide_approval("a1", granted=True, by="boss", now=LATE)
    store.put_approval(approval("a2", expires_at="2030-01-01T00:00:00+00:00"))
    assert store.decide_approval("a2", granted=True, by="boss", now=EARLY)
    assert not store.consume_approval("a2", now=LATE)
    store.close()


def test_each_trace_since_then_is_read_once_newest_first_in_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolcrib.store.sqlite._PAGE", 2)
    with closing(SqliteStore(tmp_path / "s.db")) as store:
        for number in range(6):
            store.put_trace(trace(f"trace-{number}", at=EARLY if number in (0, 3) else LATE))
        read = [t.trace_id for t in store.each_trace(since=LATE, limit=100)]
        assert read == ["trace-5", "trace-4", "trace-2", "trace-1"]
        assert [t.trace_id for t in store.each_trace(since=LATE, limit=3)] == read[:3]
        under_way = store.each_trace(since=EARLY, limit=100)
        next(under_way)
        store.put_trace(trace("trace-6", at=LATE))
        assert [t.trace_id for t in under_way] == [f"trace-{number}" for number in (4, 3, 2, 1, 0)]


def test_traces_are_found_by_a_unique_beginning_and_leave_by_age(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    for one in (trace("aaaaaa11"), trace("aaaaaa22"), trace("bbbbbb33", at=LATE)):
        store.put_trace(one)
    assert store.trace("bbbbbb") == trace("bbbbbb33", at=LATE)
    assert store.trace("aaaaaa") is None, "two begin like this"
    assert store.trace("%%%%%%") is None
    assert [t.trace_id for t in store.traces(limit=2)] == ["bbbbbb33", "aaaaaa22"]
    assert store.prune(keep_days=1) == 2
    assert [t.trace_id for t in store.traces()] == ["bbbbbb33"]
    store.close()


def test_expired_approvals_leave_by_age_and_others_stay(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    store.put_approval(approval("old", expires_at=EARLY))
    store.put_approval(approval("good"))
    store.prune(keep_days=36_500)
    assert len(store.approvals()) == 2
    assert store.prune(keep_days=1) == 1
    assert [a.approval_id for a in store.approvals()] == ["good"]
    store.close()


def test_one_callers_requests_cannot_fill_the_table(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    tricky = replace(approval("other"), subject='u", "tenant": "', arguments_preview='{"subject": "u", "tenant": ""}')
    others = [tricky, replace(approval("tenant"), tenant="t"), replace(approval("nul"), subject="\ud800\0")]
    for request in (*others, approval("decided")):
        store.put_approval(request)
    assert store.decide_approval("decided", granted=True, by="boss", now=EARLY)
    for n in range(105):
        store.put_approval(approval(f"a{n}"))
    kept = [a.approval_id for a in store.approvals()]
    assert kept == [*(f"a{n}" for n in range(104, 4, -1)), "decided", "nul", "tenant", "other"]
    store.close()


def rows(path: Path, table: str) -> int:
    with closing(sqlite3.connect(path)) as db:
        return int(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def test_what_nobody_can_ask_for_leaves_with_the_next_publication(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    for n in range(10):
        store.publish(lambda _, n=n: publication(f"p{n}", f"changing{n}", "same"))
    assert (rows(tmp_path / "store.db", "publications"), rows(tmp_path / "store.db", "definitions")) == (1, 2)
    assert store.current() == publication("p9", "changing9", "same")
    store.close()


def test_a_definition_that_somebody_decided_about_stays_to_be_compared_with(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    store.publish(lambda _: publication("p1", "approved", "rejected", "ignored"))
    for action, name in (("approve", "approved"), ("reject", "rejected")):
        event = ReviewEvent(at=EARLY, action=action, tool_id=f"s.{name}", digest=f"raw:{name}", reviewer="r")  # type: ignore[arg-type]
        store.add_reviews([event])
    store.publish(lambda _: publication("p2", "next"))
    assert store.definition("raw:approved") == {"name": "approved", "n": 2**70, "x": 1.0}
    assert store.definition("raw:rejected") == {"name": "rejected", "n": 2**70, "x": 1.0}
    assert store.definition("raw:ignored") is None
    store.close()


def test_a_reader_never_meets_half_a_publication(tmp_path: Path) -> None:
    writer, reader = SqliteStore(tmp_path / "store.db"), SqliteStore(tmp_path / "store.db")
    writer.publish(lambda _: publication("p", "first"))
    with ThreadPoolExecutor(1) as threads:
        writing = threads.submit(
            lambda: [writer.publish(lambda _, n=n: publication(f"p{n}", f"t{n}")) for n in range(200)]
        )
        while not writing.done():
            assert reader.current() is not None
        writing.result()
    writer.close()
    reader.close()


def test_a_store_that_is_not_one_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_bytes(b"not a database" * 100)
    with pytest.raises(StoreError):
        SqliteStore(tmp_path / "store.db")


def test_reviews_are_chained_and_final(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    event = ReviewEvent(
        at=EARLY, action="approve", tool_id="s.a", digest="sha256:a", reviewer="r", findings=("secrecy",), signer="ada"
    )
    store.add_reviews([event, event])
    store.add_reviews([event])
    first, second, third = store.reviews()
    assert (first.previous, second.previous, third.previous) == ("", first.hash, second.hash)
    assert len({first.hash, second.hash, third.hash}) == 3
    store.close()
    for sql in ("DELETE FROM reviews", "UPDATE reviews SET reviewer = 'eve'"):
        with closing(sqlite3.connect(tmp_path / "store.db")) as db, pytest.raises(sqlite3.IntegrityError):
            db.execute(sql)


def test_a_store_of_the_first_format_keeps_its_reviews_and_goes_on_as_a_chain(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(
            "CREATE TABLE reviews (n INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL, action TEXT NOT NULL,"
            " tool_id TEXT NOT NULL, digest TEXT NOT NULL, reviewer TEXT NOT NULL, reason TEXT NOT NULL);"
            "INSERT INTO reviews (at, action, tool_id, digest, reviewer, reason)"
            f" VALUES ('{EARLY}', 'approve', 's.a', 'sha256:a', 'r', 'why'); PRAGMA user_version = 1;"
        )
    store = SqliteStore(path)
    old = ReviewEvent(at=EARLY, action="approve", tool_id="s.a", digest="sha256:a", reviewer="r", reason="why")
    assert store.reviews() == (old,)
    store.add_reviews([old])
    assert [event.hash for event in store.reviews()] == ["", old.sealed("").hash]
    store.close()
    SqliteStore(path).close()


def test_a_definition_is_sighted_once_under_each_id(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    store.publish(lambda _: publication("p1", "a"))
    store.publish(lambda _: replace(publication("p2", "a"), at=LATE))
    assert store.sightings("s.a") == (Sighting(tool_id="s.a", digest="raw:a", at=EARLY),)
    store.close()


def test_of_a_tool_that_changes_at_each_list_the_newest_and_what_was_decided_are_kept(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    first = publication("p0", "a")

    def listed(n: int) -> Publication:
        (tool,) = first.tools
        return replace(first, publication_id=f"p{n}", at=f"{EARLY}{n:03}", tools=(replace(tool, digest=f"raw:{n:03}"),))

    store.publish(lambda _: listed(0))
    store.add_reviews([ReviewEvent(at=EARLY, action="reject", tool_id="s.a", digest="raw:000", reviewer="r")])
    for n in range(1, 40):
        store.publish(lambda _, n=n: listed(n))  # type: ignore[misc]
    assert [one.digest for one in store.sightings("s.a")] == ["raw:000", *(f"raw:{n:03}" for n in range(20, 40))]
    store.close()


def test_two_refreshes_of_a_part_each_do_not_undo_one_another(tmp_path: Path) -> None:
    def grown(before: Publication | None, name: str) -> Publication:
        known = before.tools if before else ()
        return replace(publication(f"p-{name}", name), tools=(*known, *publication("", name).tools))

    store = SqliteStore(tmp_path / "store.db")
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda n: store.publish(lambda before: grown(before, f"t{n}")), range(20)))
    current = store.current()
    assert current is not None
    assert sorted(tool.name for tool in current.tools) == sorted(f"t{n}" for n in range(20))
    store.close()


def test_a_publication_is_made_while_others_write_and_again_where_somebody_published_first(tmp_path: Path) -> None:
    store, other = SqliteStore(tmp_path / "store.db"), SqliteStore(tmp_path / "store.db")
    store.publish(lambda _: publication("p1", "a"))
    seen: list[str] = []

    def made(before: Publication | None) -> Publication:
        assert before is not None
        seen.append(before.publication_id)
        store.put_trace(trace(f"t{len(seen)}"))
        if len(seen) == 1:
            other.publish(lambda _: publication("p2", "a", "b"))
        return publication("p3", *(tool.name for tool in before.tools), "c")

    done = store.publish(made)
    assert seen == ["p1", "p2"]
    assert (done.before and done.before.publication_id, [tool.name for tool in done.after.tools]) == ("p2", [*"abc"])
    assert store.current() == done.after
    assert store.trace("t1") is not None
    store.close()
    other.close()


def test_the_mark_after_a_publication_is_known_before_it(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    store.add_reviews([ReviewEvent(at=EARLY, action="reject", tool_id="s.a", digest="d", reviewer="r")])
    expected = store.mark_after("p1")
    store.publish(lambda _: publication("p1", "a"))
    assert store.current_mark() == expected
    store.add_reviews([ReviewEvent(at=EARLY, action="reject", tool_id="s.b", digest="d", reviewer="r")])
    assert store.current_mark() != expected
    store.close()


def test_a_definition_that_was_changed_in_the_store_is_written_again(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    store.publish(lambda _: publication("p1", "a"))
    with closing(sqlite3.connect(tmp_path / "store.db")) as db, db:
        db.execute("""UPDATE definitions SET body = CAST('{"name": "other"}' AS BLOB)""")
    store.publish(lambda _: publication("p1", "a"))
    assert store.current() == publication("p1", "a")
    store.close()
