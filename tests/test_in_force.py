"""What is in force, and what merely lies on disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toolcrib.assembly import Assembly
from toolcrib.crib import Crib
from toolcrib.errors import PolicyError

from .flow.worlds import World, tool


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "crib", {"jobs": [tool("pause_job", "Pause a job."), tool("drop_job", "Drop a job.")]})
    yield made
    made.close()


def configure(world: World, old: str, new: str) -> None:
    path = world.folder / "toolcrib.toml"
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


def test_looking_at_the_catalog_builds_nothing_anew(world: World) -> None:
    before = world.crib.pipeline()
    world.crib.snapshot()
    world.crib.review()
    world.refresh()
    assert world.crib.pipeline() is before


def test_other_settings_build_anew(world: World) -> None:
    before = world.crib.pipeline()
    configure(world, 'name = "test"', 'name = "other"')
    world.crib.snapshot()
    assert world.crib.pipeline() is not before
    assert world.crib.name == "other"


def test_settings_on_disk_are_the_last_that_could_be_used(world: World) -> None:
    force = world.crib._force
    world.crib.pipeline()
    configure(world, 'name = "test"', 'name = "other"')
    assert force.settings_on_disk().crib.name == "other"
    assert force.settings.crib.name == "test"
    configure(world, 'name = "other"', "name = ")
    assert force.settings_on_disk().crib.name == "other"
    configure(world, "name = ", 'name = "third"')
    assert force.settings_on_disk().crib.name == "third"


def test_what_cannot_be_prepared_is_found_out_by_the_request(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    build = Assembly.pipeline

    def fails(self: Assembly, settings: Any, *, publication: Any = None) -> Any:
        if publication is not None:
            raise PolicyError("not now")
        return build(self, settings, publication=publication)

    world.crib.pipeline()
    monkeypatch.setattr(Assembly, "pipeline", fails)
    world.write("jobs", [tool("pause_job", "Pause a job.")])
    world.refresh()
    assert world.ids() == ["jobs.pause_job"]


def test_a_crib_that_answered_nobody_prepares_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with Crib.open(world.folder, connectors=world.servers) as other:
        force = other._force
        publication = other.store.current()
        assert publication is not None
        monkeypatch.setattr(Assembly, "pipeline", lambda *_args, **_kwargs: pytest.fail("built"))
        force.prepare(publication)
