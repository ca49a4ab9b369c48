"""Who is told of a change."""

from __future__ import annotations

from dataclasses import replace

import anyio

from toolcrib.errors import PolicyError
from toolcrib.server.changes import Changes, Watcher
from toolcrib.types import Caller, CallerKind

ADA, BOB = Caller(subject="ada"), Caller(subject="bob")


def watcher(caller, told, *, version="1"):
    async def tell():
        told.append(caller.subject)

    return Watcher(caller, version=version, tell=tell)


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
    changes.add(Watcher(ADA, version="1", tell=anyio.sleep_forever))
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
