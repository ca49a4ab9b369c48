"""Who is told of a change."""

from __future__ import annotations

from dataclasses import replace

import anyio
import pytest

from toolcrib.errors import PolicyError
from toolcrib.server.changes import Changes, Watcher
from toolcrib.types import Caller, CallerKind

ADA, BOB = Caller(subject="ada"), Caller(subject="bob")


def still(caller):
    async def renew():
        return caller

    return renew


def watcher(caller, told, *, version="1", renew=None, end=lambda: None):
    async def tell():
        told.append(caller.subject)

    return Watcher(caller, version=version, renew=renew or still(caller), tell=tell, end=end)


async def test_each_is_told_once_and_only_of_its_own_change():
    told = []
    changes = Changes(lambda caller: {"ada": "2", "bob": "1"}[caller.subject])
    changes.add(watcher(ADA, told))
    changes.add(watcher(BOB, told))
    assert await changes.announce() == 1
    assert await changes.announce() == 0
    assert told == ["ada"]


async def test_one_whose_view_cannot_be_had_costs_no_other_its_word():
    told = []

    def version_of(caller):
        if caller is ADA:
            raise PolicyError("broken")
        return "2"

    changes = Changes(version_of)
    changes.add(watcher(ADA, told))
    changes.add(watcher(BOB, told))
    await changes.announce()
    assert told == ["bob"]


async def test_one_that_does_not_listen_delays_no_other(monkeypatch):
    monkeypatch.setattr("toolcrib.server.changes._TELL_WITHIN_S", 0.01)
    told = []
    changes = Changes(lambda _caller: "2")
    changes.add(Watcher(ADA, version="1", renew=still(ADA), tell=anyio.sleep_forever))
    changes.add(watcher(BOB, told))
    with anyio.fail_after(5):
        await changes.announce()
    assert told == ["bob"]


def test_one_subject_cannot_take_all_room():
    changes = Changes(lambda _caller: "1", max_watchers=3, max_per_caller=2)
    assert [changes.add(watcher(ADA, [])) for _ in range(3)] == [True, True, False]
    assert changes.add(watcher(BOB, []))
    assert not changes.add(watcher(BOB, []))


def test_one_name_in_two_tenants_or_kinds_is_not_one_caller():
    changes = Changes(lambda _caller: "1", max_per_caller=1)
    others = [replace(ADA, tenant="acme"), replace(ADA, kind=CallerKind.AGENT)]
    assert [changes.add(watcher(who, [])) for who in (ADA, *others)] == [True, True, True]
    assert [changes.add(watcher(who, [])) for who in (ADA, *others)] == [False, False, False]


@pytest.mark.parametrize("now", [None, BOB, replace(ADA, tenant="acme")], ids=["revoked", "another", "other-tenant"])
async def test_a_stream_ends_when_its_caller_would_not_come_in_any_more(now):
    told, ended = [], []
    changes = Changes(lambda _caller: "2")
    changes.add(watcher(ADA, told, renew=still(now), end=lambda: ended.append("ada")))
    changes.add(watcher(BOB, told))
    assert await changes.announce() == 1
    assert (told, ended, changes.n_watchers) == (["bob"], ["ada"], 1)


async def test_a_change_is_judged_by_the_rights_of_the_moment():
    told = []
    changes = Changes(lambda caller: ",".join(sorted(caller.roles)))
    changes.add(watcher(ADA, told, version="", renew=still(replace(ADA, roles=frozenset({"clerk"})))))
    assert await changes.announce() == 1
    assert await changes.announce() == 0


@pytest.mark.parametrize("fault", [PolicyError("broken"), RuntimeError("broken")], ids=["ours", "foreign"])
async def test_while_nobody_can_say_who_listens_nothing_is_said_and_nothing_ends(fault):
    told, ended = [], []

    async def renew():
        raise fault

    changes = Changes(lambda _caller: "2")
    changes.add(watcher(ADA, told, renew=renew, end=lambda: ended.append("ada")))
    changes.add(watcher(BOB, told))
    assert await changes.announce() == 1
    assert (told, ended, changes.n_watchers) == (["bob"], [], 2)


async def test_one_whose_identity_takes_for_ever_delays_no_other(monkeypatch):
    monkeypatch.setattr("toolcrib.server.changes._TELL_WITHIN_S", 0.01)
    told = []
    changes = Changes(lambda _caller: "2")
    changes.add(watcher(ADA, told, renew=anyio.sleep_forever))
    changes.add(watcher(BOB, told))
    with anyio.fail_after(5):
        await changes.announce()
    assert told == ["bob"]
