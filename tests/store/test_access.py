"""What the store keeps of keys, revocations, offers and writes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from toolcrib.store.sqlite import SqliteStore
from toolcrib.types import ApiKey, ApprovalRequest, Revocation, RevokedKind

T0, T1, T2 = (f"2026-01-01T00:0{n}:00.000000+00:00" for n in range(3))
KEY = ApiKey(
    key_id="k1",
    secret_digest="00ff",
    caller={"subject": "bot", "scopes": ["read"]},
    created_at=T0,
    created_by="ops",
)


def test_a_key_comes_back_as_it_was_and_its_revocation_counts_for_every_reader(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "s.db")) as store, closing(SqliteStore(tmp_path / "s.db")) as other:
        store.put_key(KEY)
        assert (other.api_key("k1"), other.api_key("k2")) == (KEY, None)
        store.put_key(replace(KEY, revoked_at=T1))
        assert other.api_keys() == (replace(KEY, revoked_at=T1),)


def test_revocations_are_kept_until_they_are_taken_back(tmp_path: Path) -> None:
    one = Revocation(kind=RevokedKind.SUBJECT, value="acme/ann", at=T0, by="ops", reason="left")
    two = Revocation(kind=RevokedKind.SESSION, value="acme/ann", at=T1, by="ops")
    with closing(SqliteStore(tmp_path / "s.db")) as store:
        for revocation in (one, two):
            store.revoke(revocation)
        assert store.revocations() == (one, two)
        assert store.restore(RevokedKind.SUBJECT, "acme/ann")
        assert not store.restore(RevokedKind.SUBJECT, "acme/ann")
        assert store.revocations() == (two,)


def test_an_offer_is_of_one_definition_to_one_holder_for_a_while(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "s.db")) as store:
        store.put_offers("h", [("a.b", "d1"), ("a.c", "d2")], at=T1)
        assert store.was_offered("h", "a.b", "d1", since=T0)
        assert store.was_offered("h", "a.b", "d1", since=T1)
        assert not store.was_offered("h", "a.b", "d1", since=T2)
        assert not store.was_offered("h", "a.b", "d2", since=T0)
        assert not store.was_offered("other", "a.b", "d1", since=T0)
        store.put_offers("h", [("a.b", "d1")], at=T2)
        assert store.was_offered("h", "a.b", "d1", since=T2)


def test_of_many_equal_writes_one_is_reserved_and_the_others_learn_whose_it_is(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "s.db")) as store:
        with ThreadPoolExecutor(8) as threads:
            found = list(threads.map(lambda n: store.reserve_write("k", at=T0, until=T2, trace_id=f"t{n}"), range(40)))
        assert found.count("") == 1
        (holder,) = {one for one in found if one}
        assert store.reserve_write("k", at=T1, until=T2, trace_id="late") == holder
        store.release_write("k", trace_id="late")
        assert store.reserve_write("k", at=T1, until=T2, trace_id="late") == holder, "only the holder gives it back"
        store.release_write("k", trace_id=holder)
        assert store.reserve_write("k", at=T1, until=T2, trace_id="late") == ""
        assert store.reserve_write("k", at=T2, until="9", trace_id="later") == "", "the window is over"


def test_what_an_approval_rests_on_comes_back(tmp_path: Path) -> None:
    request = ApprovalRequest(
        approval_id="a1",
        key="k",
        subject="bot",
        tenant="acme",
        tool_id="s.a",
        digest="d",
        arguments_preview="{}",
        state="pending",
        created_at=T0,
        expires_at="2099",
        on_behalf_of="ann",
        channel="http",
        policies=("destructive-needs-approval",),
    )
    with closing(SqliteStore(tmp_path / "s.db")) as store:
        store.put_approval(request)
        assert store.approvals() == (request,)
