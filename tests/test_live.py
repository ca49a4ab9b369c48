"""Watching servers while a gateway runs: scripted servers, a clock that a test moves, and nobody waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from toolcrib.catalog.diff import CatalogDiff
from toolcrib.errors import ConnectorError, StoreError, ToolcribError
from toolcrib.live import TICK_S, Live
from toolcrib.refreshing import Taken
from toolcrib.settings import RefreshSettings, Settings, load_settings
from toolcrib.types import SecretRef, ServerListing, ServerStatus

START = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


class FakeClock:
    """Stands still until a test moves it."""

    def __init__(self) -> None:
        self.at = 1_000.0
        self.put = timedelta()
        self.waiting: dict[asyncio.Future[None], float | None] = {}

    def now(self) -> float:
        return self.at

    def utc(self) -> datetime:
        return START + timedelta(seconds=self.at - 1_000.0) + self.put

    async def wait(self, event: asyncio.Event, *, until: float | None) -> None:
        reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting[reached] = until
        told = asyncio.ensure_future(event.wait())
        try:
            await asyncio.wait([reached, told], return_when=asyncio.FIRST_COMPLETED)
        finally:
            told.cancel()
            reached.cancel()
            del self.waiting[reached]

    async def forward(self, seconds: float) -> None:
        """Time passes, and whoever waits for a moment of it gets its turn at that moment."""
        end = self.at + seconds
        await settle()
        while moments := [m for m in self.waiting.values() if m is not None and m <= end]:
            self.at = max(self.at, min(moments))
            for reached, until in list(self.waiting.items()):
                if until is not None and until <= self.at and not reached.done():
                    reached.set_result(None)
            await settle()
        self.at = end


async def settle() -> None:
    for _ in range(60):
        await asyncio.sleep(0)


class Scripted:
    """A server that a test speaks for.

    `announces`: whether it can. `refuses`: why it cannot be opened, or, where it is `deaf`, not be listened to.
    """

    def __init__(self, *, announces: bool = True, refuses: str = "", deaf: bool = False) -> None:
        self.announces = announces
        self.refuses = refuses
        self.deaf = deaf
        self.broken = False
        self.closed = False
        self.changed: Callable[[], None] = lambda: None
        self.lost: Callable[[], None] = lambda: None

    async def watch(self, on_changed: Callable[[], None], on_lost: Callable[[], None]) -> bool:
        if self.refuses:
            self.broken = not self.deaf
            raise ConnectorError(self.refuses)
        if self.announces:
            self.changed, self.lost = on_changed, on_lost
        return self.announces

    async def list_tools(self) -> ServerListing:
        raise AssertionError("whoever takes lists is scripted, too")

    async def ready(self) -> None:
        return None

    async def call(self, *_args: Any, **_kwargs: Any) -> Any:
        raise AssertionError("nobody calls over this session")

    async def aclose(self) -> None:
        self.closed = self.broken = True
        self.lost()


class Silent(Scripted):
    """One that has no way to announce, like a file."""

    watch = None  # type: ignore[assignment]


class Servers:
    """Opens, lists and remembers. `outcomes`: what the next lists come to; then they are the same as before."""

    def __init__(self) -> None:
        self.make: Callable[[], Scripted] = Scripted
        self.opened: list[Scripted] = []
        self.taken: list[tuple[float, str, object]] = []
        self.failures: list[tuple[str, str]] = []
        self.credentials: list[str] = []
        self.outcomes: list[str] = []
        self.marks: dict[str, tuple[object, ...]] = {}
        self.statuses: dict[str, ServerStatus] = {}
        self.during: Callable[[Scripted], None] = lambda _server: None
        self.fault: Exception | None = None
        self.clock = FakeClock()

    async def known(self) -> dict[str, ServerStatus]:
        return self.statuses

    def for_listing(self, _server_id: str) -> Scripted:
        self.opened.append(self.make())
        return self.opened[-1]

    def mark(self, server_id: str) -> tuple[object, ...]:
        return self.marks.get(server_id, ())

    async def take(self, server_id: str, connector: Any, *, credential: str) -> Taken:
        self.credentials.append(credential)
        self.taken.append((self.clock.at - 1_000.0, server_id, connector))
        await asyncio.sleep(0)
        self.during(connector)
        if self.fault is not None:
            raise self.fault
        return taken(self.outcomes.pop(0) if self.outcomes else "same")

    async def failed(self, server_id: str, error: ToolcribError) -> Taken:
        self.failures.append((server_id, error.what))
        return taken("failed", fault=error.what)

    @property
    def times(self) -> list[float]:
        return [round(at, 3) for at, _, _ in self.taken]


def taken(outcome: Any, *, fault: str = "it broke") -> Taken:
    changed = ("a.new",) if outcome == "changed" else ()
    change = CatalogDiff(added=changed, changed=(), removed=(), n_unchanged=0)
    return Taken(outcome=outcome, change=change, fault=fault if outcome == "failed" else "")


class World:
    """Settings in a file, scripted servers, and what the watching tells."""

    def __init__(self, folder: Path, *, ids: str = "a", **refresh: Any) -> None:
        rows = [f'[[servers]]\nid = "{name}"\ntransport = "http"\nurl = "http://127.0.0.1:9/{name}"' for name in ids]
        (folder / "toolcrib.toml").write_text('[crib]\nname = "t"\n' + "\n".join(rows), encoding="utf-8")
        self.settings: Settings = load_settings(folder)
        self.set(**refresh)
        self.servers = Servers()
        self.told: list[str] = []
        self.n_published = 0

    def set(self, **refresh: Any) -> None:
        self.settings = replace(self.settings, refresh=RefreshSettings(**refresh))

    async def published(self) -> None:
        self.n_published += 1

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[FakeClock]:
        live = Live(
            self.servers,
            settings=lambda: self.settings,
            sessions=lambda _settings: self.servers,
            tell=self.told.append,
            on_published=self.published,
            clock=self.servers.clock,
        )
        task = asyncio.create_task(live.run())
        await settle()
        try:
            yield self.servers.clock
        finally:
            task.cancel()
            await asyncio.wait([task])


async def test_a_server_is_listened_to_before_its_list_is_taken_over_the_same_session(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.watched():
        (session,) = world.servers.opened
        assert [connector for _, _, connector in world.servers.taken] == [session]
        assert not session.closed
    assert session.closed


async def test_a_burst_of_announcements_is_one_list(tmp_path: Path) -> None:
    world = World(tmp_path, debounce_s=0.5, min_interval_s=5)
    async with world.watched() as clock:
        await clock.forward(20)
        for _ in range(50):
            world.servers.opened[0].changed()
            await clock.forward(0.005)
        await clock.forward(60)
        assert world.servers.times == [0, 20.5]


async def test_a_change_announced_while_the_list_is_taken_is_not_lost(tmp_path: Path) -> None:
    world = World(tmp_path, debounce_s=0.5, min_interval_s=5)
    async with world.watched() as clock:
        await clock.forward(20)
        world.servers.outcomes = ["changed", "changed"]
        world.servers.during = lambda server: server.changed() if len(world.servers.taken) == 2 else None
        world.servers.opened[0].changed()
        await clock.forward(60)
        assert world.servers.times == [0, 20.5, 25.5]
        assert world.n_published == 2


async def test_a_server_that_announces_while_being_listed_cannot_loop_us(tmp_path: Path) -> None:
    world = World(tmp_path, debounce_s=0, min_interval_s=5)
    async with world.watched() as clock:
        world.servers.during = lambda server: server.changed()
        world.servers.opened[0].changed()
        await clock.forward(3_600)
        times = world.servers.times
        assert min(later - earlier for earlier, later in pairwise(times)) >= 5
        assert len(times) < 30
        assert world.n_published == 0


async def test_identical_lists_are_told_to_nobody_and_others_are(tmp_path: Path) -> None:
    world = World(tmp_path, debounce_s=0, min_interval_s=0)
    async with world.watched() as clock:
        assert (world.n_published, world.told) == (0, [])
        world.servers.outcomes = ["changed"]
        world.servers.opened[0].changed()
        await clock.forward(1)
        assert world.n_published == 1
        assert world.told == ["server 'a': 1 added, 0 changed, 0 removed; what is not approved waits: toolcrib review"]


async def test_a_lost_session_is_opened_again_and_the_list_taken_whatever_was_announced(tmp_path: Path) -> None:
    world = World(tmp_path, debounce_s=0, min_interval_s=5)
    async with world.watched() as clock:
        await clock.forward(20)
        world.servers.opened[0].lost()
        world.servers.opened[0].lost()
        await clock.forward(60)
        first, second = world.servers.opened
        assert first.closed and not second.closed
        assert world.servers.times == [0, 20]


async def test_a_server_that_is_gone_is_told_once_and_tried_ever_later(tmp_path: Path) -> None:
    world = World(tmp_path, debounce_s=0, min_interval_s=5)
    async with world.watched() as clock:
        await clock.forward(20)
        world.servers.make = lambda: Scripted(refuses="could not be reached")
        world.servers.opened[0].lost()
        await clock.forward(3_600)
        assert 10 < len(world.servers.failures) < 25
        assert set(world.servers.failures) == {("a", "could not be reached")}
        assert world.told == ["server 'a' gave no new list, the last one stays: could not be reached"]
        world.servers.make = Scripted
        await clock.forward(301)
        assert world.told[1:] == ["server 'a' lists its tools again"]
        n_lists = len(world.servers.taken)
        world.servers.opened[-1].changed()
        await clock.forward(10)
        assert len(world.servers.taken) == n_lists + 1


async def test_a_list_that_failed_is_tried_again_over_the_same_session_and_then_over_another(tmp_path: Path) -> None:
    world = World(tmp_path, debounce_s=0, min_interval_s=0)
    world.servers.outcomes = ["failed", "failed", "same"]
    async with world.watched() as clock:
        await clock.forward(10)
        assert world.servers.times == [0, 1, 3]
        (first, second) = world.servers.opened
        assert [connector for _, _, connector in world.servers.taken] == [first, first, second]
        assert first.closed


async def test_one_broken_server_costs_only_itself(tmp_path: Path) -> None:
    world = World(tmp_path, ids="ab", debounce_s=0, min_interval_s=0)

    async with world.watched() as clock:
        one, other = world.servers.opened
        world.servers.fault = RuntimeError("unforeseen")
        one.changed()
        await clock.forward(0.5)
        world.servers.fault = None
        n_before = len(world.servers.taken)
        other.changed()
        await clock.forward(0.1)
        assert [name for _, name, _ in world.servers.taken[n_before:]] == ["b"]


async def test_a_store_that_is_lost_is_told_and_the_watching_goes_on(tmp_path: Path) -> None:
    world = World(tmp_path, debounce_s=0, min_interval_s=0)
    world.servers.fault = StoreError("the store is lost")
    async with world.watched() as clock:
        await clock.forward(10)
        assert [line for line in world.told if "the store is lost" in line] == world.told[:1]
        world.servers.fault = None
        await clock.forward(10)
        assert len(world.servers.taken) >= 5


async def test_a_server_that_answers_no_subscription_is_listed_all_the_same_and_asked_again(tmp_path: Path) -> None:
    world = World(tmp_path, debounce_s=0, min_interval_s=5)
    world.servers.make = lambda: Scripted(refuses="no answer to subscriptions/listen", deaf=True)
    async with world.watched() as clock:
        assert world.servers.times == [0]
        world.servers.make = Scripted
        await clock.forward(60)
        assert [server.closed for server in world.servers.opened] == [True, False]
        assert (world.servers.failures, world.servers.times) == ([], [0, 5])


async def test_a_server_that_announces_nothing_is_not_kept_open(tmp_path: Path) -> None:
    world = World(tmp_path, debounce_s=0, min_interval_s=0)
    world.servers.make = lambda: Scripted(announces=False)
    async with world.watched() as clock:
        await clock.forward(600)
        (session,) = world.servers.opened
        assert session.closed
        assert world.servers.times == [0]


def status(**fields: Any) -> ServerStatus:
    at = (START - timedelta(seconds=50)).isoformat()
    return ServerStatus(**{"server_id": "a", "state": "fresh", "n_tools": 3, "listed_at": at, **fields})


@pytest.mark.parametrize(
    ("known", "watch", "opened"),
    [
        (status(capabilities={"tools": {}}), True, False),
        (status(capabilities={"tools": {"listChanged": True}}), True, True),
        (status(capabilities={"tools": {"listChanged": True}}), False, False),
        (status(state="stale", capabilities={"tools": {}}), True, True),
        (status(listed_at=""), True, True),
    ],
    ids=["announces nothing", "announces", "not to be watched", "stale", "never listed"],
)
async def test_only_a_server_that_may_announce_is_opened_at_the_start(
    tmp_path: Path, known: ServerStatus, watch: bool, opened: bool
) -> None:
    world = World(tmp_path, watch=watch)
    world.servers.statuses = {"a": known}
    async with world.watched() as clock:
        await clock.forward(100)
        assert bool(world.servers.opened) is opened


async def test_a_list_older_than_allowed_is_taken_again_also_without_announcements(tmp_path: Path) -> None:
    world = World(tmp_path, watch=False, every_s=60)
    world.servers.make = Silent
    world.servers.statuses = {"a": status()}
    async with world.watched() as clock:
        await clock.forward(9)
        assert world.servers.times == []
        await clock.forward(141)
        assert world.servers.times == [10, 70, 130]


async def test_all_lists_are_taken_when_the_hour_comes_also_after_a_sleep(tmp_path: Path) -> None:
    world = World(tmp_path, ids="ab", at=("12:10", "12:20", "23:00"), min_interval_s=0)
    async with world.watched() as clock:
        await clock.forward(599)
        assert len(world.servers.taken) == 2
        await clock.forward(TICK_S)
        assert [name for _, name, _ in world.servers.taken] == ["a", "b", "a", "b"]
        clock.put = timedelta(hours=40)
        await clock.forward(TICK_S)
        assert len(world.servers.taken) == 6
        clock.put = -timedelta(hours=30)
        await clock.forward(60)
        assert len(world.servers.taken) == 6


async def test_another_configuration_or_secret_opens_another_session(tmp_path: Path) -> None:
    world = World(tmp_path, min_interval_s=0)
    async with world.watched() as clock:
        world.servers.marks["a"] = ("another secret",)
        await clock.forward(TICK_S + 0.1)
        first, second = world.servers.opened
        assert first.closed and not second.closed
        assert [connector for _, _, connector in world.servers.taken] == [first, second]


async def test_a_list_goes_by_the_credential_that_its_session_was_opened_with(tmp_path: Path) -> None:
    world = World(tmp_path, min_interval_s=0, debounce_s=0)

    def with_key(name: str) -> Settings:
        (server,) = world.settings.servers
        return replace(world.settings, servers=(replace(server, headers={"X-Key": SecretRef(f"file:{name}")}),))

    world.settings = with_key("ann")
    async with world.watched() as clock:
        world.settings = with_key("bob")
        world.servers.opened[0].changed()
        await clock.forward(0.1)
        world.servers.marks["a"] = ("bob",)
        await clock.forward(TICK_S + 0.1)
        assert world.servers.credentials == ["file:ann", "file:ann", "file:bob"]


async def test_servers_come_and_go_with_the_configuration(tmp_path: Path) -> None:
    world = World(tmp_path, ids="ab", min_interval_s=0)
    async with world.watched() as clock:
        a, b = world.servers.opened
        kept = tuple(server for server in world.settings.servers if server.server_id == "b")
        new = replace(kept[0], server_id="c")
        world.settings = replace(world.settings, servers=(*kept, new))
        await clock.forward(TICK_S + 0.1)
        assert a.closed and not b.closed
        a.changed()
        await clock.forward(60)
        assert [name for _, name, _ in world.servers.taken] == ["a", "b", "c"]


async def test_watching_can_be_turned_off_while_it_runs(tmp_path: Path) -> None:
    world = World(tmp_path, min_interval_s=0, debounce_s=0)
    async with world.watched() as clock:
        world.set(watch=False, min_interval_s=0, debounce_s=0)
        world.servers.opened[0].changed()
        await clock.forward(TICK_S)
        assert world.servers.opened[0].closed
        assert world.servers.opened[-1].closed
        await clock.forward(600)
        assert world.servers.times == [0, 0]


async def test_who_is_told_and_fails_does_not_end_the_watching(tmp_path: Path) -> None:
    world = World(tmp_path, min_interval_s=0, debounce_s=0)

    async def fails() -> None:
        raise RuntimeError("nobody listens")

    world.published = fails  # type: ignore[method-assign]
    world.servers.outcomes = ["changed", "changed"]
    async with world.watched() as clock:
        world.servers.opened[0].changed()
        await clock.forward(1)
        assert len(world.servers.taken) == 2
